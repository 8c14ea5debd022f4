//! The ways to use a session: clients of one `AgentSession` each.

pub mod json;
pub mod line;
mod output;
pub mod print;
pub mod rpc;
pub mod session_list;
pub mod signals;
mod wire;
