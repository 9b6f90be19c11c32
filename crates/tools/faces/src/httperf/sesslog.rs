//! The session file of `--wsesslog`.
//!
//! A line whose first byte is `#` is a comment; a line of white space ends a session; every other
//! line is a request. A request line that starts with white space belongs to the burst of the
//! previous line. After the URI follow, in any order, `method=`, `think=` (of the burst) and
//! `contents=`, the last bare or in quotes, with backslash escapes.

use super::number::decimal;

/// One request of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SessionRequest {
    pub(super) method: &'static str,
    pub(super) uri: Vec<u8>,
    pub(super) contents: Vec<u8>,
}

/// Request and those that follow its response, then the user's think time in seconds.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Burst {
    pub(super) requests: Vec<SessionRequest>,
    pub(super) think: f64,
}

/// Bursts of a session.
pub(super) type SessionBursts = Vec<Burst>;

/// Sessions that a file may describe.
pub(super) const SESSIONS_MAX: usize = 1_000;

/// Keywords in the order in which the original compares them: the first that is a prefix of the
/// word matches.
const METHODS: [&str; 9] =
    ["DELETE", "GET", "HEAD", "OPTIONS", "POST", "PUT", "TRACE", "PROPFIND", "REPORT"];

/// Reads a session file. `think`: seconds where a burst names none.
///
/// # Errors
/// Fails with the error, as the original prints it after the program's name, without the file's
/// name.
pub(super) fn read(file: &[u8], think: f64) -> Result<Vec<SessionBursts>, String> {
    let mut reader = SesslogReader { file, at: 0 };
    let mut sessions: Vec<SessionBursts> = Vec::new();
    let mut open = false;
    while reader.at < file.len() {
        let indented = file[reader.at].is_ascii_whitespace();
        if file[reader.at] == b'#' {
            reader.skip_line();
            continue;
        }
        let uri = reader.word().to_vec();
        if uri.is_empty() {
            reader.skip_line();
            open = false;
            continue;
        }
        if !open {
            sessions.push(SessionBursts::new());
            if sessions.len() > SESSIONS_MAX {
                return Err(format!("too many sessions ({}) specified", sessions.len()));
            }
        }
        let session = sessions.last_mut().expect("one was pushed when none was open");
        if !open || !indented {
            session.push(Burst { requests: Vec::new(), think });
        }
        open = true;
        let burst = session.last_mut().expect("a session begins with a burst");
        burst.requests.push(SessionRequest { method: "GET", uri, contents: Vec::new() });
        read_attributes(&mut reader, burst)?;
    }
    Ok(sessions)
}

fn read_attributes(reader: &mut SesslogReader<'_>, burst: &mut Burst) -> Result<(), String> {
    let request = burst.requests.last_mut().expect("attributes follow a request");
    loop {
        reader.skip_blanks();
        if reader.rest().starts_with(b"contents=")
            && reader.rest().get(9).is_some_and(|byte| !byte.is_ascii_whitespace())
        {
            reader.at += 9;
            request.contents = reader.contents()?;
            continue;
        }
        let word = String::from_utf8_lossy(reader.word()).into_owned();
        if word.is_empty() {
            reader.skip_line();
            return Ok(());
        }
        let known = match word.split_once('=') {
            Some(("method", name)) if !name.is_empty() => {
                let method = METHODS.iter().find(|method| name.starts_with(**method));
                request.method =
                    method.ok_or_else(|| format!("did not recognize method '{name}'"))?;
                true
            }
            Some(("think", seconds)) => match decimal(seconds) {
                Some((seconds, _)) => {
                    burst.think = seconds.max(0.0);
                    true
                }
                None => false,
            },
            _ => false,
        };
        if !known {
            return Err(format!("did not recognize arg '{word}'"));
        }
    }
}

struct SesslogReader<'a> {
    file: &'a [u8],
    at: usize,
}

impl<'a> SesslogReader<'a> {
    fn rest(&self) -> &'a [u8] {
        &self.file[self.at..]
    }

    fn skip_line(&mut self) {
        let end = self.rest().iter().position(|byte| *byte == b'\n');
        self.at = end.map_or(self.file.len(), |end| self.at + end + 1);
    }

    fn skip_blanks(&mut self) {
        let blank = |byte: &&u8| byte.is_ascii_whitespace() && **byte != b'\n';
        self.at += self.rest().iter().take_while(blank).count();
    }

    /// Returns the next word of this line; empty at its end.
    fn word(&mut self) -> &'a [u8] {
        self.skip_blanks();
        let word = self.rest();
        let end = word.iter().position(u8::is_ascii_whitespace).unwrap_or(word.len());
        self.at += end;
        &word[..end]
    }

    /// Returns a text that ends at white space outside quotes; a backslash makes the next byte
    /// literal, or forms an escape of `n`, `r` and `t`, or continues the text on the next line.
    fn contents(&mut self) -> Result<Vec<u8>, String> {
        let mut text = Vec::new();
        let mut quote = None;
        while let Some(byte) = self.rest().first().copied() {
            match (byte, quote) {
                (b'\\', _) => {
                    self.at += 1;
                    text.push(self.escaped()?);
                    continue;
                }
                (b' ' | b'\t' | b'\n', None) => break,
                (b'\n', Some(_)) => {
                    // the line is all that is read of an open quotation
                    text.push(byte);
                    break;
                }
                (b'"' | b'\'', None) => quote = Some(byte),
                (byte, Some(open)) if byte == open => quote = None,
                _ => text.push(byte),
            }
            self.at += 1;
        }
        Ok(text)
    }

    fn escaped(&mut self) -> Result<u8, String> {
        let Some(byte) = self.rest().first().copied() else {
            return Err("premature EOF seen".to_owned());
        };
        self.at += 1;
        Ok(match byte {
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            other => other,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Formats sessions as lines: bursts between bars, requests between spaces.
    fn format_sessions(file: &str) -> Result<Vec<String>, String> {
        let request = |request: &SessionRequest| {
            let uri = String::from_utf8_lossy(&request.uri);
            let contents = String::from_utf8_lossy(&request.contents);
            format!("{}{uri}<{}>", request.method, contents.escape_debug())
        };
        let burst = |burst: &Burst| {
            let all: Vec<String> = burst.requests.iter().map(request).collect();
            format!("{} {}s", all.join(" "), burst.think)
        };
        let session =
            |session: SessionBursts| session.iter().map(burst).collect::<Vec<_>>().join(" | ");
        Ok(read(file.as_bytes(), 2.0)?.into_iter().map(session).collect())
    }

    #[test]
    fn the_manuals_example_is_parsed_as_documented() {
        let file = "# comment\n/foo.html think=2.5\n\t/pict1.gif\n  /pict2.gif\n\
                    /foo2.html method=POST contents='Post data'\n\t/pict3.gif\n\n \t\n\
                    /foo3.html method=POST contents=\"Multiline\\ndata\"\n/foo4.html method=HEAD";
        let wanted = [
            "GET/foo.html<> GET/pict1.gif<> GET/pict2.gif<> 2.5s | \
             POST/foo2.html<Post data> GET/pict3.gif<> 2s",
            "POST/foo3.html<Multiline\\ndata> 2s | HEAD/foo4.html<> 2s",
        ];
        assert_eq!(format_sessions(file).unwrap(), wanted);
    }

    #[test]
    fn quotes_escapes_and_carried_lines() {
        for (text, wanted) in [
            ("/a contents=bare think=1", "GET/a<bare> 1s"),
            ("/a contents='a \"b\" c'", "GET/a<a \\\"b\\\" c> 2s"),
            ("/a contents=\"it's\" method=PUT", "PUT/a<it\\'s> 2s"),
            ("/a contents=x\\\ny\n/b", "GET/a<x\\ny> 2s | GET/b<> 2s"),
            ("/a contents='a\\'b\\\\'\\ c", "GET/a<a\\'b\\\\ c> 2s"),
        ] {
            assert_eq!(format_sessions(text).unwrap(), [wanted], "{text}");
        }
    }

    #[test]
    fn unknown_options_are_reported() {
        for (text, wanted) in [
            ("/a method=PATCH", "did not recognize method 'PATCH'"),
            ("/a foo", "did not recognize arg 'foo'"),
            ("/a think=soon", "did not recognize arg 'think=soon'"),
            ("/a contents=", "did not recognize arg 'contents='"),
            ("/a contents=x\\", "premature EOF seen"),
        ] {
            assert_eq!(format_sessions(text).unwrap_err(), wanted, "{text}");
        }
        assert_eq!(format_sessions("\n\n# nothing\n").unwrap(), [""; 0]);
        let many = "/a\n\n".repeat(SESSIONS_MAX + 1);
        assert_eq!(format_sessions(&many).unwrap_err(), "too many sessions (1001) specified");
    }
}
