//! Encodes `message_update` for handlers as the difference to the previous update. The
//! bridge keeps the message so far (`js/bridge/message-delta.ts`), so a message is not sent
//! again with each delta.

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use pi_agent::event::MessageUpdate;
use pi_ai::message::{AssistantBlock, ToolCall, WithRole};
use pi_ai::stream::{
    ArgumentsDelta, AssistantEvent, BlockDelta, PartialBlock, PartialMessage, ValueEdit,
};

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

#[derive(Default, Serialize)]
struct ChangedBlock {
    index: usize,
    /// The block, if it is another one. The arguments of a call that is streamed follow.
    #[serde(skip_serializing_if = "Option::is_none")]
    block: Option<AssistantBlock>,
    /// The growth of the block's text: of a text, a thought, or JSON of arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    more: Option<String>,
    /// The changes that `more` makes to the arguments of a call.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    edits: Vec<ValueEdit>,
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
            let delta = before.map_or(BlockDelta::Replaced, |before| block.since(before));
            let mut changed = ChangedBlock {
                index,
                ..ChangedBlock::default()
            };
            match (delta, block) {
                (BlockDelta::Unchanged, _) => return None,
                (BlockDelta::Text(more), _) => changed.more = Some(more),
                (BlockDelta::Arguments(ArgumentsDelta { text, edits }), _) => {
                    changed.more = Some(text);
                    changed.edits = edits;
                }
                (BlockDelta::Replaced, PartialBlock::Call { frame, arguments }) => {
                    changed.block = Some(AssistantBlock::ToolCall(ToolCall {
                        partial_json: Some(String::new()),
                        ..(**frame).clone()
                    }));
                    arguments.read(|text, edits| {
                        changed.more = Some(text.to_owned());
                        changed.edits = edits.to_owned();
                    });
                }
                (BlockDelta::Replaced, _) => changed.block = Some(block.to_block()),
            }
            Some(changed)
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
    fn arguments_are_encoded_as_edits() {
        let call = |json: &str| json!({"type": "toolCall", "id": "1", "name": "n", "arguments": {}, "partialJson": json});
        let mut all = UpdateEncoder::default();
        let mut partial = PartialMessage::new(&message(json!([call("{")])));
        let first = encoded(&mut all, &partial);
        let open = json!({"open": {"key": null, "array": false}});
        assert_eq!(
            first["blocks"],
            json!([{"index": 0, "block": call(""), "more": "{", "edits": [open]}])
        );
        assert!(partial.push(0, "\"a\":\"x"));
        let add = json!({"add": {"key": "a", "value": "x"}});
        assert_eq!(
            encoded(&mut all, &partial)["blocks"],
            json!([{"index": 0, "more": "\"a\":\"x", "edits": [add]}])
        );
        assert!(partial.push(0, "y\"}"));
        assert_eq!(
            encoded(&mut all, &partial)["blocks"],
            json!([{"index": 0, "more": "y\"}", "edits": [{"append": "y"}, "close"]}])
        );
    }
}
