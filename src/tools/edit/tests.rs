use super::*;
use crate::testing::{invocation, run};

struct Workspace {
    folder: tempfile::TempDir,
    tool: EditTool,
}

fn setup(content: impl AsRef<[u8]>) -> Workspace {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("f"), content).unwrap();
    let tool = EditTool::new(folder.path().to_owned());
    Workspace { folder, tool }
}

impl Workspace {
    async fn edit(&self, edits: Value) -> Result<ToolOutput, ToolError> {
        run(&self.tool, json!({"path": "f", "edits": edits})).await
    }

    fn content(&self) -> Vec<u8> {
        std::fs::read(self.folder.path().join("f")).unwrap()
    }
}

#[tokio::test]
async fn the_answer_has_a_diff() {
    let workspace = setup("one\ntwo\nthree\n");
    let edits = json!([
        {"oldText": "three", "newText": "3\n4"},
        {"oldText": "one\n", "newText": ""},
    ]);
    assert_eq!(
        workspace.edit(edits).await,
        Ok(ToolOutput {
            content: vec![ContentBlock::text("Successfully replaced 2 block(s) in f.")],
            details: Some(json!({
                "diff": "-1 one\n 2 two\n-3 three\n+2 3\n+3 4",
                "patch": "--- f\n+++ f\n@@ -1,3 +1,3 @@\n-one\n two\n-three\n+3\n+4\n",
                "firstChangedLine": 1,
            })),
            ..ToolOutput::default()
        })
    );
    assert_eq!(workspace.content(), b"two\n3\n4\n");
}

#[tokio::test]
async fn bom_and_line_endings_stay() {
    let workspace = setup("\u{feff}one\r\ntwo\r\n");
    let edits = json!([{"oldText": "one\ntwo", "newText": "1\n2\n3"}]);
    workspace.edit(edits).await.unwrap();
    assert_eq!(workspace.content(), "\u{feff}1\r\n2\r\n3\r\n".as_bytes());
}

#[tokio::test]
async fn one_edit_beside_the_path_is_taken() {
    let workspace = setup("a b\n");
    let args = json!({"path": "f", "oldText": "a", "newText": "x", "edits": [
        {"oldText": "b", "newText": "y"},
    ]});
    run(&workspace.tool, args).await.unwrap();
    assert_eq!(workspace.content(), b"x y\n");
}

#[tokio::test]
async fn a_failed_edit_changes_nothing() {
    let latin1 = b"caf\xe9 a\n";
    let workspace = setup(latin1);
    let cases = [
        (
            json!({"path": "f", "edits": [{"oldText": "a", "newText": "b"}]}),
            "f is not UTF-8 text (first bad byte at offset 3), editing would damage it. Use bash, \
             for example sed or iconv.",
        ),
        (
            json!({"path": "f", "edits": []}),
            "Edit tool input is invalid. edits must contain at least one replacement.",
        ),
        (
            json!({"path": "none", "edits": [{"oldText": "a", "newText": "b"}]}),
            "File not found: none",
        ),
        (
            json!({"path": ".", "edits": [{"oldText": "a", "newText": "b"}]}),
            "EISDIR: illegal operation on a directory, read",
        ),
    ];
    for (args, expected) in cases {
        assert_eq!(
            run(&workspace.tool, args).await,
            Err(ToolError::new(expected))
        );
    }
    assert_eq!(workspace.content(), latin1);
}

#[tokio::test]
async fn parallel_edits_of_one_file_all_count() {
    let names: Vec<String> = (0..40).map(|number| format!("<{number}>")).collect();
    let workspace = setup(names.join("\n"));
    let edits = names
        .iter()
        .map(|name| workspace.edit(json!([{"oldText": name, "newText": name.replace('<', "[")}])));
    for result in futures::future::join_all(edits).await {
        result.unwrap();
    }
    let expected = names.join("\n").replace('<', "[");
    assert_eq!(workspace.content(), expected.as_bytes());
}

#[tokio::test]
async fn an_abort_leaves_the_file_alone() {
    let workspace = setup("a\n");
    let args = json!({"path": "f", "edits": [{"oldText": "a", "newText": "b"}]});
    let call = invocation(args);
    call.cancel.cancel();
    assert_eq!(
        workspace.tool.execute(call).await,
        Err(ToolError::aborted())
    );
    assert_eq!(workspace.content(), b"a\n");
}
