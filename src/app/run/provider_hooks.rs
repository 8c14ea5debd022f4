//! Emits requests to a provider and its responses to extensions, in the provider's own format.

use std::sync::Arc;

use async_trait::async_trait;
use indexmap::IndexMap;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::AgentSession;
use pi_ai::model::Model;
use pi_ai::stream::StreamHooks;
use pi_extensions::EventBody;

const REQUEST: &str = "before_provider_request";
const HEADERS: &str = "before_provider_headers";
const RESPONSE: &str = "after_provider_response";
const STREAM_EVENT: &str = "provider_stream_event";

impl AgentSession {
    /// Emits `before_provider_headers` and returns the headers as handlers changed them. A header
    /// that a handler set to `null` is removed.
    pub(crate) async fn changed_headers(
        &self,
        headers: IndexMap<String, String>,
    ) -> IndexMap<String, String> {
        if !self.extensions.has_handlers(HEADERS) {
            return headers;
        }
        let (event, cancel) = (|| json!({ "headers": headers }), self.run_cancel());
        let emission = self.extensions.deliver(HEADERS, event, &cancel).await;
        let changed = emission.event.get("headers").and_then(Value::as_object);
        let text = |value: &Value| match value {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            other => Some(other.to_string()),
        };
        changed.map_or(headers, |changed| {
            let kept = changed.iter();
            kept.filter_map(|(name, value)| Some((name.clone(), text(value)?)))
                .collect()
        })
    }
}

/// Emits `before_provider_request`, `after_provider_response` and `provider_stream_event`.
pub(crate) struct ProviderHooks(Arc<AgentSession>);

impl ProviderHooks {
    /// Returns `None` if no handler exists for these events.
    pub(crate) fn if_handled(session: &AgentSession) -> Option<Arc<dyn StreamHooks>> {
        let has_handlers = |name| session.extensions.has_handlers(name);
        let any = [REQUEST, RESPONSE, STREAM_EVENT]
            .into_iter()
            .any(has_handlers);
        any.then(|| Arc::new(Self(session.arc())) as _)
    }
}

#[async_trait]
impl StreamHooks for ProviderHooks {
    async fn payload(&self, _model: &Model, payload: Value) -> Result<Value, String> {
        let cancel = self.0.run_cancel();
        let event = || json!({ "payload": payload });
        let mut emission = self.0.extensions.deliver(REQUEST, event, &cancel).await;
        Ok(emission.event.remove("payload").unwrap_or(payload))
    }

    async fn response(
        &self,
        _model: &Model,
        status: u16,
        headers: &IndexMap<String, String>,
    ) -> Result<(), String> {
        let cancel = self.0.run_cancel();
        let event = || json!({ "status": status, "headers": headers });
        self.0.extensions.deliver(RESPONSE, event, &cancel).await;
        Ok(())
    }

    fn wants_events(&self) -> bool {
        self.0.extensions.has_handlers(STREAM_EVENT)
    }

    async fn event(&self, model: &Model, data: Box<RawValue>) {
        let cancel = self.0.run_cancel();
        let event = || {
            EventBody::json(&ProviderStreamEvent {
                kind: STREAM_EVENT,
                provider: &model.provider,
                api: &model.api,
                model: &model.id,
                data,
            })
        };
        let extensions = &self.0.extensions;
        extensions.deliver(STREAM_EVENT, event, &cancel).await;
    }
}

#[derive(Serialize)]
struct ProviderStreamEvent<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    provider: &'a str,
    api: &'a str,
    model: &'a str,
    data: Box<RawValue>,
}
