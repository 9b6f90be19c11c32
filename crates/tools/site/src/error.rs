//! Reasons why the site could not be started, with the fix.

use std::io;
use std::path::PathBuf;

use units::quoted;

/// Error that prevents or ends a site.
#[derive(Debug)]
pub enum SiteError {
    /// The address cannot be used.
    Listen { address: String, reason: io::Error },
    /// The address is invalid.
    Address { text: String, why: String },
    /// The socket's path is held by something else.
    UnixPath { path: PathBuf, why: &'static str },
    /// An option's value is not understood.
    Value { option: String, value: String, why: String },
    /// The option does not exist.
    Unknown { option: String },
    /// Options that contradict each other.
    Conflict(String),
    /// The threads could not be bound to these CPUs.
    Cpus { cpus: Vec<u32>, reason: io::Error },
    /// The access log could not be opened.
    Log { path: PathBuf, reason: io::Error },
    /// The system refused a thread, an epoll instance or a descriptor.
    Resources(io::Error),
    /// A thread of the site ended by a panic: a bug.
    Crashed,
}

impl std::fmt::Display for SiteError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SiteError::Listen { address, reason } => {
                write!(f, "cannot listen on {address}: {}", listen_advice(reason))
            }
            SiteError::Address { text, why } => write!(
                f,
                "{} is not an address to listen on: {why}; write one like 127.0.0.1:2020, [::1]:2020, \
                 localhost:0 (0 takes a free port) or unix:/tmp/site.sock",
                quoted(text)
            ),
            SiteError::UnixPath { path, why } => {
                write!(f, "cannot listen on unix:{}: {why}", path.display())
            }
            SiteError::Value { option, value, why } => {
                write!(f, "--{option} {}: {why}", quoted(value))
            }
            SiteError::Unknown { option } => {
                write!(f, "the site has no option --{option}; see `loadstone site --help`")
            }
            SiteError::Conflict(why) => f.write_str(why),
            SiteError::Cpus { cpus, reason } => write!(
                f,
                "cannot run on CPUs {cpus:?}: {reason}; give numbers of CPUs that this process may \
                 use (see `nproc` and `taskset -p`)"
            ),
            SiteError::Log { path, reason } => {
                write!(f, "cannot write the log {}: {reason}", path.display())
            }
            SiteError::Resources(reason) => write!(f, "the site cannot start: {reason}"),
            SiteError::Crashed => f.write_str("the site ended because of a bug; please report it"),
        }
    }
}

impl std::error::Error for SiteError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            SiteError::Listen { reason, .. }
            | SiteError::Cpus { reason, .. }
            | SiteError::Log { reason, .. }
            | SiteError::Resources(reason) => Some(reason),
            _ => None,
        }
    }
}

fn listen_advice(reason: &io::Error) -> String {
    match reason.kind() {
        io::ErrorKind::AddrInUse => {
            "the port is taken by another program; choose another, or 0 for a free one".to_owned()
        }
        io::ErrorKind::PermissionDenied => {
            "no permission; ports below 1024 need privileges, choose one above".to_owned()
        }
        io::ErrorKind::AddrNotAvailable => {
            "no interface of this machine has that address; try 127.0.0.1".to_owned()
        }
        io::ErrorKind::NotFound => "there is no such directory or host".to_owned(),
        _ => reason.to_string(),
    }
}
