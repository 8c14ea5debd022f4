//! `auth.json` while several processes write it and are killed.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use model_server::ModelServer;
use serde_json::{Value, json};

use crate::support::{Home, prompt};

/// Stores keys one after the other, and says of each that it is stored.
const SOURCE: &str = r#"export default (pi) => {
  pi.registerCommand("store", { handler: async (name, ctx) => {
    const { authStorage } = ctx.modelRegistry;
    for (let n = 0; n < 200; n++) {
      authStorage.set(`${name}-${n}`, { type: "api_key", key: "k" });
      ctx.ui.notify(`${name}-${n}`);
      await new Promise((resolve) => setTimeout(resolve));
    }
  } });
};"#;

#[tokio::test]
async fn killed_writers_leave_a_whole_auth_file() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension("store.ts", SOURCE);
    let path = home.agent_dir().join("auth.json");
    let mut stored = vec!["kept".to_owned()];
    fs::write(
        &path,
        json!({ "kept": { "type": "api_key", "key": "k" } }).to_string(),
    )
    .unwrap();
    for round in 0..6 {
        let mut writers = Vec::new();
        for writer in ["a", "b"] {
            let mut rpc = home.rpc(&[]);
            let name = format!("{writer}{round}");
            rpc.begin("s", prompt(&format!("/store {name}"))).await;
            rpc.notified(&format!("{name}-{}", round * 2)).await;
            writers.push(rpc);
        }
        for rpc in writers {
            let lines = rpc.kill().await;
            let reported = lines.iter().filter(|line| line["method"] == "notify");
            stored.extend(reported.filter_map(|line| Some(line["message"].as_str()?.to_owned())));
        }
        let content: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        for name in &stored {
            assert!(
                content.get(name).is_some(),
                "{name} is lost in round {round}"
            );
        }
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
    }
    assert!(stored.len() > 30, "{}", stored.len());
}
