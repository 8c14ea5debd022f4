use std::sync::Arc;

use parking_lot::Mutex;

use super::*;
use crate::testing::{invocation, run};

fn tool() -> BashTool {
    BashTool::new("/".into(), ShellOptions::default())
}

async fn bash(args: Value) -> Result<ToolOutput, String> {
    run(&tool(), args).await.map_err(|error| error.0)
}

#[tokio::test]
async fn output_or_its_absence() {
    let cases = [
        ("echo hi", "hi\n"),
        ("true", "(no output)"),
        ("echo out; echo err >&2", "out\nerr\n"),
        (r"printf '\033[31mred\r\n\377'", "\u{1b}[31mred\r\n\u{fffd}"),
        ("cat; pwd", "/\n"),
    ];
    for (command, expected) in cases {
        let result = bash(json!({"command": command, "timeout": null})).await;
        assert_eq!(result, Ok(ToolOutput::text(expected)));
    }
}

#[tokio::test]
async fn failures_keep_the_output() {
    let cases = [
        ("exit 3", "(no output)\n\nCommand exited with code 3"),
        ("echo a; exit 1", "a\n\n\nCommand exited with code 1"),
        (
            "echo a; sleep 60",
            "a\n\n\nCommand timed out after 2 seconds",
        ),
        ("sleep 60", "Command timed out after 2 seconds"),
        // The original reports success here.
        (
            "kill -KILL $$",
            "(no output)\n\nCommand exited with code 137",
        ),
    ];
    for (command, expected) in cases {
        // A busy machine may need more than a second until the shell prints.
        let timeout = if expected.contains("timed out") {
            2
        } else {
            60
        };
        let result = bash(json!({"command": command, "timeout": timeout})).await;
        assert_eq!(result, Err(expected.to_owned()));
    }
}

#[tokio::test]
async fn long_output_is_cut_and_saved() {
    let output = bash(json!({"command": "seq 1 3000"})).await.unwrap();
    let details = output.details.unwrap();
    let path = details["fullOutputPath"].as_str().unwrap();
    let whole = std::fs::read_to_string(path).unwrap();
    std::fs::remove_file(path).unwrap();
    let expected: String = (1..=3000).map(|line| format!("{line}\n")).collect();
    assert_eq!(whole, expected);
    let text = pi_ai::message::join_text(&output.content);
    assert!(text.starts_with("1002\n1003\n"), "{text}");
    assert!(text.ends_with(&format!(
        "3000\n\n\n[Showing lines 1002-3001 of 3001. Full output: {path}]"
    )));
    assert_eq!(details["truncation"]["totalLines"], 3001);
}

#[tokio::test]
async fn an_abort_stops_the_command_and_keeps_output() {
    let updates = Arc::new(Mutex::new(Vec::new()));
    let mut call = invocation(json!({"command": "echo started; sleep 60"}));
    let cancel = call.cancel.clone();
    let seen = updates.clone();
    call.updates = Arc::new(move |update: ToolOutput| {
        if !update.content.is_empty() {
            cancel.cancel();
        }
        seen.lock().push(update);
    });
    assert_eq!(
        tool().execute(call).await,
        Err(ToolError::new("started\n\n\nCommand aborted"))
    );
    let expected = [
        ToolOutput::default(),
        ToolOutput {
            content: vec![ContentBlock::text("started\n")],
            details: Some(json!({})),
            ..ToolOutput::default()
        },
    ];
    assert_eq!(*updates.lock(), expected);
}

#[tokio::test]
async fn the_last_update_is_not_withheld() {
    let last = Arc::new(Mutex::new(String::new()));
    let mut call = invocation(json!({"command": "echo a; echo b; echo c; sleep 60"}));
    let (cancel, seen) = (call.cancel.clone(), last.clone());
    call.updates = Arc::new(move |update: ToolOutput| {
        let text = pi_ai::message::join_text(&update.content);
        if text.ends_with("c\n") {
            cancel.cancel();
        }
        *seen.lock() = text;
    });
    assert!(tool().execute(call).await.is_err());
    assert_eq!(*last.lock(), "a\nb\nc\n");
}

#[tokio::test]
async fn a_missing_folder_is_reported() {
    let tool = BashTool::new("/no/such/place".into(), ShellOptions::default());
    assert_eq!(
        run(&tool, json!({"command": "true"})).await,
        Err(ToolError::new(
            "Working directory does not exist: /no/such/place\nCannot execute bash commands."
        ))
    );
}

fn unattended() -> BashTool {
    BashTool::new("/".into(), crate::ToolOptions::default().shell_of_model())
}

/// Makes a repository with an uncommitted change and a `core.editor` that never returns.
fn repository() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let made = std::process::Command::new("sh")
        .args([
            "-c",
            "git init -q . && git config user.email a@b.c && git config user.name a && \
             git config core.editor 'sleep 60;:' && \
             git config sequence.editor 'sleep 60;:' && git commit -q --allow-empty -m one && \
             git commit -q --allow-empty -m two && echo x > file && git add file",
        ])
        .current_dir(folder.path())
        .status()
        .unwrap();
    assert!(made.success());
    folder
}

#[tokio::test]
async fn git_does_not_wait_for_an_editor() {
    let folder = repository();
    for command in ["git commit", "git rebase --autostash -i HEAD~1"] {
        let command = format!("cd {} && {command}", folder.path().display());
        let error = run(&unattended(), json!({ "command": command, "timeout": 30 })).await;
        let ToolError(text) = error.unwrap_err();
        assert!(text.contains("no user can edit the "), "{text}");
        assert!(text.contains("Command exited with code 1"), "{text}");
    }
    let kept = "GIT_EDITOR=true git commit --amend 2>&1 && \
                GIT_EDITOR=true git rebase -i HEAD~1 && git log -1 --format=%s";
    let command = format!("cd {} && {kept}", folder.path().display());
    let output = run(&unattended(), json!({ "command": command }))
        .await
        .unwrap();
    let text = pi_ai::message::join_text(&output.content);
    assert!(text.ends_with("\ntwo\n"), "{text}");
}

#[tokio::test]
async fn programs_see_noninteractive_variables() {
    let command = "echo $GIT_TERMINAL_PROMPT $PAGER $SSH_ASKPASS_REQUIRE";
    let output = run(&unattended(), json!({ "command": command })).await;
    assert_eq!(output, Ok(ToolOutput::text("0 cat never\n")));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_command_that_waited_for_a_person_is_reported() {
    let folder = repository();
    let editor = folder.path().join("editor");
    std::fs::write(&editor, "echo opened; sleep 60\n").unwrap();
    let command = format!(
        "cd {} && GIT_EDITOR='sh {}' git commit",
        folder.path().display(),
        editor.display()
    );
    let mut call = invocation(json!({ "command": command }));
    let cancel = call.cancel.clone();
    call.updates = Arc::new(move |update: ToolOutput| {
        if pi_ai::message::join_text(&update.content).contains("opened") {
            cancel.cancel();
        }
    });
    let ToolError(text) = unattended().execute(call).await.unwrap_err();
    let (_, notice) = text.split_once("Command aborted\n").expect(&text);
    assert!(
        notice.starts_with("It was waiting for a person: sh "),
        "{text}"
    );
    assert!(notice.contains("/COMMIT_EDITMSG (process "), "{text}");
}
