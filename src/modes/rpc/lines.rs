//! Reads lines of stdin on a thread of its own, so that a blocking terminal or pipe does not
//! stop the program.

use std::io::{self, BufRead, BufReader, Read};

use tokio::sync::mpsc;

/// Maximum bytes of a line. Images take megabytes; a longer line is no command.
pub const MAX_COMMAND_BYTES: usize = 256 * 1024 * 1024;

#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    Text(Vec<u8>),
    /// The line was skipped. Holds its length in bytes.
    TooLong(u64),
}

/// Starts the thread that reads lines of `input`, and returns at once.
pub fn read_stdin(input: impl Read + Send + 'static, lines: mpsc::Sender<Line>) {
    std::thread::Builder::new()
        .name("stdin".into())
        .spawn(move || {
            let mut input = BufReader::new(input);
            loop {
                match next_line(&mut input, MAX_COMMAND_BYTES) {
                    Ok(None) => return,
                    Ok(Some(line)) => {
                        if lines.blocking_send(line).is_err() {
                            // The receiver was dropped.
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

/// Reads the next line. Only `\n` ends a line; one `\r` before it is not part of the line. A
/// last line without a newline counts.
pub fn next_line(input: &mut impl BufRead, longest: usize) -> io::Result<Option<Line>> {
    let mut line = Vec::new();
    // The line end may take two more bytes.
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
        length += skip_line(input)?;
    }
    Ok(Some(Line::TooLong(length)))
}

/// Skips the rest of the line and returns its length.
fn skip_line(input: &mut impl BufRead) -> io::Result<u64> {
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
        std::iter::from_fn(|| next_line(&mut input, longest).unwrap()).collect()
    }

    fn text(text: &str) -> Line {
        Line::Text(text.into())
    }

    #[test]
    fn only_newlines_end_a_line() {
        assert_eq!(
            lines_of("a\r\n\u{2028}b\rc\n\nlast".as_bytes(), 100),
            ["a", "\u{2028}b\rc", "", "last"].map(text)
        );
    }

    #[test]
    fn too_long_lines_are_skipped() {
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
