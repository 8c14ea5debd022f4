//! Damaged histories, for tests that no wire API sends requests that its server refuses.

use proptest::collection::vec;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use serde_json::{Value, json};

use super::{answer, answer_of, call, model, picture, result, text, thinking, user};
use crate::message::{
    AssistantMessage, ContentBlock, Message, StopReason, UserContent, UserMessage,
};
use crate::model::Model;

const CASES: u32 = 500;
const LONGEST: usize = 20;

/// Parts of messages that depend on the model: ids of calls and signatures in `model`'s form.
pub(crate) struct ModelFields<'a> {
    pub model: &'a Model,
    pub call_ids: [&'a str; 3],
    pub signature: &'a str,
}

impl ModelFields<'_> {
    /// Returns the messages of a valid conversation, and messages that only damaged ones have.
    fn messages(&self) -> Vec<Message> {
        let foreign = Model {
            id: "other".into(),
            provider: "other".into(),
            ..model("other-api")
        };
        let own = self.model;
        let [first, second, third] = self.call_ids;
        let arguments = json!({"path": "a"});
        let read = |id: &str| call(id, "read", arguments.clone());
        let thought = |text: &str| thinking(text, Some(self.signature));
        let text_blocks = |text: &str| vec![ContentBlock::text(text)];
        vec![
            user("read a and b"),
            answer(
                own,
                vec![thought("hm"), text("I look"), read(first), read(second)],
            ),
            result(first, text_blocks("content of a")),
            result(second, vec![ContentBlock::image(picture())]),
            user("and c"),
            answer(
                &foreign,
                vec![thinking("so", None), read("call_x.1|fc_1"), read("call 2")],
            ),
            result("call_x.1|fc_1", text_blocks("content of c")),
            result("call 2", vec![]),
            answer(own, vec![text("done")]),
            // The messages below are invalid.
            Message::Assistant(AssistantMessage {
                stop_reason: StopReason::Aborted,
                ..answer_of(own, vec![read(third)])
            }),
            result(third, text_blocks("cut")),
            result(first, text_blocks("another content of a")),
            Message::User(UserMessage {
                content: UserContent::Text(" ".into()),
                timestamp: 0,
            }),
            answer(own, vec![thought("only a thought")]),
            answer(own, vec![read(first), read(first)]),
            answer(own, vec![call(third, "functions.read", json!([1]))]),
            answer(&foreign, vec![call("call 3", "", json!("{}"))]),
            user(""),
        ]
    }

    /// Runs `check` with random choices of the messages in random order, with repetitions, and a
    /// prompt at the end. The error of `check` is the reason why the server would refuse the
    /// request.
    pub(crate) fn for_any_history(&self, check: impl Fn(Vec<Message>) -> Result<(), String>) {
        let messages = self.messages();
        let choices = vec(0..messages.len(), 0..LONGEST);
        let mut runner = TestRunner::new(Config {
            cases: CASES,
            failure_persistence: None,
            ..Config::default()
        });
        let outcome = runner.run(&choices, |choices| {
            let mut history: Vec<Message> = choices
                .into_iter()
                .map(|choice| messages[choice].clone())
                .collect();
            history.push(user("go on"));
            check(history).map_err(TestCaseError::fail)
        });
        if let Err(error) = outcome {
            panic!("{error}");
        }
    }
}

/// Checks the name and the arguments, an object or its text, of a call in a request.
pub(crate) fn require_call(name: &Value, arguments: &Value) -> Result<(), String> {
    let name = name.as_str().unwrap_or_default();
    let is_known = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    require(
        !name.is_empty() && name.len() <= 64 && name.chars().all(is_known),
        "the name must match ^[a-zA-Z0-9_-]{1,64}$",
    )?;
    let arguments = match arguments {
        Value::String(text) => serde_json::from_str(text).unwrap_or_default(),
        other => other.clone(),
    };
    require(arguments.is_object(), "the arguments must be an object")
}

/// Returns `sentence`, the text of a server, as an error unless `holds`.
pub(crate) fn require(holds: bool, sentence: &str) -> Result<(), String> {
    match holds {
        true => Ok(()),
        false => Err(sentence.to_owned()),
    }
}
