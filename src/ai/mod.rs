//! Models and their wire APIs. This layer does not depend on the agent.

pub mod apis;
pub mod auth;
pub mod classify;
mod cost;
pub mod demo;
pub mod extension_providers;
mod failure;
pub mod http;
pub mod json;
pub mod message;
pub mod model;
pub mod models;
pub mod normalize;
pub mod stream;
#[cfg(test)]
mod testing;

pub use http::sse::fuzz_sse;
