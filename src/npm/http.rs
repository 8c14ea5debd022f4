//! Requests to registries: limited in size, in number at a time, and tried again when the network
//! fails.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use reqwest::header::{ACCEPT, AUTHORIZATION, HeaderValue};
use reqwest::{Client, ClientBuilder, StatusCode, Url};
use tokio::sync::Semaphore;

use crate::config::{Access, CertificateFiles, NpmConfig};
use crate::error::NpmError;
use crate::registry::lock;

/// Requests at a time.
const CONCURRENT: usize = 16;
/// Pauses before the further attempts.
const PAUSES: [Duration; 2] = [Duration::from_millis(300), Duration::from_secs(2)];
/// Bytes of one answer.
const MAX_BYTES: u64 = 512 << 20;
/// Longest silence within an answer.
const SILENCE: Duration = Duration::from_secs(60);

pub(crate) struct Http {
    config: NpmConfig,
    make_client: fn() -> ClientBuilder,
    /// The clients that were needed so far, by the certificate that they show.
    clients: Mutex<HashMap<Option<CertificateFiles>, Client>>,
    slots: Semaphore,
}

/// Reason why an attempt failed.
enum Failure {
    /// Another attempt may succeed.
    Passing(String),
    Final(String),
}

impl Http {
    pub(crate) fn new(
        config: &NpmConfig,
        make_client: fn() -> ClientBuilder,
    ) -> Result<Self, NpmError> {
        let http = Self {
            config: config.clone(),
            make_client,
            clients: Mutex::default(),
            slots: Semaphore::new(CONCURRENT),
        };
        // Tells of mistakes in the configuration before the first request.
        http.client(None)?;
        Ok(http)
    }

    /// Returns the client that shows a certificate.
    fn client(&self, certificate: Option<&CertificateFiles>) -> Result<Client, NpmError> {
        let mut clients = lock(&self.clients);
        let key = certificate.cloned();
        if let Some(client) = clients.get(&key) {
            return Ok(client.clone());
        }
        let builder = self.config.configure((self.make_client)(), certificate)?;
        let client = builder.build().map_err(|error| {
            let why = causes(error);
            NpmError::Resolution(format!("The HTTP client cannot be set up: {why}"))
        })?;
        clients.insert(key, client.clone());
        Ok(client)
    }

    /// Returns the body; `None` if the server says that there is no such thing.
    pub(crate) async fn get(
        &self,
        request: &Access,
        accept: &str,
    ) -> Result<Option<Vec<u8>>, NpmError> {
        let failed = |why| NpmError::Fetch {
            url: shown(&request.url),
            why,
        };
        let client = self.client(request.certificate.as_ref())?;
        if !["http", "https"].contains(&request.url.scheme()) {
            return Err(failed("only http and https are possible".to_owned()));
        }
        let _slot = self.slots.acquire().await;
        let mut pauses = PAUSES.iter();
        loop {
            match self.attempt(&client, request, accept).await {
                Ok(body) => return Ok(body),
                Err(Failure::Final(why)) => return Err(failed(why)),
                Err(Failure::Passing(why)) => match pauses.next() {
                    Some(pause) => tokio::time::sleep(*pause).await,
                    None => return Err(failed(why)),
                },
            }
        }
    }

    async fn attempt(
        &self,
        client: &Client,
        request: &Access,
        accept: &str,
    ) -> Result<Option<Vec<u8>>, Failure> {
        let passing = |error: reqwest::Error| Failure::Passing(causes(error));
        let mut sent = client.get(request.url.clone());
        sent = sent.header(ACCEPT, accept);
        if let Some(value) = &request.authorization {
            let value = HeaderValue::from_str(value).map_err(|_| {
                Failure::Final("its credentials in .npmrc are no header".to_owned())
            })?;
            sent = sent.header(AUTHORIZATION, value);
        }
        let silent = |_| Failure::Passing(format!("nothing arrived for {} s", SILENCE.as_secs()));
        let sent = tokio::time::timeout(SILENCE, sent.send()).await;
        let mut response = sent.map_err(silent)?.map_err(passing)?;
        let status = response.status();
        match status {
            StatusCode::NOT_FOUND | StatusCode::GONE => return Ok(None),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                return Err(Failure::Final(format!(
                    "the server answers {status}: check the credentials of this registry in .npmrc"
                )));
            }
            _ if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS => {
                return Err(Failure::Passing(format!("the server answers {status}")));
            }
            _ if !status.is_success() => {
                return Err(Failure::Final(format!("the server answers {status}")));
            }
            _ => {}
        }
        let too_large = || Failure::Final(format!("it has more than {MAX_BYTES} bytes"));
        if response
            .content_length()
            .is_some_and(|length| length > MAX_BYTES)
        {
            return Err(too_large());
        }
        let mut body = Vec::new();
        loop {
            let chunk = tokio::time::timeout(SILENCE, response.chunk()).await;
            let Some(chunk) = chunk.map_err(silent)?.map_err(passing)? else {
                return Ok(Some(body));
            };
            if (body.len() + chunk.len()) as u64 > MAX_BYTES {
                return Err(too_large());
            }
            body.extend_from_slice(&chunk);
        }
    }
}

/// Returns the URL without credentials and query, which may hold secrets.
fn shown(url: &Url) -> String {
    let mut url = url.clone();
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_query(None);
    url.to_string()
}

/// Returns the error with its causes, without the URL.
fn causes(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut text = error.to_string();
    let mut source = std::error::Error::source(&error);
    while let Some(cause) = source {
        text += &format!(": {cause}");
        source = cause.source();
    }
    text
}
