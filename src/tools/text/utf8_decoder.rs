//! Decodes UTF-8 that arrives in pieces: a character cut between two pieces stays whole, and
//! invalid bytes become U+FFFD.

use encoding_rs::{CoderResult, Decoder, UTF_8};

/// Free bytes with which the decoder always makes progress.
const MIN_SPARE_BYTES: usize = 16;

pub(crate) struct Utf8Decoder(Decoder);

impl Default for Utf8Decoder {
    fn default() -> Self {
        Self(UTF_8.new_decoder_without_bom_handling())
    }
}

impl Utf8Decoder {
    /// Appends the text that `bytes` completes.
    pub(crate) fn push(&mut self, bytes: &[u8], text: &mut String) {
        self.decode(bytes, text, false);
    }

    /// Ends the text; an incomplete character becomes U+FFFD. Another text may follow.
    pub(crate) fn finish(&mut self, text: &mut String) {
        self.decode(&[], text, true);
        *self = Self::default();
    }

    fn decode(&mut self, mut bytes: &[u8], text: &mut String, is_end: bool) {
        loop {
            text.reserve(bytes.len() + MIN_SPARE_BYTES);
            let (result, read, _) = self.0.decode_to_string(bytes, text, is_end);
            if result == CoderResult::InputEmpty {
                return;
            }
            bytes = &bytes[read..];
        }
    }
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
                let mut decoder = Utf8Decoder::default();
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
