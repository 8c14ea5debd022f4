//! The statistics about extensions that a client gets.

use model_server::Answer;
use serde_json::{Value, json};

use crate::support::{prompt, with_extension};

#[tokio::test]
async fn stats_count_calls_time_failures_and_memory() {
    let source = r#"export default (pi) => {
        const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
        pi.on("before_agent_start", async () => { await pause(100); });
        pi.on("before_agent_start", () => { throw new Error("not today"); });
        pi.on("turn_start", async () => { await pause(20); });
        pi.on("agent_end", () => { throw new Error("nor then"); });
        pi.registerTool({ name: "nap", label: "n", description: "d",
            parameters: { type: "object", properties: {} },
            execute: async () => { await pause(30); return { content: [] }; } });
        pi.registerCommand("ask", { handler: async (args, ctx) => {
            await ctx.ui.confirm("Sure?", "", { timeout: 400 });
        }});
    };"#;
    let (server, home, mut rpc) = with_extension(source).await;
    server.push(Answer::tool("nap", json!({})));
    server.push(Answer::text("Rested."));
    rpc.run("go").await;
    rpc.ok(prompt("/ask")).await;
    // The handlers are done when a handler that is awaited is called.
    server.push(Answer::text("Again."));
    rpc.run("again").await;

    let stats = rpc.ok(json!({"type": "get_extension_stats"})).await;
    let [extension] = &stats["extensions"].as_array().unwrap()[..] else {
        panic!("{stats}")
    };
    assert!(extension["path"].as_str().unwrap().ends_with("/ext.ts"));
    assert_eq!(
        (&extension["loaded"], &extension["loads"]),
        (&json!(true), &json!(1))
    );
    assert!(extension["loadMs"].as_f64() > Some(0.0), "{stats}");
    let of = |event: &str, member: &str| extension["events"][event][member].clone();
    assert_eq!(of("before_agent_start", "calls"), 4);
    assert_eq!(of("before_agent_start", "failures"), 2);
    assert!(
        of("before_agent_start", "slowestMs").as_f64() >= Some(99.0),
        "{stats}"
    );
    assert_eq!(of("tool:nap", "calls"), 1);
    assert!(of("tool:nap", "totalMs").as_f64() >= Some(29.0), "{stats}");
    assert_eq!(of("turn_start", "failures"), 0);
    assert!(of("turn_start", "calls").as_u64() >= Some(2), "{stats}");
    assert!(
        of("turn_start", "totalMs").as_f64() >= Some(38.0),
        "{stats}"
    );
    assert_eq!(of("agent_end", "failures"), of("agent_end", "calls"));
    let requested = of("command", "totalMs").as_f64().unwrap();
    assert!(
        requested < 400.0,
        "the user's time is not the extension's: {stats}"
    );
    let calls = extension["calls"].as_u64().unwrap();
    let sum: u64 = extension["events"]
        .as_object()
        .unwrap()
        .values()
        .filter_map(|event| event["calls"].as_u64())
        .sum();
    assert_eq!(calls, sum);
    let heap = |member: &str| stats["heap"][member].as_u64().unwrap();
    assert!(0 < heap("used") && heap("used") <= heap("total"), "{stats}");
    assert_eq!(heap("limit") >> 20, 512);

    // Counting continues after a reload, and the statistics list broken extensions.
    home.extension("broken.ts", "export default 1;");
    rpc.ok(json!({"type": "reload"})).await;
    let stats = rpc.ok(json!({"type": "get_extension_stats"})).await;
    let named = |name: &str| -> Value {
        let all = stats["extensions"].as_array().unwrap();
        let found = all
            .iter()
            .find(|extension| extension["path"].as_str().unwrap().ends_with(name));
        found.unwrap_or_else(|| panic!("{name}: {stats}")).clone()
    };
    assert_eq!(named("ext.ts")["loads"], 2);
    assert!(named("ext.ts")["calls"].as_u64() >= Some(calls));
    assert_eq!(named("broken.ts")["loaded"], false);
    assert!(named("broken.ts")["error"].is_string());
}

/// Aborted calls were not counted at all.
#[tokio::test]
async fn calls_that_are_aborted_are_counted() {
    let source = r#"export default (pi) => {
        pi.registerCommand("hang", { handler: () => new Promise(() => {}) });
    };"#;
    let (_server, _home, mut rpc) = with_extension(source).await;
    rpc.send(&prompt("/hang").to_string()).await;
    rpc.send(&json!({"type": "abort"}).to_string()).await;
    rpc.ok(json!({"type": "wait_for_idle"})).await;
    let stats = rpc.ok(json!({"type": "get_extension_stats"})).await;
    let command = &stats["extensions"][0]["events"]["command"];
    assert_eq!(
        (&command["calls"], &command["failures"]),
        (&json!(1), &json!(1)),
        "{stats}"
    );
}

/// The memory of one extension could not be told from that of the others.
#[tokio::test]
async fn the_heap_is_measured_by_extension_on_request() {
    let source = r#"
        const kept = Array.from({ length: 50_000 }, (_, at) => ({ at }));
        export default (pi) => { pi.on("input", () => { kept; }); };"#;
    let (_server, home, mut rpc) = with_extension(source).await;
    home.extension(
        "small.ts",
        "export default (pi) => { pi.on('input', () => {}); };",
    );
    home.extension("broken.ts", "export default 1;");
    rpc.ok(json!({"type": "reload"})).await;
    let ask = json!({"type": "get_extension_stats", "measureHeap": true});
    let stats = rpc.ok(ask).await;
    let of = |name: &str| {
        let all = stats["extensions"].as_array().unwrap();
        let mut found = all.iter().filter(|extension| extension["name"] == name);
        found.next().unwrap_or_else(|| panic!("{stats}"))["heapBytes"].as_u64()
    };
    assert!(of("ext") > Some(1_500_000), "{stats}");
    assert!(of("small") < Some(100_000), "{stats}");
    assert!(of("broken") < Some(100_000), "{stats}");
    assert!(stats["heap"]["shared"].is_u64(), "{stats}");
    let stats = rpc.ok(json!({"type": "get_extension_stats"})).await;
    assert!(stats["extensions"][0].get("heapBytes").is_none(), "{stats}");
}
