//! Names and keys that extensions want and pi has itself: their authors are told as of
//! those that another extension has.

use super::AgentSession;
use crate::resources::keybindings::Keybindings;

impl AgentSession {
    /// Of the extensions that have just been loaded.
    pub(super) async fn report_clashes(&self) {
        for flag in self.extensions.flags() {
            if (self.config.is_own_option)(&flag.name) {
                let path = self.extensions.path_of(flag.extension);
                let text = format!(
                    "Flag \"--{}\" conflicts with pi's own option, which gets what the user gives",
                    flag.name
                );
                self.warn(&path, "load", text).await;
            }
        }
        // Where a terminal is drawn on the mode tells of keys itself; the others read none.
        if self.config.mode != "rpc" || !self.extensions.has_shortcuts() {
            return;
        }
        let (keybindings, _) = Keybindings::load(&self.keybindings_path());
        for problem in self.extensions.shortcuts(&keybindings).problems {
            let path = self.extensions.path_of(problem.extension);
            self.warn(&path, "load", problem.text).await;
        }
    }
}
