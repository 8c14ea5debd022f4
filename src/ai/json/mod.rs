//! JSON that serde_json alone does not read or does not explain well: deep nesting, lone
//! surrogates, handwritten values, and errors for authors of JavaScript.

pub mod depth;
pub mod errors;
pub mod lenient;
pub mod surrogates;
