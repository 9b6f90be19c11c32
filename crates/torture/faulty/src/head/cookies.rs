//! Cookies, which this server does not use: its reaction to odd requests, with a defect.

use super::{Defect, Defects, RequestHead};
use std::collections::BTreeSet;

/// Maximum total size of cookies, with the defect that fails on long ones.
const LONG: usize = 2 << 10;

/// Returns the status that refuses a request because of its cookies.
pub(super) fn refusal(head: &RequestHead, defects: &Defects) -> Option<u16> {
    let has = |defect| defects.contains(&defect);
    let own = head.fields.iter().filter(|(name, _)| name == "cookie");
    let fields: Vec<&[u8]> = own.map(|(_, value)| value.as_slice()).collect();
    if fields.is_empty() {
        return None;
    }
    let all = fields.concat();
    let cookies: Vec<&[u8]> = fields
        .iter()
        .flat_map(|field| field.split(|byte| *byte == b';'))
        .map(<[u8]>::trim_ascii)
        .collect();
    let name = |cookie: &[u8]| cookie.iter().position(|byte| *byte == b'=').filter(|at| *at > 0);
    let names: BTreeSet<&[u8]> =
        cookies.iter().map(|cookie| &cookie[..name(cookie).unwrap_or(0)]).collect();
    let quoted = |byte: &u8| matches!(byte, b'"' | b',' | b'\\' | 128..);
    let fails = has(Defect::FailsOnOddCookies) && cookies.iter().any(|one| name(one).is_none())
        || has(Defect::FailsOnCookieQuotes) && all.iter().any(quoted)
        || has(Defect::FailsOnTwoCookies) && (fields.len() > 1 || names.len() < cookies.len())
        || has(Defect::FailsOnLongCookies) && all.len() > LONG;
    match fails {
        true => Some(500),
        false => has(Defect::RefusesCookies).then_some(400),
    }
}
