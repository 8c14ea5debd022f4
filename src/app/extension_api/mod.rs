//! Implements [`SessionApi`], the operations that extensions have on the session.

mod calls;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;

use super::command::{CommandResult, SessionCommand};
use super::error::CommandError;
use super::ui::dialog_events::DialogEvents;
use super::{AgentSession, Mode};
use pi_agent::event::{Event, UiEnd, UiMethod};
use pi_extensions::api::session_api::{ActionError, ActionResult, SessionApi};
use pi_extensions::api::session_manager;
use pi_extensions::child::{ChildConfig, ChildExtensions, ChildExtensionsRequest, ChildSession};
use pi_extensions::{BridgeResult, Draft};
use pi_session::UnlockedSession;
use pi_tools::ToolOptions;

pub(crate) use calls::{scoped_models, to_json};

#[async_trait]
impl SessionApi for AgentSession {
    fn call_now(&self, method: &str, args: &str) -> BridgeResult {
        calls::call_now(self, method, args)
    }

    async fn call(&self, method: &str, args: &str) -> BridgeResult {
        calls::call(self, method, args).await
    }

    async fn emit(&self, event: Event) {
        self.emit_to_mode(event).await;
    }

    fn show(&self, method: UiMethod) {
        self.ui.show(method);
    }

    fn clear_ui(&self) {
        self.ui.clear();
    }

    fn has_ui(&self) -> bool {
        self.config.has_ui
    }

    fn ui_supports(&self, method: &str) -> bool {
        self.ui.supports(method)
    }

    fn ui_prompt(&self, method: &UiMethod) -> Box<dyn Send> {
        Box::new(DialogEvents::open(
            self.extensions.clone(),
            &self.ui.open_dialogs,
            method,
        ))
    }

    fn dialog_ended(&self, id: &str) {
        let id = id.to_owned();
        self.emit_to_mode_soon(Event::ExtensionUiEnd(UiEnd { id }));
    }

    fn cwd(&self) -> String {
        AgentSession::cwd(self).display().to_string()
    }

    fn current_run(&self) -> Option<u64> {
        self.run_id()
    }

    fn fetches_models(&self) -> bool {
        // One prompt is over before the list has been fetched.
        let is_one_prompt = matches!(self.config.mode, Mode::Print | Mode::Json);
        !is_one_prompt && !super::is_offline()
    }

    fn tool_options(&self) -> ToolOptions {
        self.tools.options()
    }

    fn tools_changed(&self) {
        self.tools.refresh();
    }

    fn models_changed(&self) {
        self.refresh_model();
    }

    fn check_draft(&self, draft: &Draft) -> ActionResult<()> {
        let checked = self.validate_draft(draft);
        checked.map_err(|error| ActionError::new(error.to_string()))
    }

    fn preview(&self, drafts: &[Draft]) -> Value {
        self.preview_drafts(drafts)
    }

    fn session_since(&self, id: &str, since: usize) -> String {
        let state = self.state.lock();
        let session = &state.session;
        let path = session.path();
        // A session in memory has no folder.
        let dir = path.and_then(|path| path.parent()).unwrap_or(Path::new(""));
        session_manager::entries_since(session, path, dir, id, since)
    }

    fn session_context(&self) -> String {
        self.state.lock().session.context_json()
    }

    async fn wait_for_run(&self) {
        while self.is_busy() {
            let wait = self.activity.wait(|activity| !activity.has_run_task());
            wait.await;
        }
    }

    fn is_replacing(&self, for_navigation: bool) -> bool {
        self.switcher.lock.try_lock().is_err() || for_navigation && self.summary_lock.is_held()
    }

    async fn create_session(
        &self,
        parent: Option<String>,
    ) -> ActionResult<Option<UnlockedSession>> {
        let parent = parent.map(PathBuf::from);
        let created = AgentSession::create_session(self, parent).await;
        created.map_err(|error| ActionError::new(error.to_string()))
    }

    async fn enter_session(&self, created: UnlockedSession) -> BridgeResult {
        to_json(
            self.execute_detached(SessionCommand::EnterSession(Box::new(created)))
                .await,
        )
    }

    async fn load_child_extensions(
        &self,
        begin: ChildExtensionsRequest,
    ) -> ActionResult<ChildExtensions> {
        let session = self.arc();
        let load = async move { session.load_child_extensions(begin).await };
        let loaded = self.spawn(load).await;
        loaded.map_err(|error| ActionError::new(error.to_string()))
    }

    async fn open_child_session(&self, begin: ChildConfig) -> ActionResult<Arc<dyn ChildSession>> {
        let session = self.arc();
        let open = async move { session.open_child_session(begin).await };
        self.spawn(open)
            .await
            .unwrap_or_else(|error| Err(ActionError::new(error.to_string())))
    }
}

impl AgentSession {
    /// Executes a command as a task of its own. Commands that replace the session must finish even
    /// if the calling extension is unloaded.
    async fn execute_detached(&self, command: SessionCommand) -> CommandResult {
        let session = self.arc();
        self.spawn(async move { session.execute(command).await })
            .await
            .unwrap_or_else(|error| Err(CommandError::from(error.to_string())))
    }
}
