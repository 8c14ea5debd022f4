//! Warns authors about flags and keys of extensions that pi itself uses.

use crate::AgentSession;
use pi_resources::keybindings::Keybindings;

impl AgentSession {
    /// Checks the extensions that have just been loaded.
    pub(crate) async fn report_name_conflicts(&self) {
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
        // Interactive modes report key conflicts themselves; print and JSON mode read no keys.
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
