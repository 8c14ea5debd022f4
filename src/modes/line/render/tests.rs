use std::sync::Arc;

use serde_json::json;

use super::*;
use pi_agent::event::{MessageUpdate, UiRequest};
use pi_ai::message::{AssistantBlock, ImageContent, TextContent, Usage, UserMessage};
use pi_ai::stream::PartialMessage;
use pi_extensions::diagnostics::error_context::explain;
use pi_session::message::CustomMessage;

const PLAIN: Style = Style {
    colours: false,
    dumb: true,
};
const COLOURS: Style = Style {
    colours: true,
    dumb: false,
};

struct Rendering {
    renderer: Renderer,
    now: Instant,
    text: String,
}

impl Rendering {
    fn new(style: Style) -> Self {
        Self {
            renderer: Renderer::new(style),
            now: Instant::now(),
            text: String::new(),
        }
    }

    fn event(mut self, event: Event) -> Self {
        self.text += &self.renderer.show(&event, self.now);
        self
    }

    fn after(mut self, millis: u64) -> Self {
        self.now += Duration::from_millis(millis);
        self
    }

    fn user(self, text: &str) -> Self {
        let message = AgentMessage::User(UserMessage::new(text, Vec::<ImageContent>::new()));
        self.event(Event::MessageStart {
            message: Arc::new(message),
        })
    }

    fn step(self, event: AssistantEvent) -> Self {
        let message = PartialMessage::new(&answer("", StopReason::Stop, None));
        self.event(Event::MessageUpdate(MessageUpdate { message, event }))
    }

    fn text(self, content_index: usize, deltas: &[&str]) -> Self {
        let show = deltas.iter().fold(self, |show, delta| {
            show.step(AssistantEvent::TextDelta {
                content_index,
                delta: (*delta).to_string(),
            })
        });
        show.step(AssistantEvent::TextEnd {
            content_index,
            content: deltas.concat(),
        })
    }

    fn answer_start(self) -> Self {
        let message = AgentMessage::Assistant(answer("", StopReason::Stop, None));
        self.event(Event::MessageStart {
            message: Arc::new(message),
        })
    }

    fn answer_end(self, text: &str, reason: StopReason, error: Option<&str>) -> Self {
        let message = AgentMessage::Assistant(answer(text, reason, error));
        self.event(Event::MessageEnd {
            message: Arc::new(message),
        })
    }

    fn tool_start(self, id: &str, command: &str) -> Self {
        self.event(Event::ToolExecutionStart {
            tool_call_id: id.into(),
            tool_name: "bash".into(),
            args: json!({ "command": command }),
        })
    }

    fn tool_end(self, id: &str, text: &str, is_error: bool) -> Self {
        self.event(Event::ToolExecutionEnd {
            tool_call_id: id.into(),
            tool_name: "bash".into(),
            result: ToolOutput::text(text),
            is_error,
            duration_ms: None,
        })
    }

    fn ui(self, method: UiMethod) -> Self {
        self.event(Event::ExtensionUiRequest(UiRequest {
            id: "1".into(),
            method,
        }))
    }

    fn settle(mut self) -> String {
        self.text += &self.renderer.settle();
        self.text
    }
}

fn answer(text: &str, stop_reason: StopReason, error: Option<&str>) -> AssistantMessage {
    AssistantMessage {
        content: vec![AssistantBlock::Text(TextContent {
            text: text.into(),
            text_signature: None,
        })],
        api: "a".into(),
        provider: "p".into(),
        model: "m".into(),
        response_id: None,
        usage: Usage::default(),
        stop_reason,
        error_message: error.map(str::to_string),
        timestamp: 0,
    }
}

#[test]
fn deltas_are_appended() {
    let text = Rendering::new(PLAIN)
        .answer_start()
        .text(0, &["Hel", "lo.\x1b[3", "1m\r\n", "Bye"])
        .text(1, &["Again."])
        .answer_end("Hello.\nBye", StopReason::Stop, None)
        .settle();
    assert_eq!(text, "Hello.\nBye\nAgain.\n");
}

#[test]
fn an_answer_without_deltas_is_shown() {
    let at_the_end = Rendering::new(PLAIN)
        .answer_start()
        .answer_end("All at once.", StopReason::Stop, None)
        .settle();
    assert_eq!(at_the_end, "All at once.\n");
    let as_a_block = Rendering::new(PLAIN)
        .answer_start()
        .step(AssistantEvent::TextEnd {
            content_index: 0,
            content: "All at once.".into(),
        })
        .answer_end("All at once.", StopReason::Stop, None)
        .settle();
    assert_eq!(as_a_block, "All at once.\n");
}

#[test]
fn thinking_is_dim_or_a_note() {
    let think = |style| {
        Rendering::new(style)
            .answer_start()
            .step(AssistantEvent::ThinkingStart { content_index: 0 })
            .step(AssistantEvent::ThinkingDelta {
                content_index: 0,
                delta: "hm".into(),
            })
            .step(AssistantEvent::ThinkingEnd {
                content_index: 0,
                content: "hm".into(),
            })
            .text(1, &["Yes."])
            .settle()
    };
    assert_eq!(think(COLOURS), "\x1b[2mhm\x1b[0m\nYes.\n");
    assert_eq!(think(PLAIN), "(thinking)\nYes.\n");
}

#[test]
fn a_tool_call_is_one_line() {
    let text = Rendering::new(PLAIN)
        .answer_start()
        .text(0, &["Let me see."])
        .tool_start("1", "ls")
        .after(300)
        .tool_end("1", "a\nb", false)
        .tool_start("2", "false")
        .tool_end("2", "(no output)\n\nCommand exited with code 1", true)
        .settle();
    assert_eq!(
        text,
        "Let me see.\n\
         * bash: ls ... ok (0.3 s)\n\
         * bash: false ... error: Command exited with code 1 (0.0 s)\n"
    );
}

#[test]
fn concurrent_calls_get_a_line_each() {
    let in_order = Rendering::new(PLAIN)
        .tool_start("1", "a")
        .tool_start("2", "b")
        .tool_end("1", "", false)
        .tool_end("2", "", false)
        .settle();
    assert_eq!(
        in_order,
        "* bash: a ... ok (0.0 s)\n* bash: b ... ok (0.0 s)\n"
    );
    let the_other_way = Rendering::new(PLAIN)
        .tool_start("1", "a")
        .tool_start("2", "b")
        .tool_end("2", "", false)
        .tool_end("1", "", false)
        .settle();
    assert_eq!(
        the_other_way,
        "* bash: a ... \n* bash: b ... ok (0.0 s)\n* bash: a ... ok (0.0 s)\n"
    );
}

#[test]
fn typed_prompts_are_not_repeated() {
    let mut show = Rendering::new(PLAIN);
    show.renderer.typed("hello");
    let text = show.user("hello").user("from\nan extension").settle();
    assert_eq!(text, "> from\n  an extension\n");
}

#[test]
fn a_retried_failure_is_shown_once() {
    let retried = Rendering::new(PLAIN)
        .answer_start()
        .answer_end("", StopReason::Error, Some("529 overloaded"))
        .event(Event::AutoRetryStart {
            attempt: 1,
            max_attempts: 3,
            delay_ms: 2000,
            error_message: "529 overloaded".into(),
        })
        .answer_start()
        .text(0, &["Here."])
        .settle();
    assert_eq!(retried, "Retrying (1/3) in 2.0 s: 529 overloaded\nHere.\n");
    let fatal = Rendering::new(PLAIN)
        .answer_start()
        .text(0, &["He"])
        .answer_end("He", StopReason::Error, Some("400 the dog ate it"))
        .settle();
    assert_eq!(fatal, "He\nError: 400 the dog ate it\n");
    let given_up = Rendering::new(PLAIN)
        .answer_start()
        .answer_end("", StopReason::Error, Some("529 overloaded"))
        .event(Event::AutoRetryEnd {
            success: false,
            attempt: 3,
            final_error: Some("529 overloaded".into()),
        })
        .settle();
    assert_eq!(given_up, "Error: gave up after 3 retries: 529 overloaded\n");
}

#[test]
fn a_queued_message_is_announced() {
    let queue = |steering: &[&str], follow_up: &[&str]| Event::QueueUpdate {
        steering: steering.iter().map(ToString::to_string).collect(),
        follow_up: follow_up.iter().map(ToString::to_string).collect(),
    };
    let text = Rendering::new(PLAIN)
        .event(queue(&["a"], &[]))
        .event(queue(&[], &[]))
        .event(queue(&[], &["b"]))
        .settle();
    assert_eq!(
        text,
        "(queued: the agent reads it after this turn)\n\
         (queued: the agent reads it when it is done)\n"
    );
}

#[test]
fn an_abort_is_shown() {
    let text = Rendering::new(PLAIN)
        .answer_start()
        .text(0, &["He"])
        .answer_end("He", StopReason::Aborted, Some("Request was aborted"))
        .settle();
    assert_eq!(text, "He\nAborted.\n");
}

#[test]
fn an_extension_error_names_extension_and_event() {
    let error = |event: &str| {
        Event::ExtensionError(ExtensionError::new(
            "/home/u/.pi/agent/extensions/gate/index.ts",
            event,
            "boom\n  at gate.ts:3:5",
        ))
    };
    let text = Rendering::new(PLAIN).event(error("tool_call")).settle();
    assert_eq!(
        text,
        "Extension error: gate, tool_call: boom at gate.ts:3:5\n"
    );
}

/// "command:wait of hello, command" named one command in three ways.
#[test]
fn an_error_of_a_command_names_it_as_typed() {
    let mut error = ExtensionError::new("command:wait", "command", "boom");
    explain(&mut error, Some("/x/hello.ts"));
    let text = Rendering::new(PLAIN)
        .event(Event::ExtensionError(error))
        .settle();
    assert_eq!(text, "Extension error: /wait of hello: boom\n");
}

#[test]
fn an_extension_warning_is_labelled() {
    let warning = ExtensionError::new("/x/gate.ts", "load", "There is no event \"x\"");
    let text = Rendering::new(PLAIN)
        .event(warning.as_warning().into())
        .settle();
    assert_eq!(
        text,
        "Extension warning: gate.ts, load: There is no event \"x\"\n"
    );
}

/// The position was once that of `JSON.parse`, which is not in the extension.
#[test]
fn a_thrown_error_shows_the_line_of_the_extension() {
    let stack =
        "SyntaxError: bad\n    at JSON.parse (<anonymous>)\n    at handler (/x/gate.ts:3:5)";
    let mut error =
        ExtensionError::from_thrown("/x/gate.ts", "command", "bad".into(), Some(stack.into()));
    explain(&mut error, None);
    let text = Rendering::new(PLAIN)
        .event(Event::ExtensionError(error))
        .settle();
    assert_eq!(
        text,
        "Extension error: gate.ts, command: SyntaxError: bad at /x/gate.ts:3:5\n"
    );
}

#[test]
fn notifications_statuses_and_titles_are_shown() {
    let notify = |kind: Option<&str>| UiMethod::Notify {
        message: "\x1b[1mSaved\x1b[0m".into(),
        notify_type: kind.map(str::to_string),
    };
    let text = Rendering::new(PLAIN)
        .ui(notify(None))
        .ui(notify(Some("warning")))
        .ui(UiMethod::SetStatus {
            status_key: "k".into(),
            status_text: Some("2 todos".into()),
        })
        .ui(UiMethod::SetTitle { title: "t".into() })
        .settle();
    assert_eq!(text, "Saved\nWarning: Saved\n[2 todos]\n");
    let title = Rendering::new(COLOURS).ui(UiMethod::SetTitle {
        title: "a\x07b".into(),
    });
    assert_eq!(title.text, "\x1b]0;ab\x07");
}

#[test]
fn custom_messages_are_shown_if_display_is_set() {
    let custom = |display| Event::MessageStart {
        message: Arc::new(AgentMessage::Custom(CustomMessage {
            custom_type: "todo".into(),
            content: pi_ai::message::UserContent::Text("buy milk".into()),
            display,
            details: None,
            timestamp: 0,
        })),
    };
    let text = Rendering::new(PLAIN)
        .event(custom(true))
        .event(custom(false));
    assert_eq!(text.settle(), "[todo] buy milk\n");
}

#[test]
fn compactions_are_shown() {
    let start = |reason| Event::CompactionStart { reason };
    let end =
        |result: Option<u64>, aborted, will_retry, error: Option<&str>| Event::CompactionEnd {
            reason: CompactionReason::Overflow,
            result: result.map(|tokens_before| Compacted {
                summary: "s".into(),
                first_kept_entry_id: "f".into(),
                tokens_before,
                estimated_tokens_after: None,
                details: None,
            }),
            aborted,
            will_retry,
            error_message: error.map(str::to_string),
        };
    // The error is not shown if the model is called again.
    let recovered = Rendering::new(PLAIN)
        .event(Event::MessageEnd {
            message: Arc::new(AgentMessage::Assistant(answer(
                "",
                StopReason::Error,
                Some("too long"),
            ))),
        })
        .event(start(CompactionReason::Overflow))
        .event(end(Some(70), false, true, None))
        .settle();
    assert_eq!(
        recovered,
        "The conversation does not fit into the model's context: compacting it\n\
         Compacted: it was about 70 tokens. Trying again.\n"
    );
    let others = Rendering::new(PLAIN)
        .event(start(CompactionReason::Threshold))
        .event(end(None, true, false, None))
        .event(end(None, false, false, Some("Auto-compaction failed: no")))
        .event(end(None, false, false, None))
        .settle();
    assert_eq!(
        others,
        "The model's context is nearly full: compacting the conversation\n\
         Compaction cancelled.\nError: Auto-compaction failed: no\nNothing was compacted.\n"
    );
}
