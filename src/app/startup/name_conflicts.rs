//! Warns authors about names of extensions that pi itself uses.

use crate::{AgentSession, Mode};
use pi_extensions::OwnNames;
use pi_resources::keybindings::Keybindings;

impl AgentSession {
    /// Checks the extensions that have just been loaded.
    pub(crate) async fn report_name_conflicts(&self) {
        let mode = self.config.mode;
        // Clients run the commands of extensions, and see who brought a tool.
        let own = match mode {
            Mode::Line => self.config.own_names,
            Mode::Print | Mode::Json | Mode::Rpc => OwnNames {
                is_option: self.config.own_names.is_option,
                ..OwnNames::NONE
            },
        };
        // Print and JSON mode read no keys.
        let reads_keys = matches!(mode, Mode::Line | Mode::Rpc) && self.extensions.has_shortcuts();
        let keybindings = reads_keys.then(|| Keybindings::load(&self.keybindings_path()).0);
        for conflict in self.extensions.name_conflicts(&own, keybindings.as_ref()) {
            let path = self.extensions.path_of(conflict.extension);
            self.warn(&path, "load", conflict.text).await;
        }
    }
}
