//! Models and the wire APIs they are reached by. Knows nothing of agents.

mod accumulate;
pub mod anthropic_messages;
pub mod api;
pub mod auth;
pub mod bedrock;
pub mod catalogue;
pub mod classify;
mod cost;
pub mod demo;
mod exchange;
mod failure;
pub mod file_lock;
mod frames;
pub mod google;
pub(crate) mod half_characters;
pub mod http;
pub mod message;
pub mod mistral;
pub mod model;
pub mod models_json;
pub mod oauth;
pub mod openai_completions;
pub mod openai_responses;
mod partial;
pub(crate) mod partial_json;
pub mod provided;
pub mod registry;
mod request_parts;
pub(crate) mod retold;
pub mod secret_value;
pub mod select;
mod sse;
pub use sse::fuzz_sse;
pub mod stream;
#[cfg(test)]
mod testing;
mod transform;
