//! A request as newer versions keep it, the system prompt and the tools in messages of the role
//! `system`: what handlers of `context_with_system` see and change (message-types.md of 1.5.2).

use std::sync::Arc;

use indexmap::IndexMap;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::AgentSession;
use super::run::object;
use crate::agent::AgentMessage;
use crate::agent::run::ModelRequest;
use crate::ai::message::{UserContent, now};
use crate::ai::stream::ToolSpec;
use crate::extensions::diagnostics::results;

const EVENT: &str = "context_with_system";

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct SystemMessage {
    content: UserContent,
    /// `null` takes one away.
    sections: IndexMap<String, Option<String>>,
    tools_added: Vec<ToolSpec>,
    tools_removed: Vec<Named>,
}

#[derive(Deserialize)]
struct Named {
    name: String,
}

/// What the system messages say together.
#[derive(Default)]
struct Told {
    content: Vec<String>,
    sections: IndexMap<String, String>,
    tools: IndexMap<String, ToolSpec>,
}

impl Told {
    fn add(&mut self, message: SystemMessage) {
        let content = message.content.text();
        if !content.is_empty() {
            self.content.push(content);
        }
        for (name, text) in message.sections {
            match text {
                Some(text) => drop(self.sections.insert(name, text)),
                None => drop(self.sections.shift_remove(&name)),
            }
        }
        for gone in message.tools_removed {
            self.tools.shift_remove(&gone.name);
        }
        for tool in message.tools_added {
            self.tools.insert(tool.name.clone(), tool);
        }
    }

    fn prompt(&self) -> String {
        let mut prompt = self.content.join("\n\n");
        for text in self.sections.values() {
            // Ours say themselves what sets them apart.
            if !prompt.is_empty() && !text.starts_with('\n') {
                prompt += "\n\n";
            }
            prompt += text;
        }
        prompt
    }
}

impl AgentSession {
    /// A request with the system messages that `context` handlers have `added`, and what handlers
    /// of `context_with_system` make of it.
    pub(super) async fn with_system(
        &self,
        asked: ModelRequest,
        added: Vec<Value>,
        cancel: &CancellationToken,
    ) -> ModelRequest {
        let has_handlers = self.extensions.has_handlers(EVENT);
        if !has_handlers && added.is_empty() {
            return asked;
        }
        let mut messages = vec![self.system_message(&asked)];
        messages.extend(added);
        if !has_handlers {
            return match read(&messages.into()) {
                Ok((told, _)) => ModelRequest {
                    system_prompt: told.prompt(),
                    tools: told.tools.into_values().collect(),
                    ..asked
                },
                Err(problem) => {
                    let problem = format!("What the handlers left was not taken: {problem}");
                    self.report("<session>", "context", problem).await;
                    asked
                }
            };
        }
        messages.extend(asked.messages.iter().map(|message| json!(message)));
        let event = object(json!({ "messages": messages }));
        let emission = self.extensions.emit(EVENT, event, cancel).await;
        let changed = emission.event.get("messages").cloned().unwrap_or_default();
        match read(&changed) {
            Ok((told, messages)) => ModelRequest {
                system_prompt: told.prompt(),
                messages,
                tools: told.tools.into_values().collect(),
            },
            Err(problem) => {
                let problem = format!("What the handlers left was not taken: {problem}");
                self.report("<session>", EVENT, problem).await;
                asked
            }
        }
    }

    fn system_message(&self, asked: &ModelRequest) -> Value {
        let sections = self.sections_now(&asked.system_prompt);
        let content = match sections {
            Some(_) => "",
            None => &asked.system_prompt,
        };
        let mut message = json!({
            "role": "system", "content": content, "toolsAdded": asked.tools, "timestamp": now(),
        });
        if let Some(sections) = sections {
            message["sections"] = json!(sections);
        }
        message
    }
}

fn read(messages: &Value) -> Result<(Told, Vec<Arc<AgentMessage>>), String> {
    let is_system = |message: &&Value| message["role"] == "system";
    let first = messages.get(0).filter(is_system);
    first.ok_or("the first message must be that of the role \"system\"")?;
    let mut told = Told::default();
    for message in messages.as_array().into_iter().flatten().filter(is_system) {
        let message = SystemMessage::deserialize(message);
        told.add(message.map_err(|error| format!("a system message: {error}"))?);
    }
    let said = results::read_messages(messages).unwrap_or_default();
    Ok((told, said.into_iter().map(Arc::new).collect()))
}
