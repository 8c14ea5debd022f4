//! Simple functions of libuv that Node exports and deno_napi lacks. Native addons call them; the
//! linker exports them by `napi_symbols_*.def`.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use deno_core::uv_compat::uv_error_message;
use nix::libc;

/// Value of `process.versions.uv`.
const VERSION: (c_uint, &CStr) = (1 << 16 | 52 << 8 | 1, c"1.52.1");

#[repr(C)]
struct Buffer {
    base: *mut c_char,
    length: usize,
}

/// Returns libuv's name of a system error.
macro_rules! names {
    ($error:expr, $($name:ident)*) => {
        match $error {
            $(error if error == libc::$name => concat!(stringify!($name), "\0"),)*
            _ => "",
        }
    };
}

fn name(error: c_int) -> Option<&'static CStr> {
    match error {
        -4095 => return Some(c"EOF"),
        -4094 => return Some(c"UNKNOWN"),
        _ => {}
    }
    let name = names!(error.checked_neg()?,
        E2BIG EACCES EADDRINUSE EADDRNOTAVAIL EAFNOSUPPORT EAGAIN EALREADY EBADF EBUSY
        ECANCELED ECONNABORTED ECONNREFUSED ECONNRESET EDESTADDRREQ EEXIST EFAULT EFBIG
        EHOSTDOWN EHOSTUNREACH EILSEQ EINTR EINVAL EIO EISCONN EISDIR ELOOP EMFILE EMLINK
        EMSGSIZE ENAMETOOLONG ENETDOWN ENETUNREACH ENFILE ENOBUFS ENODATA ENODEV ENOENT
        ENOEXEC ENOMEM ENOPROTOOPT ENOSPC ENOSYS ENOTCONN ENOTDIR ENOTEMPTY ENOTSOCK ENOTSUP
        ENOTTY ENXIO EOVERFLOW EPERM EPIPE EPROTO EPROTONOSUPPORT EPROTOTYPE ERANGE EROFS
        ESHUTDOWN ESOCKTNOSUPPORT ESPIPE ESRCH ETIMEDOUT ETXTBSY EXDEV);
    let name = CStr::from_bytes_with_nul(name.as_bytes()).ok()?;
    (!name.is_empty()).then_some(name)
}

const UNKNOWN: &CStr = c"Unknown system error";

/// Copies as much of `text` as fits into the buffer.
unsafe fn copy(text: &CStr, buffer: *mut c_char, length: usize) -> *mut c_char {
    if !buffer.is_null() && length > 0 {
        let size = text.count_bytes().min(length - 1);
        // SAFETY: the caller has room for `length` bytes there.
        unsafe {
            buffer.copy_from_nonoverlapping(text.as_ptr(), size);
            *buffer.add(size) = 0;
        }
    }
    buffer
}

#[unsafe(no_mangle)]
extern "C" fn uv_version() -> c_uint {
    VERSION.0
}

#[unsafe(no_mangle)]
extern "C" fn uv_version_string() -> *const c_char {
    VERSION.1.as_ptr()
}

#[unsafe(no_mangle)]
extern "C" fn uv_err_name(error: c_int) -> *const c_char {
    name(error).unwrap_or(UNKNOWN).as_ptr()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_err_name_r(
    error: c_int,
    buffer: *mut c_char,
    length: usize,
) -> *mut c_char {
    // SAFETY: the caller states the length of its buffer.
    unsafe { copy(name(error).unwrap_or(UNKNOWN), buffer, length) }
}

/// Returns the text of deno_napi's `uv_strerror`.
#[unsafe(no_mangle)]
unsafe extern "C" fn uv_strerror_r(
    error: c_int,
    buffer: *mut c_char,
    length: usize,
) -> *mut c_char {
    // SAFETY: the caller states the length of its buffer.
    unsafe { copy(uv_error_message(error).unwrap_or(UNKNOWN), buffer, length) }
}

#[unsafe(no_mangle)]
extern "C" fn uv_translate_sys_error(error: c_int) -> c_int {
    match error {
        ..=0 => error,
        _ => -error,
    }
}

/// Returns the descriptor: a handle differs only on Windows.
#[unsafe(no_mangle)]
extern "C" fn uv_get_osfhandle(descriptor: c_int) -> c_int {
    descriptor
}

#[unsafe(no_mangle)]
extern "C" fn uv_open_osfhandle(handle: c_int) -> c_int {
    handle
}

#[unsafe(no_mangle)]
extern "C" fn uv_buf_init(base: *mut c_char, length: c_uint) -> Buffer {
    Buffer {
        base,
        length: length as usize,
    }
}

#[unsafe(no_mangle)]
extern "C" fn uv_os_getppid() -> c_int {
    std::os::unix::process::parent_id().cast_signed()
}

#[unsafe(no_mangle)]
extern "C" fn uv_sleep(milliseconds: c_uint) {
    std::thread::sleep(Duration::from_millis(milliseconds.into()));
}

/// Returns milliseconds from an arbitrary start.
#[unsafe(no_mangle)]
extern "C" fn uv_now(_loop: *const c_void) -> u64 {
    static BEGIN: OnceLock<Instant> = OnceLock::new();
    let passed = BEGIN.get_or_init(Instant::now).elapsed();
    u64::try_from(passed.as_millis()).unwrap_or(u64::MAX)
}

/// Does nothing, because `uv_now` caches no time.
#[unsafe(no_mangle)]
extern "C" fn uv_update_time(_loop: *const c_void) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_the_names_of_libuv() {
        let named = [-libc::ENOENT, -libc::EAGAIN, -4095, -9999, 0, c_int::MIN];
        let names = [
            Some(c"ENOENT"),
            Some(c"EAGAIN"),
            Some(c"EOF"),
            None,
            None,
            None,
        ];
        assert_eq!(named.map(name), names);
    }

    #[test]
    fn a_name_fits_the_room_that_there_is() {
        let mut buffer = [1; 8];
        // SAFETY: the buffer is longer than the stated length.
        unsafe { uv_err_name_r(-libc::ENOENT, buffer.as_mut_ptr(), 4) };
        assert_eq!(
            buffer,
            [b'E', b'N', b'O', 0, 1, 1, 1, 1].map(|byte: u8| byte.cast_signed() as c_char)
        );
    }
}
