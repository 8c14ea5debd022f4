//! Handlers and shortcuts of extensions for commands and keys of the user.

use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::Extensions;
use crate::api::user_bash::{self, UserBash};
use crate::diagnostics::name_conflicts::{
    NameConflict, OwnNames, Shortcuts, find_conflicts, resolve_shortcuts,
};
use crate::registry::ShortcutRegistration;
use pi_resources::keybindings::Keybindings;

impl Extensions {
    /// Asks the handlers of `user_bash` how to run a command that the user typed with `!`.
    pub async fn user_bash(
        &self,
        command: &str,
        exclude_from_context: bool,
        cwd: &str,
        cancel: &CancellationToken,
    ) -> UserBash {
        // The extensions that are being loaded may guard commands.
        let generation = self.wait_ready(cancel).await;
        if !self.is_replacing() && !generation.has_handlers("user_bash") {
            return UserBash::RunLocally;
        }
        let event = || {
            json!({
                "command": command,
                "excludeFromContext": exclude_from_context,
                "cwd": cwd,
            })
        };
        let emission = self.deliver("user_bash", event, cancel).await;
        // The command was aborted while the extensions were being loaded.
        if self.is_replacing() {
            return UserBash::Failed("Operation aborted".to_owned());
        }
        if let Some(problem) = emission.block_reason {
            return UserBash::Failed(problem);
        }
        let result = emission.result.unwrap_or_default();
        match user_bash::choose(&generation, &result) {
            Ok(chosen) => chosen,
            Err(error) => UserBash::Failed(error.message),
        }
    }

    pub fn has_shortcuts(&self) -> bool {
        self.with_registry(|registry| !registry.shortcuts().is_empty())
    }

    /// Returns the active shortcuts and their conflicts.
    pub fn shortcuts(&self, keybindings: &Keybindings) -> Shortcuts {
        self.with_registry(|registry| resolve_shortcuts(registry, keybindings))
    }

    /// Returns the names that extensions and pi have in common; those of keys only with
    /// `keybindings`.
    pub fn name_conflicts(
        &self,
        own: &OwnNames,
        keybindings: Option<&Keybindings>,
    ) -> Vec<NameConflict> {
        self.with_registry(|registry| find_conflicts(registry, own, keybindings))
    }

    /// Calls the handler of a shortcut and waits until it ends. An exception becomes an
    /// `extension_error`.
    pub async fn run_shortcut(&self, shortcut: &ShortcutRegistration) {
        let generation = self.current();
        let run = self.actions().and_then(|actions| actions.current_run());
        let call = json!({
            "extension": shortcut.extension,
            "shortcut": shortcut.id,
            "key": shortcut.key,
            "run": run,
        });
        let event = format!("shortcut:{}", shortcut.key);
        let _open = generation.host.open_calls.begin(shortcut.extension, &event);
        if let Err(failure) = generation.call("runShortcut", &call).await {
            let extension_path = generation.host.registry.lock().path(shortcut.extension);
            self.show_error(failure.to_error(extension_path, event))
                .await;
        }
    }
}
