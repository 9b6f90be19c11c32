//! Results as they are published: plain types that are written and read as JSON, one module for each
//! kind of result. Every figure is computed here, once; whoever shows a result reads its record.
//! Layer 3: pure.
#![forbid(unsafe_code)]

pub mod check;
pub mod document;
mod instant;
pub mod torture;

pub use instant::timestamp;
