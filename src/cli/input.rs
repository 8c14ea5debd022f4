//! Assembles the prompts that a session begins with: piped text, files named with `@`, and
//! messages.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use pi_app::PromptContent;
use pi_tools::files::paths;
use pi_tools::images;

/// Maximum bytes of a file or of piped text. More than any model reads, so a larger input is a
/// mistake that would otherwise use up the memory.
const MAX_INPUT_BYTES: u64 = 64 << 20;

#[derive(Debug, thiserror::Error)]
pub enum InputError {
    #[error("File not found: {}", .0.display())]
    NotFound(PathBuf),
    #[error("Could not read file {}: {source}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("Could not read file {}: larger than {} MB", .0.display(), MAX_INPUT_BYTES >> 20)]
    FileTooLarge(PathBuf),
    #[error("Could not read stdin: {0}")]
    Stdin(io::Error),
    #[error("stdin holds more than {} MB", MAX_INPUT_BYTES >> 20)]
    StdinTooLarge,
}

/// The `@file` arguments.
pub struct FileArguments<'a> {
    pub names: &'a [String],
    pub cwd: &'a Path,
    /// The setting `images.autoResize`.
    pub resize_images: bool,
}

/// Builds the prompts. The first one is the piped text, the files and the first message, with
/// nothing in between; each further message is a prompt of its own. Empty prompts are left out:
/// no provider accepts them.
pub fn assemble(
    piped: Option<String>,
    files: &FileArguments<'_>,
    messages: Vec<String>,
) -> Result<Vec<PromptContent>, InputError> {
    let mut messages = messages.into_iter();
    let mut first = PromptContent {
        text: piped.unwrap_or_default(),
        images: Vec::new(),
    };
    files.add_to(&mut first)?;
    first.text.extend(messages.next());
    let rest = messages.map(|text| PromptContent {
        text,
        images: Vec::new(),
    });
    let empty = PromptContent::default();
    let prompts = std::iter::once(first).chain(rest);
    Ok(prompts.filter(|prompt| *prompt != empty).collect())
}

impl FileArguments<'_> {
    fn add_to(&self, prompt: &mut PromptContent) -> Result<(), InputError> {
        for name in self.names {
            let path = paths::resolve_for_reading(name, self.cwd);
            let bytes = read_file(&path)?;
            if bytes.is_empty() {
                continue;
            }
            let shown = path.display();
            let text = match images::detect(&bytes) {
                None => format!("\n{}\n", String::from_utf8_lossy(&bytes)),
                Some(kind) => {
                    let made = match self.resize_images {
                        true => images::fit(&bytes, kind),
                        false => images::keep_size(&bytes, kind),
                    };
                    match made {
                        None => images::OMITTED_TEXT.to_string(),
                        Some(made) => {
                            prompt.images.push(made.image);
                            made.note.unwrap_or_default()
                        }
                    }
                }
            };
            prompt.text += &format!("<file name=\"{shown}\">{text}</file>\n");
        }
        Ok(())
    }
}

fn read_file(path: &Path) -> Result<Vec<u8>, InputError> {
    let unreadable = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound => InputError::NotFound(path.to_owned()),
        _ => InputError::Unreadable {
            path: path.to_owned(),
            source,
        },
    };
    let file = File::open(path).map_err(unreadable)?;
    read_limited(file)
        .map_err(unreadable)?
        .ok_or_else(|| InputError::FileTooLarge(path.to_owned()))
}

/// Reads to the end; `None` if there is more than the limit.
fn read_limited(source: impl Read) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    source.take(MAX_INPUT_BYTES + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= MAX_INPUT_BYTES).then_some(bytes))
}

/// Reads piped text to its end. The caller may have left the pipe open by mistake; `on_delay` is
/// called if the text does not end within `notice_delay`.
pub fn read_piped(
    source: impl Read + Send + 'static,
    notice_delay: Duration,
    on_delay: impl FnOnce(),
) -> Result<Option<String>, InputError> {
    let (send, read) = mpsc::channel();
    let thread = std::thread::Builder::new().name("stdin".into());
    thread
        .spawn(move || {
            // The receiver waits for it.
            _ = send.send(read_limited(source));
        })
        .map_err(InputError::Stdin)?;
    let first = read.recv_timeout(notice_delay);
    let result = match first {
        Err(RecvTimeoutError::Timeout) => {
            on_delay();
            read.recv().map_err(|_| RecvTimeoutError::Disconnected)
        }
        result => result,
    };
    let thread_ended = || InputError::Stdin(io::Error::other("the thread that reads it broke off"));
    let bytes = result
        .map_err(|_| thread_ended())?
        .map_err(InputError::Stdin)?
        .ok_or(InputError::StdinTooLarge)?;
    let text = String::from_utf8_lossy(&bytes);
    let text = text.trim_matches(|sign: char| sign.is_whitespace() || sign == '\u{feff}');
    Ok((!text.is_empty()).then(|| text.to_string()))
}

#[cfg(test)]
mod tests;
