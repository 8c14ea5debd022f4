//! pi: a coding agent that its users script in TypeScript.
//!
//! Each folder of `src` is a layer of the architecture (docs/architecture.md) and a crate, which uses
//! only crates below it. This crate is the top: the command line.
//!
//! | layer | content |
//! |---|---|
//! | `cli` | arguments, choice of mode, exit codes |
//! | `modes` | print, JSON, RPC and line mode: clients of one session |
//! | `app` | `AgentSession`, which ties everything below together |
//! | `export` | sessions as HTML pages |
//! | `extensions` | the Rust half of the bridge to JavaScript |
//! | `agent` | the loop, events, queues, retry |
//! | `compaction` | replaces the older messages of a long conversation by a summary |
//! | `session` | the session file and its tree |
//! | `tools` | read, write, edit, bash, grep, find, ls |
//! | `resources` | settings and other files of `~/.pi/agent` and `.pi` |
//! | `ai` | models and their wire APIs |
//! | `base` | regular files, process trees, clocks: helpers of all layers |

pub mod cli;
#[doc(hidden)]
pub mod fuzz;
