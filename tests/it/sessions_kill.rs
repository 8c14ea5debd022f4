//! Invariant 1: what was acknowledged survives SIGKILL.

use model_server::{Answer, ModelServer};
use serde_json::{Value, json};

use crate::support::{Home, message_end, pause, prompt};

/// Lanes run side by side, each with a session of its own.
const LANES: u64 = 4;
const KILLS: usize = 50;

#[tokio::test]
async fn a_session_that_is_killed_200_times_always_opens_again() {
    let lanes = (0..LANES).map(|seed| tokio::spawn(lane(seed)));
    for lane in lanes.collect::<Vec<_>>() {
        lane.await.unwrap();
    }
}

/// Opens a session, checks that everything announced so far is there, works
/// until it is killed, and again.
async fn lane(seed: u64) {
    let server = ModelServer::start().await;
    // Tool calls without end: entries of every kind are written at any time.
    let work = Answer::text("On it. ").then_tool("bash", json!({"command": "echo done"}));
    server.repeat(work.delay(1));
    let home = Home::new(&server);
    let file = home.cwd().join("session.jsonl");
    let mut random = Random(seed + 1);
    let mut announced: Vec<Value> = Vec::new();
    for round in 0..=KILLS {
        let mut rpc = home.rpc(&["--session", file.to_str().unwrap()]);
        let kept = rpc.ok(json!({"type": "get_messages"})).await["messages"].clone();
        let mut kept = kept.as_array().expect("a list").iter();
        for message in &announced {
            // In this order; what nobody had announced may be between.
            assert!(
                kept.any(|stored| stored == message),
                "lane {seed}, round {round}: {message} is lost"
            );
        }
        rpc.ok(prompt(&format!("round {round}"))).await;
        // On a busy machine hardly anything is done in so little time, so that
        // every other kill waits until there is something to lose.
        if round % 2 == 0 {
            rpc.wait("a result", message_end("toolResult")).await;
        }
        pause(random.below(150)).await;
        let lines = rpc.kill().await;
        let ends = lines
            .into_iter()
            .filter(|line| line["type"] == "message_end");
        announced.extend(ends.map(|mut end| end["message"].take()));
    }
    let tools = announced
        .iter()
        .filter(|message| message["role"] == "toolResult");
    assert!(
        tools.count() > KILLS / 5,
        "the kills came too early to show anything"
    );
    let answers = announced
        .iter()
        .map(|message| json!({"type": "message_end", "message": message}));
    assert!(answers.filter(|end| message_end("assistant")(end)).count() > KILLS / 5);
}

/// Xorshift: a failure can be repeated.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}
