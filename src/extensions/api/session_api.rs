//! The interface of a session for its extensions; the application implements it. Nothing
//! here may wait for JavaScript, because JavaScript may be waiting for the call.
//!
//! Methods of `pi` and `ctx` that act on the session reach it by their names ([`SessionApi::call`]);
//! the application parses them into commands of the session. The rest of the trait is what this
//! layer itself needs.

use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::bridge::BridgeResult;
use crate::child::{ChildConfig, ChildExtensions, ChildExtensionsRequest, ChildSession};
use crate::events::turn_end::Draft;
use crate::registry::ExtensionId;
use pi_agent::event::{Event, UiMethod};
use pi_agent::queue::Delivery;
use pi_ai::message::js_number_or_null;
use pi_session::UnlockedSession;
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
    /// Answers a method of `pi` or `ctx` that acts on the session, without waiting. `args` is the
    /// JSON of [`SessionArgs`](super::session_args::SessionArgs).
    fn call_now(&self, method: &str, args: &str) -> BridgeResult;
    /// Answers a method of `pi` or `ctx` that takes time.
    async fn call(&self, method: &str, args: &str) -> BridgeResult;

    /// Sends an event to the mode; waits if the mode is slow.
    async fn emit(&self, event: Event);
    /// Sends a UI message without an answer to the mode; never waits.
    fn show(&self, method: UiMethod);
    /// Clears UI elements of a generation that is gone.
    fn clear_ui(&self);
    /// Returns whether there is a user who can answer dialogs.
    fn has_ui(&self) -> bool;
    /// Returns whether the mode supports this method of `ctx.ui`.
    fn ui_supports(&self, method: &str) -> bool;
    /// Emits that a dialog is open, until the guard is dropped.
    fn ui_prompt(&self, method: &UiMethod) -> Box<dyn Send>;
    /// Tells the mode that a dialog has ended without an answer; never waits.
    fn dialog_ended(&self, id: &str);

    fn cwd(&self) -> String;
    /// Returns the number of the current run.
    fn current_run(&self) -> Option<u64>;
    /// Returns whether providers may fetch lists of models from the network now.
    fn fetches_models(&self) -> bool;
    /// Returns the options of the session's built-in tools.
    fn tool_options(&self) -> ToolOptions;
    /// Offers tools that were registered after the start to the model.
    fn tools_changed(&self);
    /// Updates the session's model after providers were added or removed.
    fn models_changed(&self);

    /// Fails if the session cannot store the entry.
    fn check_draft(&self, draft: &Draft) -> ActionResult<()>;
    /// Returns the context with these entries (`entries`, one element per entry) and the
    /// queued messages (`pending`).
    fn preview(&self, drafts: &[Draft]) -> Value;
    /// Returns the session's entries from index `since` on (from 0 if `id` is another
    /// session's) and its state: JSON of `NewEntries` in
    /// `js/modules/pi-coding-agent/session-manager/view.ts`.
    fn session_since(&self, id: &str, since: usize) -> String;
    /// Returns JSON of the messages, model and thinking level that the model would get.
    fn session_context(&self) -> String;

    /// Waits for the end of the run alone, unlike `ctx.waitForIdle`.
    async fn wait_for_run(&self);
    /// Returns whether a session or generation is being replaced or, for navigation, a
    /// summary is being written.
    fn is_replacing(&self, for_navigation: bool) -> bool;
    /// Creates a session to write to before it is entered; `None` if an extension
    /// cancelled.
    async fn create_session(&self, parent: Option<String>)
    -> ActionResult<Option<UnlockedSession>>;
    /// Switches to a session from [`Self::create_session`]. Returns the result of
    /// `ctx.newSession`.
    async fn enter_session(&self, created: UnlockedSession) -> BridgeResult;
    /// Loads extensions for a child session that starts later.
    async fn load_child_extensions(
        &self,
        request: ChildExtensionsRequest,
    ) -> ActionResult<ChildExtensions>;
    /// Starts a child session.
    async fn open_child_session(&self, config: ChildConfig) -> ActionResult<Arc<dyn ChildSession>>;
}
