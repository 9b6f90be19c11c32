//! Published results: plain types written and read as JSON, one module for each kind of result.
//! Every figure is computed here, once; every renderer reads the record. Layer 3: pure.
#![forbid(unsafe_code)]

pub mod check;
pub mod compare;
mod diagnosis;
pub mod document;
pub mod figures;
mod finished;
pub mod fit;
pub mod histogram;
pub mod history;
mod ids;
mod instant;
pub mod ramp;
pub mod run;
pub mod runs;
#[cfg(any(test, feature = "schema"))]
pub mod schema;
pub mod server;
pub mod specweb99;
pub mod survey;
pub mod torture;
pub mod words;

pub use diagnosis::{finding_ids, findings, ramp_findings};
pub use instant::timestamp;
