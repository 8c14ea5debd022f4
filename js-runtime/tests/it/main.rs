//! Black-box tests of the runtime: real extensions in temporary folders, loaded through the real
//! bridge. There is one binary, because each that links V8 is large.

mod caching;
mod console;
mod errors;
mod heap;
mod hostile;
mod interop;
mod loading;
mod modules;
mod packages;
mod process;
mod support;
mod syntax;
