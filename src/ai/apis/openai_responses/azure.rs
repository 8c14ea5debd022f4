//! `azure-openai-responses`: the format of the Responses API, with the user's own address and
//! key. Deployments replace the names of models.

use reqwest::header::HeaderMap;
use serde_json::Value;

use super::request::common_members;
use super::response::{ResponsesDecoder, Tier};
use crate::apis::request_parts::{api_key, configured_headers};
use crate::auth::secret_value::Env;
use crate::failure::{Envelope, Failure};
use crate::http::exchange::{HttpRequest, set_header};
use crate::stream::Request;

const VERSION: &str = "v1";

pub(super) fn build_request(request: &Request) -> Result<(HttpRequest, ResponsesDecoder), Failure> {
    let env = request.options.env();
    let mut headers = HeaderMap::new();
    set_header(&mut headers, "accept", "application/json")?;
    set_header(&mut headers, "content-type", "application/json")?;
    if let Some(key) = api_key(request)? {
        set_header(&mut headers, "api-key", key)?;
    }
    configured_headers(request, &mut headers, &[])?;
    let explicit = request
        .options
        .api_options
        .responses
        .azure_api_version
        .clone();
    let version = explicit.or_else(|| env.get("AZURE_OPENAI_API_VERSION"));
    let version = version.as_deref().unwrap_or(VERSION);
    let call = HttpRequest {
        url: format!(
            "{}/responses?api-version={version}",
            base_url(request, &env)?
        ),
        headers,
        body: body(request, &deployment(request, &env)),
        envelope: Envelope::Error,
        encode: None,
        sign: None,
    };
    Ok((call, ResponsesDecoder::with_tier(Tier::Requested(None))))
}

fn base_url(request: &Request, env: &Env) -> Result<String, Failure> {
    let explicit = &request.options.api_options.responses;
    let set = |text: String| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
    let either = |explicit: &Option<String>, variable: &str| {
        let explicit = explicit.clone().and_then(set);
        explicit.or_else(|| env.get(variable).and_then(set))
    };
    let named = || {
        let name = either(&explicit.azure_resource_name, "AZURE_OPENAI_RESOURCE_NAME")?;
        Some(format!("https://{name}.openai.azure.com/openai/v1"))
    };
    let base = either(&explicit.azure_base_url, "AZURE_OPENAI_BASE_URL").or_else(named);
    let base = base.or_else(|| set(request.model.base_url.clone()));
    match base {
        Some(base) => Ok(base.trim_end_matches('/').to_owned()),
        None => Err(Failure::Provider(
            "Azure OpenAI base URL is required. Set AZURE_OPENAI_BASE_URL or \
             AZURE_OPENAI_RESOURCE_NAME, or a baseUrl in models.json; an extension can also \
             pass azureBaseUrl or azureResourceName."
                .into(),
        )),
    }
}

/// Returns the model's deployment. `AZURE_OPENAI_DEPLOYMENT_NAME_MAP` has the format
/// `model=deployment,…`.
fn deployment(request: &Request, env: &Env) -> String {
    let model = &request.model;
    if let Some(explicit) = &request.options.api_options.responses.azure_deployment_name {
        return explicit.clone();
    }
    let map = env
        .get("AZURE_OPENAI_DEPLOYMENT_NAME_MAP")
        .unwrap_or_default();
    let pairs = map.split(',').filter_map(|pair| pair.split_once('='));
    // The last entry of a model counts.
    let named = pairs.rev().find(|(id, _)| id.trim() == model.id);
    let named = named
        .map(|(_, name)| name.trim())
        .filter(|name| !name.is_empty());
    named.unwrap_or(&model.id).to_owned()
}

pub(super) fn body(request: &Request, deployment: &str) -> Value {
    Value::Object(common_members(request, deployment))
}
