//! Violations by a server that end the connection.

use sample::http3_code_name;
use std::fmt;

/// A connection error (RFC 9114 section 8): its code, the violation, and its section in the
/// standard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Violation {
    pub code: u64,
    pub(crate) what: &'static str,
    pub(crate) section: &'static str,
}

impl Violation {
    pub(crate) const fn new(code: u64, what: &'static str, section: &'static str) -> Violation {
        Violation { code, what, section }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Violation { code, what, section } = self;
        write!(f, "{}: {what} ({section})", http3_code_name(*code))
    }
}
