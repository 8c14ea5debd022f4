//! What a session offers to its extensions. The app room implements it; nothing
//! here may wait for JavaScript, because JavaScript may be waiting for it.

use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::agent::event::{Event, UiMethod};
use crate::agent::queue::Delivery;
use crate::ai::message::{UserContent, js_number_if_any};
use crate::ai::model::{Model, ThinkingLevel};
use crate::compaction::Compacted;
use crate::extensions::child::{SecondBegin, SecondSession, SecondSet, SetBegin};
use crate::extensions::events::turn_end::Draft;
use crate::extensions::registry::ExtensionId;
use crate::session::LooseSession;
use crate::session::message::CustomMessage;
use crate::tools::ToolOptions;

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
    /// `None` for `nextTurn`, which is no queue.
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
    /// Whether the model is to answer; `false` also keeps a run from going on for it.
    pub trigger_turn: Option<bool>,
    pub deliver_as: Option<DeliverAs>,
    /// Of a user's message: `/name` runs commands, skills and templates are expanded.
    pub expand_prompt_templates: bool,
    /// Who is told when it comes to nothing.
    #[serde(skip)]
    pub from: Option<ExtensionId>,
}

/// How full the model's context is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ContextUsage {
    /// `None` right after a compaction, until the model answered again.
    pub tokens: Option<u64>,
    pub context_window: u64,
    #[serde(serialize_with = "js_number_if_any")]
    pub percent: Option<f64>,
}

/// Whether an extension vetoed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Cancelled {
    pub cancelled: bool,
}

/// `ctx.navigateTree`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NavigateOptions {
    /// Whether the branch that is left is summarised.
    pub summarize: Option<bool>,
    pub custom_instructions: Option<String>,
    /// The instructions take the place of pi's own instead of being added.
    pub replace_instructions: Option<bool>,
    /// Of the summary, or of the target if there is none.
    pub label: Option<String>,
}

/// Where `ctx.navigateTree` came to.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Navigated {
    pub cancelled: bool,
    /// The user stopped it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub aborted: bool,
    /// What the user said there, to be changed and said again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub editor_text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary_entry: Option<Value>,
}

impl Navigated {
    /// An extension vetoed.
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
pub trait Actions: Send + Sync {
    /// Hands an event to the mode; waits when the mode is slow.
    async fn emit(&self, event: Event);
    /// Hands over what nobody answers; never waits.
    fn show(&self, method: UiMethod);
    /// Takes away what is shown: whoever showed it is gone.
    fn clear_shown(&self);

    /// Whether there is a user to ask.
    fn has_ui(&self) -> bool;
    /// Whether who is there can be shown or asked this, by its name in `ctx.ui`.
    fn ui_supports(&self, method: &str) -> bool {
        let _ = method;
        true
    }
    /// `interactive`, `rpc`, `json` or `print`.
    fn mode(&self) -> &'static str;

    /// Whether providers may ask the network for their models now.
    fn fetches_models(&self) -> bool;
    /// Whether what the project brings is loaded, which nobody is asked about.
    fn is_project_trusted(&self) -> bool;
    fn cwd(&self) -> String;
    fn model(&self) -> Option<Arc<Model>>;
    fn is_idle(&self) -> bool;
    fn has_pending_messages(&self) -> bool;
    /// The number of the run that is going on.
    fn run(&self) -> Option<u64>;
    /// Handlers of `agent_end` have begun; the run that ends is at rest.
    fn rest(&self, run: u64);
    fn abort(&self);
    /// Ends the program when the session is idle.
    fn shutdown(&self);
    fn context_usage(&self) -> Option<ContextUsage>;
    fn system_prompt(&self) -> String;

    fn send_message(&self, message: CustomMessage, options: SendOptions) -> ActionResult<()>;
    fn send_user_message(&self, content: UserContent, options: SendOptions) -> ActionResult<()>;
    /// These four give the id of the entry that says it.
    fn append_entry(&self, custom_type: &str, data: Option<Value>) -> ActionResult<String>;
    /// The model is told of it when the conversation is read from the session again.
    fn append_message(&self, message: CustomMessage) -> ActionResult<String>;
    /// Whether the session could take it.
    fn check_draft(&self, draft: &Draft) -> ActionResult<()>;
    /// `entries`: what the model would be told if these were taken, entry by entry;
    /// `pending`: the messages that wait.
    fn preview(&self, drafts: &[Draft]) -> Value;
    fn set_session_name(&self, name: &str) -> ActionResult<String>;
    fn set_label(&self, entry: &str, label: Option<&str>) -> ActionResult<String>;
    fn session_name(&self) -> Option<String>;

    /// Global and project settings, merged.
    fn settings(&self) -> Value;
    /// As `ctx.scopedModels` has them.
    fn scoped_models(&self) -> Value;
    /// What the system prompt is made of.
    fn system_prompt_options(&self) -> Value;
    /// The user is asked something until the guard is dropped.
    fn ui_prompt(&self, method: &UiMethod) -> Box<dyn Send>;
    /// How built-in tools are made here.
    fn tool_options(&self) -> ToolOptions;
    fn active_tools(&self) -> Vec<String>;
    fn set_active_tools(&self, names: Vec<String>);
    /// As `pi.getAllTools` returns it.
    fn all_tools(&self) -> Value;
    /// As `pi.getCommands` returns it.
    fn commands(&self) -> Value;
    /// Tools were registered after the start: offers them to the model.
    fn tools_changed(&self);
    fn thinking_level(&self) -> ThinkingLevel;
    fn set_thinking_level(&self, level: ThinkingLevel);

    /// The session's entries from index `since` on (from 0 if `id` is not this
    /// session's), and what surrounds them: JSON of `Since` in
    /// `js/modules/pi-coding-agent/session-manager/view.ts`.
    fn session_since(&self, id: &str, since: usize) -> String;
    /// JSON of the messages, model and thinking level that the model would see.
    fn session_context(&self) -> String;

    /// Providers came or went: the session's own model may be another now.
    fn models_changed(&self);
    /// `given` is the model as the extension has it, which may have changed its limits, or
    /// made it. Handlers of `model_select` are waited for; where the one that asks is
    /// `queued` itself they are called out of turn.
    async fn set_model(
        &self,
        provider: &str,
        id: &str,
        given: Option<Value>,
        queued: bool,
    ) -> ActionResult<bool>;

    /// The themes that are loaded, and which one the settings choose.
    fn themes(&self) -> Value;
    /// Remembers the theme in the settings.
    fn set_theme(&self, name: &str) -> ActionResult<()>;

    async fn wait_for_idle(&self);
    /// The same of the agent alone, whatever else is at work.
    async fn wait_for_run(&self);
    /// Another session or another set of extensions is being put in place; or,
    /// for who wants to go elsewhere in this session, a summary is being written.
    fn is_held(&self, for_navigation: bool) -> bool;
    async fn new_session(&self, parent: Option<String>) -> ActionResult<Cancelled>;
    /// A new session to write to before it is entered; `None` if an extension vetoed.
    async fn prepare_session(&self, parent: Option<String>) -> ActionResult<Option<LooseSession>>;
    async fn enter_session(&self, prepared: LooseSession) -> ActionResult<()>;
    async fn switch_session(&self, path: String) -> ActionResult<Cancelled>;
    async fn fork(&self, entry: String, position: Option<String>) -> ActionResult<Cancelled>;
    /// Stops the run and compacts the conversation.
    async fn compact(&self, focus: Option<String>) -> ActionResult<Compacted>;
    async fn navigate_tree(
        &self,
        target: String,
        options: NavigateOptions,
    ) -> ActionResult<Navigated>;
    async fn reload(&self) -> ActionResult<()>;
    /// Loads extensions for a session beside this one, before it begins.
    async fn second_extensions(&self, begin: SetBegin) -> ActionResult<SecondSet>;
    /// A session beside this one, which the extension runs.
    async fn second_session(&self, begin: SecondBegin) -> ActionResult<Arc<dyn SecondSession>>;
}
