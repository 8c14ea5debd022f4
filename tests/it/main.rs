//! Black-box tests: the real binary, driven through its real front doors,
//! against a scripted model on loopback. One binary for all of them, because
//! cargo links V8 into each.
//!
//! `support` is the vocabulary; a test should read like the story it tells.

mod aborts;
mod cli;
mod conversation;
mod examples;
mod extensions;
mod hostile;
mod javascript;
mod line_mode;
mod rpc_commands;
mod rpc_protocol;
mod search_tools;
mod sessions;
mod sessions_kill;
mod support;
mod tool_parity;
