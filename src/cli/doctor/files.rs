//! Checks the user's files with values: settings, keys, models and key bindings.

use pi_base::regular_file;
use std::fs;
use std::io;
use std::path::Path;

use serde_json::Value;

use super::Doctor;
use pi_ai::auth::store::AuthStore;
use pi_ai::models::registry::ModelRegistry;
use pi_extensions::ineffective_limits;
use pi_resources::keybindings::Keybindings;
use pi_resources::settings::{KEYS, SettingsScope, parse_settings};

/// Settings of version 1.5.2 of the original that pi does not have.
const NEWER_SETTINGS: [&str; 19] = [
    "cacheWarming",
    "codemode",
    "enableAnalytics",
    "externalEditor",
    "fullscreenCopyOnSelect",
    "fullscreenExitOutput",
    "fullscreenScrollbar",
    "fullscreenWheelScrollLines",
    "httpIdleTimeoutMs",
    "mcpServers",
    "modelThinkingLevels",
    "outputPad",
    "selfUpdateCommand",
    "sessionShareDestination",
    "showCacheMissNotices",
    "tuiMode",
    "trackingId",
    "warnings",
    "websocketConnectTimeoutMs",
];

pub(super) fn settings(doctor: &mut Doctor) {
    let warnings = doctor.settings.take_warnings();
    if let Some(why) = &doctor.paths.distrust {
        let message = format!("What the project brings is left out: {why}");
        let project = doctor.paths.project_dir();
        doctor.note(&project, message, "To let it count once: pi --approve");
    }
    for (scope, path) in [
        (SettingsScope::Global, doctor.paths.global_settings()),
        (SettingsScope::Project, doctor.paths.project_settings()),
    ] {
        if scope == SettingsScope::Project && doctor.paths.ignores_project() {
            continue;
        }
        let text = match regular_file::read_text(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => {
                doctor.error(
                    &path,
                    format!("It cannot be read: {error}"),
                    "Make it readable",
                );
                continue;
            }
        };
        if text.trim().is_empty() {
            continue;
        }
        match parse_settings(&text) {
            Ok(Value::Object(object)) => {
                for warning in warnings.iter().filter(|warning| warning.scope == scope) {
                    let message = warning
                        .message
                        .replace(&format!("{}: ", path.display()), "");
                    doctor.warning(
                        &path,
                        message,
                        "Correct the value, or remove it (docs/settings.md)",
                    );
                }
                for message in ineffective_limits(&doctor.settings.values_of(scope)) {
                    doctor.warning(&path, message, "Correct the name, or remove it");
                }
                for key in object.keys().map(String::as_str) {
                    if NEWER_SETTINGS.contains(&key) {
                        let message = format!(
                            "\"{key}\" is of newer versions of the original; nothing here goes by it"
                        );
                        doctor.note(&path, message, "It is kept for them");
                    } else if !KEYS.contains(&key) {
                        let message = format!("\"{key}\" means nothing to this version of pi");
                        doctor.note(&path, message, "It is kept; remove it if it is a mistake");
                    }
                }
                if serde_json::from_str::<Value>(&text).is_err() {
                    doctor.note(
                        &path,
                        "It has comments or trailing commas, which the TypeScript pi does not read",
                        "Remove them if you use both",
                    );
                }
            }
            Ok(_) => doctor.error(
                &path,
                "It has to hold one object; it is not in effect",
                "Write { } around it",
            ),
            Err(error) => doctor.error(
                &path,
                format!("It is no JSON and not in effect: {error}"),
                "Correct it at that place; until then pi does not write to it either",
            ),
        }
    }
    let values = doctor.settings.values();
    let global = doctor.paths.global_settings();
    let models = ModelRegistry::load(&doctor.paths.agent_dir);
    if let (Some(provider), Some(id)) = (&values.default_provider, &values.default_model)
        && models.find(provider, id).is_none()
    {
        doctor.warning(
            &global,
            format!("The default model {provider}/{id} is not known"),
            "Choose one of: pi --list-models",
        );
    }
    if let Some(shell) = &values.shell_path
        && !doctor.paths.resolve(shell, &doctor.paths.cwd).exists()
    {
        let message = format!("shellPath names {shell}, which does not exist");
        doctor.error(&global, message, "Correct it, or remove it");
    }
}

pub(super) fn auth(doctor: &mut Doctor) {
    let path = doctor.paths.auth();
    check_permissions(doctor, &path);
    let store = AuthStore::open(path.clone());
    if let Some(error) = store.error() {
        doctor.error(
            &path,
            error.to_string(),
            "Correct the file: no key in it is in effect",
        );
    } else if let Ok(text) = regular_file::read_text(&path) {
        let usable = store.providers();
        let entries: Value = serde_json::from_str(&text).unwrap_or_default();
        let names = entries
            .as_object()
            .into_iter()
            .flat_map(|entries| entries.keys());
        for name in names.filter(|name| !usable.contains(name)) {
            doctor.warning(
                &path,
                format!("The entry of {name} cannot be used"),
                "It needs \"type\": \"api_key\" and \"key\", or \"type\": \"oauth\" with its tokens",
            );
        }
    }
    if ModelRegistry::load(&doctor.paths.agent_dir)
        .available()
        .is_empty()
    {
        doctor.note(
            &path,
            "There is no key for any model",
            "Set a variable such as ANTHROPIC_API_KEY, or try: pi --provider demo",
        );
    }
}

#[cfg(unix)]
fn check_permissions(doctor: &mut Doctor, path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    let mode = |path: &Path| fs::metadata(path).map(|meta| meta.permissions().mode() & 0o777);
    if let Ok(found) = mode(path)
        && found & 0o077 != 0
    {
        doctor.warning(
            path,
            format!("Others can read or write the keys (mode {found:o})"),
            format!("chmod 600 {}", path.display()),
        );
    }
    let dir = doctor.paths.agent_dir.clone();
    if let Ok(found) = mode(&dir)
        && found & 0o022 != 0
    {
        doctor.warning(
            &dir,
            format!("Others can put extensions there, which pi would run (mode {found:o})"),
            format!("chmod go-w {}", dir.display()),
        );
    }
}

#[cfg(not(unix))]
fn check_permissions(_: &mut Doctor, _: &Path) {}

pub(super) fn models(doctor: &mut Doctor) {
    let path = doctor.paths.models();
    if let Some(error) = ModelRegistry::load(&doctor.paths.agent_dir).error() {
        doctor.error(&path, error, "Correct it: until then that is not in effect");
    }
}

pub(super) fn keybindings(doctor: &mut Doctor) {
    let path = doctor.paths.keybindings();
    let (bindings, problems) = Keybindings::load(&path);
    doctor.add_diagnostics(problems, "Correct or remove the entry");
    for (key, actions) in bindings.conflicts {
        doctor.warning(
            &path,
            format!("{key} is bound to {}", actions.join(" and ")),
            "Bind it to one of them",
        );
    }
}
