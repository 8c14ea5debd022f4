//! What is printed for each event: plain text that only ever goes on, so that a
//! dumb terminal shows it and a screen reader can follow it. Prints nothing
//! itself.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::{Duration, Instant};

use super::ambient::Ambient;
use super::style::Style;
use super::text::{Cleaner, clean, counted, error_line, extension_name, first_line, one_line};
use super::tool_line;
use crate::agent::AgentMessage;
use crate::agent::event::{
    CompactionReason, Event, ExtensionError, ExtensionWait, Severity, UiMethod,
};
use crate::ai::message::{AssistantMessage, StopReason};
use crate::ai::stream::AssistantEvent;
use crate::compaction::Compacted;
use crate::extensions::diagnostics::error_context::code_frame;
use crate::tools::tool::ToolOutput;

pub struct Screen {
    pub style: Style,
    pub ambient: Ambient,
    pub hide_thinking: bool,
    /// The cursor is at the beginning of a line.
    fresh: bool,
    cleaner: Cleaner,
    /// Blocks of the answer that came in pieces.
    streamed: HashSet<usize>,
    tools: HashMap<String, Tool>,
    /// The tool whose line waits for its outcome.
    waiting: Option<String>,
    /// What the user typed at the prompt, and so sees already.
    typed: VecDeque<String>,
    /// Why the last answer failed; told when it is known that it is not retried.
    failure: Option<String>,
    /// Messages that wait for the agent.
    queued: usize,
}

struct Tool {
    line: String,
    started: Instant,
}

impl Screen {
    pub fn new(style: Style) -> Self {
        Self {
            style,
            ambient: Ambient::default(),
            hide_thinking: false,
            fresh: true,
            cleaner: Cleaner::default(),
            streamed: HashSet::new(),
            tools: HashMap::new(),
            waiting: None,
            typed: VecDeque::new(),
            failure: None,
            queued: 0,
        }
    }

    /// A prompt stands at the beginning of the line.
    pub fn prompted(&mut self) {
        self.fresh = false;
    }

    /// The user ended a line.
    pub fn entered(&mut self) {
        self.fresh = true;
        self.waiting = None;
    }

    /// This prompt need not be shown when its message begins.
    pub fn typed(&mut self, text: &str) {
        self.typed.push_back(text.to_string());
    }

    /// On lines of their own.
    pub fn lines(&mut self, text: &str) -> String {
        let start = self.start_line();
        self.fresh = true;
        format!("{start}{}\n", text.trim_end_matches('\n'))
    }

    pub fn note(&mut self, text: &str) -> String {
        let note = self.style.yellow(&format!("Note: {}", one_line(text)));
        self.lines(&note)
    }

    /// What extensions write to the console.
    pub fn console(&mut self, text: &str) -> String {
        let line = self.style.dim(&clean(text));
        self.lines(&line)
    }

    pub fn error(&mut self, text: &str) -> String {
        let error = self.style.red(&format!("Error: {}", clean(text)));
        self.lines(&error)
    }

    /// The agent has nothing more to do: what is left to say.
    pub fn settle(&mut self) -> String {
        let mut text = self.end_line();
        self.typed.clear();
        if let Some(failure) = self.failure.take() {
            text += &self.error(&failure);
        }
        for line in self.ambient.changes() {
            let line = self.style.dim(&line);
            text += &self.lines(&line);
        }
        text
    }

    pub fn show(&mut self, event: &Event, now: Instant) -> String {
        match event {
            Event::MessageStart { message } => self.message_start(message),
            Event::MessageUpdate(update) => self.answer_step(&update.event),
            Event::MessageEnd { message } => match &**message {
                AgentMessage::Assistant(answer) => self.answer_end(answer),
                _ => String::new(),
            },
            Event::ToolExecutionStart {
                tool_call_id,
                tool_name,
                args,
            } => {
                let line = tool_line::call(self.style, tool_name, args);
                self.tool_start(tool_call_id, line, now)
            }
            Event::ToolExecutionEnd {
                tool_call_id,
                tool_name,
                result,
                is_error,
                ..
            } => self.tool_end(tool_call_id, tool_name, result, *is_error, now),
            Event::AutoRetryStart {
                attempt,
                max_attempts,
                delay_ms,
                error_message,
            }
            | Event::SummarizationRetryScheduled {
                attempt,
                max_attempts,
                delay_ms,
                error_message,
            } => {
                self.failure = None;
                let wait = Duration::from_millis(*delay_ms).as_secs_f64();
                let line = format!(
                    "Retrying ({attempt}/{max_attempts}) in {wait:.1} s: {}",
                    one_line(error_message)
                );
                let line = self.style.yellow(&line);
                self.lines(&line)
            }
            Event::AutoRetryEnd {
                success: false,
                attempt,
                final_error: Some(error),
            } => {
                self.failure = None;
                let retries = counted(*attempt as usize, "retry", "retries");
                self.error(&format!("gave up after {retries}: {}", one_line(error)))
            }
            Event::CompactionStart { reason } => {
                let line = self.style.dim(match reason {
                    CompactionReason::Manual => "Compacting the conversation",
                    CompactionReason::Threshold => {
                        "The model's context is nearly full: compacting the conversation"
                    }
                    CompactionReason::Overflow => {
                        "The conversation does not fit into the model's context: compacting it"
                    }
                });
                self.lines(&line)
            }
            Event::CompactionEnd {
                result,
                aborted,
                will_retry,
                error_message,
                ..
            } => self.compaction_end(
                result.as_ref(),
                *aborted,
                *will_retry,
                error_message.as_deref(),
            ),
            Event::QueueUpdate {
                steering,
                follow_up,
            } => self.queue(steering, follow_up),
            Event::ExtensionError(error) => self.extension_report(error),
            Event::ExtensionWarning(warning) => self.extension_report(&warning.clone().into()),
            Event::ExtensionWaitStart(wait) => {
                let line = self.style.dim(&waiting(wait));
                self.lines(&line)
            }
            Event::ExtensionUiRequest(request) => self.extension_says(&request.method),
            Event::AgentStart
            | Event::AgentEnd { .. }
            | Event::TurnStart
            | Event::TurnEnd { .. }
            | Event::ToolExecutionUpdate { .. }
            | Event::AutoRetryEnd { .. }
            | Event::SessionInfoChanged { .. }
            | Event::ThinkingLevelChanged { .. }
            | Event::EntryAppended { .. }
            | Event::BashExecutionUpdate { .. }
            | Event::AgentSettled { .. }
            | Event::SummarizationRetryAttemptStart(_)
            | Event::SummarizationRetryFinished
            | Event::ExtensionWaitEnd(_) => String::new(),
        }
    }

    fn compaction_end(
        &mut self,
        result: Option<&Compacted>,
        aborted: bool,
        will_retry: bool,
        error: Option<&str>,
    ) -> String {
        if will_retry {
            self.failure = None;
        }
        if let Some(error) = error {
            return self.error(&one_line(error));
        }
        let line = match (result, aborted) {
            (Some(compacted), _) => {
                let again = if will_retry { " Trying again." } else { "" };
                let line = format!(
                    "Compacted: it was about {} tokens.{again}",
                    compacted.tokens_before
                );
                self.style.dim(&line)
            }
            (None, true) => self.style.yellow("Compaction cancelled."),
            (None, false) => self.style.yellow("Nothing was compacted."),
        };
        self.lines(&line)
    }

    fn message_start(&mut self, message: &AgentMessage) -> String {
        match message {
            AgentMessage::User(user) => {
                let text = user.content.text();
                if self.typed.front() == Some(&text) {
                    self.typed.pop_front();
                    return String::new();
                }
                let text = format!("> {}", clean(&text).replace('\n', "\n  "));
                let text = self.style.bold(&text);
                self.lines(&text)
            }
            AgentMessage::Custom(custom) if custom.display => {
                let kind = format!("[{}]", one_line(&custom.custom_type));
                let text = format!(
                    "{} {}",
                    self.style.bold(&kind),
                    clean(&custom.content.text())
                );
                self.lines(&text)
            }
            AgentMessage::Assistant(_) => {
                self.cleaner = Cleaner::default();
                self.streamed.clear();
                self.failure = None;
                String::new()
            }
            _ => String::new(),
        }
    }

    fn answer_step(&mut self, step: &AssistantEvent) -> String {
        match step {
            AssistantEvent::ThinkingStart { .. } if !self.thinks_aloud() => {
                let line = self.style.dim("(thinking)");
                self.lines(&line)
            }
            AssistantEvent::ThinkingDelta { delta, .. } if self.thinks_aloud() => {
                let start = self.start_line_of_block(step);
                let text = self.cleaner.push(delta);
                self.fresh = ends_line(&text, self.fresh);
                start + self.style.dim(&text).as_str()
            }
            AssistantEvent::TextDelta {
                content_index,
                delta,
            } => {
                let start = self.start_line_of_block(step);
                self.streamed.insert(*content_index);
                let text = self.cleaner.push(delta);
                self.fresh = ends_line(&text, self.fresh);
                start + text.as_str()
            }
            AssistantEvent::TextEnd {
                content_index,
                content,
            } => match self.streamed.insert(*content_index) {
                true if !content.is_empty() => self.lines(&clean(content)),
                _ => self.end_line(),
            },
            AssistantEvent::ThinkingEnd { .. } => self.end_line(),
            _ => String::new(),
        }
    }

    fn answer_end(&mut self, answer: &AssistantMessage) -> String {
        let mut text = self.end_line();
        // From whoever answers in one piece.
        if self.streamed.is_empty() {
            for said in answer.texts().filter(|said| !said.is_empty()) {
                text += &self.lines(&clean(said));
            }
        }
        match answer.stop_reason {
            StopReason::Aborted => {
                let line = self.style.yellow("Aborted.");
                text += &self.lines(&line);
            }
            StopReason::Error => {
                let error = answer.error_message.clone();
                self.failure = Some(error.unwrap_or_else(|| "the model's answer failed".into()));
            }
            StopReason::Length => {
                text += &self.note("the answer reached the model's limit and was cut off");
            }
            StopReason::Stop | StopReason::ToolUse => {}
        }
        text
    }

    /// Dim text is for colours only: without them it could not be told from the
    /// answer.
    fn thinks_aloud(&self) -> bool {
        self.style.colours && !self.hide_thinking
    }

    fn tool_start(&mut self, id: &str, line: String, now: Instant) -> String {
        let text = match self.waiting {
            // Of those that run beside each other the first one's line stays open.
            Some(_) => String::new(),
            None => {
                let start = self.start_line();
                self.waiting = Some(id.to_string());
                self.fresh = false;
                format!("{start}{line} ... ")
            }
        };
        let tool = Tool { line, started: now };
        self.tools.insert(id.to_string(), tool);
        text
    }

    fn tool_end(
        &mut self,
        id: &str,
        name: &str,
        result: &ToolOutput,
        is_error: bool,
        now: Instant,
    ) -> String {
        let tool = self.tools.remove(id);
        let started = tool.as_ref().map_or(now, |tool| tool.started);
        let took = now.saturating_duration_since(started);
        let outcome = tool_line::outcome(self.style, result, is_error, took);
        if self.waiting.as_deref() == Some(id) {
            self.waiting = None;
            self.fresh = true;
            return format!("{outcome}\n");
        }
        let line = match tool {
            Some(tool) => tool.line,
            None => tool_line::call(self.style, name, &serde_json::Value::Null),
        };
        self.lines(&format!("{line} ... {outcome}"))
    }

    fn queue(&mut self, steering: &[String], follow_up: &[String]) -> String {
        let queued = steering.len() + follow_up.len();
        let before = std::mem::replace(&mut self.queued, queued);
        if queued <= before {
            return String::new();
        }
        let line = match steering.is_empty() {
            false => "(queued: the agent reads it after this turn)",
            true => "(queued: the agent reads it when it is done)",
        };
        let line = self.style.dim(line);
        self.lines(&line)
    }

    fn extension_report(&mut self, error: &ExtensionError) -> String {
        let style = self.style;
        let (what, paint): (_, fn(Style, &str) -> String) = match error.severity {
            Severity::Error => ("error", Style::red),
            Severity::Warning => ("warning", Style::yellow),
        };
        let name = match error.extension_path.as_str() {
            "<session>" => {
                let text = format!("{}: {}", error.event, one_line(&error.error));
                return match error.severity {
                    Severity::Error => self.error(&text),
                    Severity::Warning => self.lines(&paint(style, &text)),
                };
            }
            // Of a command: its place is its name.
            path if !path.contains('/') => error.place_and_name(),
            path => extension_name(path),
        };
        let line = format!(
            "Extension {what}: {name}, {}: {}",
            one_line(&error.event),
            placed_line(error)
        );
        let mut lines = paint(style, &line);
        let details = &error.details;
        // The parser's own is in the text, of which only a line is shown.
        let of_place = || details.location.as_ref().and_then(code_frame);
        if let Some(frame) = details.code_frame.clone().or_else(of_place) {
            lines.push('\n');
            lines.push_str(&self.style.dim(&clean(&frame)));
        }
        self.lines(&lines)
    }

    fn extension_says(&mut self, method: &UiMethod) -> String {
        match method {
            UiMethod::Notify {
                message,
                notify_type,
            } => {
                let message = clean(message);
                let line = match notify_type.as_deref() {
                    Some("error") => self.style.red(&format!("Error: {message}")),
                    Some("warning") => self.style.yellow(&format!("Warning: {message}")),
                    _ => message,
                };
                self.lines(&line)
            }
            UiMethod::SetStatus {
                status_key,
                status_text,
            } => {
                self.ambient.set_status(status_key, status_text.as_deref());
                String::new()
            }
            UiMethod::SetWidget {
                widget_key,
                widget_lines,
                ..
            } => {
                self.ambient.set_widget(widget_key, widget_lines.as_deref());
                String::new()
            }
            UiMethod::SetTitle { title } => self.title(title),
            // The client's business.
            UiMethod::Select { .. }
            | UiMethod::Confirm { .. }
            | UiMethod::Input { .. }
            | UiMethod::Editor { .. }
            | UiMethod::SetEditorText { .. } => String::new(),
        }
    }

    /// The window's title.
    pub fn title(&self, title: &str) -> String {
        match self.style.dumb {
            true => String::new(),
            false => format!("\x1b]0;{}\x07", one_line(title)),
        }
    }

    /// Begins a new line if a tool's line, or anything but this block, is open.
    fn start_line_of_block(&mut self, step: &AssistantEvent) -> String {
        let goes_on = match step {
            AssistantEvent::TextDelta { content_index, .. } => {
                self.streamed.contains(content_index)
            }
            _ => true,
        };
        match goes_on && self.waiting.is_none() {
            true => String::new(),
            false => self.start_line(),
        }
    }

    /// The beginning of a line, for what is not printed from here.
    pub fn start_line(&mut self) -> String {
        self.waiting = None;
        self.end_line()
    }

    fn end_line(&mut self) -> String {
        match std::mem::replace(&mut self.fresh, true) {
            true => String::new(),
            false => "\n".to_string(),
        }
    }
}

/// What went wrong and where in the extension: what threw may be somebody else's code.
fn placed_line(error: &ExtensionError) -> String {
    let line = error_line(error.whole());
    match &error.details.location {
        Some(place) if !line.contains(&place.file) => {
            let first = first_line(error.whole());
            format!("{first} at {}:{}:{}", place.file, place.line, place.column)
        }
        _ => line,
    }
}

/// Who holds the agent up, and what can be done about it.
fn waiting(wait: &ExtensionWait) -> String {
    let seconds = |milliseconds: u64| milliseconds as f64 / 1000.0;
    format!(
        "(waiting for the extension {}: {}, {:.1} of {:.1} s; Escape goes on without it)",
        extension_name(&wait.extension_path),
        one_line(&wait.event),
        seconds(wait.elapsed_ms),
        seconds(wait.limit_ms)
    )
}

fn ends_line(text: &str, before: bool) -> bool {
    match text.is_empty() {
        true => before,
        false => text.ends_with('\n'),
    }
}

#[cfg(test)]
mod tests;
