//! Lengths and positions in a text as JavaScript counts them: in UTF-16 units.

/// Returns the length of a text in UTF-16 units.
#[inline]
pub fn len(text: &str) -> usize {
    // A character has two units if it has four bytes, of which the first is F0 or more.
    text.chars().count() + text.bytes().filter(|byte| *byte >= 0xF0).count()
}

/// Returns the byte index after the first `units` UTF-16 units, or the length in bytes of a shorter
/// text. A character of which only the first of its two units fits is left out.
#[inline]
pub fn byte_index(text: &str, units: usize) -> usize {
    let mut counted = 0;
    let mut characters = text.char_indices();
    let next = characters.find(|(_, character)| {
        counted += character.len_utf16();
        counted > units
    });
    next.map_or(text.len(), |(index, _)| index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_and_positions_are_those_of_javascript() {
        let text = "aé€🦀b";
        assert_eq!(len(text), text.encode_utf16().count());
        let indices: Vec<_> = (0..8).map(|units| byte_index(text, units)).collect();
        assert_eq!(indices, [0, 1, 3, 6, 6, 10, 11, 11]);
    }
}
