//! A question of an extension, put as text and answered on the prompt.

use std::time::{Duration, Instant};

use super::text::{clean, one_line};
use crate::agent::event::{UiAnswer, UiMethod, UiRequest};

pub struct Dialog {
    pub id: String,
    question: Question,
    /// When the extension stops waiting.
    pub deadline: Option<Instant>,
}

enum Question {
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

/// What a line that the user typed comes to.
#[derive(Debug, PartialEq)]
pub enum Verdict {
    Answer(UiAnswer),
    /// It is no answer; what would be one.
    Again(String),
}

impl Dialog {
    /// `None` if nobody waits for an answer.
    pub fn new(request: &UiRequest, now: Instant) -> Option<Self> {
        let (question, timeout) = match &request.method {
            UiMethod::Select {
                title,
                options,
                timeout,
            } => {
                let (title, options) = (title.clone(), options.clone());
                (Question::Select { title, options }, *timeout)
            }
            UiMethod::Confirm {
                title,
                message,
                timeout,
            } => {
                let (title, message) = (title.clone(), message.clone());
                (Question::Confirm { title, message }, *timeout)
            }
            UiMethod::Input {
                title,
                placeholder,
                timeout,
            } => {
                let (title, placeholder) = (title.clone(), placeholder.clone());
                (Question::Input { title, placeholder }, *timeout)
            }
            UiMethod::Editor { title, prefill } => {
                let prefill = clean(prefill.as_deref().unwrap_or_default());
                let title = title.clone();
                (Question::Editor { title, prefill }, None)
            }
            UiMethod::Notify { .. }
            | UiMethod::SetStatus { .. }
            | UiMethod::SetWidget { .. }
            | UiMethod::SetTitle { .. }
            | UiMethod::SetEditorText { .. } => return None,
        };
        Some(Self {
            id: request.id.clone(),
            question,
            deadline: timeout.and_then(|millis| now.checked_add(Duration::from_millis(millis))),
        })
    }

    /// What is printed above the prompt.
    pub fn text(&self, now: Instant) -> String {
        let (title, rest) = match &self.question {
            Question::Select { title, options } => {
                let numbered = options.iter().enumerate();
                let lines = numbered
                    .map(|(index, option)| format!("\n  {}. {}", index + 1, one_line(option)));
                (title, lines.collect())
            }
            Question::Confirm { title, message } if message.trim().is_empty() => {
                (title, String::new())
            }
            Question::Confirm { title, message } => (title, format!("\n{}", clean(message))),
            Question::Input { title, placeholder } => {
                let example = placeholder.as_deref().map(one_line).unwrap_or_default();
                let rest = match example.is_empty() {
                    true => String::new(),
                    false => format!(" ({example})"),
                };
                (title, rest)
            }
            Question::Editor { title, prefill } => {
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
        format!("? {}{rest}{}", clean(title), left.unwrap_or_default())
    }

    /// What stands before the answer.
    pub fn prompt(&self) -> String {
        match &self.question {
            Question::Select { options, .. } => match options.len() {
                0 | 1 => "1> ".to_string(),
                count => format!("1-{count}> "),
            },
            Question::Confirm { .. } => "y/n> ".to_string(),
            Question::Input { .. } => "answer> ".to_string(),
            Question::Editor { .. } => "text> ".to_string(),
        }
    }

    /// The text to begin with.
    pub fn prefill(&self) -> &str {
        match &self.question {
            Question::Editor { prefill, .. } => prefill,
            _ => "",
        }
    }

    /// Whether the answer goes on until an empty line.
    pub fn many_lines(&self) -> bool {
        matches!(self.question, Question::Editor { .. })
    }

    pub fn judge(&self, text: &str) -> Verdict {
        match &self.question {
            Question::Select { options, .. } => match choose(options, text.trim()) {
                Some(option) => Verdict::Answer(UiAnswer::Value(option.clone())),
                None if options.is_empty() => Verdict::Answer(UiAnswer::Cancelled),
                None => Verdict::Again(format!(
                    "Type a number from 1 to {} or the beginning of an option.",
                    options.len()
                )),
            },
            Question::Confirm { .. } => match text.trim().to_lowercase().as_str() {
                "y" | "yes" => Verdict::Answer(UiAnswer::Confirmed(true)),
                "n" | "no" => Verdict::Answer(UiAnswer::Confirmed(false)),
                _ => Verdict::Again("Type y or n.".to_string()),
            },
            // One line, also when it was pasted with its end.
            Question::Input { .. } => {
                Verdict::Answer(UiAnswer::Value(text.replace(['\r', '\n'], "")))
            }
            Question::Editor { .. } => {
                let text = text.trim_end_matches('\n');
                Verdict::Answer(UiAnswer::Value(text.to_string()))
            }
        }
    }
}

/// By number, by its whole text, or by a beginning that only one has.
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

    fn value(text: &str) -> Verdict {
        Verdict::Answer(UiAnswer::Value(text.into()))
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
            assert_eq!(dialog.judge(text), value(option), "{text:?}");
        }
        for text in ["", "0", "4", "ye", "maybe", "-1"] {
            let verdict = dialog.judge(text);
            assert!(matches!(verdict, Verdict::Again(_)), "{text:?} {verdict:?}");
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
        let confirmed = |yes| Verdict::Answer(UiAnswer::Confirmed(yes));
        assert_eq!(dialog.judge(" Yes "), confirmed(true));
        assert_eq!(dialog.judge("n"), confirmed(false));
        assert_eq!(dialog.judge(""), Verdict::Again("Type y or n.".into()));
    }

    #[test]
    fn an_input_takes_what_it_gets() {
        let (dialog, now) = dialog(UiMethod::Input {
            title: "Name".into(),
            placeholder: Some("e.g. Ann".into()),
            timeout: None,
        });
        assert_eq!(dialog.text(now), "? Name (e.g. Ann)");
        assert_eq!(dialog.judge(""), value(""));
        assert_eq!(dialog.judge(" x "), value(" x "));
    }

    #[test]
    fn an_editor_takes_lines() {
        let (dialog, _) = dialog(UiMethod::Editor {
            title: "Edit".into(),
            prefill: Some("one\ntwo".into()),
        });
        assert!(dialog.many_lines());
        assert_eq!(dialog.prefill(), "one\ntwo");
        assert_eq!(dialog.judge("one\n\ntwo\n\n"), value("one\n\ntwo"));
    }

    #[test]
    fn what_is_no_question_is_no_dialog() {
        let request = UiRequest {
            id: "7".into(),
            method: UiMethod::SetTitle { title: "t".into() },
        };
        assert!(Dialog::new(&request, Instant::now()).is_none());
    }
}
