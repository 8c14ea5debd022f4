//! Checks that requests of any session follow the rules of Mistral's API.

use std::collections::HashSet;

use serde_json::Value;

use super::super::request::payload;
use crate::testing::histories::{ModelFields, require, require_call};
use crate::testing::{model, request_for};

#[test]
fn any_history_makes_a_request_that_the_api_accepts() {
    let model = model("mistral-conversations");
    let own = ModelFields {
        model: &model,
        call_ids: ["abcdef001", "abcdef002", "abcdef003"],
        signature: "",
    };
    own.for_any_history(|history| {
        let payload = payload(&request_for(model.clone(), history));
        validate(payload["messages"].as_array().expect("messages are sent"))
    });
}

fn validate(messages: &[Value]) -> Result<(), String> {
    let mut open: HashSet<&str> = HashSet::new();
    let mut last_role = "";
    for message in messages {
        let role = message["role"].as_str().unwrap_or_default();
        let expected: &[&str] = match last_role {
            "" | "system" => &["system", "user"],
            "user" => &["user", "assistant"],
            "assistant" if open.is_empty() => &["user", "assistant"],
            "assistant" => &["tool"],
            _ if open.is_empty() => &["assistant"],
            _ => &["tool"],
        };
        require(
            expected.contains(&role),
            &format!("unexpected role {role} after role {last_role}"),
        )?;
        last_role = role;
        if role == "tool" {
            let id = message["toolCallId"].as_str().unwrap_or_default();
            require(open.remove(id), "a tool message must answer a call")?;
        }
        if role == "assistant" {
            let calls = message.get("toolCalls").and_then(Value::as_array);
            require(
                calls.is_some() || message.get("content").is_some(),
                "an assistant must have content or tool calls",
            )?;
            for call in calls.into_iter().flatten() {
                let id = call["id"].as_str().unwrap_or_default();
                let is_id = id.len() == 9 && id.chars().all(|c| c.is_ascii_alphanumeric());
                require(is_id, "an id has 9 letters and digits")?;
                require(open.insert(id), "ids must be unique")?;
                require_call(&call["function"]["name"], &call["function"]["arguments"])?;
            }
        }
    }
    require(last_role == "user", "expected last role user or tool")
}
