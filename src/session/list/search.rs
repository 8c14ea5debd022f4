//! Search of the session selector. All words of a query must occur in a session, in any order;
//! `"some words"` must occur in this order; `re:` begins a regular expression.

use regex::{Regex, RegexBuilder};

use crate::list::summary::SessionInfo;

pub struct SessionQuery {
    condition: Condition,
}

enum Condition {
    /// Words in lower case, all of which must occur.
    Words(Vec<String>),
    Pattern(Regex),
}

impl SessionQuery {
    /// Parses a query. The error says what is wrong with a regular expression.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let condition = match text.strip_prefix("re:").map(str::trim) {
            Some("") => return Err("the regular expression after re: is empty".into()),
            Some(pattern) => {
                let pattern = RegexBuilder::new(pattern).case_insensitive(true).build();
                Condition::Pattern(pattern.map_err(|error| error.to_string())?)
            }
            None => Condition::Words(words(text)),
        };
        Ok(Self { condition })
    }

    pub fn matches(&self, info: &SessionInfo) -> bool {
        let name = info.name.as_deref().unwrap_or_default();
        let cwd = info.cwd.to_string_lossy();
        let text = format!("{} {name} {} {cwd}", info.id, info.all_messages_text);
        match &self.condition {
            Condition::Pattern(pattern) => pattern.is_match(&text),
            Condition::Words(words) => {
                let text = plain(&text);
                words.iter().all(|word| text.contains(word))
            }
        }
    }
}

/// Splits a query into words. Quoted text is one word; if a quote is not closed, quotes have no
/// meaning.
fn words(text: &str) -> Vec<String> {
    let parts: Vec<&str> = match text.matches('"').count() % 2 {
        0 => text.split('"').collect(),
        _ => vec![text],
    };
    let mut words = Vec::new();
    for (index, part) in parts.into_iter().enumerate() {
        match index % 2 == 1 {
            true => words.push(plain(part)),
            false => words.extend(part.split_whitespace().map(str::to_lowercase)),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Converts to lower case with single spaces.
fn plain(text: &str) -> String {
    let lower = text.to_lowercase();
    let mut plain = String::with_capacity(lower.len());
    for word in lower.split_whitespace() {
        if !plain.is_empty() {
            plain.push(' ');
        }
        plain.push_str(word);
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(query: &str) -> bool {
        let info = SessionInfo {
            path: "/s.jsonl".into(),
            id: "0199-abc".into(),
            cwd: "/home/ann/shop".into(),
            name: Some("Checkout".into()),
            parent_session: None,
            created: 0,
            modified: 0,
            message_count: 2,
            first_message: "Why does the\n basket lose items?".into(),
            all_messages_text: "Why does the\n basket lose items? Because of the Ünlock.".into(),
        };
        SessionQuery::parse(query).unwrap().matches(&info)
    }

    #[test]
    fn all_words_have_to_be_there_in_any_order() {
        for query in [
            "",
            "  ",
            "basket",
            "ITEMS why",
            "ünlock",
            "checkout shop 0199",
            "\"the basket\"",
            "lose \"because of\"",
            "re:ba.ket\\s+lose",
        ] {
            assert!(matches(query), "{query}");
        }
        for query in [
            "bsket",
            "\"basket",
            "basket pear",
            "\"basket the\"",
            "re:^basket",
        ] {
            assert!(!matches(query), "{query}");
        }
    }

    #[test]
    fn invalid_expression_is_an_error() {
        assert!(SessionQuery::parse("re:(").is_err());
        assert!(SessionQuery::parse("re:").is_err());
    }
}
