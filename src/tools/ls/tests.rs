use super::*;
use crate::testing::{invocation, run};
use pi_ai::message::join_text;

struct Workspace {
    folder: tempfile::TempDir,
    tool: LsTool,
}

fn workspace(files: &[&str]) -> Workspace {
    let folder = tempfile::tempdir().unwrap();
    for name in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "").unwrap();
    }
    let tool = LsTool::new(folder.path().to_owned());
    Workspace { folder, tool }
}

impl Workspace {
    async fn ls(&self, args: Value) -> Result<String, String> {
        let output = run(&self.tool, args).await.map_err(|error| error.0)?;
        Ok(join_text(&output.content))
    }
}

#[tokio::test]
async fn names_come_as_people_expect_them() {
    let workspace = workspace(&["src/x", "README", "a b", "Zebra", ".git/x", "-x", "readme"]);
    std::os::unix::fs::symlink("src", workspace.folder.path().join("link")).unwrap();
    std::os::unix::fs::symlink("none", workspace.folder.path().join("broken")).unwrap();
    assert_eq!(
        workspace.ls(json!({})).await.as_deref(),
        Ok("-x\n.git/\na b\nlink/\nREADME\nreadme\nsrc/\nZebra")
    );
    assert_eq!(
        workspace.ls(json!({"path": "src"})).await.as_deref(),
        Ok("x")
    );
    assert_eq!(
        workspace
            .ls(json!({"path": "", "limit": 2}))
            .await
            .as_deref(),
        Ok("-x\n.git/\n\n[2 entries limit reached. Use limit=4 for more]")
    );
}

#[tokio::test]
async fn nothing_and_too_much() {
    let workspace = workspace(&["empty/x"]);
    std::fs::remove_file(workspace.folder.path().join("empty/x")).unwrap();
    let empty = workspace.ls(json!({"path": "empty"})).await;
    assert_eq!(empty.as_deref(), Ok("(empty directory)"));
    for number in 0..400 {
        let name = format!("empty/{number:03}-{}", "x".repeat(200));
        std::fs::write(workspace.folder.path().join(name), "").unwrap();
    }
    let output = run(&workspace.tool, json!({"path": "empty"}))
        .await
        .unwrap();
    let text = join_text(&output.content);
    assert!(text.ends_with("x\n\n[50.0KB limit reached]"), "{text}");
    assert_eq!(output.details.unwrap()["truncation"]["totalLines"], 400);
}

#[tokio::test]
async fn wrong_arguments() {
    let workspace = workspace(&["f"]);
    let error = workspace.ls(json!({"path": "f"})).await.unwrap_err();
    assert!(error.starts_with("Not a directory: /"), "{error}");
    let error = workspace.ls(json!({"path": "g"})).await.unwrap_err();
    assert!(error.starts_with("Path not found: /"), "{error}");
    let call = invocation(json!({}));
    call.cancel.cancel();
    assert_eq!(
        workspace.tool.execute(call).await,
        Err(ToolError::aborted())
    );
}
