use serde_json::{Value, json};

use super::*;
use pi_ai::message::{
    AssistantBlock, AssistantMessage, StopReason, TextContent, ThinkingContent, ToolCall,
};
use pi_ai::stream::{AssistantEvent, PartialMessage};

fn message() -> AssistantMessage {
    AssistantMessage {
        content: Vec::new(),
        api: "a".into(),
        provider: "p".into(),
        model: "m\"".into(),
        response_id: None,
        usage: Usage::default(),
        stop_reason: StopReason::Stop,
        error_message: None,
        timestamp: 7,
    }
}

fn update(message: &AssistantMessage, event: AssistantEvent) -> Event {
    Event::MessageUpdate(MessageUpdate {
        message: PartialMessage::new(message),
        event,
    })
}

fn written(writer: &mut EventWriter, event: &Event) -> String {
    let mut out = Vec::new();
    writer.write_event(event, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// An answer in which everything changes that may change between two deltas.
fn steps() -> Vec<Event> {
    let mut steps = Vec::new();
    let mut answer = message();
    answer
        .content
        .push(AssistantBlock::Thinking(ThinkingContent::default()));
    steps.push(update(
        &answer,
        AssistantEvent::ThinkingStart { content_index: 0 },
    ));
    for (piece, signature) in [
        ("one\n", None),
        ("\u{1f980}\u{2028}\"\\", None),
        ("x", Some("s")),
    ] {
        let AssistantBlock::Thinking(thinking) = &mut answer.content[0] else {
            unreachable!()
        };
        thinking.thinking.push_str(piece);
        thinking.thinking_signature = signature.map(str::to_owned);
        let delta = piece.to_owned();
        let event = AssistantEvent::ThinkingDelta {
            content_index: 0,
            delta,
        };
        steps.push(update(&answer, event));
    }
    answer
        .content
        .push(AssistantBlock::Text(TextContent::default()));
    steps.push(update(
        &answer,
        AssistantEvent::TextStart { content_index: 1 },
    ));
    for (n, piece) in ["a\u{1}", "b", "\u{e9}", "c", "d"].into_iter().enumerate() {
        let AssistantBlock::Text(text) = &mut answer.content[1] else {
            unreachable!()
        };
        text.text.push_str(piece);
        match n {
            1 => answer.usage.input = 5,
            2 => answer.response_id = Some("r".into()),
            3 => {
                // Change an earlier block.
                let AssistantBlock::Thinking(thinking) = &mut answer.content[0] else {
                    unreachable!()
                };
                thinking.thinking_signature = Some("longer".into());
            }
            _ => {}
        }
        let event = AssistantEvent::TextDelta {
            content_index: 1,
            delta: piece.to_owned(),
        };
        steps.push(update(&answer, event));
    }
    answer.content.push(AssistantBlock::ToolCall(ToolCall {
        id: "t".into(),
        name: "read".into(),
        arguments: json!({}),
        partial_json: Some(String::new()),
        ..ToolCall::default()
    }));
    steps.push(update(
        &answer,
        AssistantEvent::ToolCallStart { content_index: 2 },
    ));
    let mut growing = PartialMessage::new(&answer);
    for piece in ["{\"p", "ath\":\"a\u{e9}\\", "n\"", ",\"n\":1", "2}", " x"] {
        if let AssistantBlock::ToolCall(call) = &mut answer.content[2] {
            let json = call.partial_json.get_or_insert_default();
            json.push_str(piece);
            call.arguments = pi_ai::stream::partial_json::parse(json);
        }
        assert!(growing.push(2, piece));
        let delta = piece.to_owned();
        steps.push(Event::MessageUpdate(MessageUpdate {
            message: growing.clone(),
            event: AssistantEvent::ToolCallDelta {
                content_index: 2,
                delta,
            },
        }));
    }
    // Text arrives in a block before an open call.
    if let AssistantBlock::Text(text) = &mut answer.content[1] {
        text.text.push_str("late");
    }
    let delta = "late".to_owned();
    let event = AssistantEvent::TextDelta {
        content_index: 1,
        delta,
    };
    steps.push(update(&answer, event));
    // Another answer that looks like a continuation of the first.
    let mut other = message();
    other.timestamp = 8;
    for text in ["ab", "abc"] {
        other.content = vec![AssistantBlock::Text(TextContent {
            text: text.into(),
            text_signature: None,
        })];
        let delta = text[text.len() - 1..].to_owned();
        let event = AssistantEvent::TextDelta {
            content_index: 0,
            delta,
        };
        steps.push(update(&other, event));
    }
    steps
}

#[test]
fn incremental_updates_equal_full_serialization() {
    let mut writer = EventWriter::default();
    for event in steps() {
        let whole = serde_json::to_string(&event).unwrap() + "\n";
        assert_eq!(written(&mut writer, &event), whole);
    }
}

#[test]
fn a_delta_does_not_serialize_earlier_text_again() {
    let mut incremental = IncrementalUpdate::default();
    let mut answer = message();
    answer
        .content
        .push(AssistantBlock::Text(TextContent::default()));
    let mut heads = Vec::new();
    for piece in ["first", "second"] {
        if let AssistantBlock::Text(text) = &mut answer.content[0] {
            text.text.push_str(piece);
        }
        let delta = piece.to_owned();
        let event = AssistantEvent::TextDelta {
            content_index: 0,
            delta,
        };
        let Event::MessageUpdate(update) = update(&answer, event) else {
            unreachable!()
        };
        // Written text is not read again: a changed byte stays.
        incremental.write(&update, None, &mut io::sink()).unwrap();
        heads.push(incremental.overwrite_first(b'_'));
    }
    assert_eq!(heads, ["_irst", "_irstsecond"]);
}

#[test]
fn numbers_need_the_seq_capability() {
    let mut writer = EventWriter::default();
    assert_eq!(
        written(&mut writer, &Event::AgentStart),
        "{\"type\":\"agent_start\"}\n"
    );
    writer.set_capabilities(Capabilities::from_names(["seq", "unheard-of"]));
    assert_eq!(
        written(&mut writer, &Event::TurnStart),
        "{\"type\":\"turn_start\",\"seq\":2}\n"
    );
    let mut lines = Vec::new();
    for event in steps() {
        let line: Value = serde_json::from_str(&written(&mut writer, &event)).unwrap();
        assert_eq!(line["seq"], writer.seq());
        assert_eq!(line["message"], line["assistantMessageEvent"]["partial"]);
        lines.push(line);
    }
    let missed = writer.events_after(2).unwrap();
    assert_eq!(missed.latest, writer.seq());
    let missed = missed.events.iter();
    for (missed, line) in missed.zip(lines) {
        let missed: Value = serde_json::from_slice(missed).unwrap();
        assert_eq!(missed["seq"], line["seq"]);
        assert_eq!(missed.get("message"), None);
        assert_eq!(missed["usage"], line["message"]["usage"]);
        let (small, large) = (
            &missed["assistantMessageEvent"],
            &line["assistantMessageEvent"],
        );
        assert_eq!(small["type"], large["type"]);
        assert_eq!(small["delta"], large["delta"]);
        if small["type"] == "toolcall_start" {
            assert_eq!(
                (&small["id"], &small["toolName"]),
                (&json!("t"), &json!("read"))
            );
        }
    }
    assert_eq!(writer.events_after(0).err().unwrap().oldest, Some(2));
}

#[test]
fn delta_updates_omit_the_message() {
    let mut writer = EventWriter::new(Capabilities::from_names(["deltaUpdates"]));
    let mut answer = message();
    answer
        .content
        .push(AssistantBlock::Text(TextContent::default()));
    let delta = "x".to_owned();
    let event = AssistantEvent::TextDelta {
        content_index: 0,
        delta,
    };
    let line: Value = serde_json::from_str(&written(&mut writer, &update(&answer, event))).unwrap();
    let usage = serde_json::to_value(answer.usage).unwrap();
    assert_eq!(
        line,
        json!({"type": "message_update", "usage": usage, "assistantMessageEvent":
            {"type": "text_delta", "contentIndex": 0, "delta": "x"}})
    );
}

#[test]
fn auto_compaction_events_are_added() {
    let mut writer = EventWriter::new(Capabilities::from_names(["autoCompactionEvents", "seq"]));
    let start = |reason| Event::CompactionStart { reason };
    assert_eq!(
        written(&mut writer, &start(CompactionReason::Threshold)),
        "{\"type\":\"compaction_start\",\"reason\":\"threshold\",\"seq\":1}\n\
         {\"type\":\"auto_compaction_start\",\"reason\":\"threshold\",\"seq\":2}\n"
    );
    assert_eq!(
        written(&mut writer, &start(CompactionReason::Manual))
            .lines()
            .count(),
        1
    );
    let end = Event::CompactionEnd {
        reason: CompactionReason::Overflow,
        result: None,
        aborted: true,
        will_retry: false,
        error_message: None,
    };
    let lines = written(&mut writer, &end);
    let older = lines.lines().nth(1).unwrap();
    assert_eq!(
        older,
        r#"{"type":"auto_compaction_end","result":null,"aborted":true,"willRetry":false,"seq":5}"#
    );
}
