use std::collections::VecDeque;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;

/// A server that returns given responses and records the requests.
struct Server {
    url: String,
    seen: Arc<Mutex<Vec<String>>>,
}

async fn server(answers: Vec<Value>) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let seen = Arc::<Mutex<Vec<String>>>::default();
    let (kept, mut answers) = (seen.clone(), VecDeque::from(answers));
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = Vec::new();
            let mut piece = [0; 4096];
            loop {
                let count = stream.read(&mut piece).await.unwrap_or(0);
                request.extend_from_slice(&piece[..count]);
                let text = String::from_utf8_lossy(&request).into_owned();
                let Some((head, body)) = text.split_once("\r\n\r\n") else {
                    assert_ne!(count, 0, "{text}");
                    continue;
                };
                let length = head
                    .lines()
                    .find_map(|line| {
                        line.to_lowercase()
                            .strip_prefix("content-length: ")?
                            .parse()
                            .ok()
                    })
                    .unwrap_or(0usize);
                if body.len() >= length {
                    kept.lock().push(text);
                    break;
                }
            }
            let body = answers.pop_front().unwrap_or(json!({})).to_string();
            let answer = format!(
                "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            );
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    Server { url, seen }
}

/// A user who does what the address says.
#[derive(Default)]
struct User {
    opened: Mutex<Vec<String>>,
    pastes: Option<fn(&str) -> String>,
}

#[async_trait]
impl LoginDialog for User {
    async fn open(&self, url: &str, _instructions: Option<&str>) {
        self.opened.lock().push(url.to_owned());
    }

    async fn prompt(&self, _: &str, _: Option<&str>, _: bool) -> Option<String> {
        match self.pastes {
            Some(_) => self.paste().await,
            None => Some(String::new()),
        }
    }

    async fn progress(&self, _message: &str) {}

    async fn select(&self, _: &str, _: &[LoginOption]) -> Option<String> {
        None
    }

    async fn paste(&self) -> Option<String> {
        let url = self.opened.lock().last().cloned().unwrap();
        match self.pastes {
            Some(paste) => Some(paste(&url)),
            None => std::future::pending().await,
        }
    }
}

fn query(url: &str, name: &str) -> String {
    let url = reqwest::Url::parse(url).unwrap();
    let found = url.query_pairs().find(|(key, _)| key == name);
    found.unwrap().1.into_owned()
}

fn expired() -> OAuthCredentials {
    let value = json!({"access": "old", "refresh": "r1", "expires": 1, "projectId": "p"});
    value.as_object().unwrap().clone()
}

#[tokio::test]
async fn claude_is_signed_in_to_by_a_browser_that_comes_back() {
    let tokens = json!({"access_token": "a", "refresh_token": "r", "expires_in": 3600});
    let server = server(vec![tokens]).await;
    // The port is free now, and no other process is expected to take it.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let redirect = format!(
        "http://localhost:{}/callback",
        port.local_addr().unwrap().port()
    );
    drop(port);
    let provider = anthropic::Anthropic {
        token: format!("{}/token", server.url),
        redirect: redirect.clone(),
        ..Default::default()
    };
    let user = Arc::new(User::default());
    let dialog = user.clone();
    let login = tokio::spawn(async move { provider.login(dialog, CancellationToken::new()).await });
    let url = loop {
        if let Some(url) = user.opened.lock().last() {
            break url.clone();
        }
        tokio::task::yield_now().await;
    };
    let state = query(&url, "state");
    assert_eq!(query(&url, "redirect_uri"), redirect);
    // A request with a wrong state comes first, then the browser's.
    for (state, text) in [("wrong", "another sign-in"), (&state, "You are signed in")] {
        let address = redirect.replace("localhost", "127.0.0.1");
        let page = reqwest::get(format!("{address}?code=c1&state={state}")).await;
        let page = page.unwrap().text().await.unwrap();
        assert!(page.contains(text), "{page}");
    }
    let found = login.await.unwrap().unwrap();
    assert_eq!(
        (&found["access"], &found["refresh"]),
        (&json!("a"), &json!("r"))
    );
    let left = found["expires"].as_i64().unwrap() - crate::message::now();
    assert!((54 * 60_000..=55 * 60_000).contains(&left), "{left}");
    let seen = server.seen.lock().join("");
    assert!(
        seen.contains("\"code\":\"c1\"") && seen.contains(&state),
        "{seen}"
    );
}

#[tokio::test]
async fn a_pasted_code_must_have_the_state_of_the_sign_in() {
    let redirect = "http://localhost:1/callback".to_owned();
    let provider = anthropic::Anthropic {
        redirect,
        ..Default::default()
    };
    let user = User {
        pastes: Some(|_| "code#another".into()),
        ..User::default()
    };
    let error = provider
        .login(Arc::new(user), CancellationToken::new())
        .await;
    assert_eq!(error.unwrap_err().to_string(), "OAuth state mismatch");
    for (text, code, state) in [
        ("http://x/?code=a&state=b", Some("a"), Some("b")),
        ("a#b", Some("a"), Some("b")),
        ("code=a&state=b", Some("a"), Some("b")),
        (" a ", Some("a"), None),
        ("", None, None),
    ] {
        let (found, state_found) = code_flow::parse_pasted(text);
        assert_eq!(
            (found.as_deref(), state_found.as_deref()),
            (code, state),
            "{text}"
        );
    }
}

#[tokio::test]
async fn every_sign_in_is_renewed_in_its_own_way() {
    use base64::Engine;
    let claims = json!({"https://api.openai.com/auth": {"chatgpt_account_id": "acc"}}).to_string();
    let claims = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(claims);
    let jwt = format!("h.{claims}.s");
    let token =
        |access: &str| json!({"access_token": access, "refresh_token": "r2", "expires_in": 60});

    let found = server(vec![token("a")]).await;
    let claude = anthropic::Anthropic {
        token: found.url.clone(),
        ..Default::default()
    };
    let renewed = claude.refresh(expired()).await.unwrap();
    assert_eq!(renewed["refresh"], "r2");
    assert!(found.seen.lock()[0].contains("\"refresh_token\":\"r1\""));

    let found = server(vec![token(&jwt)]).await;
    let codex = codex::Codex {
        token: found.url.clone(),
        ..Default::default()
    };
    assert_eq!(codex.refresh(expired()).await.unwrap()["accountId"], "acc");
    assert!(found.seen.lock()[0].ends_with(
        "grant_type=refresh_token&refresh_token=r1&client_id=app_EMoamEEZ73f0CkXaXp7hrann"
    ));

    let found = server(vec![
        json!({"token": "tid=1;proxy-ep=proxy.biz.example;x", "expires_at": 9_999_999_999u64}),
    ])
    .await;
    let copilot = copilot::Copilot {
        server: Some(found.url.clone()),
    };
    let renewed = copilot.refresh(expired()).await.unwrap();
    assert_eq!(renewed["refresh"], "r1");
    assert_eq!(renewed["expires"], json!(9_999_999_699_000u64));
    assert_eq!(copilot::base_url(&renewed), "https://api.biz.example");
    let seen = found.seen.lock()[0].to_lowercase();
    assert!(
        seen.contains("authorization: bearer r1") && seen.contains("vscode-chat"),
        "{seen}"
    );

    let found = server(vec![json!({"access_token": "g", "expires_in": 60})]).await;
    let mut google = google::Google::gemini_cli();
    google.server = Some(found.url.clone());
    let renewed = google.refresh(expired()).await.unwrap();
    assert_eq!(
        (&renewed["refresh"], &renewed["projectId"]),
        (&json!("r1"), &json!("p"))
    );
    assert_eq!(
        google.api_key(&renewed).await.unwrap(),
        r#"{"token":"g","projectId":"p"}"#
    );
}

#[tokio::test]
async fn only_error_responses_of_an_endpoint_are_quoted() {
    let found = server(vec![json!({"access_token": "secret"})]).await;
    let claude = anthropic::Anthropic {
        token: found.url.clone(),
        ..Default::default()
    };
    let error = claude.refresh(expired()).await.unwrap_err().to_string();
    assert!(
        !error.contains("secret") && error.contains("lacks"),
        "{error}"
    );
}

#[tokio::test]
async fn copilot_is_signed_in_to_with_a_device_code() {
    let found = server(vec![
        json!({"device_code": "d", "user_code": "AB-12", "verification_uri": "https://gh/device", "interval": 0, "expires_in": 900}),
        json!({"error": "authorization_pending"}),
        json!({"access_token": "gh"}),
        json!({"token": "tid=1", "expires_at": 9_999_999_999u64}),
    ])
    .await;
    let copilot = copilot::Copilot {
        server: Some(found.url.clone()),
    };
    let user = Arc::new(User::default());
    let credentials = copilot
        .login(user.clone(), CancellationToken::new())
        .await
        .unwrap();
    assert_eq!(credentials["refresh"], "gh");
    assert_eq!(*user.opened.lock(), ["https://gh/device"]);
    let seen = found.seen.lock().join("\n");
    assert!(
        seen.contains("device_code=d") && seen.contains("/models/gpt-4o/policy"),
        "{seen}"
    );
    assert_eq!(
        copilot::normalize_domain(" https://a.b/c "),
        Some("a.b".into())
    );
    assert_eq!(copilot::normalize_domain("not a domain"), None);
}
