//! Black-box tests: the real binary, driven through its public interfaces, against a scripted model
//! on loopback. All tests are in one binary, because cargo links V8 into each.
//!
//! `support` has the common helpers; a test should read like the story it tells.

#![expect(
    clippy::print_stdout,
    reason = "long comparisons print their figures, shown with --no-capture"
)]

mod cli;
mod compaction;
mod conformance;
mod examples;
mod export;
mod extensions;
mod hostile;
mod layers;
mod line;
mod node;
mod packages;
mod permissions;
mod prompts;
mod providers;
mod rpc;
mod sessions;
mod support;
mod tools;
