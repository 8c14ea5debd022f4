//! Lines of stdin, on a thread of its own: a terminal or a pipe can then block
//! it for as long as it likes.

use std::io::{self, BufRead, BufReader, Read};

use tokio::sync::mpsc;

/// Bytes of a line. Pictures are megabytes; what is longer than this is no command.
pub const LONGEST: usize = 256 * 1024 * 1024;

#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    Text(Vec<u8>),
    /// It was skipped; so many bytes it had.
    TooLong(u64),
}

/// Returns at once.
pub fn read_stdin(input: impl Read + Send + 'static, lines: mpsc::Sender<Line>) {
    std::thread::Builder::new()
        .name("stdin".into())
        .spawn(move || {
            let mut input = BufReader::new(input);
            loop {
                match next(&mut input, LONGEST) {
                    Ok(None) => return,
                    Ok(Some(line)) => {
                        if lines.blocking_send(line).is_err() {
                            // Nobody listens any more.
                            return;
                        }
                    }
                    Err(error) => {
                        tracing::warn!("stdin: {error}");
                        return;
                    }
                }
            }
        })
        .expect("a process that could start can start a thread");
}

/// Only `\n` ends a line; one `\r` before it is not part of the line. A last line
/// without its end counts.
pub fn next(input: &mut impl BufRead, longest: usize) -> io::Result<Option<Line>> {
    let mut line = Vec::new();
    // Its end may be two more.
    let most = longest as u64 + 2;
    let read = input.by_ref().take(most).read_until(b'\n', &mut line)?;
    if read == 0 {
        return Ok(None);
    }
    let whole = line.ends_with(b"\n");
    if whole {
        line.pop();
    }
    if line.ends_with(b"\r") {
        line.pop();
    }
    if line.len() <= longest {
        return Ok(Some(Line::Text(line)));
    }
    let mut length = line.len() as u64;
    drop(line);
    if !whole {
        length += skip(input)?;
    }
    Ok(Some(Line::TooLong(length)))
}

/// Goes to the end of the line, and says how far that was.
fn skip(input: &mut impl BufRead) -> io::Result<u64> {
    let mut skipped = 0;
    loop {
        let piece = match input.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            piece => piece?,
        };
        let (length, ends) = match memchr::memchr(b'\n', piece) {
            Some(at) => (at, true),
            None => (piece.len(), piece.is_empty()),
        };
        skipped += length as u64;
        let past = usize::from(ends && !piece.is_empty());
        input.consume(length + past);
        if ends {
            return Ok(skipped);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines_of(mut input: &[u8], longest: usize) -> Vec<Line> {
        std::iter::from_fn(|| next(&mut input, longest).unwrap()).collect()
    }

    fn text(text: &str) -> Line {
        Line::Text(text.into())
    }

    #[test]
    fn only_newlines_separate() {
        assert_eq!(
            lines_of("a\r\n\u{2028}b\rc\n\nlast".as_bytes(), 100),
            ["a", "\u{2028}b\rc", "", "last"].map(text)
        );
    }

    #[test]
    fn what_is_too_long_is_skipped_to_its_end() {
        let too_long = |bytes| Line::TooLong(bytes);
        assert_eq!(
            lines_of(b"abc\r\nabcd\nabcdefgh\nab\n", 3),
            [text("abc"), too_long(4), too_long(8), text("ab")]
        );
        assert_eq!(lines_of(b"abcdefghi", 3), [too_long(9)]);
        assert_eq!(lines_of(b"abcde", 3), [too_long(5)]);
        assert_eq!(lines_of(b"abc", 3), [text("abc")]);
    }
}
