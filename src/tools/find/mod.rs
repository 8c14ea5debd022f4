//! The `find` tool: paths that match a glob, like `fd --glob --hidden`, with the libraries of fd
//! inside the process.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use globset::GlobBuilder;
use ignore::WalkState;
use regex::bytes::{Regex, RegexBuilder};
use regex_syntax::hir::{Class, Hir, HirKind};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::abortable;
use super::arguments;
use super::files::paths;
use super::listing::walk::{self, FirstResults, Problems};
use super::listing::{Limit, Listing};
use super::remote::{RemoteAccess, RemoteFiles};
use super::text::truncate::MAX_BYTES;
use super::tool::{Tool, ToolError, ToolInvocation, ToolOutput};
use pi_ai::stream::ToolSpec;

const DEFAULT_LIMIT: usize = 1000;

pub struct FindTool {
    spec: ToolSpec,
    cwd: PathBuf,
    remote: Option<Arc<dyn RemoteFiles>>,
}

#[derive(Deserialize)]
struct Args {
    pattern: String,
    path: Option<String>,
    limit: Option<f64>,
}

impl FindTool {
    pub fn new(cwd: PathBuf) -> Self {
        let spec = ToolSpec {
            name: "find".to_owned(),
            description: format!(
                "Find files and folders by a glob pattern. Gives paths relative to the folder \
                 that was searched, and leaves out what .gitignore excludes. At most \
                 {DEFAULT_LIMIT} results or {}KB are shown, whichever is reached first.",
                MAX_BYTES / 1024
            ),
            parameters: json!({
                "type": "object",
                "properties": {
                    "pattern": {
                        "type": "string",
                        "description": "The glob to match, such as '*.ts', '**/*.json' or \
                                        'src/**/*.spec.ts'",
                    },
                    "path": {
                        "type": "string",
                        "description": "The folder to search (default: the current directory)",
                    },
                    "limit": {
                        "type": "number",
                        "description": "How many results to show at most (default: 1000)",
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
impl Tool for FindTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn prompt_snippet(&self) -> Option<&str> {
        Some("Find files by glob pattern (leaves out what .gitignore excludes)")
    }

    async fn prepare_arguments(&self, args: Value) -> Result<Value, ToolError> {
        Ok(arguments::without_nulls(args, &self.spec))
    }

    async fn execute(&self, call: ToolInvocation) -> Result<ToolOutput, ToolError> {
        let args: Args = arguments::parse("find", call.args)?;
        let cwd = self.cwd.clone();
        let remote = self.remote.as_ref();
        let remote = remote.filter(|operations| operations.offers("glob"));
        let remote = remote.map(|operations| RemoteAccess::new(operations, &call.cancel));
        abortable(&call.cancel, move |cancel| match remote {
            Some(remote) => find_remote(&args, &cwd, &remote),
            None => find(&args, &cwd, cancel),
        })
        .await
    }
}

fn find(args: &Args, cwd: &Path, cancel: &CancellationToken) -> Result<ToolOutput, ToolError> {
    let shown = args.path.as_deref().filter(|path| !path.is_empty());
    let root = paths::resolve(shown.unwrap_or("."), cwd);
    let meta = std::fs::metadata(&root)
        .map_err(|_| ToolError(format!("Path not found: {}", root.display())))?;
    if !meta.is_dir() {
        return Err(ToolError(format!("Not a directory: {}", root.display())));
    }
    let pattern = Pattern::new(&args.pattern)?;
    let limit = Limit::new(args.limit, DEFAULT_LIMIT);
    // The value is true for a folder.
    let results: FirstResults<bool> = FirstResults::new(limit.results);
    let problems = Arc::new(Problems::new());
    let mut builder = walk::builder(&root, cwd, ".fdignore", &problems);
    builder.require_git(false);
    builder.build_parallel().run(|| {
        let pattern = pattern.clone();
        let (results, problems) = (&results, &problems);
        Box::new(move |entry| {
            if cancel.is_cancelled() {
                return WalkState::Quit;
            }
            let entry = match entry {
                Ok(entry) if entry.depth() == 0 => return WalkState::Continue,
                Ok(entry) => entry,
                Err(error) => {
                    problems.add_walk(&error);
                    return WalkState::Continue;
                }
            };
            if !results.accepts(entry.path()) {
                return WalkState::Skip;
            }
            if pattern.matches(entry.path()) {
                let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
                results.add(entry.into_path(), 1, is_folder);
            }
            WalkState::Continue
        })
    });
    if cancel.is_cancelled() {
        return Err(ToolError::aborted());
    }

    let problems = problems.lines(&results);
    let mut listing = Listing::new();
    let mut count = 0;
    for (path, is_folder) in results.take_sorted() {
        let mut line = walk::relative(&path, &root);
        if is_folder {
            line.push('/');
        }
        listing.push(&line);
        count += 1;
    }
    if count == 0 {
        listing.push("No files found matching pattern");
    } else if count >= limit.results {
        listing.note(limit.notice("results", ", or refine pattern"));
        listing.detail("resultLimitReached", limit.detail());
    }
    Ok(listing.finish(|listing| listing.notices(walk::problem_notice(&problems))))
}

fn find_remote(args: &Args, cwd: &Path, remote: &RemoteAccess) -> Result<ToolOutput, ToolError> {
    let shown = args.path.as_deref().filter(|path| !path.is_empty());
    let root = paths::resolve(shown.unwrap_or("."), cwd);
    if !remote.test("exists", &root)? {
        return Err(ToolError(format!("Path not found: {}", root.display())));
    }
    let limit = Limit::new(args.limit, DEFAULT_LIMIT);
    let options = json!({
        "ignore": ["**/node_modules/**", "**/.git/**"],
        "limit": limit.detail(),
    });
    let found = remote.call(
        "glob",
        json!([args.pattern, root.to_string_lossy(), options]),
    )?;
    let found: Vec<String> = serde_json::from_value(found)
        .map_err(|_| ToolError::new("glob of the tool's operations gave no list of paths"))?;
    let mut listing = Listing::new();
    for path in &found {
        listing.push(&walk::relative(Path::new(path), &root));
    }
    if found.is_empty() {
        listing.push("No files found matching pattern");
    } else if found.len() >= limit.results {
        listing.note(limit.notice("results", ", or refine pattern"));
        listing.detail("resultLimitReached", limit.detail());
    }
    Ok(listing.finish(|_| {}))
}

#[derive(Clone)]
struct Pattern {
    regex: Regex,
    /// True if the pattern matches the whole path instead of only the name.
    whole_path: bool,
}

impl Pattern {
    fn new(pattern: &str) -> Result<Self, ToolError> {
        let whole_path = pattern.contains('/');
        let anywhere = match pattern {
            _ if !whole_path => pattern.to_owned(),
            _ if pattern.starts_with('/') || pattern.starts_with("**/") => pattern.to_owned(),
            _ => format!("**/{pattern}"),
        };
        let expression = match anywhere.is_empty() {
            true => String::new(),
            false => GlobBuilder::new(&anywhere)
                .literal_separator(true)
                .build()
                .map_err(|error| ToolError(error.to_string()))?
                .regex()
                .to_owned(),
        };
        let regex = RegexBuilder::new(&expression)
            .case_insensitive(!has_capitals(&expression))
            .dot_matches_new_line(true)
            .build()
            .map_err(|error| ToolError(error.to_string()))?;
        Ok(Self { regex, whole_path })
    }

    fn matches(&self, path: &Path) -> bool {
        let text = match self.whole_path {
            true => path.as_os_str(),
            false => path.file_name().unwrap_or(path.as_os_str()),
        };
        self.regex.is_match(text.as_encoded_bytes())
    }
}

/// Returns true if the pattern has capitals: it then respects case. The expression is examined,
/// because a character class of a glob may contain capitals without naming one.
fn has_capitals(expression: &str) -> bool {
    let parsed = regex_syntax::ParserBuilder::new()
        .utf8(false)
        .build()
        .parse(expression);
    parsed.is_ok_and(|parsed| capitals_in(&parsed))
}

fn capitals_in(part: &Hir) -> bool {
    let byte = |byte: u8| char::from(byte).is_uppercase();
    match part.kind() {
        HirKind::Literal(literal) => match std::str::from_utf8(&literal.0) {
            Ok(text) => text.chars().any(char::is_uppercase),
            Err(_) => literal.0.iter().copied().any(byte),
        },
        HirKind::Class(Class::Unicode(class)) => class
            .iter()
            .any(|range| range.start().is_uppercase() || range.end().is_uppercase()),
        HirKind::Class(Class::Bytes(class)) => class
            .iter()
            .any(|range| byte(range.start()) || byte(range.end())),
        HirKind::Capture(group) => capitals_in(&group.sub),
        HirKind::Repetition(repeated) => capitals_in(&repeated.sub),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => parts.iter().any(capitals_in),
        HirKind::Empty | HirKind::Look(_) => false,
    }
}

#[cfg(all(test, unix))]
mod tests;
