//! Bytes in readable form, and as a shell command that sends them again.

use record::torture::{CaseRecord, PauseRecord, TortureRecord};
use std::fmt::Write;
use torture::case::{HTTP2, HTTP3};
use url::Url;

/// Maximum length of a shell line; longer evidence is in the JSON.
const LINE_MAX: usize = 2_000;
/// Minimum number of repeated bytes that a separate command generates ...
const RUN_MIN: usize = 256;
/// ... and the repeated part is no longer than this.
const PERIOD_MAX: usize = 1_024;
/// The end of a line may look like the start of a repetition: the next line is searched for within
/// this distance.
const LINE_AHEAD: usize = 64;
/// Minimum number of repetitions for a loop; fewer are printed in full.
const TIMES_MIN: usize = 4;

/// Returns bytes with escapes, truncated in the middle.
pub(crate) fn escape_bytes(bytes: &[u8], most: usize) -> String {
    if let Some(pieces) = dialogue::http3::describe_pieces(bytes, |payload| plain(payload, most)) {
        return truncate(&pieces, most);
    }
    plain(bytes, most)
}

/// Truncates a description of too many pieces of streams.
fn truncate(pieces: &str, most: usize) -> String {
    let end = pieces.char_indices().nth(2 * most).map(|(at, _)| at);
    end.map_or_else(|| pieces.to_owned(), |end| format!("{} ...", &pieces[..end]))
}

fn plain(bytes: &[u8], most: usize) -> String {
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

/// Splits received data at the start of each response: a status line (RFC 9112 section 4). Other
/// bytes stay with the response that follows.
pub(crate) fn responses(received: &[u8]) -> Vec<&[u8]> {
    let begins = |at: &usize| status_line(&received[*at..]);
    let mut starts: Vec<usize> = (1..received.len()).filter(begins).collect();
    starts.insert(0, 0);
    starts.push(received.len());
    starts.windows(2).map(|ends| &received[ends[0]..ends[1]]).collect()
}

/// Returns whether the bytes begin with a status line, such as `HTTP/1.1 200 `.
fn status_line(bytes: &[u8]) -> bool {
    let Some(rest) = bytes.strip_prefix(b"HTTP/1.") else { return false };
    matches!(rest, [b'0' | b'1', b' ', status @ ..] if status.len() >= 3
        && status[..3].iter().all(u8::is_ascii_digit)
        && status.get(3).is_none_or(|next| b" \r\n".contains(next)))
}

/// Like [`escape_bytes`], with an additional line feed after each sent line.
pub(crate) fn lines(bytes: &[u8], most: usize) -> String {
    if let Some(pieces) = dialogue::http3::describe_pieces(bytes, |payload| plain(payload, most)) {
        return truncate(&pieces.replace(" | ", "\n"), most);
    }
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

/// Returns a command that sends these bytes without Loadstone, with their pauses. `None` without
/// bytes, if the line would be too long to copy, or for actions that no shell tool can do.
/// `in_frames`: they are HTTP/2, which TLS must negotiate.
pub(crate) fn shell_line(
    target: &str,
    bytes: &[u8],
    pauses: &[PauseRecord],
    in_frames: bool,
) -> Option<String> {
    // no shell tool supports QUIC
    if bytes.is_empty() || dialogue::http3::describe_pieces(bytes, |_| String::new()).is_some() {
        return None;
    }
    if pauses.iter().any(|pause| pause.other_action) {
        return None;
    }
    let (mut commands, mut from) = (Vec::new(), 0);
    let half_closes = pauses.iter().any(|pause| pause.half_close);
    for pause in pauses.iter().filter(|pause| !pause.half_close) {
        let at = usize::try_from(pause.after_bytes).ok()?;
        commands.extend(printing(bytes.get(from..at)?, usize::MAX, LINE_MAX)?);
        commands.push(format!("sleep {}", pause.for_s));
        from = at;
    }
    commands.extend(printing(bytes.get(from..)?, usize::MAX, LINE_MAX)?);
    if commands.iter().map(String::len).sum::<usize>() > LINE_MAX {
        return None;
    }
    let url = Url::parse(target).ok()?;
    let host = url.host_str()?.trim_matches(['[', ']']).to_owned();
    let usual = if url.scheme() == "grpcs" { 443 } else { 80 };
    let port = url.port_or_known_default().unwrap_or(usual);
    let to = match url.scheme() {
        // s_client closes both directions, or none, when its input ends
        "https" | "grpcs" if half_closes => return None,
        "https" | "grpcs" => {
            let alpn = if in_frames { "-alpn h2 " } else { "" };
            format!("openssl s_client -quiet {alpn}-connect {host}:{port}")
        }
        // without -N, nc sends no FIN after its input ends
        _ if half_closes => format!("nc -N {host} {port}"),
        _ => format!("nc {host} {port}"),
    };
    Some(match &commands[..] {
        [one] => format!("{one} | {to}"),
        all => format!("{{ {}; }} | {to}", all.join("; ")),
    })
}

/// Returns a command that runs this case again: a shell cannot send cases that need several
/// connections, raw segments or QUIC.
pub(crate) fn case_line(record: &TortureRecord, case: &CaseRecord) -> String {
    let post = record.post.as_ref().map(|path| format!(" --post {}", word(path)));
    let seed = if record.seed == 1 { String::new() } else { format!(" --seed {}", record.seed) };
    let post = post.unwrap_or_default();
    let more: String = record.options.iter().map(|option| format!(" {}", word(option))).collect();
    let version = match case.group() {
        HTTP2 => " --http 2",
        HTTP3 => " --http 3",
        _ => "",
    };
    let target = word(&record.target);
    format!("loadstone torture --only {}{version}{post}{more}{seed} {target}", case.id)
}

/// Returns commands that print these bytes, each of at most `piece` bytes without repetition;
/// `None` if they exceed `most` characters in total.
pub(super) fn printing(bytes: &[u8], piece: usize, most: usize) -> Option<Vec<String>> {
    let (mut commands, mut length) = (Vec::new(), 0);
    let mut rest = bytes;
    while !rest.is_empty() {
        let (command, taken) = match run(rest) {
            Some((unit, times)) => (repeating(unit, times), unit.len() * times),
            None => {
                let taken = literal(rest, piece, most);
                (format!("printf '{}'", printf_quoted(&rest[..taken])), taken)
            }
        };
        length += command.len();
        if length > most {
            return None;
        }
        commands.push(command);
        rest = &rest[taken..];
    }
    Some(commands)
}

/// Returns the number of bytes before the next repetition, up to `piece`.
fn literal(bytes: &[u8], piece: usize, most: usize) -> usize {
    // each byte is at least one character of the command
    let end = bytes.len().min(piece).min(most.saturating_add(1));
    let Some(at) = (1..end).find(|at| run(&bytes[*at..]).is_some()) else { return end };
    // whole lines repeat, rather than the end of one with the start of the next
    let lines = |at: &usize| bytes[at - 1] == b'\n' && run(&bytes[*at..]).is_some();
    (at..end.min(at + LINE_AHEAD)).find(lines).unwrap_or(at)
}

/// Returns the bytes repeated at the start, and how often.
fn run(bytes: &[u8]) -> Option<(&[u8], usize)> {
    let periods = 1..=PERIOD_MAX.min(bytes.len() / TIMES_MIN);
    periods.into_iter().find_map(|period| {
        let same = bytes.iter().zip(&bytes[period..]).take_while(|(one, next)| one == next).count();
        let times = same / period + 1;
        let pays = times >= TIMES_MIN && times * period >= RUN_MIN;
        pays.then(|| (&bytes[..period], times))
    })
}

fn repeating(unit: &[u8], times: usize) -> String {
    match unit {
        [byte] => format!("head -c {times} /dev/zero | tr '\\000' '\\{byte:03o}'"),
        unit => {
            format!("for i in $(seq {times}); do printf '{}'; done", printf_quoted(unit))
        }
    }
}

/// Returns text as one word of a shell command, quoted if needed.
pub(crate) fn word(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-:".contains(&byte);
    if !text.is_empty() && text.bytes().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// Quotes for printf(1) in single quotes: octal escapes, which every shell supports.
pub(super) fn printf_quoted(bytes: &[u8]) -> String {
    let mut out = String::new();
    for byte in bytes {
        match byte {
            b'\r' => out.push_str("\\r"),
            b'\n' => out.push_str("\\n"),
            b'%' => out.push_str("%%"),
            b'\\' => out.push_str("\\\\"),
            b' '..=b'~' if *byte != b'\'' => out.push(char::from(*byte)),
            other => write!(out, "\\{other:03o}").expect("writing to a String cannot fail"),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_are_distinguished() {
        let first = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 15\r\n\r\nGET / HTTP/1.1\n";
        let second = b"HTTP/1.0 200\r\n\r\nHTTP/1.1 is not a status line";
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
        let line = shell_line("http://127.0.0.1:80/", &bytes, &[], false).unwrap();
        let command = line.split(" | ").next().unwrap();
        // the bytes may contain what follows the bar
        let end = line.rfind(" | nc").unwrap();
        assert!(line.ends_with("nc 127.0.0.1 80") && end >= command.len());
        let out = std::process::Command::new("sh").arg("-c").arg(&line[..end]).output().unwrap();
        assert_eq!(out.stdout, bytes);
    }

    #[test]
    fn a_shell_keeps_the_pauses() {
        let pause = |after_bytes| PauseRecord {
            after_bytes,
            for_s: 0.3,
            half_close: false,
            other_action: false,
        };
        let pauses = [pause(5)];
        let line = shell_line("http://h/", b"GET /\n", &pauses, false).unwrap();
        assert_eq!(line, r"{ printf 'GET /'; sleep 0.3; printf '\n'; } | nc h 80");
        assert_eq!(shell_line("http://h/", b"GET /\n", &[pause(50)], false), None);
        let ends = [PauseRecord { half_close: true, ..pause(6) }];
        let line = shell_line("http://h/", b"GET /\n", &ends, false).unwrap();
        assert_eq!(line, r"printf 'GET /\n' | nc -N h 80");
        assert_eq!(shell_line("https://h/", b"GET /\n", &ends, false), None);
        let resets = [PauseRecord { other_action: true, ..pause(6) }];
        assert_eq!(shell_line("http://h/", b"GET /\n", &resets, false), None);
        let line = shell_line("https://h/", b"PRI", &[], true).unwrap();
        assert_eq!(line, "printf 'PRI' | openssl s_client -quiet -alpn h2 -connect h:443");
    }

    #[test]
    fn repeated_bytes_are_generated_by_the_shell() {
        let request = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n";
        let long =
            [&b"GET /"[..], &[b'a'; 9_000], b" HTTP/1.1\r\n", &b"X: 1\r\n".repeat(5_000), b"\r\n"];
        for (bytes, expected) in [
            (
                request.repeat(1_000),
                r"for i in $(seq 1000); do printf 'GET / HTTP/1.1\r\nHost: h\r\n\r\n'; done | nc h 80",
            ),
            (
                long.concat(),
                r"{ printf 'GET /'; head -c 9000 /dev/zero | tr '\000' '\141'; printf ' HTTP/1.1\r\n'; for i in $(seq 5000); do printf 'X: 1\r\n'; done; printf '\r\n'; } | nc h 80",
            ),
        ] {
            let line = shell_line("http://h/", &bytes, &[], false).unwrap();
            assert_eq!(line, expected);
            let prints = line.strip_suffix(" | nc h 80").unwrap();
            let out = std::process::Command::new("sh").arg("-c").arg(prints).output().unwrap();
            assert!(out.stdout == bytes);
        }
    }

    #[test]
    fn long_bytes_are_cut_in_the_middle() {
        assert_eq!(escape_bytes(b"abc\r\n\0", 10), r"abc\r\n\x00");
        assert_eq!(lines(b"a\r\n\r\nb", 10), "a\\r\\n\n\\r\\n\nb");
        assert_eq!(lines(b"0123456789", 4), "01\n... 6 bytes ...\n89");
        assert_eq!(escape_bytes(b"0123456789", 4), "01 ... 6 bytes ... 89");
        // a linear congruential generator: no short period
        let next = |state: &u32| Some(state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223));
        let states = std::iter::successors(Some(1_u32), next);
        let random: Vec<u8> = states.map(|state| (state >> 24) as u8).take(3_000).collect();
        assert_eq!(shell_line("http://h/", &random[..], &[], false), None);
    }
}
