//! Certificates that the user trusts besides the system's, set as for Node: requests to models and
//! of extensions pass a company's proxy.

use std::path::Path;
use std::process::Command;

use model_server::ModelServer;
use serde_json::json;

use crate::support::{Home, Rpc, prompt};

const SOURCE: &str = include_str!("fixtures/certificates.ts");

fn openssl(folder: &Path, words: &str) -> String {
    let done = Command::new("openssl")
        .args(words.split(' '))
        .current_dir(folder)
        .output()
        .expect("scripts/setup installs openssl");
    assert!(done.status.success(), "{done:?}");
    String::from_utf8(done.stdout).unwrap()
}

#[tokio::test]
async fn certificates_of_the_user_are_trusted() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.settings(json!({"retry": {"enabled": false}}));
    home.extension("tls.ts", SOURCE);
    let folder = home.agent_dir().join("extensions");
    openssl(
        &folder,
        "req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -days 2 -subj /CN=ca",
    );
    openssl(
        &folder,
        "req -newkey rsa:2048 -nodes -keyout leaf.key -out leaf.csr -subj /CN=leaf",
    );
    std::fs::write(folder.join("names"), "subjectAltName=IP:127.0.0.1").unwrap();
    openssl(
        &folder,
        "x509 -req -in leaf.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out leaf.pem -days 2 -extfile names",
    );
    let extra = folder.join("ca.pem").display().to_string();
    // Files in such a folder are found by the hash of their subject.
    let store = folder.join("store");
    std::fs::create_dir(&store).unwrap();
    let hash = openssl(&folder, "x509 -in ca.pem -noout -hash");
    std::fs::copy(
        folder.join("ca.pem"),
        store.join(format!("{}.0", hash.trim())),
    )
    .unwrap();
    let store = store.display().to_string();
    let missing = folder.join("nowhere").display().to_string();
    for (name, value, fetched) in [
        (
            "NODE_EXTRA_CA_CERTS",
            &*missing,
            "fetch failed UNABLE_TO_VERIFY_LEAF_SIGNATURE",
        ),
        ("NODE_EXTRA_CA_CERTS", &extra, "fetched"),
        ("SSL_CERT_FILE", &extra, "fetched"),
        ("SSL_CERT_DIR", &store, "fetched"),
        ("NODE_TLS_REJECT_UNAUTHORIZED", "0", "fetched"),
    ] {
        let mut command = home.command(env!("CARGO_BIN_EXE_pi"));
        command
            .env(name, value)
            .args(["--mode", "rpc", "--model", "tls/m"]);
        let mut rpc = Rpc::start(command);
        rpc.ok(prompt("/get")).await;
        rpc.notified(fetched).await;
        let events = rpc.run("hello").await;
        let reported = serde_json::to_string(&events).unwrap();
        assert_eq!(
            reported.contains("Trusted."),
            fetched == "fetched",
            "{reported}"
        );
        rpc.close_stdin();
        rpc.end().await;
    }
}
