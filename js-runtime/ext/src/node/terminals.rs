//! Terminals that native addons open, and write to with `fs.write` (node-pty): Deno knows
//! the descriptors only that it has opened itself. The program has none of this kind that
//! somebody could get at.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use deno_core::op2;
use deno_error::JsErrorBox;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// Bytes that are written at once where a write waits until all of them are taken.
const PATIENT: usize = 512;

/// How many bytes were taken; -1 if the descriptor is not the near end of a terminal that
/// was made (`posix_openpt`).
#[op2(fast)]
#[smi]
pub(crate) fn op_terminal_write(
    #[smi] descriptor: i32,
    #[buffer] data: &[u8],
) -> Result<i32, JsErrorBox> {
    if !is_terminal(descriptor) {
        return Ok(-1);
    }
    // SAFETY: it is open, as we have just seen, and is only used here.
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

/// Never waits.
fn write(terminal: BorrowedFd<'_>, data: &[u8]) -> io::Result<usize> {
    let mut ready = [PollFd::new(terminal.as_fd(), PollFlags::POLLOUT)];
    if poll(&mut ready, PollTimeout::ZERO)? == 0 {
        return Err(io::ErrorKind::WouldBlock.into());
    }
    let flags = OFlag::from_bits_retain(fcntl(terminal, FcntlArg::F_GETFL)?);
    let at_once = match flags.contains(OFlag::O_NONBLOCK) {
        true => data,
        false => &data[..data.len().min(PATIENT)],
    };
    Ok(nix::unistd::write(terminal, at_once)?)
}
