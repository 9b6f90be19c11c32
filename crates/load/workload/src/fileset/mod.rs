//! The files of a server and the requests for them, modeled on published work: SURGE, SPECweb99,
//! WebStone and WebBench. Everything is a function of a seed: sizes, contents, popularity, order.
//! Layer 2: pure; writes no file and sends no request.

mod content;
pub mod fit;
mod law;
mod matching;
mod sequence;
mod set;
mod spec;
pub mod specweb99;
pub mod specweb99_files;
pub mod surge;
pub mod webbench;
pub mod webstone;

pub use content::FileContent;
pub use law::Law;
pub use matching::{matched, zipf_counts};
pub use sequence::{
    Matching, REQUESTS_MAX, Sequence, SequenceError, SequenceOptions, SequenceStep, sequence,
};
pub use set::{File, FileSet};
pub use spec::{NAMES, Spec, SpecError};
