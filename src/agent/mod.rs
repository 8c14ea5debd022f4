//! The agent: turns, tool calls, queues, retry. Knows neither which provider
//! answers, nor which tools there are, nor where anything is stored.

mod beginnings;
pub mod event;
pub mod queue;
pub mod retry;
pub mod run;
mod tool_calls;

pub use crate::session::message::AgentMessage;
