//! The `edit` tool: replaces pieces of a text file.

use std::fs::OpenOptions;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::arguments;
use super::blocking;
use super::files::mutation_queue::lock_file;
use super::files::os_error;
use super::files::paths;
use super::files::replace_file::replace_file;
use super::remote::{RemoteAccess, RemoteFiles};
use super::text::diff::{Changes, DIFF_CONTEXT, DisplayDiff};
use super::text::fuzzy_replace::{Replacement, replace, unix_lines};
use super::text::truncate::format_size;
use super::tool::{Queueing, Tool, ToolError, ToolInvocation, ToolOutput};
use pi_ai::message::ContentBlock;
use pi_ai::stream::ToolSpec;

const MAX_FILE_BYTES: u64 = 128 * 1024 * 1024;
const BOM: char = '\u{feff}';

pub struct EditTool {
    spec: ToolSpec,
    guidelines: Vec<String>,
    cwd: PathBuf,
    remote: Option<Arc<dyn RemoteFiles>>,
}

#[derive(Deserialize)]
struct Args {
    path: String,
    edits: Vec<Replacement>,
}

impl EditTool {
    pub fn new(cwd: PathBuf) -> Self {
        let spec = ToolSpec {
            name: "edit".to_owned(),
            description: "Edit one file by replacing exact pieces of its text. Each \
                          edits[].oldText must occur exactly once in the original file and must \
                          not overlap with another. Make two changes to the same block or to \
                          nearby lines one edit, not overlapping ones. Leave out large unchanged \
                          regions that would only connect distant changes."
                .to_owned(),
            parameters: json!({
                "type": "object",
                "additionalProperties": false,
                "properties": {
                    "path": {
                        "type": "string",
                        "description": "The file to edit (relative or absolute path)",
                    },
                    "edits": {
                        "type": "array",
                        "description": "One or more replacements. Each is matched against the \
                                        original file, not against the result of the ones before \
                                        it. They must not overlap or be nested: merge changes to \
                                        the same block or to nearby lines into one.",
                        "items": {
                            "type": "object",
                            "additionalProperties": false,
                            "properties": {
                                "oldText": {
                                    "type": "string",
                                    "description": "The exact text to replace. It must be unique \
                                                    in the original file and must not overlap \
                                                    with another edits[].oldText of this call.",
                                },
                                "newText": {
                                    "type": "string",
                                    "description": "The text to put in its place",
                                },
                            },
                            "required": ["oldText", "newText"],
                        },
                    },
                },
                "required": ["path", "edits"],
            }),
        };
        let guidelines = [
            "Make precise changes with edit (edits[].oldText must match exactly).",
            "To change several separate places of one file, make one edit call with several \
             entries in edits[] rather than several calls.",
            "Every edits[].oldText is matched against the original file, not against what earlier \
             edits made of it. Do not overlap or nest edits; merge nearby changes into one.",
            "Keep each edits[].oldText as short as it can be while still unique in the file, \
             without padding it with large unchanged regions.",
        ];
        Self {
            spec,
            guidelines: guidelines.map(str::to_owned).into(),
            cwd,
            remote: None,
        }
    }

    /// Edits files through `operations`, for example on another machine.
    pub fn with_operations(mut self, operations: Arc<dyn RemoteFiles>) -> Self {
        self.remote = Some(operations);
        self
    }
}

#[async_trait]
impl Tool for EditTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn prompt_snippet(&self) -> Option<&str> {
        Some("Replace exact text in files, several separate places in one call")
    }

    fn prompt_guidelines(&self) -> &[String] {
        &self.guidelines
    }

    /// Accepts `oldText` and `newText` beside `path`, the tool's former arguments.
    async fn prepare_arguments(&self, mut args: Value) -> Result<Value, ToolError> {
        if let Value::Object(fields) = &mut args
            && fields.get("oldText").is_some_and(Value::is_string)
            && fields.get("newText").is_some_and(Value::is_string)
        {
            let legacy = json!({
                "oldText": fields.shift_remove("oldText"),
                "newText": fields.shift_remove("newText"),
            });
            match fields.get_mut("edits") {
                Some(Value::Array(edits)) => edits.push(legacy),
                _ => {
                    fields.insert("edits".to_owned(), json!([legacy]));
                }
            }
        }
        Ok(args)
    }

    fn queueing(&self) -> Queueing {
        Queueing::AtOnce
    }

    async fn execute(&self, call: ToolInvocation) -> Result<ToolOutput, ToolError> {
        let args: Args = arguments::parse("edit", call.args)?;
        if args.edits.is_empty() {
            return Err(ToolError::new(
                "Edit tool input is invalid. edits must contain at least one replacement.",
            ));
        }
        let file = paths::resolve(&args.path, &self.cwd);
        let guard = tokio::select! {
            biased;
            () = call.cancel.cancelled() => return Err(ToolError::aborted()),
            guard = lock_file(&file) => guard,
        };
        let cancel = call.cancel;
        let remote = self.remote.as_ref();
        let remote = remote.map(|operations| RemoteAccess::new(operations, &cancel));
        // The work is not abandoned on an abort, so that the result describes what happened.
        blocking(move || {
            let _guard = guard;
            edit(&file, &args, remote.as_ref(), &cancel)
        })
        .await
    }
}

fn edit(
    file: &Path,
    args: &Args,
    remote: Option<&RemoteAccess>,
    cancel: &CancellationToken,
) -> Result<ToolOutput, ToolError> {
    let Args { path, edits } = args;
    let aborted = || match cancel.is_cancelled() {
        true => Err(ToolError::aborted()),
        false => Ok(()),
    };
    aborted()?;
    let raw = match remote {
        Some(remote) => load_remote(remote, file, path)?,
        None => load(file, path)?,
    };
    aborted()?;
    let content = raw.strip_prefix(BOM).unwrap_or(&raw);
    let windows_lines = content
        .find('\n')
        .is_some_and(|newline| content[..newline].ends_with('\r'));
    let text = unix_lines(content);
    let replaced = replace(&text, edits, path)?;
    aborted()?;

    let mut new = String::new();
    if raw.starts_with(BOM) {
        new.push(BOM);
    }
    if windows_lines {
        new.push_str(&replaced.after.replace('\n', "\r\n"));
    } else {
        new.push_str(&replaced.after);
    }
    match remote {
        Some(remote) => {
            remote.call("writeFile", json!([file.to_string_lossy(), new]))?;
        }
        None => replace_file(file, new.as_bytes())
            .map_err(|error| os_error::describe(&error, "open", Some(file)))?,
    }

    let changes = Changes::between(&replaced.before, &replaced.after);
    let diff = changes.display(DIFF_CONTEXT);
    let text = format!("Successfully replaced {} block(s) in {path}.", edits.len());
    Ok(ToolOutput {
        content: vec![ContentBlock::text(text)],
        details: Some(json!({
            "diff": diff.text,
            "patch": changes.patch(path, DIFF_CONTEXT),
            "firstChangedLine": diff.first_changed_line,
        })),
        ..ToolOutput::default()
    })
}

/// Returns the changes that the edits would make, for showing a call before it runs.
pub async fn preview(
    path: String,
    edits: Vec<Replacement>,
    cwd: PathBuf,
) -> Result<DisplayDiff, ToolError> {
    let file = paths::resolve(&path, &cwd);
    blocking(move || {
        let raw = load(&file, &path)?;
        let text = unix_lines(raw.strip_prefix(BOM).unwrap_or(&raw));
        let replaced = replace(&text, &edits, &path)?;
        Ok(Changes::between(&replaced.before, &replaced.after).display(DIFF_CONTEXT))
    })
    .await
}

fn load(file: &Path, path: &str) -> Result<String, ToolError> {
    let not_found = |_| ToolError::new(format!("File not found: {path}"));
    let meta = std::fs::metadata(file).map_err(not_found)?;
    if meta.is_dir() {
        return Err(ToolError::new(
            "EISDIR: illegal operation on a directory, read",
        ));
    }
    if !meta.is_file() {
        return Err(ToolError::new(format!(
            "{path} is not a regular file and cannot be edited."
        )));
    }
    if meta.len() > MAX_FILE_BYTES {
        return Err(ToolError::new(format!(
            "{path} is too large to edit ({}, the limit is {}). Use bash, for example sed.",
            format_size(meta.len()),
            format_size(MAX_FILE_BYTES)
        )));
    }
    // The file is opened for writing, too, so that a file without write permission fails here.
    let mut opened = OpenOptions::new()
        .read(true)
        .write(true)
        .open(file)
        .map_err(not_found)?;
    let mut bytes = Vec::new();
    opened
        .read_to_end(&mut bytes)
        .map_err(|error| os_error::describe(&error, "read", None))?;
    as_text(bytes, path)
}

fn load_remote(remote: &RemoteAccess, file: &Path, path: &str) -> Result<String, ToolError> {
    let access = remote.call("access", json!([file.to_string_lossy()]));
    if let Err(error) = access {
        return Err(match error == ToolError::aborted() {
            true => error,
            false => ToolError::new(format!("File not found: {path}")),
        });
    }
    as_text(remote.read(file)?, path)
}

fn as_text(bytes: Vec<u8>, path: &str) -> Result<String, ToolError> {
    // The original would replace all bytes that are not UTF-8 by U+FFFD, in the whole file.
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        ToolError::new(format!(
            "{path} is not UTF-8 text (first bad byte at offset {at}), editing would damage it. \
             Use bash, for example sed or iconv."
        ))
    })
}

#[cfg(test)]
mod tests;
