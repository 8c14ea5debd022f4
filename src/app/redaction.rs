//! Replaces the values of known secrets in what models, files and clients get; see
//! [`pi_base::secrets`].

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value;

use crate::AgentSession;
use pi_agent::AgentMessage;
use pi_ai::message::ContentBlock;
use pi_base::secrets;
use pi_tools::tool::ToolOutput;

impl AgentSession {
    /// Makes the tokens of package registries known as secrets.
    pub(crate) fn add_registry_tokens(&self) {
        secrets::add_registry_tokens(&self.config.paths.home, &self.cwd());
    }

    /// Replaces secrets in the result of a tool.
    pub(crate) fn redact_output(&self, output: &mut ToolOutput) {
        self.add_registry_tokens();
        for block in &mut output.content {
            match block {
                ContentBlock::Text(text) => redact_text(&mut text.block.text),
                ContentBlock::Other(members) => {
                    members.values_mut().for_each(redact_value);
                }
                ContentBlock::Image(_) => {}
            }
        }
        if let Some(details) = &mut output.details {
            redact_value(details);
        }
        for value in output.other.values_mut() {
            redact_value(value);
        }
    }
}

/// Replaces secrets in the error message of an answer: some servers repeat the key that they refuse.
pub(crate) fn redact_error(message: Arc<AgentMessage>) -> Arc<AgentMessage> {
    let AgentMessage::Assistant(answer) = &*message else {
        return message;
    };
    let error = answer.error_message.as_deref().map(secrets::redact);
    let Some(Cow::Owned(error)) = error else {
        return message;
    };
    let mut answer = answer.clone();
    answer.error_message = Some(error);
    Arc::new(AgentMessage::Assistant(answer))
}

/// Replaces secrets in a text.
pub(crate) fn redact_text(text: &mut String) {
    if let Cow::Owned(redacted) = secrets::redact(text) {
        *text = redacted;
    }
}

/// Replaces secrets in all texts of a value, and in the names of members.
pub(crate) fn redact_value(value: &mut Value) {
    let mut left = vec![value];
    while let Some(value) = left.pop() {
        match value {
            Value::String(text) => redact_text(text),
            Value::Array(items) => left.extend(items),
            Value::Object(members) => {
                if members
                    .keys()
                    .any(|name| matches!(secrets::redact(name), Cow::Owned(_)))
                {
                    let renamed = std::mem::take(members).into_iter();
                    let renamed = renamed.map(|(name, value)| {
                        let name = secrets::redact(&name).into_owned();
                        (name, value)
                    });
                    *members = renamed.collect();
                }
                left.extend(members.values_mut());
            }
            _ => {}
        }
    }
}
