//! Text in XML, for the files that build servers read.

use std::fmt::Write as _;

/// Text for element content and attribute values alike; what XML 1.0 cannot hold (section 2.2)
/// becomes U+FFFD.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            '\t' | '\n' | '\r' => write!(out, "&#{};", c as u32).expect("a String takes all text"),
            '\u{0}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}
