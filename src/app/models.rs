//! The model and the thinking level: chosen by the user, a client or an extension, and stored as
//! defaults for the next session.

use std::sync::Arc;

use serde::Serialize;
use serde_json::json;

use super::AgentSession;
use super::command::{ModelChangeSource, ModelReference};
use super::error::{CommandError, ErrorCode};
use super::prompt::PromptError;
use pi_agent::event::Event;
use pi_ai::model::{Model, ThinkingLevel};
use pi_ai::models::selection::{
    self, CliModel, ScopedModel, SelectError, SessionChoice, StartOptions,
};

/// The model and the thinking level after `cycle_model`.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CycledModel {
    pub model: Arc<Model>,
    pub thinking_level: ThinkingLevel,
    /// Whether only the models of `--models` were cycled through.
    pub is_scoped: bool,
}

impl AgentSession {
    /// Chooses the first model of a session: from the command line, the session file, the settings,
    /// or the first usable one. Also loads the context from the session file.
    pub(super) fn choose_model(&self) -> Result<(), SelectError> {
        let choice = &self.config.model;
        let provider = choice.provider.as_deref();
        let cli = match (provider, choice.model.as_deref()) {
            (provider, Some(pattern)) => {
                Some(selection::cli_model(&self.models, provider, pattern)?)
            }
            (Some(provider), None) => Some(selection::provider_model(&self.models, provider)?),
            (None, None) => None,
        };
        let from_parent = self.child_link.model.clone().map(|model| CliModel {
            model,
            thinking: None,
            warning: None,
        });
        let cli = cli.or(from_parent);
        let values = self.settings.values();
        let patterns = match choice.scope.as_slice() {
            [] => values.enabled_models.clone().unwrap_or_default(),
            patterns => patterns.to_vec(),
        };
        let scope = selection::scope(&self.models, &patterns);
        let context = self.state.lock().session.build_context();
        let previous = (!context.messages.is_empty()).then(|| SessionChoice {
            model: context
                .model
                .as_ref()
                .map(|model| (model.provider.clone(), model.model_id.clone())),
            thinking: context
                .thinking_level
                .as_deref()
                .and_then(ThinkingLevel::parse),
        });
        let start = selection::start_model(
            &self.models,
            &StartOptions {
                cli: cli.as_ref(),
                cli_thinking: choice.thinking,
                scope: &scope.models,
                session: previous.as_ref(),
                default_model: values
                    .default_provider
                    .as_deref()
                    .zip(values.default_model.as_deref()),
                default_thinking: values.default_thinking_level,
            },
        );
        {
            let mut notes = self.pending_warnings.lock();
            notes.extend(cli.as_ref().and_then(|cli| cli.warning.clone()));
            notes.extend(scope.warnings);
            notes.extend(
                [self.models.error(), self.models.auth().error()]
                    .into_iter()
                    .flatten(),
            );
            if cli.is_none() && previous.is_none() {
                notes.extend(self.unknown_default_warning(start.model.as_ref()));
            }
            notes.extend(start.fallback);
            let warnings = context.warnings.iter().map(ToString::to_string);
            notes.extend(warnings);
        }
        let mut state = self.state.lock();
        state.context = context.messages;
        state.model = start.model;
        state.thinking = start.thinking;
        state.scope = scope.models;
        // A fork, or a session that an extension prepared, may contain these entries already.
        let is_stored = context.model.is_some_and(|is_stored| {
            let chosen = state.model.as_ref();
            chosen.is_some_and(|model| {
                model.provider == is_stored.provider && model.id == is_stored.model_id
            })
        });
        let is_stored =
            is_stored && context.thinking_level.as_deref() == Some(state.thinking.as_str());
        // Without an entry the resumed session would use the default level of the settings at that
        // time.
        state.thinking_not_persisted = previous.is_some() && context.thinking_level.is_none();
        let fresh = previous.is_none() && !is_stored;
        if let Some(error) = fresh
            .then(|| state.append_initial_entries().err())
            .flatten()
        {
            self.pending_warnings.lock().push(error.to_string());
        }
        Ok(())
    }

    /// Returns a warning if the settings name an unknown model; `used` is the model that replaces
    /// it.
    fn unknown_default_warning(&self, used: Option<&Arc<Model>>) -> Option<String> {
        let values = self.settings.values();
        let (provider, id) = (&values.default_provider, &values.default_model);
        let (provider, id) = provider.as_ref().zip(id.as_ref())?;
        if self.models.find(provider, id).is_some() {
            return None;
        }
        let known = self.models.providers().contains(provider);
        let what = match known {
            true => format!("defaultModel: {provider} has no model \"{id}\""),
            false => format!("defaultProvider: there is no provider \"{provider}\""),
        };
        let instead = match used {
            Some(model) => format!("Using {}", model.reference()),
            None => "Choose another with --model or /model".to_owned(),
        };
        Some(format!("settings.json, {what}. {instead}"))
    }

    /// Replaces the model by its current definition after providers have changed. Returns to the
    /// model that [`Self::drop_missing_model`] has left, if it is there again.
    pub(super) fn refresh_model(&self) {
        let Some(model) = self.model() else {
            return self.return_to_model();
        };
        let found = self.models.find(&model.provider, &model.id);
        let Some(found) = found.filter(|found| *found != model) else {
            return;
        };
        let mut state = self.state.lock();
        if state.model.as_ref() == Some(&model) {
            state.model = Some(found);
        }
    }

    /// Returns the model of the session if a provider has it. The command line may have named a model
    /// that no provider has.
    pub(super) fn provided_model(&self) -> Option<Arc<Model>> {
        let model = self.model()?;
        self.models.find(&model.provider, &model.id).map(|_| model)
    }

    /// Leaves the model of the session, and tells the user, if a provider had it before a reload (then
    /// it is `before`) and no provider has it after the reload.
    pub(super) async fn drop_missing_model(&self, before: Option<Arc<Model>>) {
        let Some(model) = self.model() else { return };
        let was_provided = before.is_some_and(|before| before.reference() == model.reference());
        if !was_provided || self.models.find(&model.provider, &model.id).is_some() {
            return;
        }
        {
            let mut state = self.state.lock();
            if state.model.as_ref() != Some(&model) {
                return;
            }
            state.model = None;
            state.left_model = Some(model.clone());
        }
        let text = format!(
            "The model {} is gone: no provider has it after the reload. Choose another with /model, \
             or load its extension again",
            model.reference()
        );
        self.warn("<session>", "model", text).await;
    }

    /// Returns to the model that the session has left, if a provider has it and no other was chosen.
    fn return_to_model(&self) {
        let mut state = self.state.lock();
        if let Some(left) = &state.left_model
            && let Some(found) = self.models.find(&left.provider, &left.id)
            && state.model.is_none()
        {
            state.model = Some(found);
            state.left_model = None;
        }
    }

    pub fn model(&self) -> Option<Arc<Model>> {
        self.state.lock().model.clone()
    }

    /// Sets the model from the next run on, and the default of new sessions.
    pub(super) async fn set_model(
        &self,
        model: ModelReference,
        source: ModelChangeSource,
    ) -> Result<Arc<Model>, CommandError> {
        let model = match model {
            ModelReference::Named { provider, id } => self.usable_model(&provider, &id)?,
            ModelReference::Defined(model) if self.models.has_auth(&model.provider) => {
                Arc::new(*model)
            }
            ModelReference::Defined(model)
                if self.models.find(&model.provider, &model.id).is_some() =>
            {
                let text = format!("No API key for {}", model.reference());
                return Err(CommandError::new(ErrorCode::ModelNotFound, text));
            }
            ModelReference::Defined(model) => self.usable_model(&model.provider, &model.id)?,
        };
        self.use_model(model.clone(), None, source).await?;
        Ok(model)
    }

    fn usable_model(&self, provider: &str, id: &str) -> Result<Arc<Model>, CommandError> {
        let found = self.models.find(provider, id);
        found
            .filter(|model| self.models.has_auth(&model.provider))
            .ok_or_else(|| {
                let text = format!("Model not found: {provider}/{id}");
                CommandError::new(ErrorCode::ModelNotFound, text)
            })
    }

    /// Switches to the next usable model; returns `None` if there is no other.
    pub(super) async fn cycle_model(
        &self,
        backward: bool,
    ) -> Result<Option<CycledModel>, CommandError> {
        let scope = self.state.lock().scope.clone();
        let is_scoped = !scope.is_empty();
        let models = match is_scoped {
            true => scope,
            false => {
                let unscoped = |model| ScopedModel {
                    model,
                    thinking: None,
                };
                let available = self.models.available();
                available.into_iter().map(unscoped).collect()
            }
        };
        if models.len() < 2 {
            return Ok(None);
        }
        let current = self.model();
        let position = current.and_then(|current| {
            let same = |one: &ScopedModel| one.model.reference() == current.reference();
            models.iter().position(same)
        });
        let step = match backward {
            true => models.len() - 1,
            false => 1,
        };
        let next = position.map_or(0, |position| (position + step) % models.len());
        let ScopedModel { model, thinking } = models[next].clone();
        self.use_model(model.clone(), thinking, ModelChangeSource::Cycled)
            .await?;
        Ok(Some(CycledModel {
            model,
            thinking_level: self.thinking_level(),
            is_scoped,
        }))
    }

    /// Sets the model. `thinking` overrides the current thinking level.
    async fn use_model(
        &self,
        model: Arc<Model>,
        thinking: Option<ThinkingLevel>,
        chosen: ModelChangeSource,
    ) -> Result<(), CommandError> {
        let cancel = self.handler_cancel.token();
        self.acquire_session_lock(&cancel).await?;
        let previous = {
            let mut state = self.state.lock();
            state
                .writable()?
                .append_model_change(&model.provider, &model.id)?;
            state.model.replace(model.clone())
        };
        self.report_save_error(self.settings.set_default_model(&model.provider, &model.id));
        // The level falls back to the default if the previous model could not reason; it is clamped
        // to the new model's levels.
        let level = match (thinking, &previous) {
            (Some(level), _) => level,
            (None, Some(previous)) if !previous.reasoning => {
                let settings = self.settings.values();
                settings.default_thinking_level.unwrap_or_default()
            }
            _ => self.thinking_level(),
        };
        self.set_thinking_level(level);
        let changed = previous
            .as_ref()
            .is_none_or(|previous| previous.reference() != model.reference());
        if changed {
            let event = || {
                json!({
                    "model": model,
                    "previousModel": previous,
                    "source": match chosen {
                        ModelChangeSource::Cycled => "cycle",
                        ModelChangeSource::Set | ModelChangeSource::InHandler => "set",
                    },
                })
            };
            let cancel = self.handler_cancel.token();
            let name = "model_select";
            match chosen {
                ModelChangeSource::InHandler if self.extensions.has_handlers(name) => {
                    self.extensions.call_handlers(name, event, &cancel).await;
                }
                ModelChangeSource::InHandler => {}
                ModelChangeSource::Set | ModelChangeSource::Cycled => {
                    self.extensions.deliver(name, event, &cancel).await;
                }
            }
        }
        Ok(())
    }

    pub fn thinking_level(&self) -> ThinkingLevel {
        self.state.lock().thinking
    }

    /// Sets the thinking level, clamped to the levels of the model.
    pub(super) fn set_thinking_level(&self, level: ThinkingLevel) {
        let (level, previous, is_wish) = {
            let mut state = self.state.lock();
            let level = match &state.model {
                Some(model) => model.clamp_thinking(level),
                None => level,
            };
            // A level that was clamped because the model cannot reason is not the user's wish, so
            // it does not become the default.
            let thinks = state.model.as_ref().is_some_and(|model| model.reasoning);
            if level == state.thinking {
                return;
            }
            let previous = std::mem::replace(&mut state.thinking, level);
            if let Err(error) = state.append_thinking_level() {
                tracing::warn!("{error}");
            }
            (level, previous, thinks || level != ThinkingLevel::Off)
        };
        if is_wish {
            self.report_save_error(self.settings.set_default_thinking_level(level));
        }
        let name = "thinking_level_select";
        let event = || json!({ "level": level, "previousLevel": previous });
        self.extensions.deliver_soon(name, event);
        self.emit_to_mode_soon(Event::ThinkingLevelChanged { level });
    }

    /// Returns the levels that the model offers.
    pub fn available_thinking_levels(&self) -> Vec<ThinkingLevel> {
        self.model()
            .map_or_else(|| vec![ThinkingLevel::Off], |model| model.thinking_levels())
    }

    /// Switches to the next level of the model; returns `None` if it offers only one.
    pub(super) fn cycle_thinking_level(&self) -> Option<ThinkingLevel> {
        let model = self.model()?;
        let levels = model.thinking_levels();
        if levels.len() < 2 {
            return None;
        }
        let current = self.thinking_level();
        let position = levels.iter().position(|level| *level == current);
        let next = levels[position.map_or(0, |position| (position + 1) % levels.len())];
        self.set_thinking_level(next);
        Some(next)
    }

    /// Fails unless a model is set and its provider has credentials.
    pub(super) async fn check_model(&self) -> Result<(), PromptError> {
        let model = self.model().ok_or_else(|| self.no_model())?;
        if self.models.has_auth(&model.provider) {
            return Ok(());
        }
        match self.models.credentials(&model).await {
            Ok(_) => Ok(()),
            Err(error) => Err(PromptError::Auth(error.to_string())),
        }
    }

    pub(super) fn no_model(&self) -> PromptError {
        PromptError::NoModel(self.models.no_model_text())
    }
}
