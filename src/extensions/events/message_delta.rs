//! `message_update` for handlers: what is new in the answer since the update before. The
//! bridge has what came before (`js/bridge/message-delta.ts`), so that an answer in many
//! pieces does not cross once per piece.

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use crate::agent::event::MessageUpdate;
use crate::ai::message::{AssistantBlock, WithRole};
use crate::ai::stream::{AssistantEvent, Grown, Partial, PartialBlock};

/// What the bridge was told of last.
#[derive(Default)]
pub struct Told(Option<Partial>);

#[derive(Serialize)]
#[serde(tag = "type", rename = "message_update")]
struct Update<'a> {
    step: &'a AssistantEvent,
    /// The message without its blocks, where it is another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    around: Option<WithRole<'a>>,
    /// Only those that are new, or have grown.
    blocks: Vec<News>,
    /// How many blocks there are.
    count: usize,
}

#[derive(Serialize)]
struct News {
    index: usize,
    #[serde(flatten)]
    what: What,
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum What {
    Block(AssistantBlock),
    /// The text that a text or a thought has grown by.
    More(String),
}

impl Told {
    /// The next update is told from the beginning.
    pub fn forget(&mut self) {
        self.0 = None;
    }

    pub fn update(&mut self, update: &MessageUpdate) -> serde_json::Result<Box<RawValue>> {
        let message = &update.message;
        let before = self.0.replace(message.clone());
        let known = before.as_ref();
        let news = |(index, block): (usize, &PartialBlock)| {
            let before = known.and_then(|message| message.blocks().get(index));
            let what = match before.map_or(Grown::Anew, |before| block.since(before)) {
                Grown::By(more) if more.is_empty() => return None,
                Grown::By(more) => What::More(more),
                Grown::Anew => What::Block(block.whole()),
            };
            Some(News { index, what })
        };
        to_raw_value(&Update {
            step: &update.event,
            around: (!known.is_some_and(|before| message.is_within_the_same(before)))
                .then(|| WithRole::of(message.around())),
            blocks: message
                .blocks()
                .iter()
                .enumerate()
                .filter_map(news)
                .collect(),
            count: message.blocks().len(),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::ai::message::AssistantMessage;

    fn told(told: &mut Told, message: &Partial) -> Value {
        let update = MessageUpdate {
            message: message.clone(),
            event: AssistantEvent::TextStart { content_index: 0 },
        };
        serde_json::from_str(told.update(&update).unwrap().get()).unwrap()
    }

    fn message(content: Value) -> AssistantMessage {
        serde_json::from_value(json!({
            "content": content, "api": "a", "provider": "p", "model": "m",
            "usage": {}, "stopReason": "stop", "timestamp": 1
        }))
        .unwrap()
    }

    #[test]
    fn what_was_told_is_not_told_again() {
        let text = |text: &str| json!({"type": "text", "text": text});
        let mut all = Told::default();
        let mut answer = Partial::new(&message(json!([text("one"), text("a")])));
        let first = told(&mut all, &answer);
        assert_eq!(first["around"]["model"], "m");
        assert_eq!(
            first["blocks"],
            json!([{"index": 0, "block": text("one")}, {"index": 1, "block": text("a")}])
        );
        assert!(answer.push(1, "bc"));
        let second = told(&mut all, &answer);
        assert_eq!(second.get("around"), None);
        assert_eq!(second["blocks"], json!([{"index": 1, "more": "bc"}]));
        assert_eq!(told(&mut all, &answer)["blocks"], json!([]));
        // Another answer, and one that has fewer blocks.
        let other = Partial::new(&message(json!([text("one")])));
        let third = told(&mut all, &other);
        assert_eq!(third["around"]["model"], "m");
        assert_eq!(third["blocks"], json!([{"index": 0, "block": text("one")}]));
        assert_eq!(third["count"], 1);
        all.forget();
        assert_eq!(told(&mut all, &other)["blocks"], third["blocks"]);
    }

    #[test]
    fn calls_are_told_whole() {
        let call = |json: &str, path: Value| json!({"type": "toolCall", "id": "1", "name": "n", "arguments": path, "partialJson": json});
        let mut all = Told::default();
        let mut answer = Partial::new(&message(json!([call("{", json!({}))])));
        told(&mut all, &answer);
        assert!(answer.push(0, "\"a\":1"));
        let second = told(&mut all, &answer);
        assert_eq!(second["blocks"][0]["block"]["arguments"], json!({"a": 1}));
    }
}
