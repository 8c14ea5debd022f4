//! Shows the question whether a call may run, and waits for the answer of the user.

use std::path::{Path, PathBuf};

use serde_json::Value;
use tokio::sync::oneshot;

use crate::AgentSession;
use pi_agent::event::{Event, UiAnswer, UiMethod};
use pi_agent::permission::{
    PermissionAnnotations, PermissionLocation, PermissionOption, PermissionRequest,
};
use pi_ai::message::ToolCall;
use pi_permissions::{Access, Decision};
use pi_tools::text::diff::Changes;

/// Largest diff that a question shows, in bytes.
const MAX_DIFF: usize = 64 << 10;
/// Unchanged lines around each change in a diff.
const DIFF_CONTEXT: usize = 4;

/// The answer of the user to a question.
pub(crate) struct UserAnswer {
    pub option: PermissionOption,
    /// Why, in the words of the user.
    pub reason: Option<String>,
}

impl AgentSession {
    /// Makes the question about a call.
    pub(super) fn permission_request(
        &self,
        call: &ToolCall,
        input: &Value,
        decision: &Decision,
        access: &Access,
    ) -> PermissionRequest {
        let mut options = vec![PermissionOption::AllowOnce];
        if !decision.remember.is_empty() {
            options.extend([
                PermissionOption::AllowSession,
                PermissionOption::AllowAlways,
            ]);
        }
        options.push(PermissionOption::Deny);
        let paths = match access {
            Access::Read(paths) | Access::Write(paths) => paths.as_slice(),
            Access::Bash(_) | Access::Other => &[],
        };
        let locations = paths.iter().map(|path| PermissionLocation {
            path: path.display().to_string(),
        });
        let child_session = self.child_link.is_child.then(|| {
            let state = self.state.lock();
            match state.session.name() {
                Some(name) => name.to_owned(),
                None => state.session.id().to_string(),
            }
        });
        let mut title = title(&call.name, input, &self.cwd(), paths);
        if let Some(name) = &child_session {
            title.push_str(&format!(" (child session {name})"));
        }
        PermissionRequest {
            id: uuid::Uuid::new_v4().to_string(),
            tool: call.name.clone(),
            tool_call_id: call.id.clone(),
            title,
            child_session,
            locations: locations.collect(),
            diff: diff(&call.name, input, paths),
            annotations: annotations(access),
            input: input.clone(),
            options,
            reason: Some(decision.reason.clone()).filter(|text| !text.is_empty()),
            rules: decision.remember.clone(),
        }
    }

    /// Asks a client that knows `permission_request`.
    pub(super) async fn ask_client(&self, request: PermissionRequest) -> Option<UserAnswer> {
        let (sender, answered) = oneshot::channel();
        let options = request.options.clone();
        let open = OpenQuestion {
            session: self,
            id: request.id.clone(),
        };
        self.approvals.open.lock().insert(open.id.clone(), sender);
        self.emit_to_mode(Event::PermissionRequest(request)).await;
        let answer = answered.await.ok()?;
        // An option that was not offered allows nothing.
        match options.contains(&answer.option) {
            true => Some(answer),
            false => Some(UserAnswer {
                option: PermissionOption::Deny,
                reason: Some("the answer was none of the options".to_owned()),
            }),
        }
    }

    /// Asks with the dialog that all clients know.
    pub(super) async fn ask_in_dialog(&self, request: &PermissionRequest) -> Option<UserAnswer> {
        let labels: Vec<(String, PermissionOption)> = (request.options.iter())
            .map(|option| {
                let rules = request.rules.join(", ");
                let label = match option {
                    PermissionOption::AllowOnce => "Allow once".to_owned(),
                    PermissionOption::AllowSession => "Allow in this session".to_owned(),
                    PermissionOption::AllowAlways => format!("Always allow {rules}"),
                    PermissionOption::Deny => "Deny".to_owned(),
                };
                (label, *option)
            })
            .collect();
        let reason = request.reason.as_deref().unwrap_or_default();
        let mut title = format!("Allow {}?", request.title);
        if !reason.is_empty() {
            title.push_str(&format!("\n{reason}"));
        }
        if let Some(diff) = &request.diff {
            title.push_str(&format!("\n{diff}"));
        }
        let method = UiMethod::Select {
            title,
            options: labels.iter().map(|(label, _)| label.clone()).collect(),
            timeout: None,
        };
        let UiAnswer::Value(value) = self.show_dialog(method).await else {
            return None;
        };
        let chosen = labels.into_iter().find(|(label, _)| *label == value);
        Some(UserAnswer {
            option: chosen.map_or(PermissionOption::Deny, |(_, option)| option),
            reason: None,
        })
    }
}

/// A question that a client shows. When dropped, tells the client to close it.
struct OpenQuestion<'a> {
    session: &'a AgentSession,
    id: String,
}

impl Drop for OpenQuestion<'_> {
    fn drop(&mut self) {
        self.session.approvals.open.lock().remove(&self.id);
        let id = std::mem::take(&mut self.id);
        self.session
            .emit_to_mode_soon(Event::PermissionRequestEnd { id });
    }
}

/// Returns a short text about the call. The command of `bash` may have several lines.
fn title(tool: &str, input: &Value, cwd: &Path, paths: &[PathBuf]) -> String {
    if let Some(command) = input.get("command").and_then(Value::as_str)
        && tool == "bash"
    {
        return format!("bash: {command}");
    }
    match paths.first() {
        Some(path) => {
            let path = path.strip_prefix(cwd).unwrap_or(path);
            format!("{tool} {}", path.display())
        }
        None => {
            let mut text = input.to_string();
            if text.len() > 200 {
                let end = text.floor_char_boundary(200);
                text.truncate(end);
                text.push('…');
            }
            format!("{tool} {text}")
        }
    }
}

/// Returns the change that `write` or `edit` would make, as a unified diff. `None` if it is larger
/// than [`MAX_DIFF`].
fn diff(tool: &str, input: &Value, paths: &[PathBuf]) -> Option<String> {
    let path = paths.first()?;
    let name = path.display().to_string();
    let patch = match tool {
        "write" => {
            let new = input.get("content")?.as_str()?;
            let size = std::fs::metadata(path).map_or(0, |file| file.len());
            if size > MAX_DIFF as u64 || new.len() > MAX_DIFF {
                return None;
            }
            let old = pi_base::regular_file::read_text(path).unwrap_or_default();
            Changes::between(&old, new).patch(&name, DIFF_CONTEXT)
        }
        "edit" => {
            let edits = input.get("edits")?.as_array()?;
            let patches = edits.iter().filter_map(|edit| {
                let text = |name: &str| edit.get(name).and_then(Value::as_str);
                let (old, new) = (text("oldText")?, text("newText")?);
                Some(Changes::between(old, new).patch(&name, DIFF_CONTEXT))
            });
            patches.collect::<Vec<_>>().join("\n")
        }
        _ => return None,
    };
    (patch.len() <= MAX_DIFF).then_some(patch)
}

/// Returns facts about a call of a built-in tool.
fn annotations(access: &Access) -> Option<PermissionAnnotations> {
    match access {
        Access::Other => None,
        Access::Read(_) => Some(PermissionAnnotations {
            read_only_hint: true,
            destructive_hint: false,
        }),
        Access::Write(_) | Access::Bash(_) => Some(PermissionAnnotations {
            read_only_hint: false,
            destructive_hint: true,
        }),
    }
}
