//! `reasoning_details`: OpenRouter's format for thoughts, with texts, summaries and encrypted
//! parts. Some models answer only if they get them back, so they are stored as the signature of
//! the answer's first thoughts, as newer versions of the original do.

use serde_json::{Map, Value};

use crate::message::{AssistantBlock, AssistantMessage};

type Detail = Map<String, Value>;

/// Members that identify the thought to which a fragment belongs.
const IDENTITY: [&str; 3] = ["id", "index", "format"];

/// The details of one answer, joined from their fragments.
#[derive(Debug, Default)]
pub(super) struct ReasoningDetails {
    details: Vec<Detail>,
}

impl ReasoningDetails {
    /// Adds a fragment. Texts and summaries are appended; encrypted data comes whole. A fragment
    /// of another form is ignored.
    pub(super) fn push(&mut self, fragment: &Value) {
        let Some(mut fragment) = fragment.as_object().cloned() else {
            return;
        };
        let Some(member) = content_member(&fragment) else {
            return;
        };
        // A signature may come alone.
        if member == "text" && is_blank(&fragment, "text") && !is_blank(&fragment, "signature") {
            fragment.insert(member.into(), "".into());
        }
        let Some(content) = fragment.get(member).and_then(Value::as_str) else {
            return;
        };
        let last = self.details.last_mut();
        match last.filter(|last| continues(last, &fragment, member)) {
            None => self.details.push(fragment),
            Some(last) => {
                if let Some(Value::String(text)) = last.get_mut(member) {
                    text.push_str(content);
                }
                for (name, value) in fragment {
                    if name != member && is_blank(last, &name) {
                        last.insert(name, value);
                    }
                }
            }
        }
    }

    /// Returns the details in the form that a session stores; `None` if there are none.
    pub(super) fn signature(&self) -> Option<String> {
        if self.details.is_empty() {
            return None;
        }
        serde_json::to_string(&self.details).ok()
    }
}

/// Reads the text that [`ReasoningDetails::signature`] stored in `answer`.
pub(super) fn stored_in(answer: &AssistantMessage) -> Option<Value> {
    answer.content.iter().find_map(|block| match block {
        AssistantBlock::Thinking(thinking) => parse(thinking.thinking_signature.as_deref()?),
        AssistantBlock::Text(_) | AssistantBlock::ToolCall(_) => None,
    })
}

fn parse(signature: &str) -> Option<Value> {
    // Most signatures are the names of members.
    if !signature.starts_with('[') {
        return None;
    }
    let details: Vec<Detail> = serde_json::from_str(signature).ok()?;
    let is_known = !details.is_empty() && details.iter().all(|d| content_member(d).is_some());
    is_known.then(|| details.into_iter().map(Value::Object).collect())
}

/// Returns the name of the member with the detail's content.
fn content_member(detail: &Detail) -> Option<&'static str> {
    match detail.get("type")?.as_str()? {
        "reasoning.text" => Some("text"),
        "reasoning.summary" => Some("summary"),
        "reasoning.encrypted" => Some("data"),
        _ => None,
    }
}

fn continues(last: &Detail, fragment: &Detail, member: &str) -> bool {
    let is_whole = member == "data" || last.get("type") != fragment.get("type");
    // A signature ends the text to which it belongs.
    let is_signed = !is_blank(last, "signature") && !is_blank(fragment, member);
    let differs = |name: &&str| {
        !is_blank(last, name) && !is_blank(fragment, name) && last.get(*name) != fragment.get(*name)
    };
    !is_whole && !is_signed && !IDENTITY.iter().any(differs)
}

fn is_blank(detail: &Detail, name: &str) -> bool {
    match detail.get(name) {
        None | Some(Value::Null) => true,
        Some(value) => value == "",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn joined(fragments: Value) -> Value {
        let mut details = ReasoningDetails::default();
        for fragment in fragments.as_array().unwrap() {
            details.push(fragment);
        }
        let signature = details.signature();
        let parsed = signature.as_deref().and_then(parse);
        parsed.unwrap_or(Value::Null)
    }

    #[test]
    fn fragments_of_a_text_are_joined() {
        let fragments = json!([
            {"type": "reasoning.text", "text": "I ", "format": "anthropic-claude-v1", "index": 0},
            {"type": "reasoning.text", "text": "think", "index": 0},
            {"type": "reasoning.text", "signature": "sig", "id": "r1", "index": 0},
            {"type": "reasoning.text", "text": "again", "index": 0},
            {"type": "reasoning.text", "text": "other", "index": 1},
        ]);
        let expected = json!([
            {"type": "reasoning.text", "text": "I think", "format": "anthropic-claude-v1",
             "index": 0, "signature": "sig", "id": "r1"},
            {"type": "reasoning.text", "text": "again", "index": 0},
            {"type": "reasoning.text", "text": "other", "index": 1},
        ]);
        assert_eq!(joined(fragments), expected);
    }

    #[test]
    fn encrypted_parts_stay_unchanged() {
        let fragments = json!([
            {"type": "reasoning.summary", "summary": "It ", "id": null},
            {"type": "reasoning.summary", "summary": "thinks"},
            {"type": "reasoning.encrypted", "data": "a", "id": "call_1", "more": [1]},
            {"type": "reasoning.encrypted", "data": "b", "format": "google-gemini-v1"},
            {"type": "reasoning.new", "what": 1},
            "no detail",
        ]);
        let expected = json!([
            {"type": "reasoning.summary", "summary": "It thinks", "id": null},
            {"type": "reasoning.encrypted", "data": "a", "id": "call_1", "more": [1]},
            {"type": "reasoning.encrypted", "data": "b", "format": "google-gemini-v1"},
        ]);
        assert_eq!(joined(fragments), expected);
    }

    #[test]
    fn the_name_of_a_member_is_no_detail() {
        assert_eq!(joined(json!([])), Value::Null);
        for signature in ["reasoning_content", "[]", "[1]", "[{\"type\":\"x\"}]", "["] {
            assert_eq!(parse(signature), None);
        }
    }
}
