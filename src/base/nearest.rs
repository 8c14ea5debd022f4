//! Finds the name that a misspelt one may stand for. The comparison is generic and large, so it
//! is compiled once, here.

/// Minimum similarity at which one name is suggested for another. At 0.7 the package `express`
/// would be taken for Node's `process`; at 0.8 the type `img` would no longer lead to `image`.
const CUTOFF: f32 = 0.75;

/// Returns the name of `names` that is most similar to `name`; `None` if none is similar enough.
/// The similarity counts the characters that both names have in the same order.
pub fn nearest<'a>(name: &str, names: &[&'a str]) -> Option<&'a str> {
    let found = similar::get_close_matches(name, names, 1, CUTOFF);
    found.first().copied()
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn typos_are_near_and_other_words_are_not() {
        for (name, suggestion) in [
            ("onn", "on"),
            ("blocked", "block"),
            ("entires", "entries"),
            ("img", "image"),
            ("toolResult", "tool_result"),
            ("on_agent_end", "agent_end"),
            ("registerComand", "registerCommand"),
        ] {
            assert_eq!(
                nearest(name, &["other", suggestion]),
                Some(suggestion),
                "{name}"
            );
        }
        for (name, other) in [
            ("express", "process"),
            ("boot", "abort"),
            ("thinking", "image"),
            ("render", "renderResult"),
        ] {
            assert_eq!(nearest(name, &[other]), None, "{name}");
        }
    }
}
