//! Writes the log of decisions about tool calls: one JSON object a line, each with the hash of the
//! line before it, so that a removed or changed line can be noticed.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use pi_agent::permission::PermissionOption;
use pi_base::file_lock::FileLock;
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

/// Size of a block in which the end of the file is searched for its last line.
const BLOCK: u64 = 8 << 10;

/// Returns the path of the log.
pub(super) fn file(agent_dir: &Path) -> PathBuf {
    agent_dir.join("logs/decisions.jsonl")
}

/// A decision about one call.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Record {
    pub session: String,
    pub cwd: String,
    pub tool: String,
    pub tool_call_id: String,
    pub input: Value,
    #[serde(rename = "allowed")]
    pub is_allowed: bool,
    /// `rule` or `user`; the third value says that there was no answer.
    pub decided_by: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<PermissionOption>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    pub reason: String,
}

/// A record as it is written.
#[derive(Serialize)]
struct Line<'a> {
    time: String,
    #[serde(flatten)]
    record: &'a Record,
    /// SHA-256 of the line before, in hexadecimal digits; empty in the first line.
    previous: String,
}

impl Record {
    /// Appends the record to the file at `path`, and makes the file if there is none. Waits for other
    /// processes that append, and until the line is on the disk.
    pub fn append(&self, path: &Path) -> io::Result<()> {
        if let Some(folder) = path.parent() {
            let mut builder = DirBuilder::new();
            builder.recursive(true).mode(0o700).create(folder)?;
        }
        let _lock = FileLock::acquire(path)?;
        let mut options = OpenOptions::new();
        let mut file = options
            .read(true)
            .append(true)
            .create(true)
            .mode(0o600)
            .open(path)?;
        // The file may have been restored with other rights.
        if file.metadata()?.permissions().mode() & 0o077 != 0 {
            file.set_permissions(Permissions::from_mode(0o600))?;
        }
        let last = last_line(&mut file)?;
        let line = Line {
            time: chrono::Utc::now().to_rfc3339_opts(chrono::SecondsFormat::Millis, true),
            record: self,
            previous: match &last.text {
                Some(text) => hash(text),
                None => String::new(),
            },
        };
        let mut bytes = Vec::new();
        if last.is_torn {
            bytes.push(b'\n');
        }
        serde_json::to_writer(&mut bytes, &line)?;
        bytes.push(b'\n');
        file.write_all(&bytes)?;
        file.sync_data()
    }
}

/// Returns the SHA-256 of a line in hexadecimal digits.
fn hash(text: &[u8]) -> String {
    let digest = Sha256::digest(text);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The last line of the log.
struct LastLine {
    /// The line without its end; `None` in an empty file.
    text: Option<Vec<u8>>,
    /// Whether the end of the line is missing, because a process ended while it wrote the line.
    is_torn: bool,
}

/// Reads the last line from the end of the file.
fn last_line(file: &mut File) -> io::Result<LastLine> {
    let mut start = file.metadata()?.len();
    let mut tail = Vec::new();
    while start > 0 {
        let length = start.min(BLOCK);
        start -= length;
        file.seek(SeekFrom::Start(start))?;
        let mut block = vec![0; length as usize];
        file.read_exact(&mut block)?;
        block.extend(tail);
        tail = block;
        let body = tail.strip_suffix(b"\n").unwrap_or(&tail);
        if let Some(end) = body.iter().rposition(|byte| *byte == b'\n') {
            return Ok(LastLine {
                text: Some(body[end + 1..].to_vec()),
                is_torn: !tail.ends_with(b"\n"),
            });
        }
    }
    let is_torn = !tail.is_empty() && !tail.ends_with(b"\n");
    let body = tail.strip_suffix(b"\n").unwrap_or(&tail).to_vec();
    Ok(LastLine {
        text: (!tail.is_empty()).then_some(body),
        is_torn,
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::thread;

    use serde_json::json;

    use super::*;

    fn record(id: usize, size: usize) -> Record {
        Record {
            session: "s".into(),
            cwd: "/".into(),
            tool: "bash".into(),
            tool_call_id: id.to_string(),
            input: json!({ "command": "x".repeat(size) }),
            is_allowed: true,
            decided_by: "rule",
            answer: None,
            rule: None,
            reason: String::new(),
        }
    }

    /// Returns the ids of the lines after checking their hashes.
    fn checked(path: &Path) -> Vec<String> {
        let text = fs::read_to_string(path).unwrap();
        let mut previous = String::new();
        let mut ids = Vec::new();
        for line in text.lines() {
            if let Ok(value) = serde_json::from_str::<Value>(line) {
                assert_eq!(value["previous"], previous);
                ids.push(value["toolCallId"].as_str().unwrap().to_owned());
            }
            previous = hash(line.as_bytes());
        }
        ids
    }

    #[test]
    fn lines_of_all_writers_are_one_chain() {
        let dir = tempfile::tempdir().unwrap();
        let path = file(dir.path());
        thread::scope(|scope| {
            for writer in 0..4 {
                let path = &path;
                scope.spawn(move || {
                    for number in 0..10 {
                        let id = writer * 10 + number;
                        record(id, id * 700).append(path).unwrap();
                    }
                });
            }
        });
        let mut ids = checked(&path);
        ids.sort_by_key(|id| id.parse::<usize>().unwrap());
        assert_eq!(ids, (0..40).map(|id| id.to_string()).collect::<Vec<_>>());
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&path), 0o600);
        assert_eq!(mode(path.parent().unwrap()), 0o700);
    }

    #[test]
    fn a_torn_line_stays_and_the_chain_goes_on() {
        let dir = tempfile::tempdir().unwrap();
        let path = file(dir.path());
        record(1, 1).append(&path).unwrap();
        let mut log = OpenOptions::new().append(true).open(&path).unwrap();
        log.write_all(b"{\"torn").unwrap();
        record(2, 1).append(&path).unwrap();
        record(3, 1).append(&path).unwrap();
        assert_eq!(checked(&path), ["1", "2", "3"]);
        assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 4);
    }
}
