//! Writes to terminals that native addons open (node-pty): Deno knows only descriptors that it has
//! opened itself. The program has no such terminal.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use deno_core::op2;
use deno_error::JsErrorBox;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// Maximum bytes of one write to a blocking terminal, which waits until all of them are accepted.
const BLOCKING_WRITE_BYTES: usize = 512;

/// Writes to a terminal and returns the number of bytes; -1 if the descriptor is not the near end
/// of a pseudo-terminal (`posix_openpt`).
#[op2(fast)]
#[smi]
pub(crate) fn op_terminal_write(
    #[smi] descriptor: i32,
    #[buffer] data: &[u8],
) -> Result<i32, JsErrorBox> {
    if !is_terminal(descriptor) {
        return Ok(-1);
    }
    // SAFETY: the descriptor is open, as the check has shown, and is only used here.
    let terminal = unsafe { BorrowedFd::borrow_raw(descriptor) };
    let written = write(terminal, data).map_err(JsErrorBox::from_err)?;
    Ok(i32::try_from(written).unwrap_or(i32::MAX))
}

#[cfg(target_os = "linux")]
fn is_terminal(descriptor: i32) -> bool {
    let mut number: libc::c_uint = 0;
    // SAFETY: the kernel writes the number of the terminal, or fails.
    descriptor >= 0 && unsafe { libc::ioctl(descriptor, libc::TIOCGPTN, &raw mut number) } == 0
}

#[cfg(not(target_os = "linux"))]
fn is_terminal(_descriptor: i32) -> bool {
    false
}

/// Writes without waiting.
fn write(terminal: BorrowedFd<'_>, data: &[u8]) -> io::Result<usize> {
    let mut ready = [PollFd::new(terminal.as_fd(), PollFlags::POLLOUT)];
    if poll(&mut ready, PollTimeout::ZERO)? == 0 {
        return Err(io::ErrorKind::WouldBlock.into());
    }
    let flags = OFlag::from_bits_retain(fcntl(terminal, FcntlArg::F_GETFL)?);
    let at_once = match flags.contains(OFlag::O_NONBLOCK) {
        true => data,
        false => &data[..data.len().min(BLOCKING_WRITE_BYTES)],
    };
    Ok(nix::unistd::write(terminal, at_once)?)
}
