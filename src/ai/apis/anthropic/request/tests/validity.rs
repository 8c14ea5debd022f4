//! Checks that requests of any session follow the rules of the Messages API.

use std::collections::HashSet;

use serde_json::Value;

use super::super::body;
use crate::apis::options::Retention;
use crate::testing::histories::{ModelFields, require, require_call};
use crate::testing::{model, request_for};

#[test]
fn any_history_makes_a_request_that_the_api_accepts() {
    let model = model("anthropic-messages");
    let own = ModelFields {
        model: &model,
        call_ids: ["toolu_01", "toolu_02", "toolu_03"],
        signature: "sig",
    };
    own.for_any_history(|history| {
        let request = request_for(model.clone(), history);
        let body = body(&request, false, Retention::Short);
        validate(body["messages"].as_array().expect("messages are sent"))
    });
}

fn blocks_of<'a>(message: &'a Value, kind: &str) -> Vec<&'a Value> {
    let blocks = message["content"].as_array().into_iter().flatten();
    blocks.filter(|block| block["type"] == kind).collect()
}

fn validate(messages: &[Value]) -> Result<(), String> {
    require(messages[0]["role"] == "user", "the first role must be user")?;
    let mut used = HashSet::new();
    let mut expected: Vec<&str> = Vec::new();
    for message in messages {
        let is_user = message["role"] == "user";
        let content = &message["content"];
        let is_empty = match content {
            Value::Array(blocks) => blocks.is_empty(),
            text => text.as_str().is_none_or(|text| text.trim().is_empty()),
        };
        require(!is_empty, "content must not be empty")?;
        for text in blocks_of(message, "text") {
            let text = text["text"].as_str().unwrap_or_default();
            require(!text.trim().is_empty(), "text must not be blank")?;
        }
        let results = blocks_of(message, "tool_result");
        let answered: Vec<&str> = results
            .iter()
            .filter_map(|result| result["tool_use_id"].as_str())
            .collect();
        let mut sorted = (answered.clone(), expected.clone());
        sorted.0.sort_unstable();
        sorted.1.sort_unstable();
        require(
            sorted.0 == sorted.1,
            "tool_use without tool_result immediately after, or the reverse",
        )?;
        let begins_with_results = content.as_array().is_none_or(|blocks| {
            (blocks.iter().take(results.len())).all(|block| block["type"] == "tool_result")
        });
        require(begins_with_results, "tool_result must come first")?;
        expected.clear();
        for call in blocks_of(message, "tool_use") {
            require(!is_user, "tool_use is not for users")?;
            let id = call["id"].as_str().unwrap_or_default();
            let is_sign = |sign: char| sign.is_ascii_alphanumeric() || "_-".contains(sign);
            require(
                (1..=64).contains(&id.len()) && id.chars().all(is_sign),
                "tool_use.id should match the pattern",
            )?;
            require(used.insert(id), "tool_use ids must be unique")?;
            require_call(&call["name"], &call["input"])?;
            expected.push(id);
        }
    }
    let ends = messages.last().is_some_and(|last| last["role"] == "user");
    require(ends, "the conversation must end with a user message")
}
