//! The agent: turns, tool calls, queues, retry. Knows neither providers, nor tools, nor
//! storage.

pub mod event;
pub mod permission;
pub mod queue;
pub mod retry;
pub mod run;
mod start_order;
mod tool_calls;

pub use pi_session::message::AgentMessage;
