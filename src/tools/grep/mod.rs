//! The `grep` tool: lines of files that match a pattern, with ripgrep's libraries inside the
//! process.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use ignore::WalkState;
use ignore::overrides::{Override, OverrideBuilder};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::abortable;
use super::arguments;
use super::files::paths;
use super::listing::walk::{self, DeniedPaths, FirstResults, Problems};
use super::listing::{Limit, Listing};
use super::remote::{RemoteAccess, RemoteFiles};
use super::text::truncate::{MAX_BYTES, MAX_LINE_LENGTH};
use super::tool::{PathFilter, Tool, ToolError, ToolInvocation, ToolOutput};
use pi_ai::stream::ToolSpec;
use search::{FileMatches, FileSearch, Query};

mod search;

const DEFAULT_LIMIT: usize = 100;
/// Maximum number of context lines: more lines than this exceed the output limit.
const MAX_CONTEXT_LINES: usize = 6000;

pub struct GrepTool {
    spec: ToolSpec,
    cwd: PathBuf,
    remote: Option<Arc<dyn RemoteFiles>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Args {
    pattern: String,
    path: Option<String>,
    glob: Option<String>,
    #[serde(default)]
    ignore_case: bool,
    #[serde(default)]
    literal: bool,
    context: Option<f64>,
    limit: Option<f64>,
}

impl GrepTool {
    pub fn new(cwd: PathBuf) -> Self {
        let spec = ToolSpec {
            name: "grep".to_owned(),
            description: format!(
                "Find lines in files that match a pattern, with the path and the line number of \
                 each. Leaves out what .gitignore excludes. At most {DEFAULT_LIMIT} matches or {}KB \
                 are shown, whichever is reached first; lines are cut at {MAX_LINE_LENGTH} \
                 characters.",
                MAX_BYTES / 1024
            ),
            parameters: json!({
                "type": "object",
                "properties": {
                    "pattern": {
                        "type": "string",
                        "description": "What to look for: a regular expression, or plain text \
                                        with literal",
                    },
                    "path": {
                        "type": "string",
                        "description": "The folder or file to search (default: the current \
                                        directory)",
                    },
                    "glob": {
                        "type": "string",
                        "description": "Search only files whose path matches, such as '*.ts' or \
                                        '**/*.spec.ts'",
                    },
                    "ignoreCase": {
                        "type": "boolean",
                        "description": "Do not distinguish upper and lower case (default: false)",
                    },
                    "literal": {
                        "type": "boolean",
                        "description": "The pattern is plain text, not a regular expression \
                                        (default: false)",
                    },
                    "context": {
                        "type": "number",
                        "description": "How many lines to show before and after each match \
                                        (default: 0)",
                    },
                    "limit": {
                        "type": "number",
                        "description": "How many matches to show at most (default: 100)",
                    },
                },
                "required": ["pattern"],
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
impl Tool for GrepTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn prompt_snippet(&self) -> Option<&str> {
        Some("Find lines in files by pattern (leaves out what .gitignore excludes)")
    }

    async fn prepare_arguments(&self, args: Value) -> Result<Value, ToolError> {
        Ok(arguments::without_nulls(args, &self.spec))
    }

    async fn execute(&self, call: ToolInvocation) -> Result<ToolOutput, ToolError> {
        let args: Args = arguments::parse("grep", call.args)?;
        let cwd = self.cwd.clone();
        let remote = self.remote.as_ref();
        let remote = remote.map(|operations| RemoteAccess::new(operations, &call.cancel));
        let unreadable = call.unreadable;
        abortable(&call.cancel, move |cancel| {
            grep(&args, &cwd, remote.as_ref(), unreadable, cancel)
        })
        .await
    }
}

fn grep(
    args: &Args,
    cwd: &Path,
    remote: Option<&RemoteAccess>,
    unreadable: Option<PathFilter>,
    cancel: &CancellationToken,
) -> Result<ToolOutput, ToolError> {
    let shown = args.path.as_deref().filter(|path| !path.is_empty());
    let root = paths::resolve(shown.unwrap_or("."), cwd);
    let not_found = || ToolError(format!("Path not found: {}", root.display()));
    if let Some(remote) = remote {
        // As in the original, only the lines around a match are read through `operations`; the
        // search itself is local.
        remote.test("isDirectory", &root).map_err(|_| not_found())?;
    }
    let kind = std::fs::metadata(&root)
        .map_err(|_| not_found())?
        .file_type();
    let limit = Limit::new(args.limit, DEFAULT_LIMIT);
    // The cast of a negative number gives 0.
    let context = (args.context.unwrap_or(0.0) as usize).min(MAX_CONTEXT_LINES);
    let query = Query {
        matcher: search::matcher(&args.pattern, args.literal, args.ignore_case)
            .map_err(ToolError)?,
        limit: limit.results,
        context,
    };
    let results = FirstResults::new(limit.results);
    let problems = Arc::new(Problems::new());
    let denied_paths = unreadable.map(DeniedPaths::new);
    if kind.is_dir() {
        let search = FolderSearch {
            root: &root,
            cwd,
            only: overrides(args.glob.as_deref(), cwd)?,
            query: &query,
            denied_paths: denied_paths.as_ref(),
        };
        search.run(cancel, &results, &problems);
    } else if kind.is_file() {
        match FileSearch::new(query, cancel.clone()).search(&root, true) {
            Ok(found) => keep(&results, &root, found),
            Err(error) => problems.add(&root, &error),
        }
    } else {
        // Reading a pipe or a device may never end, or never begin.
        let shown = root.display();
        return Err(ToolError(format!(
            "{shown} is not a regular file. Use bash to search it, with a timeout."
        )));
    }
    if cancel.is_cancelled() {
        return Err(ToolError::aborted());
    }

    let problems = problems.lines(&results);
    let denied_paths = denied_paths.and_then(|denied_paths| denied_paths.notice(&results));
    let mut listing = Listing::new();
    let mut count = 0;
    let mut cut = false;
    for (path, mut found) in results.take_sorted() {
        if let Some(remote) = remote.filter(|_| context > 0) {
            found.replace_lines(&remote.read(&path)?);
        }
        let name = match kind.is_dir() {
            true => walk::relative(&path, &root),
            false => match path.file_name() {
                Some(name) => name.to_string_lossy().into_owned(),
                None => path.display().to_string(),
            },
        };
        for number in found.matches.iter().take(limit.results - count) {
            if cancel.is_cancelled() {
                return Err(ToolError::aborted());
            }
            for (line, text, was_cut) in found.with_context(*number, context) {
                let sign = if line == *number { ':' } else { '-' };
                listing.push(&format!("{name}{sign}{line}{sign} {text}"));
                cut |= was_cut;
            }
            count += 1;
        }
    }
    if listing.is_empty() {
        if !problems.is_empty() {
            return Err(ToolError(problems.join("\n")));
        }
        listing.push("No matches found");
        listing.notices(denied_paths);
        return Ok(listing.finish(|_| {}));
    }
    if count >= limit.results {
        listing.note(limit.notice("matches", ", or refine pattern"));
        listing.detail("matchLimitReached", limit.detail());
    }
    Ok(listing.finish(|listing| {
        if cut {
            listing.note(format!(
                "Some lines truncated to {MAX_LINE_LENGTH} chars. Use read tool to see full lines"
            ));
            listing.detail("linesTruncated", true);
        }
        listing.notices(walk::problem_notice(&problems));
        listing.notices(denied_paths);
    }))
}

/// Makes the filter from a glob. A glob with a slash is relative to the working directory of the
/// session.
fn overrides(glob: Option<&str>, cwd: &Path) -> Result<Override, ToolError> {
    let Some(glob) = glob.filter(|glob| !glob.is_empty()) else {
        return Ok(Override::empty());
    };
    let failed = |error: ignore::Error| ToolError(error.to_string());
    let mut builder = OverrideBuilder::new(cwd);
    builder.add(glob).map_err(failed)?;
    builder.build().map_err(failed)
}

/// A search in all files of a folder.
struct FolderSearch<'a> {
    root: &'a Path,
    cwd: &'a Path,
    only: Override,
    query: &'a Query,
    denied_paths: Option<&'a DeniedPaths>,
}

impl FolderSearch<'_> {
    fn run(
        self,
        cancel: &CancellationToken,
        results: &FirstResults<FileMatches>,
        problems: &Arc<Problems>,
    ) {
        let mut builder = walk::builder(self.root, self.cwd, ".rgignore", problems);
        builder.overrides(self.only);
        let denied_paths = self.denied_paths;
        builder.build_parallel().run(|| {
            let mut search = FileSearch::new(self.query.clone(), cancel.clone());
            Box::new(move |entry| {
                if cancel.is_cancelled() {
                    return WalkState::Quit;
                }
                let entry = match entry {
                    Ok(entry) => entry,
                    Err(error) => {
                        problems.add_walk(&error);
                        return WalkState::Continue;
                    }
                };
                let path = entry.path();
                if !results.accepts(path) {
                    return WalkState::Skip;
                }
                let is_file = entry.file_type().is_some_and(|kind| kind.is_file());
                if entry.depth() > 0
                    && denied_paths.is_some_and(|it| it.leaves_out(path, entry.file_type()))
                {
                    return WalkState::Skip;
                }
                if is_file {
                    match search.search(path, false) {
                        Ok(found) => keep(results, path, found),
                        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                        Err(error) => problems.add(path, &error),
                    }
                }
                WalkState::Continue
            })
        });
    }
}

fn keep(results: &FirstResults<FileMatches>, path: &Path, found: FileMatches) {
    if !found.matches.is_empty() {
        results.add(path.to_owned(), found.matches.len(), found);
    }
}

#[cfg(all(test, unix))]
mod tests;
