//! The keyboard of a dumb terminal. The terminal edits the lines, which may arrive at any time;
//! Ctrl-C arrives as a signal.

use std::io::BufRead;

use tokio::sync::mpsc;

use super::terminal::{InputEvent, InputRequest};

pub struct LineReader {
    /// The lines so far of an answer with several lines.
    answer: Vec<String>,
    prefill: String,
}

impl LineReader {
    pub fn start(events: mpsc::Sender<InputEvent>) -> std::io::Result<Self> {
        std::thread::Builder::new()
            .name("keyboard".into())
            .spawn(move || read_lines(&events))?;
        Ok(Self {
            answer: Vec::new(),
            prefill: String::new(),
        })
    }

    /// Starts a request. Returns the text to print before the user's line.
    pub fn start_request(&mut self, request: &InputRequest) -> String {
        self.answer.clear();
        self.prefill.clear();
        match request {
            InputRequest::Keys => String::new(),
            InputRequest::Prompt { text } | InputRequest::Message { text } if text.is_empty() => {
                "> ".to_string()
            }
            // The text cannot be put into the line that the user edits.
            InputRequest::Prompt { text } | InputRequest::Message { text } => {
                format!("(suggested: {text})\n> ")
            }
            InputRequest::Answer {
                prompt,
                text,
                multiline: true,
            } if !text.is_empty() => {
                self.prefill.clone_from(text);
                format!("{text}\n(an empty line at once keeps this text)\n{prompt}")
            }
            InputRequest::Answer { prompt, .. } => prompt.clone(),
        }
    }

    /// Processes an event. `None` if an answer with several lines is not complete.
    pub fn accept(
        &mut self,
        event: InputEvent,
        request: Option<&InputRequest>,
    ) -> Option<InputEvent> {
        let multiline = matches!(
            request,
            Some(InputRequest::Answer {
                multiline: true,
                ..
            })
        );
        match event {
            InputEvent::Line(line) if multiline && line.is_empty() => {
                let text = match self.answer.is_empty() {
                    true => std::mem::take(&mut self.prefill),
                    false => self.answer.join("\n"),
                };
                Some(InputEvent::Line(text))
            }
            InputEvent::Line(line) if multiline => {
                self.answer.push(line);
                None
            }
            event => Some(event),
        }
    }
}

fn read_lines(events: &mpsc::Sender<InputEvent>) {
    let mut input = std::io::stdin().lock();
    loop {
        let mut line = Vec::new();
        let event = match input.read_until(b'\n', &mut line) {
            Ok(0) => InputEvent::End,
            Ok(_) => {
                let line = String::from_utf8_lossy(&line);
                InputEvent::Line(line.trim_end_matches(['\n', '\r']).to_string())
            }
            Err(error) => InputEvent::Failed(error.to_string()),
        };
        let over = matches!(event, InputEvent::Failed(_));
        // An error means that the terminal was closed.
        if events.blocking_send(event).is_err() || over {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines() -> LineReader {
        LineReader {
            answer: Vec::new(),
            prefill: String::new(),
        }
    }

    fn answer(text: &str) -> InputRequest {
        InputRequest::Answer {
            prompt: "text> ".into(),
            text: text.into(),
            multiline: true,
        }
    }

    #[test]
    fn an_empty_line_ends_a_multiline_answer() {
        let mut lines = lines();
        let request = answer("");
        assert_eq!(lines.start_request(&request), "text> ");
        assert_eq!(
            lines.accept(InputEvent::Line("a".into()), Some(&request)),
            None
        );
        assert_eq!(
            lines.accept(InputEvent::Line("b".into()), Some(&request)),
            None
        );
        let event = lines.accept(InputEvent::Line(String::new()), Some(&request));
        assert_eq!(event, Some(InputEvent::Line("a\nb".into())));
    }

    #[test]
    fn an_empty_line_at_once_keeps_the_text() {
        let mut lines = lines();
        let request = answer("one\ntwo");
        let printed = lines.start_request(&request);
        assert!(printed.starts_with("one\ntwo\n("), "{printed}");
        let event = lines.accept(InputEvent::Line(String::new()), Some(&request));
        assert_eq!(event, Some(InputEvent::Line("one\ntwo".into())));
    }

    #[test]
    fn other_events_are_passed_on() {
        let mut lines = lines();
        let event = InputEvent::Line("x".into());
        assert_eq!(
            lines.accept(event.clone(), Some(&InputRequest::Keys)),
            Some(event)
        );
        assert_eq!(
            lines.accept(InputEvent::End, Some(&answer(""))),
            Some(InputEvent::End)
        );
    }
}
