//! What a handler answers and nothing looks at: a name that is misspelt, a bare text where
//! an object is wanted. It is no error, as it is none in the original, but its author is
//! told of it once.

use pi_base::nearest;
use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::extensions::events::table::{EventKind, Merge};
use crate::extensions::registry::ExtensionId;

/// Of two names, from which on one may be meant for the other.
const LIKENESS: f32 = 0.6;

/// What handlers answer to stop something.
const REFUSALS: [&str; 2] = ["block", "cancel"];

/// What was told already: extension, event, and what it was.
#[derive(Default)]
pub struct Told(HashSet<(ExtensionId, String, String)>);

impl Told {
    /// Of these the sentences that are new.
    pub fn news(
        &mut self,
        extension: ExtensionId,
        event: &str,
        unheard: Vec<Unheard>,
    ) -> Vec<String> {
        let unheard = unheard.into_iter();
        let new = unheard.filter(|one| {
            let about = (extension, event.to_owned(), one.what.clone());
            self.0.insert(about)
        });
        new.map(|one| one.sentence).collect()
    }
}

/// Something in an answer that means nothing.
#[derive(Debug, PartialEq, Eq)]
pub struct Unheard {
    /// The name of the member; empty if the whole answer means nothing.
    what: String,
    sentence: String,
}

/// What of an answer to `event` means nothing. Whoever gives the event back, changed or
/// not, does not mean its other members; a message as the answer is told of by nobody.
pub fn unheard(kind: &EventKind, event: &Map<String, Value>, answer: &Value) -> Vec<Unheard> {
    if matches!(kind.merge, Merge::Replace(_)) {
        return Vec::new();
    }
    let answer = match answer {
        Value::Object(answer) => answer,
        other => return Vec::from_iter(bare(kind, other)),
    };
    if answer.get("role").is_some_and(Value::is_string) {
        return Vec::new();
    }
    let members = answer.iter().filter(|(name, value)| {
        !value.is_null() && !kind.answer.contains(&name.as_str()) && *name != "type"
    });
    let told = members.filter_map(|(name, value)| {
        let sentence = match event.get(name) {
            Some(before) if kind.mutable.contains(&name.as_str()) && before != value => format!(
                "`{name}` of an answer to {} is not taken: change event.{name} itself",
                kind.name
            ),
            Some(_) => return None,
            None if kind.answer.is_empty() => refusal(kind, name, value)?,
            None => unknown(kind, name),
        };
        Some(Unheard {
            what: name.clone(),
            sentence,
        })
    });
    told.collect()
}

/// A handler has put something else in the place of a member that counts as it was given. It
/// may have answered with it as well.
pub fn replaced(kind: &EventKind, name: &str, answer: &Value) -> Option<Unheard> {
    let is_all = matches!(kind.merge, Merge::Replace(_));
    if answer.get(name).is_some() || (is_all && !answer.is_null()) {
        return None;
    }
    let instead = match is_all || kind.answer.contains(&name) {
        true => "change it in place, or answer with another one",
        false => "change it in place",
    };
    Some(Unheard {
        what: format!("event.{name}"),
        sentence: format!("The handler assigned event.{name}, and nothing comes of it: {instead}"),
    })
}

fn unknown(kind: &EventKind, name: &str) -> String {
    let meant = nearest(name, kind.answer, LIKENESS);
    let meant = meant.map(|meant| format!(" Is `{meant}` meant?"));
    format!(
        "The handler answered with `{name}`, which means nothing for {}.{} An answer may have {}",
        kind.name,
        meant.unwrap_or_default(),
        listed(kind.answer)
    )
}

/// Of an event whose answers do not count only this is looked at: functions give back all
/// kinds of things that nobody means as an answer.
fn refusal(kind: &EventKind, name: &str, value: &Value) -> Option<String> {
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

/// An answer that is no object.
fn bare(kind: &EventKind, answer: &Value) -> Option<Unheard> {
    let what = match answer {
        Value::String(_) => "a text",
        Value::Array(_) => "an array",
        // An arrow function that calls something gives back what comes of it; these might
        // be gates that let everything pass.
        Value::Bool(_) if matches!(kind.merge, Merge::Last { .. }) => "true or false",
        _ => return None,
    };
    (!kind.answer.is_empty()).then(|| Unheard {
        what: String::new(),
        sentence: format!(
            "The handler answered with {what}, and nothing comes of it: an answer to {} is an \
             object that may have {}",
            kind.name,
            listed(kind.answer)
        ),
    })
}

fn listed(members: &[&str]) -> String {
    let members: Vec<String> = members.iter().map(|name| format!("`{name}`")).collect();
    members.join(", ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::extensions::events::table;

    fn told(name: &str, event: Value, answer: Value) -> Vec<(String, String)> {
        let (_, kind) = table::find(name).unwrap();
        let told = unheard(kind, event.as_object().unwrap(), &answer);
        let pairs = told.into_iter().map(|one| (one.what, one.sentence));
        pairs.collect()
    }

    #[test]
    fn a_member_that_means_nothing_is_told_with_what_is_meant() {
        let told = |answer| told("tool_call", json!({"input": {}}), answer);
        let expected = (
            "blocked".to_owned(),
            "The handler answered with `blocked`, which means nothing for tool_call. Is `block` \
             meant? An answer may have `block`, `reason`, `terminate`"
                .to_owned(),
        );
        assert_eq!(
            told(json!({"blocked": true})),
            std::slice::from_ref(&expected)
        );
        assert_eq!(
            told(json!({"blocked": true, "reason": "no"})),
            [expected],
            "what is known still counts"
        );
        let far = told(json!({"block": true, "xyz": 1}));
        assert_eq!(far.len(), 1);
        assert!(far[0].1.contains("for tool_call. An answer"), "{far:?}");
    }

    #[test]
    fn what_is_meant_is_not_told_of() {
        let event = json!({"type": "tool_call", "toolName": "bash", "input": {"a": 1}});
        for answer in [
            json!({"block": true, "reason": "no", "terminate": true}),
            json!({}),
            json!({"mystery": null}),
            event.clone(),
            json!(7),
            json!(null),
        ] {
            assert_eq!(told("tool_call", event.clone(), answer), []);
        }
        let message = json!({"role": "assistant", "content": []});
        assert_eq!(told("message_end", json!({}), message), []);
        assert_eq!(
            told("before_provider_request", json!({}), json!({"x": 1})),
            []
        );
        assert_eq!(told("session_start", json!({}), json!({"x": 1})), []);
        assert_eq!(told("session_start", json!({}), json!(true)), []);
        assert_eq!(told("tool_result", json!({}), json!(true)), []);
    }

    #[test]
    fn what_has_to_be_changed_in_place_is_told_as_such() {
        let event = json!({"toolName": "bash", "input": {"command": "rm"}});
        let answer = json!({"toolName": "bash", "input": {"command": "ls"}});
        let told = told("tool_call", event, answer);
        assert_eq!(told.len(), 1);
        assert_eq!(
            told[0].1,
            "`input` of an answer to tool_call is not taken: change event.input itself"
        );
    }

    #[test]
    fn what_was_assigned_is_told_unless_it_is_the_answer() {
        let said = |event: &str, name: &str, answer: Value| {
            let (_, kind) = table::find(event).unwrap();
            replaced(kind, name, &answer).map(|one| one.sentence)
        };
        let start = |name: &str| format!("The handler assigned event.{name}, and nothing comes");
        let input = said("tool_call", "input", json!(null)).unwrap();
        assert!(input.starts_with(&start("input")), "{input}");
        assert!(input.ends_with(": change it in place"), "{input}");
        let messages = said("context", "messages", json!({})).unwrap();
        assert!(
            messages.ends_with("or answer with another one"),
            "{messages}"
        );
        assert_eq!(said("context", "messages", json!({"messages": []})), None);
        assert!(said("before_provider_request", "payload", json!(null)).is_some());
        assert_eq!(
            said("before_provider_request", "payload", json!({"x": 1})),
            None
        );
    }

    #[test]
    fn an_answer_that_is_no_object_is_told_where_one_is_wanted() {
        let said = |name: &str, answer| told(name, json!({}), answer).pop().unwrap().1;
        let text = said("input", json!("in its place"));
        assert_eq!(
            text,
            "The handler answered with a text, and nothing comes of it: an answer to input is an \
             object that may have `action`, `text`, `images`"
        );
        assert!(said("context", json!([])).contains("with an array"));
        assert!(said("tool_call", json!(false)).contains("with true or false"));
    }

    #[test]
    fn a_refusal_of_what_cannot_be_refused_is_told() {
        let said = |name: &str, answer| told(name, json!({}), answer).pop().unwrap().1;
        assert_eq!(
            said("tool_execution_start", json!({"block": true})),
            "The handler answered with `block`, but answers to tool_execution_start do not count: \
             tool_call can be blocked"
        );
        assert_eq!(
            told("tool_execution_start", json!({}), json!({"block": false})),
            []
        );
    }

    #[test]
    fn each_is_told_once() {
        let mut all = Told::default();
        let (_, kind) = table::find("tool_call").unwrap();
        let answer = json!({"blocked": true, "why": "x"});
        let mut news = |extension| {
            let unheard = unheard(kind, &Map::new(), &answer);
            all.news(extension, "tool_call", unheard).len()
        };
        assert_eq!([news(1), news(1), news(2)], [2, 0, 2]);
    }
}
