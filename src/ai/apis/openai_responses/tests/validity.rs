//! Checks that requests of any session follow the rules of the Responses API.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::super::request::body;
use crate::apis::options::Retention;
use crate::testing::histories::{ModelFields, require, require_call};
use crate::testing::{model, request_for};

#[test]
fn any_history_makes_a_request_that_the_api_accepts() {
    let model = model("openai-responses");
    let own = ModelFields {
        model: &model,
        call_ids: ["call_1|fc_1", "call_2|fc_2", "call_3|fc_3"],
        signature: r#"{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"x"}"#,
    };
    own.for_any_history(|history| {
        let body = body(&request_for(model.clone(), history), Retention::Short);
        validate(body["input"].as_array().expect("items are sent"))
    });
}

fn validate(items: &[Value]) -> Result<(), String> {
    let mut ids = HashSet::new();
    // The value is true once the call has its output.
    let mut calls: HashMap<&str, bool> = HashMap::new();
    for (index, item) in items.iter().enumerate() {
        if let Some(id) = item["id"].as_str() {
            require(ids.insert(id), "duplicate item")?;
        }
        let call_id = item["call_id"].as_str().unwrap_or_default();
        match item["type"].as_str() {
            Some("function_call") => {
                require(
                    calls.insert(call_id, false).is_none(),
                    "call_id must be unique",
                )?;
                require_call(&item["name"], &item["arguments"])?;
            }
            Some("function_call_output") => require(
                calls.insert(call_id, true) == Some(false),
                "no tool call found for function call output",
            )?,
            Some("reasoning") => {
                let next = items.get(index + 1).map(|next| &next["type"]);
                let follows = next.is_some_and(|kind| {
                    ["message", "function_call", "reasoning"]
                        .iter()
                        .any(|known| kind == known)
                });
                require(follows, "reasoning without its required following item")?;
            }
            _ => {}
        }
    }
    require(
        calls.values().all(|answered| *answered),
        "no tool output found for function call",
    )
}
