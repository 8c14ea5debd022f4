//! Reads the setting `permissions`: rules about tool calls (docs/permissions.md).

use serde::Deserialize;
use serde_json::{Map, Value};

/// Rules in the order of their weight: a rule to deny wins, then one to ask.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct PermissionSettings {
    pub deny: Vec<String>,
    pub ask: Vec<String>,
    pub allow: Vec<String>,
    /// The answer to calls that no rule matches.
    pub default: UnmatchedCalls,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UnmatchedCalls {
    #[default]
    Allow,
    Ask,
    Deny,
}

impl PermissionSettings {
    /// Reads the rules of one settings file. Returns the rules that could be read, and the mistakes.
    /// With a mistake a rule may be missing, so the caller must not take the rest for all rules.
    pub fn of_file(file: &Map<String, Value>) -> (Self, Vec<String>) {
        let mut settings = Self::default();
        let mut mistakes = Vec::new();
        let members = match file.get("permissions") {
            None | Some(Value::Null) => return (settings, mistakes),
            Some(Value::Object(members)) => members,
            Some(_) => {
                mistakes.push("\"permissions\" is no object".to_owned());
                return (settings, mistakes);
            }
        };
        for (name, value) in members {
            let list = match name.as_str() {
                "deny" => &mut settings.deny,
                "ask" => &mut settings.ask,
                "allow" => &mut settings.allow,
                "default" => {
                    match UnmatchedCalls::deserialize(value) {
                        Ok(value) => settings.default = value,
                        Err(error) => mistakes.push(format!("\"permissions.default\": {error}")),
                    }
                    continue;
                }
                _ => {
                    mistakes.push(format!(
                        "\"permissions.{name}\" is unknown; the members are allow, ask, deny and \
                         default"
                    ));
                    continue;
                }
            };
            let Value::Array(rules) = value else {
                mistakes.push(format!("\"permissions.{name}\" is no list of rules"));
                continue;
            };
            for rule in rules {
                match rule {
                    Value::String(rule) => list.push(rule.clone()),
                    other => mistakes.push(format!("{other} in \"permissions.{name}\" is no text")),
                }
            }
        }
        (settings, mistakes)
    }
}
