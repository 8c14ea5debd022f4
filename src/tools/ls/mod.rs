//! The `ls` tool: lists a folder.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::abortable;
use super::arguments;
use super::files::os_error;
use super::files::paths;
use super::listing::collation;
use super::listing::{Limit, Listing};
use super::remote::{RemoteAccess, RemoteFiles};
use super::text::truncate::MAX_BYTES;
use super::tool::{Tool, ToolError, ToolInvocation, ToolOutput};
use pi_ai::stream::ToolSpec;

const DEFAULT_LIMIT: usize = 500;

pub struct LsTool {
    spec: ToolSpec,
    cwd: PathBuf,
    remote: Option<Arc<dyn RemoteFiles>>,
}

#[derive(Deserialize)]
struct Args {
    path: Option<String>,
    limit: Option<f64>,
}

impl LsTool {
    pub fn new(cwd: PathBuf) -> Self {
        let spec = ToolSpec {
            name: "ls".to_owned(),
            description: format!(
                "List what is in a folder, in alphabetical order, hidden files too; folders end \
                 with '/'. At most {DEFAULT_LIMIT} entries or {}KB are shown, whichever is reached \
                 first.",
                MAX_BYTES / 1024
            ),
            parameters: json!({
                "type": "object",
                "properties": {
                    "path": {
                        "type": "string",
                        "description": "The folder to list (default: the current directory)",
                    },
                    "limit": {
                        "type": "number",
                        "description": "How many entries to show at most (default: 500)",
                    },
                },
            }),
        };
        Self {
            spec,
            cwd,
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
impl Tool for LsTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn prompt_snippet(&self) -> Option<&str> {
        Some("List what is in a folder")
    }

    async fn prepare_arguments(&self, args: Value) -> Result<Value, ToolError> {
        Ok(arguments::without_nulls(args, &self.spec))
    }

    async fn execute(&self, call: ToolInvocation) -> Result<ToolOutput, ToolError> {
        let args: Args = arguments::parse("ls", call.args)?;
        let cwd = self.cwd.clone();
        let remote = self.remote.as_ref();
        let remote = remote.map(|operations| RemoteAccess::new(operations, &call.cancel));
        abortable(&call.cancel, move |cancel| match remote {
            Some(remote) => list(&args, &cwd, &remote, cancel),
            None => list(&args, &cwd, &LocalFolders, cancel),
        })
        .await
    }
}

/// The file system with the folder.
trait Folders {
    /// Returns true if the folder exists.
    fn exists(&self, folder: &Path) -> Result<bool, ToolError>;
    /// Returns `None` if the path is missing or not accessible.
    fn is_folder(&self, path: &Path) -> Result<Option<bool>, ToolError>;
    fn names(&self, folder: &Path, cancel: &CancellationToken) -> Result<Vec<OsString>, ToolError>;
}

struct LocalFolders;

impl Folders for LocalFolders {
    fn exists(&self, folder: &Path) -> Result<bool, ToolError> {
        Ok(folder.exists())
    }

    fn is_folder(&self, path: &Path) -> Result<Option<bool>, ToolError> {
        let meta = std::fs::metadata(path);
        Ok(meta.ok().map(|meta| meta.is_dir()))
    }

    fn names(&self, folder: &Path, cancel: &CancellationToken) -> Result<Vec<OsString>, ToolError> {
        names(folder, cancel)
    }
}

impl Folders for RemoteAccess {
    fn exists(&self, folder: &Path) -> Result<bool, ToolError> {
        self.test("exists", folder)
    }

    fn is_folder(&self, path: &Path) -> Result<Option<bool>, ToolError> {
        match self.test("stat", path) {
            Ok(is_folder) => Ok(Some(is_folder)),
            Err(error) if error == ToolError::aborted() => Err(error),
            Err(_) => Ok(None),
        }
    }

    fn names(&self, folder: &Path, _: &CancellationToken) -> Result<Vec<OsString>, ToolError> {
        let names = self.call("readdir", json!([folder.to_string_lossy()]));
        let names = names.map_err(|error| match error == ToolError::aborted() {
            true => error,
            false => ToolError(format!("Cannot read directory: {error}")),
        })?;
        let names: Vec<String> = serde_json::from_value(names)
            .map_err(|_| ToolError::new("Cannot read directory: readdir gave no list of names"))?;
        let mut names: Vec<OsString> = names.into_iter().map(Into::into).collect();
        sort(&mut names);
        Ok(names)
    }
}

fn list(
    args: &Args,
    cwd: &Path,
    folders: &dyn Folders,
    cancel: &CancellationToken,
) -> Result<ToolOutput, ToolError> {
    let shown = args.path.as_deref().filter(|path| !path.is_empty());
    let folder = paths::resolve(shown.unwrap_or("."), cwd);
    if !folders.exists(&folder)? {
        return Err(ToolError(format!("Path not found: {}", folder.display())));
    }
    if folders.is_folder(&folder)? != Some(true) {
        return Err(ToolError(format!("Not a directory: {}", folder.display())));
    }
    let limit = Limit::new(args.limit, DEFAULT_LIMIT);
    let mut listing = Listing::new();
    let mut count = 0;
    let mut reached = false;
    for name in folders.names(&folder, cancel)? {
        if cancel.is_cancelled() {
            return Err(ToolError::aborted());
        }
        if count >= limit.results {
            reached = true;
            break;
        }
        // A link without a target is not shown.
        let Some(is_folder) = folders.is_folder(&folder.join(&name))? else {
            continue;
        };
        let mut line = name.to_string_lossy().into_owned();
        if is_folder {
            line.push('/');
        }
        listing.push(&line);
        count += 1;
    }
    if listing.is_empty() {
        return Ok(ToolOutput::text("(empty directory)"));
    }
    if reached {
        listing.note(limit.notice("entries", ""));
        listing.detail("entryLimitReached", limit.detail());
    }
    Ok(listing.finish(|_| {}))
}

/// Returns the names in order; names with equal sort keys are ordered by their bytes.
fn names(folder: &Path, cancel: &CancellationToken) -> Result<Vec<OsString>, ToolError> {
    let failed = |error: std::io::Error| {
        let error = os_error::describe(&error, "scandir", Some(folder));
        ToolError(format!("Cannot read directory: {error}"))
    };
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        if cancel.is_cancelled() {
            return Err(ToolError::aborted());
        }
        names.push(entry.map_err(failed)?.file_name());
    }
    sort(&mut names);
    Ok(names)
}

fn sort(names: &mut [OsString]) {
    names.sort_unstable();
    names.sort_by_cached_key(|name| collation::key(&name.to_string_lossy()));
}

#[cfg(all(test, unix))]
mod tests;
