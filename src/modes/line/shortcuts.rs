//! Keyboard shortcuts of extensions. Line mode does not read single keys: `/shortcut` lists the
//! shortcuts and runs one by name.

use std::sync::Arc;

use super::commands::CommandOutput;
use super::sanitize::{extension_name, one_line};
use pi_app::AgentSession;
use pi_extensions::Shortcuts;
use pi_resources::keybindings::Keybindings;

fn shortcuts(session: &AgentSession) -> Shortcuts {
    let (keybindings, _) = Keybindings::load(&session.keybindings_path());
    session.extensions().shortcuts(&keybindings)
}

pub(super) async fn run(session: &Arc<AgentSession>, key: &str) -> CommandOutput {
    let shortcuts = shortcuts(session);
    if key.is_empty() {
        return Ok(list(session, &shortcuts));
    }
    let key = key.to_ascii_lowercase();
    let found = shortcuts.active.iter().find(|one| one.key == key);
    let Some(found) = found else {
        return Err(format!("No extension has the key {}", one_line(&key)));
    };
    session.extensions().run_shortcut(found).await;
    Ok(String::new())
}

fn list(session: &AgentSession, shortcuts: &Shortcuts) -> String {
    let keys = shortcuts.active.iter().map(|one| {
        let what = one.description.as_deref().map(one_line).unwrap_or_default();
        let from = session.extensions().path_of(one.extension);
        format!("{:<20} {what} [{}]", one.key, extension_name(&from))
    });
    let conflicts = shortcuts.conflicts.iter().map(|one| one.text.clone());
    let lines: Vec<String> = keys.chain(conflicts).collect();
    match lines.is_empty() {
        true => "No extension has registered a key.".to_string(),
        false => lines.join("\n"),
    }
}
