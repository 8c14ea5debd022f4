//! Where session files live and what they are called; the same names as the
//! original's, so that both programs find each other's sessions.

use std::path::{Path, PathBuf};

use chrono::{DateTime, SecondsFormat, Utc};

/// `<agent folder>/sessions/--home-me-project--`.
pub fn default_session_dir(agent_dir: &Path, cwd: &Path) -> PathBuf {
    agent_dir.join("sessions").join(folder_name(cwd))
}

/// The folder of one working directory's sessions.
pub fn folder_name(cwd: &Path) -> String {
    let cwd = cwd.to_string_lossy();
    let relative = cwd.strip_prefix(['/', '\\']).unwrap_or(&cwd);
    format!("--{}--", relative.replace(['/', '\\', ':'], "-"))
}

/// `2026-01-31T12-00-00-000Z_<id>.jsonl`.
pub(super) fn file_name(timestamp: &str, id: &str) -> String {
    format!("{}_{id}.jsonl", timestamp.replace([':', '.'], "-"))
}

/// As JavaScript's `toISOString` writes it.
pub(super) fn iso(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// The same of milliseconds since the epoch; `None` for a time that no calendar has.
pub(super) fn iso_of_millis(millis: i64) -> Option<String> {
    DateTime::from_timestamp_millis(millis).map(iso)
}

/// Milliseconds since the epoch; 0 for what is no time.
pub(super) fn millis(timestamp: &str) -> i64 {
    DateTime::parse_from_rfc3339(timestamp).map_or(0, |time| time.timestamp_millis())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_named_after_its_working_directory() {
        assert_eq!(
            folder_name(Path::new("/home/me/a.b c")),
            "--home-me-a.b c--"
        );
        assert_eq!(folder_name(Path::new("/")), "----");
        assert_eq!(folder_name(Path::new(r"C:\work\x")), "--C--work-x--");
        assert_eq!(folder_name(Path::new("//net/x")), "---net-x--");
    }

    #[test]
    fn a_file_is_named_after_its_time_and_id() {
        let time = iso(DateTime::from_timestamp_millis(1_700_000_000_007).unwrap());
        assert_eq!(time, "2023-11-14T22:13:20.007Z");
        assert_eq!(file_name(&time, "x"), "2023-11-14T22-13-20-007Z_x.jsonl");
        assert_eq!(millis(&time), 1_700_000_000_007);
        assert_eq!(millis("yesterday"), 0);
    }
}
