//! Status codes of close frames (RFC 6455 section 7.4).

/// The purpose of the connection is fulfilled.
pub const NORMAL: u16 = 1000;
/// The endpoint is going away.
pub const GOING_AWAY: u16 = 1001;
/// A protocol error.
pub const PROTOCOL_ERROR: u16 = 1002;
/// A close frame without a code. Never sent.
pub const NO_STATUS: u16 = 1005;
/// The connection ended without a close frame. Never sent.
pub const ABNORMAL: u16 = 1006;
/// A payload that does not match its type, such as text that is not UTF-8.
pub const INVALID_PAYLOAD: u16 = 1007;
/// A message above the endpoint's limit.
pub const TOO_BIG: u16 = 1009;
/// The server had an unexpected condition.
pub const INTERNAL_ERROR: u16 = 1011;
/// The server cannot accept the connection now.
pub const TRY_AGAIN_LATER: u16 = 1013;

/// Returns whether the code may be in a close frame: 1000 to 1003, 1007 to 1014, 3000 to 4999.
pub fn is_valid(code: u16) -> bool {
    matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999)
}

/// Returns the name of a registered code; `None` for others.
pub fn name(code: u16) -> Option<&'static str> {
    Some(match code {
        1000 => "normal closure",
        1001 => "going away",
        1002 => "protocol error",
        1003 => "unsupported data",
        1005 => "no status received",
        1006 => "abnormal closure",
        1007 => "invalid payload",
        1008 => "policy violation",
        1009 => "message too big",
        1010 => "extension missing",
        1011 => "internal error",
        1012 => "service restart",
        1013 => "try again later",
        1014 => "bad gateway",
        1015 => "TLS failure",
        _ => return None,
    })
}
