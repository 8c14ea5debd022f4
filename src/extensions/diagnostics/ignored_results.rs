//! Warnings about parts of handler results that pi ignores, such as a misspelt member or a
//! string where an object is expected. The original ignores them as well; here the author
//! is reported once.

use pi_base::nearest;
use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::events::table::{EventKind, Merge};
use crate::registry::ExtensionId;

/// Members by which handlers block or cancel an action.
const REFUSALS: [&str; 2] = ["block", "cancel"];

/// Reported warnings: extension, event, member.
#[derive(Default)]
pub struct ReportedWarnings(HashSet<(ExtensionId, String, String)>);

impl ReportedWarnings {
    /// Returns the messages that were not reported before.
    pub fn filter_new(
        &mut self,
        extension: ExtensionId,
        event: &str,
        ignored: Vec<IgnoredMember>,
    ) -> Vec<String> {
        let ignored = ignored.into_iter();
        let new = ignored.filter(|one| {
            let about = (extension, event.to_owned(), one.member.clone());
            self.0.insert(about)
        });
        new.map(|one| one.message).collect()
    }
}

/// A part of a result that is ignored.
#[derive(Debug, PartialEq, Eq)]
pub struct IgnoredMember {
    /// Name of the member; empty if the whole result is ignored.
    member: String,
    message: String,
}

/// Returns the members of a handler's result that pi ignores. A handler that returns the
/// event object itself gets no warning for the event's own members, and a result that is a
/// bare message gets none at all.
pub fn ignored_members(
    kind: &EventKind,
    event: &Map<String, Value>,
    result: &Value,
) -> Vec<IgnoredMember> {
    if matches!(kind.merge, Merge::Replace(_)) {
        return Vec::new();
    }
    let result = match result {
        Value::Object(result) => result,
        other => return Vec::from_iter(ignored_value(kind, other)),
    };
    if result.get("role").is_some_and(Value::is_string) {
        return Vec::new();
    }
    let members = result.iter().filter(|(name, value)| {
        !value.is_null() && !kind.result_members.contains(&name.as_str()) && *name != "type"
    });
    let warnings = members.filter_map(|(name, value)| {
        let message = match event.get(name) {
            Some(before) if kind.mutable.contains(&name.as_str()) && before != value => format!(
                "`{name}` of an answer to {} is not taken: change event.{name} itself",
                kind.name
            ),
            Some(_) => return None,
            None if kind.result_members.is_empty() => ignored_refusal(kind, name, value)?,
            None => unknown_member_message(kind, name),
        };
        Some(IgnoredMember {
            member: name.clone(),
            message,
        })
    });
    warnings.collect()
}

/// Returns a warning if a handler assigned a member that counts only when it is changed in
/// place. A result with that member counts, and needs no warning.
pub fn ignored_assignment(kind: &EventKind, name: &str, result: &Value) -> Option<IgnoredMember> {
    let is_all = matches!(kind.merge, Merge::Replace(_));
    if result.get(name).is_some() || (is_all && !result.is_null()) {
        return None;
    }
    let instead = match is_all || kind.result_members.contains(&name) {
        true => "change it in place, or answer with another one",
        false => "change it in place",
    };
    Some(IgnoredMember {
        member: format!("event.{name}"),
        message: format!("The handler assigned event.{name}, which pi ignores: {instead}"),
    })
}

fn unknown_member_message(kind: &EventKind, name: &str) -> String {
    let suggestion = nearest(name, kind.result_members);
    let suggestion = suggestion.map(|suggestion| format!(" Is `{suggestion}` meant?"));
    format!(
        "The handler answered with `{name}`, which means nothing for {}.{} An answer may have {}",
        kind.name,
        suggestion.unwrap_or_default(),
        list_members(kind.result_members)
    )
}

/// Checks for `block` and `cancel` in results of events that ignore results. Other members
/// are not checked, because functions return all kinds of values without a meaning.
fn ignored_refusal(kind: &EventKind, name: &str, value: &Value) -> Option<String> {
    (REFUSALS.contains(&name) && *value == Value::Bool(true)).then(|| {
        let instead = match kind.name.starts_with("tool_") {
            true => "tool_call can be blocked",
            false => "events whose names have \"before\" in them can be stopped",
        };
        format!(
            "The handler answered with `{name}`, but answers to {} do not count: {instead}",
            kind.name
        )
    })
}

/// Checks a result that is not an object.
fn ignored_value(kind: &EventKind, result: &Value) -> Option<IgnoredMember> {
    let what = match result {
        Value::String(_) => "a text",
        Value::Array(_) => "an array",
        // An arrow function returns the value of its expression. Booleans are reported only
        // where a handler may be a gate.
        Value::Bool(_) if matches!(kind.merge, Merge::Last { .. }) => "true or false",
        _ => return None,
    };
    (!kind.result_members.is_empty()).then(|| IgnoredMember {
        member: String::new(),
        message: format!(
            "The handler answered with {what}, which pi ignores: an answer to {} is an \
             object that may have {}",
            kind.name,
            list_members(kind.result_members)
        ),
    })
}

fn list_members(members: &[&str]) -> String {
    let members: Vec<String> = members.iter().map(|name| format!("`{name}`")).collect();
    members.join(", ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::events::table;

    fn warnings(name: &str, event: Value, result: Value) -> Vec<(String, String)> {
        let (_, kind) = table::find(name).unwrap();
        let warnings = ignored_members(kind, event.as_object().unwrap(), &result);
        let pairs = warnings.into_iter().map(|one| (one.member, one.message));
        pairs.collect()
    }

    #[test]
    fn ignored_member_gets_a_suggestion() {
        let warnings = |result| warnings("tool_call", json!({"input": {}}), result);
        let expected = (
            "blocked".to_owned(),
            "The handler answered with `blocked`, which means nothing for tool_call. Is `block` \
             meant? An answer may have `block`, `reason`, `terminate`"
                .to_owned(),
        );
        assert_eq!(
            warnings(json!({"blocked": true})),
            std::slice::from_ref(&expected)
        );
        assert_eq!(
            warnings(json!({"blocked": true, "reason": "no"})),
            [expected],
            "what is known still counts"
        );
        let far = warnings(json!({"block": true, "xyz": 1}));
        assert_eq!(far.len(), 1);
        assert!(far[0].1.contains("for tool_call. An answer"), "{far:?}");
    }

    #[test]
    fn valid_results_get_no_warning() {
        let event = json!({"type": "tool_call", "toolName": "bash", "input": {"a": 1}});
        for result in [
            json!({"block": true, "reason": "no", "terminate": true}),
            json!({}),
            json!({"mystery": null}),
            event.clone(),
            json!(7),
            json!(null),
        ] {
            assert_eq!(warnings("tool_call", event.clone(), result), []);
        }
        let message = json!({"role": "assistant", "content": []});
        assert_eq!(warnings("message_end", json!({}), message), []);
        assert_eq!(
            warnings("before_provider_request", json!({}), json!({"x": 1})),
            []
        );
        assert_eq!(warnings("session_start", json!({}), json!({"x": 1})), []);
        assert_eq!(warnings("session_start", json!({}), json!(true)), []);
        assert_eq!(warnings("tool_result", json!({}), json!(true)), []);
    }

    #[test]
    fn in_place_members_are_explained() {
        let event = json!({"toolName": "bash", "input": {"command": "rm"}});
        let result = json!({"toolName": "bash", "input": {"command": "ls"}});
        let warnings = warnings("tool_call", event, result);
        assert_eq!(warnings.len(), 1);
        assert_eq!(
            warnings[0].1,
            "`input` of an answer to tool_call is not taken: change event.input itself"
        );
    }

    #[test]
    fn assignment_is_reported_unless_returned() {
        let message = |event: &str, name: &str, result: Value| {
            let (_, kind) = table::find(event).unwrap();
            ignored_assignment(kind, name, &result).map(|one| one.message)
        };
        let start = |name: &str| format!("The handler assigned event.{name}, which pi ignores");
        let input = message("tool_call", "input", json!(null)).unwrap();
        assert!(input.starts_with(&start("input")), "{input}");
        assert!(input.ends_with(": change it in place"), "{input}");
        let messages = message("context", "messages", json!({})).unwrap();
        assert!(
            messages.ends_with("or answer with another one"),
            "{messages}"
        );
        assert_eq!(
            message("context", "messages", json!({"messages": []})),
            None
        );
        assert!(message("before_provider_request", "payload", json!(null)).is_some());
        assert_eq!(
            message("before_provider_request", "payload", json!({"x": 1})),
            None
        );
    }

    #[test]
    fn non_object_result_is_reported() {
        let message = |name: &str, result| warnings(name, json!({}), result).pop().unwrap().1;
        let text = message("input", json!("in its place"));
        assert_eq!(
            text,
            "The handler answered with a text, which pi ignores: an answer to input is an \
             object that may have `action`, `text`, `images`"
        );
        assert!(message("context", json!([])).contains("with an array"));
        assert!(message("tool_call", json!(false)).contains("with true or false"));
    }

    #[test]
    fn ignored_block_is_reported() {
        let message = |name: &str, result| warnings(name, json!({}), result).pop().unwrap().1;
        assert_eq!(
            message("tool_execution_start", json!({"block": true})),
            "The handler answered with `block`, but answers to tool_execution_start do not count: \
             tool_call can be blocked"
        );
        assert_eq!(
            warnings("tool_execution_start", json!({}), json!({"block": false})),
            []
        );
    }

    #[test]
    fn each_warning_is_new_once() {
        let mut all = ReportedWarnings::default();
        let (_, kind) = table::find("tool_call").unwrap();
        let result = json!({"blocked": true, "why": "x"});
        let mut count_new = |extension| {
            let ignored = ignored_members(kind, &Map::new(), &result);
            all.filter_new(extension, "tool_call", ignored).len()
        };
        assert_eq!([count_new(1), count_new(1), count_new(2)], [2, 0, 2]);
    }
}
