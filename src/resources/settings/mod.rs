//! `settings.json`, global and of the project: typed values, and objects with all keys
//! including unknown ones. Values of the project take precedence; objects are merged one level
//! deep.

mod edit;
mod extensions;
mod file;
mod permissions;
mod shape;
#[cfg(test)]
mod tests;
mod values;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use serde_json::{Map, Value};

pub use edit::parse as parse_settings;
pub use extensions::{ExtensionHost, ExtensionTimeouts, HeapMb};
pub use file::{SettingsError, global_value};
pub use permissions::{PermissionSettings, UnmatchedCalls};
pub use values::{
    BranchSummarySettings, CompactionSettings, HiddenVariables, ImageSettings, KEYS, PackageEntry,
    PackageFilter, ProtectedPaths, QueueMode, RetrySettings, SettingsValues,
};

use crate::paths::Paths;
use pi_ai::model::ThinkingLevel;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingsScope {
    Global,
    Project,
}

impl SettingsScope {
    fn as_str(self) -> &'static str {
        match self {
            Self::Global => "global",
            Self::Project => "project",
        }
    }
}

/// A value in a settings file that has no effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingsWarning {
    pub scope: SettingsScope,
    pub message: String,
}

impl SettingsWarning {
    /// Formats the warning for display; `context` says when it occurred, e.g. `startup`.
    pub fn describe(&self, context: &str) -> String {
        let scope = self.scope.as_str();
        format!("({context}, {scope} settings) {}", self.message)
    }
}

/// A new value for a key, or for a key of an object; `None` removes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Change<'a> {
    pub key: &'a str,
    pub nested: Option<&'a str>,
    pub value: Option<Value>,
}

impl<'a> Change<'a> {
    pub fn set(key: &'a str, value: impl Into<Value>) -> Self {
        Self {
            key,
            nested: None,
            value: Some(value.into()),
        }
    }

    pub fn set_in(key: &'a str, nested: &'a str, value: impl Into<Value>) -> Self {
        Self {
            nested: Some(nested),
            ..Self::set(key, value)
        }
    }

    fn apply(&self, object: &mut Map<String, Value>) {
        let Some(nested) = self.nested else {
            return put(object, self.key, &self.value);
        };
        let slot = object.entry(self.key).or_insert(Value::Null);
        if !slot.is_object() {
            *slot = Value::Object(Map::new());
        }
        if let Value::Object(inner) = slot {
            put(inner, nested, &self.value);
        }
    }
}

fn put(object: &mut Map<String, Value>, key: &str, value: &Option<Value>) {
    match value {
        Some(value) => {
            object.insert(key.to_owned(), value.clone());
        }
        None => {
            object.shift_remove(key);
        }
    }
}

/// The settings, shared by everything that reads or changes them.
#[derive(Debug)]
pub struct Settings {
    /// The files; `None` if the settings are in memory only.
    files: Option<Files>,
    state: RwLock<State>,
    /// Changes that are in effect but not in a file yet. The next successful write includes
    /// them.
    unsaved: Mutex<Vec<Unsaved>>,
    warnings: Mutex<Vec<SettingsWarning>>,
    /// The theme of `--use-theme`.
    run_theme: Mutex<Option<String>>,
}

/// A change that could not be written to its file.
#[derive(Debug)]
struct Unsaved {
    path: PathBuf,
    key: String,
    nested: Option<String>,
    value: Option<Value>,
}

impl Unsaved {
    fn new(path: &Path, change: &Change<'_>) -> Self {
        Self {
            path: path.to_owned(),
            key: change.key.to_owned(),
            nested: change.nested.map(str::to_owned),
            value: change.value.clone(),
        }
    }

    fn change(&self) -> Change<'_> {
        Change {
            key: &self.key,
            nested: self.nested.as_deref(),
            value: self.value.clone(),
        }
    }

    fn is_of_same(&self, other: &Self) -> bool {
        (&self.path, &self.key, &self.nested) == (&other.path, &other.key, &other.nested)
    }
}

#[derive(Debug)]
struct Files {
    global: PathBuf,
    /// Settings file of the current project; changes when a session in another folder starts.
    project: RwLock<Project>,
}

#[derive(Debug, PartialEq, Eq)]
struct Project {
    path: PathBuf,
    /// Whether the file is ignored.
    is_ignored: bool,
}

impl Project {
    fn new(paths: &Paths) -> Self {
        Self {
            path: paths.project_settings(),
            is_ignored: paths.ignores_project(),
        }
    }
}

impl Files {
    fn path(&self, scope: SettingsScope) -> PathBuf {
        match scope {
            SettingsScope::Global => self.global.clone(),
            SettingsScope::Project => self.project.read().path.clone(),
        }
    }
}

#[derive(Debug, Default)]
struct State {
    global: Layer,
    project: Layer,
    merged: Arc<SettingsValues>,
}

/// Whether a settings file has never been usable, and its text if it could be read.
#[derive(Debug, Default)]
enum Broken {
    #[default]
    No,
    Unreadable,
    /// The text is no JSON object.
    Text(String),
}

#[derive(Debug, Default)]
struct Layer {
    raw: Map<String, Value>,
    broken: Broken,
    /// The keys of `raw` that are in effect.
    valid: Map<String, Value>,
    values: Arc<SettingsValues>,
}

impl Settings {
    pub fn load(paths: &Paths) -> Arc<Self> {
        let settings = Self {
            files: Some(Files {
                global: paths.global_settings(),
                project: RwLock::new(Project::new(paths)),
            }),
            state: RwLock::default(),
            unsaved: Mutex::default(),
            warnings: Mutex::default(),
            run_theme: Mutex::default(),
        };
        settings.reload();
        Arc::new(settings)
    }

    /// Makes settings without files, for embedders and tests.
    pub fn in_memory(global: Map<String, Value>) -> Arc<Self> {
        let settings = Self {
            files: None,
            state: RwLock::default(),
            unsaved: Mutex::default(),
            warnings: Mutex::default(),
            run_theme: Mutex::default(),
        };
        settings.replace(SettingsScope::Global, global);
        Arc::new(settings)
    }

    /// Reads both files again. If a file cannot be read, its previous values stay in effect. If
    /// it can be read, its values replace unsaved changes.
    pub fn reload(&self) {
        let Some(files) = &self.files else { return };
        for scope in [SettingsScope::Global, SettingsScope::Project] {
            let project = files.project.read();
            if scope == SettingsScope::Project && project.is_ignored {
                self.replace(scope, Map::new());
                continue;
            }
            drop(project);
            let path = files.path(scope);
            let current = self.raw(scope);
            match file::load_again(&path, &current) {
                Ok(object) => {
                    self.unsaved.lock().retain(|change| change.path != path);
                    self.replace(scope, object);
                }
                Err(error) => {
                    let text = pi_base::regular_file::read_text(&path);
                    let mut state = self.state.write();
                    let layer = state.layer_mut(scope);
                    // Settings that were loaded before stay in effect.
                    if layer.raw.is_empty() {
                        layer.broken = text.map_or(Broken::Unreadable, Broken::Text);
                    }
                    drop(state);
                    self.warn(scope, error.to_string());
                }
            }
        }
    }

    /// Returns the value of a key in one file, as it is written there.
    pub fn raw_value(&self, scope: SettingsScope, key: &str) -> Option<Value> {
        self.state.read().layer(scope).raw.get(key).cloned()
    }

    /// Returns the file of a scope. `None` for settings without files.
    pub fn path(&self, scope: SettingsScope) -> Option<PathBuf> {
        self.files.as_ref().map(|files| files.path(scope))
    }

    /// Returns whether a file that cannot be used may have the key: the file cannot be read, or its
    /// text contains the key.
    pub fn may_have(&self, scope: SettingsScope, key: &str) -> bool {
        match &self.state.read().layer(scope).broken {
            Broken::No => false,
            Broken::Unreadable => true,
            Broken::Text(text) => text.contains(key),
        }
    }

    /// Returns a copy with what the files contain now, or these settings if they have no files.
    /// `None` if a file cannot be read: it may be half-written.
    pub fn read_again(self: &Arc<Self>) -> Option<Arc<Self>> {
        let Some(files) = &self.files else {
            return Some(self.clone());
        };
        let again = Self::in_memory(Map::new());
        let project = files.project.read();
        let read = |scope, path| file::load_again(path, &self.raw(scope)).ok();
        let global = read(SettingsScope::Global, &files.global)?;
        again.replace(SettingsScope::Global, global);
        if !project.is_ignored {
            let project = read(SettingsScope::Project, &project.path)?;
            again.replace(SettingsScope::Project, project);
        }
        Some(again)
    }

    /// Switches to the project of `paths` and loads its current settings.
    pub fn switch_project(&self, paths: &Paths) {
        let Some(files) = &self.files else { return };
        let project = Project::new(paths);
        let stays = *files.project.read() == project;
        if !stays {
            *files.project.write() = project;
            // If its file cannot be read, those of the other project must not stay in effect.
            self.replace(SettingsScope::Project, Map::new());
        }
        // Unsaved changes stay in effect in the project for which they were made.
        if !stays || self.unsaved.lock().is_empty() {
            self.reload();
        }
    }

    /// [`Self::reload`], after the decision whether the project is used was made anew.
    pub fn reload_project(&self, paths: &Paths) {
        if let Some(files) = &self.files {
            *files.project.write() = Project::new(paths);
        }
        self.reload();
    }

    /// Returns the values in effect.
    pub fn values(&self) -> Arc<SettingsValues> {
        self.state.read().merged.clone()
    }

    /// Returns the values of one file alone.
    pub fn values_of(&self, scope: SettingsScope) -> Arc<SettingsValues> {
        self.state.read().layer(scope).values.clone()
    }

    /// Returns the object of one file, including unknown keys.
    pub fn raw(&self, scope: SettingsScope) -> Map<String, Value> {
        self.state.read().layer(scope).raw.clone()
    }

    /// Returns the merged object of both files, including unknown keys.
    pub fn merged(&self) -> Map<String, Value> {
        let state = self.state.read();
        merge(&state.global.raw, &state.project.raw)
    }

    /// Returns the warnings since the last call, so that each is shown once.
    pub fn take_warnings(&self) -> Vec<SettingsWarning> {
        std::mem::take(&mut *self.warnings.lock())
    }

    /// Applies changes. They are in effect at once, even if the file cannot be written; then
    /// the next write includes them. Waits for the lock of the file, see
    /// [`pi_base::file_lock`].
    pub fn change(
        &self,
        scope: SettingsScope,
        changes: &[Change<'_>],
    ) -> Result<(), SettingsError> {
        let mut state = self.state.write();
        let mut object = state.layer(scope).raw.clone();
        for change in changes {
            change.apply(&mut object);
        }
        state.replace(scope, object);
        drop(state);
        let Some(files) = &self.files else {
            return Ok(());
        };
        let path = files.path(scope);
        let mut unsaved = self.unsaved.lock();
        for change in changes {
            let change = Unsaved::new(&path, change);
            unsaved.retain(|before| !before.is_of_same(&change));
            unsaved.push(change);
        }
        write_with(&mut unsaved, &path, |_| ()).map(drop)
    }

    /// Applies a change that depends on the current content of the file. It is in effect only
    /// if it could be written.
    pub fn edit(
        &self,
        scope: SettingsScope,
        change: impl FnOnce(&mut Map<String, Value>),
    ) -> Result<(), SettingsError> {
        let object = match &self.files {
            None => {
                let mut object = self.raw(scope);
                change(&mut object);
                object
            }
            Some(files) => write_with(&mut self.unsaved.lock(), &files.path(scope), change)?,
        };
        self.state.write().replace(scope, object);
        Ok(())
    }

    pub fn set_default_model(&self, provider: &str, model: &str) -> Result<(), SettingsError> {
        self.change_global(&[
            Change::set("defaultProvider", provider),
            Change::set("defaultModel", model),
        ])
    }

    pub fn set_default_thinking_level(&self, level: ThinkingLevel) -> Result<(), SettingsError> {
        self.change_global(&[Change::set("defaultThinkingLevel", level.as_str())])
    }

    /// Returns the theme in effect.
    pub fn theme(&self) -> Option<String> {
        let for_run = self.run_theme.lock().clone();
        for_run.or_else(|| self.values().theme.clone())
    }

    /// Overrides the theme of the files until a theme is set. Nothing is stored.
    pub fn override_theme(&self, name: Option<String>) {
        *self.run_theme.lock() = name;
    }

    pub fn set_theme(&self, name: &str) -> Result<(), SettingsError> {
        self.override_theme(None);
        self.change_global(&[Change::set("theme", name)])
    }

    pub fn set_steering_mode(&self, mode: QueueMode) -> Result<(), SettingsError> {
        self.change_global(&[Change::set("steeringMode", mode.as_str())])
    }

    pub fn set_follow_up_mode(&self, mode: QueueMode) -> Result<(), SettingsError> {
        self.change_global(&[Change::set("followUpMode", mode.as_str())])
    }

    pub fn set_compaction_enabled(&self, enabled: bool) -> Result<(), SettingsError> {
        self.change_global(&[Change::set_in("compaction", "enabled", enabled)])
    }

    pub fn set_retry_enabled(&self, enabled: bool) -> Result<(), SettingsError> {
        self.change_global(&[Change::set_in("retry", "enabled", enabled)])
    }

    fn change_global(&self, changes: &[Change<'_>]) -> Result<(), SettingsError> {
        self.change(SettingsScope::Global, changes)
    }

    fn replace(&self, scope: SettingsScope, raw: Map<String, Value>) {
        let complaints = self.state.write().replace(scope, raw);
        for complaint in complaints {
            self.warn(scope, self.named(scope, &complaint));
        }
    }

    /// Adds the path of the file to a complaint.
    fn named(&self, scope: SettingsScope, complaint: &str) -> String {
        let path = self.files.as_ref().map(|files| files.path(scope));
        match path {
            Some(path) => format!("{}: {complaint}", path.display()),
            None => complaint.to_owned(),
        }
    }

    fn warn(&self, scope: SettingsScope, message: String) {
        self.warnings
            .lock()
            .push(SettingsWarning { scope, message });
    }
}

impl State {
    /// Replaces the object of one file and returns its errors.
    fn replace(&mut self, scope: SettingsScope, raw: Map<String, Value>) -> Vec<String> {
        let (valid, complaints) = values::valid_part(&raw);
        *self.layer_mut(scope) = Layer {
            values: Arc::new(SettingsValues::read(&valid)),
            valid,
            raw,
            broken: Broken::No,
        };
        let merged = merge(&self.global.valid, &self.project.valid);
        self.merged = Arc::new(SettingsValues::read(&merged));
        complaints
    }

    fn layer(&self, scope: SettingsScope) -> &Layer {
        match scope {
            SettingsScope::Global => &self.global,
            SettingsScope::Project => &self.project,
        }
    }

    fn layer_mut(&mut self, scope: SettingsScope) -> &mut Layer {
        match scope {
            SettingsScope::Global => &mut self.global,
            SettingsScope::Project => &mut self.project,
        }
    }
}

/// Changes a file, together with earlier changes that could not be written.
fn write_with(
    unsaved: &mut Vec<Unsaved>,
    path: &Path,
    change: impl FnOnce(&mut Map<String, Value>),
) -> Result<Map<String, Value>, SettingsError> {
    let object = file::edit(path, |object| {
        for before in unsaved.iter().filter(|before| before.path == path) {
            before.change().apply(object);
        }
        change(object);
    })?;
    unsaved.retain(|before| before.path != path);
    Ok(object)
}

/// Loads one file in the current form.
pub fn load_file(path: &Path) -> Result<Map<String, Value>, SettingsError> {
    file::load(path)
}

/// Parses the text of a settings file.
pub fn parse_text(text: &str) -> Result<Map<String, Value>, SettingsError> {
    file::parse(text)
}

/// Applies changes like [`Settings::change`] to any file.
pub fn change_file(path: &Path, changes: &[Change<'_>]) -> Result<(), SettingsError> {
    file::write(path, changes)
}

fn merge(base: &Map<String, Value>, over: &Map<String, Value>) -> Map<String, Value> {
    let mut merged = base.clone();
    for (key, value) in over {
        match (merged.get_mut(key), value) {
            (Some(Value::Object(inner)), Value::Object(value)) => inner.extend(value.clone()),
            _ => {
                merged.insert(key.clone(), value.clone());
            }
        }
    }
    merged
}
