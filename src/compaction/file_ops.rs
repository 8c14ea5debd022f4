//! The files that a conversation read and changed. Summaries tend to lose them, so they are
//! stored separately and carried over from one summary to the next.

use indexmap::IndexSet;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use pi_session::message::AgentMessage;

/// Paths in the form in which the model passed them to the tools.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileOperations {
    pub read: IndexSet<String>,
    pub written: IndexSet<String>,
    pub edited: IndexSet<String>,
}

/// The `details` of a summary that pi wrote.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FileLists {
    /// Files that were read and not changed.
    pub read_files: Vec<String>,
    pub modified_files: Vec<String>,
}

/// The members of an entry with a summary that are needed to carry its files over.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SummaryLine {
    #[serde(default)]
    details: Value,
    #[serde(default)]
    from_hook: Value,
}

impl FileOperations {
    /// Adds the paths of the tool calls in an answer.
    pub(super) fn add_calls(&mut self, message: &AgentMessage) {
        let calls = message
            .as_assistant()
            .into_iter()
            .flat_map(|answer| answer.tool_calls());
        for call in calls {
            let Some(path) = call.arguments.get("path").and_then(Value::as_str) else {
                continue;
            };
            let paths = match call.name.as_str() {
                "read" => &mut self.read,
                "write" => &mut self.written,
                "edit" => &mut self.edited,
                _ => continue,
            };
            if !path.is_empty() {
                paths.insert(path.to_owned());
            }
        }
    }

    /// Adds the lists of an earlier summary from its line in the session. The details of a
    /// summary that an extension wrote may be anything and are ignored.
    pub(super) fn add_summary(&mut self, line: &str) {
        let Ok(line) = serde_json::from_str::<SummaryLine>(line) else {
            return;
        };
        if line.from_hook == Value::Bool(true) {
            return;
        }
        let list = |member: &str| {
            let paths = line.details.get(member).and_then(Value::as_array);
            let paths = paths.into_iter().flatten().filter_map(Value::as_str);
            paths.map(str::to_owned).collect::<Vec<_>>()
        };
        self.read.extend(list("readFiles"));
        self.edited.extend(list("modifiedFiles"));
    }

    pub(super) fn lists(&self) -> FileLists {
        let modified: IndexSet<&String> = self.edited.iter().chain(&self.written).collect();
        let read = self.read.iter().filter(|path| !modified.contains(path));
        FileLists {
            read_files: sorted(read),
            modified_files: sorted(modified.iter().copied()),
        }
    }
}

impl FileLists {
    /// Returns the text to append to the summary; empty if there are no files.
    pub(super) fn to_text(&self) -> String {
        let section = |tag: &str, paths: &[String]| match paths {
            [] => String::new(),
            paths => format!("\n\n<{tag}>\n{}\n</{tag}>", paths.join("\n")),
        };
        let read = section("read-files", &self.read_files);
        let modified = section("modified-files", &self.modified_files);
        read + modified.as_str()
    }
}

/// Sorts as JavaScript does.
fn sorted<'a>(paths: impl Iterator<Item = &'a String>) -> Vec<String> {
    let mut paths: Vec<String> = paths.cloned().collect();
    paths.sort_by(|a, b| a.encode_utf16().cmp(b.encode_utf16()));
    paths
}
