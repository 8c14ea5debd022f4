use std::borrow::Cow;
use std::fs;

use serde_json::json;

use super::*;

const HEADER: &str = r#"{"type":"session","version":3,"id":"s","timestamp":"T","cwd":"/w"}"#;

/// A session file in a folder of its own.
fn stored(lines: &[&str]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("session.jsonl");
    fs::write(&path, lines.join("\n") + "\n").unwrap();
    (folder, path)
}

fn snapshot(lines: &[&str]) -> ReadOnlySession {
    let (_folder, path) = stored(lines);
    ReadOnlySession::read(&path).unwrap().0.unwrap()
}

#[test]
fn entries_go_into_the_page_as_they_are_stored() {
    let entries = [
        r#"{"type":"message","id":"a","parentId":null,"timestamp":"T","message":{"role":"user","content":"1.0 \u00e9 é \ud83d"}}"#,
        r#"{ "type":"mood", "id":"b", "parentId":"a", "n":1e2}"#,
    ];
    let snapshot = snapshot(&[HEADER, entries[0], entries[1]]);
    let context = PageContext {
        system_prompt: Some("Be brief.".into()),
        tools: vec![ToolDescription {
            name: "read".into(),
            description: "reads".into(),
            parameters: json!({"type": "object"}),
        }],
        colors: None,
    };
    let about = r#"{"leafId":"b","systemPrompt":"Be brief.","tools":[{"name":"read","description":"reads","parameters":{"type":"object"}}]}"#;
    assert_eq!(
        page_data::lines(&snapshot, &context),
        [HEADER, about, entries[0], entries[1]]
    );
}

#[test]
fn a_closed_session_has_only_its_leaf_as_context() {
    let lines = [HEADER];
    let snapshot = snapshot(&lines);
    assert_eq!(
        page_data::lines(&snapshot, &PageContext::default()),
        [HEADER, r#"{"leafId":null}"#]
    );
}

#[test]
fn data_cannot_end_its_element_or_line() {
    let entry = "{\"type\":\"custom\",\r\"id\":\"a\",\"parentId\":null,\"customType\":\"x\",\
                 \"data\":\"</script><!-- <script> \\\\<\\r\"}";
    let snapshot = snapshot(&[HEADER, entry]);
    let lines = page_data::lines(&snapshot, &PageContext::default());
    assert!(lines.iter().all(|line| !line.contains(['<', '\r', '\n'])));
    let read = |line: &str| serde_json::from_str::<Value>(line).unwrap();
    assert_eq!(read(&lines[2]), read(entry));
}

#[test]
fn the_page_has_one_data_script_and_one_program() {
    let lines = [Cow::Borrowed("{}")];
    let mut html = Vec::new();
    Page::new(&lines, None).unwrap().write(&mut html).unwrap();
    let html = String::from_utf8(html).unwrap();
    // The browser hashes the same text that the build hashed.
    let (rest, script) = html.rsplit_once("<script>").unwrap();
    assert!(script.contains("highlight"), "the packages are in it");
    assert_eq!(html.matches("</script").count(), 2);
    assert_eq!(html.matches("</style").count(), 1);
    assert!(html.contains("\n{}\n</script>"));
    assert!(html.contains("script-src 'sha256-"));
    // The page has nothing that a browser would fetch.
    for outside in ["src=\"", "<link", "@import", "url("] {
        assert!(!rest.contains(outside), "{outside}");
    }
}

#[test]
fn a_page_is_named_after_the_file() {
    let cases = [
        ("/a/2026_x.jsonl", "pi-session-2026_x.html"),
        ("x.txt", "pi-session-x.txt.html"),
        ("/", "pi-session-.html"),
    ];
    for (stored, page) in cases {
        assert_eq!(default_name(Path::new(stored)), Path::new(page));
    }
}

#[test]
fn no_session_is_overwritten() {
    let (folder, path) = stored(&[HEADER]);
    let other = folder.path().join("other.jsonl");
    fs::copy(&path, &other).unwrap();
    // Python writes blanks after colons.
    let spaced = folder.path().join("spaced.jsonl");
    fs::write(&spaced, HEADER.replace(':', ": ")).unwrap();
    for target in [&path, &other, &spaced] {
        let before = fs::read_to_string(target).unwrap();
        let refused = export_file(&path, Some(target), None).unwrap_err();
        assert!(matches!(refused, ExportError::OverSession(_)), "{refused}");
        assert_eq!(fs::read_to_string(target).unwrap(), before);
    }
    // An older page is overwritten.
    let page = folder.path().join("page.html");
    fs::write(&page, "old").unwrap();
    export_file(&path, Some(&page), None).unwrap();
    assert!(
        fs::read_to_string(&page)
            .unwrap()
            .starts_with("<!doctype html>")
    );
}

#[test]
fn an_old_or_damaged_file_is_read_and_not_changed() {
    let old = r#"{"type":"session","id":"s","timestamp":"T","cwd":"/w"}"#;
    let message = r#"{"type":"message","timestamp":"T","message":{"role":"user","content":"hi","timestamp":0}}"#;
    let (folder, path) = stored(&[old, message, "{broken"]);
    let text = fs::read_to_string(&path).unwrap() + r#"{"type":"message","time"#;
    fs::write(&path, &text).unwrap();
    let page = folder.path().join("page.html");
    let (_, warnings) = export_file(&path, Some(&page), None).unwrap();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].to_string().contains("1 line(s) cannot be read"));
    assert!(
        fs::read_to_string(&page)
            .unwrap()
            .contains(r#""content":"hi""#)
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
}
