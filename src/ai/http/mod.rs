//! The HTTP client of the process, shared so that connections and TLS sessions are reused. The
//! first request creates it, because reading the system's certificates would slow down the start
//! of the program.

pub(crate) mod aws_event_stream;
pub(crate) mod exchange;
pub(crate) mod retry_delay;
pub(crate) mod sse;

use pi_base::VERSION;
use std::sync::OnceLock;
use std::time::Duration;

use reqwest::{Certificate, Client, ClientBuilder};

/// Silence on the wire after which a connection counts as lost. Local models may read a long
/// prompt for minutes before the first byte.
const READ_TIMEOUT: Duration = Duration::from_secs(600);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

static CLIENT: OnceLock<Client> = OnceLock::new();

/// The client could not be created; a later attempt may succeed.
#[derive(Debug, thiserror::Error)]
#[error(
    "Cannot set up the HTTP client: {0}. Check the system's certificates (package ca-certificates, \
     SSL_CERT_FILE) and the proxy variables (HTTPS_PROXY, HTTP_PROXY, ALL_PROXY, NO_PROXY)."
)]
pub struct HttpSetupError(#[source] reqwest::Error);

/// Returns the client. Its proxies come from the environment. Its TLS uses aws-lc-rs: reqwest's
/// feature `rustls` selects it, so no process-wide provider is needed, even if another crate
/// links ring.
pub fn client() -> Result<Client, HttpSetupError> {
    if let Some(client) = CLIENT.get() {
        return Ok(client.clone());
    }
    let client = builder().build().map_err(HttpSetupError)?;
    Ok(CLIENT.get_or_init(|| client).clone())
}

/// Returns a client to configure further, with the certificates and proxies of [`client`].
pub fn builder() -> ClientBuilder {
    Client::builder()
        .user_agent(format!("pi/{VERSION}"))
        .connect_timeout(CONNECT_TIMEOUT)
        .read_timeout(READ_TIMEOUT)
        .tls_certs_merge(extra_certificates())
        .tls_danger_accept_invalid_certs(accepts_all())
}

/// Returns the certificates that the user adds to those of the system, for example for a company
/// proxy. <https://nodejs.org/api/cli.html#node_extra_ca_certsfile>
fn extra_certificates() -> Vec<Certificate> {
    let Some(file) = std::env::var_os("NODE_EXTRA_CA_CERTS").filter(|file| !file.is_empty()) else {
        return Vec::new();
    };
    let read = std::fs::read(&file).map_err(|error| error.to_string());
    let read = read
        .and_then(|text| Certificate::from_pem_bundle(&text).map_err(|error| error.to_string()));
    read.unwrap_or_else(|error| {
        // Node also continues without them.
        tracing::warn!("NODE_EXTRA_CA_CERTS: {file:?}: {error}");
        Vec::new()
    })
}

/// Returns true if invalid certificates are accepted.
/// <https://nodejs.org/api/cli.html#node_tls_reject_unauthorizedvalue>
fn accepts_all() -> bool {
    std::env::var_os("NODE_TLS_REJECT_UNAUTHORIZED").is_some_and(|value| value == "0")
}
