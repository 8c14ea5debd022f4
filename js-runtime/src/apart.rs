//! A pipe that is in the descriptor table of a thread of its own and in no other. The
//! program's table has no number for it that anybody could use, close or hand on, and
//! `/proc/PID/fd` does not list it, neither to JavaScript nor to what that starts; whoever
//! goes through the threads in `/proc/PID/task` still finds it. What the thread does is a
//! system call each: whatever wakes a task of tokio writes to a descriptor of the table
//! that it does not have any more.

use std::fs::File;
use std::io;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, SyncSender};

#[cfg(target_os = "linux")]
use {
    nix::errno::Errno,
    nix::libc,
    nix::poll::{PollFd, PollFlags, PollTimeout, poll},
    nix::sys::signal::SigSet,
    std::io::{PipeWriter, Read as _, Write as _},
    std::os::fd::{AsFd as _, AsRawFd, BorrowedFd, FromRawFd as _, OwnedFd, RawFd},
    std::sync::mpsc::sync_channel,
    std::thread,
};

/// Bytes that one system call may move.
const PIECE: usize = 64 * 1024;
/// The threads do next to nothing.
#[cfg(target_os = "linux")]
const STACK: usize = 128 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    In,
    Out,
}

/// The pipe as the others have it.
#[derive(Debug)]
pub(crate) struct Apart {
    /// What is to be written, or room for what is read.
    asked: SyncSender<Vec<u8>>,
    done: Receiver<(Vec<u8>, io::Result<usize>)>,
    /// It comes back each time.
    buffer: Vec<u8>,
    /// At its end when nobody reads what is written.
    pub lifeline: Option<UnixStream>,
}

/// Gives the pipe back where no thread can have a table of its own: before Linux 5.9, and
/// on other systems.
pub(crate) fn take(pipe: File, way: Way) -> Result<Apart, File> {
    start(&pipe, way).map_err(|_| pipe)
}

#[cfg(not(target_os = "linux"))]
fn start(_pipe: &File, _way: Way) -> io::Result<Apart> {
    Err(io::ErrorKind::Unsupported.into())
}

/// When this returns, the thread has the pipe; whoever called may close it.
#[cfg(target_os = "linux")]
fn start(pipe: &File, way: Way) -> io::Result<Apart> {
    let (asked, jobs) = sync_channel(1);
    let (results, done) = sync_channel(1);
    let (ready, begun) = sync_channel(1);
    let (lifeline, held) = match way {
        Way::In => (None, None),
        Way::Out => {
            // A pipe can be opened by its number, and be written to.
            let (lifeline, held) = UnixStream::pair()?;
            (Some(lifeline), Some(held))
        }
    };
    let (number, held_number) = (pipe.as_raw_fd(), held.as_ref().map(AsRawFd::as_raw_fd));
    let name = match way {
        Way::In => "stdin-pipe",
        Way::Out => "stdout-pipe",
    };
    let work = move || {
        // Their handlers write to descriptors of the program.
        _ = SigSet::all().thread_block();
        if let Err(error) = leave_all_but(&[Some(number), held_number]) {
            _ = ready.send(Err(error));
            return;
        }
        // SAFETY: they are open in the table of this thread, where nobody else knows of them.
        let pipe = unsafe { File::from_raw_fd(number) };
        // SAFETY: the same.
        let held = held_number.map(|held| unsafe { OwnedFd::from_raw_fd(held) });
        let watching = held.map(|held| watch(number, held)).transpose();
        // Nobody waits for it any more if its starter is gone.
        _ = ready.send(watching.as_ref().map(|_| ()).map_err(copy_of));
        if watching.is_ok() {
            serve(pipe, way, &jobs, &results);
        }
    };
    thread::Builder::new()
        .name(name.into())
        .stack_size(STACK)
        .spawn(work)?;
    begun
        .recv()
        .unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))?;
    Ok(Apart {
        asked,
        done,
        buffer: Vec::new(),
        lifeline,
    })
}

#[cfg(target_os = "linux")]
fn copy_of(error: &io::Error) -> io::Error {
    error.kind().into()
}

/// From now on this thread, and those that it starts, have a table of their own, with these
/// descriptors and the standard ones.
#[cfg(target_os = "linux")]
fn leave_all_but(kept: &[Option<RawFd>]) -> io::Result<()> {
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

/// Not through the C library, where it is newer than some that we run with.
#[cfg(target_os = "linux")]
fn close_range(first: u32, last: u32, flags: libc::c_uint) -> io::Result<()> {
    // SAFETY: it is called on a thread that has, or gets with it, a table of its own, and
    // uses none of these descriptors.
    match unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(target_os = "linux")]
fn serve(
    mut pipe: File,
    way: Way,
    jobs: &Receiver<Vec<u8>>,
    results: &SyncSender<(Vec<u8>, io::Result<usize>)>,
) {
    while let Ok(mut buffer) = jobs.recv() {
        let moved = match way {
            Way::In => pipe.read(&mut buffer),
            Way::Out => pipe.write(&buffer),
        };
        if results.send((buffer, moved)).is_err() {
            return;
        }
    }
}

/// Lets go of `held` when nobody reads from the pipe any more. Ends with what it returns: who
/// waits for something of a pipe keeps it open.
#[cfg(target_os = "linux")]
fn watch(pipe: RawFd, held: OwnedFd) -> io::Result<PipeWriter> {
    let (end, until) = io::pipe()?;
    let work = move || {
        loop {
            // SAFETY: it is open for as long as `until` is, which is waited for as well.
            let pipe = unsafe { BorrowedFd::borrow_raw(pipe) };
            // Errors are always told.
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
        .stack_size(STACK)
        .spawn(work)?;
    Ok(until)
}

impl Apart {
    fn exchange(&mut self, buffer: Vec<u8>) -> io::Result<usize> {
        let gone = || io::Error::from(io::ErrorKind::BrokenPipe);
        self.asked.send(buffer).map_err(|_| gone())?;
        let (buffer, moved) = self.done.recv().map_err(|_| gone())?;
        self.buffer = buffer;
        moved
    }

    pub fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        buffer.extend_from_slice(&bytes[..bytes.len().min(PIECE)]);
        self.exchange(buffer)
    }

    pub fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.resize(bytes.len().min(PIECE), 0);
        let count = self.exchange(buffer)?;
        bytes[..count].copy_from_slice(&self.buffer[..count]);
        Ok(count)
    }
}
