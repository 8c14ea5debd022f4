//! Deeply nested data of extensions is stored, passed on and read again, or refused at once.

use std::fs;

use model_server::{Answer, ModelServer};
use serde_json::json;

use crate::support::Home;

const DEEP: &str = r#"
const deep = (levels) => { let data = 1; while (levels-- > 0) data = [data]; return data; };
const levels = (data) => { let levels = 0; while (Array.isArray(data)) { data = data[0]; levels++; } return levels; };
"#;

const TOOL: &str = r#"export default (pi) => pi.registerTool({
    name: "dig", label: "Dig", description: "Digs",
    parameters: { type: "object", properties: { levels: { type: "number" } } },
    execute: async (_, { levels }) => ({
        content: [{ type: "text", text: "dug " + levels }], details: deep(levels),
    }),
});"#;

/// An extension that passes on everything that it sees.
const OTHER: &str = r#"export default (pi) => {
    const note = { role: "user", content: "a note of the other", timestamp: 1 };
    pi.on("context", ({ messages }) => ({ messages: [...messages, note] }));
    pi.on("tool_result", ({ content, details }) => ({ content: [...content, { type: "text", text: "seen" }], details }));
    pi.on("message_end", ({ message }) => message.role === "toolResult" ? { message: { ...message, more: 1 } } : undefined);
};"#;

/// Accepted data could not be read when the session was opened again, and handlers of other
/// extensions failed before that.
#[tokio::test]
async fn deep_details_of_a_tool_are_kept_or_refused() {
    for place in ["thread", "process"] {
        for levels in [123, 125, 998, 999, 1000, 5000] {
            let server = ModelServer::start().await;
            let home = Home::new(&server);
            home.settings(json!({ "extensionHost": place }));
            home.extension("a.ts", &format!("{DEEP}{TOOL}"));
            home.extension("b.ts", OTHER);
            server.push(Answer::tool("dig", json!({ "levels": levels })));
            server.push(Answer::text("It is deep."));
            let finished = home.run(&["-p", "dig"], "").await;
            let reported = finished.stderr.clone();
            finished.ok();
            server.push(Answer::text("It still is."));
            let again = home.run(&["-c", "-p", "and now?"], "").await;
            assert_eq!(again.stderr, "", "{place} {levels}");

            let request = server.last_request().body.to_string();
            assert!(request.contains("a note of the other"), "{request}");
            let file = fs::read_to_string(home.session()).unwrap();
            let is_kept = file.contains(&"[".repeat(levels));
            if levels < 1000 {
                assert_eq!(reported, "", "{place} {levels}");
                assert!(request.contains(&format!("dug {levels}")), "{request}");
                assert!(request.contains("seen") && is_kept);
            } else {
                let why = "in more than 1000 levels";
                assert!(
                    reported.contains("a.ts") && reported.contains(why),
                    "{reported}"
                );
                assert!(request.contains(why) && !is_kept, "{request}");
            }
        }
    }
}

/// Entries and messages deeper than 126 levels were refused, which the original accepts.
#[tokio::test]
async fn entries_of_extensions_may_be_deep() {
    const KEEPER: &str = r#"import { writeFileSync } from "node:fs";
    export default (pi) => pi.registerCommand("keep", { handler: async (given, ctx) => {
        const said = [], data = deep(+given);
        const attempt = (name, act) => { try { act(); } catch (error) { said.push(name + ": " + error.message); } };
        attempt("entry", () => pi.appendEntry("deep", data));
        attempt("message", () => pi.sendMessage({ customType: "deep", content: "x", display: true, details: data }));
        const kept = ctx.sessionManager.getEntries().filter(({ customType }) => customType === "deep");
        said.push(kept.map((entry) => entry.type + " " + levels(entry.data ?? entry.details)).join());
        writeFileSync("said", said.join("\n"));
    } });"#;
    for place in ["thread", "process"] {
        let server = ModelServer::start().await;
        let home = Home::new(&server);
        home.settings(json!({ "extensionHost": place }));
        home.extension("keeper.ts", &format!("{DEEP}{KEEPER}"));
        server.push(Answer::text("Hello."));
        home.run(&["-p", "hello"], "").await.ok();
        let output = || fs::read_to_string(home.cwd().join("said")).unwrap();

        home.run(&["-c", "-p", "/keep 900"], "").await.ok();
        assert_eq!(output(), "custom 900,custom_message 900", "{place}");
        home.run(&["-c", "-p", "/keep 5000"], "").await.ok();
        let why = "lists and objects are within each other in more than 1000 levels";
        let expected = format!(
            "entry: pi.appendEntry: {why}\nmessage: pi.sendMessage: {why}\n\
             custom 900,custom_message 900"
        );
        assert_eq!(output(), expected, "{place}");
    }
}

/// The model did not get the result of a tool because its `details` were deep.
#[tokio::test]
async fn a_deep_result_of_an_original_session_is_read() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    server.push(Answer::tool("read", json!({ "path": "said" })));
    server.push(Answer::text("Read."));
    home.file("said", "the tool said this");
    home.run(&["-p", "read"], "").await.ok();

    let session = home.session();
    let text = fs::read_to_string(&session).unwrap();
    let (before, after) = text.split_once(r#""isError":false"#).expect("a result");
    for levels in [900, 50_000] {
        let details = format!("{}1{}", r#"{"a":"#.repeat(levels), "}".repeat(levels));
        let text = format!(r#"{before}"details":{details},"isError":false{after}"#);
        fs::write(&session, &text).unwrap();

        server.push(Answer::text("Still there."));
        let finished = home.run(&["-c", "-p", "what did it say?"], "").await;
        let request = server.last_request().body.to_string();
        if levels == 900 {
            assert_eq!(finished.stderr, "");
            assert!(request.contains("the tool said this"), "{request}");
        } else {
            let reported = finished.stderr;
            assert!(reported.contains("in more than 1000 levels"), "{reported}");
        }
        let now = fs::read_to_string(&session).unwrap();
        assert!(now.starts_with(&text), "the file is left as it was");
    }
}

/// Child sessions follow the same rules.
#[tokio::test]
async fn a_child_keeps_deep_data_or_refuses_it() {
    const BESIDE: &str = r#"import { createAgentSession, DefaultResourceLoader, getAgentDir, SessionManager } from "@mariozechner/pi-coding-agent";
    import { writeFileSync } from "node:fs";
    export default (pi) => pi.registerCommand("beside", { handler: async (given, ctx) => {
        const execute = async () => ({ content: [{ type: "text", text: "dug" }], details: deep(+given) });
        const dig = { name: "dig", label: "Dig", description: "Digs", parameters: { type: "object", properties: {} }, execute };
        const resourceLoader = new DefaultResourceLoader({ cwd: ctx.cwd, agentDir: getAgentDir(), noExtensions: true });
        await resourceLoader.reload();
        const { session } = await createAgentSession({ model: ctx.model, customTools: [dig], sessionManager: SessionManager.inMemory(ctx.cwd), resourceLoader });
        await session.prompt("dig");
        const [result] = session.messages.filter(({ role }) => role === "toolResult");
        const said = [result.content[0].text + " " + levels(result.details)];
        try {
            await session.sendCustomMessage({ customType: "deep", content: "x", display: true, details: deep(+given) });
            said.push("taken " + levels(session.messages.at(-1).details));
        } catch (error) { said.push(error.message); }
        writeFileSync("said", said.join("\n"));
        session.dispose();
    } });"#;
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension("beside.ts", &format!("{DEEP}{BESIDE}"));
    let why = "lists and objects are within each other in more than 1000 levels";
    for (levels, result, message) in [
        (900, "dug 900", "taken 900"),
        (1010, why, "taken 1010"),
        (5000, why, why),
    ] {
        server.push(Answer::tool("dig", json!({})));
        server.push(Answer::text("It is deep."));
        let beside = format!("/beside {levels}");
        home.run(&["-p", &beside], "").await.ok();
        let output = fs::read_to_string(home.cwd().join("said")).unwrap();
        let (of_tool, of_message) = output.split_once('\n').unwrap();
        assert!(of_tool.contains(result), "{output}");
        assert!(of_message.contains(message), "{output}");
    }
}
