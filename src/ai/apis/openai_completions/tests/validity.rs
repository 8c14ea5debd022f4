//! Checks that requests of any session follow the rules of Chat Completions.

use std::collections::HashSet;

use serde_json::Value;

use super::super::compat::Compat;
use super::super::request::body;
use crate::testing::histories::{ModelFields, require, require_call};
use crate::testing::{model, request_for};

#[test]
fn any_history_makes_a_request_that_the_api_accepts() {
    let model = model("openai-completions");
    let own = ModelFields {
        model: &model,
        call_ids: ["call_1", "call_2", "call_3"],
        signature: "reasoning_content",
    };
    let compat = Compat::new(&model).expect("the model has no compat of its own");
    own.for_any_history(|history| {
        let body = body(&request_for(model.clone(), history), &compat);
        validate(body["messages"].as_array().expect("messages are sent"))
    });
}

fn validate(messages: &[Value]) -> Result<(), String> {
    let mut open: HashSet<&str> = HashSet::new();
    let mut has_user = false;
    for message in messages {
        let role = message["role"].as_str().unwrap_or_default();
        if role == "tool" {
            let id = message["tool_call_id"].as_str().unwrap_or_default();
            require(open.remove(id), "role tool must follow its tool_calls")?;
            continue;
        }
        require(
            open.is_empty(),
            "tool_calls must be followed by tool messages",
        )?;
        has_user |= role == "user";
        if role != "assistant" {
            let is_empty = matches!(message["content"].as_str(), Some(""));
            require(
                !message["content"].is_null() && !is_empty,
                "content must not be empty",
            )?;
            continue;
        }
        require(has_user, "the first message must be the user's")?;
        let calls = message["tool_calls"].as_array();
        require(
            calls.is_some() || message["content"].is_string(),
            "an assistant must say or call something",
        )?;
        for call in calls.into_iter().flatten() {
            let id = call["id"].as_str().unwrap_or_default();
            require(!id.is_empty() && open.insert(id), "ids must be unique")?;
            require_call(&call["function"]["name"], &call["function"]["arguments"])?;
        }
    }
    require(
        open.is_empty(),
        "tool_calls must be followed by tool messages",
    )
}
