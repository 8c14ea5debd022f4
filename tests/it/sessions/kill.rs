//! Invariant 1: acknowledged data survives SIGKILL, and the conversation can continue. `PI_KILLS`
//! sets the number of kills (CONTRIBUTING.md).

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use model_server::{Answer, Api, ModelServer, Received};
use serde_json::{Value, json};

use crate::support::{Home, Reference, Rpc, TIMEOUT, pause, prompt, text_of};

/// Number of lanes that run side by side, each with its own session.
const LANES: usize = 4;
/// Default number of kills. A slow machine does fewer within `TIME`, but at least the number that
/// is needed to meet every kind of moment.
const KILLS: usize = 300;
const TIME: Duration = Duration::from_secs(30);
const KILLS_AT_LEAST: usize = 60;
/// Number of kills after which a lane starts a new session, because every opening reads the whole
/// file.
const KILLS_PER_SESSION: usize = 25;
/// The original also reads the file once in this many kills.
const KILLS_PER_QUESTION: usize = 40;

#[derive(Debug, Default)]
struct Count {
    kills: usize,
    announced: usize,
    torn: usize,
    interrupted: usize,
    requests: usize,
    asked_the_original: usize,
}

/// Limits of a lane.
#[derive(Clone, Copy)]
struct Limits {
    kills: usize,
    at_least: usize,
    until: Instant,
}

impl Limits {
    fn are_reached(&self, kills: usize) -> bool {
        kills >= self.kills || kills >= self.at_least && Instant::now() >= self.until
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn repeated_kills_lose_no_announced_message() {
    let requested = std::env::var("PI_KILLS").ok();
    let requested = requested.map(|kills| kills.parse().expect("PI_KILLS is a number"));
    let (kills, at_least) = match requested {
        Some(kills) => (kills, kills),
        None => (KILLS, KILLS_AT_LEAST),
    };
    let limits = Limits {
        kills: kills.div_ceil(LANES),
        at_least: at_least.div_ceil(LANES),
        until: Instant::now() + TIME,
    };
    let lanes = (0..LANES).map(|lane| tokio::spawn(run_lane(lane, limits)));
    let mut total = Count::default();
    for lane in lanes.collect::<Vec<_>>() {
        let count = lane.await.unwrap();
        total.kills += count.kills;
        total.announced += count.announced;
        total.torn += count.torn;
        total.interrupted += count.interrupted;
        total.requests += count.requests;
        total.asked_the_original += count.asked_the_original;
    }
    println!("{total:#?}");
    assert!(total.kills >= at_least);
    // Most kills wait for more than one message.
    assert!(total.announced > total.kills / 3, "killed too early");
    assert!(
        total.interrupted > 0,
        "no kill came between a call and its result"
    );
}

async fn run_lane(lane: usize, limits: Limits) -> Count {
    let mut random = Random(lane as u64 + 1);
    let mut count = Count::default();
    while !limits.are_reached(count.kills) {
        let api = [Api::AnthropicMessages, Api::OpenAiCompletions][random.below(2) as usize];
        let server = ModelServer::start().await;
        let home = Home::with_api(&server, api);
        let file = home.cwd().join("session.jsonl");
        let arguments = ["-ne", "--session", file.to_str().unwrap()];
        let mut announced: Vec<Value> = Vec::new();
        for round in 0..KILLS_PER_SESSION {
            if limits.are_reached(count.kills) {
                break;
            }
            let reported = format!("lane {lane}, kill {}, round {round}", count.kills);
            if count.kills % KILLS_PER_QUESTION == lane && !announced.is_empty() {
                count.asked_the_original += 1;
                let found = as_the_original_reads(&home, &file).await;
                assert_there(&announced, &found, &format!("{reported}, the original"));
            }
            let remains = Remains::in_file(&file);
            let mut rpc = home.rpc(&arguments);
            count.kills += 1;
            let moment = random.below(6);
            if moment == 0 {
                // Kill while the program starts, or repairs the file.
                pause(random.below(60)).await;
                rpc.kill().await;
                continue;
            }
            let found = messages(&mut rpc).await;
            assert_there(&announced, &found, &reported);
            count.torn += usize::from(remains.torn);
            count.interrupted += usize::from(!remains.unanswered.is_empty());
            remains.were_reported(&rpc, &reported).await;
            server.repeat(match moment {
                1..=3 => some_answer(&mut random),
                _ => Answer::text("On it. ").then_tool("bash", json!({"command": "sleep 0.2"})),
            });
            rpc.ok(prompt(&format!("round {round}"))).await;
            await_moment(&mut rpc, moment, &mut random).await;
            let lines = rpc.kill().await;
            let ends = lines
                .into_iter()
                .filter(|line| line["type"] == "message_end");
            let before = announced.len();
            announced.extend(ends.map(|mut end| end["message"].take()));
            count.announced += announced.len() - before;
        }
        server.repeat(Answer::text("Ours."));
        let unanswered = Remains::in_file(&file).unanswered;
        let mut rpc = home.rpc(&arguments);
        let found = messages(&mut rpc).await;
        assert_there(&announced, &found, "at the end of a session");
        assert_eq!(rpc.answer_to("go on").await, "Ours.");
        assert!(rpc.close().await.success());
        let last_request = server.last_request().body.to_string();
        for id in unanswered {
            assert!(last_request.contains(&id), "{id} is not in the request");
            assert!(
                last_request.contains("The tool call was interrupted"),
                "{id}"
            );
        }
        if limits.are_reached(count.kills) {
            // The whole original program continues the session.
            server.repeat(Answer::text("Theirs."));
            let theirs = [&arguments[..], &["-p", "and on"]].concat();
            home.run_original(&theirs).await.ok();
            let mut rpc = home.rpc(&arguments);
            let found = messages(&mut rpc).await;
            assert_there(&announced, &found, "after the original");
            assert_eq!(text_of(found.last().unwrap()), "Theirs.");
        }
        let requests = server.requests();
        count.requests += requests.len();
        for request in requests {
            assert_answered(&request);
        }
    }
    count
}

/// Waits for the moment of a kill. Some moments depend on time, so that nothing is spared, and some
/// on events, so that even the slowest machine reaches them.
async fn await_moment(rpc: &mut Rpc, moment: u64, random: &mut Random) {
    match moment {
        1 => pause(random.below(80)).await,
        // The first request takes a while, and nothing is stored meanwhile.
        2 | 3 => {
            rpc.wait("an answer", |event| {
                event["type"] == "message_start" && event["message"]["role"] == "assistant"
            })
            .await;
            pause(random.below(80)).await;
        }
        4 => {
            rpc.event("tool_execution_start").await;
        }
        _ => {
            for _ in 0..random.below(40) {
                rpc.wait("the next event", |_| true).await;
            }
        }
    }
}

/// Returns tool calls without end, so that entries of every kind are written at any time; slow
/// calls, which are killed while they run; and long records, which take long to write.
fn some_answer(random: &mut Random) -> Answer {
    let bash = |command: &str| json!({ "command": command });
    match random.below(6) {
        0 | 1 => Answer::text("On it. ").then_tool("bash", bash("echo done")),
        2 => Answer::tools([("bash", bash("sleep 0.03")), ("bash", bash("echo second"))]),
        3 => Answer::thinking("Much. ")
            .then_tool("bash", bash("head -c 40000 /dev/zero | tr '\\0' x")),
        4 => Answer::deltas(3, &"long ".repeat(30_000)),
        _ => Answer::deltas(30, "word "),
    }
    .delay(1)
}

async fn messages(rpc: &mut Rpc) -> Vec<Value> {
    let mut data = rpc.ok(json!({"type": "get_messages"})).await;
    match data["messages"].take() {
        Value::Array(messages) => messages,
        other => panic!("{other}"),
    }
}

/// Insists that all announced messages are found in this order; unannounced ones may be between
/// them.
fn assert_there(announced: &[Value], found: &[Value], reported: &str) {
    let mut rest = found.iter();
    for message in announced {
        assert!(
            rest.any(|found| found == message),
            "{reported}: {message} is lost"
        );
    }
}

/// The messages that the original finds, without changing the file.
async fn as_the_original_reads(home: &Home, file: &Path) -> Vec<Value> {
    const SCRIPT: &str = "
        const { SessionManager } = await import(process.argv[1]);
        const session = SessionManager.open(process.argv[2]);
        console.log(JSON.stringify(session.buildSessionContext().messages));";
    let program = Reference::install().program();
    let module = program.with_file_name("core").join("session-manager.js");
    let output = home
        .command("node")
        .args(["--input-type=module", "-e", SCRIPT])
        .args([module.as_path(), file])
        .output()
        .await
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}\n{printed}"))
}

/// The damage that a kill has left in the file.
#[derive(Default)]
struct Remains {
    /// Whether the last line is incomplete.
    torn: bool,
    /// The ids of calls whose results are missing.
    unanswered: Vec<String>,
}

impl Remains {
    fn in_file(file: &Path) -> Self {
        let text = fs::read_to_string(file).unwrap_or_default();
        let mut remains = Self {
            torn: !text.is_empty() && !text.ends_with('\n'),
            unanswered: Vec::new(),
        };
        let entries = text
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok());
        for entry in entries.filter(|entry| entry["type"] == "message") {
            let message = &entry["message"];
            match message["role"].as_str() {
                Some("toolResult") => remains
                    .unanswered
                    .retain(|id| message["toolCallId"] != id.as_str()),
                Some("assistant") => {
                    let blocks = message["content"].as_array().unwrap().iter();
                    let calls = blocks.filter(|block| block["type"] == "toolCall");
                    let ids = calls.map(|call| call["id"].as_str().unwrap().to_owned());
                    remains.unanswered = ids.collect();
                }
                _ => remains.unanswered.clear(),
            }
        }
        remains
    }

    async fn were_reported(&self, rpc: &Rpc, reported: &str) {
        let sentences = [
            (self.torn, "the last line"),
            (!self.unanswered.is_empty(), "was cut off while a tool ran"),
        ];
        for (_, sentence) in sentences.iter().filter(|(expected, _)| *expected) {
            let output = async {
                while !rpc.stderr().contains(sentence) {
                    pause(5).await;
                }
            };
            let output = tokio::time::timeout(TIMEOUT, output).await;
            assert!(
                output.is_ok(),
                "{reported}: no {sentence:?} in {:?}",
                rpc.stderr()
            );
        }
    }
}

/// Insists that every tool call is followed directly by its result, and that every result has its
/// call: no provider accepts anything else.
fn assert_answered(request: &Received) {
    let messages = request.body["messages"].as_array().unwrap();
    let mut owed: Vec<&str> = Vec::new();
    for message in messages {
        let blocks = message["content"].as_array().into_iter().flatten();
        let (calls, results): (Vec<_>, Vec<_>) = match request.api {
            Api::AnthropicMessages => {
                let ids = |kind: &str, member: &str| -> Vec<_> {
                    let blocks = blocks.clone().filter(|block| block["type"] == kind);
                    blocks
                        .map(|block| block[member].as_str().unwrap())
                        .collect()
                };
                (ids("tool_use", "id"), ids("tool_result", "tool_use_id"))
            }
            _ => {
                let calls = message["tool_calls"].as_array().into_iter().flatten();
                (
                    calls.map(|call| call["id"].as_str().unwrap()).collect(),
                    message["tool_call_id"].as_str().into_iter().collect(),
                )
            }
        };
        for result in &results {
            let call = owed.iter().position(|id| id == result);
            let call = call.unwrap_or_else(|| panic!("{result} answers nothing: {messages:#?}"));
            owed.swap_remove(call);
        }
        // Chat completions have one message per result.
        if results.is_empty() || request.api == Api::AnthropicMessages {
            assert!(owed.is_empty(), "{owed:?} have no result: {messages:#?}");
        }
        owed.extend(calls);
    }
    assert!(owed.is_empty(), "{owed:?} have no result: {messages:#?}");
    let last = &messages.last().unwrap()["role"];
    assert!(last == "user" || last == "tool", "{last} has the last word");
}

/// A xorshift generator: every run does the same things, if not at the same moments.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}
