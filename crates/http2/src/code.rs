//! Error codes (RFC 9113 section 7).

pub(crate) const NO_ERROR: u32 = 0;
pub(crate) const REFUSED_STREAM: u32 = 7;
pub(crate) const CANCEL: u32 = 8;

/// Where RFC 9113 says what a peer did wrong, by the code with which it is told so.
pub fn section(code: u32) -> &'static str {
    match code {
        3 => "6.9",
        4 => "6.5.3",
        5 => "5.1",
        6 => "4.2",
        9 => "4.3",
        _ => "5.4.1",
    }
}
