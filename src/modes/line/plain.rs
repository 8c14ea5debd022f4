//! The keyboard of a dumb terminal: lines as the terminal edits them. They may
//! come at any time; Ctrl-C comes as a signal.

use std::io::BufRead;

use tokio::sync::mpsc;

use super::terminal::{Said, Want};

pub struct Lines {
    /// The lines of an answer that has many.
    answer: Vec<String>,
    prefill: String,
}

impl Lines {
    pub fn start(say: mpsc::Sender<Said>) -> std::io::Result<Self> {
        std::thread::Builder::new()
            .name("keyboard".into())
            .spawn(move || read(&say))?;
        Ok(Self {
            answer: Vec::new(),
            prefill: String::new(),
        })
    }

    /// Returns what is to be printed before the user's line.
    pub fn want(&mut self, want: &Want) -> String {
        self.answer.clear();
        self.prefill.clear();
        match want {
            Want::Keys => String::new(),
            Want::Prompt { text } | Want::Message { text } if text.is_empty() => "> ".to_string(),
            // It cannot be put where the user types.
            Want::Prompt { text } | Want::Message { text } => format!("(suggested: {text})\n> "),
            Want::Answer {
                prompt,
                text,
                many_lines: true,
            } if !text.is_empty() => {
                self.prefill.clone_from(text);
                format!("{text}\n(an empty line at once keeps this text)\n{prompt}")
            }
            Want::Answer { prompt, .. } => prompt.clone(),
        }
    }

    /// `None` if the answer goes on.
    pub fn hear(&mut self, said: Said, wanted: Option<&Want>) -> Option<Said> {
        let many_lines = matches!(
            wanted,
            Some(Want::Answer {
                many_lines: true,
                ..
            })
        );
        match said {
            Said::Line(line) if many_lines && line.is_empty() => {
                let text = match self.answer.is_empty() {
                    true => std::mem::take(&mut self.prefill),
                    false => self.answer.join("\n"),
                };
                Some(Said::Line(text))
            }
            Said::Line(line) if many_lines => {
                self.answer.push(line);
                None
            }
            said => Some(said),
        }
    }
}

fn read(say: &mpsc::Sender<Said>) {
    let mut input = std::io::stdin().lock();
    loop {
        let mut line = Vec::new();
        let said = match input.read_until(b'\n', &mut line) {
            Ok(0) => Said::End,
            Ok(_) => {
                let line = String::from_utf8_lossy(&line);
                Said::Line(line.trim_end_matches(['\n', '\r']).to_string())
            }
            Err(error) => Said::Failed(error.to_string()),
        };
        let over = matches!(said, Said::Failed(_));
        // An error means that nobody listens any more.
        if say.blocking_send(said).is_err() || over {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines() -> Lines {
        Lines {
            answer: Vec::new(),
            prefill: String::new(),
        }
    }

    fn answer(text: &str) -> Want {
        Want::Answer {
            prompt: "text> ".into(),
            text: text.into(),
            many_lines: true,
        }
    }

    #[test]
    fn an_empty_line_ends_an_answer_of_many() {
        let mut lines = lines();
        let want = answer("");
        assert_eq!(lines.want(&want), "text> ");
        assert_eq!(lines.hear(Said::Line("a".into()), Some(&want)), None);
        assert_eq!(lines.hear(Said::Line("b".into()), Some(&want)), None);
        let heard = lines.hear(Said::Line(String::new()), Some(&want));
        assert_eq!(heard, Some(Said::Line("a\nb".into())));
    }

    #[test]
    fn an_empty_line_at_once_keeps_the_text() {
        let mut lines = lines();
        let want = answer("one\ntwo");
        let printed = lines.want(&want);
        assert!(printed.starts_with("one\ntwo\n("), "{printed}");
        let heard = lines.hear(Said::Line(String::new()), Some(&want));
        assert_eq!(heard, Some(Said::Line("one\ntwo".into())));
    }

    #[test]
    fn other_lines_are_told_at_once() {
        let mut lines = lines();
        let said = Said::Line("x".into());
        assert_eq!(lines.hear(said.clone(), Some(&Want::Keys)), Some(said));
        assert_eq!(lines.hear(Said::End, Some(&answer(""))), Some(Said::End));
    }
}
