//! A dialog of an extension, shown as text and answered at the prompt.

use std::time::{Duration, Instant};

use super::sanitize::{one_line, sanitize};
use pi_agent::event::{UiAnswer, UiMethod, UiRequest};

pub struct Dialog {
    pub id: String,
    kind: DialogKind,
    /// When the extension stops waiting.
    pub deadline: Option<Instant>,
}

enum DialogKind {
    Select {
        title: String,
        options: Vec<String>,
    },
    Confirm {
        title: String,
        message: String,
    },
    Input {
        title: String,
        placeholder: Option<String>,
    },
    Editor {
        title: String,
        prefill: String,
    },
}

/// Result of parsing the line that the user typed.
#[derive(Debug, PartialEq)]
pub enum ParsedAnswer {
    Answer(UiAnswer),
    /// The line is no valid answer. Holds a hint for the user.
    Invalid(String),
}

impl Dialog {
    /// `None` if the request is no dialog.
    pub fn new(request: &UiRequest, now: Instant) -> Option<Self> {
        let (kind, timeout) = match &request.method {
            UiMethod::Select {
                title,
                options,
                timeout,
            } => {
                let (title, options) = (title.clone(), options.clone());
                (DialogKind::Select { title, options }, *timeout)
            }
            UiMethod::Confirm {
                title,
                message,
                timeout,
            } => {
                let (title, message) = (title.clone(), message.clone());
                (DialogKind::Confirm { title, message }, *timeout)
            }
            UiMethod::Input {
                title,
                placeholder,
                timeout,
            } => {
                let (title, placeholder) = (title.clone(), placeholder.clone());
                (DialogKind::Input { title, placeholder }, *timeout)
            }
            UiMethod::Editor { title, prefill } => {
                let prefill = sanitize(prefill.as_deref().unwrap_or_default());
                let title = title.clone();
                (DialogKind::Editor { title, prefill }, None)
            }
            UiMethod::Notify { .. }
            | UiMethod::SetStatus { .. }
            | UiMethod::SetWidget { .. }
            | UiMethod::SetTitle { .. }
            | UiMethod::SetEditorText { .. } => return None,
        };
        Some(Self {
            id: request.id.clone(),
            kind,
            deadline: timeout.and_then(|millis| now.checked_add(Duration::from_millis(millis))),
        })
    }

    /// The text above the prompt.
    pub fn text(&self, now: Instant) -> String {
        let (title, rest) = match &self.kind {
            DialogKind::Select { title, options } => {
                let numbered = options.iter().enumerate();
                let lines = numbered
                    .map(|(index, option)| format!("\n  {}. {}", index + 1, one_line(option)));
                (title, lines.collect())
            }
            DialogKind::Confirm { title, message } if message.trim().is_empty() => {
                (title, String::new())
            }
            DialogKind::Confirm { title, message } => (title, format!("\n{}", sanitize(message))),
            DialogKind::Input { title, placeholder } => {
                let example = placeholder.as_deref().map(one_line).unwrap_or_default();
                let rest = match example.is_empty() {
                    true => String::new(),
                    false => format!(" ({example})"),
                };
                (title, rest)
            }
            DialogKind::Editor { title, prefill } => {
                let how = match prefill.is_empty() {
                    true => "\n(an empty line ends the text)",
                    false => "\n(an empty line ends the text; this is in it already)",
                };
                (title, how.to_string())
            }
        };
        let left = self.deadline.map(|deadline| {
            let left = deadline.saturating_duration_since(now);
            format!("\n({:.0} s to answer)", left.as_secs_f64().ceil())
        });
        format!("? {}{rest}{}", sanitize(title), left.unwrap_or_default())
    }

    /// The prompt before the answer.
    pub fn prompt(&self) -> String {
        match &self.kind {
            DialogKind::Select { options, .. } => match options.len() {
                0 | 1 => "1> ".to_string(),
                count => format!("1-{count}> "),
            },
            DialogKind::Confirm { .. } => "y/n> ".to_string(),
            DialogKind::Input { .. } => "answer> ".to_string(),
            DialogKind::Editor { .. } => "text> ".to_string(),
        }
    }

    /// The text that the answer begins with.
    pub fn prefill(&self) -> &str {
        match &self.kind {
            DialogKind::Editor { prefill, .. } => prefill,
            _ => "",
        }
    }

    /// Whether the answer has several lines, ended by an empty one.
    pub fn multiline(&self) -> bool {
        matches!(self.kind, DialogKind::Editor { .. })
    }

    pub fn parse_answer(&self, text: &str) -> ParsedAnswer {
        match &self.kind {
            DialogKind::Select { options, .. } => match choose(options, text.trim()) {
                Some(option) => ParsedAnswer::Answer(UiAnswer::Value(option.clone())),
                None if options.is_empty() => ParsedAnswer::Answer(UiAnswer::Cancelled),
                None => ParsedAnswer::Invalid(format!(
                    "Type a number from 1 to {} or the beginning of an option.",
                    options.len()
                )),
            },
            DialogKind::Confirm { .. } => match text.trim().to_lowercase().as_str() {
                "y" | "yes" => ParsedAnswer::Answer(UiAnswer::Confirmed(true)),
                "n" | "no" => ParsedAnswer::Answer(UiAnswer::Confirmed(false)),
                _ => ParsedAnswer::Invalid("Type y or n.".to_string()),
            },
            // The answer is one line, also if it was pasted with a line end.
            DialogKind::Input { .. } => {
                ParsedAnswer::Answer(UiAnswer::Value(text.replace(['\r', '\n'], "")))
            }
            DialogKind::Editor { .. } => {
                let text = text.trim_end_matches('\n');
                ParsedAnswer::Answer(UiAnswer::Value(text.to_string()))
            }
        }
    }
}

/// Finds an option by its number, its whole text, or a beginning that is unique.
fn choose<'a>(options: &'a [String], text: &str) -> Option<&'a String> {
    if text.is_empty() {
        return None;
    }
    if let Ok(number) = text.parse::<usize>() {
        return options.get(number.checked_sub(1)?);
    }
    let wanted = text.to_lowercase();
    let lower = |option: &String| one_line(option).to_lowercase();
    if let Some(exact) = options.iter().find(|option| lower(option) == wanted) {
        return Some(exact);
    }
    let mut begin = options
        .iter()
        .filter(|option| lower(option).starts_with(&wanted));
    match (begin.next(), begin.next()) {
        (Some(only), None) => Some(only),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dialog(method: UiMethod) -> (Dialog, Instant) {
        let now = Instant::now();
        let request = UiRequest {
            id: "7".into(),
            method,
        };
        (Dialog::new(&request, now).unwrap(), now)
    }

    fn value(text: &str) -> ParsedAnswer {
        ParsedAnswer::Answer(UiAnswer::Value(text.into()))
    }

    #[test]
    fn a_select_is_a_numbered_list() {
        let (dialog, now) = dialog(UiMethod::Select {
            title: "Run \x1b[31mrm\x1b[0m?".into(),
            options: vec!["Yes".into(), "Yes, always".into(), "No".into()],
            timeout: Some(4500),
        });
        assert_eq!(
            dialog.text(now),
            "? Run rm?\n  1. Yes\n  2. Yes, always\n  3. No\n(5 s to answer)"
        );
        assert_eq!(dialog.prompt(), "1-3> ");
        for (text, option) in [("2", "Yes, always"), (" n", "No"), ("yes", "Yes")] {
            assert_eq!(dialog.parse_answer(text), value(option), "{text:?}");
        }
        for text in ["", "0", "4", "ye", "maybe", "-1"] {
            let parsed = dialog.parse_answer(text);
            assert!(
                matches!(parsed, ParsedAnswer::Invalid(_)),
                "{text:?} {parsed:?}"
            );
        }
    }

    #[test]
    fn a_confirm_is_y_or_n() {
        let (dialog, now) = dialog(UiMethod::Confirm {
            title: "Clear?".into(),
            message: "All is lost.".into(),
            timeout: None,
        });
        assert_eq!(dialog.text(now), "? Clear?\nAll is lost.");
        let confirmed = |yes| ParsedAnswer::Answer(UiAnswer::Confirmed(yes));
        assert_eq!(dialog.parse_answer(" Yes "), confirmed(true));
        assert_eq!(dialog.parse_answer("n"), confirmed(false));
        assert_eq!(
            dialog.parse_answer(""),
            ParsedAnswer::Invalid("Type y or n.".into())
        );
    }

    #[test]
    fn an_input_takes_any_line() {
        let (dialog, now) = dialog(UiMethod::Input {
            title: "Name".into(),
            placeholder: Some("e.g. Ann".into()),
            timeout: None,
        });
        assert_eq!(dialog.text(now), "? Name (e.g. Ann)");
        assert_eq!(dialog.parse_answer(""), value(""));
        assert_eq!(dialog.parse_answer(" x "), value(" x "));
    }

    #[test]
    fn an_editor_takes_several_lines() {
        let (dialog, _) = dialog(UiMethod::Editor {
            title: "Edit".into(),
            prefill: Some("one\ntwo".into()),
        });
        assert!(dialog.multiline());
        assert_eq!(dialog.prefill(), "one\ntwo");
        assert_eq!(dialog.parse_answer("one\n\ntwo\n\n"), value("one\n\ntwo"));
    }

    #[test]
    fn other_requests_are_no_dialogs() {
        let request = UiRequest {
            id: "7".into(),
            method: UiMethod::SetTitle { title: "t".into() },
        };
        assert!(Dialog::new(&request, Instant::now()).is_none());
    }
}
