use super::*;
use crate::testing::{invocation, run};
use pi_ai::message::join_text;

struct Workspace {
    folder: tempfile::TempDir,
    tool: GrepTool,
}

fn workspace(files: &[(&str, &[u8])]) -> Workspace {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    let tool = GrepTool::new(folder.path().to_owned());
    Workspace { folder, tool }
}

impl Workspace {
    async fn grep(&self, args: Value) -> Result<String, String> {
        let output = run(&self.tool, args).await.map_err(|error| error.0)?;
        Ok(join_text(&output.content))
    }

    async fn shows(&self, args: Value, expected: &str) {
        assert_eq!(self.grep(args).await.as_deref(), Ok(expected));
    }

    async fn fails(&self, args: Value, start: &str) {
        let error = self.grep(args).await.unwrap_err();
        assert!(error.starts_with(start), "{error}");
    }
}

#[tokio::test]
async fn lines_come_by_path_with_their_numbers() {
    let workspace = workspace(&[
        ("b.txt", b"one\r\ntwo\r\nONE"),
        ("a/z.txt", b"x\none\n"),
        ("a b.txt", b"one"),
        (".hidden", b"one\n"),
    ]);
    workspace
        .shows(
            json!({"pattern": "one"}),
            ".hidden:1: one\na/z.txt:2: one\na b.txt:1: one\nb.txt:1: one",
        )
        .await;
    workspace
        .shows(json!({"pattern": "^ONE$", "path": "b.txt"}), "b.txt:3: ONE")
        .await;
    workspace
        .shows(
            json!({"pattern": "one$", "path": "a", "ignoreCase": true}),
            "z.txt:2: one",
        )
        .await;
    workspace
        .shows(json!({"pattern": "three"}), "No matches found")
        .await;
}

#[tokio::test]
async fn text_that_looks_like_an_expression() {
    let workspace = workspace(&[("f", b"a.b\naxb\n--help\n")]);
    workspace
        .shows(json!({"pattern": "a.b"}), "f:1: a.b\nf:2: axb")
        .await;
    workspace
        .shows(json!({"pattern": "a.b", "literal": true}), "f:1: a.b")
        .await;
    // The original treats the pattern as an option of ripgrep.
    workspace
        .shows(json!({"pattern": "--help"}), "f:3: --help")
        .await;
    workspace
        .fails(json!({"pattern": "("}), "regex parse error:")
        .await;
    workspace
        .fails(
            json!({"pattern": "a\nb"}),
            "the literal \"\\n\" is not allowed",
        )
        .await;
    workspace
        .fails(
            json!({"pattern": "a", "glob": "["}),
            "error parsing glob '['",
        )
        .await;
    let missing = workspace.folder.path().join("missing");
    let missing = format!("Path not found: {}", missing.display());
    workspace
        .fails(json!({"pattern": "a", "path": "missing"}), &missing)
        .await;
}

#[tokio::test]
async fn each_match_has_context_lines() {
    let workspace = workspace(&[("f", b"1\n2 x\n3\n4 x\n5\n6\n")]);
    workspace
        .shows(
            json!({"pattern": "x", "context": 1}),
            "f-1- 1\nf:2: 2 x\nf-3- 3\nf-3- 3\nf:4: 4 x\nf-5- 5",
        )
        .await;
    workspace.shows(
        json!({"pattern": "x", "context": 2, "limit": 1}),
        "f-1- 1\nf:2: 2 x\nf-3- 3\nf-4- 4 x\n\n[1 matches limit reached. Use limit=2 for more, or \
         refine pattern]",
    )
    .await;
    workspace
        .shows(
            json!({"pattern": "6", "context": 1}),
            "f-5- 5\nf:6: 6\nf-7- ",
        )
        .await;
    workspace
        .shows(json!({"pattern": "1", "context": -1}), "f:1: 1")
        .await;
}

#[tokio::test]
async fn the_limit_takes_the_first_by_path() {
    let mut files = Vec::new();
    let names: Vec<String> = (0..60).map(|n| format!("{}/{n}", n % 7)).collect();
    for name in &names {
        files.push((name.as_str(), b"x\nx\n".as_slice()));
    }
    let workspace = workspace(&files);
    let output = run(&workspace.tool, json!({"pattern": "x", "limit": 3}))
        .await
        .unwrap();
    assert_eq!(
        join_text(&output.content),
        "0/0:1: x\n0/0:2: x\n0/14:1: x\n\n[3 matches limit reached. Use limit=6 for more, or \
         refine pattern]"
    );
    assert_eq!(output.details, Some(json!({"matchLimitReached": 3})));
    let all = workspace.grep(json!({"pattern": "x", "limit": 200})).await;
    assert_eq!(all.unwrap().lines().count(), 120);
}

#[tokio::test]
async fn ignored_files_are_left_out() {
    let workspace = workspace(&[
        (".ignore", b"*.log\n"),
        ("a.log", b"x"),
        ("sub/.ignore", b"!keep.log\n"),
        ("sub/keep.log", b"x"),
        ("sub/b.txt", b"x"),
        (".gitignore", b"sub\n"),
    ]);
    // A .gitignore has no effect outside a repository.
    workspace
        .shows(
            json!({"pattern": "^x"}),
            "sub/b.txt:1: x\nsub/keep.log:1: x",
        )
        .await;
    std::fs::create_dir(workspace.folder.path().join(".git")).unwrap();
    workspace
        .shows(json!({"pattern": "^x"}), "No matches found")
        .await;
    workspace
        .shows(json!({"pattern": "^x", "glob": "*.log"}), "a.log:1: x")
        .await;
}

#[tokio::test]
async fn text_of_all_kinds() {
    let utf16: Vec<u8> = [0xff, 0xfe]
        .into_iter()
        .chain("x wide\n".encode_utf16().flat_map(u16::to_le_bytes))
        .collect();
    let workspace = workspace(&[
        ("binary", b"x\n\0x\n"),
        ("bom", b"\xef\xbb\xbfx bom\n"),
        ("latin", b"x caf\xe9\n"),
        ("wide", &utf16),
    ]);
    workspace
        .shows(
            json!({"pattern": "^x"}),
            "bom:1: x bom\nlatin:1: x caf\u{fffd}\nwide:1: x wide",
        )
        .await;
    workspace
        .shows(
            json!({"pattern": "x", "path": "binary"}),
            "binary:1: x\nbinary:2: \0x",
        )
        .await;
}

#[tokio::test]
async fn long_lines_are_cut() {
    let long = "é".repeat(70_000) + "x";
    let workspace = workspace(&[("f", long.as_bytes())]);
    let output = run(&workspace.tool, json!({"pattern": "x"})).await.unwrap();
    assert_eq!(
        join_text(&output.content),
        format!(
            "f:1: {}... [truncated]\n\n[Some lines truncated to 500 chars. Use read tool to see \
             full lines]",
            "é".repeat(500)
        )
    );
    assert_eq!(output.details, Some(json!({"linesTruncated": true})));
}

#[tokio::test]
async fn much_is_cut_at_the_byte_limit() {
    let line = "x".repeat(400) + "\n";
    let workspace = workspace(&[("f", line.repeat(200).as_bytes())]);
    let output = run(&workspace.tool, json!({"pattern": "x", "limit": 150}))
        .await
        .unwrap();
    assert!(join_text(&output.content).ends_with(
        "x\n\n[150 matches limit reached. Use limit=300 for more, or refine pattern. 50.0KB limit \
         reached]"
    ));
    let details = output.details.unwrap();
    assert_eq!(details["truncation"]["totalLines"], 150);
}

#[tokio::test]
async fn a_pipe_does_not_block() {
    let workspace = workspace(&[("f", b"x")]);
    let pipe = workspace.folder.path().join("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    workspace.shows(json!({"pattern": "x"}), "f:1: x").await;
    workspace
        .fails(
            json!({"pattern": "x", "path": "pipe"}),
            &format!("{} is not a regular file", pipe.display()),
        )
        .await;
}

#[tokio::test]
async fn an_abort_ends_the_call() {
    let workspace = workspace(&[("f", b"x")]);
    let call = invocation(json!({"pattern": "x"}));
    call.cancel.cancel();
    assert_eq!(
        workspace.tool.execute(call).await,
        Err(ToolError::aborted())
    );
}

/// Tests the search itself, for which the caller does not wait after an abort. Searching a file
/// that is one large hole would take minutes.
#[test]
fn an_abort_stops_the_search_thread() {
    let workspace = workspace(&[("f", b"x")]);
    let hole = std::fs::File::create(workspace.folder.path().join("hole")).unwrap();
    hole.set_len(1 << 40)
        .or_else(|_| hole.set_len(1 << 36))
        .unwrap();
    let cancel = CancellationToken::new();
    let args = serde_json::from_value(json!({"pattern": "y", "path": "hole"})).unwrap();
    let result = std::thread::scope(|scope| {
        let search = scope.spawn(|| grep(&args, workspace.folder.path(), None, None, &cancel));
        std::thread::sleep(std::time::Duration::from_millis(50));
        cancel.cancel();
        search.join().unwrap()
    });
    assert_eq!(result, Err(ToolError::aborted()));
}

#[tokio::test]
async fn files_that_rules_deny_are_left_out_and_counted() {
    let workspace = workspace(&[
        ("a.txt", b"one"),
        (".env", b"one"),
        ("keys/a", b"one"),
        ("keys/b", b"one"),
    ]);
    let keys = workspace.folder.path().join("keys");
    let search = async |pattern: &str, limit: usize| {
        let keys = keys.clone();
        let mut call = invocation(json!({ "pattern": pattern, "limit": limit }));
        call.unreadable = Some(Arc::new(move |path: &Path| {
            path.ends_with(".env") || path.starts_with(&keys)
        }));
        join_text(&workspace.tool.execute(call).await.unwrap().content)
    };
    let notice = "2 files and folders were left out, because rules in \"permissions\" deny or ask \
                  about reading them";
    assert_eq!(
        search("one", 100).await,
        format!("a.txt:1: one\n\n[{notice}]")
    );
    let nothing = format!("No matches found\n\n[{notice}]");
    assert_eq!(search("two", 100).await, nothing);
    // A folder behind the last match was not visited.
    let first = search("one", 1).await;
    assert!(first.contains("1 file or folder was left out"), "{first}");
}
