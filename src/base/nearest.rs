//! Finds the name that a misspelt one may stand for. The comparison is generic and large, so it
//! is compiled once, here.

/// Returns the name of `names` that is most similar to `name`, if its similarity (0 to 1, by
/// the characters that both have in the same order) is `cutoff` or more.
pub fn nearest<'a>(name: &str, names: &[&'a str], cutoff: f32) -> Option<&'a str> {
    let found = similar::get_close_matches(name, names, 1, cutoff);
    found.first().copied()
}
