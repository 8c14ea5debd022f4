//! Moves the program's own standard streams out of the reach of code that uses the file descriptors
//! 0 and 1: native addons, child processes that inherit the input, `/dev/stdout`. Pipes are moved
//! into the descriptor table of a thread (`node/private_pipe.rs`).

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use crate::node::private_pipe::{self, PrivatePipe};

/// The program's standard streams. Child processes do not inherit them.
#[derive(Debug)]
pub struct StandardStreams {
    pub input: Input,
    pub output: Output,
}

/// Standard input. Not every mode reads it.
#[derive(Debug)]
pub struct Input {
    untouched: Option<File>,
    stream: Option<Stream>,
}

/// Standard output.
#[derive(Debug)]
pub struct Output {
    stream: Stream,
    written: Arc<AtomicU64>,
}

#[derive(Debug)]
enum Stream {
    Direct(File),
    Private(PrivatePipe),
}

/// Signals that standard output has no reader any more.
#[derive(Debug)]
pub enum Reader {
    /// A copy of the output, which reports an error then.
    Output(File),
    /// A stream that reaches its end then.
    Lifeline(File),
}

/// Replaces descriptor 0 by an empty input and descriptor 1 by standard error. A mode whose
/// protocol runs over standard input and output uses the returned streams. Must be called before
/// anything has been read or printed, because data buffered by std is lost.
pub fn take_standard_streams() -> io::Result<StandardStreams> {
    let (input, output) = take_files()?;
    Ok(StandardStreams {
        input: Input {
            untouched: Some(input),
            stream: None,
        },
        output: Output::new(output)?,
    })
}

pub(crate) fn take_files() -> io::Result<(File, File)> {
    let input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let output = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    nix::unistd::dup2_stdin(File::open("/dev/null")?)?;
    nix::unistd::dup2_stdout(io::stderr())?;
    Ok((input, output))
}

impl Stream {
    /// Wraps a stream. Code that knows the number of a pipe's descriptor could open the pipe again
    /// (`/proc/self/fd`). A socket cannot be opened; a file and a terminal have names.
    fn new(
        file: File,
        direction: private_pipe::Direction,
        written: Arc<AtomicU64>,
    ) -> io::Result<Self> {
        if file.metadata()?.file_type().is_fifo() {
            return Ok(
                match private_pipe::move_to_thread(file, direction, written) {
                    Ok(pipe) => Self::Private(pipe),
                    Err(file) => Self::Direct(file),
                },
            );
        }
        Ok(Self::Direct(file))
    }
}

impl Read for Input {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if let Some(file) = self.untouched.take() {
            let stream = Stream::new(file, private_pipe::Direction::In, Arc::default())?;
            self.stream = Some(stream);
        }
        match &mut self.stream {
            Some(Stream::Direct(file)) => file.read(bytes),
            Some(Stream::Private(pipe)) => pipe.read(bytes),
            None => Ok(0),
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.stream {
            Stream::Direct(file) => private_pipe::write_counted(file, bytes, &self.written),
            Stream::Private(pipe) => pipe.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Output {
    /// Takes a stream as the output. A pipe is moved into the descriptor table of a thread.
    pub fn new(file: File) -> io::Result<Self> {
        let written = Arc::default();
        let stream = Stream::new(file, private_pipe::Direction::Out, Arc::clone(&written))?;
        Ok(Self { stream, written })
    }

    /// Returns the counter of the bytes written. It grows while a write waits for a slow reader.
    pub fn written(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.written)
    }

    /// Returns the signal, or `None` if the end of the reader cannot be noticed.
    pub fn reader(&mut self) -> io::Result<Option<Reader>> {
        match &mut self.stream {
            Stream::Direct(file) => {
                let kind = file.metadata()?.file_type();
                let has_end = kind.is_fifo() || kind.is_socket();
                has_end
                    .then(|| Ok(Reader::Output(file.try_clone()?)))
                    .transpose()
            }
            Stream::Private(pipe) => Ok(pipe
                .lifeline
                .take()
                .map(|line| Reader::Lifeline(File::from(OwnedFd::from(line))))),
        }
    }
}
