//! Torture: what makes a web server crash, hang, leak or lock out well-behaved clients, proved with
//! bytes that anyone can send again. The catalogue of cases, the judgement of what came back, the
//! results and transcripts, and who may be tested on whose permission. Layer 2: data and pure
//! functions; `dialogue` has the conversations, `campaign` carries the cases out.
#![forbid(unsafe_code)]

pub mod beside;
pub mod case;
pub mod catalogue;
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
