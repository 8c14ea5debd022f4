//! The original and pi with the same prompts and the same model: compactions happen in the same
//! places.

use std::fs;

use model_server::{Answer, Block, ModelServer, Received};
use serde_json::{Value, json};

use super::of_type;
use crate::support::{Home, Rpc, prompt, text_of, without};

/// Produces the answers of the scripted model, one per prompt. A program that asks once more than
/// the other gets different answers from then on.
struct Script {
    seed: u64,
    /// Number of tokens that the context would hold.
    used: u64,
}

impl Script {
    fn random(&mut self, below: u64) -> u64 {
        self.seed = self
            .seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.seed >> 33) % below
    }

    fn next(&mut self, number: usize) -> Answer {
        let words = self.random(60) as usize;
        let text = format!("Answer {number}: {}", "lorem ipsum é🦀 ".repeat(words));
        // Fill the context now and then, at any kind of request, but not twice in a row: then the
        // original has nothing to summarise, and pi refuses.
        self.used = match self.used {
            6_401.. => self.random(2_000),
            used => used + self.random(900),
        };
        let file = format!("file-{}.txt", self.random(5));
        // One block instead of many deltas saves time.
        let output = Block::Text(vec![text.clone()]);
        let answer = match self.random(8) {
            0 => Answer::blocks([output]).then_tool("read", json!({"path": file, "limit": 2})),
            1 => {
                Answer::blocks([output]).then_tool("write", json!({"path": file, "content": text}))
            }
            2 => Answer::thinking("Which one?")
                .then(output)
                .then_tool("read", json!({"path": file})),
            3 => Answer::blocks([output])
                .then_tool("read", json!({"path": file}))
                .then_tool(
                    "edit",
                    json!({
                        "path": file, "edits": [{"oldText": "x", "newText": "y"}],
                    }),
                ),
            _ => Answer::blocks([output]),
        };
        answer.usage(self.used, 1 + self.random(50))
    }
}

/// Answers a request for a summary. The answer depends on the question alone, because a turn that
/// is cut in two asks for two summaries at once, in any order.
fn summary(request: &Received) -> Option<Answer> {
    let prompt = text_of(&request.body["messages"][0]);
    let (about, _) = prompt.split_once("\n</conversation>\n\n")?;
    let sum = about.bytes().fold(0_u32, |sum, byte| {
        sum.wrapping_mul(31).wrapping_add(byte.into())
    });
    let text = format!("Summary of {} bytes, {sum:08x}.", about.len());
    Some(Answer::blocks([Block::Text(vec![text])]))
}

/// `/go [3, {…}]` goes to the third entry.
const GO: &str = r#"export default (pi) => pi.registerCommand("go", {
    handler: async (args, ctx) => {
        const [to, options] = JSON.parse(args);
        await ctx.navigateTree(ctx.sessionManager.getEntries()[to].id, options);
        ctx.ui.notify("gone");
    },
});"#;

/// One of the two programs.
struct Side {
    server: ModelServer,
    home: Home,
    rpc: Rpc,
}

impl Side {
    async fn both(answers: &[Answer]) -> [Self; 2] {
        [
            Self::start(false, answers).await,
            Self::start(true, answers).await,
        ]
    }

    async fn start(original: bool, answers: &[Answer]) -> Self {
        let server = ModelServer::start().await;
        for answer in answers {
            server.push(answer.clone());
        }
        server.answer_by(summary);
        let home = Home::new(&server);
        home.extension("go.ts", GO);
        let models = home.agent_dir().join("models.json");
        let text = fs::read_to_string(&models).unwrap();
        fs::write(&models, text.replace("200000", "8000")).unwrap();
        home.settings(json!({"compaction": {"reserveTokens": 1500, "keepRecentTokens": 400}}));
        for number in 0..5 {
            home.file(
                &format!("file-{number}.txt"),
                &"some text x\n".repeat(30 * number + 3),
            );
        }
        let rpc = match original {
            false => home.rpc(&[]),
            true => home.original_rpc(&[]),
        };
        Self { server, home, rpc }
    }

    /// Sends a prompt and waits until neither the agent nor a compaction is at work.
    async fn run_prompt(&mut self, text: &str) {
        self.rpc.ok(prompt(text)).await;
        self.rpc.event("agent_end").await;
        for requested in 0.. {
            // A response may be late, so each request has its own number.
            let id = format!("s{requested}");
            let ask = json!({"type": "get_state", "id": id});
            self.rpc.send(&ask.to_string()).await;
            let is_state = |line: &Value| line["id"] == id;
            let is_end = |line: &Value| line["type"] == "compaction_end";
            let mut line = self
                .rpc
                .wait("the state", |line| is_state(line) || is_end(line))
                .await;
            if is_state(&line) {
                if line["data"]["isCompacting"] == false {
                    return;
                }
                line = self.rpc.event("compaction_end").await;
            }
            // The original pauses before it continues, and looks idle meanwhile.
            if line["willRetry"] == true {
                self.rpc.event("agent_end").await;
            }
        }
    }

    async fn go(&mut self, to: usize, options: &Value) {
        let command = format!("/go {}", json!([to, options]));
        self.rpc.ok(prompt(&command)).await;
        self.rpc.notified("gone").await;
    }

    async fn compact(&mut self) {
        let command = json!({"type": "compact", "customInstructions": "the numbers"});
        self.rpc.ok(command).await;
    }

    async fn end(mut self) -> (Vec<Value>, Vec<Value>, usize) {
        let messages = self.rpc.ok(json!({"type": "get_messages"})).await;
        let messages = messages["messages"].as_array().unwrap().iter();
        let messages = messages.map(|message| without(message, &["timestamp"]));
        let unasked = self.server.unasked();
        self.rpc.close_stdin();
        self.rpc.end().await;
        let requests = self.server.requests();
        let mut requests: Vec<Value> = requests
            .iter()
            .map(|request| comparable(&request.body))
            .collect();
        for summaries in requests.chunk_by_mut(|a, b| a[0].is_string() && b[0].is_string()) {
            summaries.sort_by_key(Value::to_string);
        }
        requests.extend(messages);
        (numbered(&self.home.entries()), requests, unasked)
    }
}

/// Replaces ids by positions and removes times.
fn numbered(entries: &[Value]) -> Vec<Value> {
    let position = |id: &Value| match id {
        Value::Null => Value::Null,
        id => json!(entries.iter().position(|entry| entry["id"] == *id)),
    };
    let entry = |entry: &Value| {
        let mut same = without(entry, &["timestamp", "id", "cwd"]);
        for member in ["parentId", "firstKeptEntryId", "fromId", "targetId"] {
            if let Some(id) = same.get_mut(member) {
                *id = position(&id.clone());
            }
        }
        if let Some(message) = same.get_mut("message") {
            *message = without(message, &["timestamp"]);
        }
        same
    };
    entries.iter().map(entry).collect()
}

/// Reduces a request to what the model is told. A request for a summary is reduced to the
/// conversation, because its instructions are each program's own.
fn comparable(body: &Value) -> Value {
    let first = text_of(&body["messages"][0]);
    let Some((about, _)) = first.split_once("\n</conversation>\n\n") else {
        return json!([body["messages"], body["max_tokens"], body["thinking"]]);
    };
    let previous = first.split_once("<previous-summary>");
    let previous = previous.and_then(|(_, rest)| rest.split_once("</previous-summary>"));
    let previous = previous.map(|(summary, _)| summary);
    json!([about, previous, body["max_tokens"], body["thinking"]])
}

async fn compare(turns: usize) {
    // A turn may ask many times.
    let mut script = Script { seed: 7, used: 0 };
    let answers: Vec<Answer> = (0..turns * 8).map(|number| script.next(number)).collect();
    let mut sides = Side::both(&answers).await;
    for turn in 0..turns {
        let text = format!("Prompt {turn} {}", "what about this? ".repeat(turn % 23));
        let [ours, original] = &mut sides;
        tokio::join!(ours.run_prompt(&text), original.run_prompt(&text));
    }
    let entries = assert_alike(sides).await;
    let compactions = of_type(&entries, "compaction");
    let split = |entry: &&Value| entry["summary"].as_str().unwrap().contains("(split turn)");
    let splits = compactions.iter().filter(split).count();
    println!(
        "{turns} turns, {} compactions, {splits} of them split",
        compactions.len()
    );
    assert!(compactions.len() >= turns / 25 && splits > 0);
}

/// Insists that both programs stored the same entries, and returns them.
async fn assert_alike([ours, original]: [Side; 2]) -> Vec<Value> {
    let (our_entries, we_asked, our_rest) = ours.end().await;
    let (entries, requested, rest) = original.end().await;
    assert!(rest > 0, "the script was too short");
    for (index, (ours, original)) in our_entries.iter().zip(&entries).enumerate() {
        assert_eq!(ours, original, "entry {index}");
    }
    for (index, (ours, original)) in we_asked.iter().zip(&requested).enumerate() {
        assert_eq!(ours, original, "request {index}");
    }
    assert_eq!(
        (our_entries.len(), we_asked.len(), our_rest),
        (entries.len(), requested.len(), rest)
    );
    entries
}

#[tokio::test]
async fn a_hundred_turns() {
    compare(100).await;
}

/// `cargo nextest run --test it --run-ignored only a_thousand_turns`
#[tokio::test]
#[ignore = "takes two minutes"]
async fn a_thousand_turns() {
    compare(1000).await;
}

#[tokio::test]
async fn branches_overflows_and_manual_compactions() {
    let say = |text: &str| Answer::blocks([Block::Text(vec![text.repeat(300)])]);
    let too_long = || Answer::error(400, "prompt is too long: 9000 tokens > 8000 maximum");
    let answers = [
        say("first ").then_tool("read", json!({"path": "file-1.txt"})),
        say("second ").then_tool("write", json!({"path": "new.txt", "content": "new"})),
        say("third "),
        say("fourth "),
        say("fifth "),
        say("sixth "),
        // This leaves something to summarise after the manual compaction.
        say("seventh "),
        // pi recovers from this one.
        too_long(),
        say("eighth "),
        // pi does not recover from this one.
        too_long(),
        too_long(),
        say("ninth "),
        say("left over"),
    ];
    let mut sides = Side::both(&answers).await;
    let [ours, original] = &mut sides;
    for text in ["one", "two"] {
        tokio::join!(ours.run_prompt(text), original.run_prompt(text));
    }
    // Go past the tool calls to the end of the first turn.
    let leave = json!({"summarize": true, "customInstructions": "words", "label": "left"});
    tokio::join!(ours.go(7, &leave), original.go(7, &leave));
    tokio::join!(ours.run_prompt("three"), original.run_prompt("three"));
    // Go to the second prompt; the summary is among the entries that are left.
    let leave = json!({"summarize": true});
    tokio::join!(ours.go(8, &leave), original.go(8, &leave));
    tokio::join!(ours.run_prompt("four"), original.run_prompt("four"));
    tokio::join!(ours.compact(), original.compact());
    for text in ["five", "six", "seven", "eight"] {
        tokio::join!(ours.run_prompt(text), original.run_prompt(text));
    }
    // Go to before the first prompt.
    let quietly = json!({"label": "the beginning"});
    tokio::join!(ours.go(2, &quietly), original.go(2, &quietly));
    let entries = assert_alike(sides).await;
    assert_eq!(of_type(&entries, "branch_summary").len(), 2);
    assert_eq!(of_type(&entries, "label").len(), 2);
    assert!(of_type(&entries, "compaction").len() >= 3);
}
