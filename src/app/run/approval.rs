//! Asks the user about tool calls, as the setting `permissions` says. The question precedes the
//! handlers of `tool_call`. No extension sees it, answers it or closes it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::decision_log::{self, Record};
use crate::AgentSession;
use crate::redaction::{redact_text, redact_value};
use pi_agent::event::{Event, UiAnswer, UiMethod};
use pi_agent::permission::{
    PermissionAnnotations, PermissionLocation, PermissionOption, PermissionRequest,
};
use pi_agent::run::Refusal;
use pi_ai::message::ToolCall;
use pi_permissions::{Access, Answer, Call, Decision, Place, Rules};
use pi_resources::settings::{PermissionSettings, SettingsScope, UnmatchedCalls};
use pi_tools::files::paths;
use pi_tools::text::diff::Changes;

/// Largest diff that a question shows, in bytes.
const MAX_DIFF: usize = 64 << 10;
/// Unchanged lines around each change in a diff.
const DIFF_CONTEXT: usize = 4;

/// The rules from answers of the user and the open questions of one session.
#[derive(Default)]
pub(crate) struct Approvals {
    /// Rules from answers that hold for this session.
    session_rules: Mutex<Vec<String>>,
    /// Where the answers to open questions go, by the id of the request.
    open: Mutex<HashMap<String, oneshot::Sender<UserAnswer>>>,
    /// Whether the client takes `permission_request` instead of dialogs.
    takes_requests: AtomicBool,
    /// The rules in the form of the last call; made again when a source changes.
    compiled: Mutex<Option<Arc<Compiled>>>,
    /// Mistakes in the settings that the user has been told of.
    reported: Mutex<Vec<String>>,
}

/// The rules that hold, with the settings and answers that they were made of.
struct Compiled {
    sources: [Source; 2],
    session_rules: Vec<String>,
    rules: Arc<Rules>,
    /// Why some rules cannot be used.
    mistakes: Vec<String>,
}

/// The setting `permissions` of one file.
#[derive(PartialEq)]
enum Source {
    Missing,
    Value(Value),
    /// The file cannot be used, and may have the setting.
    Broken,
}

/// The answer of the user to a question.
struct UserAnswer {
    option: PermissionOption,
    /// Why, in the words of the user.
    reason: Option<String>,
}

/// The final decision about a call, with its author.
struct Outcome {
    is_allowed: bool,
    /// See [`Record::decided_by`].
    decided_by: &'static str,
    answer: Option<PermissionOption>,
    /// Why the call does not run, for the model.
    reason: String,
}

impl AgentSession {
    /// Sets whether the client takes `permission_request` instead of dialogs.
    pub fn set_permission_requests(&self, takes: bool) {
        self.approvals
            .takes_requests
            .store(takes, Ordering::Relaxed);
    }

    /// Delivers the answer to a `permission_request`. Answers to closed questions are ignored.
    pub fn answer_permission(&self, id: &str, option: PermissionOption, reason: Option<String>) {
        let asked = self.approvals.open.lock().remove(id);
        if let Some(asked) = asked {
            // An error means that the run was aborted meanwhile.
            let _ = asked.send(UserAnswer { option, reason });
        }
    }

    /// Closes open questions without an answer, because the client is gone.
    pub fn close_permission_requests(&self) {
        self.approvals.open.lock().clear();
    }

    /// Decides whether a call with this input may run, by rules or by asking the user. Fails with the
    /// reason if it may not. Returns `false` if there are no rules, so that every input may run.
    pub(super) async fn approve(
        &self,
        call: &ToolCall,
        input: &Value,
        cancel: &CancellationToken,
    ) -> Result<bool, Refusal> {
        let compiled = self.permission_rules();
        for mistake in &compiled.mistakes {
            let is_new = !self.approvals.reported.lock().contains(mistake);
            if is_new {
                self.approvals.reported.lock().push(mistake.clone());
                self.report("<session>", "permissions", mistake).await;
            }
        }
        if compiled.rules.allow_everything() {
            return Ok(false);
        }
        let cwd = self.cwd();
        let (name, input_copy) = (call.name.clone(), input.clone());
        let place = Place {
            cwd: cwd.clone(),
            home: Some(self.config.paths.home.clone()),
        };
        let rules = compiled.rules.clone();
        let deciding = tokio::task::spawn_blocking(move || {
            let files = locations(&name, &input_copy, &place.cwd);
            let decision = decide(&rules, &name, &input_copy, &files, &place);
            (decision, files)
        });
        let (mut decision, files) = match deciding.await {
            Ok(decided) => decided,
            Err(error) => {
                let reason = format!(
                    "pi failed while it applied the rules in \"permissions\" of settings.json, so the \
                     call does not run: {error}"
                );
                return Err(refusal(reason));
            }
        };
        if decision.answer == Answer::Ask
            && decision.rule.is_none()
            && let Some(mistake) = compiled.mistakes.first()
        {
            decision.reason = format!("{}; {mistake}", decision.reason);
        }
        let outcome = match decision.answer {
            Answer::Allow => Outcome {
                is_allowed: true,
                decided_by: "rule",
                answer: None,
                reason: decision.reason.clone(),
            },
            Answer::Deny => Outcome {
                is_allowed: false,
                decided_by: "rule",
                answer: None,
                reason: format!("The call of {} was denied: {}.", call.name, decision.reason),
            },
            Answer::Ask => {
                self.ask_permission(call, input, &decision, &files, cancel)
                    .await
            }
        };
        self.log_decision(call, input, &decision, &outcome).await;
        match outcome.is_allowed {
            true => Ok(true),
            false => Err(refusal(outcome.reason)),
        }
    }

    /// Returns the rules of the settings and of answers in this session.
    fn permission_rules(&self) -> Arc<Compiled> {
        // An extension chooses the settings of its child sessions, but not these.
        let settings = self.child_link.user_settings.as_ref();
        let settings = settings.unwrap_or(&self.settings);
        let sources = [SettingsScope::Global, SettingsScope::Project].map(|scope| {
            match settings.raw_value(scope, "permissions") {
                Some(value) => Source::Value(value),
                None if settings.may_have(scope, "permissions") => Source::Broken,
                None => Source::Missing,
            }
        });
        let session_rules = self.approvals.session_rules.lock().clone();
        let mut compiled = self.approvals.compiled.lock();
        if let Some(compiled) = &*compiled
            && compiled.sources == sources
            && compiled.session_rules == session_rules
        {
            return compiled.clone();
        }
        let made = Arc::new(compile(sources, session_rules));
        *compiled = Some(made.clone());
        made
    }

    /// Asks the user, and records the rules of the answer. Without a user, or without an answer, the
    /// call does not run.
    async fn ask_permission(
        &self,
        call: &ToolCall,
        input: &Value,
        decision: &Decision,
        files: &Files,
        cancel: &CancellationToken,
    ) -> Outcome {
        let is_child = self.child_link.is_child;
        let takes_requests = self.approvals.takes_requests.load(Ordering::Relaxed);
        if is_child || !self.config.has_ui || !takes_requests && !self.ui.supports("select") {
            return Outcome {
                is_allowed: false,
                decided_by: "nobody",
                answer: None,
                reason: format!(
                    "The call of {} needs the permission of the user, and nobody can be asked \
                     here: {}. Go on without it, or say which rule in \"permissions.allow\" of {} \
                     would allow it.",
                    call.name,
                    decision.reason,
                    self.config.paths.global_settings().display(),
                ),
            };
        }
        let request = self.permission_request(call, input, decision, files);
        let asking = async {
            match takes_requests {
                true => self.ask_client(request).await,
                false => self.ask_in_dialog(&request).await,
            }
        };
        let answer = tokio::select! {
            answer = asking => answer,
            () = cancel.cancelled() => None,
        };
        let Some(UserAnswer { option, reason }) = answer else {
            return Outcome {
                is_allowed: false,
                decided_by: "nobody",
                answer: None,
                reason: match cancel.is_cancelled() {
                    true => "Operation aborted".to_owned(),
                    false => format!(
                        "The question whether {} may run was closed without an answer.",
                        call.name
                    ),
                },
            };
        };
        let denied = || {
            let reason = reason.as_deref().filter(|text| !text.trim().is_empty());
            let reason = reason.map(|text| format!(": {text}")).unwrap_or_default();
            format!("The user denied this call of {}{reason}", call.name)
        };
        match option {
            PermissionOption::AllowOnce | PermissionOption::Deny => {}
            PermissionOption::AllowSession => {
                let rules = decision.remember.iter().cloned();
                self.approvals.session_rules.lock().extend(rules);
            }
            PermissionOption::AllowAlways => self.remember(&decision.remember).await,
        }
        Outcome {
            is_allowed: option != PermissionOption::Deny,
            decided_by: "user",
            answer: Some(option),
            reason: denied(),
        }
    }

    /// Adds rules to the user's settings. If that fails, they hold for this session.
    async fn remember(&self, rules: &[String]) {
        let mut is_added = false;
        let written = self.settings.edit(SettingsScope::Global, |settings| {
            let permissions = settings.entry("permissions").or_insert_with(|| json!({}));
            let Value::Object(permissions) = permissions else {
                return;
            };
            let allow = permissions.entry("allow").or_insert_with(|| json!([]));
            if let Value::Array(allow) = allow {
                is_added = true;
                for rule in rules.iter().cloned().map(Value::String) {
                    if !allow.contains(&rule) {
                        allow.push(rule);
                    }
                }
            }
        });
        let error = match written {
            Err(error) => Some(error.to_string()),
            Ok(_) if !is_added => Some(format!(
                "\"permissions.allow\" in {} is no list of rules, and nothing was added to it",
                self.config.paths.global_settings().display()
            )),
            Ok(_) => None,
        };
        if let Some(error) = error {
            let text = format!("{error}. The answer holds for this session");
            self.report("<session>", "permissions", text).await;
            self.approvals.session_rules.lock().extend_from_slice(rules);
        }
    }

    /// Makes the question about a call.
    fn permission_request(
        &self,
        call: &ToolCall,
        input: &Value,
        decision: &Decision,
        files: &Files,
    ) -> PermissionRequest {
        let mut options = vec![PermissionOption::AllowOnce];
        if !decision.remember.is_empty() {
            options.extend([
                PermissionOption::AllowSession,
                PermissionOption::AllowAlways,
            ]);
        }
        options.push(PermissionOption::Deny);
        let paths = match files {
            Files::Read(paths) | Files::Write(paths) => paths.as_slice(),
            Files::Bash(_) | Files::Unknown => &[],
        };
        let locations = paths.iter().map(|path| PermissionLocation {
            path: path.display().to_string(),
        });
        PermissionRequest {
            id: uuid::Uuid::new_v4().to_string(),
            tool: call.name.clone(),
            tool_call_id: call.id.clone(),
            title: title(&call.name, input, &self.cwd(), paths),
            locations: locations.collect(),
            diff: diff(&call.name, input, paths),
            annotations: annotations(files),
            input: input.clone(),
            options,
            reason: Some(decision.reason.clone()).filter(|text| !text.is_empty()),
            rules: decision.remember.clone(),
        }
    }

    /// Asks a client that knows `permission_request`.
    async fn ask_client(&self, request: PermissionRequest) -> Option<UserAnswer> {
        let (asked, answered) = oneshot::channel();
        let options = request.options.clone();
        let open = OpenQuestion {
            session: self,
            id: request.id.clone(),
        };
        self.approvals.open.lock().insert(open.id.clone(), asked);
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
    async fn ask_in_dialog(&self, request: &PermissionRequest) -> Option<UserAnswer> {
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

    /// Adds a decision to the log, without known secrets. A failure is reported to the user.
    async fn log_decision(
        &self,
        call: &ToolCall,
        input: &Value,
        decision: &Decision,
        outcome: &Outcome,
    ) {
        let mut rule = decision.rule.clone();
        let mut reason = match outcome.decided_by {
            "user" => decision.reason.clone(),
            _ => outcome.reason.clone(),
        };
        // A reason repeats the command.
        redact_text(&mut reason);
        rule.as_mut().into_iter().for_each(redact_text);
        // A lock in the expression below would be held while `cwd` takes it.
        let session = self.state.lock().session.id().to_string();
        let record = Record {
            session,
            cwd: self.cwd().display().to_string(),
            tool: call.name.clone(),
            tool_call_id: call.id.clone(),
            input: {
                let mut input = input.clone();
                redact_value(&mut input);
                input
            },
            is_allowed: outcome.is_allowed,
            decided_by: outcome.decided_by,
            answer: outcome.answer,
            rule,
            reason,
        };
        let file = decision_log::file(&self.config.paths.agent_dir);
        let path = file.clone();
        let written = tokio::task::spawn_blocking(move || record.append(&path)).await;
        let error = match written {
            Ok(Ok(())) => return,
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        let text = format!(
            "A decision about {} is not in the log: cannot write {}: {error}. Check its owner and the \
             space on the disk",
            call.name,
            file.display()
        );
        self.report("<session>", "permissions", text).await;
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

fn refusal(reason: String) -> Refusal {
    Refusal {
        reason,
        terminate: false,
    }
}

/// Makes the rules. A project only adds rules to ask and to deny. If a rule cannot be read, calls
/// that no rule matches are asked about: that rule may have denied them.
fn compile(sources: [Source; 2], session_rules: Vec<String>) -> Compiled {
    let read = |source: &Source| match source {
        Source::Missing => Default::default(),
        Source::Value(value) => {
            let members = [("permissions".to_owned(), value.clone())];
            PermissionSettings::of_file(&Map::from_iter(members))
        }
        Source::Broken => {
            let mistake =
                "a settings file cannot be read or is no valid JSON, and may have rules".to_owned();
            (PermissionSettings::default(), vec![mistake])
        }
    };
    let (user, mut mistakes) = read(&sources[0]);
    let (project, more) = read(&sources[1]);
    mistakes.extend(more);
    let allow = [user.allow, session_rules.clone()].concat();
    let ask = [user.ask, project.ask].concat();
    let deny = [user.deny, project.deny].concat();
    let default = match user.default.max(project.default) {
        UnmatchedCalls::Allow => Answer::Allow,
        UnmatchedCalls::Ask => Answer::Ask,
        UnmatchedCalls::Deny => Answer::Deny,
    };
    let (mut rules, errors) = Rules::parse([&allow, &ask, &deny], default);
    mistakes.extend(errors.iter().map(ToString::to_string));
    if !mistakes.is_empty() {
        rules.default = rules.default.max(Answer::Ask);
    }
    for mistake in &mut mistakes {
        *mistake = format!("{mistake}; correct \"permissions\" in settings.json");
    }
    if !project.allow.is_empty() {
        tracing::info!(
            "rules of the project that allow are left out: {:?}",
            project.allow
        );
    }
    Compiled {
        sources,
        session_rules,
        rules: Arc::new(rules),
        mistakes,
    }
}

/// The files that a call uses, as far as its input names them.
enum Files {
    /// The line of `bash`, whose files the rules find themselves.
    Bash(String),
    Read(Vec<PathBuf>),
    Write(Vec<PathBuf>),
    Unknown,
}

/// Finds the files of a call. May access the file system.
fn locations(tool: &str, input: &Value, cwd: &Path) -> Files {
    let path = |resolve: fn(&str, &Path) -> PathBuf| {
        let path = input.get("path").and_then(Value::as_str);
        path.map(|path| resolve(path, cwd))
    };
    match tool {
        "bash" => match input.get("command").and_then(Value::as_str) {
            Some(line) => Files::Bash(line.to_owned()),
            None => Files::Unknown,
        },
        "read" => Files::Read(path(paths::resolve_for_reading).into_iter().collect()),
        "grep" | "find" | "ls" => {
            Files::Read(vec![path(paths::resolve).unwrap_or_else(|| cwd.to_owned())])
        }
        "write" | "edit" => Files::Write(path(paths::resolve).into_iter().collect()),
        _ => Files::Unknown,
    }
}

/// Applies the rules to a call. May access the file system.
fn decide(rules: &Rules, tool: &str, input: &Value, files: &Files, place: &Place) -> Decision {
    let access = match files {
        Files::Bash(line) => Access::Bash(line),
        Files::Read(paths) => Access::Read(paths.clone()),
        Files::Write(paths) => Access::Write(paths.clone()),
        Files::Unknown => Access::Other,
    };
    let call = Call {
        tool,
        input,
        access,
    };
    rules.decide(&call, place)
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
fn annotations(files: &Files) -> Option<PermissionAnnotations> {
    match files {
        Files::Unknown => None,
        Files::Read(_) => Some(PermissionAnnotations {
            read_only_hint: true,
            destructive_hint: false,
        }),
        Files::Write(_) | Files::Bash(_) => Some(PermissionAnnotations {
            read_only_hint: false,
            destructive_hint: true,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(user: Source, project: Source) -> Compiled {
        compile([user, project], Vec::new())
    }

    #[test]
    fn a_project_adds_rules_to_ask_and_to_deny_only() {
        let user = json!({ "allow": ["bash(a)"], "default": "ask" });
        let project = json!({
            "allow": ["bash(b)"], "ask": ["bash(c)"], "deny": ["bash(d)"], "default": "allow",
        });
        let compiled = rules(Source::Value(user), Source::Value(project));
        let texts = |rules: &[pi_permissions::Rule]| -> Vec<String> {
            rules.iter().map(ToString::to_string).collect()
        };
        assert_eq!(texts(&compiled.rules.allow), ["bash(a)"]);
        assert_eq!(texts(&compiled.rules.ask), ["bash(c)"]);
        assert_eq!(texts(&compiled.rules.deny), ["bash(d)"]);
        assert_eq!(compiled.rules.default, Answer::Ask);
        assert!(compiled.mistakes.is_empty());
    }

    #[test]
    fn unknown_rules_are_not_none() {
        for broken in [Source::Broken, Source::Value(json!("bash"))] {
            let compiled = rules(broken, Source::Missing);
            assert_eq!(compiled.rules.default, Answer::Ask);
            assert_eq!(compiled.mistakes.len(), 1);
        }
        let none = rules(Source::Missing, Source::Missing);
        assert!(none.rules.allow_everything());
    }
}
