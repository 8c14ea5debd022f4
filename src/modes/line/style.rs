//! Colours, for terminals that have them. The text has the same meaning without.

use std::ffi::OsString;
use std::io::IsTerminal;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    pub colours: bool,
    /// The terminal can only print lines.
    pub dumb: bool,
}

impl Style {
    pub fn for_terminal() -> Self {
        // The line editor draws on stderr.
        let terminal = std::io::stdout().is_terminal() && std::io::stderr().is_terminal();
        Self::new(terminal, |name| std::env::var_os(name))
    }

    fn new(terminal: bool, variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let dumb = !terminal || set("TERM").is_some_and(|term| term == "dumb");
        Self {
            colours: !dumb && set("NO_COLOR").is_none(),
            dumb,
        }
    }

    pub fn bold(self, text: &str) -> String {
        self.with("1", text)
    }

    pub fn dim(self, text: &str) -> String {
        self.with("2", text)
    }

    pub fn red(self, text: &str) -> String {
        self.with("31", text)
    }

    pub fn green(self, text: &str) -> String {
        self.with("32", text)
    }

    pub fn yellow(self, text: &str) -> String {
        self.with("33", text)
    }

    fn with(self, code: &str, text: &str) -> String {
        match self.colours && !text.is_empty() {
            true => format!("\x1b[{code}m{text}\x1b[0m"),
            false => text.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn style(terminal: bool, variables: &[(&str, &str)]) -> (bool, bool) {
        let style = Style::new(terminal, |name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| value.into())
        });
        (style.colours, style.dumb)
    }

    #[test]
    fn colours_follow_terminal_and_environment() {
        assert_eq!(style(true, &[("TERM", "xterm")]), (true, false));
        assert_eq!(style(true, &[("TERM", "dumb")]), (false, true));
        assert_eq!(style(false, &[("TERM", "xterm")]), (false, true));
        let refused = [("TERM", "xterm"), ("NO_COLOR", "1")];
        assert_eq!(style(true, &refused), (false, false));
        assert_eq!(style(true, &[("NO_COLOR", "")]), (true, false));
    }
}
