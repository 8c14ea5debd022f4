//! Locations and names of session files. They are those of the original, so that both programs
//! find each other's sessions.

use std::path::{Path, PathBuf};

use chrono::{DateTime, SecondsFormat, Utc};
use sha2::{Digest, Sha256};

/// Maximum length in bytes of a file name that every common file system accepts.
const MAX_FILE_NAME_BYTES: usize = 255;

/// Returns `<agent folder>/sessions/--home-me-project--`.
pub fn default_session_dir(agent_dir: &Path, cwd: &Path) -> PathBuf {
    agent_dir.join("sessions").join(folder_name(cwd))
}

/// Returns the name of the session folder of a working directory. A name that would be too long
/// for a file ends in a digest of the working directory.
pub fn folder_name(cwd: &Path) -> String {
    let text = cwd.to_string_lossy();
    let relative = text.strip_prefix(['/', '\\']).unwrap_or(&text);
    let mut name = relative.replace(['/', '\\', ':'], "-");
    if name.len() + "----".len() > MAX_FILE_NAME_BYTES {
        let digest = Sha256::digest(cwd.as_os_str().as_encoded_bytes());
        let digest: String = digest[..16]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let room = MAX_FILE_NAME_BYTES - "-----".len() - digest.len();
        name.truncate(name.floor_char_boundary(room));
        name = format!("{name}-{digest}");
    }
    format!("--{name}--")
}

/// Returns `2026-01-31T12-00-00-000Z_<id>.jsonl`.
pub(crate) fn file_name(timestamp: &str, id: &str) -> String {
    format!("{}_{id}.jsonl", timestamp.replace([':', '.'], "-"))
}

/// Formats a time as JavaScript's `toISOString` does.
pub(crate) fn iso(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// Formats milliseconds since the epoch like [`iso`]; `None` if the time is out of range.
pub(crate) fn iso_of_millis(millis: i64) -> Option<String> {
    DateTime::from_timestamp_millis(millis).map(iso)
}

/// Parses a time to milliseconds since the epoch; 0 if it is not a time.
pub(crate) fn millis(timestamp: &str) -> i64 {
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
    fn a_name_too_long_for_a_folder_ends_with_a_digest() {
        let fits = format!("/{}", "x".repeat(MAX_FILE_NAME_BYTES - 4));
        assert_eq!(folder_name(Path::new(&fits)), format!("--{}--", &fits[1..]));
        let long = |end: &str| PathBuf::from(format!("/{}/{end}", "é/".repeat(200)));
        let (one, other) = (folder_name(&long("one")), folder_name(&long("other")));
        assert_ne!(one, other);
        assert!((250..=MAX_FILE_NAME_BYTES).contains(&one.len()), "{one}");
        assert!(one.starts_with("--é-é-"), "{one}");
        assert_eq!(one, folder_name(&long("one")));
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
