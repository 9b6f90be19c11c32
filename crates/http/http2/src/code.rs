//! Error codes (RFC 9113 section 7).

pub(crate) const NO_ERROR: u32 = 0;
pub(crate) const REFUSED_STREAM: u32 = 7;
pub(crate) const PROTOCOL_ERROR: u32 = 1;
pub(crate) const CANCEL: u32 = 8;

/// Returns the section of RFC 9113 that a peer violated, derived from the error code sent to it and
/// the library's reason.
pub fn section(code: u32, reason: &str) -> &'static str {
    match code {
        // a window that SETTINGS make too large, or that WINDOW_UPDATE does
        3 if reason.starts_with("SETTINGS") => return "6.5.2",
        3 => return "6.9",
        4 => return "6.5.3",
        6 => return "4.2",
        9 => return "4.3",
        _ => {}
    }
    let known = REASONS.iter().find(|(begins, _)| reason.starts_with(begins));
    match (known, code) {
        (Some((_, section)), _) => section,
        (None, 5) => "5.1",
        _ => "5.4.1",
    }
}

/// Prefixes of reasons, the longer before the shorter.
const REASONS: [(&str, &str); 22] = [
    ("SETTINGS expected", "3.4"),
    ("SETTINGS_ENABLE_CONNECT_PROTOCOL", "6.5"),
    ("SETTINGS", "6.5"),
    ("DATA: stream_id", "6.1"),
    ("DATA: stream not opened", "8.1"),
    ("DATA", "5.1"),
    ("request HEADERS: client received", "5.1.1"),
    ("HEADERS: stream closed", "5.1"),
    ("HEADERS", "6.2"),
    ("request HEADERS", "6.2"),
    ("response HEADERS", "6.2"),
    ("push response HEADERS", "8.4"),
    ("PRIORITY", "6.3"),
    ("RST_STREAM", "6.4"),
    ("PUSH_PROMISE", "6.6"),
    ("PING", "6.7"),
    ("GOAWAY", "6.8"),
    ("WINDOW_UP", "6.9"),
    ("CONTINUATION", "6.10"),
    ("unexpected non-CONTINUATION", "6.10"),
    ("Invalid HTTP header field", "8.2.1"),
    (MALFORMED, "8.1.1"),
];

/// Reason if the library reports PROTOCOL_ERROR without one: fields missing or misplaced, or
/// content that differs from its announced length.
pub(crate) const MALFORMED: &str = "a malformed response";
