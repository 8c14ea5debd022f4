//! The rules that hold for the calls of a session: those of the user's and the project's settings,
//! and those of answers.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::AgentSession;
use pi_permissions::{Rules, Verdict};
use pi_resources::settings::{PermissionSettings, SettingsScope, UnmatchedCalls};

/// The rules that hold, with the settings and answers that they were made of.
pub(super) struct RulesOfSession {
    sources: [Source; 2],
    session_rules: Vec<String>,
    pub rules: Arc<Rules>,
    /// Why some rules cannot be used.
    pub mistakes: Vec<String>,
}

/// The setting `permissions` of one file.
#[derive(PartialEq)]
struct Source {
    /// The file, as a message names it.
    file: String,
    value: RulesValue,
}

#[derive(PartialEq)]
enum RulesValue {
    Missing,
    Value(Value),
    /// The file cannot be used, and may have the setting.
    Broken,
}

impl AgentSession {
    /// Returns the rules of the settings and of answers in this session.
    pub(super) fn permission_rules(&self) -> Arc<RulesOfSession> {
        // An extension chooses the settings of its child sessions, but not these.
        let user_session = self.user_session();
        let settings = self.child_link.user_settings.as_ref();
        let settings = settings.unwrap_or(&self.settings);
        let sources = [SettingsScope::Global, SettingsScope::Project].map(|scope| {
            let value = match settings.raw_value(scope, "permissions") {
                Some(value) => RulesValue::Value(value),
                None if settings.may_have(scope, "permissions") => RulesValue::Broken,
                None => RulesValue::Missing,
            };
            let path = settings.path(scope);
            Source {
                file: path.map_or_else(
                    || "the settings".to_owned(),
                    |path| path.display().to_string(),
                ),
                value,
            }
        });
        let session_rules = user_session.approvals.session_rules.lock().clone();
        let mut compiled = user_session.approvals.compiled.lock();
        if let Some(compiled) = &*compiled
            && compiled.sources == sources
            && compiled.session_rules == session_rules
        {
            return compiled.clone();
        }
        let made = Arc::new(compile(sources, session_rules));
        *compiled = Some(made.clone());
        made
    }

    /// Adds rules to the user's settings. If that fails, they hold for this session.
    pub(super) async fn remember(&self, rules: &[String]) {
        let mut is_added = false;
        let written = self.settings.edit(SettingsScope::Global, |settings| {
            let permissions = settings.entry("permissions").or_insert_with(|| json!({}));
            let Value::Object(permissions) = permissions else {
                return;
            };
            let allow = permissions.entry("allow").or_insert_with(|| json!([]));
            if let Value::Array(allow) = allow {
                is_added = true;
                for rule in rules.iter().cloned().map(Value::String) {
                    if !allow.contains(&rule) {
                        allow.push(rule);
                    }
                }
            }
        });
        let error = match written {
            Err(error) => Some(error.to_string()),
            Ok(_) if !is_added => Some(format!(
                "\"permissions.allow\" in {} is no list of rules, and nothing was added to it",
                self.config.paths.global_settings().display()
            )),
            Ok(_) => None,
        };
        if let Some(error) = error {
            let text = format!("{error}. The answer holds for this session");
            self.report("<session>", "permissions", text).await;
            self.approvals.session_rules.lock().extend_from_slice(rules);
        }
    }
}

/// Makes the rules. A project only adds rules to ask and to deny. If a rule cannot be read, calls
/// that no rule matches are asked about: that rule may have denied them.
fn compile(sources: [Source; 2], session_rules: Vec<String>) -> RulesOfSession {
    let mut mistakes = Vec::new();
    let mut read = |source: &Source| {
        let (settings, mistakes_in_file) = match &source.value {
            RulesValue::Missing => Default::default(),
            RulesValue::Value(value) => {
                let members = [("permissions".to_owned(), value.clone())];
                PermissionSettings::of_file(&Map::from_iter(members))
            }
            RulesValue::Broken => {
                let mistake = "the file cannot be read or is no valid JSON, and may have rules";
                (PermissionSettings::default(), vec![mistake.to_owned()])
            }
        };
        let lists = [&settings.allow, &settings.ask, &settings.deny];
        let (_, errors) = Rules::parse(lists.map(Vec::as_slice), Verdict::Allow);
        let mistakes_in_file = mistakes_in_file
            .into_iter()
            .chain(errors.iter().map(ToString::to_string));
        mistakes.extend(
            mistakes_in_file.map(|it| format!("{it}; correct \"permissions\" in {}", source.file)),
        );
        settings
    };
    let (user, project) = (read(&sources[0]), read(&sources[1]));
    let allow = [user.allow, session_rules.clone()].concat();
    let ask = [user.ask, project.ask].concat();
    let deny = [user.deny, project.deny].concat();
    let default = match user.default.max(project.default) {
        UnmatchedCalls::Allow => Verdict::Allow,
        UnmatchedCalls::Ask => Verdict::Ask,
        UnmatchedCalls::Deny => Verdict::Deny,
    };
    // The mistakes of each file are known already.
    let (mut rules, _) = Rules::parse([&allow, &ask, &deny], default);
    if !mistakes.is_empty() {
        rules.default = rules.default.max(Verdict::Ask);
    }
    if !project.allow.is_empty() {
        tracing::info!(
            "rules of the project that allow are left out: {:?}",
            project.allow
        );
    }
    RulesOfSession {
        sources,
        session_rules,
        rules: Arc::new(rules),
        mistakes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(user: RulesValue, project: RulesValue) -> RulesOfSession {
        let source = |file: &str, value| Source {
            file: file.to_owned(),
            value,
        };
        let sources = [source("/user.json", user), source("/project.json", project)];
        compile(sources, Vec::new())
    }

    #[test]
    fn a_project_adds_rules_to_ask_and_to_deny_only() {
        let user = json!({ "allow": ["bash(a)"], "default": "ask" });
        let project = json!({
            "allow": ["bash(b)"], "ask": ["bash(c)"], "deny": ["bash(d)"], "default": "allow",
        });
        let compiled = rules(RulesValue::Value(user), RulesValue::Value(project));
        let texts = |rules: &[pi_permissions::Rule]| -> Vec<String> {
            rules.iter().map(ToString::to_string).collect()
        };
        assert_eq!(texts(&compiled.rules.allow), ["bash(a)"]);
        assert_eq!(texts(&compiled.rules.ask), ["bash(c)"]);
        assert_eq!(texts(&compiled.rules.deny), ["bash(d)"]);
        assert_eq!(compiled.rules.default, Verdict::Ask);
        assert!(compiled.mistakes.is_empty());
    }

    #[test]
    fn unreadable_rules_make_pi_ask() {
        for broken in [RulesValue::Broken, RulesValue::Value(json!("bash"))] {
            let compiled = rules(broken, RulesValue::Missing);
            assert_eq!(compiled.rules.default, Verdict::Ask);
            assert_eq!(compiled.mistakes.len(), 1);
        }
        let none = rules(RulesValue::Missing, RulesValue::Missing);
        assert!(none.rules.allow_everything());
    }

    #[test]
    fn a_mistake_names_the_file_that_has_it() {
        let right = || RulesValue::Value(json!({ "deny": ["bash(a)"] }));
        for wrong in [
            RulesValue::Value(json!({ "deny": ["bash(a && b)"] })),
            RulesValue::Value(json!({ "denied": [] })),
            RulesValue::Value(json!("bash")),
            RulesValue::Broken,
        ] {
            let wrong = || match &wrong {
                RulesValue::Value(value) => RulesValue::Value(value.clone()),
                _ => RulesValue::Broken,
            };
            let of_user = rules(wrong(), right()).mistakes;
            assert!(
                matches!(&of_user[..], [it] if it.ends_with("in /user.json")),
                "{of_user:?}"
            );
            let of_project = rules(right(), wrong()).mistakes;
            assert!(
                matches!(&of_project[..], [it] if it.ends_with("in /project.json")),
                "{of_project:?}"
            );
        }
    }
}
