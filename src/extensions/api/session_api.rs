//! The interface of a session for its extensions; the application implements it. Nothing
//! here may wait for JavaScript, because JavaScript may be waiting for the call.

use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::child::{ChildConfig, ChildExtensions, ChildExtensionsRequest, ChildSession};
use crate::events::turn_end::Draft;
use crate::registry::ExtensionId;
use pi_agent::event::{Event, UiMethod};
use pi_agent::queue::Delivery;
use pi_ai::message::{UserContent, js_number_or_null};
use pi_ai::model::{Model, ThinkingLevel};
use pi_compaction::Compacted;
use pi_session::UnlockedSession;
use pi_session::message::CustomMessage;
use pi_tools::ToolOptions;

/// An error whose text is for the author of the extension.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ActionError(pub String);

impl ActionError {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

pub type ActionResult<T> = Result<T, ActionError>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum DeliverAs {
    Steer,
    FollowUp,
    NextTurn,
}

impl DeliverAs {
    /// Returns `None` for `nextTurn`, which has no queue.
    pub fn delivery(self) -> Option<Delivery> {
        match self {
            Self::Steer => Some(Delivery::Steer),
            Self::FollowUp => Some(Delivery::FollowUp),
            Self::NextTurn => None,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SendOptions {
    /// Whether the message starts a turn; `false` also keeps it from extending a run.
    pub trigger_turn: Option<bool>,
    pub deliver_as: Option<DeliverAs>,
    /// For user messages: whether `/name` runs commands, and skills and templates are
    /// expanded.
    pub expand_prompt_templates: bool,
    /// The extension that gets a report if the message is not delivered.
    #[serde(skip)]
    pub from: Option<ExtensionId>,
}

/// Usage of the model's context window.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ContextUsage {
    /// `None` right after a compaction, until the model answered again.
    pub tokens: Option<u64>,
    pub context_window: u64,
    #[serde(serialize_with = "js_number_or_null")]
    pub percent: Option<f64>,
}

/// Whether an extension cancelled the action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Cancelled {
    pub cancelled: bool,
}

/// Options of `ctx.navigateTree`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NavigateOptions {
    /// Whether to summarize the branch that is left.
    pub summarize: Option<bool>,
    pub custom_instructions: Option<String>,
    /// Whether the instructions replace pi's own instead of being added.
    pub replace_instructions: Option<bool>,
    /// Label for the summary, or for the target without a summary.
    pub label: Option<String>,
}

/// Result of `ctx.navigateTree`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Navigated {
    pub cancelled: bool,
    /// Whether the user aborted it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub aborted: bool,
    /// The user message at the target, to be edited and sent again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub editor_text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary_entry: Option<Value>,
}

impl Navigated {
    /// The result after an extension cancelled.
    pub fn cancelled() -> Self {
        Self {
            cancelled: true,
            ..Self::default()
        }
    }

    pub fn aborted() -> Self {
        Self {
            cancelled: true,
            aborted: true,
            ..Self::default()
        }
    }
}

#[async_trait]
pub trait SessionApi: Send + Sync {
    /// Sends an event to the mode; waits if the mode is slow.
    async fn emit(&self, event: Event);
    /// Sends a UI message without an answer to the mode; never waits.
    fn show(&self, method: UiMethod);
    /// Clears UI elements of a generation that is gone.
    fn clear_ui(&self);

    /// Returns whether there is a user who can answer dialogs.
    fn has_ui(&self) -> bool;
    /// Returns whether the mode supports this method of `ctx.ui`.
    fn ui_supports(&self, method: &str) -> bool {
        let _ = method;
        true
    }
    /// Returns `interactive`, `rpc`, `json` or `print`.
    fn mode(&self) -> &'static str;

    /// Returns whether providers may fetch lists of models from the network now.
    fn fetches_models(&self) -> bool;
    /// Returns whether resources of the project are loaded.
    fn is_project_trusted(&self) -> bool;
    fn cwd(&self) -> String;
    fn model(&self) -> Option<Arc<Model>>;
    fn is_idle(&self) -> bool;
    fn has_pending_messages(&self) -> bool;
    /// Returns the number of the current run.
    fn current_run(&self) -> Option<u64>;
    /// Marks the run as idle; called when handlers of `agent_end` have started.
    fn mark_idle(&self, run: u64);
    fn abort(&self);
    /// Ends pi when the session is idle.
    fn shutdown(&self);
    fn context_usage(&self) -> Option<ContextUsage>;
    fn system_prompt(&self) -> String;

    fn send_message(&self, message: CustomMessage, options: SendOptions) -> ActionResult<()>;
    fn send_user_message(&self, content: UserContent, options: SendOptions) -> ActionResult<()>;
    /// Appends a custom entry. This method and the next ones return the entry's id.
    fn append_entry(&self, custom_type: &str, data: Option<Value>) -> ActionResult<String>;
    /// Appends a message that the model sees when the context is rebuilt from the session.
    fn append_message(&self, message: CustomMessage) -> ActionResult<String>;
    /// Fails if the session cannot store the entry.
    fn check_draft(&self, draft: &Draft) -> ActionResult<()>;
    /// Returns the context with these entries (`entries`, one element per entry) and the
    /// queued messages (`pending`).
    fn preview(&self, drafts: &[Draft]) -> Value;
    fn set_session_name(&self, name: &str) -> ActionResult<String>;
    fn set_label(&self, entry: &str, label: Option<&str>) -> ActionResult<String>;
    fn session_name(&self) -> Option<String>;

    /// Returns the merged global and project settings.
    fn settings(&self) -> Value;
    /// Returns the value of `ctx.scopedModels`.
    fn scoped_models(&self) -> Value;
    /// Returns the options that the system prompt is built from.
    fn system_prompt_options(&self) -> Value;
    /// Emits that a dialog is open, until the guard is dropped.
    fn ui_prompt(&self, method: &UiMethod) -> Box<dyn Send>;
    /// Returns the options of the session's built-in tools.
    fn tool_options(&self) -> ToolOptions;
    fn active_tools(&self) -> Vec<String>;
    fn set_active_tools(&self, names: Vec<String>);
    /// Returns the result of `pi.getAllTools`.
    fn all_tools(&self) -> Value;
    /// Returns the result of `pi.getCommands`.
    fn commands(&self) -> Value;
    /// Offers tools that were registered after the start to the model.
    fn tools_changed(&self);
    fn thinking_level(&self) -> ThinkingLevel;
    fn set_thinking_level(&self, level: ThinkingLevel);

    /// Returns the session's entries from index `since` on (from 0 if `id` is another
    /// session's) and its state: JSON of `NewEntries` in
    /// `js/modules/pi-coding-agent/session-manager/view.ts`.
    fn session_since(&self, id: &str, since: usize) -> String;
    /// Returns JSON of the messages, model and thinking level that the model would get.
    fn session_context(&self) -> String;

    /// Updates the session's model after providers were added or removed.
    fn models_changed(&self);
    /// Sets the model. `model` is the extension's model object, which may have changed
    /// limits or be new. Waits for handlers of `model_select`; if the caller is a `queued`
    /// handler, they are called out of order.
    async fn set_model(
        &self,
        provider: &str,
        id: &str,
        model: Option<Value>,
        queued: bool,
    ) -> ActionResult<bool>;

    /// Returns the loaded themes and the current one.
    fn themes(&self) -> Value;
    /// Stores the theme in the settings.
    fn set_theme(&self, name: &str) -> ActionResult<()>;

    async fn wait_for_idle(&self);
    /// Waits for the end of the run alone, unlike [`Self::wait_for_idle`].
    async fn wait_for_run(&self);
    /// Returns whether a session or generation is being replaced or, for navigation, a
    /// summary is being written.
    fn is_replacing(&self, for_navigation: bool) -> bool;
    async fn new_session(&self, parent: Option<String>) -> ActionResult<Cancelled>;
    /// Creates a session to write to before it is entered; `None` if an extension
    /// cancelled.
    async fn prepare_session(
        &self,
        parent: Option<String>,
    ) -> ActionResult<Option<UnlockedSession>>;
    async fn enter_session(&self, prepared: UnlockedSession) -> ActionResult<()>;
    async fn switch_session(&self, path: String) -> ActionResult<Cancelled>;
    async fn fork(&self, entry: String, position: Option<String>) -> ActionResult<Cancelled>;
    /// Aborts the run and compacts the conversation.
    async fn compact(&self, focus: Option<String>) -> ActionResult<Compacted>;
    async fn navigate_tree(
        &self,
        target: String,
        options: NavigateOptions,
    ) -> ActionResult<Navigated>;
    async fn reload(&self) -> ActionResult<()>;
    /// Loads extensions for a child session that starts later.
    async fn load_child_extensions(
        &self,
        request: ChildExtensionsRequest,
    ) -> ActionResult<ChildExtensions>;
    /// Starts a child session.
    async fn open_child_session(&self, config: ChildConfig) -> ActionResult<Arc<dyn ChildSession>>;
}
