//! Rules about tool calls, questions to the user, and what must not be seen of secrets.

mod approval;
mod auth_file;
mod secrets;
mod trust;
