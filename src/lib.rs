//! pi: a coding agent that its users script in TypeScript.
//!
//! The folders are the architecture (docs/architecture.md): each room uses only
//! those below it.
//!
//! | room | what lives there |
//! |---|---|
//! | [`cli`] | arguments, choice of mode, exit codes |
//! | [`modes`] | print, JSON, RPC and line mode: clients of one session |
//! | [`app`] | `AgentSession`, which ties everything below together |
//! | [`export`] | sessions as pages for people |
//! | [`extensions`] | the Rust half of the bridge to JavaScript |
//! | [`agent`] | the loop, events, queues, retry |
//! | [`compaction`] | what is kept and what is summarised of a long conversation |
//! | [`session`] | the session file and its tree |
//! | [`tools`] | read, write, edit, bash, grep, find, ls |
//! | [`resources`] | what users keep in `~/.pi/agent` and `.pi` |
//! | [`ai`] | models and the wire APIs they are reached by |

pub use pi_agent as agent;
pub use pi_ai as ai;
pub mod app;
pub mod cli;
pub use pi_compaction as compaction;
pub mod export;
pub mod extensions;
#[doc(hidden)]
pub mod fuzz;
pub mod modes;
pub use pi_resources as resources;
pub use pi_session as session;
pub use pi_tools as tools;
