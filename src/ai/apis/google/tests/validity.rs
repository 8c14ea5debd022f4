//! Checks that requests of any session follow the rules of Gemini's API.

use serde_json::Value;

use super::super::convert::contents;
use crate::model::Model;
use crate::testing::histories::{ModelFields, require, require_call};
use crate::testing::{model, request_for};

#[test]
fn any_history_makes_a_request_that_the_api_accepts() {
    for id in ["gemini-2.5-pro", "gemini-3-pro", "claude-opus-4-6"] {
        let model = Model {
            id: id.into(),
            ..model("google-generative-ai")
        };
        let own = ModelFields {
            model: &model,
            call_ids: ["read_1", "read_2", "read_3"],
            signature: "c2ln",
        };
        own.for_any_history(|history| validate(&contents(&request_for(model.clone(), history))));
    }
}

fn count(content: &Value, member: &str) -> usize {
    let parts = content["parts"].as_array().into_iter().flatten();
    parts.filter(|part| part.get(member).is_some()).count()
}

fn validate(contents: &[Value]) -> Result<(), String> {
    require(
        contents[0]["role"] == "user",
        "the first turn must be the user's",
    )?;
    let mut calls = 0;
    let mut last_role = "";
    for content in contents {
        let parts = content["parts"].as_array();
        require(parts.is_some_and(|parts| !parts.is_empty()), "no parts")?;
        require(
            count(content, "functionResponse") == calls,
            "the number of function response parts must equal that of the function call parts",
        )?;
        calls = count(content, "functionCall");
        require(
            calls == 0 || last_role == "user",
            "a function call turn must come after a user turn or a function response turn",
        )?;
        for part in parts.into_iter().flatten() {
            require(part["text"] != "", "a text must not be empty")?;
            if let Some(call) = part.get("functionCall") {
                require_call(&call["name"], &call["args"])?;
            }
        }
        last_role = content["role"].as_str().unwrap_or_default();
    }
    require(calls == 0, "a function call needs a response")
}
