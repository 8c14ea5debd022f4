use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;

use super::values::{DoubleEscapeAction, TreeFilterMode};
use super::*;
use pi_ai::stream::Transport;

struct Fixture {
    _dir: tempfile::TempDir,
    paths: Paths,
}

impl Fixture {
    fn new(global: &str, project: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let paths = Paths {
            home: dir.path().to_owned(),
            agent_dir: dir.path().join("agent"),
            cwd: dir.path().join("p"),
            distrust: None,
        };
        let fixture = Self { _dir: dir, paths };
        for (path, text) in [
            (fixture.global(), global),
            (fixture.paths.project_settings(), project),
        ] {
            if !text.is_empty() {
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
        }
        fixture
    }

    fn global(&self) -> PathBuf {
        self.paths.global_settings()
    }

    fn global_text(&self) -> String {
        fs::read_to_string(self.global()).unwrap()
    }

    /// Loads settings that must have no warnings.
    fn load(&self) -> Arc<Settings> {
        let settings = Settings::load(&self.paths);
        assert_eq!(settings.take_warnings(), []);
        settings
    }
}

#[test]
fn without_files_the_defaults_hold() {
    let fixture = Fixture::new("", "");
    let values = fixture.load().values();
    assert_eq!(*values, SettingsValues::default());
    assert_eq!(values.retry.max_retries, 3);
    assert_eq!(values.compaction.keep_recent_tokens, 20000);
    assert_eq!(values.steering_mode, QueueMode::OneAtATime);
    assert_eq!(values.extension_timeouts.handler, Duration::from_secs(30));
    assert_eq!(values.extension_heap_mb.get(), 512);
    assert_eq!(values.extension_host, ExtensionHost::Thread);
    assert!(values.offers_skill_commands());
}

#[test]
fn the_project_wins_and_objects_merge_one_level() {
    let fixture = Fixture::new(
        r#"{"defaultModel": "g", "defaultProvider": "x", "retry": {"maxRetries": 7, "enabled": false},
            "extensions": ["a"], "thinkingBudgets": {"low": 1}}"#,
        r#"{"defaultModel": "p", "retry": {"enabled": true}, "extensions": ["b"], "thinkingBudgets": {"high": 9.0}}"#,
    );
    let settings = fixture.load();
    let expected = SettingsValues {
        default_model: Some("p".into()),
        default_provider: Some("x".into()),
        retry: RetrySettings {
            max_retries: 7,
            ..RetrySettings::default()
        },
        extensions: vec!["b".into()],
        thinking_budgets: [(ThinkingLevel::Low, 1), (ThinkingLevel::High, 9)].into(),
        ..SettingsValues::default()
    };
    assert_eq!(*settings.values(), expected);
    assert_eq!(settings.values_of(SettingsScope::Global).extensions, ["a"]);
}

#[test]
fn a_null_of_the_project_means_the_default() {
    let fixture = Fixture::new(r#"{"shellPath": "/bin/zsh"}"#, r#"{"shellPath": null}"#);
    assert_eq!(fixture.load().values().shell_path, None);
}

#[test]
fn our_own_keys_and_package_filters_are_read() {
    let fixture = Fixture::new(
        r#"{"extensionTimeouts": {"handler": 100, "spin": 50}, "extensionHeapMb": 128,
            "extensionHost": "process",
            "packages": ["npm:a", {"source": "./b", "extensions": [], "themes": ["x"]}]}"#,
        "",
    );
    let values = fixture.load().values();
    let expected = ExtensionTimeouts {
        handler: Duration::from_millis(100),
        spin: Duration::from_millis(50),
        ..ExtensionTimeouts::default()
    };
    assert_eq!(values.extension_timeouts, expected);
    assert_eq!(values.extension_heap_mb.get(), 128);
    assert_eq!(values.extension_host, ExtensionHost::Process);
    assert_eq!(values.packages[0].filter, None);
    let filter = values.packages[1].filter.as_ref().unwrap();
    use crate::paths::ResourceKind;
    let lists = ResourceKind::ALL.map(|kind| filter.patterns(kind).map(<[String]>::to_vec));
    assert_eq!(lists, [Some(vec![]), None, None, Some(vec!["x".into()])]);
}

#[test]
fn a_value_of_the_wrong_type_is_ignored_alone_and_reported() {
    let fixture = Fixture::new(
        r#"{"retry": {"maxRetries": 7}, "defaultModel": "m"}"#,
        r#"{"retry": {"maxRetries": "many"}, "extensionHeapMb": 1,
            "extensionHost": "moon", "extensionTimeouts": {"load": 0,
            "events": {"tool_call": "q", "agent_end": 300}, "nonsense": 1}}"#,
    );
    let settings = Settings::load(&fixture.paths);
    let path = fixture.paths.project_settings();
    let warnings: Vec<_> = settings.take_warnings();
    let described: Vec<_> = warnings.iter().map(|w| w.describe("startup")).collect();
    assert_eq!(
        described,
        [
            "\"retry.maxRetries\" is ignored: invalid type: string \"many\", expected a whole number",
            "\"extensionHeapMb\" is ignored: expected at least 64 (MiB)",
            "\"extensionHost\" is ignored: unknown value `moon`, expected `thread` or `process`",
            "\"extensionTimeouts.load\" is ignored: invalid value: integer `0`, expected a whole number of milliseconds, at least 1",
            "\"extensionTimeouts.events.tool_call\" is ignored: invalid type: string \"q\", expected a whole number of milliseconds, at least 1",
            "\"extensionTimeouts.nonsense\" is ignored: unknown field `nonsense`, expected one of `handler`, `load`, `spin`, `shutdown`, `tool`, `command`, `events`",
        ]
        .map(|text| format!("(startup, project settings) {}: {text}", path.display()))
    );
    let values = settings.values();
    assert_eq!(values.retry.max_retries, 7);
    assert_eq!(
        values.extension_timeouts.for_event("agent_end"),
        Duration::from_millis(300)
    );
    assert_eq!(settings.take_warnings(), [], "each is shown once");
}

#[test]
fn old_forms_are_migrated_on_read_and_stored_on_write() {
    let fixture = Fixture::new(
        r#"{"queueMode": "all", "websockets": true, "skills": {"enableSkillCommands": false, "customDirectories": ["~/s"]}}"#,
        r#"{"skills": {"customDirectories": []}, "websockets": "odd"}"#,
    );
    let settings = fixture.load();
    let values = settings.values();
    assert_eq!(values.steering_mode, QueueMode::All);
    assert_eq!(values.transport, Transport::Websocket);
    assert_eq!(values.skills, ["~/s"]);
    assert!(!values.offers_skill_commands());
    settings.set_follow_up_mode(QueueMode::All).unwrap();
    let written: Value = serde_json::from_str(&fixture.global_text()).unwrap();
    assert_eq!(
        written,
        json!({"skills": ["~/s"], "steeringMode": "all", "transport": "websocket",
               "enableSkillCommands": false, "followUpMode": "all"})
    );
}

#[test]
fn a_write_changes_only_its_keys_in_the_file_as_it_is_now() {
    let fixture = Fixture::new("{\"z\": {\"deep\": [1]}, \"defaultModel\": \"a\"}\n", "");
    let settings = fixture.load();
    // Another process writes meanwhile.
    let other = r#"{"z": {"deep": [1, 2]}, "theme": "light", "retry": {"maxRetries": 9}}"#;
    fs::write(fixture.global(), format!("{other}\n")).unwrap();
    settings.set_default_model("prov", "id").unwrap();
    settings.set_retry_enabled(false).unwrap();
    assert_eq!(
        fixture.global_text(),
        r#"{
  "z": {"deep": [1, 2]},
  "theme": "light",
  "retry": {
    "maxRetries": 9,
    "enabled": false
  },
  "defaultProvider": "prov",
  "defaultModel": "id"
}
"#
    );
    let values = settings.values();
    assert_eq!(values.default_model.as_deref(), Some("id"));
    assert_eq!(values.theme, None, "others' changes wait for a reload");
    settings.reload();
    assert_eq!(settings.values().theme.as_deref(), Some("light"));
    let left: Vec<_> = fs::read_dir(&fixture.paths.agent_dir).unwrap().collect();
    assert_eq!(left.len(), 1, "no lock and no temporary file stay behind");
}

#[test]
fn a_change_can_remove_a_key_and_write_the_project() {
    let fixture = Fixture::new("", "");
    let settings = fixture.load();
    let project = SettingsScope::Project;
    settings
        .change(project, &[Change::set("theme", "dark")])
        .unwrap();
    settings
        .change(project, &[Change::set("extensions", vec!["a"])])
        .unwrap();
    let remove = Change {
        key: "theme",
        nested: None,
        value: None,
    };
    settings.change(project, &[remove]).unwrap();
    let text = fs::read_to_string(fixture.paths.project_settings()).unwrap();
    assert_eq!(text, "{\n  \"extensions\": [\n    \"a\"\n  ]\n}");
    assert_eq!(
        Value::from(settings.raw(project)),
        json!({"extensions": ["a"]})
    );
    assert!(!fixture.global().exists());
}

#[test]
fn invalid_file_is_reported_and_never_overwritten() {
    let broken = "{\n  \"defaultModel\": \"a\"\n,,}";
    let fixture = Fixture::new(broken, r#"{"theme": "dark"}"#);
    let settings = Settings::load(&fixture.paths);
    let warnings = settings.take_warnings();
    let path = fixture.global();
    let start = format!("(startup, global settings) {}: ", path.display());
    let text = warnings[0].describe("startup");
    assert!(
        text.starts_with(&start) && text.contains("line 3 column 2"),
        "{text}"
    );
    assert_eq!(warnings.len(), 1);
    let error = settings.set_default_model("p", "m").unwrap_err();
    assert!(matches!(error, SettingsError::Parse { .. }), "{error}");
    assert_eq!(fixture.global_text(), broken);
    let values = settings.values();
    assert_eq!(
        values.default_model.as_deref(),
        Some("m"),
        "in effect all the same"
    );
    assert_eq!(values.theme.as_deref(), Some("dark"));
}

#[test]
fn unsaved_change_is_stored_with_next_one() {
    let fixture = Fixture::new("{", "");
    let settings = Settings::load(&fixture.paths);
    settings.set_steering_mode(QueueMode::All).unwrap_err();
    settings.set_retry_enabled(true).unwrap_err();
    settings.set_retry_enabled(false).unwrap_err();
    fs::write(fixture.global(), r#"{"theme":"dark"}"#).unwrap();
    settings
        .change(SettingsScope::Project, &[Change::set("quietStartup", true)])
        .unwrap();
    assert_eq!(fixture.global_text(), r#"{"theme":"dark"}"#);
    settings.set_follow_up_mode(QueueMode::All).unwrap();
    let stored: Value = serde_json::from_str(&fixture.global_text()).unwrap();
    assert_eq!(
        stored,
        json!({"theme": "dark", "steeringMode": "all", "retry": {"enabled": false}, "followUpMode": "all"})
    );
    // The unsaved change is only kept once: later changes of other programs stay.
    fs::write(fixture.global(), "{}").unwrap();
    settings.set_theme("light").unwrap();
    assert_eq!(fixture.global_text(), "{\n  \"theme\": \"light\"\n}");
}

#[test]
fn a_list_at_the_top_is_not_overwritten() {
    let fixture = Fixture::new("[]", "");
    let settings = Settings::load(&fixture.paths);
    assert_eq!(settings.take_warnings().len(), 1);
    let error = settings.set_retry_enabled(true).unwrap_err();
    assert!(
        matches!(error, SettingsError::NotAnObject { .. }),
        "{error}"
    );
    assert_eq!(fixture.global_text(), "[]");
}

#[test]
fn a_reload_that_fails_keeps_the_values() {
    let fixture = Fixture::new(r#"{"theme": "dark"}"#, "");
    let settings = fixture.load();
    fs::write(fixture.global(), "{").unwrap();
    settings.reload();
    assert_eq!(settings.take_warnings().len(), 1);
    assert_eq!(settings.values().theme.as_deref(), Some("dark"));
    fs::remove_file(fixture.global()).unwrap();
    settings.reload();
    assert_eq!(settings.values().theme, None);
}

/// Without the last values a reload in this moment would switch `extensionWatch` off for good.
#[test]
fn a_reload_while_a_file_is_truncated_keeps_the_values() {
    let fixture = Fixture::new(r#"{"theme": "dark"}"#, "");
    let settings = fixture.load();
    fs::write(fixture.global(), "").unwrap();
    assert!(settings.read_again().is_none());
    settings.reload();
    assert_eq!(settings.take_warnings().len(), 1);
    assert_eq!(settings.values().theme.as_deref(), Some("dark"));
    fs::write(fixture.global(), "{}").unwrap();
    assert!(settings.read_again().is_some());
    settings.reload();
    assert_eq!(settings.values().theme, None);
}

#[test]
fn a_byte_order_mark_and_an_empty_file_are_read() {
    assert_eq!(
        *Fixture::new(" \n", "").load().values(),
        SettingsValues::default()
    );
    let fixture = Fixture::new("\u{feff}{\"theme\": \"t\"}", "");
    assert_eq!(fixture.load().values().theme.as_deref(), Some("t"));
}

#[test]
fn many_writers_lose_no_key() {
    let fixture = Fixture::new("{}", "");
    let writers: Vec<_> = (0..4).map(|_| fixture.load()).collect();
    std::thread::scope(|scope| {
        for (index, settings) in writers.iter().enumerate() {
            scope.spawn(move || {
                let key = format!("key{index}");
                let change = [Change::set(&key, index)];
                // A slow disk may exceed the wait for the lock.
                while let Err(error) = settings.change(SettingsScope::Global, &change) {
                    assert!(matches!(error, SettingsError::Lock { .. }), "{error}");
                }
            });
        }
    });
    let mut keys: Vec<_> = fixture
        .load()
        .raw(SettingsScope::Global)
        .into_iter()
        .collect();
    keys.sort_by(|a, b| a.0.cmp(&b.0));
    let expected = (0..4).map(|index| (format!("key{index}"), json!(index)));
    assert_eq!(keys, expected.collect::<Vec<_>>());
}

#[cfg(unix)]
#[test]
fn a_link_stays_a_link_and_the_mode_stays() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let fixture = Fixture::new("{}", "");
    let target = fixture.paths.home.join("dotfiles.json");
    fs::rename(fixture.global(), &target).unwrap();
    fs::set_permissions(&target, fs::Permissions::from_mode(0o660)).unwrap();
    symlink(&target, fixture.global()).unwrap();
    fixture.load().set_retry_enabled(false).unwrap();
    assert!(fixture.global().is_symlink());
    let mode = fs::metadata(&target).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o660);
    assert!(
        fs::read_to_string(&target)
            .unwrap()
            .contains("\"enabled\": false")
    );
}

#[cfg(unix)]
#[test]
fn dangling_link_stays_a_link() {
    let fixture = Fixture::new("{}", "");
    fs::remove_file(fixture.global()).unwrap();
    let target = fixture.paths.home.join("dotfiles.json");
    std::os::unix::fs::symlink(&target, fixture.global()).unwrap();
    fixture.load().set_retry_enabled(false).unwrap();
    assert!(fixture.global().is_symlink());
    assert!(fs::read_to_string(&target).unwrap().contains("false"));
}

#[test]
fn in_memory_settings_touch_no_file() {
    let object = json!({"theme": "dark"}).as_object().unwrap().clone();
    let settings = Settings::in_memory(object);
    settings.set_compaction_enabled(false).unwrap();
    settings.reload();
    let values = settings.values();
    assert_eq!(values.theme.as_deref(), Some("dark"));
    assert!(!values.compaction.enabled);
}

#[test]
fn every_key_has_its_type_and_its_default() {
    let text = r#"{"lastChangelogVersion": "0.67.68", "collapseChangelog": true,
        "enableInstallTelemetry": false, "terminal": {"showImages": false, "clearOnShrink": true},
        "doubleEscapeAction": "none", "treeFilterMode": "labeled-only", "editorPaddingX": 9,
        "autocompleteMaxVisible": 1.5, "showHardwareCursor": true,
        "markdown": {"codeBlockIndent": ""}, "npmCommand": ["mise", "npm"]}"#;
    let values = Fixture::new(text, "").load().values();
    assert_eq!(values.last_changelog_version.as_deref(), Some("0.67.68"));
    assert!(values.collapse_changelog && !values.enable_install_telemetry.0);
    assert!(!values.terminal.show_images && values.terminal.clear_on_shrink == Some(true));
    assert_eq!(values.double_escape_action, DoubleEscapeAction::None);
    assert_eq!(values.tree_filter_mode, TreeFilterMode::LabeledOnly);
    assert_eq!(values.editor_padding_x.get(), 3);
    assert_eq!(values.autocomplete_max_visible.get(), 3);
    assert_eq!(values.show_hardware_cursor, Some(true));
    assert_eq!(values.markdown.code_block_indent, "");
    let default = SettingsValues::default();
    assert!(default.enable_install_telemetry.0 && default.terminal.show_images);
    assert_eq!(default.double_escape_action, DoubleEscapeAction::Tree);
    assert_eq!(default.autocomplete_max_visible.get(), 5);
    assert_eq!(default.markdown.code_block_indent, "  ");
}

#[test]
fn of_a_list_only_the_wrong_element_is_left_out() {
    let text = r#"{"extensions": ["a", 5, "b"], "packages": ["x", {"no": "source"}],
        "npmCommand": ["npm", 5], "compaction": {"enabled": "yes", "reserveTokens": 7}, "retry": 3}"#;
    let fixture = Fixture::new(text, "");
    let settings = Settings::load(&fixture.paths);
    let values = settings.values();
    assert_eq!(values.extensions, ["a", "b"]);
    assert_eq!(values.packages.len(), 1);
    assert_eq!(values.npm_command, None);
    assert_eq!(
        (values.compaction.enabled, values.compaction.reserve_tokens),
        (true, 7)
    );
    let warnings = settings.take_warnings();
    let path = format!("{}: ", fixture.global().display());
    let keys = warnings.iter().map(|w| {
        let text = w.message.strip_prefix(&path).unwrap();
        text.split(" is ignored").next().unwrap()
    });
    let expected = [
        "\"extensions[1]\"",
        "\"packages[1]\"",
        "\"npmCommand\"",
        "\"compaction.enabled\"",
        "\"retry\"",
    ];
    assert_eq!(keys.collect::<Vec<_>>(), expected);
}

#[test]
fn a_file_with_comments_is_read_and_keeps_them() {
    let text = "{\n  // which one\n  \"theme\": \"dark\", \"x\": [1,\n 2],\n}\n";
    let fixture = Fixture::new(text, "");
    let settings = fixture.load();
    assert_eq!(settings.values().theme.as_deref(), Some("dark"));
    settings.set_retry_enabled(false).unwrap();
    assert_eq!(
        fixture.global_text(),
        "{\n  // which one\n  \"theme\": \"dark\", \"x\": [1,\n 2],\n  \"retry\": {\n    \"enabled\": false,\n  },\n}\n"
    );
}

#[test]
fn setting_what_is_set_already_does_not_touch_the_file() {
    let fixture = Fixture::new("{\"retry\":{\"enabled\":false}}", "");
    fixture.load().set_retry_enabled(false).unwrap();
    assert_eq!(fixture.global_text(), "{\"retry\":{\"enabled\":false}}");
}

#[test]
fn a_broken_file_may_have_the_keys_in_its_text() {
    let fixture = Fixture::new(
        r#"{"permissions": {"deny": ["bash"]"#,
        r#"{"theme": "dark"}"#,
    );
    let settings = Settings::load(&fixture.paths);
    let may_have = |scope, key| settings.may_have(scope, key);
    assert!(may_have(SettingsScope::Global, "permissions"));
    assert!(!may_have(SettingsScope::Global, "theme"));
    assert!(!may_have(SettingsScope::Project, "permissions"));
    assert_eq!(
        settings.raw_value(SettingsScope::Project, "theme"),
        Some(json!("dark"))
    );
}

#[test]
fn every_key_has_a_type() {
    for key in KEYS {
        // The value is invalid for every key.
        let object = json!({key: [[0]]}).as_object().unwrap().clone();
        let settings = Settings::in_memory(object);
        assert!(!settings.take_warnings().is_empty(), "{key}");
    }
}

/// Regression: serde read the elements of the list as the members in order.
#[test]
fn list_instead_of_object_is_ignored_and_reported() {
    let fixture = Fixture::new(
        r#"{"extensionTimeouts": [1], "compaction": [false], "retry": {"enabled": false, "provider": [5]},
            "images": [false, true], "branchSummary": [1], "terminal": [false], "markdown": ["x"],
            "thinkingBudgets": [1], "theme": ["dark"]}"#,
        r#"{"compaction": {"enabled": false, "modelOverrides": {"a/b": [7], "c/d": {"reserveTokens": 3}}}}"#,
    );
    let settings = Settings::load(&fixture.paths);
    let values = settings.values();
    let mut expected = SettingsValues::default();
    expected.retry.enabled = false;
    expected.compaction.enabled = false;
    expected.compaction.model_overrides = values.compaction.model_overrides.clone();
    assert_eq!(*values, expected);
    let known: Vec<&String> = values.compaction.model_overrides.keys().collect();
    assert_eq!(known, ["c/d"]);
    let warnings = settings.take_warnings().into_iter();
    let warnings: Vec<String> = warnings.map(|warning| warning.message).collect();
    for key in [
        "extensionTimeouts",
        "compaction",
        "retry.provider",
        "images",
        "branchSummary",
        "terminal",
        "markdown",
        "thinkingBudgets",
        "compaction.modelOverrides.a/b",
    ] {
        let output = format!("\"{key}\" is ignored: expected an object, not a list");
        assert!(
            warnings.iter().any(|one| one.ends_with(&output)),
            "{key}: {warnings:?}"
        );
    }
    assert_eq!(warnings.len(), 10, "{warnings:?}");
}
