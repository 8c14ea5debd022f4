//! Decodes server-sent events from the bytes of a response, in pieces of any size. Follows the
//! WHATWG specification without `id` and `retry`, because pi does not reconnect.

/// One dispatched event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SseEvent {
    /// Name of the event; empty if the server sent none.
    pub(crate) name: String,
    pub(crate) data: String,
}

/// Decodes chunks and returns the events that became complete.
#[derive(Default)]
pub(crate) struct SseDecoder {
    /// The bytes of a line whose end has not arrived.
    line: Vec<u8>,
    name: String,
    data: String,
    has_data: bool,
    /// True if the last byte was a CR: an LF after it belongs to the same line end.
    after_cr: bool,
    started: bool,
}

impl SseDecoder {
    pub(crate) fn push(&mut self, chunk: &[u8]) -> Vec<SseEvent> {
        let mut events = Vec::new();
        let mut rest = chunk;
        if self.after_cr && !rest.is_empty() {
            self.after_cr = false;
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        }
        while let Some(end) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            self.line.extend_from_slice(&rest[..end]);
            let is_cr = rest[end] == b'\r';
            rest = &rest[end + 1..];
            if is_cr {
                match rest.first() {
                    Some(b'\n') => rest = &rest[1..],
                    Some(_) => {}
                    None => self.after_cr = true,
                }
            }
            events.extend(self.end_line());
        }
        self.line.extend_from_slice(rest);
        events
    }

    /// Returns the last event of a server that left out the final blank line. The specification
    /// drops such an event, but then the end of the answer would be lost.
    pub(crate) fn finish(&mut self) -> Option<SseEvent> {
        let event = match self.line.is_empty() {
            true => None,
            false => self.end_line(),
        };
        event.or_else(|| self.dispatch())
    }

    fn end_line(&mut self) -> Option<SseEvent> {
        let bytes = std::mem::take(&mut self.line);
        // Only whole lines are decoded, so no character is cut.
        let text = String::from_utf8_lossy(&bytes);
        let mut line = text.as_ref();
        if !self.started {
            self.started = true;
            line = line.strip_prefix('\u{feff}').unwrap_or(line);
        }
        if line.is_empty() {
            return self.dispatch();
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.name),
            "data" => {
                if self.has_data {
                    self.data.push('\n');
                }
                self.data.push_str(value);
                self.has_data = true;
            }
            // These are comments (an empty field name) and fields that pi ignores.
            _ => {}
        }
        None
    }

    fn dispatch(&mut self) -> Option<SseEvent> {
        let name = std::mem::take(&mut self.name);
        let data = std::mem::take(&mut self.data);
        std::mem::take(&mut self.has_data).then_some(SseEvent { name, data })
    }
}

/// Checks properties for any bytes: the cuts between chunks do not matter, and the decoder
/// returns exactly the events of the specification.
pub fn fuzz_sse(bytes: &[u8]) {
    let decode = |chunks: &mut dyn Iterator<Item = &[u8]>| {
        let mut decoder = SseDecoder::default();
        let mut events: Vec<_> = chunks.flat_map(|chunk| decoder.push(chunk)).collect();
        events.extend(decoder.finish());
        events
    };
    let whole = decode(&mut std::iter::once(bytes));
    for size in [1, 2, 3, 7] {
        assert_eq!(decode(&mut bytes.chunks(size)), whole);
    }
    for event in &whole {
        assert!(!event.name.contains(['\n', '\r']));
        assert!(!event.data.contains('\r'));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(name: &str, data: &str) -> SseEvent {
        SseEvent {
            name: name.into(),
            data: data.into(),
        }
    }

    fn decode(chunks: &[&[u8]]) -> Vec<SseEvent> {
        let mut decoder = SseDecoder::default();
        let mut events: Vec<_> = chunks.iter().flat_map(|c| decoder.push(c)).collect();
        events.extend(decoder.finish());
        events
    }

    const SAMPLE: &str = "\u{feff}: hello\nevent: a\ndata: {\"x\":\"é🦀\"}\n\nretry: 3\nid: 4\n\
        data:one\ndata:  two\ndata\n\nevent: lost\n\nnonsense\n:\ndata: [DONE]\n\n";

    fn sample_events() -> Vec<SseEvent> {
        vec![
            event("a", "{\"x\":\"é🦀\"}"),
            event("", "one\n two\n"),
            event("", "[DONE]"),
        ]
    }

    #[test]
    fn every_cut_and_every_line_ending_gives_the_same_events() {
        for ending in ["\n", "\r\n", "\r"] {
            let bytes = SAMPLE.replace('\n', ending).into_bytes();
            assert_eq!(decode(&[&bytes]), sample_events());
            for cut in 0..=bytes.len() {
                let (head, tail) = bytes.split_at(cut);
                assert_eq!(decode(&[head, &[], tail]), sample_events(), "cut at {cut}");
            }
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            assert_eq!(decode(&single), sample_events());
        }
    }

    #[test]
    fn an_event_is_handed_out_as_soon_as_its_blank_line_is_there() {
        let mut decoder = SseDecoder::default();
        assert_eq!(decoder.push(b"data: 1\r"), []);
        assert_eq!(decoder.push(b"\n\r"), [event("", "1")]);
        assert_eq!(decoder.push(b"\ndata: 2\n"), []);
        assert_eq!(decoder.push(b"\n"), [event("", "2")]);
        assert_eq!(decoder.finish(), None);
    }

    #[test]
    fn a_missing_last_blank_line_loses_nothing() {
        assert_eq!(
            decode(&[b"data: 1\n\ndata: 2"]),
            [event("", "1"), event("", "2")]
        );
        assert_eq!(decode(&[b"data: 1\n"]), [event("", "1")]);
    }

    #[test]
    fn bytes_that_are_not_utf8_are_replaced() {
        assert_eq!(
            decode(&[b"data: a\xff\xc3\n\n", b"\x00\xfe\n\n"]),
            [event("", "a\u{fffd}\u{fffd}")]
        );
    }
}
