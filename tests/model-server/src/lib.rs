//! A model that says what it was told to say: an HTTP server on loopback that
//! speaks Anthropic messages, OpenAI chat completions and OpenAI responses, so
//! that tests and benches drive the real program through its real front door.
//!
//! ```no_run
//! # async fn example() {
//! use model_server::{Answer, Api, ModelServer};
//! use serde_json::json;
//!
//! let server = ModelServer::start().await;
//! server.push(Answer::thinking("Look first.").then_tool("bash", json!({"command": "ls"})));
//! server.push(Answer::text("Two files."));
//! std::fs::write("models.json", server.models_json(Api::AnthropicMessages)).unwrap();
//! // … run the program, then:
//! assert_eq!(server.requests().len(), 2);
//! # }
//! ```
//!
//! An answer is described once and rendered in whichever API the request's path
//! asks for. Answers are given in the order they were pushed, one per request;
//! see [`ModelServer::repeat`] for what comes when there are no more.

mod answer;
mod api;
mod render;
mod server;

#[cfg(test)]
mod tests;

pub use answer::{Answer, Block, Stop};
pub use api::Api;
pub use server::{MODEL, ModelServer, PROVIDER, Received};
