//! Encodes `message_update` for handlers as the difference to the previous update. The
//! bridge keeps the message so far (`js/bridge/message-delta.ts`), so a message is not sent
//! again with each delta.

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use pi_agent::event::MessageUpdate;
use pi_ai::message::{AssistantBlock, WithRole};
use pi_ai::stream::{AssistantEvent, BlockDelta, PartialBlock, PartialMessage};

/// The message as the bridge has it.
#[derive(Default)]
pub struct UpdateEncoder(Option<PartialMessage>);

#[derive(Serialize)]
#[serde(tag = "type", rename = "message_update")]
struct Update<'a> {
    step: &'a AssistantEvent,
    /// The message without its blocks, if it is another message.
    #[serde(skip_serializing_if = "Option::is_none")]
    around: Option<WithRole<'a>>,
    /// Only blocks that are new or have grown.
    blocks: Vec<ChangedBlock>,
    /// The number of blocks.
    count: usize,
}

#[derive(Serialize)]
struct ChangedBlock {
    index: usize,
    #[serde(flatten)]
    change: BlockChange,
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum BlockChange {
    Block(AssistantBlock),
    /// The text that was added to a text or thinking block.
    More(String),
}

impl UpdateEncoder {
    /// Makes the next update contain the whole message.
    pub fn reset(&mut self) {
        self.0 = None;
    }

    pub fn encode(&mut self, update: &MessageUpdate) -> serde_json::Result<Box<RawValue>> {
        let message = &update.message;
        let before = self.0.replace(message.clone());
        let known = before.as_ref();
        let changed = |(index, block): (usize, &PartialBlock)| {
            let before = known.and_then(|message| message.blocks().get(index));
            let change = match before.map_or(BlockDelta::Replaced, |before| block.since(before)) {
                BlockDelta::Appended(more) if more.is_empty() => return None,
                BlockDelta::Appended(more) => BlockChange::More(more),
                BlockDelta::Replaced => BlockChange::Block(block.to_block()),
            };
            Some(ChangedBlock { index, change })
        };
        to_raw_value(&Update {
            step: &update.event,
            around: (!known.is_some_and(|before| message.has_same_head(before)))
                .then(|| WithRole::new(message.head())),
            blocks: message
                .blocks()
                .iter()
                .enumerate()
                .filter_map(changed)
                .collect(),
            count: message.blocks().len(),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use pi_ai::message::AssistantMessage;

    fn encoded(encoder: &mut UpdateEncoder, message: &PartialMessage) -> Value {
        let update = MessageUpdate {
            message: message.clone(),
            event: AssistantEvent::TextStart { content_index: 0 },
        };
        serde_json::from_str(encoder.encode(&update).unwrap().get()).unwrap()
    }

    fn message(content: Value) -> AssistantMessage {
        serde_json::from_value(json!({
            "content": content, "api": "a", "provider": "p", "model": "m",
            "usage": {}, "stopReason": "stop", "timestamp": 1
        }))
        .unwrap()
    }

    #[test]
    fn only_new_content_is_encoded() {
        let text = |text: &str| json!({"type": "text", "text": text});
        let mut all = UpdateEncoder::default();
        let mut partial = PartialMessage::new(&message(json!([text("one"), text("a")])));
        let first = encoded(&mut all, &partial);
        assert_eq!(first["around"]["model"], "m");
        assert_eq!(
            first["blocks"],
            json!([{"index": 0, "block": text("one")}, {"index": 1, "block": text("a")}])
        );
        assert!(partial.push(1, "bc"));
        let second = encoded(&mut all, &partial);
        assert_eq!(second.get("around"), None);
        assert_eq!(second["blocks"], json!([{"index": 1, "more": "bc"}]));
        assert_eq!(encoded(&mut all, &partial)["blocks"], json!([]));
        // Another message, with fewer blocks.
        let other = PartialMessage::new(&message(json!([text("one")])));
        let third = encoded(&mut all, &other);
        assert_eq!(third["around"]["model"], "m");
        assert_eq!(third["blocks"], json!([{"index": 0, "block": text("one")}]));
        assert_eq!(third["count"], 1);
        all.reset();
        assert_eq!(encoded(&mut all, &other)["blocks"], third["blocks"]);
    }

    #[test]
    fn tool_calls_are_encoded_whole() {
        let call = |json: &str, path: Value| json!({"type": "toolCall", "id": "1", "name": "n", "arguments": path, "partialJson": json});
        let mut all = UpdateEncoder::default();
        let mut partial = PartialMessage::new(&message(json!([call("{", json!({}))])));
        encoded(&mut all, &partial);
        assert!(partial.push(0, "\"a\":1"));
        let second = encoded(&mut all, &partial);
        assert_eq!(second["blocks"][0]["block"]["arguments"], json!({"a": 1}));
    }
}
