//! How `edit` and `write` change files while others look at them.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use model_server::Answer;
use serde_json::{Value, json};

use crate::support::idle;

fn edit(from: usize) -> Answer {
    let edits = json!([{"oldText": format!("v{from}"), "newText": format!("v{}", from + 1)}]);
    Answer::tool("edit", json!({"path": "notes.txt", "edits": edits}))
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
    // Another file in its place: nobody has read a part of one.
    assert_ne!(after.ino(), before.ino());
    assert!(home.cwd().join("notes.txt").is_symlink());
    assert_eq!(
        fs::read_to_string(home.cwd().join("also.txt")).unwrap(),
        "new\n"
    );
    let names = fs::read_dir(home.cwd()).unwrap().count();
    assert_eq!(names, 4, "nothing is left behind");
}
