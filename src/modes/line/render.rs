//! Renders each event as text. Printed text is never changed, so that a dumb terminal shows it
//! and a screen reader can follow it. This module does not print.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::{Duration, Instant};

use super::sanitize::{
    Sanitizer, counted, error_line, extension_name, first_line, one_line, sanitize,
};
use super::style::Style;
use super::tool_line;
use super::widgets::Widgets;
use pi_agent::AgentMessage;
use pi_agent::event::{CompactionReason, Event, ExtensionError, ExtensionWait, Severity, UiMethod};
use pi_ai::message::{AssistantMessage, StopReason};
use pi_ai::stream::AssistantEvent;
use pi_compaction::Compacted;
use pi_extensions::diagnostics::error_context::code_frame;
use pi_tools::tool::ToolOutput;

pub struct Renderer {
    pub style: Style,
    pub widgets: Widgets,
    pub hide_thinking: bool,
    /// True while the cursor is at the beginning of a line.
    at_line_start: bool,
    sanitizer: Sanitizer,
    /// Indexes of the answer's blocks that arrived as deltas.
    streamed: HashSet<usize>,
    tools: HashMap<String, RunningTool>,
    /// Id of the tool call whose line waits for its outcome.
    open_tool_line: Option<String>,
    /// Prompts that the user typed and so has seen already.
    typed: VecDeque<String>,
    /// The error of the last answer, shown once it is known that no retry follows.
    failure: Option<String>,
    /// Number of queued messages.
    queued: usize,
}

struct RunningTool {
    line: String,
    started: Instant,
}

impl Renderer {
    pub fn new(style: Style) -> Self {
        Self {
            style,
            widgets: Widgets::default(),
            hide_thinking: false,
            at_line_start: true,
            sanitizer: Sanitizer::default(),
            streamed: HashSet::new(),
            tools: HashMap::new(),
            open_tool_line: None,
            typed: VecDeque::new(),
            failure: None,
            queued: 0,
        }
    }

    /// Records that a prompt stands at the beginning of the line.
    pub fn prompted(&mut self) {
        self.at_line_start = false;
    }

    /// Records that the user ended a line.
    pub fn entered(&mut self) {
        self.at_line_start = true;
        self.open_tool_line = None;
    }

    /// Records a typed prompt, which is not shown again when its message begins.
    pub fn typed(&mut self, text: &str) {
        self.typed.push_back(text.to_string());
    }

    /// Renders text on lines of its own.
    pub fn lines(&mut self, text: &str) -> String {
        let start = self.start_line();
        self.at_line_start = true;
        format!("{start}{}\n", text.trim_end_matches('\n'))
    }

    pub fn note(&mut self, text: &str) -> String {
        let note = self.style.yellow(&format!("Note: {}", one_line(text)));
        self.lines(&note)
    }

    /// Renders a line that an extension wrote to the console.
    pub fn console(&mut self, text: &str) -> String {
        let line = self.style.dim(&sanitize(text));
        self.lines(&line)
    }

    pub fn error(&mut self, text: &str) -> String {
        let error = self.style.red(&format!("Error: {}", sanitize(text)));
        self.lines(&error)
    }

    /// Renders what remains when the session has settled: the last error, and changed widgets.
    pub fn settle(&mut self) -> String {
        let mut text = self.end_line();
        self.typed.clear();
        if let Some(failure) = self.failure.take() {
            text += &self.error(&failure);
        }
        for line in self.widgets.changes() {
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
                let line = self.style.dim(&wait_line(wait));
                self.lines(&line)
            }
            Event::ExtensionUiRequest(request) => self.extension_ui(&request.method),
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
            | Event::ProjectTrustRequest(_)
            | Event::SummarizationRetryFinished
            | Event::ExtensionWaitEnd(_)
            | Event::ExtensionUiEnd(_)
            | Event::PermissionRequest(_)
            | Event::PermissionRequestEnd { .. } => String::new(),
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
                let text = format!("> {}", sanitize(&text).replace('\n', "\n  "));
                let text = self.style.bold(&text);
                self.lines(&text)
            }
            AgentMessage::Custom(custom) if custom.display => {
                let kind = format!("[{}]", one_line(&custom.custom_type));
                let text = format!(
                    "{} {}",
                    self.style.bold(&kind),
                    sanitize(&custom.content.text())
                );
                self.lines(&text)
            }
            AgentMessage::Assistant(_) => {
                self.sanitizer = Sanitizer::default();
                self.streamed.clear();
                self.failure = None;
                String::new()
            }
            _ => String::new(),
        }
    }

    fn answer_step(&mut self, step: &AssistantEvent) -> String {
        match step {
            AssistantEvent::ThinkingStart { .. } if !self.shows_thinking() => {
                let line = self.style.dim("(thinking)");
                self.lines(&line)
            }
            AssistantEvent::ThinkingDelta { delta, .. } if self.shows_thinking() => {
                let start = self.start_line_of_block(step);
                let text = self.sanitizer.push(delta);
                self.at_line_start = is_at_line_start(&text, self.at_line_start);
                start + self.style.dim(&text).as_str()
            }
            AssistantEvent::TextDelta {
                content_index,
                delta,
            } => {
                let start = self.start_line_of_block(step);
                self.streamed.insert(*content_index);
                let text = self.sanitizer.push(delta);
                self.at_line_start = is_at_line_start(&text, self.at_line_start);
                start + text.as_str()
            }
            AssistantEvent::TextEnd {
                content_index,
                content,
            } => match self.streamed.insert(*content_index) {
                true if !content.is_empty() => self.lines(&sanitize(content)),
                _ => self.end_line(),
            },
            AssistantEvent::ThinkingEnd { .. } => self.end_line(),
            _ => String::new(),
        }
    }

    fn answer_end(&mut self, answer: &AssistantMessage) -> String {
        let mut text = self.end_line();
        // Some providers answer without deltas.
        if self.streamed.is_empty() {
            for part in answer.texts().filter(|part| !part.is_empty()) {
                text += &self.lines(&sanitize(part));
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

    /// Whether thinking is shown. It is shown dim, so it needs colours: without them it looks
    /// like the answer.
    fn shows_thinking(&self) -> bool {
        self.style.colours && !self.hide_thinking
    }

    fn tool_start(&mut self, id: &str, line: String, now: Instant) -> String {
        let text = match self.open_tool_line {
            // The line of the first of several concurrent calls stays open.
            Some(_) => String::new(),
            None => {
                let start = self.start_line();
                self.open_tool_line = Some(id.to_string());
                self.at_line_start = false;
                format!("{start}{line} ... ")
            }
        };
        let tool = RunningTool { line, started: now };
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
        if self.open_tool_line.as_deref() == Some(id) {
            self.open_tool_line = None;
            self.at_line_start = true;
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
            // The fault is in no extension.
            path if path == "<session>" || error.event == "skill_expansion" => {
                let text = format!("{}: {}", error.event, one_line(&error.error));
                return match error.severity {
                    Severity::Error => self.error(&text),
                    Severity::Warning => self.lines(&paint(style, &text)),
                };
            }
            // The path is that of a command, which is its name.
            path if !path.contains('/') => error.path_and_name(),
            path => extension_name(path),
        };
        let name = match name.strip_prefix("command:") {
            Some(command) => format!("/{command}"),
            None => format!("{name}, {}", one_line(&error.event)),
        };
        let line = format!("Extension {what}: {name}: {}", positioned_line(error));
        let mut lines = paint(style, &line);
        let details = &error.details;
        // The message may contain the parser's code frame, of which only one line is shown.
        let at_location = || details.location.as_ref().and_then(code_frame);
        if let Some(frame) = details.code_frame.clone().or_else(at_location) {
            lines.push('\n');
            lines.push_str(&self.style.dim(&sanitize(&frame)));
        }
        self.lines(&lines)
    }

    fn extension_ui(&mut self, method: &UiMethod) -> String {
        match method {
            UiMethod::Notify {
                message,
                notify_type,
            } => {
                let message = sanitize(message);
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
                self.widgets.set_status(status_key, status_text.as_deref());
                String::new()
            }
            UiMethod::SetWidget {
                widget_key,
                widget_lines,
                ..
            } => {
                self.widgets.set_widget(widget_key, widget_lines.as_deref());
                String::new()
            }
            UiMethod::SetTitle { title } => self.title(title),
            // The client handles these.
            UiMethod::Select { .. }
            | UiMethod::Confirm { .. }
            | UiMethod::Input { .. }
            | UiMethod::Editor { .. }
            | UiMethod::SetEditorText { .. } => String::new(),
        }
    }

    /// Renders the title of the window.
    pub fn title(&self, title: &str) -> String {
        match self.style.dumb {
            true => String::new(),
            false => format!("\x1b]0;{}\x07", one_line(title)),
        }
    }

    /// Begins a new line unless the line of this block is open.
    fn start_line_of_block(&mut self, step: &AssistantEvent) -> String {
        let continues = match step {
            AssistantEvent::TextDelta { content_index, .. } => {
                self.streamed.contains(content_index)
            }
            _ => true,
        };
        match continues && self.open_tool_line.is_none() {
            true => String::new(),
            false => self.start_line(),
        }
    }

    /// Ends the open line, for output that is not rendered here.
    pub fn start_line(&mut self) -> String {
        self.open_tool_line = None;
        self.end_line()
    }

    fn end_line(&mut self) -> String {
        match std::mem::replace(&mut self.at_line_start, true) {
            true => String::new(),
            false => "\n".to_string(),
        }
    }
}

/// Returns the error's message with the position in the extension, which may differ from where it
/// was thrown.
fn positioned_line(error: &ExtensionError) -> String {
    let line = error_line(error.stack_or_message());
    match &error.details.location {
        Some(position) if !line.contains(&position.file) => {
            let first = first_line(error.stack_or_message());
            format!(
                "{first} at {}:{}:{}",
                position.file, position.line, position.column
            )
        }
        _ => line,
    }
}

/// Describes the extension that the agent waits for.
fn wait_line(wait: &ExtensionWait) -> String {
    let seconds = |milliseconds: u64| milliseconds as f64 / 1000.0;
    format!(
        "(waiting for the extension {}: {}, {:.1} of {:.1} s; Escape goes on without it)",
        extension_name(&wait.extension_path),
        one_line(&wait.event),
        seconds(wait.elapsed_ms),
        seconds(wait.limit_ms)
    )
}

fn is_at_line_start(text: &str, before: bool) -> bool {
    match text.is_empty() {
        true => before,
        false => text.ends_with('\n'),
    }
}

#[cfg(test)]
mod tests;
