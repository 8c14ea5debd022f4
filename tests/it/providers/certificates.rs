//! Certificates that the user trusts besides the system's, set as for Node: requests to models and
//! of extensions pass a company's proxy.

use std::path::Path;
use std::process::Command;

use model_server::ModelServer;
use serde_json::json;

use crate::support::{Home, Rpc, prompt};

const SOURCE: &str = r#"
import { once } from "node:events";
import { readFileSync } from "node:fs";
import https from "node:https";

export default async (pi) => {
    const file = (name) => readFileSync(`${import.meta.dirname}/${name}`);
    const server = https.createServer({ key: file("leaf.key"), cert: file("leaf.pem") }, (request, response) => {
        request.resume();
        if (request.method === "GET") return response.end("fetched");
        response.setHeader("content-type", "text/event-stream");
        const choices = [{ index: 0, delta: { content: "Trusted." }, finish_reason: "stop" }];
        response.end(`data: ${JSON.stringify({ choices })}\n\ndata: [DONE]\n\n`);
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const url = `https://127.0.0.1:${server.address().port}/v1`;
    const cost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
    const model = { id: "m", name: "M", reasoning: false, input: ["text"], cost, contextWindow: 9999, maxTokens: 99 };
    pi.registerProvider("tls", { baseUrl: url, apiKey: "k", api: "openai-completions", models: [model] });
    pi.registerCommand("get", { handler: async (_, ctx) => ctx.ui.notify(await fetch(url).then(
        (response) => response.text(),
        ({ message, cause }) => `${message} ${cause.code}`,
    )) });
};
"#;

fn openssl(folder: &Path, words: &str) {
    let done = Command::new("openssl")
        .args(words.split(' '))
        .current_dir(folder)
        .output()
        .expect("scripts/setup installs openssl");
    assert!(done.status.success(), "{done:?}");
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
    let missing = folder.join("nowhere").display().to_string();
    for (name, value, fetched) in [
        (
            "NODE_EXTRA_CA_CERTS",
            &*missing,
            "fetch failed UNABLE_TO_VERIFY_LEAF_SIGNATURE",
        ),
        ("NODE_EXTRA_CA_CERTS", &extra, "fetched"),
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
        let told = serde_json::to_string(&events).unwrap();
        assert_eq!(told.contains("Trusted."), fetched == "fetched", "{told}");
        rpc.close_stdin();
        rpc.end().await;
    }
}
