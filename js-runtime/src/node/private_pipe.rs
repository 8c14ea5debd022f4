//! A pipe in the private descriptor table of a thread. The program's table has no number for it
//! that code could use, close or pass on, and `/proc/PID/fd` does not list it, neither for
//! JavaScript nor for its child processes; the tables of threads in `/proc/PID/task` still do. The
//! thread uses only plain system calls: waking a tokio task writes to a descriptor of the program's
//! table, which the thread no longer has.

use std::fs::File;
use std::io;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender};

#[cfg(target_os = "linux")]
use {
    nix::errno::Errno,
    nix::libc,
    nix::poll::{PollFd, PollFlags, PollTimeout, poll},
    nix::sys::signal::SigSet,
    std::io::{PipeWriter, Read as _},
    std::os::fd::{AsFd as _, AsRawFd, BorrowedFd, FromRawFd as _, OwnedFd, RawFd},
    std::sync::mpsc::sync_channel,
    std::thread,
};

/// Maximum bytes that the threads pass to each other at a time.
const MAX_TRANSFER: usize = 64 * 1024;
/// Maximum bytes of one write, so that a slow reader makes visible progress: a write returns only
/// when the pipe has all of it.
const MAX_WRITE: usize = 16 * 1024;
/// Stack size of the threads, which need little.
#[cfg(target_os = "linux")]
const STACK_SIZE: usize = 128 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    In,
    Out,
}

/// Handle of the pipe for the other threads.
#[derive(Debug)]
pub(crate) struct PrivatePipe {
    /// Bytes to write, or an empty buffer to read into.
    requests: SyncSender<Vec<u8>>,
    done: Receiver<(Vec<u8>, io::Result<usize>)>,
    /// Buffer that is passed back and forth.
    buffer: Vec<u8>,
    /// Reaches its end when the pipe has no reader any more.
    pub lifeline: Option<UnixStream>,
}

/// Writes the beginning of `bytes`, at most [`MAX_WRITE`], and adds its length to `written`.
pub(crate) fn write_counted(
    pipe: &mut impl io::Write,
    bytes: &[u8],
    written: &AtomicU64,
) -> io::Result<usize> {
    let count = pipe.write(&bytes[..bytes.len().min(MAX_WRITE)])?;
    written.fetch_add(count as u64, Ordering::Relaxed);
    Ok(count)
}

/// Moves a pipe into the table of a new thread, which adds the bytes that it writes to `written`.
/// Returns the pipe where threads cannot have tables of their own: before Linux 5.9, and on other
/// systems.
pub(crate) fn move_to_thread(
    pipe: File,
    direction: Direction,
    written: Arc<AtomicU64>,
) -> Result<PrivatePipe, File> {
    start(&pipe, direction, written).map_err(|_| pipe)
}

#[cfg(not(target_os = "linux"))]
fn start(_pipe: &File, _direction: Direction, _written: Arc<AtomicU64>) -> io::Result<PrivatePipe> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Starts the thread. When this returns, the thread has the pipe, and the caller may close it.
#[cfg(target_os = "linux")]
fn start(pipe: &File, direction: Direction, written: Arc<AtomicU64>) -> io::Result<PrivatePipe> {
    let (requests, jobs) = sync_channel(1);
    let (results, done) = sync_channel(1);
    let (ready, started) = sync_channel(1);
    let (lifeline, held) = match direction {
        Direction::In => (None, None),
        Direction::Out => {
            // A pipe could be opened by its number and be written to; a socket cannot.
            let (lifeline, held) = UnixStream::pair()?;
            (Some(lifeline), Some(held))
        }
    };
    let (number, held_number) = (pipe.as_raw_fd(), held.as_ref().map(AsRawFd::as_raw_fd));
    let name = match direction {
        Direction::In => "stdin-pipe",
        Direction::Out => "stdout-pipe",
    };
    let work = move || {
        // Signal handlers write to descriptors of the program.
        _ = SigSet::all().thread_block();
        if let Err(error) = unshare_descriptors(&[Some(number), held_number]) {
            _ = ready.send(Err(error));
            return;
        }
        // SAFETY: the descriptors are open in the table of this thread, which no other code uses.
        let pipe = unsafe { File::from_raw_fd(number) };
        // SAFETY: as above.
        let held = held_number.map(|held| unsafe { OwnedFd::from_raw_fd(held) });
        let watcher = held.map(|held| watch(number, held)).transpose();
        // The receiver may be gone.
        _ = ready.send(watcher.as_ref().map(|_| ()).map_err(clone_error));
        if watcher.is_ok() {
            serve(pipe, direction, &written, &jobs, &results);
        }
    };
    thread::Builder::new()
        .name(name.into())
        .stack_size(STACK_SIZE)
        .spawn(work)?;
    started
        .recv()
        .unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))?;
    Ok(PrivatePipe {
        requests,
        done,
        buffer: Vec::new(),
        lifeline,
    })
}

#[cfg(target_os = "linux")]
fn clone_error(error: &io::Error) -> io::Error {
    error.kind().into()
}

/// Gives this thread, and those that it starts, a table of their own with these descriptors and the
/// standard ones.
#[cfg(target_os = "linux")]
fn unshare_descriptors(kept: &[Option<RawFd>]) -> io::Result<()> {
    let mut kept: Vec<u32> = (0..=2)
        .chain(kept.iter().flatten().map(|kept| kept.cast_unsigned()))
        .collect();
    kept.sort_unstable();
    // The last range is never empty.
    let mut after = u32::MAX;
    for (index, kept) in kept.iter().rev().enumerate() {
        let flags = match index {
            0 => libc::CLOSE_RANGE_UNSHARE,
            _ => 0,
        };
        if *kept < after {
            close_range(kept + 1, after, flags)?;
        }
        after = kept.saturating_sub(1);
    }
    Ok(())
}

/// Calls the system directly, because some supported C libraries lack the function.
#[cfg(target_os = "linux")]
fn close_range(first: u32, last: u32, flags: libc::c_uint) -> io::Result<()> {
    // SAFETY: the thread has, or gets with this call, a table of its own, and uses none of these
    // descriptors.
    match unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(target_os = "linux")]
fn serve(
    mut pipe: File,
    direction: Direction,
    written: &AtomicU64,
    jobs: &Receiver<Vec<u8>>,
    results: &SyncSender<(Vec<u8>, io::Result<usize>)>,
) {
    while let Ok(mut buffer) = jobs.recv() {
        let moved = match direction {
            Direction::In => pipe.read(&mut buffer),
            Direction::Out => write_all_counted(&mut pipe, &buffer, written),
        };
        if results.send((buffer, moved)).is_err() {
            return;
        }
    }
}

#[cfg(target_os = "linux")]
fn write_all_counted(pipe: &mut File, bytes: &[u8], written: &AtomicU64) -> io::Result<usize> {
    let mut rest = bytes;
    while !rest.is_empty() {
        let count = write_counted(pipe, rest, written)?;
        rest = &rest[count..];
    }
    Ok(bytes.len())
}

/// Closes `held` when the pipe has no reader any more. The watching thread ends when the returned
/// value is dropped, because polling keeps the pipe open.
#[cfg(target_os = "linux")]
fn watch(pipe: RawFd, held: OwnedFd) -> io::Result<PipeWriter> {
    let (end, until) = io::pipe()?;
    let work = move || {
        loop {
            // SAFETY: the descriptor is open as long as `until` is, which is polled as well.
            let pipe = unsafe { BorrowedFd::borrow_raw(pipe) };
            // Errors are always reported.
            let mut waited = [pipe, end.as_fd()].map(|end| PollFd::new(end, PollFlags::empty()));
            match poll(&mut waited, PollTimeout::NONE) {
                Err(Errno::EINTR) => {}
                _ => break,
            }
        }
        drop(held);
    };
    thread::Builder::new()
        .name("stdout-watch".into())
        .stack_size(STACK_SIZE)
        .spawn(work)?;
    Ok(until)
}

impl PrivatePipe {
    fn exchange(&mut self, buffer: Vec<u8>) -> io::Result<usize> {
        let gone = || io::Error::from(io::ErrorKind::BrokenPipe);
        self.requests.send(buffer).map_err(|_| gone())?;
        let (buffer, moved) = self.done.recv().map_err(|_| gone())?;
        self.buffer = buffer;
        moved
    }

    /// Returns when the pipe has the bytes that were written.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        buffer.extend_from_slice(&bytes[..bytes.len().min(MAX_TRANSFER)]);
        self.exchange(buffer)
    }

    pub fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.resize(bytes.len().min(MAX_TRANSFER), 0);
        let count = self.exchange(buffer)?;
        bytes[..count].copy_from_slice(&self.buffer[..count]);
        Ok(count)
    }
}
