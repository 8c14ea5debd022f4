//! The setting `permissions`: rules about tool calls (docs/permissions.md).

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
    /// Reads the rules of one settings file. A mistake is returned with what could be read: the
    /// caller must not treat missing rules as permission.
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
                    mistakes.push(format!("\"permissions.{name}\" is no known list of rules"));
                    continue;
                }
            };
            let Value::Array(rules) = value else {
                mistakes.push(format!("\"permissions.{name}\" is no list"));
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
