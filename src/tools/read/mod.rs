//! The `read` tool: text by lines, images as attachments.

use std::fs::File;
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::arguments;
use super::blocking;
use super::files::os_error;
use super::files::paths;
use super::images::{self, ImageType};
use super::remote::{RemoteAccess, RemoteFiles};
use super::text::truncate::{HeadScanner, Limits, MAX_BYTES, MAX_LINES, TruncatedBy, format_size};
use super::text::utf8_decoder::Utf8Decoder;
use super::tool::{Tool, ToolError, ToolInvocation, ToolOutput};
use pi_ai::message::ContentBlock;
use pi_ai::stream::ToolSpec;

const READ_BYTES: usize = 256 * 1024;
/// Maximum size in bytes of image files that are opened.
const MAX_IMAGE_BYTES: u64 = 256 * 1024 * 1024;

pub struct ReadTool {
    spec: ToolSpec,
    guidelines: Vec<String>,
    cwd: PathBuf,
    resize_images: bool,
    remote: Option<Arc<dyn RemoteFiles>>,
}

#[derive(Deserialize)]
struct Args {
    path: String,
    offset: Option<f64>,
    limit: Option<f64>,
}

impl ReadTool {
    pub fn new(cwd: PathBuf, resize_images: bool) -> Self {
        let spec = ToolSpec {
            name: "read".to_owned(),
            description: format!(
                "Read a file. Text files and images (jpg, png, gif, webp) are supported; images \
                 come as attachments. Text is cut to {MAX_LINES} lines or {}KB, whichever limit is \
                 reached first. For large files use offset and limit; to see a whole file, go on \
                 with offset until its end.",
                MAX_BYTES / 1024
            ),
            parameters: json!({
                "type": "object",
                "properties": {
                    "path": {
                        "type": "string",
                        "description": "The file to read (relative or absolute path)",
                    },
                    "offset": {
                        "type": "number",
                        "description": "The line to start at (the first line is 1)",
                    },
                    "limit": {
                        "type": "number",
                        "description": "How many lines to read at most",
                    },
                },
                "required": ["path"],
            }),
        };
        let guidelines = vec!["Look at files with read rather than with cat or sed.".to_owned()];
        Self {
            spec,
            guidelines,
            cwd,
            resize_images,
            remote: None,
        }
    }

    /// Reads files through `operations`, for example on another machine.
    pub fn with_operations(mut self, operations: Arc<dyn RemoteFiles>) -> Self {
        self.remote = Some(operations);
        self
    }
}

#[async_trait]
impl Tool for ReadTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn prompt_snippet(&self) -> Option<&str> {
        Some("Read files")
    }

    fn prompt_guidelines(&self) -> &[String] {
        &self.guidelines
    }

    /// Removes `null` members, with which some models leave out a number: validation would turn
    /// them into a limit of 0 lines.
    async fn prepare_arguments(&self, mut args: Value) -> Result<Value, ToolError> {
        if let Value::Object(fields) = &mut args {
            fields
                .retain(|name, value| !(value.is_null() && (name == "offset" || name == "limit")));
        }
        Ok(args)
    }

    async fn execute(&self, call: ToolInvocation) -> Result<ToolOutput, ToolError> {
        let args: Args = arguments::parse("read", call.args)?;
        let (cwd, resize, cancel) = (self.cwd.clone(), self.resize_images, call.cancel.clone());
        let remote = self.remote.as_ref();
        let remote = remote.map(|operations| RemoteAccess::new(operations, &cancel));
        let work = blocking(move || {
            let path = paths::resolve_for_reading(&args.path, &cwd);
            if let Some(remote) = remote {
                return read_remote(&remote, &path, &args, resize, &cancel);
            }
            let mut file = open(&path, &args.path)?;
            match sniff(&mut file)? {
                Some(kind) => picture(file, kind, resize, &cancel),
                None => text(file, &args, &cancel),
            }
        });
        tokio::select! {
            biased;
            () = call.cancel.cancelled() => Err(ToolError::aborted()),
            result = work => result,
        }
    }
}

fn read_remote(
    remote: &RemoteAccess,
    path: &Path,
    args: &Args,
    resize: bool,
    cancel: &CancellationToken,
) -> Result<ToolOutput, ToolError> {
    let shown = json!([path.to_string_lossy()]);
    remote.call("access", shown.clone())?;
    let kind = match remote.offers("detectImageMimeType") {
        true => remote.call("detectImageMimeType", shown)?,
        false => Value::Null,
    };
    let bytes = remote.read(path)?;
    match kind.as_str().and_then(ImageType::of_mime) {
        Some(kind) => Ok(show_picture(Some(&bytes), kind, resize)),
        None => text(bytes.as_slice(), args, cancel),
    }
}

fn open(path: &Path, shown: &str) -> Result<File, ToolError> {
    let failed = |error| os_error::describe(&error, "access", Some(path));
    let kind = std::fs::metadata(path).map_err(failed)?.file_type();
    if kind.is_dir() {
        return Err(ToolError::new(
            "EISDIR: illegal operation on a directory, read",
        ));
    }
    if !kind.is_file() {
        // Reading a pipe or a device may never end, or never begin.
        return Err(ToolError::new(format!(
            "{shown} is not a regular file. Use bash to read from it, with a timeout."
        )));
    }
    File::open(path).map_err(failed)
}

fn failed_read(error: std::io::Error) -> ToolError {
    os_error::describe(&error, "read", None)
}

fn sniff(file: &mut File) -> Result<Option<ImageType>, ToolError> {
    let mut start = Vec::with_capacity(images::SNIFF_BYTES);
    file.by_ref()
        .take(images::SNIFF_BYTES as u64)
        .read_to_end(&mut start)
        .map_err(failed_read)?;
    file.rewind().map_err(failed_read)?;
    Ok(images::detect(&start))
}

fn picture(
    mut file: File,
    kind: ImageType,
    resize: bool,
    cancel: &CancellationToken,
) -> Result<ToolOutput, ToolError> {
    let size = file.metadata().map_err(failed_read)?.len();
    if size > MAX_IMAGE_BYTES {
        return Ok(show_picture(None, kind, resize));
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(failed_read)?;
    if cancel.is_cancelled() {
        return Err(ToolError::aborted());
    }
    Ok(show_picture(Some(&bytes), kind, resize))
}

/// Returns the image as a result. `bytes` is `None` if the file is too large.
fn show_picture(bytes: Option<&[u8]>, kind: ImageType, resize: bool) -> ToolOutput {
    let mut note = format!("Read image file [{}]", kind.mime());
    let mut image = None;
    let made = bytes.and_then(|bytes| match resize {
        true => images::fit(bytes, kind),
        false => images::keep_size(bytes, kind),
    });
    if let Some(made) = made {
        note = format!("Read image file [{}]", made.image.mime_type);
        if let Some(more) = made.note {
            note = format!("{note}\n{more}");
        }
        image = Some(made.image);
    }
    let content = match image {
        Some(image) => vec![ContentBlock::text(note), ContentBlock::image(image)],
        None => vec![ContentBlock::text(format!(
            "{note}\n{}",
            images::OMITTED_TEXT
        ))],
    };
    ToolOutput {
        content,
        details: None,
        ..ToolOutput::default()
    }
}

/// Reads the whole file to count its lines, but decodes and keeps only the requested ones.
fn text(
    mut file: impl Read,
    args: &Args,
    cancel: &CancellationToken,
) -> Result<ToolOutput, ToolError> {
    let skip = match args.offset {
        Some(offset) if offset >= 1.0 => offset as usize - 1,
        _ => 0,
    };
    let requested = args.limit.map(|limit| limit.max(0.0) as usize);
    let mut window = Window::new(skip, requested);
    let mut buffer = vec![0; READ_BYTES];
    loop {
        if cancel.is_cancelled() {
            return Err(ToolError::aborted());
        }
        let read = file.read(&mut buffer).map_err(failed_read)?;
        if read == 0 {
            break;
        }
        window.push(&buffer[..read]);
    }

    let total = window.newlines + 1;
    if skip >= total {
        return Err(ToolError::new(format!(
            "Offset {} is beyond end of file ({total} lines total)",
            arguments::number(args.offset.unwrap_or_default())
        )));
    }
    let scanner = window.finish();
    let first_line_bytes = scanner.first_line_bytes();
    let record = scanner.finish();
    let first = skip + 1;
    let limit = format_size(MAX_BYTES as u64);
    let text = if record.first_line_exceeds_limit {
        format!(
            "[Line {first} is {}, exceeds {limit} limit. Use bash: sed -n '{first}p' {} | head -c \
             {MAX_BYTES}]",
            format_size(first_line_bytes as u64),
            args.path
        )
    } else if record.truncated {
        let last = skip + record.output_lines;
        let why = match record.truncated_by {
            Some(TruncatedBy::Bytes) => format!(" ({limit} limit)"),
            _ => String::new(),
        };
        format!(
            "{}\n\n[Showing lines {first}-{last} of {total}{why}. Use offset={} to continue.]",
            record.content,
            last + 1
        )
    } else {
        let end = requested.map_or(total, |lines| total.min(skip.saturating_add(lines)));
        if end < total {
            format!(
                "{}\n\n[{} more lines in file. Use offset={} to continue.]",
                record.content,
                total - end,
                end + 1
            )
        } else {
            record.content.clone()
        }
    };
    Ok(ToolOutput {
        content: vec![ContentBlock::text(text)],
        details: record.truncated.then(|| json!({"truncation": record})),
        ..ToolOutput::default()
    })
}

/// Collects the requested lines while the file is read.
struct Window {
    newlines: usize,
    skip: usize,
    /// Number of the line after the last requested one.
    end: usize,
    decoder: Utf8Decoder,
    piece: String,
    scanner: HeadScanner,
}

impl Window {
    fn new(skip: usize, lines: Option<usize>) -> Self {
        Self {
            newlines: 0,
            skip,
            end: lines.map_or(usize::MAX, |lines| skip.saturating_add(lines)),
            decoder: Utf8Decoder::default(),
            piece: String::new(),
            scanner: HeadScanner::new(Limits::default()),
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        let before = self.take(bytes, self.skip);
        let rest = &bytes[before..];
        if self.newlines < self.skip {
            return;
        }
        let inside = self.take(rest, self.end);
        let (mut shown, after) = rest.split_at(inside);
        let complete = self.newlines >= self.end;
        if complete {
            // The newline between the last requested line and the rest belongs to neither.
            shown = shown.strip_suffix(b"\n").unwrap_or(shown);
        }
        self.decode(shown, complete);
        self.newlines += newlines_in(after);
    }

    /// Returns the number of bytes before the start of line `line`, and counts their newlines. In
    /// UTF-8 no newline byte is part of another character.
    fn take(&mut self, bytes: &[u8], line: usize) -> usize {
        let requested = line.saturating_sub(self.newlines);
        if requested == 0 {
            return 0;
        }
        let found = newlines_in(bytes);
        if found < requested {
            self.newlines += found;
            return bytes.len();
        }
        let last = memchr::memchr_iter(b'\n', bytes).nth(requested - 1);
        self.newlines += requested;
        last.map_or(bytes.len(), |at| at + 1)
    }

    fn decode(&mut self, bytes: &[u8], complete: bool) {
        self.piece.clear();
        self.decoder.push(bytes, &mut self.piece);
        if complete {
            self.decoder.finish(&mut self.piece);
        }
        self.scanner.push(&self.piece);
    }

    fn finish(mut self) -> HeadScanner {
        self.decode(b"", true);
        self.scanner
    }
}

fn newlines_in(bytes: &[u8]) -> usize {
    memchr::memchr_iter(b'\n', bytes).count()
}

#[cfg(test)]
mod tests;
