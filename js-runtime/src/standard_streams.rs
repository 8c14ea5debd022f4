//! Moves the program's own standard streams out of the reach of code that uses the
//! file descriptors 0 and 1 themselves: native addons, child processes that inherit
//! the input, `/dev/stdout`. Those that are pipes go further (`apart`).

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;

use crate::apart::{self, Apart};

/// The real ones. Child processes do not inherit them.
#[derive(Debug)]
pub struct StandardStreams {
    pub input: Input,
    pub output: Output,
}

/// What can be read from standard input. Not every mode does.
#[derive(Debug)]
pub struct Input {
    untouched: Option<File>,
    place: Option<Place>,
}

/// Where standard output goes.
#[derive(Debug)]
pub struct Output(Place);

#[derive(Debug)]
enum Place {
    Here(File),
    Apart(Apart),
}

/// What tells that nobody reads any more.
#[derive(Debug)]
pub enum Reader {
    /// A copy of the output, which has an error then.
    Output(File),
    /// It is at its end then.
    Lifeline(File),
}

/// From now on descriptor 0 is at its end and descriptor 1 is what 2 is; a mode whose
/// protocol runs over standard input and output talks through what this returns.
/// Call it before anything has been read or printed: what std has buffered is lost.
pub fn take_standard_streams() -> io::Result<StandardStreams> {
    let (input, output) = take_files()?;
    Ok(StandardStreams {
        input: Input {
            untouched: Some(input),
            place: None,
        },
        output: Output(Place::of(output, apart::Way::Out)?),
    })
}

pub(crate) fn take_files() -> io::Result<(File, File)> {
    let input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let output = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    nix::unistd::dup2_stdin(File::open("/dev/null")?)?;
    nix::unistd::dup2_stdout(io::stderr())?;
    Ok((input, output))
}

impl Place {
    /// Whoever knows the number of a pipe's descriptor can open the pipe once more
    /// (`/proc/self/fd`). A socket cannot be opened; a file and a terminal have names.
    fn of(file: File, way: apart::Way) -> io::Result<Self> {
        if file.metadata()?.file_type().is_fifo() {
            return Ok(match apart::take(file, way) {
                Ok(apart) => Self::Apart(apart),
                Err(file) => Self::Here(file),
            });
        }
        Ok(Self::Here(file))
    }
}

impl Read for Input {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if let Some(file) = self.untouched.take() {
            self.place = Some(Place::of(file, apart::Way::In)?);
        }
        match &mut self.place {
            Some(Place::Here(file)) => file.read(bytes),
            Some(Place::Apart(apart)) => apart.read(bytes),
            None => Ok(0),
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.0 {
            Place::Here(file) => file.write(bytes),
            Place::Apart(apart) => apart.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Output {
    /// `None` if it cannot be known.
    pub fn reader(&mut self) -> io::Result<Option<Reader>> {
        match &mut self.0 {
            Place::Here(file) => {
                let kind = file.metadata()?.file_type();
                let has_end = kind.is_fifo() || kind.is_socket();
                has_end
                    .then(|| Ok(Reader::Output(file.try_clone()?)))
                    .transpose()
            }
            Place::Apart(apart) => Ok(apart
                .lifeline
                .take()
                .map(|line| Reader::Lifeline(File::from(OwnedFd::from(line))))),
        }
    }
}
