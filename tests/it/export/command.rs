//! Sessions as HTML pages: the option, the command, and their errors.

use std::fs;
use std::path::Path;

use model_server::{Answer, ModelServer};
use serde_json::{Value, json};

use crate::support::{Home, Rpc};

async fn one_conversation(server: &ModelServer, home: &Home) -> Rpc {
    let mut rpc = home.rpc(&[]);
    server.push(Answer::text("It is </script> 42."));
    rpc.run("what is it?").await;
    rpc
}

fn export(path: Option<&str>) -> Value {
    match path {
        Some(path) => json!({"type": "export_html", "outputPath": path}),
        None => json!({"type": "export_html"}),
    }
}

/// The data of the page: header, metadata, entries.
fn data(page: &Path) -> Vec<Value> {
    let html = fs::read_to_string(page).unwrap();
    let (_, rest) = html.split_once(r#"id="session">"#).expect("the data");
    let (data, _) = rest.split_once("</script>").expect("its end");
    let parse = |line: &str| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
    data.trim().lines().map(parse).collect()
}

#[tokio::test]
async fn the_option_writes_a_page_of_the_whole_file() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    one_conversation(&server, &home).await.close().await;
    let session = home.session();
    let before = fs::read(&session).unwrap();
    let file = session.to_str().unwrap();

    let base = session.file_stem().unwrap().to_str().unwrap();
    let default = format!("pi-session-{base}.html");
    let output = home.run(&["--export", file], "").await.ok();
    assert_eq!(output, format!("Exported to: {default}\n"));
    let output = home.run(&["--export", file, "page.html"], "").await.ok();
    assert_eq!(output, "Exported to: page.html\n");

    let mut expected = home.entries();
    let leaf = expected.last().unwrap()["id"].clone();
    expected.insert(1, json!({ "leafId": leaf }));
    for page in [&default, "page.html"] {
        assert_eq!(data(&home.cwd().join(page)), expected);
    }
    assert_eq!(fs::read(&session).unwrap(), before);
}

#[tokio::test]
async fn the_option_reads_a_session_that_is_open() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    let rpc = one_conversation(&server, &home).await;
    let session = home.session();
    let file = session.to_str().unwrap();
    home.run(&["--export", file, "page.html"], "").await.ok();
    rpc.close().await;
    assert!(data(&home.cwd().join("page.html")).len() > 3);
}

#[tokio::test]
async fn the_option_explains_its_errors() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    one_conversation(&server, &home).await.close().await;
    let session = home.session();
    let session = session.to_str().unwrap();
    home.file("notes.txt", "just notes\n");
    home.file("empty.jsonl", "");
    let cases: [(&[&str], &str); 6] = [
        (&["gone.jsonl"], "Error: File not found: gone.jsonl\n"),
        (
            &["empty.jsonl"],
            "Error: Nothing to export yet - start a conversation first\n",
        ),
        (&["notes.txt"], "Error: notes.txt is not a session file"),
        (&[session, session], "would write over it"),
        (
            &[session, "no/folder/page.html"],
            "Error: could not write no/folder/page.html: ",
        ),
        (
            &[session, "a.html", "b.html"],
            "at most one name for the page, not \"b.html\"",
        ),
    ];
    for (arguments, expected) in cases {
        let arguments: Vec<&str> = [&["--export"], arguments].concat();
        let output = home.run(&arguments, "").await.failed(1);
        assert!(output.contains(expected), "{arguments:?}: {output}");
    }
    assert!(home.entries().len() > 2);
}

#[tokio::test]
async fn a_client_exports_what_the_session_knows() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    let mut rpc = home.rpc(&["--tools", "read", "--system-prompt", "Be </script> brief."]);
    assert_eq!(
        rpc.refused(export(None)).await,
        "Nothing to export yet - start a conversation first"
    );
    server.push(Answer::text("42."));
    rpc.run("what is it?").await;
    let base = home.session();
    let base = base.file_stem().unwrap().to_str().unwrap();
    let default = format!("pi-session-{base}.html");
    assert_eq!(rpc.ok(export(None)).await, json!({ "path": default }));
    let requested = home.cwd().join("asked.html");
    let requested = requested.to_str().unwrap();
    assert_eq!(
        rpc.ok(export(Some(requested))).await,
        json!({ "path": requested })
    );

    for page in [&default, "asked.html"] {
        let lines = data(&home.cwd().join(page));
        let prompt = lines[1]["systemPrompt"].as_str().unwrap();
        assert!(prompt.starts_with("Be </script> brief."), "{prompt}");
        let tools = lines[1]["tools"].as_array().unwrap();
        assert_eq!(tools.len(), 1, "{tools:?}");
        assert_eq!(tools[0]["name"], "read");
        assert_eq!(tools[0]["parameters"]["type"], "object");
        assert_eq!(lines[2..], home.entries()[1..]);
    }
    let refused = rpc.refused(export(Some("no/folder/x.html"))).await;
    assert!(
        refused.starts_with("could not write no/folder/x.html: "),
        "{refused}"
    );
}

#[tokio::test]
async fn a_session_in_memory_has_no_page() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    let mut rpc = home.rpc(&["--no-session"]);
    server.push(Answer::text("42."));
    rpc.run("what is it?").await;
    assert_eq!(
        rpc.refused(export(None)).await,
        "Cannot export in-memory session to HTML"
    );
}
