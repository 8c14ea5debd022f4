//! The prompts that a session begins with: what was piped in, files named with
//! `@`, and messages.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use crate::app::PromptContent;
use crate::tools::{image, paths};

/// More than any model reads; whoever pipes in more made a mistake that would
/// otherwise cost all memory.
const MAX_BYTES: u64 = 64 << 20;

#[derive(Debug, thiserror::Error)]
pub enum InputError {
    #[error("File not found: {}", .0.display())]
    NotFound(PathBuf),
    #[error("Could not read file {}: {source}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("Could not read file {}: larger than {} MB", .0.display(), MAX_BYTES >> 20)]
    FileTooLarge(PathBuf),
    #[error("Could not read stdin: {0}")]
    Stdin(io::Error),
    #[error("stdin holds more than {} MB", MAX_BYTES >> 20)]
    StdinTooLarge,
}

/// What `@file` arguments bring.
pub struct Files<'a> {
    pub names: &'a [String],
    pub cwd: &'a Path,
    /// `images.autoResize` of the settings.
    pub resize_images: bool,
}

/// The first prompt is what was piped in, the files and the first message, with
/// nothing in between; every further message is a prompt of its own. Empty ones
/// are left out: no provider takes them.
pub fn assemble(
    piped: Option<String>,
    files: &Files<'_>,
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
    let nothing = PromptContent::default();
    let prompts = std::iter::once(first).chain(rest);
    Ok(prompts.filter(|prompt| *prompt != nothing).collect())
}

impl Files<'_> {
    fn add_to(&self, prompt: &mut PromptContent) -> Result<(), InputError> {
        for name in self.names {
            let path = paths::resolve_for_reading(name, self.cwd);
            let bytes = read_file(&path)?;
            if bytes.is_empty() {
                continue;
            }
            let shown = path.display();
            let text = match image::detect(&bytes) {
                None => format!("\n{}\n", String::from_utf8_lossy(&bytes)),
                Some(kind) => {
                    let made = match self.resize_images {
                        true => image::fit(&bytes, kind),
                        false => image::keep_size(&bytes, kind),
                    };
                    match made {
                        None => image::OMITTED.to_string(),
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

/// `None` if there is more than the limit.
fn read_limited(source: impl Read) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    source.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= MAX_BYTES).then_some(bytes))
}

/// What was piped in, to its end. Whoever started this program may have left the
/// pipe open without knowing; `waiting` is called if it does not end in that time.
pub fn read_piped(
    source: impl Read + Send + 'static,
    patience: Duration,
    waiting: impl FnOnce(),
) -> Result<Option<String>, InputError> {
    let (send, read) = mpsc::channel();
    let thread = std::thread::Builder::new().name("stdin".into());
    thread
        .spawn(move || {
            // The other end waits for it.
            _ = send.send(read_limited(source));
        })
        .map_err(InputError::Stdin)?;
    let first = read.recv_timeout(patience);
    let result = match first {
        Err(RecvTimeoutError::Timeout) => {
            waiting();
            read.recv().map_err(|_| RecvTimeoutError::Disconnected)
        }
        result => result,
    };
    let ended = || InputError::Stdin(io::Error::other("the thread that reads it broke off"));
    let bytes = result
        .map_err(|_| ended())?
        .map_err(InputError::Stdin)?
        .ok_or(InputError::StdinTooLarge)?;
    let text = String::from_utf8_lossy(&bytes);
    let text = text.trim_matches(|sign: char| sign.is_whitespace() || sign == '\u{feff}');
    Ok((!text.is_empty()).then(|| text.to_string()))
}

#[cfg(test)]
mod tests;
