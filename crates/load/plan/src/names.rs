//! Names of enumerated values in options and plan files.

use crate::{AddressFamily, AddressOrder, Gaps, HttpVersion, Order, TlsVersions};

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
