//! What may be meant by a name that does not exist. In one place, where it is compiled once:
//! the comparison is generic, and large.

/// The name that is most like `name`, of those whose likeness (0 to 1, by the characters that
/// both have in the same order) is `likeness` or more.
pub fn nearest<'a>(name: &str, names: &[&'a str], likeness: f32) -> Option<&'a str> {
    let found = similar::get_close_matches(name, names, 1, likeness);
    found.first().copied()
}
