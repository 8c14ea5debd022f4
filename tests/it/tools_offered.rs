//! Which tools the model is offered while extensions come with new ones, and what is
//! told of tools at work.

use model_server::Answer;
use serde_json::{Value, json};

use crate::support::{prompt, with_extension};

const TOOLS: &str = r#"export default (pi) => {
  const tool = (name, execute) => pi.registerTool({ name, label: name, description: name,
    parameters: { type: "object", properties: {} },
    execute: execute ?? (async () => ({ content: [] })) });
  tool("one");
  tool("two");
  tool("counts", async (_id, _params, _signal, onUpdate) => {
    for (let n = 1; n <= 5; n++) onUpdate({ content: [{ type: "text", text: `part ${n}` }] });
    return { content: [{ type: "text", text: "all" }] };
  });
  const tell = (ctx) => ctx.ui.notify("active: " + pi.getActiveTools().join(" "));
  pi.registerCommand("only", { handler: async (args, ctx) => {
    pi.setActiveTools(args.split(" "));
    tell(ctx);
  }});
  pi.registerCommand("add", { handler: async (args, ctx) => { tool(args); tell(ctx); } });
  pi.registerCommand("spin", { handler: async () => { for (;;); } });
  pi.registerCommand("which", { handler: async (_, ctx) => tell(ctx) });
};"#;

/// Every registration switched all of them on again.
#[tokio::test]
async fn tools_that_were_switched_off_stay_off_when_others_come() {
    let (_server, home, mut rpc) = with_extension(TOOLS).await;
    rpc.ok(prompt("/only read one")).await;
    rpc.notified("active: read one").await;
    rpc.ok(prompt("/add fresh")).await;
    rpc.notified("active: read one fresh").await;
    // The same name again is nothing new.
    rpc.ok(prompt("/only read one")).await;
    rpc.ok(prompt("/add fresh")).await;
    rpc.ok(prompt("/add bash")).await;
    rpc.ok(prompt("/which")).await;
    let told = rpc.lines();
    let last = told.iter().rev().find(|line| line["method"] == "notify");
    assert_eq!(last.unwrap()["message"], "active: read one");
    // A reload begins anew.
    home.extension("more.ts", "export default (pi) => {};");
    rpc.ok(json!({"type": "reload"})).await;
    rpc.ok(prompt("/which")).await;
    rpc.notified("active: read one two counts").await;
}

/// One that came together with the result was lost now and then.
#[tokio::test]
async fn updates_that_come_with_the_result_are_told_before_it() {
    let (server, _home, mut rpc) = with_extension(TOOLS).await;
    for _ in 0..10 {
        server.push(Answer::tool("counts", json!({})));
        server.push(Answer::text("Counted."));
        let events = rpc.run("count").await;
        let parts: Vec<&Value> = events
            .iter()
            .filter(|event| event["type"] == "tool_execution_update")
            .map(|event| &event["partialResult"]["content"][0]["text"])
            .collect();
        assert_eq!(parts, ["part 1", "part 2", "part 3", "part 4", "part 5"]);
    }
}

/// What finds tools for the model (`tool search`) could offer them in the next run only.
#[tokio::test]
async fn a_tool_that_is_switched_on_in_a_run_can_be_called_in_it() {
    let (server, _home, mut rpc) = with_extension(
        r#"export default (pi) => {
          const tool = (name, execute) => pi.registerTool({ name, label: name, description: name,
            parameters: { type: "object", properties: {} }, execute });
          const say = (text) => ({ content: [{ type: "text", text }] });
          tool("search", async () => {
            pi.setActiveTools(["search", "found"]);
            tool("made", async () => say("made ran"));
            return say("use found");
          });
          tool("found", async () => say("found ran"));
          pi.on("session_start", () => pi.setActiveTools(["search"]));
        };"#,
    )
    .await;
    server.push(Answer::tool("search", json!({})));
    server.push(Answer::tool("found", json!({})));
    server.push(Answer::tool("made", json!({})));
    server.push(Answer::text("Done."));
    rpc.run("go").await;
    let offered = |request: &Value| -> Vec<String> {
        let tools = request["tools"].as_array().unwrap().iter();
        tools
            .map(|tool| tool["name"].as_str().unwrap().to_owned())
            .collect()
    };
    let requests = server.requests();
    assert_eq!(offered(&requests[0].body), ["search"]);
    assert_eq!(offered(&requests[1].body), ["search", "found", "made"]);
    let said = requests[3].body["messages"].to_string();
    assert!(
        said.contains("found ran") && said.contains("made ran"),
        "{said}"
    );
}

/// The first of them was taken for one that the user had switched off.
#[tokio::test]
async fn tools_of_session_start_are_offered_in_the_next_session_too() {
    let (_server, _home, mut rpc) = with_extension(
        r#"export default (pi) => {
          pi.on("session_start", () => {
            for (const name of ["one", "two"]) {
              pi.registerTool({ name, label: name, description: name,
                parameters: { type: "object", properties: {} },
                execute: () => ({ content: [] }) });
            }
          });
          pi.registerCommand("which", { handler: (_, ctx) => ctx.ui.notify(pi.getActiveTools().join(" ")) });
        };"#,
    )
    .await;
    for _ in 0..2 {
        rpc.ok(json!({"type": "new_session"})).await;
        rpc.ok(prompt("/which")).await;
        rpc.notified("read bash edit write one two").await;
    }
}

#[tokio::test]
async fn excluded_tools_are_not_there_whosever_they_are() {
    let (server, home, rpc) = with_extension(TOOLS).await;
    rpc.close().await;
    let mut rpc = home.rpc(&["--exclude-tools", "bash,two"]);
    rpc.ok(prompt("/only bash read two one")).await;
    rpc.notified("active: read one").await;
    rpc.ok(json!({"type": "new_session"})).await;
    server.push(Answer::text("Fine."));
    rpc.run("hi").await;
    let body = server.last_request().body;
    let tools = body["tools"].as_array().unwrap().iter();
    let names: Vec<&Value> = tools.map(|tool| &tool["name"]).collect();
    assert_eq!(names, ["read", "edit", "write", "one", "counts"]);
    assert!(!body["system"].to_string().contains("- bash:"));
}

/// Some servers refuse an empty list, and some a conversation with calls that has none.
#[tokio::test]
async fn no_tools_are_an_empty_list_once_there_are_calls() {
    let (server, _home, mut rpc) = with_extension(TOOLS).await;
    rpc.ok(prompt("/only nothing")).await;
    rpc.notified("active: ").await;
    server.push(Answer::text("Hello."));
    rpc.run("hello").await;
    server.push(Answer::tool("one", json!({})));
    server.push(Answer::text("Done."));
    rpc.run("go").await;
    let requests = server.requests();
    let tools = requests.iter().map(|request| request.body.get("tools"));
    let none = json!([]);
    assert_eq!(tools.collect::<Vec<_>>(), [None, None, Some(&none)]);
}
