//! Checks that requests of any session follow the rules of Bedrock's Converse API.

use std::collections::HashSet;

use serde_json::Value;

use super::super::request::payload;
use crate::apis::options::Retention;
use crate::auth::secret_value::Env;
use crate::model::Model;
use crate::testing::histories::{ModelFields, require, require_call};
use crate::testing::{model, request_for};

#[test]
fn any_history_makes_a_request_that_the_api_accepts() {
    let model = Model {
        id: "anthropic.claude-opus-4-6-v1".into(),
        ..model("bedrock-converse-stream")
    };
    let own = ModelFields {
        model: &model,
        call_ids: ["tooluse_1", "tooluse_2", "tooluse_3"],
        signature: "sig",
    };
    own.for_any_history(|history| {
        let request = request_for(model.clone(), history);
        let payload = payload(
            &request,
            "us-east-1",
            Retention::Short,
            &Env::fixed([("", ""); 0]),
        );
        validate(payload["messages"].as_array().expect("messages are sent"))
    });
}

fn validate(messages: &[Value]) -> Result<(), String> {
    let mut used = HashSet::new();
    let mut open: HashSet<&str> = HashSet::new();
    for (index, message) in messages.iter().enumerate() {
        let role = if index % 2 == 0 { "user" } else { "assistant" };
        require(message["role"] == role, "the roles must alternate")?;
        let content = message["content"].as_array().expect("content is a list");
        require(!content.is_empty(), "the content field is empty")?;
        let mut calls = HashSet::new();
        for block in content {
            if let Some(text) = block["text"].as_str() {
                require(!text.trim().is_empty(), "the text field is blank")?;
            }
            if let Some(id) = block["toolUse"]["toolUseId"].as_str() {
                require(used.insert(id), "tool ids must be unique")?;
                calls.insert(id);
                require_call(&block["toolUse"]["name"], &block["toolUse"]["input"])?;
            }
            let result = &block["toolResult"];
            if let Some(id) = result["toolUseId"].as_str() {
                require(open.remove(id), "toolResult without toolUse")?;
                let parts = result["content"].as_array().expect("content is a list");
                let is_blank = |block: &Value| {
                    block["text"]
                        .as_str()
                        .is_some_and(|text| text.trim().is_empty())
                };
                require(!parts.iter().any(is_blank), "the text field is blank")?;
            }
        }
        require(open.is_empty(), "toolUse without toolResult")?;
        open = calls;
    }
    let ends = messages.last().is_some_and(|last| last["role"] == "user");
    require(ends, "a conversation must end with a user message")
}
