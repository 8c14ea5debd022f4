//! The process that holds the lock of a file, for the message that a session is open elsewhere.

use std::fmt;
use std::fs::File;

/// The process that holds a lock, as far as the system reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockHolder {
    pub process: u32,
    /// Name of its program.
    pub program: Option<String>,
    /// Start time of the process, in ISO 8601.
    pub since: Option<String>,
}

impl LockHolder {
    #[cfg(target_os = "linux")]
    pub(crate) fn from_process_id(process: u32) -> Self {
        let program = std::fs::read_to_string(format!("/proc/{process}/comm")).ok();
        Self {
            process,
            program: program.map(|name| name.trim().to_owned()),
            since: start_time(process),
        }
    }

    /// Other systems than Linux do not report more.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn from_process_id(process: u32) -> Self {
        Self {
            process,
            program: None,
            since: None,
        }
    }
}

/// Formats the holder as ` (process 4711) [pi, running since 2026-11-26T10:02:03Z]`.
impl fmt::Display for LockHolder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, " (process {})", self.process)?;
        let since = self
            .since
            .as_ref()
            .map(|since| format!("running since {since}"));
        let known: Vec<&str> = [&self.program, &since]
            .into_iter()
            .flatten()
            .map(String::as_str)
            .collect();
        match known.is_empty() {
            true => Ok(()),
            false => write!(formatter, " [{}]", known.join(", ")),
        }
    }
}

#[cfg(target_os = "linux")]
fn start_time(process: u32) -> Option<String> {
    /// The unit of kernel times in `/proc` on every architecture (USER_HZ).
    const TICKS_PER_SECOND: i64 = 100;
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The program name before the last parenthesis may contain anything. The start time is
    // field 22 of the line.
    let (_, members) = stat.rsplit_once(')')?;
    let ticks: i64 = members.split_whitespace().nth(19)?.parse().ok()?;
    let about = std::fs::read_to_string("/proc/stat").ok()?;
    let boot = about.lines().find_map(|line| line.strip_prefix("btime "))?;
    let boot: i64 = boot.trim().parse().ok()?;
    let started = chrono::DateTime::from_timestamp(boot + ticks / TICKS_PER_SECOND, 0)?;
    Some(started.to_rfc3339_opts(chrono::SecondsFormat::Secs, true))
}

/// How often the list of locks is read until the holder is found.
#[cfg(target_os = "linux")]
const READS: usize = 4;

/// Returns the process that holds the lock of `file`; `None` if there is none, if the system
/// does not report it, or if the process is about to end and its lock with it.
#[cfg(target_os = "linux")]
pub(crate) fn find(file: &File) -> Option<u32> {
    use std::os::unix::fs::MetadataExt;
    let metadata = file.metadata().ok()?;
    let device = (
        nix::sys::stat::major(metadata.dev()),
        nix::sys::stat::minor(metadata.dev()),
    );
    // The kernel gives the list out in pieces. When other locks end meanwhile, one may be left out.
    let holder = (0..READS).find_map(|_| {
        let locks = std::fs::read_to_string("/proc/locks").ok()?;
        parse_proc_locks(&locks, device, metadata.ino())
    });
    holder.filter(|process| lives(*process))
}

/// Other systems than Linux do not report lock holders.
#[cfg(not(target_os = "linux"))]
pub(crate) fn find(_file: &File) -> Option<u32> {
    None
}

/// Finds a lock in `/proc/locks`, whose lines are `1: FLOCK ADVISORY WRITE 4711 fe:01:1234 0
/// EOF` with the device in hexadecimal. Lines of waiting processes have an arrow before FLOCK.
#[cfg(target_os = "linux")]
fn parse_proc_locks(locks: &str, device: (u64, u64), inode: u64) -> Option<u32> {
    let holders = locks.lines().filter_map(|line| {
        let mut words = line.split_whitespace().skip(1);
        (words.next()? == "FLOCK").then_some(())?;
        let process: u32 = words.nth(2)?.parse().ok()?;
        let mut device_and_inode = words.next()?.split(':');
        let major = u64::from_str_radix(device_and_inode.next()?, 16).ok()?;
        let minor = u64::from_str_radix(device_and_inode.next()?, 16).ok()?;
        let there: u64 = device_and_inode.next()?.parse().ok()?;
        (there == inode).then_some((process, (major, minor)))
    });
    let holders: Vec<_> = holders.collect();
    let exact = holders.iter().find(|(_, there)| *there == device);
    // Layered file systems show another device here than in the metadata of the file.
    let (process, _) = exact.or(match holders.as_slice() {
        [only] => Some(only),
        _ => None,
    })?;
    Some(*process)
}

/// Returns whether the process still has memory. A killed process gives its memory back first
/// and its locks last.
#[cfg(target_os = "linux")]
fn lives(process: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"));
    status.is_ok_and(|status| status.contains("\nVmSize:"))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_holder_is_found_by_device_and_inode() {
        let locks = "1: POSIX  ADVISORY  WRITE 10 fe:01:77 0 EOF\n\
                     2: FLOCK  ADVISORY  WRITE 11 fe:02:77 0 EOF\n\
                     3: FLOCK  ADVISORY  WRITE 12 fe:01:77 0 EOF\n\
                     3: -> FLOCK  ADVISORY  WRITE 13 fe:01:77 0 EOF\n\
                     4: FLOCK  ADVISORY  WRITE 14 00:2f:78 0 EOF\n\
                     nonsense\n";
        assert_eq!(parse_proc_locks(locks, (0xfe, 1), 77), Some(12));
        assert_eq!(parse_proc_locks(locks, (0xfe, 9), 77), None);
        assert_eq!(parse_proc_locks(locks, (0xfe, 1), 78), Some(14));
        assert_eq!(parse_proc_locks(locks, (0xfe, 1), 79), None);
    }

    #[test]
    fn own_lock_is_found() {
        let file = tempfile::tempfile().unwrap();
        assert_eq!(find(&file), None);
        file.lock().unwrap();
        assert_eq!(find(&file), Some(std::process::id()));
    }

    #[test]
    fn a_holder_is_named_with_its_program_and_its_start() {
        let own = LockHolder::from_process_id(std::process::id());
        let since = own.since.clone().unwrap();
        let since = chrono::DateTime::parse_from_rfc3339(&since).unwrap();
        let age = chrono::Utc::now().signed_duration_since(since);
        assert!((-2..3600).contains(&age.num_seconds()), "{own:?}");
        let text = own.to_string();
        assert!(
            text.starts_with(&format!(" (process {}) [", own.process)),
            "{text}"
        );
    }
}
