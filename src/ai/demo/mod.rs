//! A provider without a key and without network access. Users can watch the agent work, and tests
//! and examples run on any machine. It understands a few commands, which its introduction lists,
//! and says that it is no language model.

mod steps;

use std::time::Duration;

use super::failure::Failure;
use super::message::{ContentBlock, Message, StopReason, ToolResultMessage, Usage, join_text};
use super::model::{Modality, Model, ModelCost};
use super::models::builtin;
use super::stream::message_builder::MessageBuilder;
use super::stream::{Api, AssistantStream, Request};
use steps::{Step, parse_steps};

pub const PROVIDER: &str = "demo";
/// The name of its wire API.
pub const DEMO_API: &str = "demo";
const ID: &str = "demo";

/// Pause between two deltas: visible, but short.
const DELTA_PAUSE: Duration = Duration::from_millis(4);
const CHARS_PER_DELTA: usize = 14;
/// Lines of a result that the answer shows.
const MAX_LINES: usize = 12;

pub fn is_demo(model: &Model) -> bool {
    model.api == DEMO_API
}

/// Returns the provider's entry in the form of a catalogue entry.
pub(super) fn entry() -> builtin::ProviderEntry {
    let model = Model {
        id: ID.to_owned(),
        name: "Demo (built in, no key needed)".to_owned(),
        api: DEMO_API.to_owned(),
        provider: PROVIDER.to_owned(),
        base_url: String::new(),
        reasoning: false,
        input: vec![Modality::Text],
        cost: ModelCost::default(),
        context_window: 128_000,
        max_tokens: 16_384,
        headers: None,
        thinking_level_map: None,
        sampling_params: None,
        sampling_params_by_thinking_level: None,
        compat: None,
    };
    builtin::ProviderEntry {
        api: model.api.clone(),
        base_url: String::new(),
        models: vec![model],
    }
}

/// Implements the wire API `demo`.
pub struct DemoApi;

impl Api for DemoApi {
    fn stream(&self, request: Request) -> AssistantStream {
        let (items, stream) = AssistantStream::channel();
        tokio::spawn(async move {
            let mut answer = MessageBuilder::new(&request.model, items, request.cancel.clone());
            let written = write(&request, &mut answer).await;
            answer.finish(written).await;
        });
        stream
    }
}

async fn write(request: &Request, answer: &mut MessageBuilder) -> Result<(), Failure> {
    let input = (
        &request.system_prompt,
        &request.messages,
        request.tool_specs(),
    );
    // These types always serialise; a failure would only make the estimate wrong.
    let mut usage = Usage {
        input: tokens(serde_json::to_string(&input).map_or(0, |json| json.len())),
        ..Usage::default()
    };
    answer.set_usage(usage);
    answer.start().await?;
    let (text, steps) = next_answer(request);
    let mut output = 0;
    if !text.is_empty() {
        let index = answer.start_text().await?;
        for delta in pieces(&text) {
            answer
                .interruptible(tokio::time::sleep(DELTA_PAUSE))
                .await?;
            answer.add_text(index, delta).await?;
        }
        answer.end_text(index).await?;
        output += text.len();
    }
    for Step { tool, arguments } in steps {
        let id = format!("demo_{}", uuid::Uuid::new_v4().simple());
        let json = arguments.to_string();
        let index = answer
            .start_tool_call(id, tool, serde_json::Value::Null)
            .await?;
        for delta in pieces(&json) {
            answer
                .interruptible(tokio::time::sleep(DELTA_PAUSE))
                .await?;
            answer.add_arguments(index, delta).await?;
        }
        answer.end_tool_call(index).await?;
        answer.edit().stop_reason = StopReason::ToolUse;
        output += json.len();
    }
    usage.output = tokens(output);
    usage.total_tokens = usage.input + usage.output;
    answer.set_usage(usage);
    Ok(())
}

/// Estimates tokens from bytes: four bytes are one token.
fn tokens(bytes: usize) -> u64 {
    (bytes as u64).div_ceil(4)
}

fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let end = rest.char_indices().nth(CHARS_PER_DELTA);
        let (piece, after) = rest.split_at(end.map_or(rest.len(), |(index, _)| index));
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}

/// Returns the text and the calls of the answer: to the user's new messages, or to the results of
/// the calls before.
fn next_answer(request: &Request) -> (String, Vec<Step>) {
    let is_answer = |message: &Message| matches!(message, Message::Assistant(_));
    let last = request.messages.iter().rposition(is_answer);
    let open = &request.messages[last.map_or(0, |index| index + 1)..];
    let prompts = open.iter().filter_map(|message| match message {
        Message::User(user) => Some(user.content.text()),
        _ => None,
    });
    let prompt = prompts.collect::<Vec<_>>().join("\n");
    let results: Vec<String> = open
        .iter()
        .filter_map(|message| match message {
            Message::ToolResult(result) => Some(describe_result(result)),
            _ => None,
        })
        .collect();
    if prompt.is_empty() && !results.is_empty() {
        return (results.join("\n\n"), Vec::new());
    }
    if let Some(summary) = summary(&prompt) {
        return (summary, Vec::new());
    }
    let tools: Vec<&str> = request
        .tool_specs()
        .iter()
        .map(|tool| tool.name.as_str())
        .collect();
    let steps = parse_steps(&prompt);
    let (steps, missing): (Vec<_>, Vec<_>) = steps
        .into_iter()
        .map(|step| step.for_tools(&tools))
        .partition(|step| tools.contains(&step.tool.as_str()));
    if let Some(step) = missing.first() {
        let text = format!(
            "I would need the tool `{}`, which I was not given.",
            step.tool
        );
        return (text, steps);
    }
    if steps.is_empty() {
        return (introduction(), steps);
    }
    let calls: Vec<String> = steps
        .iter()
        .map(|step| format!("`{}`", step.tool))
        .collect();
    (format!("I call {}.", calls.join(", ")), steps)
}

fn describe_result(result: &ToolResultMessage) -> String {
    let name = &result.tool_name;
    let text = join_text(&result.content);
    let pictures = result
        .content
        .iter()
        .any(|block| !matches!(block, ContentBlock::Text(_)));
    let mut lines: Vec<&str> = text.trim_end().lines().take(MAX_LINES).collect();
    let more = text.trim_end().lines().count() - lines.len();
    let more = format!("({more} more lines)");
    if text.trim_end().lines().nth(MAX_LINES).is_some() {
        lines.push(&more);
    }
    if pictures {
        lines.push("(and a picture)");
    }
    // A longer fence than any in the text ends the block in the right place.
    let longest = text
        .split(|sign| sign != '`')
        .map(str::len)
        .max()
        .unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    let verb = if result.is_error { "failed" } else { "gave" };
    format!("`{name}` {verb}:\n\n{fence}\n{}\n{fence}", lines.join("\n"))
}

/// Answers the request for a summary that compaction sends with the whole conversation as text.
fn summary(request: &str) -> Option<String> {
    let (_, rest) = request.split_once("<conversation>")?;
    let (conversation, _) = rest.split_once("</conversation>")?;
    let lines = conversation.lines();
    let prompts = lines.filter_map(|line| line.strip_prefix("[User]: "));
    let prompts: Vec<String> = prompts.map(|line| format!("- {line}")).collect();
    Some(format!(
        "## Goal\nA demonstration of the agent.\n\n## What the user asked\n{}",
        prompts.join("\n")
    ))
}

fn introduction() -> String {
    "Hello! I am pi's built-in demo: not a language model, just a few commands that need no key and \
     no network. I show how the agent works by calling real tools in this folder. Try:\n\n\
     - list the files here, then read README.md\n\
     - run `cargo --version`\n\
     - write hello world to hello.txt\n\
     - replace hello with goodbye in hello.txt\n\
     - use the NAME tool with {\"its\": \"arguments\"}\n\n\
     For a real model, set an API key such as ANTHROPIC_API_KEY or OPENAI_API_KEY."
        .to_owned()
}

#[cfg(test)]
mod tests;
