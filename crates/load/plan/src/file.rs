//! The plan file: a [`Plan`](crate::Plan) as TOML and back.
//!
//! The printed form names every field; in a file that is read, fields that equal `run`'s defaults
//! may be omitted. Quantities are strings in the options' grammar (`"10s"`, `"2000/s"`, `"64k"`)
//! or, except for times, plain numbers; `false` means no limit or absence. The types here belong to
//! the file, not the plan, so that the plan can change without breaking files of [`VERSION`].

mod keys;
mod read;
mod scalar;
mod scenarios;
mod shape;
mod write;

#[cfg(test)]
pub(crate) use keys::TABLES;
pub use read::{from_masked_toml, from_toml};
pub(crate) use scalar::Scalar;
pub use write::{identity, to_brief_toml, to_toml};

use crate::{AddressFamily, AddressOrder, Gaps, HttpVersion, Order, TlsVersions};

/// The version of the format; a file begins with it.
pub const VERSION: i64 = 1;

/// Treatment of secrets in a printed plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Secrets {
    /// All secrets are printed, so that the run can be repeated.
    Shown,
    /// Passwords, tokens and keys are replaced by a placeholder; [`from_toml`] refuses it.
    Masked,
}

/// Replacement for a secret.
pub(crate) const MASK: &str = "***masked***";

/// Returns whether a header's value must be masked: headers that carry logins, by name or by
/// convention. The same names indicate secrets in queries, forms and JSON.
pub fn is_secret_header(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace('_', "-");
    let known =
        ["proxy-authorization", "cookie", "auth", "x-auth", "sid", "sig", "pwd", "passwd", "jwt"];
    let hints = [
        "authorization",
        "token",
        "secret",
        "password",
        "passphrase",
        "credential",
        "api-key",
        "apikey",
        "access-key",
        "private-key",
        "session",
        "sessid",
        "csrf",
        "xsrf",
        "signature",
    ];
    // a number of tokens, as in `max_tokens`, is not a secret
    let counts =
        ["max", "min", "new", "total", "prompt", "completion", "input", "output", "cached"];
    let counted = name.strip_suffix("tokens").map(|of| of.trim_end_matches('-'));
    if counted.is_some_and(|of| counts.iter().any(|count| of.ends_with(count))) {
        return false;
    }
    known.contains(&name.as_str()) || hints.iter().any(|hint| name.contains(hint))
}

/// Returns the name of a value; the tables below name every value.
pub(crate) fn name_of<T: PartialEq>(names: &[(&'static str, T)], value: &T) -> String {
    let found = names.iter().find(|(_, known)| known == value);
    found.map_or("", |(name, _)| name).to_owned()
}

pub(crate) const ORDERS: [(&str, Order); 3] =
    [("in-order", Order::InOrder), ("random", Order::Random), ("once", Order::Once)];
pub(crate) const HTTP_VERSIONS: [(&str, HttpVersion); 5] = [
    ("1.0", HttpVersion::Http10),
    ("1.1", HttpVersion::Http11),
    ("2", HttpVersion::Http2),
    ("auto", HttpVersion::Auto),
    ("3", HttpVersion::Http3),
];
pub(crate) const FAMILIES: [(&str, AddressFamily); 3] =
    [("any", AddressFamily::Any), ("4", AddressFamily::V4), ("6", AddressFamily::V6)];
pub(crate) const ADDRESSES: [(&str, AddressOrder); 2] =
    [("in-turn", AddressOrder::InTurn), ("first", AddressOrder::FirstThatAnswers)];
pub(crate) const TLS_VERSIONS: [(&str, TlsVersions); 3] =
    [("any", TlsVersions::Any), ("1.2", TlsVersions::Tls12), ("1.3", TlsVersions::Tls13)];
pub(crate) const GAPS: [(&str, Gaps); 3] =
    [("constant", Gaps::Constant), ("poisson", Gaps::Poisson), ("uniform", Gaps::Uniform)];

#[cfg(test)]
mod tests;
