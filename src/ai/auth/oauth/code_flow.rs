//! Sign-in with a browser: the user opens an address, and the browser brings a code to a local
//! server, or the user pastes the code.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reqwest::Url;
use sha2::{Digest, Sha256};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use super::{LoginDialog, SignInError};

/// Time limit for one request of the browser.
const BROWSER_TIMEOUT: Duration = Duration::from_secs(10);
const MAX_REQUEST_LINE_BYTES: u64 = 16 * 1024;

/// Proof that the program that exchanges the code is the one that requested it.
pub(super) struct Pkce {
    pub verifier: String,
    pub challenge: String,
}

impl Pkce {
    pub(super) fn new() -> Self {
        let verifier = random(32);
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(&verifier));
        Self {
            verifier,
            challenge,
        }
    }
}

/// Returns `bytes` random bytes as text.
pub(super) fn random(bytes: usize) -> String {
    // Each UUID of version 4 has sixteen bytes, all but six bits of them random.
    let random = std::iter::repeat_with(uuid::Uuid::new_v4)
        .flat_map(|id| id.into_bytes())
        .take(bytes);
    URL_SAFE_NO_PAD.encode(random.collect::<Vec<u8>>())
}

/// The parameters of one provider's sign-in.
pub(super) struct Request<'a> {
    /// Address at which the user signs in.
    pub authorize: &'a str,
    pub client: &'a str,
    pub scope: &'a str,
    /// Address to which the browser returns.
    pub redirect: &'a str,
    /// Protection against forged redirects; the verifier if `None`.
    pub state: Option<String>,
    /// Additional query parameters of the address.
    pub extra_params: &'a [(&'a str, &'a str)],
    pub instructions: &'a str,
}

/// The data that is exchanged for tokens.
pub(super) struct Grant {
    pub code: String,
    pub verifier: String,
    pub state: String,
}

impl Request<'_> {
    /// Lets the user sign in.
    pub(super) async fn grant(
        self,
        dialog: &Arc<dyn LoginDialog>,
        cancel: &CancellationToken,
    ) -> Result<Grant, SignInError> {
        let Pkce {
            verifier,
            challenge,
        } = Pkce::new();
        let state = self.state.unwrap_or_else(|| verifier.clone());
        let fields = [
            ("response_type", "code"),
            ("client_id", self.client),
            ("redirect_uri", self.redirect),
            ("scope", self.scope),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
            ("state", &state),
        ];
        let fields = fields.iter().chain(self.extra_params);
        let url = Url::parse_with_params(self.authorize, fields)
            .map_err(|error| SignInError::new(error.to_string()))?;
        let flow = CodeFlow {
            url: &url,
            instructions: self.instructions,
            redirect: self.redirect,
            state: &state,
            dialog,
            cancel,
        };
        let code = flow.code().await?;
        Ok(Grant {
            code,
            verifier,
            state,
        })
    }
}

struct CodeFlow<'a> {
    /// Address that the user opens.
    url: &'a Url,
    instructions: &'a str,
    redirect: &'a str,
    state: &'a str,
    dialog: &'a Arc<dyn LoginDialog>,
    cancel: &'a CancellationToken,
}

impl CodeFlow<'_> {
    /// Waits for the code from the browser or from the user.
    async fn code(&self) -> Result<String, SignInError> {
        tokio::select! {
            code = self.prompt_for_code() => code,
            () = self.cancel.cancelled() => Err(cancelled()),
        }
    }

    async fn prompt_for_code(&self) -> Result<String, SignInError> {
        let redirect = Url::parse(self.redirect)
            .map_err(|error| SignInError::new(format!("{}: {error}", self.redirect)))?;
        let port = redirect.port().unwrap_or(80);
        let server = TcpListener::bind(("127.0.0.1", port)).await;
        self.dialog
            .open(self.url.as_str(), Some(self.instructions))
            .await;
        let pasted = match server {
            Ok(server) => tokio::select! {
                code = self.wait_for_browser(&server, redirect.path()) => return Ok(code),
                pasted = self.dialog.paste() => pasted,
            },
            // Another process uses the port, so the user has to paste the code.
            Err(_) => {
                let message = "Paste the authorization code or full redirect URL:";
                self.dialog
                    .prompt(message, Some(self.redirect), false)
                    .await
            }
        };
        let pasted = pasted.ok_or_else(cancelled)?;
        let (code, state) = parse_pasted(&pasted);
        if state.is_some_and(|state| state != self.state) {
            return Err(SignInError::new("OAuth state mismatch"));
        }
        code.ok_or_else(|| SignInError::new("Missing authorization code"))
    }

    async fn wait_for_browser(&self, server: &TcpListener, path: &str) -> String {
        loop {
            let Ok((mut stream, _)) = server.accept().await else {
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            };
            // Other requests, and failed ones, do not end the wait.
            let served = tokio::time::timeout(BROWSER_TIMEOUT, self.serve(&mut stream, path));
            if let Ok(Ok(Some(code))) = served.await {
                return code;
            }
        }
    }

    async fn serve(&self, stream: &mut TcpStream, path: &str) -> std::io::Result<Option<String>> {
        let mut line = String::new();
        let mut reader = BufReader::new(tokio::io::AsyncReadExt::take(
            &mut *stream,
            MAX_REQUEST_LINE_BYTES,
        ));
        reader.read_line(&mut line).await?;
        // The rest of the request is read, because the response could get lost otherwise.
        let mut header = String::new();
        while reader.read_line(&mut header).await? > 2 {
            header.clear();
        }
        let target = line.split(' ').nth(1).unwrap_or_default();
        let address = Url::parse("http://localhost").and_then(|base| base.join(target));
        let (status, text, code) = match address {
            Ok(address) if address.path() == path => self.check_redirect(&address),
            _ => ("404 Not Found", "There is nothing here.".to_owned(), None),
        };
        let page = format!(
            "<!doctype html><meta charset=\"utf-8\"><title>pi</title>\
             <body style=\"font-family: sans-serif\"><p>{text}</p>"
        );
        let answer = format!(
            "HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\n\
             content-length: {}\r\nconnection: close\r\n\r\n{page}",
            page.len()
        );
        stream.write_all(answer.as_bytes()).await?;
        stream.shutdown().await?;
        Ok(code)
    }

    fn check_redirect(&self, address: &Url) -> (&'static str, String, Option<String>) {
        const REFUSED: &str = "400 Bad Request";
        let of = |name: &str| {
            let mut pairs = address.query_pairs();
            let found = pairs.find(|(key, _)| key == name);
            found.map(|(_, value)| value.into_owned())
        };
        if of("error").is_some() {
            return (REFUSED, "The sign-in did not complete.".into(), None);
        }
        match (of("code"), of("state")) {
            (Some(_), Some(state)) if state != self.state => {
                (REFUSED, "This belongs to another sign-in.".into(), None)
            }
            (Some(code), Some(_)) => {
                let text = "You are signed in. This window can be closed.";
                ("200 OK", text.into(), Some(code))
            }
            _ => (REFUSED, "The code is missing.".into(), None),
        }
    }
}

pub(super) fn cancelled() -> SignInError {
    SignInError::new("Login cancelled")
}

/// Returns code and state from an address, from `code#state`, from a query, or from the code
/// alone.
pub(super) fn parse_pasted(text: &str) -> (Option<String>, Option<String>) {
    let text = text.trim();
    let of = |url: &Url| {
        let get = |name: &str| {
            let found = url.query_pairs().find(|(key, _)| key == name);
            found.map(|(_, value)| value.into_owned())
        };
        (get("code"), get("state"))
    };
    if let Ok(url) = Url::parse(text) {
        return of(&url);
    }
    if let Some((code, state)) = text.split_once('#') {
        return (Some(code.to_owned()), Some(state.to_owned()));
    }
    if text.contains("code=")
        && let Ok(url) = Url::parse(&format!("http://localhost/?{text}"))
    {
        return of(&url);
    }
    ((!text.is_empty()).then(|| text.to_owned()), None)
}
