//! Bytes as people can read them, and as a line that a shell sends again.

use std::fmt::Write;
use url::Url;

/// Bytes of a shell line at most; longer evidence is in the JSON.
const LINE_MAX: usize = 2_000;

/// Bytes with what cannot be printed as escapes, cut in the middle.
pub(crate) fn shown(bytes: &[u8], most: usize) -> String {
    if bytes.len() <= most {
        return bytes.escape_ascii().to_string();
    }
    let half = most / 2;
    let (start, end) = (&bytes[..half], &bytes[bytes.len() - half..]);
    format!(
        "{} ... {} bytes ... {}",
        start.escape_ascii(),
        bytes.len() - 2 * half,
        end.escape_ascii()
    )
}

/// What came back, cut where another response begins: at a status line (RFC 9112 section 4). Bytes
/// that are no response stay with what they follow.
pub(crate) fn responses(received: &[u8]) -> Vec<&[u8]> {
    let begins = |at: &usize| status_line(&received[*at..]);
    let mut starts: Vec<usize> = (1..received.len()).filter(begins).collect();
    starts.insert(0, 0);
    starts.push(received.len());
    starts.windows(2).map(|ends| &received[ends[0]..ends[1]]).collect()
}

/// `HTTP/1.1 200 `
fn status_line(bytes: &[u8]) -> bool {
    let Some(rest) = bytes.strip_prefix(b"HTTP/1.") else { return false };
    matches!(rest, [b'0' | b'1', b' ', status @ ..] if status.len() >= 3
        && status[..3].iter().all(u8::is_ascii_digit)
        && status.get(3).is_none_or(|next| b" \r\n".contains(next)))
}

/// As [`shown`], with a line feed of ours after each that was sent.
pub(crate) fn lines(bytes: &[u8], most: usize) -> String {
    let (start, left_out, end) = match bytes.len() <= most {
        true => (bytes, 0, &[][..]),
        false => (&bytes[..most / 2], bytes.len() - most / 2 * 2, &bytes[bytes.len() - most / 2..]),
    };
    let broken = |bytes: &[u8]| -> String {
        let line = |line: &[u8]| {
            let feed = if line.ends_with(b"\n") { "\n" } else { "" };
            format!("{}{feed}", line.escape_ascii())
        };
        bytes.split_inclusive(|byte| *byte == b'\n').map(line).collect()
    };
    let middle = match left_out {
        0 => String::new(),
        n => format!("\n... {n} bytes ...\n"),
    };
    (broken(start) + &middle + &broken(end)).trim_end().to_owned()
}

/// A line that sends these bytes without us; `None` where there are none, and where it would be too
/// long to copy.
pub(crate) fn shell_line(target: &str, bytes: &[u8]) -> Option<String> {
    if bytes.is_empty() || bytes.len() > LINE_MAX {
        return None;
    }
    let url = Url::parse(target).ok()?;
    let host = url.host_str()?.trim_matches(['[', ']']).to_owned();
    let port = url.port_or_known_default()?;
    let to = match url.scheme() {
        "https" => format!("openssl s_client -quiet -connect {host}:{port}"),
        _ => format!("nc {host} {port}"),
    };
    Some(format!("printf '{}' | {to}", printf_quoted(bytes)))
}

/// A word of a shell line, in quotes where it needs them.
pub(crate) fn word(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-:".contains(&byte);
    if !text.is_empty() && text.bytes().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// For printf(1) between single quotes: octal escapes, which every shell knows.
pub(super) fn printf_quoted(bytes: &[u8]) -> String {
    let mut out = String::new();
    for byte in bytes {
        match byte {
            b'\r' => out.push_str("\\r"),
            b'\n' => out.push_str("\\n"),
            b'%' => out.push_str("%%"),
            b'\\' => out.push_str("\\\\"),
            b' '..=b'~' if *byte != b'\'' => out.push(char::from(*byte)),
            other => write!(out, "\\{other:03o}").expect("a String takes all text"),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_are_told_apart() {
        let first = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 15\r\n\r\nGET / HTTP/1.1\n";
        let second = b"HTTP/1.0 200\r\n\r\nHTTP/1.1 is no status line";
        let both = [&first[..], second].concat();
        assert_eq!(responses(&both), [&first[..], second]);
        assert_eq!(responses(first), [&first[..]]);
        assert_eq!(responses(b"\x15\x03\x03"), [b"\x15\x03\x03"]);
        assert_eq!(responses(b""), [b""]);
        assert_eq!(responses(b"HTTP/1.").len(), 1);
    }

    #[test]
    fn a_shell_sends_the_same_bytes() {
        let bytes: Vec<u8> = (0..=255).collect();
        let line = shell_line("http://127.0.0.1:80/", &bytes).unwrap();
        let command = line.split(" | ").next().unwrap();
        // what stands behind the bar may be in the bytes too
        let end = line.rfind(" | nc").unwrap();
        assert!(line.ends_with("nc 127.0.0.1 80") && end >= command.len());
        let out = std::process::Command::new("sh").arg("-c").arg(&line[..end]).output().unwrap();
        assert_eq!(out.stdout, bytes);
    }

    #[test]
    fn long_bytes_are_cut_in_the_middle() {
        assert_eq!(shown(b"abc\r\n\0", 10), r"abc\r\n\x00");
        assert_eq!(lines(b"a\r\n\r\nb", 10), "a\\r\\n\n\\r\\n\nb");
        assert_eq!(lines(b"0123456789", 4), "01\n... 6 bytes ...\n89");
        assert_eq!(shown(b"0123456789", 4), "01 ... 6 bytes ... 89");
        assert_eq!(shell_line("http://h/", &[b'a'; 3_000]), None);
    }
}
