//! Torture: finds inputs that make a web server crash, hang, leak or lock out well-behaved clients,
//! with reproducible bytes as proof. Contains the case catalog, the judgment of responses, results
//! and transcripts, and the rules of permission. Layer 2: data and pure functions; `dialogue` has
//! the conversations, and `campaign` runs the cases.
#![forbid(unsafe_code)]

pub mod beside;
pub mod case;
pub mod catalogue;
pub mod cause;
pub mod chain;
pub mod cost;
pub mod framing;
pub mod fuzz;
pub mod judge;
pub mod lint;
pub mod oddities;
pub mod record;
pub mod result;
pub mod safety;
pub mod survey;
