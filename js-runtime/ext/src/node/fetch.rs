//! Requests of `fetch` with the headers that Node sends, and with undecoded bodies. Deno's own op
//! decodes two encodings, and not as Node does: only the first of several gzip members, and nothing
//! of a truncated body. Here JavaScript decodes (`js/node/fetch-encoding.ts`).

#![expect(
    clippy::result_large_err,
    reason = "it is the error of deno_fetch, as its own operation gives it"
)]

use deno_core::convert::{ByteString, Uint8Array};
use deno_core::url::Url;
use deno_core::{CancelFuture, CancelHandle, OpState, ResourceId, op2};
use deno_runtime::deno_fetch::{
    FetchCancelHandle, FetchError, FetchRequestResource, FetchReturn, HttpClientResource, ReqBody,
    ResourceToBodyAdapter, basic_auth, extract_authority, get_or_create_client_from_state,
};
use deno_runtime::deno_permissions::PermissionsContainer;
use futures::TryFutureExt;
use http::header::{ACCEPT_ENCODING, AUTHORIZATION, CONTENT_LENGTH, HOST, RANGE, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri};

/// Replaces `op_fetch` for `http:` and `https:`.
#[op2(stack_trace)]
pub(crate) fn op_fetch_http(
    state: &mut OpState,
    #[scoped] method: ByteString,
    #[string] url: String,
    #[scoped] headers: Vec<(ByteString, ByteString)>,
    #[smi] client: Option<ResourceId>,
    data: Option<Uint8Array>,
    #[smi] stream: Option<ResourceId>,
) -> Result<FetchReturn, FetchError> {
    let (client, may_name_host) = match client {
        Some(id) => {
            let own = state.resource_table.get::<HttpClientResource>(id)?;
            (own.client.clone(), own.allow_host)
        }
        None => (get_or_create_client_from_state(state)?, false),
    };
    let mut url = Url::parse(&url)?;
    let permissions = state.borrow_mut::<PermissionsContainer>();
    permissions.check_net_url(&url, "fetch()")?;
    let authority = extract_authority(&mut url);
    let uri: Uri = url
        .as_str()
        .parse()
        .map_err(|_| FetchError::InvalidUrl(url.clone()))?;
    let method = Method::from_bytes(&method)?;

    let (body, length) = body(state, &method, data, stream)?;
    let mut request = Request::new(body);
    *request.method_mut() = method;
    let into = request.headers_mut();
    if let Some((user, password)) = authority {
        into.insert(AUTHORIZATION, basic_auth(&user, password.as_deref()));
    }
    for (name, value) in headers {
        let name = HeaderName::from_bytes(&name)?;
        let may_be_given = name != CONTENT_LENGTH && (name != HOST || may_name_host);
        if may_be_given {
            into.append(name, HeaderValue::from_bytes(&value)?);
        }
    }
    add_default_headers(into, uri.scheme_str() == Some("https"));
    if let Some(length) = length {
        into.insert(CONTENT_LENGTH, length.into());
    }
    *request.uri_mut() = uri;

    let cancel = CancelHandle::new_rc();
    let sent = client
        .send_no_decompress(request)
        .map_err(FetchError::from)
        .or_cancel(cancel.clone());
    let request_rid = state.resource_table.add(FetchRequestResource {
        future: Box::pin(sent),
        url,
    });
    let cancel_handle_rid = Some(state.resource_table.add(FetchCancelHandle(cancel)));
    Ok(FetchReturn {
        request_rid,
        cancel_handle_rid,
    })
}

/// Returns the body, with its length if that is known.
fn body(
    state: &mut OpState,
    method: &Method,
    data: Option<Uint8Array>,
    stream: Option<ResourceId>,
) -> Result<(ReqBody, Option<u64>), FetchError> {
    if let Some(data) = data {
        let length = data.len() as u64;
        return Ok((ReqBody::full(data.0.into()), Some(length)));
    }
    let Some(stream) = stream else {
        let has_length = matches!(*method, Method::POST | Method::PUT);
        return Ok((ReqBody::empty(), has_length.then_some(0)));
    };
    let stream = state.resource_table.take_any(stream)?;
    let length = match stream.size_hint() {
        (least, Some(most)) if least == most && least > 0 => Some(least),
        _ => None,
    };
    let body = ReqBody::streaming(ResourceToBodyAdapter::new(stream));
    Ok((body, length))
}

/// Adds the headers that undici sends if the caller does not (https://github.com/nodejs/undici:
/// lib/web/fetch/index.js).
fn add_default_headers(headers: &mut HeaderMap, is_secure: bool) {
    let encodings = match is_secure {
        _ if headers.contains_key(RANGE) => "identity",
        true => "br, gzip, deflate",
        false => "gzip, deflate",
    };
    for (name, value) in [
        (HeaderName::from_static("sec-fetch-mode"), "cors"),
        (USER_AGENT, "node"),
        (ACCEPT_ENCODING, encodings),
    ] {
        let entry = headers.entry(name);
        entry.or_insert(HeaderValue::from_static(value));
    }
}
