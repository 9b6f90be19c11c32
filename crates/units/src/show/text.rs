//! Making printable what peers sent and users typed.

/// Text that may hold what somebody else wrote, fit for a terminal and a page: control characters and those that turn
/// the direction of writing or cannot be seen are written as escapes.
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
    // ALM turns like the marks at 200e; tags and variation selectors spell out whole texts that nobody sees
    let hides = matches!(c,
        '\u{ad}'
        | '\u{34f}'
        | '\u{61c}'
        | '\u{115f}'..='\u{1160}'
        | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{3164}'
        // FE0F stays: it makes pictures of signs
        | '\u{fe00}'..='\u{fe0e}'
        | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e0fff}');
    !hides && !c.is_control()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_turns_or_hides_text_is_an_escape() {
        for (text, shown) in [
            ("a b é ✓", "a b é ✓"),
            ("a\u{1b}[2J\n\u{9b}", "a\\u{1b}[2J\\n\\u{9b}"),
            ("a\u{202e}b", "a\\u{202e}b"),
            ("a\u{61c}b", "a\\u{61c}b"),
            ("a\u{ad}\u{180e}\u{fff9}\u{fe01}", "a\\u{ad}\\u{180e}\\u{fff9}\\u{fe01}"),
            ("a\u{e0041}b\u{e0101}", "a\\u{e0041}b\\u{e0101}"),
        ] {
            assert_eq!(safe(text), shown);
        }
    }
}
