//! Black-box tests: the real binary, driven through its real front doors,
//! against a scripted model on loopback. One binary for all of them, because
//! cargo links V8 into each.
//!
//! `support` is the vocabulary; a test should read like the story it tells.

mod cli;
mod compaction;
mod conformance;
mod examples;
mod export;
mod extensions;
mod hostile;
mod line;
mod node;
mod packages;
mod prompts;
mod providers;
mod rpc;
mod sessions;
mod support;
mod tools;
