//! Which process holds the lock of a file, so that "it is open elsewhere" can say
//! where.

use std::fmt;
use std::fs::File;

/// The process that holds a lock, as far as the system tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    pub process: u32,
    /// The name of its program.
    pub program: Option<String>,
    /// When it was started, in ISO 8601.
    pub since: Option<String>,
}

impl Holder {
    #[cfg(target_os = "linux")]
    pub(super) fn of(process: u32) -> Self {
        let program = std::fs::read_to_string(format!("/proc/{process}/comm")).ok();
        Self {
            process,
            program: program.map(|name| name.trim().to_owned()),
            since: start_time(process),
        }
    }

    /// Nowhere else can anybody be asked.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn of(process: u32) -> Self {
        Self {
            process,
            program: None,
            since: None,
        }
    }
}

/// ` (process 4711) [pi, running since 2026-11-26T10:02:03Z]`.
impl fmt::Display for Holder {
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
    /// The kernel counts in this unit for programs on every architecture (USER_HZ).
    const TICKS_PER_SECOND: i64 = 100;
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name before it, in parentheses, may hold anything. The start is member 22 of the line.
    let (_, members) = stat.rsplit_once(')')?;
    let ticks: i64 = members.split_whitespace().nth(19)?.parse().ok()?;
    let about = std::fs::read_to_string("/proc/stat").ok()?;
    let boot = about.lines().find_map(|line| line.strip_prefix("btime "))?;
    let boot: i64 = boot.trim().parse().ok()?;
    let started = chrono::DateTime::from_timestamp(boot + ticks / TICKS_PER_SECOND, 0)?;
    Some(started.to_rfc3339_opts(chrono::SecondsFormat::Secs, true))
}

/// `None` if nobody does, if the system does not tell, or if the process is about
/// to end: then its lock goes with it.
#[cfg(target_os = "linux")]
pub(super) fn of(file: &File) -> Option<u32> {
    use std::os::unix::fs::MetadataExt;
    let metadata = file.metadata().ok()?;
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    let device = (
        nix::sys::stat::major(metadata.dev()),
        nix::sys::stat::minor(metadata.dev()),
    );
    find(&locks, device, metadata.ino()).filter(|process| lives(*process))
}

/// Nowhere else can anybody be asked.
#[cfg(not(target_os = "linux"))]
pub(super) fn of(_file: &File) -> Option<u32> {
    None
}

/// Reads `/proc/locks`: `1: FLOCK  ADVISORY  WRITE 4711 fe:01:1234 0 EOF`, the
/// device in hexadecimal. The lines of those who wait have an arrow before FLOCK.
#[cfg(target_os = "linux")]
fn find(locks: &str, device: (u64, u64), inode: u64) -> Option<u32> {
    let holders = locks.lines().filter_map(|line| {
        let mut words = line.split_whitespace().skip(1);
        (words.next()? == "FLOCK").then_some(())?;
        let process: u32 = words.nth(2)?.parse().ok()?;
        let mut place = words.next()?.split(':');
        let major = u64::from_str_radix(place.next()?, 16).ok()?;
        let minor = u64::from_str_radix(place.next()?, 16).ok()?;
        let there: u64 = place.next()?.parse().ok()?;
        (there == inode).then_some((process, (major, minor)))
    });
    let holders: Vec<_> = holders.collect();
    let exact = holders.iter().find(|(_, there)| *there == device);
    // Layered file systems show another device here than in the file's metadata.
    let (process, _) = exact.or(match holders.as_slice() {
        [only] => Some(only),
        _ => None,
    })?;
    Some(*process)
}

/// A process that was killed gives its memory back first and its locks last.
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
        assert_eq!(find(locks, (0xfe, 1), 77), Some(12));
        assert_eq!(find(locks, (0xfe, 9), 77), None);
        assert_eq!(find(locks, (0xfe, 1), 78), Some(14));
        assert_eq!(find(locks, (0xfe, 1), 79), None);
    }

    #[test]
    fn a_lock_of_ours_is_ours() {
        let file = tempfile::tempfile().unwrap();
        assert_eq!(of(&file), None);
        file.lock().unwrap();
        assert_eq!(of(&file), Some(std::process::id()));
    }

    #[test]
    fn a_holder_is_named_with_its_program_and_its_start() {
        let own = Holder::of(std::process::id());
        let since = own.since.clone().unwrap();
        let since = chrono::DateTime::parse_from_rfc3339(&since).unwrap();
        let age = chrono::Utc::now().signed_duration_since(since);
        assert!((-2..3600).contains(&age.num_seconds()), "{own:?}");
        let said = own.to_string();
        assert!(
            said.starts_with(&format!(" (process {}) [", own.process)),
            "{said}"
        );
    }
}
