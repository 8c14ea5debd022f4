//! Returns the status of files with nanoseconds. Deno's ops round times to milliseconds, and
//! programs compare them with those of Node.

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

/// Seconds and nanoseconds.
type Time = (i64, i64);

/// Reinterprets an unsigned number, of which 63 bits matter.
fn bits(number: u64) -> i64 {
    i64::from_ne_bytes(number.to_ne_bytes())
}

/// Returns the time since 1970. Nanoseconds count forward before that, too.
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

fn metadata_of(path: &Path, follow: bool) -> io::Result<Metadata> {
    if path.as_os_str() == SCRIPT {
        return std::fs::metadata(program()?);
    }
    match follow {
        true => std::fs::metadata(path),
        false => std::fs::symlink_metadata(path),
    }
}

fn fields(metadata: io::Result<Metadata>) -> io::Result<Fields> {
    let metadata = metadata?;
    let changed = (metadata.ctime(), metadata.ctime_nsec());
    let born = metadata.created().map_or(changed, since_1970);
    Ok([
        bits(metadata.dev()),
        i64::from(metadata.mode()),
        bits(metadata.nlink()),
        i64::from(metadata.uid()),
        i64::from(metadata.gid()),
        bits(metadata.rdev()),
        bits(metadata.blksize()),
        bits(metadata.ino()),
        bits(metadata.size()),
        bits(metadata.blocks()),
        metadata.atime(),
        metadata.atime_nsec(),
        metadata.mtime(),
        metadata.mtime_nsec(),
        changed.0,
        changed.1,
        born.0,
        born.1,
    ])
}

/// Returns the fields as bytes: as floating-point numbers, which JavaScript reads faster and which
/// have 53 bits, or as 64-bit integers if `whole`.
fn bytes(fields: &Fields, whole: bool) -> impl Iterator<Item = u8> {
    fields.iter().flat_map(move |field| match whole {
        true => field.to_ne_bytes(),
        false => number(*field).to_ne_bytes(),
    })
}

#[expect(
    clippy::cast_precision_loss,
    reason = "Node has such numbers; callers that need all bits set `whole`"
)]
fn number(field: i64) -> f64 {
    field as f64
}

/// Writes the fields to `out`, which is large enough.
fn write(fields: &Fields, whole: bool, out: &mut [u8]) {
    for (to, byte) in out.iter_mut().zip(bytes(fields, whole)) {
        *to = byte;
    }
}

/// Returns the error number, or 0. Missing files are frequent, and an exception costs ten times as
/// much.
#[op2(fast)]
#[smi]
pub(crate) fn op_stat_now(
    #[string] path: &str,
    follow: bool,
    whole: bool,
    #[buffer] out: &mut [u8],
) -> i32 {
    match fields(metadata_of(Path::new(path), follow)) {
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
    let fields = spawn_blocking(move || fields(metadata_of(Path::new(&path), follow)))
        .await
        .map_err(|error| JsErrorBox::generic(error.to_string()))?
        .map_err(JsErrorBox::from_err)?;
    Ok(bytes(&fields, whole).collect::<Vec<u8>>().into())
}

/// Writes the status of an open file. Returns false if the descriptor is not a file of the system.
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
