//! pi: a coding agent that its users script in TypeScript.
//!
//! The folders are the layers of the architecture (docs/architecture.md): each uses only
//! those below it.
//!
//! | layer | content |
//! |---|---|
//! | [`cli`] | arguments, choice of mode, exit codes |
//! | [`modes`] | print, JSON, RPC and line mode: clients of one session |
//! | [`app`] | `AgentSession`, which ties everything below together |
//! | [`export`] | sessions as HTML pages |
//! | [`extensions`] | the Rust half of the bridge to JavaScript |
//! | [`agent`] | the loop, events, queues, retry |
//! | [`compaction`] | replaces the older messages of a long conversation by a summary |
//! | [`session`] | the session file and its tree |
//! | [`tools`] | read, write, edit, bash, grep, find, ls |
//! | [`resources`] | settings and other files of `~/.pi/agent` and `.pi` |
//! | [`ai`] | models and their wire APIs |

pub use pi_agent as agent;
pub use pi_ai as ai;
pub mod app;
pub mod cli;
pub use pi_compaction as compaction;
pub mod export;
pub use pi_extensions as extensions;
#[doc(hidden)]
pub mod fuzz;
pub mod modes;
pub use pi_resources as resources;
pub use pi_session as session;
pub use pi_tools as tools;
