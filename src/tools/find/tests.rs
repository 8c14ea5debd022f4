use super::*;
use crate::testing::{invocation, run};
use pi_ai::message::join_text;

struct Workspace {
    folder: tempfile::TempDir,
    tool: FindTool,
}

fn workspace(files: &[&str]) -> Workspace {
    let folder = tempfile::tempdir().unwrap();
    for name in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "").unwrap();
    }
    let tool = FindTool::new(folder.path().to_owned());
    Workspace { folder, tool }
}

impl Workspace {
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
    let workspace = workspace(&[
        "src/a.rs",
        "src/deep/b.rs",
        "src/Deep.RS",
        "README.md",
        ".hidden.rs",
        "-dash.rs",
    ]);
    let all = "-dash.rs\n.hidden.rs\nsrc/Deep.RS\nsrc/a.rs\nsrc/deep/b.rs";
    workspace.shows("*.rs", all).await;
    workspace.shows("**/*.rs", all).await;
    workspace.shows("*.RS", "src/Deep.RS").await;
    workspace.shows("readme*", "README.md").await;
    workspace.shows("-dash*", "-dash.rs").await;
    workspace.shows("src/*.rs", "src/Deep.RS\nsrc/a.rs").await;
    workspace.shows("deep/*", "src/deep/b.rs").await;
    workspace.shows("deep", "src/deep/").await;
    workspace.shows("{a,b}.rs", "src/a.rs\nsrc/deep/b.rs").await;
    workspace
        .shows("[!.-]*.rs", "src/Deep.RS\nsrc/a.rs\nsrc/deep/b.rs")
        .await;
    workspace
        .shows("*.nothing", "No files found matching pattern")
        .await;
    // The folder's name may or may not have capitals.
    let absolute = format!("{}/src/a*.rs", workspace.folder.path().display());
    workspace.shows(&absolute, "src/a.rs").await;
}

#[tokio::test]
async fn ignored_files_are_left_out() {
    let workspace = workspace(&["a.log", "sub/b.log", "sub/c.txt", "out/d.txt"]);
    let write = |name, text| std::fs::write(workspace.folder.path().join(name), text).unwrap();
    write(".gitignore", "*.log\nout/\n");
    write("sub/.gitignore", "!b.log\n");
    workspace.shows("*.{log,txt}", "sub/b.log\nsub/c.txt").await;
}

#[tokio::test]
async fn the_limit_takes_the_first_by_path() {
    let names: Vec<String> = (0..100).map(|n| format!("{}/{n}.x", n % 9)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let workspace = workspace(&names);
    let output = run(&workspace.tool, json!({"pattern": "*.x", "limit": 2}))
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
    let workspace = workspace(&["f"]);
    let cases = [
        (json!({"pattern": "["}), "error parsing glob '['"),
        (json!({"pattern": "*", "path": "f"}), "Not a directory: /"),
        (json!({"pattern": "*", "path": "g"}), "Path not found: /"),
    ];
    for (args, start) in cases {
        let error = workspace.find(args).await.unwrap_err();
        assert!(error.starts_with(start), "{error}");
    }
    let call = invocation(json!({"pattern": "*"}));
    call.cancel.cancel();
    assert_eq!(
        workspace.tool.execute(call).await,
        Err(ToolError::aborted())
    );
}

#[tokio::test]
async fn links_are_shown_and_not_followed() {
    let workspace = workspace(&["real/x.txt"]);
    let link = |to: &str, name: &str| {
        std::os::unix::fs::symlink(to, workspace.folder.path().join(name)).unwrap();
    };
    link("real", "link.d");
    link("nowhere", "broken.d");
    link(".", "real/loop.d");
    workspace
        .shows("*.{d,txt}", "broken.d\nlink.d\nreal/loop.d\nreal/x.txt")
        .await;
    let through = workspace.find(json!({"pattern": "*.txt", "path": "link.d"}));
    assert_eq!(through.await.as_deref(), Ok("x.txt"));
}
