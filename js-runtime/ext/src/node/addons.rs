//! Detects native addons that need functions which do not exist here. The dynamic linker looks a
//! function up when it is first called, and ends the program if it is missing.

use std::ffi::CString;

use deno_core::op2;
use nix::libc;
use object::{Object as _, ObjectSymbol as _};

/// Prefixes of Node's own functions: of Node-API, libuv, V8 and Node's C++.
const NODE_SYMBOL_PREFIXES: [&str; 7] = [
    "napi_",
    "node_api_",
    "uv_",
    "_ZN2v8",
    "_ZNK2v8",
    "_ZN4node",
    "_ZNK4node",
];

/// Returns the name of a function that the addon calls and that does not exist; an empty text if
/// there is none. Other errors of the file are reported when it is loaded.
#[op2]
#[string]
pub(crate) fn op_addon_lacks(#[string] path: &str) -> String {
    let Ok(data) = std::fs::read(path) else {
        return String::new();
    };
    let Ok(file) = object::File::parse(&*data) else {
        return String::new();
    };
    let mut missing = file
        .dynamic_symbols()
        .filter(|symbol| symbol.is_undefined() && !symbol.is_weak())
        .filter_map(|symbol| symbol.name().ok())
        .filter(|name| {
            NODE_SYMBOL_PREFIXES
                .iter()
                .any(|ours| name.starts_with(ours))
        });
    let missing_name = missing.find(|name| !is_defined(name));
    missing_name.unwrap_or_default().to_owned()
}

fn is_defined(name: &str) -> bool {
    let Ok(name) = CString::new(name) else {
        return false;
    };
    // SAFETY: the name ends with a NUL, and the function is not called.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    !found.is_null()
}
