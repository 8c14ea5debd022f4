//! `--mode json` beside the original: equal lines, equal stderr, equal exit codes.

use model_server::{Answer, ModelServer};
use serde_json::{Value, json};

use crate::support::{Finished, Home, without};

/// Plays a run with a tool, a second prompt that fails once and is retried, and a third prompt that
/// gets no answer. An extension does things that must not appear in the lines.
async fn play(original: bool) -> (Finished, String) {
    let server = ModelServer::start().await;
    server.push(Answer::thinking("Look.").then_tool("bash", json!({"command": "echo hi"})));
    server.push(Answer::text("It says hi."));
    server.push(Answer::error(529, "overloaded"));
    server.push(Answer::text("Again."));
    let home = Home::new(&server);
    let extension = home.extension(
        "noise.ts",
        r#"export default (pi) => {
            pi.on("agent_start", (_event, ctx) => {
                console.log("printed");
                ctx.ui.setStatus("noise", "on");
                if (!ctx.hasUI) throw new Error("on purpose");
            });
        };"#,
    );
    let arguments = ["--mode", "json", "first", "second", "third"];
    let finished = match original {
        true => home.run_original(&arguments).await,
        false => home.run(&arguments, "").await,
    };
    (finished, extension.display().to_string())
}

/// Reduces a line to what can be compared: its members, without values that differ between runs.
fn shape(line: &Value) -> Value {
    let mut line = without(line, &["timestamp", "id", "cwd", "messages"]);
    let of_message = [
        "timestamp",
        "usage",
        "responseId",
        "diagnostics",
        "errorMessage",
    ];
    if line["type"] == "message_update" {
        // The original's message may be ahead of its event, and has members that vanish later.
        line = without(&line, &["message", "usage"]);
        let members = ["partial", "toolCall", "id", "toolName"];
        line["assistantMessageEvent"] = without(&line["assistantMessageEvent"], &members);
    }
    // Remove members that only later versions have.
    match line["type"].as_str() {
        Some("agent_end") => line = without(&line, &["willRetry"]),
        Some("tool_execution_end") => line = without(&line, &["durationMs"]),
        _ => {}
    }
    if line.get("message").is_some() {
        line["message"] = without(&line["message"], &of_message);
    }
    if let Some(results) = line.get_mut("toolResults").and_then(Value::as_array_mut) {
        for result in results {
            *result = without(result, &["timestamp"]);
        }
    }
    for member in ["errorMessage", "finalError"] {
        if line.get(member).is_some() {
            line[member] = json!("…");
        }
    }
    line
}

#[tokio::test]
async fn every_line_equals_the_original_s() {
    let ((ours, path), (theirs, their_path)) = tokio::join!(play(false), play(true));
    // The model's last error is an event, not an exit code.
    assert_eq!(theirs.status.code(), Some(0), "{}", theirs.stderr);
    assert_eq!(ours.status.code(), Some(0), "{}", ours.stderr);
    // Count the reports per extension: the wording of errors differs.
    let heard = |finished: &Finished, path: &str| {
        let error = format!("Extension error ({path}): ");
        let stderr = &finished.stderr;
        assert!(stderr.contains("on purpose"), "{stderr}");
        [&error, "printed\n"].map(|text| stderr.matches(text).count())
    };
    assert_eq!(heard(&ours, &path), heard(&theirs, &their_path));
    let shapes = |stdout: &str| -> Vec<Value> {
        let lines = stdout.lines();
        lines
            .map(|line| shape(&serde_json::from_str(line).unwrap()))
            // The number of updates depends on how the output of a command arrives.
            .filter(|line| line["type"] != "tool_execution_update")
            .collect()
    };
    let (ours, theirs) = (shapes(&ours.stdout), shapes(&theirs.stdout));
    for (number, (our, their)) in ours.iter().zip(&theirs).enumerate() {
        assert_eq!(our, their, "line {number}");
    }
    assert_eq!(ours.len(), theirs.len());
}
