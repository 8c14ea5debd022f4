//! Completion after a slash: names of commands, and their arguments.

use std::sync::{Arc, Weak};
use std::time::Duration;

use reedline::{Completer, CompletionResult, Span, Suggestion};
use serde_json::Value;
use tokio::runtime::Handle;

use super::commands::{COMMANDS, usable_models};
use super::sanitize::one_line;
use pi_ai::model::ThinkingLevel;
use pi_app::AgentSession;

/// How long an extension may compute completions. The user cannot type meanwhile.
const COMPLETION_TIMEOUT: Duration = Duration::from_millis(500);

#[derive(Clone)]
pub struct Completions {
    session: Weak<AgentSession>,
    runtime: Handle,
}

/// A possible completion.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Candidate {
    value: String,
    description: Option<String>,
}

impl Completions {
    pub fn new(session: &Arc<AgentSession>) -> Self {
        Self {
            session: Arc::downgrade(session),
            runtime: Handle::current(),
        }
    }

    fn names(session: &AgentSession) -> Vec<Candidate> {
        let ours = COMMANDS.iter().map(|(name, _, what)| Candidate {
            value: format!("/{name}"),
            description: Some((*what).to_string()),
        });
        let theirs = session.extensions().commands().into_iter();
        let theirs = theirs.map(|(command, _)| Candidate {
            value: format!("/{}", one_line(&command.name)),
            description: command.command.description.as_deref().map(one_line),
        });
        // Commands of line mode win over an extension's command of the same name.
        let mut all: Vec<Candidate> = ours.collect();
        for one in theirs {
            if !all.iter().any(|known| known.value == one.value) {
                all.push(one);
            }
        }
        all
    }

    fn arguments(&self, session: &AgentSession, name: &str, typed: &str) -> Vec<Candidate> {
        let plain = |value: String| Candidate {
            value,
            description: None,
        };
        match name {
            "model" => usable_models(session)
                .iter()
                .map(|model| plain(model.reference()))
                .collect(),
            "thinking" => ThinkingLevel::ALL
                .iter()
                .map(|level| plain(level.as_str().to_string()))
                .collect(),
            name => {
                // A timer needs a runtime, which this thread does not have.
                let completions = self.runtime.block_on(async {
                    tokio::time::timeout(
                        COMPLETION_TIMEOUT,
                        session.extensions().complete(name, typed),
                    )
                    .await
                });
                completions
                    .ok()
                    .flatten()
                    .map(|completions| items(&completions))
                    .unwrap_or_default()
            }
        }
    }
}

impl Completer for Completions {
    fn complete(&mut self, line: &str, pos: usize) -> CompletionResult {
        let nothing = CompletionResult::fresh(Vec::new());
        let (Some(session), Some(typed)) = (self.session.upgrade(), line.get(..pos)) else {
            return nothing;
        };
        let Some(command) = typed.strip_prefix('/') else {
            return nothing;
        };
        let suggestions = match command.split_once(' ') {
            None => suggest(Self::names(&session), typed, 0, true),
            Some((name, args)) => {
                let start = pos - args.len();
                let candidates = self.arguments(&session, name, args);
                // An extension filters its completions itself.
                let is_own = matches!(name, "model" | "thinking");
                suggest(candidates, args, start, is_own)
            }
        };
        CompletionResult::fresh(suggestions)
    }
}

fn suggest(candidates: Vec<Candidate>, typed: &str, start: usize, filter: bool) -> Vec<Suggestion> {
    let fits = |one: &Candidate| !filter || one.value.starts_with(typed);
    candidates
        .into_iter()
        .filter(fits)
        .map(|one| Suggestion {
            append_whitespace: one.value.starts_with('/'),
            value: one.value,
            description: one.description,
            span: Span::new(start, start + typed.len()),
            ..Suggestion::default()
        })
        .collect()
}

/// Parses the completions of an extension: strings, or objects with `value` and an optional
/// `description`.
fn items(completions: &Value) -> Vec<Candidate> {
    let items = completions.as_array().into_iter().flatten();
    items
        .filter_map(|item| {
            let value = item.as_str().or_else(|| item.get("value")?.as_str())?;
            let description = item.get("description").and_then(Value::as_str);
            Some(Candidate {
                value: one_line(value),
                description: description.map(one_line),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn items_are_strings_or_objects() {
        let completions =
            json!(["a", {"value": "b", "label": "B", "description": "the\nsecond"}, 3]);
        let candidate = |value: &str, description: Option<&str>| Candidate {
            value: value.into(),
            description: description.map(str::to_string),
        };
        assert_eq!(
            items(&completions),
            [candidate("a", None), candidate("b", Some("the second"))]
        );
        assert_eq!(items(&Value::Null), []);
    }

    #[test]
    fn names_are_completed_by_prefix() {
        let names = ["/model", "/mode", "/new"].map(|value| Candidate {
            value: value.into(),
            description: None,
        });
        let picked = suggest(names.to_vec(), "/mo", 0, true);
        let values: Vec<&str> = picked.iter().map(|one| one.value.as_str()).collect();
        assert_eq!(values, ["/model", "/mode"]);
        assert_eq!(picked[0].span, Span::new(0, 3));
    }
}
