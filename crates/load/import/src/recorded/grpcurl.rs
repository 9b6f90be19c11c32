//! grpcurl's command lines.

use crate::recorded::RecordedError;
use crate::recorded::commands::{ShellWord, begins_with, is_prefix, is_program};
use crate::recorded::words;
use units::{Nanos, quoted};

/// A command that calls a method.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grpcurl {
    /// `host:port`, or with `-unix` the path of a socket.
    pub address: String,
    pub unix: bool,
    /// `/package.Service/Method`
    pub path: String,
    pub plaintext: bool,
    pub insecure: bool,
    /// JSON messages, one after the other; `@` if they are read from standard input.
    pub data: Option<String>,
    pub headers: Vec<(String, String)>,
    pub protos: Vec<String>,
    pub import_paths: Vec<String>,
    pub protosets: Vec<String>,
    pub ca: Option<String>,
    pub cert: Option<String>,
    pub key: Option<String>,
    pub server_name: Option<String>,
    pub authority: Option<String>,
    pub user_agent: Option<String>,
    pub max_time: Option<Nanos>,
    pub connect_timeout: Option<Nanos>,
}

/// Returns whether a text is a command of grpcurl, perhaps after a prompt or `time`.
pub fn is_grpcurl(text: &str) -> bool {
    let lines = text.lines().map(str::trim);
    let mut lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.next().is_some_and(|line| begins_with(line, "grpcurl"))
}

/// Effect of an option.
#[derive(Clone, Copy)]
enum Does {
    Flag(fn(&mut Grpcurl)),
    Takes(fn(&mut Grpcurl, String) -> Result<(), String>),
    /// Affects only the output.
    Nothing,
    NothingTaken,
    /// Refused for this reason.
    Refused(&'static str),
}

const OPTIONS: &[(&str, Does)] = &[
    ("plaintext", Does::Flag(|it| it.plaintext = true)),
    ("insecure", Does::Flag(|it| it.insecure = true)),
    ("unix", Does::Flag(|it| it.unix = true)),
    ("d", Does::Takes(|it, text| put(&mut it.data, text))),
    ("H", Does::Takes(header)),
    ("rpc-header", Does::Takes(header)),
    ("proto", Does::Takes(|it, text| add(&mut it.protos, text))),
    ("import-path", Does::Takes(|it, text| add(&mut it.import_paths, text))),
    ("protoset", Does::Takes(|it, text| add(&mut it.protosets, text))),
    ("cacert", Does::Takes(|it, text| put(&mut it.ca, text))),
    ("cert", Does::Takes(|it, text| put(&mut it.cert, text))),
    ("key", Does::Takes(|it, text| put(&mut it.key, text))),
    ("servername", Does::Takes(|it, text| put(&mut it.server_name, text))),
    ("authority", Does::Takes(|it, text| put(&mut it.authority, text))),
    ("user-agent", Does::Takes(|it, text| put(&mut it.user_agent, text))),
    ("max-time", Does::Takes(|it, text| seconds(&mut it.max_time, &text))),
    ("connect-timeout", Does::Takes(|it, text| seconds(&mut it.connect_timeout, &text))),
    ("use-reflection", Does::Nothing),
    ("emit-defaults", Does::Nothing),
    ("format-error", Does::Nothing),
    ("msg-template", Does::Nothing),
    ("v", Does::Nothing),
    ("vv", Does::Nothing),
    ("max-msg-sz", Does::NothingTaken),
    ("keepalive-time", Does::NothingTaken),
    ("reflect-header", Does::Refused("metadata of reflection alone is not supported; give -proto")),
    ("format", Does::Refused("messages are JSON; drop it and write the message as JSON")),
    ("allow-unknown-fields", Does::Refused("a message has the fields of its type; drop it")),
    ("expand-headers", Does::Refused("write the values themselves")),
    ("protoset-out", Does::Refused("it makes no call")),
    ("proto-out-dir", Does::Refused("it makes no call")),
    ("alts", Does::Refused("ALTS is not supported")),
];

fn put(slot: &mut Option<String>, text: String) -> Result<(), String> {
    *slot = Some(text);
    Ok(())
}

fn add(list: &mut Vec<String>, text: String) -> Result<(), String> {
    list.push(text);
    Ok(())
}

fn header(it: &mut Grpcurl, text: String) -> Result<(), String> {
    let (name, value) = text.split_once(':').unwrap_or((&text, ""));
    it.headers.push((name.trim().to_lowercase(), value.trim().to_owned()));
    Ok(())
}

fn seconds(slot: &mut Option<Nanos>, text: &str) -> Result<(), String> {
    let number: f64 = text
        .trim()
        .parse()
        .ok()
        .filter(|it| (0.0..1e9).contains(it))
        .ok_or_else(|| format!("{} is not a number of seconds", quoted(text)))?;
    *slot = Some(Nanos::from_secs_f64(number)).filter(|span| !span.is_zero());
    Ok(())
}

/// Parses a text with one command.
///
/// # Errors
/// Fails for a shell operation, an option that is unknown or has no equivalent in a load, `list`
/// and `describe`, a missing address or method, or a second command.
pub fn parse_grpcurl(text: &str) -> Result<Grpcurl, RecordedError> {
    let commands = words::split(text.strip_prefix('\u{feff}').unwrap_or(text));
    let mut commands = commands.map_err(|it| it.error)?.into_iter();
    let words = commands.next().unwrap_or_default();
    if commands.next().is_some() {
        return Err(RecordedError("it has more than one command; give one".to_owned()));
    }
    let mut words = words.into_iter().skip_while(|word| is_prefix(word)).peekable();
    words.next_if(|word| is_program(word, "grpcurl"));
    read(words.map(text_of).collect::<Result<_, _>>()?).map_err(RecordedError)
}

fn text_of(word: ShellWord) -> Result<String, RecordedError> {
    String::from_utf8(word).map_err(|_| RecordedError("it has bytes that are not UTF-8".to_owned()))
}

fn read(words: Vec<String>) -> Result<Grpcurl, String> {
    let mut command = Grpcurl::default();
    let mut words = words.into_iter().peekable();
    // Go's flags end at the first operand
    while let Some(word) = words.next_if(|word| word.len() > 1 && word.starts_with('-')) {
        if word == "--" {
            break;
        }
        let bare = word.strip_prefix("--").unwrap_or(&word[1..]);
        let (name, joined) = match bare.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (bare, None),
        };
        let option = OPTIONS.iter().find(|(known, _)| *known == name);
        let Some((_, does)) = option else {
            return Err(format!("grpcurl's option {} is not known; leave it out", quoted(&word)));
        };
        let mut value = || {
            let value = joined.clone().or_else(|| words.next());
            value.ok_or_else(|| format!("{word} has no value"))
        };
        match does {
            Does::Refused(why) => return Err(format!("{word}: {why}")),
            Does::Takes(take) => {
                take(&mut command, value()?).map_err(|why| format!("{word}: {why}"))?;
            }
            Does::NothingTaken => drop(value()?),
            Does::Flag(set) if joined.as_deref() != Some("false") => set(&mut command),
            Does::Flag(_) | Does::Nothing => {}
        }
    }
    let operands: Vec<String> = words.collect();
    match operands.as_slice() {
        all if all.iter().any(|word| word == "list" || word == "describe") => {
            Err("list and describe make no call; give HOST:PORT package.Service/Method".to_owned())
        }
        [address, symbol] => {
            let parts = symbol.split_once('/').or_else(|| symbol.rsplit_once('.'));
            let (service, method) = parts.ok_or_else(|| no_method(symbol))?;
            if service.is_empty() || method.is_empty() || method.contains('/') {
                return Err(no_method(symbol));
            }
            command.path = format!("/{service}/{method}");
            command.address.clone_from(address);
            Ok(command)
        }
        [] | [_] => Err("it has no address or no method; give HOST:PORT \
                         package.Service/Method"
            .to_owned()),
        [_, _, more, ..] => {
            Err(format!("{} comes after the method; options come first", quoted(more)))
        }
    }
}

fn no_method(symbol: &str) -> String {
    format!("{} is not a method; write package.Service/Method", quoted(symbol))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_is_read_as_grpcurl_reads_it() {
        let text = "$ grpcurl -plaintext -H 'X-Key: 7' --max-time=1.5 -import-path api \\\n  \
                    -proto a.proto -d '{\"id\": 1}' -authority a.b localhost:50051 pkg.Svc.Get";
        assert!(is_grpcurl(text) && !is_grpcurl("curl http://h/"));
        let command = parse_grpcurl(text).unwrap();
        assert_eq!((&*command.address, &*command.path), ("localhost:50051", "/pkg.Svc/Get"));
        assert!(command.plaintext && !command.insecure);
        assert_eq!(command.headers, [("x-key".to_owned(), "7".to_owned())]);
        assert_eq!(command.max_time, Some(Nanos::from_millis(1_500)));
        assert_eq!(
            (&*command.protos, &*command.import_paths),
            (&["a.proto".to_owned()][..], &["api".to_owned()][..])
        );
        assert_eq!(command.data.as_deref(), Some("{\"id\": 1}"));
        assert_eq!(command.authority.as_deref(), Some("a.b"));
        let short = parse_grpcurl("grpcurl -plaintext=false h:1 a.B/C").unwrap();
        assert!(!short.plaintext && short.data.is_none());
    }

    #[test]
    fn commands_without_a_call_are_refused_by_name() {
        for (text, part) in [
            ("grpcurl -plaintext h:1 list", "list and describe"),
            ("grpcurl h:1 describe a.B", "list and describe"),
            ("grpcurl h:1", "no address or no method"),
            ("grpcurl h:1 aB", "\"aB\" is not a method"),
            ("grpcurl h:1 a.B/C -d {}", "\"-d\" comes after the method"),
            ("grpcurl -bogus h:1 a.B/C", "\"-bogus\" is not known"),
            ("grpcurl -format text h:1 a.B/C", "-format: messages are JSON"),
            ("grpcurl -max-time x h:1 a.B/C", "\"x\" is not a number of seconds"),
            ("grpcurl -d", "-d has no value"),
            ("grpcurl h:1 a.B/C; grpcurl h:1 a.B/C", "more than one command"),
        ] {
            let why = parse_grpcurl(text).unwrap_err();
            assert!(why.0.contains(part), "{text}: {why:?}");
        }
    }
}
