//! Decides whether the project is trusted, before anything of it is read, installed or run:
//! extensions of the user answer first, then what is recorded, then the user.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::error::{CommandError, ErrorCode};
use crate::run::json_object;
use crate::startup::find_user_extensions;
use crate::{AgentSession, Mode};
use pi_agent::event::{Event, ProjectTrustRequest, UiAnswer, UiMethod};
use pi_resources::paths::Paths;
use pi_resources::settings::Settings;
use pi_resources::trust::{self, Question, TrustAnswer};

/// Time that a client has to answer the question. A client that does not know the question never
/// answers, and its session has to start all the same.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(120);
const BUSY: &str = "Wait for the current response to finish before the question about the project";
/// Label of the answer that asks for the differences.
const SHOW_CHANGES: &str = "Show the changes";

/// When a decision is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TrustMoment {
    /// No extension is loaded yet.
    Start,
    /// Extensions run, and files may have changed since the last decision.
    Later,
}

/// The result of a question that the user asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrustOutcome {
    /// Whether the folder brings something that needs trust. Otherwise no question was asked.
    pub needs_trust: bool,
    /// Whether the user has answered. Otherwise nothing was changed.
    pub answered: bool,
    /// Whether what the folder brings is used now.
    pub trusted: bool,
}

/// The response of the user to the question.
enum DialogResponse {
    Answer(TrustAnswer),
    /// The user looked at the changes.
    Again,
    Dismissed,
}

impl AgentSession {
    /// Decides about the project in `cwd` and loads its settings if it is trusted. Returns whether
    /// a generation of extensions was loaded for the decision.
    pub(crate) async fn resolve_trust(&self, cwd: &Path, moment: TrustMoment) -> bool {
        if self.child_link.is_child {
            return false;
        }
        let locations = &self.config.paths;
        let needs_trust = match moment {
            TrustMoment::Start => trust::has_something_to_trust(&locations.home, cwd),
            TrustMoment::Later => trust::recheck(locations, cwd),
        };
        if trust::is_overridden() || !needs_trust {
            return false;
        }
        let current = || locations.with_cwd(cwd);
        let paths = current();
        let was_trusted = moment == TrustMoment::Start && !paths.ignores_project();
        let is_preloaded = moment == TrustMoment::Start && self.preload(&paths).await;
        if is_preloaded || moment == TrustMoment::Later {
            self.ask_extensions(&paths).await;
        }
        if self.config.has_ui {
            self.ask_user(&current()).await;
        }
        let paths = current();
        if let Some(note) = trust::note(&paths) {
            self.pending_warnings.lock().push(note);
        }
        if moment == TrustMoment::Start && was_trusted == paths.ignores_project() {
            self.settings.switch_project(&paths);
            self.add_settings_warnings("startup");
            self.apply_settings();
        }
        is_preloaded
    }

    /// Loads the extensions of the user that may answer. Returns `false` if there are none.
    async fn preload(&self, paths: &Paths) -> bool {
        let untrusted = paths.for_extension(paths.agent_dir.clone(), false);
        let settings = Settings::load(&untrusted);
        let found = find_user_extensions(&self.config, &untrusted, &settings);
        let answering: Vec<_> = found
            .into_iter()
            .filter(|found| trust::may_decide(&found.path))
            .collect();
        if answering.is_empty() {
            return false;
        }
        let actions: std::sync::Arc<dyn pi_extensions::api::session_api::SessionApi> = self.arc();
        // Failures are reported by the load of all extensions.
        self.extensions.load(answering).await;
        self.extensions.bind(std::sync::Arc::downgrade(&actions));
        true
    }

    /// Emits `project_trust` and applies the first answer.
    async fn ask_extensions(&self, paths: &Paths) {
        let event = json_object(json!({ "cwd": paths.cwd }));
        let emission = self.emit_to_handlers("project_trust", event).await;
        let Some(result) = emission.result else {
            return;
        };
        let trusted = match result.get("trusted").and_then(Value::as_str) {
            Some("yes") => true,
            Some("no") => false,
            _ => return,
        };
        let remembers = result.get("remember").and_then(Value::as_bool) == Some(true);
        let applied = match (remembers, trusted) {
            (false, trusted) => {
                trust::answer_of_extension(paths, trusted);
                Ok(())
            }
            (true, true) => trust::answer(paths, TrustAnswer::Trust),
            (true, false) => trust::answer(paths, TrustAnswer::Deny),
        };
        if let Err(error) = applied {
            self.pending_warnings.lock().push(error.to_string());
        }
    }

    /// Asks the user, if nothing else has decided.
    async fn ask_user(&self, paths: &Paths) {
        while let Some(question) = trust::question(paths) {
            let answer = match self.ask_about_trust(&question).await {
                DialogResponse::Answer(answer) => answer,
                DialogResponse::Again => continue,
                // The next start asks again.
                DialogResponse::Dismissed => TrustAnswer::DenySession,
            };
            if let Err(error) = trust::answer(paths, answer) {
                self.pending_warnings.lock().push(error.to_string());
            }
            return;
        }
    }

    /// Asks the user anew about the project and loads everything again if the answer differs. Fails
    /// while the agent works, because a reload could not follow.
    pub(crate) async fn ask_trust_anew(&self) -> Result<TrustOutcome, CommandError> {
        let paths = self.paths();
        let wrong = |error: trust::TrustError| {
            CommandError::new(ErrorCode::InvalidCommand, error.to_string())
        };
        if !trust::has_something_to_trust(&paths.home, &paths.cwd) {
            return Ok(TrustOutcome {
                needs_trust: false,
                answered: false,
                trusted: !paths.ignores_project(),
            });
        }
        if self.state.lock().work.is_working() {
            return Err(CommandError::new(ErrorCode::Busy, BUSY));
        }
        let answer = loop {
            let question = trust::question_anew(&paths).map_err(wrong)?;
            match self.ask_about_trust(&question).await {
                DialogResponse::Answer(answer) => break answer,
                DialogResponse::Again => {}
                DialogResponse::Dismissed => {
                    return Ok(TrustOutcome {
                        needs_trust: true,
                        answered: false,
                        trusted: !paths.ignores_project(),
                    });
                }
            }
        };
        trust::answer(&paths, answer).map_err(wrong)?;
        let is_ignored = self.paths().ignores_project();
        if is_ignored != paths.ignores_project() {
            self.reload_with(None).await?;
        }
        Ok(TrustOutcome {
            needs_trust: true,
            answered: true,
            trusted: !is_ignored,
        })
    }

    async fn ask_about_trust(&self, question: &Question) -> DialogResponse {
        let answers = question.answers();
        let mut options: Vec<String> = answers.iter().map(|(label, _)| label.clone()).collect();
        let diff = question.diff();
        options.extend(diff.is_some().then(|| SHOW_CHANGES.to_owned()));
        self.emit_to_mode(Event::ProjectTrustRequest(ProjectTrustRequest {
            cwd: question.folder.display().to_string(),
            reason: question.reason,
            resources: question.listed.clone(),
            options: options.clone(),
        }))
        .await;
        let limit = (self.config.mode == Mode::Rpc).then_some(CLIENT_TIMEOUT);
        let method = UiMethod::Select {
            title: question.text(),
            options,
            timeout: limit.map(|limit| limit.as_millis() as u64),
        };
        let extensions = &self.extensions;
        let chosen = match extensions.request_dialog_within(self, method, limit).await {
            UiAnswer::Value(label) => label,
            UiAnswer::Confirmed(_) | UiAnswer::Cancelled => return DialogResponse::Dismissed,
        };
        if chosen == SHOW_CHANGES
            && let Some(diff) = diff
        {
            self.notify(diff, "info").await;
            return DialogResponse::Again;
        }
        let answer = answers.into_iter().find(|(label, _)| *label == chosen);
        answer.map_or(DialogResponse::Dismissed, |(_, answer)| {
            DialogResponse::Answer(answer)
        })
    }
}
