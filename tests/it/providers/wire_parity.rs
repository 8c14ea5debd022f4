//! Compares requests on the wire: the original's functions under Node and ours send the same
//! conversation to a server that records it.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::Mutex;

use crate::support::{Home, Reference, Rpc, finish, prompt};

/// A server that refuses everything and records path, headers and body by the name of the case.
struct Sink {
    url: String,
    seen: Arc<Mutex<BTreeMap<String, Value>>>,
}

impl Sink {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::<Mutex<BTreeMap<String, Value>>>::default();
        let kept = seen.clone();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let kept = kept.clone();
                tokio::spawn(async move {
                    let mut request = Vec::new();
                    let mut piece = vec![0; 65536];
                    let (head, body) = loop {
                        let count = stream.read(&mut piece).await.unwrap_or(0);
                        request.extend_from_slice(&piece[..count]);
                        let text = String::from_utf8_lossy(&request).into_owned();
                        if let Some((head, body)) = text.split_once("\r\n\r\n") {
                            let length = head.lines().find_map(|line| {
                                let line = line.to_lowercase();
                                line.strip_prefix("content-length: ")?.parse::<usize>().ok()
                            });
                            if body.len() >= length.unwrap_or(0) {
                                break (head.to_owned(), body.to_owned());
                            }
                        }
                        if count == 0 {
                            return;
                        }
                    };
                    let target = head.split(' ').nth(1).unwrap_or_default();
                    // The path is `/<case>/<path of the API>`.
                    let (case, path) = target[1..].split_once('/').unwrap_or((target, ""));
                    // Bedrock has one address for all cases, so the model's id ends with the case.
                    let case = match path.split_once("/converse-stream") {
                        Some((model, _)) => model.rsplit('.').next().unwrap_or_default(),
                        None => case,
                    };
                    let headers: BTreeMap<String, String> = head
                        .lines()
                        .skip(1)
                        .filter_map(|line| line.split_once(": "))
                        .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
                        .collect();
                    let reported = json!({
                        "path": path,
                        "headers": headers,
                        "body": serde_json::from_str::<Value>(&body).unwrap_or_default(),
                    });
                    kept.lock().await.insert(case.to_owned(), reported);
                    let answer = r#"{"error":{"code":400,"message":"no"}}"#;
                    let answer = format!(
                        "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\n\
                         x-should-retry: false\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{answer}",
                        answer.len()
                    );
                    let _ = stream.write_all(answer.as_bytes()).await;
                });
            }
        });
        Self { url, seen }
    }
}

/// Runs the cases; `ai` is pi-ai, the original's or ours.
const ASK: &str = r#"
const PIX = "iVBORw0KGgo=";
const none = { input: 1, output: 1, cacheRead: 0, cacheWrite: 0, totalTokens: 2,
  cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 } };
const claims = btoa(JSON.stringify({ "https://api.openai.com/auth": { chatgpt_account_id: "acc" } }));
const google = JSON.stringify({ token: "t", projectId: "p" });
const cases = {
  google25: ["google", "gemini-2.5-pro", { reasoning: "high" }, "k", "/v1beta"],
  google25off: ["google", "gemini-2.5-flash", {}, "k", "/v1beta"],
  google3: ["google", "gemini-3-pro-preview", { reasoning: "medium" }, "k", "/v1beta"],
  google3off: ["google", "gemini-3-flash-preview", { temperature: 0.5 }, "k", "/v1beta"],
  cli: ["google-gemini-cli", "gemini-2.5-pro", { reasoning: "high" }, google, ""],
  gravity: ["google-antigravity", "claude-sonnet-4-5-thinking", { reasoning: "low" }, google, ""],
  mistral: ["mistral", "devstral-medium-latest", {}, "k", ""],
  magistral: ["mistral", "magistral-medium-latest", { reasoning: "low" }, "k", ""],
  small: ["mistral", "mistral-small-latest", { reasoning: "low" }, "k", ""],
  codex: ["openai-codex", "gpt-5.4", { reasoning: "minimal" }, "h." + claims + ".s", ""],
  codexoff: ["openai-codex", "gpt-5.1", {}, "h." + claims + ".s", ""],
  azure: ["azure-openai-responses", "gpt-5.2", { reasoning: "xhigh" }, "k", ""],
  azureoff: ["azure-openai-responses", "gpt-5.2", {}, "k", ""],
  openai: ["openai", "gpt-5.4", { reasoning: "high" }, "k", ""],
  claude: ["anthropic", "claude-opus-4-6", { reasoning: "high" }, "k", ""],
  bedrock: ["amazon-bedrock", "us.anthropic.claude-sonnet-4-20250514-v1:0", { reasoning: "low" }, "k", ""],
  groq: ["groq", "openai/gpt-oss-120b", { reasoning: "high" }, "k", ""],
  toldclaude: ["anthropic", "claude-sonnet-4-5", {}, "k", "", "stream"],
  toldclaude500: ["anthropic", "claude-opus-4-6", { maxTokens: 500 }, "k", "", "stream"],
  toldthinks: ["anthropic", "claude-sonnet-4-5", { thinkingEnabled: true, thinkingBudgetTokens: 2000, temperature: 0.5 }, "k", "", "stream"],
  tolddoes: ["anthropic", "claude-opus-4-6", { thinkingEnabled: true, effort: "low" }, "k", "", "stream"],
  toldnot: ["anthropic", "claude-sonnet-4-5", { thinkingEnabled: false }, "k", "", "stream"],
  toldother: ["anthropic", "claude-sonnet-4-5", { reasoning: "low", reasoningEffort: "low", maxTokens: 900 }, "k", "", "stream"],
  simpleother: ["anthropic", "claude-sonnet-4-5", { reasoningEffort: "low" }, "k", ""],
  toldopenai: ["openai", "gpt-5.4", { reasoningEffort: "high" }, "k", "", "stream"],
  toldgroq: ["groq", "openai/gpt-oss-120b", {}, "k", "", "stream"],
  toldgoogle: ["google", "gemini-2.5-pro", {}, "k", "/v1beta", "stream"],
  toldcli: ["google-gemini-cli", "gemini-2.5-pro", {}, google, "", "stream"],
  toldmistral: ["mistral", "devstral-medium-latest", {}, "k", "", "stream"],
};
const context = (m) => ({
  systemPrompt: "Be brief.",
  messages: [
    { role: "user", content: [{ type: "text", text: "look" }, { type: "image", data: PIX, mimeType: "image/png" }], timestamp: 1 },
    { role: "assistant", api: m.api, provider: m.provider, model: m.id, usage: none, stopReason: "toolUse", timestamp: 2,
      content: [{ type: "thinking", thinking: "hm", thinkingSignature: m.api.includes("responses")
          ? JSON.stringify({ type: "reasoning", id: "rs_1", summary: [] }) : "c2ln" },
        { type: "text", text: "I look." }, { type: "toolCall", id: "abcdefghi", name: "read", arguments: { path: "a" } },
        { type: "toolCall", id: "bcdefghij", name: "read", arguments: { path: "b" } }] },
    { role: "toolResult", toolCallId: "abcdefghi", toolName: "read", isError: false, timestamp: 3,
      content: [{ type: "text", text: "A" }, { type: "image", data: PIX, mimeType: "image/png" }] },
    { role: "toolResult", toolCallId: "bcdefghij", toolName: "read", content: [{ type: "text", text: "none" }], isError: true, timestamp: 4 },
    { role: "assistant", api: "other-api", provider: "other", model: "other", usage: none, stopReason: "stop", timestamp: 5,
      content: [{ type: "thinking", thinking: "foreign", thinkingSignature: "zz" }, { type: "text", text: "Done." }] },
    { role: "user", content: "and now?", timestamp: 6 },
  ],
  tools: [{ name: "read", description: "reads", parameters: { type: "object",
    properties: { path: { type: "string", description: "p" } }, required: ["path"] } }],
});
CASES
async function ask(ai, url) {
  const { existsSync, readFileSync, writeFileSync } = await import("node:fs");
  const known = existsSync(KNOWN) ? JSON.parse(readFileSync(KNOWN, "utf8")) : {};
  process.env.AWS_ENDPOINT_URL = url + "/bedrock";
  await fetch(url + "/cases", { method: "POST", body: JSON.stringify(Object.keys(cases)) });
  await Promise.all(Object.entries(cases).map(async ([name, [provider, id, given, apiKey, path, call = "streamSimple", more]]) => {
    // The original, which runs first, records its model data, because the catalogues differ.
    known[provider + id] ??= ai.getModel(provider, id);
    const model = { ...known[provider + id], baseUrl: url + "/" + name + path };
    if (provider === "amazon-bedrock") model.id += "." + name;
    const options = { apiKey, sessionId: "sess-1", maxRetryDelayMs: 1, ...given };
    if (given.azureBaseUrl) options.azureBaseUrl = given.azureBaseUrl.replace("URL", url);
    const { emptyText, ...changes } = more ?? {};
    const asked = { ...context(model), ...changes };
    if (emptyText) asked.messages[2].content[0].text = "";
    const stream = ai[call](model, asked, options);
    // The original retries some requests; the first one is recorded by then, also on a busy
    // machine.
    await Promise.race([stream.result(), new Promise((resolve) => setTimeout(resolve, 60_000).unref?.())]);
  }));
  writeFileSync(KNOWN, JSON.stringify(known));
}
"#;

/// Removes values that name the client or differ between runs.
fn compared(mut reported: Value) -> Value {
    let headers = reported["headers"].as_object_mut().unwrap();
    const OF_CLIENTS: [&str; 15] = [
        "host",
        "user-agent",
        "accept",
        "accept-encoding",
        "accept-language",
        "connection",
        "content-length",
        "cookie",
        "sec-fetch-mode",
        "transfer-encoding",
        "x-goog-api-client",
        "anthropic-dangerous-direct-browser-access",
        "anthropic-version",
        "content-type",
        "client-metadata",
    ];
    headers
        .retain(|name, _| !OF_CLIENTS.contains(&name.as_str()) && !name.starts_with("x-stainless"));
    // Signatures differ, but both requests must have one.
    if let Some(signed) = headers.get_mut("authorization")
        && let Some(rest) = signed.as_str().unwrap_or_default().strip_prefix("AWS4")
    {
        let parts: Vec<&str> = rest.split('/').collect();
        // Compare the key and the region.
        *signed = json!([parts.first(), parts.get(2)]);
    }
    headers.retain(|name, _| !name.starts_with("x-amz-") && !name.starts_with("amz-sdk-"));
    if let Some(id) = reported["body"].get_mut("requestId") {
        *id = json!(id.as_str().unwrap().split('-').next());
    }
    reported
}

fn list_of<'a>(value: &'a mut Value, place: &str) -> impl Iterator<Item = &'a mut Value> {
    let list = value.pointer_mut(place).and_then(Value::as_array_mut);
    list.into_iter().flatten()
}

/// Removes what the original sends although servers refuse it: blank texts of Bedrock, duplicate
/// item ids of the Responses API, and images of Gemini between the results of a turn.
fn mended(mut reported: Value) -> Value {
    let Some(body) = reported.get_mut("body") else {
        return reported;
    };
    for message in list_of(body, "/messages") {
        for block in list_of(message, "/content") {
            let content = block.pointer_mut("/toolResult/content");
            if let Some(content) = content.and_then(Value::as_array_mut) {
                content.retain(|block| block["text"] != "");
            }
        }
    }
    let mut ids = HashSet::new();
    for item in list_of(body, "/input") {
        let id = item["id"].as_str().map(str::to_owned);
        if id.is_some_and(|id| !ids.insert(id)) {
            item.as_object_mut().unwrap().shift_remove("id");
        }
    }
    for place in ["/contents", "/request/contents"] {
        let contents = body.pointer_mut(place).and_then(Value::as_array_mut);
        let Some(contents) = contents else {
            continue;
        };
        let is_picture = |content: &Value| content["parts"][0]["text"] == "Tool result image:";
        while let Some(at) = contents.windows(2).position(|pair| {
            is_picture(&pair[0]) && pair[1]["parts"][0].get("functionResponse").is_some()
        }) {
            let later = contents.remove(at + 1)["parts"].take();
            let parts = contents[at - 1]["parts"].as_array_mut().unwrap();
            parts.extend(later.as_array().unwrap().iter().cloned());
        }
    }
    reported
}

#[tokio::test]
async fn requests_equal_the_originals() {
    let (original, ours) = (Sink::start().await, Sink::start().await);
    let home = Home::bare();
    home.settings(json!({}));
    let package = Reference::install().program();
    let package = package.ancestors().nth(2).unwrap().with_file_name("pi-ai");
    let known = format!("{:?}", home.cwd().join("known-models.json"));
    let ask = ASK.replace("CASES", include_str!("fixtures/option_cases.js"));
    let ask = ask.replace("KNOWN", &known);
    let script = home.file(
        "ask.mjs",
        &format!(
            "import * as ai from {:?};\n{ask}\nawait ask(ai, {:?});\nprocess.exit(0);\n",
            package.join("dist/index.js"),
            original.url
        ),
    );
    let profiles = "[other]\naws_access_key_id = OTHER\naws_secret_access_key = secret\n";
    let profiles = home.file("profiles", profiles);
    let keys = [
        ("AWS_SHARED_CREDENTIALS_FILE", profiles.to_str().unwrap()),
        ("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
        ("AWS_BEDROCK_FORCE_HTTP1", "1"),
    ];
    let mut command = home.command("node");
    command.arg(script).envs(keys);
    finish(command, "").await.ok();
    home.extension(
        "ask.ts",
        &format!(
            "import * as ai from \"@mariozechner/pi-ai\";\n{ask}\n\
             export default (pi) => pi.registerCommand(\"ask\", {{ handler: () => ask(ai, {:?}) }});",
            ours.url
        ),
    );
    let mut command = home.command(env!("CARGO_BIN_EXE_pi"));
    let endpoint = format!("{}/bedrock", ours.url);
    command.args(["--mode", "rpc"]).envs(keys);
    command.env("AWS_ENDPOINT_URL", endpoint);
    let mut rpc = Rpc::start(command);
    rpc.ok(prompt("/ask")).await;
    let (mut original, mut ours) = (original.seen.lock().await, ours.seen.lock().await);
    for seen in [&mut original, &mut ours] {
        let cases = seen.remove("/cases").unwrap();
        let cases: HashSet<_> = cases["body"].as_array().unwrap().iter().collect();
        let arrived: Vec<_> = seen.keys().map(|name| json!(name)).collect();
        assert_eq!(arrived.iter().collect::<HashSet<_>>(), cases);
    }
    let mut differences = String::new();
    for (case, reported) in original.iter() {
        let (reported, ours) = (
            mended(compared(reported.clone())),
            compared(ours[case].clone()),
        );
        if ours != reported {
            differences += &format!("{case}:\n  ours  {ours}\n  their {reported}\n");
        }
    }
    assert_eq!(differences, "");
}
