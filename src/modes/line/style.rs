//! Colours, for terminals that have them and users who want them; the text says
//! everything without.

use std::ffi::OsString;
use std::io::IsTerminal;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    pub colours: bool,
    /// The terminal cannot do more than print lines.
    pub dumb: bool,
}

impl Style {
    pub fn of_terminal() -> Self {
        Self::new(std::io::stdout().is_terminal(), |name| {
            std::env::var_os(name)
        })
    }

    fn new(terminal: bool, variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let given = |name: &str| variable(name).filter(|value| !value.is_empty());
        let dumb = !terminal || given("TERM").is_some_and(|term| term == "dumb");
        Self {
            colours: !dumb && given("NO_COLOR").is_none(),
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
    fn colours_are_for_terminals_that_have_them() {
        assert_eq!(style(true, &[("TERM", "xterm")]), (true, false));
        assert_eq!(style(true, &[("TERM", "dumb")]), (false, true));
        assert_eq!(style(false, &[("TERM", "xterm")]), (false, true));
        let refused = [("TERM", "xterm"), ("NO_COLOR", "1")];
        assert_eq!(style(true, &refused), (false, false));
        assert_eq!(style(true, &[("NO_COLOR", "")]), (true, false));
    }
}
