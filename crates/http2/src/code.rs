//! Error codes (RFC 9113 section 7).

const NAMES: [&str; 14] = [
    "NO_ERROR",
    "PROTOCOL_ERROR",
    "INTERNAL_ERROR",
    "FLOW_CONTROL_ERROR",
    "SETTINGS_TIMEOUT",
    "STREAM_CLOSED",
    "FRAME_SIZE_ERROR",
    "REFUSED_STREAM",
    "CANCEL",
    "COMPRESSION_ERROR",
    "CONNECT_ERROR",
    "ENHANCE_YOUR_CALM",
    "INADEQUATE_SECURITY",
    "HTTP_1_1_REQUIRED",
];

pub(crate) const NO_ERROR: u32 = 0;
pub(crate) const REFUSED_STREAM: u32 = 7;
pub(crate) const CANCEL: u32 = 8;

/// The code's name in the standard; one that it does not know as a number.
pub fn code_name(code: u32) -> String {
    NAMES.get(code as usize).map_or_else(|| format!("{code:#x}"), |name| (*name).to_owned())
}

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
