//! Moves files and renames settings of earlier versions when a session starts. The moves are
//! those of the original, since both programs may find the same folder; nothing is overwritten.

use pi_base::regular_file;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::diagnostic::Diagnostic;
use crate::keybindings;
use crate::paths::Paths;
use crate::settings::{Settings, SettingsScope};
use pi_ai::auth::store::AuthStore;
use pi_base::file_lock::FileLock;

const PROGRAMS: [&str; 4] = ["fd", "rg", "fd.exe", "rg.exe"];

/// Runs all migrations. Returns messages about what was moved and what failed.
pub fn run(paths: &Paths) -> Vec<String> {
    let mut notes = Vec::new();
    let failed = |what: &str, error: &dyn std::fmt::Display| {
        format!("Could not move {what} to where pi looks for it: {error}")
    };
    match move_keys(paths) {
        Ok(providers) if providers.is_empty() => {}
        Ok(providers) => notes.push(format!("Moved to auth.json: {}", providers.join(", "))),
        Err(error) => notes.push(failed("keys", &error)),
    }
    if let Err(error) = move_sessions(paths) {
        notes.push(failed("sessions", &error));
    }
    if let Err(error) = move_programs(paths) {
        notes.push(failed("fd and rg", &error));
    }
    if let Err(error) = rename_actions(&paths.keybindings()) {
        notes.push(failed("keybindings.json", &error));
    }
    for (root, scope) in roots(paths) {
        let (old, new) = (root.join("commands"), root.join("prompts"));
        if !old.is_dir() || new.exists() {
            continue;
        }
        notes.push(match fs::rename(&old, &new) {
            Ok(()) => format!(
                "Renamed the {scope} folder commands to prompts: {}",
                new.display()
            ),
            Err(error) => failed(&old.display().to_string(), &error),
        });
    }
    notes
}

/// Warns of folders of earlier versions that are not read any more.
pub fn old_folders(paths: &Paths) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let mut warn = |dir: PathBuf, what: &str| {
        let message = format!(
            "{}: {what} are extensions today; move them to the folder extensions",
            dir.display()
        );
        found.push(Diagnostic::warning(&dir, message));
    };
    for (root, _) in roots(paths) {
        let hooks = root.join("hooks");
        if hooks.is_dir() {
            warn(hooks, "hooks");
        }
        let tools = root.join("tools");
        let entries = fs::read_dir(&tools).into_iter().flatten().flatten();
        let mut names = entries.map(|entry| entry.file_name().to_string_lossy().to_lowercase());
        if names.any(|name| !name.starts_with('.') && !PROGRAMS.contains(&name.as_str())) {
            warn(tools, "custom tools");
        }
    }
    found
}

/// Returns the folders with files of earlier versions. A project that is not trusted stays as it
/// is.
fn roots(paths: &Paths) -> Vec<(PathBuf, &'static str)> {
    let project = paths.trusted_project_dir();
    let project = project.map(|dir| (dir, "project's"));
    [(paths.agent_dir.clone(), "user's")]
        .into_iter()
        .chain(project)
        .collect()
}

/// Moves `oauth.json` and the setting `apiKeys` to `auth.json`, unless that exists. The old
/// ones are removed once the new file is complete.
fn move_keys(paths: &Paths) -> Result<Vec<String>, Box<dyn std::error::Error>> {
    let auth = paths.auth();
    if auth.exists() {
        return Ok(Vec::new());
    }
    let oauth_file = paths.agent_dir.join("oauth.json");
    let oauth = object_in(&oauth_file);
    let settings = object_in(&paths.global_settings());
    let api_keys = settings
        .as_ref()
        .and_then(|settings| settings.get("apiKeys"));
    let api_keys = api_keys.and_then(Value::as_object);
    if oauth.is_none() && api_keys.is_none() {
        return Ok(Vec::new());
    }
    let mut entries = Map::new();
    for (provider, credentials) in oauth.iter().flatten() {
        if let Value::Object(fields) = credentials {
            let mut entry = Map::from_iter([("type".to_owned(), Value::from("oauth"))]);
            entry.extend(fields.clone());
            entries.insert(provider.clone(), entry.into());
        }
    }
    for (provider, key) in api_keys.into_iter().flatten() {
        if let (Value::String(key), false) = (key, entries.contains_key(provider)) {
            let entry = serde_json::json!({"type": "api_key", "key": key});
            entries.insert(provider.clone(), entry);
        }
    }
    let providers: Vec<String> = entries.keys().cloned().collect();
    if !entries.is_empty() {
        AuthStore::open(auth).insert_all(entries)?;
    }
    if oauth.is_some() {
        fs::rename(&oauth_file, paths.agent_dir.join("oauth.json.migrated"))?;
    }
    if api_keys.is_some() {
        Settings::load(paths).edit(SettingsScope::Global, |settings| {
            settings.shift_remove("apiKeys");
        })?;
    }
    Ok(providers)
}

/// Returns the object in a file; `None` if the file is missing or invalid, which the code that
/// needs the file reports.
fn object_in(path: &Path) -> Option<Map<String, Value>> {
    let text = regular_file::read_text(path).ok()?;
    serde_json::from_str(&text).ok()
}

/// Moves session files that are in the agent folder itself.
fn move_sessions(paths: &Paths) -> io::Result<()> {
    let entries = match fs::read_dir(&paths.agent_dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    for path in entries.flatten().map(|entry| entry.path()) {
        if path
            .extension()
            .is_none_or(|extension| extension != "jsonl")
            || !path.is_file()
        {
            continue;
        }
        let Some(cwd) = cwd_of_session(&path)? else {
            continue;
        };
        let folder = paths.sessions().join(session_folder(&cwd));
        fs::create_dir_all(&folder)?;
        let Some(name) = path.file_name() else {
            continue;
        };
        let to = folder.join(name);
        if !to.exists() {
            fs::rename(&path, to)?;
        }
    }
    Ok(())
}

fn cwd_of_session(path: &Path) -> io::Result<Option<String>> {
    use std::io::{BufRead, BufReader, Read};
    /// Maximum length of a header in bytes.
    const MAX_HEADER_BYTES: u64 = 1 << 20;
    let mut line = Vec::new();
    BufReader::new(fs::File::open(path)?.take(MAX_HEADER_BYTES)).read_until(b'\n', &mut line)?;
    let header: Value = serde_json::from_slice(&line).unwrap_or_default();
    let is_session = header["type"] == "session";
    let cwd = header["cwd"]
        .as_str()
        .filter(|cwd| is_session && !cwd.is_empty());
    Ok(cwd.map(str::to_owned))
}

/// Same name as in `session`, which is a higher layer.
fn session_folder(cwd: &str) -> String {
    let relative = cwd.strip_prefix(['/', '\\']).unwrap_or(cwd);
    format!("--{}--", relative.replace(['/', '\\', ':'], "-"))
}

/// Moves pi's own programs, which were in `tools` before.
fn move_programs(paths: &Paths) -> io::Result<()> {
    for name in PROGRAMS {
        let (from, to) = (
            paths.agent_dir.join("tools").join(name),
            paths.bin().join(name),
        );
        if !from.is_file() {
            continue;
        }
        fs::create_dir_all(paths.bin())?;
        match to.exists() {
            true => fs::remove_file(from)?,
            false => fs::rename(from, to)?,
        }
    }
    Ok(())
}

/// Renames actions that had no name space before.
fn rename_actions(path: &Path) -> io::Result<()> {
    let has_old =
        |object: Option<Map<String, Value>>| object.and_then(|o| keybindings::migrated(&o));
    if has_old(object_in(path)).is_none() {
        return Ok(());
    }
    let _lock = FileLock::acquire(path)?;
    let Some(migrated) = has_old(object_in(path)) else {
        return Ok(());
    };
    let target = fs::canonicalize(path)?;
    let dir = target.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new()
        .permissions(fs::metadata(&target)?.permissions())
        .tempfile_in(dir)?;
    writeln!(file, "{}", serde_json::to_string_pretty(&migrated)?)?;
    file.as_file().sync_all()?;
    file.persist(&target).map_err(|error| error.error)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fixture {
        dir: tempfile::TempDir,
        paths: Paths,
    }

    impl Fixture {
        fn new(files: &[(&str, &str)]) -> Self {
            let dir = tempfile::tempdir().unwrap();
            for (name, text) in files {
                let path = dir.path().join(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            let paths = Paths {
                home: dir.path().to_owned(),
                agent_dir: dir.path().join("agent"),
                cwd: dir.path().join("p"),
                distrust: None,
            };
            Self { dir, paths }
        }

        fn text(&self, name: &str) -> Option<String> {
            fs::read_to_string(self.dir.path().join(name)).ok()
        }
    }

    #[test]
    fn keys_move_to_auth_json() {
        let fixture = Fixture::new(&[
            (
                "agent/oauth.json",
                r#"{"anthropic": {"access": "a", "refresh": "r", "expires": 5}}"#,
            ),
            (
                "agent/settings.json",
                "{\"apiKeys\": {\"openai\": \"k\", \"anthropic\": \"no\", \"x\": 1}, \"theme\": \"t\"}",
            ),
        ]);
        assert_eq!(
            run(&fixture.paths),
            ["Moved to auth.json: anthropic, openai"]
        );
        let auth: Value = serde_json::from_str(&fixture.text("agent/auth.json").unwrap()).unwrap();
        assert_eq!(
            auth,
            serde_json::json!({
                "anthropic": {"type": "oauth", "access": "a", "refresh": "r", "expires": 5},
                "openai": {"type": "api_key", "key": "k"},
            })
        );
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = fs::metadata(fixture.paths.auth())
                .unwrap()
                .permissions()
                .mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        assert!(fixture.text("agent/oauth.json").is_none());
        assert!(fixture.text("agent/oauth.json.migrated").is_some());
        let settings = fixture.text("agent/settings.json").unwrap();
        assert_eq!(
            serde_json::from_str::<Value>(&settings).unwrap(),
            serde_json::json!({"theme": "t"})
        );
        assert_eq!(run(&fixture.paths), Vec::<String>::new(), "once");
    }

    #[test]
    fn existing_auth_json_is_not_changed() {
        let fixture = Fixture::new(&[
            ("agent/auth.json", "broken"),
            ("agent/oauth.json", r#"{"a": {"access": "x"}}"#),
        ]);
        assert_eq!(run(&fixture.paths), Vec::<String>::new());
        assert_eq!(fixture.text("agent/auth.json").unwrap(), "broken");
        assert!(fixture.text("agent/oauth.json").is_some());
    }

    #[test]
    fn sessions_programs_templates_and_key_names_move() {
        let header = "{\"type\":\"session\",\"cwd\":\"/w/x\"}\nrest";
        let fixture = Fixture::new(&[
            ("agent/one.jsonl", header),
            ("agent/two.jsonl", "{\"type\":\"other\",\"cwd\":\"/w/x\"}"),
            ("agent/three.jsonl", header),
            ("agent/sessions/--w-x--/three.jsonl", "other"),
            ("agent/tools/fd", "fd"),
            ("agent/tools/mine.ts", ""),
            ("agent/commands/a.md", "a"),
            ("p/.pi/commands/b.md", "b"),
            ("p/.pi/prompts/c.md", "c"),
            ("p/.pi/hooks/h.ts", ""),
            ("agent/keybindings.json", "{\"clear\": \"ctrl+x\"}"),
        ]);
        let prompts = fixture.paths.agent_dir.join("prompts");
        let note = format!(
            "Renamed the user's folder commands to prompts: {}",
            prompts.display()
        );
        assert_eq!(run(&fixture.paths), [note]);
        assert_eq!(
            fixture.text("agent/sessions/--w-x--/one.jsonl").unwrap(),
            header
        );
        assert!(fixture.text("agent/two.jsonl").is_some());
        assert_eq!(
            fixture.text("agent/three.jsonl").unwrap(),
            header,
            "not overwritten"
        );
        assert_eq!(
            fixture.text("agent/sessions/--w-x--/three.jsonl").unwrap(),
            "other"
        );
        assert_eq!(fixture.text("agent/bin/fd").unwrap(), "fd");
        assert_eq!(fixture.text("agent/prompts/a.md").unwrap(), "a");
        assert_eq!(fixture.text("p/.pi/commands/b.md").unwrap(), "b");
        assert_eq!(
            fixture.text("agent/keybindings.json").unwrap(),
            "{\n  \"app.clear\": \"ctrl+x\"\n}\n"
        );
        let old: Vec<_> = old_folders(&fixture.paths)
            .into_iter()
            .map(|d| d.path)
            .collect();
        let expected = [
            fixture.paths.agent_dir.join("tools"),
            fixture.paths.project_dir().join("hooks"),
        ];
        assert_eq!(old, expected);
    }

    #[test]
    fn nothing_is_created_without_old_files() {
        let fixture = Fixture::new(&[]);
        assert_eq!(run(&fixture.paths), Vec::<String>::new());
        assert_eq!(fs::read_dir(fixture.dir.path()).unwrap().count(), 0);
    }
}
