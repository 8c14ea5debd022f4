//! Asks the user about tool calls, as the setting `permissions` says. The question precedes the
//! handlers of `tool_call`. No extension sees it, answers it or closes it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::decision_log::{self, Record};
use super::permission_question::UserAnswer;
use super::permission_rules::RulesOfSession;
use crate::AgentSession;
use crate::redaction::{redact_text, redact_value};
use pi_agent::permission::PermissionOption;
use pi_agent::run::Refusal;
use pi_ai::message::ToolCall;
use pi_permissions::{Access, BaseFolders, Call, Decision, Unreadable, Verdict};
use pi_tools::files::paths;

/// The rules from answers of the user and the open questions of one session.
#[derive(Default)]
pub(crate) struct Approvals {
    /// Rules from answers that hold for this session.
    pub(super) session_rules: Mutex<Vec<String>>,
    /// Where the answers to open questions go, by the id of the request.
    pub(super) open: Mutex<HashMap<String, oneshot::Sender<UserAnswer>>>,
    /// Held while a question is open, so that child sessions ask one after the other.
    pub(super) asking: tokio::sync::Mutex<()>,
    /// Whether the client takes `permission_request` instead of dialogs.
    takes_requests: AtomicBool,
    /// The rules in the form of the last call; made again when a source changes.
    pub(super) compiled: Mutex<Option<Arc<RulesOfSession>>>,
    /// Mistakes in the settings that the user has been told of.
    reported: Mutex<Vec<String>>,
}

/// The result of [`AgentSession::approve`] for a call that may run.
#[derive(Default)]
pub(super) struct Approval {
    /// Whether rules or the user decided about the input. Otherwise every input may run.
    pub is_decided: bool,
    /// The files that a search has to leave out.
    pub unreadable: Option<Unreadable>,
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
        let question = self.approvals.open.lock().remove(id);
        if let Some(question) = question {
            // An error means that the run was aborted meanwhile.
            let _ = question.send(UserAnswer { option, reason });
        }
    }

    /// Closes open questions without an answer, because the client is gone.
    pub fn close_permission_requests(&self) {
        self.approvals.open.lock().clear();
    }

    /// Decides whether a call with this input may run, by rules or by asking the user. Fails with the
    /// reason if it may not.
    pub(super) async fn approve(
        &self,
        call: &ToolCall,
        input: &Value,
        cancel: &CancellationToken,
    ) -> Result<Approval, Refusal> {
        let user_session = self.user_session();
        let compiled = self.permission_rules();
        for mistake in &compiled.mistakes {
            let is_new = !user_session.approvals.reported.lock().contains(mistake);
            if is_new {
                let reported = &user_session.approvals.reported;
                reported.lock().push(mistake.clone());
                user_session
                    .report("<session>", "permissions", mistake)
                    .await;
            }
        }
        if compiled.rules.allow_everything() {
            return Ok(Approval::default());
        }
        let cwd = self.cwd();
        let (name, input_copy) = (call.name.clone(), input.clone());
        let base_folders = BaseFolders {
            cwd: cwd.clone(),
            home: Some(self.config.paths.home.clone()),
        };
        let rules = compiled.rules.clone();
        let deciding = tokio::task::spawn_blocking(move || {
            let access = access(&name, &input_copy, &base_folders.cwd);
            let call = Call {
                tool: &name,
                input: &input_copy,
                access: &access,
            };
            let decision = rules.decide(&call, &base_folders);
            let unreadable = match &access {
                Access::Read(paths) if name == "grep" => {
                    let root = paths.first();
                    root.and_then(|root| rules.unreadable_in(root, &base_folders))
                }
                _ => None,
            };
            (decision, access, unreadable)
        });
        let (mut decision, access, unreadable) = match deciding.await {
            Ok(decided) => decided,
            Err(error) => {
                let reason = format!(
                    "pi failed while it applied the rules of the setting \"permissions\", so the call \
                     does not run: {error}"
                );
                return Err(refusal(reason));
            }
        };
        if decision.verdict == Verdict::Ask
            && decision.rule.is_none()
            && let Some(mistake) = compiled.mistakes.first()
        {
            decision.reason = format!("{}; {mistake}", decision.reason);
        }
        let outcome = match decision.verdict {
            Verdict::Allow => Outcome {
                is_allowed: true,
                decided_by: "rule",
                answer: None,
                reason: decision.reason.clone(),
            },
            Verdict::Deny => Outcome {
                is_allowed: false,
                decided_by: "rule",
                answer: None,
                reason: format!("The call of {} was denied: {}.", call.name, decision.reason),
            },
            Verdict::Ask => {
                self.ask_permission(call, input, &decision, &access, cancel)
                    .await
            }
        };
        self.log_decision(call, input, &decision, &outcome).await;
        match outcome.is_allowed {
            true => Ok(Approval {
                is_decided: true,
                unreadable,
            }),
            false => Err(refusal(outcome.reason)),
        }
    }

    /// Asks the user, and records the rules of the answer. Without a user, or without an answer, the
    /// call does not run.
    async fn ask_permission(
        &self,
        call: &ToolCall,
        input: &Value,
        decision: &Decision,
        access: &Access,
        cancel: &CancellationToken,
    ) -> Outcome {
        let user_session = self.user_session();
        let approvals = &user_session.approvals;
        let takes_requests = approvals.takes_requests.load(Ordering::Relaxed);
        let can_ask = takes_requests || user_session.ui.supports("select");
        if !user_session.config.has_ui || !can_ask {
            return Outcome {
                is_allowed: false,
                decided_by: "nobody",
                answer: None,
                reason: format!(
                    "The call of {} needs the permission of the user, and no user can be asked \
                     here: {}. Go on without it, or say which rule in \"permissions.allow\" of {} \
                     would allow it.",
                    call.name,
                    decision.reason,
                    user_session.config.paths.global_settings().display(),
                ),
            };
        }
        let request = self.permission_request(call, input, decision, access);
        let asking = async {
            let _turn = approvals.asking.lock().await;
            match takes_requests {
                true => user_session.ask_client(request).await,
                false => user_session.ask_in_dialog(&request).await,
            }
        };
        let answer = tokio::select! {
            answer = asking => answer,
            () = cancel.cancelled() => None,
        };
        let Some(UserAnswer { option, reason }) = answer else {
            let (decided_by, reason) = match cancel.is_cancelled() {
                true => ("aborted", "Operation aborted".to_owned()),
                false => (
                    "nobody",
                    format!(
                        "The question whether {} may run was closed without an answer.",
                        call.name
                    ),
                ),
            };
            return Outcome {
                is_allowed: false,
                decided_by,
                answer: None,
                reason,
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
                approvals.session_rules.lock().extend(rules);
            }
            PermissionOption::AllowAlways => user_session.remember(&decision.remember).await,
        }
        Outcome {
            is_allowed: option != PermissionOption::Deny,
            decided_by: "user",
            answer: Some(option),
            reason: denied(),
        }
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
        let user_session = self.user_session();
        let file = decision_log::file(&user_session.config.paths.agent_dir);
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
        user_session.report("<session>", "permissions", text).await;
    }
}

fn refusal(reason: String) -> Refusal {
    Refusal {
        reason,
        terminate: false,
    }
}

/// Finds the part of a call that rules look at. May access the file system.
fn access(tool: &str, input: &Value, cwd: &Path) -> Access {
    let path = |resolve: fn(&str, &Path) -> PathBuf| {
        let path = input.get("path").and_then(Value::as_str);
        path.map(|path| resolve(path, cwd))
    };
    match tool {
        "bash" => match input.get("command").and_then(Value::as_str) {
            Some(line) => Access::Bash(line.to_owned()),
            None => Access::Other,
        },
        "read" => Access::Read(path(paths::resolve_for_reading).into_iter().collect()),
        "grep" | "find" | "ls" => {
            Access::Read(vec![path(paths::resolve).unwrap_or_else(|| cwd.to_owned())])
        }
        "write" | "edit" => Access::Write(path(paths::resolve).into_iter().collect()),
        _ => Access::Other,
    }
}
