//! The V8 startup snapshot of deno_runtime plus the extension `js_runtime`, and tables of what is
//! not in it. No file is read at run time.
//!
//! `RESIDUAL_LAZY_JS`, `RESIDUAL_LAZY_ESM`: text of the modules that were not evaluated while the
//! snapshot was made. `EXPORTS`: the names that our own modules export, by specifier, sorted. `ID`:
//! changes with any of these.

pub static SNAPSHOT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/SNAPSHOT.bin"));

include!(concat!(env!("OUT_DIR"), "/tables.rs"));
