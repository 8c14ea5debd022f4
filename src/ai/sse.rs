//! Server-sent events out of the bytes of a response, wherever the network cut
//! them. Follows the WHATWG specification, leaving out `id` and `retry`, which
//! nobody here reconnects with.

/// One dispatched event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SseEvent {
    /// Empty if the server gave none.
    pub(super) name: String,
    pub(super) data: String,
}

/// Feed it chunks; it hands out the events that became complete.
#[derive(Default)]
pub(super) struct SseDecoder {
    /// The bytes of a line whose end has not arrived.
    line: Vec<u8>,
    name: String,
    data: String,
    has_data: bool,
    /// The last byte was a CR: an LF that follows belongs to the same line end.
    after_cr: bool,
    started: bool,
}

impl SseDecoder {
    pub(super) fn push(&mut self, chunk: &[u8]) -> Vec<SseEvent> {
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

    /// At the end of the stream: what a server that forgot the last blank line
    /// still meant to send. (The specification drops it; so would users drop us.)
    pub(super) fn finish(&mut self) -> Option<SseEvent> {
        let event = match self.line.is_empty() {
            true => None,
            false => self.end_line(),
        };
        event.or_else(|| self.dispatch())
    }

    fn end_line(&mut self) -> Option<SseEvent> {
        let bytes = std::mem::take(&mut self.line);
        // Only whole lines are decoded, so no character can be cut.
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
            // Comments (an empty field name) and fields that mean nothing to us.
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

/// What must hold of any bytes: where they are cut does not matter, and what is handed
/// out is what the specification calls an event.
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
