//! What the system says of a file, whole: Deno's ops round times to milliseconds, and
//! programs compare those of Node, which has nanoseconds.

use std::fs::Metadata;
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::FromRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use deno_core::unsync::spawn_blocking;
use deno_core::{OpState, ToJsBuffer, op2};
use deno_error::JsErrorBox;
use deno_runtime::deno_io::FdTable;
use deno_runtime::deno_io::fs::File;
use nix::libc;

use crate::program::{SCRIPT, program};

/// dev, mode, nlink, uid, gid, rdev, blksize, ino, size, blocks, and seconds and nanoseconds
/// of the last access, modification and change and of the birth.
type Fields = [i64; 18];

/// Seconds, and the nanoseconds after them.
type Time = (i64, i64);

/// The bits of an unsigned number, of which nobody has a use beyond 63.
fn bits(number: u64) -> i64 {
    i64::from_ne_bytes(number.to_ne_bytes())
}

/// Before 1970, too, the nanoseconds count forward.
fn since_1970(time: SystemTime) -> Time {
    let seconds = |seconds: u64| i64::try_from(seconds).unwrap_or(i64::MAX);
    match time.duration_since(UNIX_EPOCH) {
        Ok(after) => (seconds(after.as_secs()), after.subsec_nanos().into()),
        Err(error) => {
            let before = error.duration();
            match before.subsec_nanos() {
                0 => (-seconds(before.as_secs()), 0),
                rest => (
                    -seconds(before.as_secs()) - 1,
                    1_000_000_000 - i64::from(rest),
                ),
            }
        }
    }
}

fn found(path: &Path, follow: bool) -> io::Result<Metadata> {
    if path.as_os_str() == SCRIPT {
        return std::fs::metadata(program()?);
    }
    match follow {
        true => std::fs::metadata(path),
        false => std::fs::symlink_metadata(path),
    }
}

fn fields(found: io::Result<Metadata>) -> io::Result<Fields> {
    let found = found?;
    let changed = (found.ctime(), found.ctime_nsec());
    let born = found.created().map_or(changed, since_1970);
    Ok([
        bits(found.dev()),
        i64::from(found.mode()),
        bits(found.nlink()),
        i64::from(found.uid()),
        i64::from(found.gid()),
        bits(found.rdev()),
        bits(found.blksize()),
        bits(found.ino()),
        bits(found.size()),
        bits(found.blocks()),
        found.atime(),
        found.atime_nsec(),
        found.mtime(),
        found.mtime_nsec(),
        changed.0,
        changed.1,
        born.0,
        born.1,
    ])
}

/// As numbers of JavaScript, which are quicker to read and have no more than 53 bits, or `whole`.
fn bytes(fields: &Fields, whole: bool) -> impl Iterator<Item = u8> {
    fields.iter().flat_map(move |field| match whole {
        true => field.to_ne_bytes(),
        false => number(*field).to_ne_bytes(),
    })
}

#[expect(
    clippy::cast_precision_loss,
    reason = "Node has such numbers; who needs all bits asks for them"
)]
fn number(field: i64) -> f64 {
    field as f64
}

/// `out` has room for them.
fn write(fields: &Fields, whole: bool, out: &mut [u8]) {
    for (to, byte) in out.iter_mut().zip(bytes(fields, whole)) {
        *to = byte;
    }
}

/// The number of the error, or 0: what is not there is asked for all the time, and an
/// exception costs ten times as much.
#[op2(fast)]
#[smi]
pub(crate) fn op_stat_now(
    #[string] path: &str,
    follow: bool,
    whole: bool,
    #[buffer] out: &mut [u8],
) -> i32 {
    match fields(found(Path::new(path), follow)) {
        Ok(fields) => {
            write(&fields, whole, out);
            0
        }
        Err(error) => error.raw_os_error().unwrap_or(libc::EINVAL),
    }
}

#[op2]
#[serde]
pub(crate) async fn op_stat(
    #[string] path: String,
    follow: bool,
    whole: bool,
) -> Result<ToJsBuffer, JsErrorBox> {
    let fields = spawn_blocking(move || fields(found(Path::new(&path), follow)))
        .await
        .map_err(|error| JsErrorBox::generic(error.to_string()))?
        .map_err(JsErrorBox::from_err)?;
    Ok(bytes(&fields, whole).collect::<Vec<u8>>().into())
}

/// Of an open file. `false` if there is none with this number, or not one of the system's.
#[op2(fast)]
pub(crate) fn op_stat_descriptor(
    state: &OpState,
    #[smi] descriptor: i32,
    whole: bool,
    #[buffer] out: &mut [u8],
) -> Result<bool, JsErrorBox> {
    let file = state.borrow::<FdTable>().get(descriptor).cloned();
    let Some(descriptor) = file.and_then(File::backing_fd) else {
        return Ok(false);
    };
    // SAFETY: the table keeps it open while this function runs, and it is not closed here.
    let file = ManuallyDrop::new(unsafe { std::fs::File::from_raw_fd(descriptor) });
    let fields = fields(file.metadata()).map_err(JsErrorBox::from_err)?;
    write(&fields, whole, out);
    Ok(true)
}
