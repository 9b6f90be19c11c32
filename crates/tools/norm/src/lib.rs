//! Swerve's test site: every behavior known, configured by files, with the fourteen timing points
//! of its chapter. Layer 4.
//!
//! A connection (module `connection`) reads a request, spools a long body (`spool`), finds the node
//! for its path (`route`) and calls it: a directory of files (`files`, guarded by `auth`), a CGI
//! script (`cgi`), an embedded interpreter (`interpreter`) or a built-in handler (`builtin`).
#![forbid(unsafe_code)]

mod abort;
mod auth;
mod breaks;
mod builtin;
mod cgi;
mod connection;
mod exchange;
mod files;
#[cfg(feature = "lua")]
mod interpreter;
mod log;
mod names;
mod node;
mod odd;
mod outgoing;
mod refusal;
mod route;
mod server;
mod settings;
mod shared;
mod spool;
mod stream;
mod timing;
pub mod tree;
mod visit;

pub use breaks::{BREAKS, Break, Breaks};
pub use log::Level;
pub use server::{NormServer, Served, StartError};
pub use settings::{
    BuiltIn, CLIENTS_MAX, DirectorySettings, LogFile, NodeKind, NodeSettings, NormSettings,
    SettingsError, THREADS_MAX,
};
