//! Requests to token endpoints and their responses.

use std::time::Duration;

use reqwest::RequestBuilder;
use serde_json::Value;

use super::{OAuthCredentials, SignInError};
use crate::http;
use crate::message::now;

const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// Time in milliseconds by which a token is renewed early, so that it does not expire during a
/// request.
pub(super) const RENEWAL_MARGIN_MS: i64 = 5 * 60 * 1000;

/// Sends a request. `what` starts the text of an error.
pub(super) async fn send(what: &str, request: RequestBuilder) -> Result<Value, SignInError> {
    let (status, body) = fetch_text(what, request).await?;
    if !(200..300).contains(&status) {
        return Err(SignInError::new(format!("{what} failed: {status} {body}")));
    }
    // The error does not quote the response, which holds keys.
    serde_json::from_str(&body)
        .map_err(|_| SignInError::new(format!("{what} failed: the answer is not JSON")))
}

pub(super) async fn fetch_text(
    what: &str,
    request: RequestBuilder,
) -> Result<(u16, String), SignInError> {
    let failed =
        |error: reqwest::Error| SignInError::new(format!("{what} failed: {}", error.without_url()));
    let response = request
        .timeout(REQUEST_TIMEOUT)
        .send()
        .await
        .map_err(failed)?;
    let status = response.status().as_u16();
    let body = response.text().await.map_err(failed)?;
    Ok((status, body))
}

pub(super) fn client() -> Result<reqwest::Client, SignInError> {
    http::client().map_err(|error| SignInError::new(error.to_string()))
}

pub(super) fn post(url: &str) -> Result<RequestBuilder, SignInError> {
    Ok(client()?.post(url))
}

/// Adds a body in `application/x-www-form-urlencoded`.
pub(super) fn form(request: RequestBuilder, fields: &[(&str, &str)]) -> RequestBuilder {
    let mut url = reqwest::Url::parse("http://form").expect("the address is a constant");
    url.query_pairs_mut().extend_pairs(fields);
    request
        .header("content-type", "application/x-www-form-urlencoded")
        .body(url.query().unwrap_or_default().to_owned())
}

/// Reads access token, refresh token and expiry from a response. `before` is the refresh token
/// that stays valid if the response has none.
pub(super) fn credentials(
    what: &str,
    answer: &Value,
    before: Option<&str>,
    margin: i64,
) -> Result<OAuthCredentials, SignInError> {
    let text = |name: &str| answer[name].as_str().filter(|text| !text.is_empty());
    let lifetime = answer["expires_in"].as_f64();
    let (Some(access), Some(refresh), Some(lifetime)) = (
        text("access_token"),
        text("refresh_token").or(before),
        lifetime,
    ) else {
        return Err(SignInError::new(format!(
            "{what} failed: the answer lacks access_token, refresh_token or expires_in"
        )));
    };
    let expires = now() + (lifetime * 1000.0) as i64 - margin;
    Ok(OAuthCredentials::from_iter([
        ("refresh".to_owned(), refresh.into()),
        ("access".to_owned(), access.into()),
        ("expires".to_owned(), expires.into()),
    ]))
}

/// Returns the refresh token of stored credentials.
pub(super) fn refresh_token(credentials: &OAuthCredentials) -> Result<&str, SignInError> {
    let token = credentials.get("refresh").and_then(Value::as_str);
    token.ok_or_else(|| SignInError::new("the credentials hold no refresh token"))
}
