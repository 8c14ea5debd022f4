//! Moves the program's own standard streams out of the reach of code that uses the
//! file descriptors 0 and 1 themselves: native addons, child processes that inherit
//! the input, `/dev/stdout`.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;

/// The real ones. Child processes do not inherit them.
#[derive(Debug)]
pub struct StandardStreams {
    pub input: File,
    pub output: File,
}

/// From now on descriptor 0 is at its end and descriptor 1 is what 2 is; a mode whose
/// protocol runs over standard input and output talks through what this returns.
/// Call it before anything has been read or printed: what std has buffered is lost.
pub fn take_standard_streams() -> io::Result<StandardStreams> {
    let streams = StandardStreams {
        input: File::from(io::stdin().as_fd().try_clone_to_owned()?),
        output: File::from(io::stdout().as_fd().try_clone_to_owned()?),
    };
    nix::unistd::dup2_stdin(File::open("/dev/null")?)?;
    nix::unistd::dup2_stdout(io::stderr())?;
    Ok(streams)
}
