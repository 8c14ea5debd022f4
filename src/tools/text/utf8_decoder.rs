//! Decodes UTF-8 that arrives in pieces: a character cut between two pieces stays whole, and
//! invalid bytes become U+FFFD.

#[derive(Default)]
pub(crate) struct LossyDecoder {
    /// The start of a character whose rest has not arrived: at most 3 bytes.
    pending: Vec<u8>,
}

impl LossyDecoder {
    /// Appends the text that `bytes` completes.
    pub(crate) fn push(&mut self, bytes: &[u8], text: &mut String) {
        let joined;
        let bytes = if self.pending.is_empty() {
            bytes
        } else {
            joined = [&self.pending, bytes].concat();
            self.pending.clear();
            &joined
        };
        let mut chunks = bytes.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            text.push_str(chunk.valid());
            let invalid = chunk.invalid();
            if chunks.peek().is_none() && could_continue(invalid) {
                self.pending.extend_from_slice(invalid);
            } else if !invalid.is_empty() {
                text.push(char::REPLACEMENT_CHARACTER);
            }
        }
    }

    /// Ends the text; an incomplete character becomes U+FFFD.
    pub(crate) fn finish(&mut self, text: &mut String) {
        if !self.pending.is_empty() {
            self.pending.clear();
            text.push(char::REPLACEMENT_CHARACTER);
        }
    }
}

fn could_continue(invalid: &[u8]) -> bool {
    matches!(std::str::from_utf8(invalid), Err(error) if error.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_cut_gives_the_same_text() {
        let bytes = b"a\xc3\xa9 \xf0\x9f\x98\x80 \xff\xf0\x9f\n\xe2\x82";
        let whole = String::from_utf8_lossy(bytes);
        for cut in 0..=bytes.len() {
            for second in cut..=bytes.len() {
                let mut decoder = LossyDecoder::default();
                let mut text = String::new();
                decoder.push(&bytes[..cut], &mut text);
                decoder.push(&bytes[cut..second], &mut text);
                decoder.push(&bytes[second..], &mut text);
                decoder.finish(&mut text);
                assert_eq!(text, whole, "cut at {cut} and {second}");
            }
        }
    }
}
