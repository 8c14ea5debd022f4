//! Credentials of providers: stored keys and sign-ins, and values of secrets in configuration files.

pub mod oauth;
pub mod secret_value;
pub mod store;
