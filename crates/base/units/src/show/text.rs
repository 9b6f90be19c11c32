//! Makes text from peers and users printable.

/// Makes untrusted text safe for a terminal and a page: control characters, bidirectional controls
/// and invisible characters are written as escapes.
pub fn safe(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match is_plain(c) {
            true => out.push(c),
            false => out.extend(c.escape_default()),
        }
    }
    out
}

fn is_plain(c: char) -> bool {
    // ALM acts like the marks at 200e; tag characters encode invisible texts. Variation selectors
    // stay: names and emoji use them
    let hides = matches!(c,
        '\u{ad}'
        | '\u{61c}'
        | '\u{115f}'..='\u{1160}'
        | '\u{180e}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{3164}'
        | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}');
    !hides && !c.is_control()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bidirectional_and_invisible_characters_are_escaped() {
        for (text, shown) in [
            ("a b é ✓", "a b é ✓"),
            ("a\u{1b}[2J\n\u{9b}", "a\\u{1b}[2J\\n\\u{9b}"),
            ("a\u{202e}b", "a\\u{202e}b"),
            ("a\u{61c}b", "a\\u{61c}b"),
            ("a\u{ad}\u{180e}\u{3164}\u{fff9}", "a\\u{ad}\\u{180e}\\u{3164}\\u{fff9}"),
            ("a\u{e0041}b\u{e0101}\u{fe0f}", "a\\u{e0041}b\u{e0101}\u{fe0f}"),
        ] {
            assert_eq!(safe(text), shown);
        }
    }
}
