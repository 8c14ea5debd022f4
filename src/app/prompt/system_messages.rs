//! The format of requests in newer versions of the original: the system prompt and the tools are
//! messages of the role `system`. Handlers of `context_with_system` see and change them.

use std::sync::Arc;

use indexmap::IndexMap;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::AgentSession;
use pi_agent::AgentMessage;
use pi_agent::run::ModelRequest;
use pi_ai::message::{UserContent, now};
use pi_ai::stream::ToolSpec;
use pi_extensions::diagnostics::results;

const EVENT: &str = "context_with_system";

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct SystemMessage {
    content: UserContent,
    /// `null` removes a section.
    sections: IndexMap<String, Option<String>>,
    tools_added: Vec<ToolSpec>,
    tools_removed: Vec<ToolName>,
}

#[derive(Deserialize)]
struct ToolName {
    name: String,
}

/// The combination of all system messages.
#[derive(Default)]
struct SystemPrompt {
    content: Vec<String>,
    sections: IndexMap<String, String>,
    tools: IndexMap<String, ToolSpec>,
}

impl SystemPrompt {
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
        for removed in message.tools_removed {
            self.tools.shift_remove(&removed.name);
        }
        for tool in message.tools_added {
            self.tools.insert(tool.name.clone(), tool);
        }
    }

    fn prompt(&self) -> String {
        let mut prompt = self.content.join("\n\n");
        for text in self.sections.values() {
            // Built-in sections contain their own separators.
            if !prompt.is_empty() && !text.starts_with('\n') {
                prompt += "\n\n";
            }
            prompt += text;
        }
        prompt
    }
}

impl AgentSession {
    /// Adds the system messages that `context` handlers have `added`, and applies the changes of
    /// `context_with_system` handlers.
    pub(crate) async fn apply_system_messages(
        &self,
        request: ModelRequest,
        added: Vec<Value>,
        cancel: &CancellationToken,
    ) -> ModelRequest {
        let has_handlers = self.extensions.has_handlers(EVENT);
        if !has_handlers && added.is_empty() {
            return request;
        }
        let mut messages = vec![self.system_message(&request)];
        messages.extend(added);
        if !has_handlers {
            return match parse(&messages.into()) {
                Ok((system, _)) => ModelRequest {
                    system_prompt: system.prompt(),
                    tools: system.tools.into_values().collect(),
                    ..request
                },
                Err(problem) => {
                    let problem = not_taken("context", &problem);
                    self.report("<session>", "context", problem).await;
                    request
                }
            };
        }
        messages.extend(request.messages.iter().map(|message| json!(message)));
        let event = || json!({ "messages": messages });
        let emission = self.extensions.deliver(EVENT, event, cancel).await;
        let changed = emission.event.get("messages").cloned().unwrap_or_default();
        match parse(&changed) {
            Ok((system, messages)) => ModelRequest {
                system_prompt: system.prompt(),
                messages,
                tools: system.tools.into_values().collect(),
            },
            Err(problem) => {
                let problem = not_taken(EVENT, &problem);
                self.report("<session>", EVENT, problem).await;
                request
            }
        }
    }

    fn system_message(&self, request: &ModelRequest) -> Value {
        let prompt = self.state.lock().system_prompt.clone();
        let home = &self.config.paths.home;
        let sections = prompt.sections_of(&request.system_prompt, home);
        let content = match sections {
            Some(_) => "",
            None => &request.system_prompt,
        };
        let mut message = json!({
            "role": "system", "content": content, "toolsAdded": request.tools, "timestamp": now(),
        });
        if let Some(sections) = sections {
            message["sections"] = json!(sections);
        }
        message
    }
}

fn not_taken(event: &str, problem: &str) -> String {
    format!("pi ignores the messages that handlers of {event} returned: {problem}")
}

fn parse(messages: &Value) -> Result<(SystemPrompt, Vec<Arc<AgentMessage>>), String> {
    let is_system = |message: &&Value| message["role"] == "system";
    let first = messages.get(0).filter(is_system);
    first.ok_or("the first must have the role \"system\"")?;
    let mut system = SystemPrompt::default();
    for message in messages.as_array().into_iter().flatten().filter(is_system) {
        let message = SystemMessage::deserialize(message);
        system.add(message.map_err(|error| format!("a system message: {error}"))?);
    }
    let rest = results::read_messages(messages).unwrap_or_default();
    Ok((system, rest.into_iter().map(Arc::new).collect()))
}
