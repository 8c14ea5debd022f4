use super::*;
use crate::testing::{invocation, run};
use pi_ai::message::join_text;

struct Room {
    folder: tempfile::TempDir,
    tool: FindTool,
}

fn room(files: &[&str]) -> Room {
    let folder = tempfile::tempdir().unwrap();
    for name in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "").unwrap();
    }
    let tool = FindTool::new(folder.path().to_owned());
    Room { folder, tool }
}

impl Room {
    async fn find(&self, args: Value) -> Result<String, String> {
        let output = run(&self.tool, args).await.map_err(|error| error.0)?;
        Ok(join_text(&output.content))
    }

    async fn shows(&self, pattern: &str, expected: &str) {
        let shown = self.find(json!({"pattern": pattern})).await;
        assert_eq!(shown.as_deref(), Ok(expected), "{pattern}");
    }
}

#[tokio::test]
async fn globs_match_names_or_paths() {
    let room = room(&[
        "src/a.rs",
        "src/deep/b.rs",
        "src/Deep.RS",
        "README.md",
        ".hidden.rs",
        "-dash.rs",
    ]);
    let all = "-dash.rs\n.hidden.rs\nsrc/Deep.RS\nsrc/a.rs\nsrc/deep/b.rs";
    room.shows("*.rs", all).await;
    room.shows("**/*.rs", all).await;
    room.shows("*.RS", "src/Deep.RS").await;
    room.shows("readme*", "README.md").await;
    room.shows("-dash*", "-dash.rs").await;
    room.shows("src/*.rs", "src/Deep.RS\nsrc/a.rs").await;
    room.shows("deep/*", "src/deep/b.rs").await;
    room.shows("deep", "src/deep/").await;
    room.shows("{a,b}.rs", "src/a.rs\nsrc/deep/b.rs").await;
    room.shows("[!.-]*.rs", "src/Deep.RS\nsrc/a.rs\nsrc/deep/b.rs")
        .await;
    room.shows("*.nothing", "No files found matching pattern")
        .await;
    // The folder's name may or may not have capitals.
    let absolute = format!("{}/src/a*.rs", room.folder.path().display());
    room.shows(&absolute, "src/a.rs").await;
}

#[tokio::test]
async fn ignored_files_are_left_out() {
    let room = room(&["a.log", "sub/b.log", "sub/c.txt", "out/d.txt"]);
    let write = |name, text| std::fs::write(room.folder.path().join(name), text).unwrap();
    write(".gitignore", "*.log\nout/\n");
    write("sub/.gitignore", "!b.log\n");
    room.shows("*.{log,txt}", "sub/b.log\nsub/c.txt").await;
}

#[tokio::test]
async fn the_limit_takes_the_first_by_path() {
    let names: Vec<String> = (0..100).map(|n| format!("{}/{n}.x", n % 9)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let room = room(&names);
    let output = run(&room.tool, json!({"pattern": "*.x", "limit": 2}))
        .await
        .unwrap();
    assert_eq!(
        join_text(&output.content),
        "0/0.x\n0/18.x\n\n[2 results limit reached. Use limit=4 for more, or refine pattern]"
    );
    assert_eq!(output.details, Some(json!({"resultLimitReached": 2})));
}

#[tokio::test]
async fn wrong_arguments() {
    let room = room(&["f"]);
    let cases = [
        (json!({"pattern": "["}), "error parsing glob '['"),
        (json!({"pattern": "*", "path": "f"}), "Not a directory: /"),
        (json!({"pattern": "*", "path": "g"}), "Path not found: /"),
    ];
    for (args, start) in cases {
        let error = room.find(args).await.unwrap_err();
        assert!(error.starts_with(start), "{error}");
    }
    let call = invocation(json!({"pattern": "*"}));
    call.cancel.cancel();
    assert_eq!(room.tool.execute(call).await, Err(ToolError::aborted()));
}

#[tokio::test]
async fn links_are_shown_and_not_followed() {
    let room = room(&["real/x.txt"]);
    let link = |to: &str, name: &str| {
        std::os::unix::fs::symlink(to, room.folder.path().join(name)).unwrap();
    };
    link("real", "link.d");
    link("nowhere", "broken.d");
    link(".", "real/loop.d");
    room.shows("*.{d,txt}", "broken.d\nlink.d\nreal/loop.d\nreal/x.txt")
        .await;
    let through = room.find(json!({"pattern": "*.txt", "path": "link.d"}));
    assert_eq!(through.await.as_deref(), Ok("x.txt"));
}
