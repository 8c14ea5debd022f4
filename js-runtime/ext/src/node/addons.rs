//! Native addons that cannot work here. What a library lacks is looked for when it is
//! first called, and then the dynamic linker ends the whole program.

use std::ffi::CString;

use deno_core::op2;
use nix::libc;
use object::{Object as _, ObjectSymbol as _};

/// Names of Node's own API: of Node-API, libuv, V8 and Node's C++.
const OURS: [&str; 7] = [
    "napi_",
    "node_api_",
    "uv_",
    "_ZN2v8",
    "_ZNK2v8",
    "_ZN4node",
    "_ZNK4node",
];

/// The name of a function that the addon calls and that is not here; an empty text if
/// there is none. Whatever else is wrong with the file, loading it will say.
#[op2]
#[string]
pub(crate) fn op_addon_lacks(#[string] path: &str) -> String {
    let Ok(data) = std::fs::read(path) else {
        return String::new();
    };
    let Ok(file) = object::File::parse(&*data) else {
        return String::new();
    };
    let mut needed = file
        .dynamic_symbols()
        .filter(|symbol| symbol.is_undefined() && !symbol.is_weak())
        .filter_map(|symbol| symbol.name().ok())
        .filter(|name| OURS.iter().any(|ours| name.starts_with(ours)));
    let lacking = needed.find(|name| !is_here(name));
    lacking.unwrap_or_default().to_owned()
}

fn is_here(name: &str) -> bool {
    let Ok(name) = CString::new(name) else {
        return false;
    };
    // SAFETY: the name ends with a NUL, and what is found is not called.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    !found.is_null()
}
