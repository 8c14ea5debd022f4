//! Matches the names that users write for models: `claude-opus-4-6`, `anthropic/claude-opus-4-6`,
//! `opus`, `opus:high`.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::demo;
use crate::model::{Model, ThinkingLevel};

/// The model that a pattern matches.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Match {
    pub model: Arc<Model>,
    pub thinking: Option<ThinkingLevel>,
    pub warning: Option<String>,
}

/// Handling of `model:suffix` if the suffix is no thinking level.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum BadLevel {
    /// No match: the suffix may be part of an unknown id.
    Refuse,
    /// Matches without the suffix, with a warning.
    Ignore,
}

/// Resolves a pattern. The whole pattern is tried first, because ids may contain colons.
pub(super) fn resolve(pattern: &str, models: &[Arc<Model>], bad_level: BadLevel) -> Option<Match> {
    if let Some(model) = find(pattern, models) {
        return Some(Match {
            model,
            thinking: None,
            warning: None,
        });
    }
    let (prefix, suffix) = pattern.rsplit_once(':')?;
    match (ThinkingLevel::parse(suffix), bad_level) {
        (Some(level), _) => {
            let inner = resolve(prefix, models, bad_level)?;
            // With two suffixes, one of them wrong, no level is certain.
            let thinking = inner.warning.is_none().then_some(level);
            Some(Match { thinking, ..inner })
        }
        (None, BadLevel::Refuse) => None,
        (None, BadLevel::Ignore) => {
            let inner = resolve(prefix, models, bad_level)?;
            Some(Match {
                thinking: None,
                warning: Some(format!(
                    "Invalid thinking level \"{suffix}\" in pattern \"{pattern}\". Using default instead."
                )),
                ..inner
            })
        }
    }
}

/// Returns true if the text is the model's id or `provider/id`, ignoring case.
pub(super) fn is_exactly(model: &Model, text: &str) -> bool {
    let text = text.trim().to_lowercase();
    text == model.id.to_lowercase() || text == model.reference().to_lowercase()
}

fn find(pattern: &str, models: &[Arc<Model>]) -> Option<Arc<Model>> {
    find_exact(pattern, models).or_else(|| find_partial(pattern, models))
}

/// Finds an exact match. An id that several providers have is ambiguous without the provider.
fn find_exact(pattern: &str, models: &[Arc<Model>]) -> Option<Arc<Model>> {
    let pattern = pattern.trim().to_lowercase();
    let only = |matches: &dyn Fn(&Model) -> bool| {
        let mut found = models.iter().filter(|model| matches(model));
        match (found.next(), found.next()) {
            (Some(model), None) => Some(Arc::clone(model)),
            _ => None,
        }
    };
    let by_reference = only(&|model| model.reference().to_lowercase() == pattern);
    by_reference.or_else(|| only(&|model| model.id.to_lowercase() == pattern))
}

/// Returns the newest model that contains the pattern: aliases before dated versions, then the
/// highest name.
fn find_partial(pattern: &str, models: &[Arc<Model>]) -> Option<Arc<Model>> {
    let pattern = pattern.trim().to_lowercase();
    if pattern.is_empty() {
        return None;
    }
    let contains = |text: &str| text.to_lowercase().contains(&pattern);
    let found = models.iter().filter(|model| {
        // The demo is selected only by its exact name.
        !demo::is_demo(model) && (contains(&model.id) || contains(&model.name))
    });
    // `max_by` returns the last of equal models; reversed, the first provider wins.
    let best = found.rev().max_by(|a, b| {
        is_alias(&a.id)
            .cmp(&is_alias(&b.id))
            .then_with(|| collate(&a.id, &b.id))
    });
    best.cloned()
}

/// Returns true if the id has no `-YYYYMMDD` at its end.
fn is_alias(id: &str) -> bool {
    match id.rsplit_once('-') {
        Some((_, date)) => date.len() != 8 || !date.bytes().all(|byte| byte.is_ascii_digit()),
        None => true,
    }
}

/// Compares like Unicode's default collation, as far as model ids need it: punctuation, digits,
/// letters; case decides only between equal texts.
fn collate(a: &str, b: &str) -> Ordering {
    const PUNCTUATION: &str = "_-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$";
    let rank = |sign: char| match PUNCTUATION.find(sign) {
        Some(position) => (0, position as u32),
        None if sign.is_numeric() => (1, u32::from(sign)),
        None => (2, u32::from(sign)),
    };
    let primary = |text: &str| -> Vec<(u8, u32)> {
        let lower = text.chars().flat_map(char::to_lowercase);
        lower.map(rank).collect()
    };
    let lower_first = |text: &str| -> Vec<bool> { text.chars().map(char::is_uppercase).collect() };
    primary(a)
        .cmp(&primary(b))
        .then_with(|| lower_first(a).cmp(&lower_first(b)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_sort_as_the_original_sorts_them() {
        // The expected order comes from Array.sort with localeCompare in Node 22.
        let sorted = [
            "claude_x",
            "claude-3-5",
            "claude-opus-4-1",
            "claude-opus-4-10",
            "claude-opus-4-6",
            "claude-opus-4.5",
            "claude-Opus-4.6",
            "claude/opus",
            "claude1",
            "claudea",
            "glm-5",
            "GLM-5",
            "us.anthropic",
        ];
        let mut ids = sorted;
        ids.reverse();
        ids.sort_by(|a, b| collate(a, b));
        assert_eq!(ids, sorted);
    }

    #[test]
    fn dates_are_eight_digits_after_a_dash() {
        assert!(!is_alias("claude-3-5-sonnet-20240620"));
        assert!(is_alias("claude-3-5-sonnet-latest"));
        assert!(is_alias("gpt-4o-2024-08-06"));
        assert!(is_alias("gpt"));
    }
}
