//! When the agent waits for handlers, what has happened by the time it continues, and that it never
//! waits for a handler that waits for it.

use std::fs;

use model_server::{Answer, ModelServer};
use serde_json::{Value, json};

use crate::support::{Home, Rpc, prompt, text_of, with_extension, without};

/// The events in words, without updates.
fn story(lines: &[Value]) -> Vec<String> {
    let reported = lines.iter().filter_map(|line| {
        let kind = line["type"].as_str()?;
        Some(match kind {
            "response" | "message_update" => return None,
            "extension_ui_request" => format!("> {}", line["message"].as_str()?),
            "message_start" | "message_end" => {
                let message = &line["message"];
                match message["role"].as_str()? {
                    "custom" => format!("{kind} custom {}", message["content"].as_str()?),
                    role => format!("{kind} {role}"),
                }
            }
            _ => kind.to_owned(),
        })
    });
    reported.collect()
}

/// Insists that one line comes before another.
fn before(story: &[String], first: &str, then: &str) {
    let place = |text: &str| {
        let found = story.iter().position(|line| line == text);
        found.unwrap_or_else(|| panic!("no {text}: {story:#?}"))
    };
    assert!(place(first) < place(then), "{first}, {then}: {story:#?}");
}

#[tokio::test]
async fn handlers_finish_before_the_agent_continues() {
    let (server, home, mut rpc) = with_extension(include_str!("fixtures/order.ts")).await;
    server.push(Answer::tool("look", json!({})));
    server.push(Answer::text("Looked."));
    server.push(Answer::text("Gone on."));
    rpc.ok(prompt("go")).await;
    rpc.event("agent_end").await;
    rpc.event("agent_end").await;
    let story = story(&rpc.lines());
    for (event, reported) in [
        ("agent_start", "agent_start"),
        ("turn_start", "turn_start"),
        ("message_start user", "message_start user"),
        ("message_end user", "message_end user"),
        ("tool_execution_start", "tool_execution_start"),
        ("tool_execution_end", "tool_execution_end"),
        ("message_end toolResult", "message_end toolResult"),
        ("turn_end assistant", "turn_end"),
    ] {
        before(&story, &format!("> {event}, done"), reported);
    }
    before(&story, "> message_end user, done", "> context");
    before(&story, "> the last update, done", "> agent_end: false");
    let ends = [
        "> agent_end: false",
        "> agent_end, later: true",
        "message_start custom at once",
        "message_end custom at once",
        "entry_appended",
        "> agent_end, done",
        "agent_end",
        "> agent_start",
        "> agent_start, done",
        "agent_start",
    ];
    let begin = story.iter().position(|line| line == ends[0]).unwrap();
    assert_eq!(story[begin..begin + ends.len()], ends);
    before(
        &story,
        "message_end custom go on",
        "message_start custom for the next run",
    );

    let stored = home.entries();
    let stored: Vec<String> = stored
        .iter()
        .filter_map(|entry| match entry["type"].as_str()? {
            "message" => Some(entry["message"]["role"].as_str()?.to_owned()),
            "custom_message" => Some(entry["content"].as_str()?.to_owned()),
            "custom" => Some(format!(
                "{} {}",
                entry["customType"].as_str()?,
                entry["data"]
            )),
            _ => None,
        })
        .collect();
    let expected = [
        "before \"user\"",
        "user",
        "before \"assistant\"",
        "assistant",
        "before \"toolResult\"",
        "toolResult",
        "before \"assistant\"",
        "assistant",
        "at once",
        "from agent_end null",
        "before \"custom\"",
        "go on",
        "before \"custom\"",
        "for the next run",
        "before \"assistant\"",
        "assistant",
    ];
    assert_eq!(stored, expected);
    let requested = server.requests()[1].body.to_string();
    assert!(requested.contains("made: true"), "{requested}");

    rpc.ok(json!({"type": "cycle_model"})).await;
    rpc.close().await;
}

/// The ending run still counts as running, so it takes the message that starts a turn, and another
/// run starts, as with the newest originals. A message without a turn waits.
#[tokio::test]
async fn a_turn_requested_in_agent_end_starts_the_next_run() {
    let source = r#"let ends = 0;
        export default (pi) => pi.on("agent_end", async (event, ctx) => {
            ends += 1;
            const say = (content, options) =>
                pi.sendMessage({ customType: "said", content, display: true }, options);
            if (ends === 1) {
                say("early", { triggerTurn: true });
                say("early, to follow", { triggerTurn: true, deliverAs: "followUp" });
            }
            if (ends === 2) say("only said");
            await new Promise((resolve) => setTimeout(resolve, 20));
            ctx.ui.notify("done");
        });"#;
    let (server, _home, mut rpc) = with_extension(source).await;
    for text in ["One.", "Two.", "Three."] {
        server.push(Answer::text(text));
    }
    rpc.ok(prompt("go")).await;
    rpc.event("agent_settled").await;
    let turn = [
        "message_start assistant",
        "message_end assistant",
        "turn_end",
    ];
    let output =
        |content: &str| ["start", "end"].map(|kind| format!("message_{kind} custom {content}"));
    let expected = [
        vec![
            "agent_end".to_owned(),
            "agent_start".into(),
            "turn_start".into(),
        ],
        output("early").into(),
        turn.map(String::from).into(),
        vec!["turn_start".into()],
        output("early, to follow").into(),
        turn.map(String::from).into(),
        vec!["agent_end".into()],
    ];
    let expected = expected.concat();
    let mut story = story(&rpc.lines());
    story.retain(|line| !line.starts_with('>'));
    let begin = story.iter().position(|line| line == "agent_end").unwrap();
    assert_eq!(story[begin..begin + expected.len()], expected, "{story:#?}");
    assert_eq!(server.requests().len(), 3);
    assert_eq!(rpc.close().await.code(), Some(0));
}

#[tokio::test]
async fn the_agent_does_not_wait_for_a_handler_that_waits_for_it() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.settings(json!({"compaction": {"keepRecentTokens": 1}}));
    let path = home.agent_dir().join("models.json");
    let mut models: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    let known = models["providers"]["scripted"]["models"]
        .as_array_mut()
        .unwrap();
    let mut other = known[0].clone();
    other["id"] = json!("other");
    known.push(other);
    fs::write(&path, models.to_string()).unwrap();
    home.extension("ext.ts", include_str!("fixtures/waiting.ts"));
    let mut rpc = home.rpc(&[]);
    server.repeat(Answer::text("Yes."));
    for (name, output) in [
        ("idle in message_start", "idle"),
        ("idle in turn_end", "idle"),
        ("idle in agent_end", "idle"),
        ("compaction in turn_end", "compacted"),
        ("compaction in agent_end", "compacted"),
        ("model", "set: true"),
        ("abort", "aborted"),
        ("tree", "went: true"),
        ("new session", "entered"),
    ] {
        waits(&mut rpc, name).await;
        rpc.notified(output).await;
        rpc.ok(prompt("/rest")).await;
    }
    waits(&mut rpc, "reload").await;
    rpc.stderr_line("RELOADED").await;
    rpc.run("still there?").await;
    waits(&mut rpc, "itself").await;
    rpc.notified("said").await;
    let lines = rpc.lines();
    let wrong = lines.iter().find(|line| line["type"] == "extension_error");
    assert_eq!(wrong, None);
    let waited = lines
        .iter()
        .find(|line| line["type"] == "extension_wait_start");
    assert_eq!(waited, None);
}

async fn waits(rpc: &mut Rpc, name: &str) {
    rpc.ok(prompt(&format!("/wait {name}"))).await;
    rpc.ok(prompt(name)).await;
}

#[tokio::test]
async fn a_hanging_handler_costs_its_limit_and_an_abort_nothing() {
    let source = r#"let hangs = 0;
        export default (pi) => {
            for (const name of ["turn_start", "agent_end"]) {
                pi.on(name, (event, ctx) => {
                    if (event.turnIndex > 0) return;
                    hangs += 1;
                    ctx.ui.notify(`${name} hangs`);
                    return new Promise((resolve) => setTimeout(resolve, 3_600_000));
                });
            }
        };"#;
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.settings(json!({"extensionTimeouts": {"handler": 600_000}}));
    home.extension("ext.ts", source);
    let mut rpc = home.rpc(&[]);
    rpc.ok(prompt("go")).await;
    rpc.notified("turn_start hangs").await;
    rpc.ok(json!({"type": "abort"})).await;
    rpc.event("agent_end").await;
    assert_eq!(server.requests().len(), 0);
    rpc.close().await;

    home.settings(json!({"extensionTimeouts": {"handler": 2000}}));
    let mut rpc = home.rpc(&[]);
    server.push(Answer::text("Yes."));
    rpc.ok(prompt("go")).await;
    let start = rpc.event("extension_wait_start").await;
    assert_eq!(start["event"], "turn_start");
    let start = rpc.event("extension_wait_start").await;
    assert_eq!(start["event"], "agent_end");
    // Reports of waiting are not ordered with the events of the run.
    rpc.event("agent_settled").await;
    let lines = rpc.lines();
    let ends = lines
        .iter()
        .filter(|line| line["type"] == "extension_wait_end");
    assert!(ends.clone().count() > 0 && ends.clone().all(|end| end["outcome"] == "abandoned"));
    // Neither handler is called again before it has settled.
    server.push(Answer::text("Again."));
    assert_eq!(rpc.answer_to("again").await, "Again.");
    let lines = rpc.lines();
    let blamed = lines
        .iter()
        .filter(|line| line["type"] == "extension_error");
    let blamed: Vec<&Value> = blamed.map(|error| &error["event"]).collect();
    assert_eq!(blamed, ["turn_start", "agent_end"]);
}

/// The decision was made twice: a session that looked idle to all listeners sent another request.
#[tokio::test]
async fn a_retry_is_decided_before_agent_end_is_emitted() {
    let (server, _home, mut rpc) = with_extension(
        r#"export default (pi) => pi.on("agent_end", async (_, ctx) => { await ctx.ui.input("and?"); });"#,
    )
    .await;
    let retry = |enabled: bool| json!({"type": "set_auto_retry", "enabled": enabled});
    server.push(Answer::error(529, "Overloaded").with_header("x-should-retry", "false"));
    rpc.ok(retry(false)).await;
    rpc.ok(prompt("fail")).await;
    let question = rpc.ui("input").await;
    rpc.ok(retry(true)).await;
    rpc.reply(&question, json!({"value": "so"})).await;
    rpc.event("agent_settled").await;
    let asked_again = |line: &Value| line["type"] == "auto_retry_start";
    assert!(!rpc.lines().iter().any(asked_again));
}

/// A compaction waited for its handler, which waited for the compaction; a new session waited for a
/// handler that wanted another one.
#[tokio::test]
async fn a_handler_does_not_wait_for_a_session_that_waits_for_it() {
    let (server, home, _) = with_extension("export default () => {};").await;
    home.settings(json!({"compaction": {"keepRecentTokens": 1}}));
    home.extension(
        "ext.ts",
        include_str!("fixtures/order/a-handler-does-not-wait-for-a-session-that-waits-for-it.ts"),
    );
    server.repeat(Answer::text("Fine."));
    let mut rpc = home.rpc(&[]);
    for text in ["one", "two"] {
        rpc.run(text).await;
    }
    rpc.ok(prompt("/save")).await;
    let compacted = rpc.ok(json!({"type": "compact"})).await;
    assert!(compacted["summary"].is_string(), "{compacted}");
    rpc.ok(json!({"type": "new_session"})).await;
    // The context of the replaced set is stale, so a new one is needed.
    rpc.ok(prompt("/save replace")).await;
    let done = rpc.ok(json!({"type": "new_session"})).await;
    assert_eq!(done["cancelled"], false);
    for name in ["session_before_switch", "session_shutdown"] {
        let output = rpc.ui("notify").await["message"].clone();
        let output = output.as_str().unwrap();
        let begins =
            format!("{name}: ctx.newSession() cannot be waited for in a handler of {name}");
        assert!(output.starts_with(&begins), "{output}");
    }
    assert_eq!(home.sessions().len(), 1, "only what was said in is kept");
    rpc.run("three").await;
}

/// The bridge carries only the new part of an answer and assembles the rest.
#[tokio::test]
async fn each_handler_sees_the_unchanged_answer_so_far() {
    let (server, home, mut rpc) = with_extension(include_str!(
        "fixtures/order/each-handler-sees-the-unchanged-answer-so-far.ts"
    ))
    .await;
    let arguments = json!({"path": "a", "list": [{"of": ["many", "things"]}, "é \u{1f600}"]});
    server.push(
        Answer::thinking("Let me see, \u{1f600} said one.")
            .then_text("First I look.")
            .then_tool("look", arguments)
            .in_pieces_of(3),
    );
    server.push(Answer::text("It is \"done\", \u{1f600}.\n").in_pieces_of(1));
    rpc.ok(prompt("go")).await;
    rpc.event("agent_end").await;
    let lines = rpc.lines();
    let reported: Vec<&Value> = (lines.iter())
        .filter(|line| line["type"] == "message_update")
        .collect();
    let seen = fs::read_to_string(home.cwd().join("seen.jsonl")).unwrap();
    let seen: Vec<Value> = (seen.lines())
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert!(seen.len() > 15, "{}", seen.len());
    assert_eq!(seen.len(), reported.len());
    for (seen, reported) in seen.iter().zip(reported) {
        // Only clients get these members.
        let mut reported = without(reported, &["usage"]);
        reported["assistantMessageEvent"] =
            without(&reported["assistantMessageEvent"], &["id", "toolName"]);
        assert_eq!(*seen, reported);
    }
}

/// Plan modes send these messages when the user has chosen: 0.67.68 and pi make one request of
/// them, newer versions one for each message.
#[tokio::test]
async fn follow_ups_in_agent_end_after_an_await_are_one_request() {
    let server = ModelServer::start().await;
    server.repeat(Answer::text("Fine."));
    let home = Home::new(&server);
    home.extension(
        "ext.ts",
        r#"let round = 0;
        export default (pi) => pi.on("agent_end", async (_event, ctx) => {
          round += 1;
          if (round > 2) return;
          await new Promise((resolve) => setTimeout(resolve, 20));
          const say = (content, more) => pi.sendMessage({ customType: "x", content, display: true }, { deliverAs: "followUp", ...more });
          say(`plan ${round}`);
          if (round === 2) say("execute", { triggerTurn: true });
          ctx.ui.notify(`said ${round}`);
        });"#,
    );
    for (who, mut rpc) in [("ours", home.rpc(&[])), ("theirs", home.original_rpc(&[]))] {
        let before = server.requests().len();
        rpc.ok(prompt("hello")).await;
        rpc.notified("said 1").await;
        rpc.ok(prompt("and now")).await;
        rpc.notified("said 2").await;
        server.received(before + 3).await;
        let requests = server.requests();
        let requested = requests[before..].iter().map(|request| {
            let messages = request.body["messages"].as_array().unwrap().iter();
            let theirs = messages.filter(|message| message["role"] == "user");
            theirs.map(text_of).collect::<Vec<_>>()
        });
        let expected = [
            &["hello"][..],
            &["hello", "plan 1", "and now"],
            &["hello", "plan 1", "and now", "plan 2", "execute"],
        ];
        assert_eq!(requested.collect::<Vec<_>>(), expected, "{who}");
    }
}
