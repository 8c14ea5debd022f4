//! How `edit` and `write` change files that other programs read.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use model_server::{Answer, ModelServer};
use serde_json::{Value, json};

use crate::support::{Home, Rpc, idle};

/// Measures milliseconds from the last handler before a call to the first one after it.
const EXTENSION: &str = r#"
export default function (pi) {
  let begun;
  pi.on("tool_call", () => { begun = performance.now(); });
  pi.on("tool_result", (_event, ctx) => ctx.ui.notify(String(performance.now() - begun)));
}
"#;

fn edit(from: usize) -> Answer {
    let edits = json!([{"oldText": format!("v{from}"), "newText": format!("v{}", from + 1)}]);
    Answer::tool("edit", json!({"path": "notes.txt", "edits": edits}))
}

async fn times(rpc: &mut Rpc, server: &ModelServer, from: usize) -> Vec<f64> {
    let mut times = Vec::new();
    for number in from..from + 5 {
        server.push(edit(number));
        server.push(Answer::text("Done."));
        rpc.run("go").await;
        let lines = rpc.lines();
        let mut notices = lines.iter().filter(|line| line["method"] == "notify");
        let last = notices.next_back().unwrap()["message"].as_str().unwrap();
        times.push(last.parse().unwrap());
    }
    times
}

/// The minimum: any single time may be long on a busy machine.
fn least(times: &[f64]) -> f64 {
    times.iter().copied().fold(f64::INFINITY, f64::min)
}

#[tokio::test]
async fn rpc_clients_can_read_the_file_before_an_edit() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension("ext.ts", EXTENSION);
    home.file("notes.txt", "v0\n");
    let mut rpc = home.rpc(&[]);
    let waiting = times(&mut rpc, &server, 0).await;
    assert!(least(&waiting) >= 5.0, "{waiting:?}");
    let hello = json!({"type": "hello", "capabilities": ["immediateFileChanges"]});
    let hello = rpc.ok(hello).await;
    assert_eq!(hello["enabled"], json!(["immediateFileChanges"]));
    times(&mut rpc, &server, 5).await;
    assert_eq!(
        fs::read_to_string(home.cwd().join("notes.txt")).unwrap(),
        "v10\n"
    );
    rpc.close().await;
}

#[tokio::test]
async fn a_changed_file_keeps_its_permissions_and_links() {
    let (server, home, mut rpc) = idle().await;
    let file = home.file("script.sh", "v0\n");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o750)).unwrap();
    symlink("script.sh", home.cwd().join("notes.txt")).unwrap();
    let shared = home.file("shared.txt", "old\n");
    fs::hard_link(&shared, home.cwd().join("also.txt")).unwrap();
    let before = fs::metadata(&file).unwrap();
    server.push(edit(0));
    server.push(Answer::tool(
        "write",
        json!({"path": "shared.txt", "content": "new\n"}),
    ));
    server.push(Answer::text("Done."));
    let events = rpc.run("go").await;
    let failed = |event: &&Value| event["isError"] == true;
    assert_eq!(events.iter().find(failed), None);
    assert_eq!(fs::read_to_string(&file).unwrap(), "v1\n");
    let after = fs::metadata(&file).unwrap();
    assert_eq!(
        (after.mode(), after.uid(), after.gid()),
        (before.mode(), before.uid(), before.gid())
    );
    // A new file replaces the old one, so that no reader sees a part.
    assert_ne!(after.ino(), before.ino());
    assert!(home.cwd().join("notes.txt").is_symlink());
    assert_eq!(
        fs::read_to_string(home.cwd().join("also.txt")).unwrap(),
        "new\n"
    );
    let names = fs::read_dir(home.cwd()).unwrap().count();
    assert_eq!(names, 4, "nothing is left behind");
}
