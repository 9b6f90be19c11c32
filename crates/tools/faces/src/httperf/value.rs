//! The values of httperf's options, with the original's error messages.

use super::number::{decimal, unsigned};
use super::options::{Period, Print, Sessions, WorkingSet};

/// The error, as printed after the program's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Bad(pub String);

/// Gaps that `--period v` may hold.
const VARYING_MAX: usize = 16;

/// Parses `2/8`: the third of eight clients.
pub(super) fn client(text: &str) -> Result<(u64, u64), Bad> {
    let Some((id, rest)) = unsigned(text, true) else {
        return Err(Bad(format!("bad client id (rest: `{text}')")));
    };
    let Some(behind) = rest.strip_prefix('/') else {
        return Err(Bad(format!("client id not followed by `/' (rest: `{rest}')")));
    };
    match unsigned(behind, true) {
        Some((count, _)) if id < count && count <= u64::from(u32::MAX) => Ok((id, count)),
        _ => Err(Bad(format!("bad number of clients (rest: `{behind}')"))),
    }
}

/// Parses `1.0`; text after the second number is ignored.
pub(super) fn version(text: &str) -> Result<(u64, u64), Bad> {
    let bad = || Bad(format!("illegal version number {text}"));
    let (major, rest) = unsigned(text, false).ok_or_else(bad)?;
    let behind = rest.strip_prefix('.').ok_or_else(bad)?;
    let (minor, _) = unsigned(behind, false).ok_or_else(bad)?;
    Ok((major, minor & 0xffff))
}

pub(super) fn port(text: &str) -> Result<u16, Bad> {
    let bad = || Bad(format!("illegal port number {text}"));
    let (number, rest) = unsigned(text, false).ok_or_else(bad)?;
    let port = u16::try_from(number).map_err(|_| bad())?;
    if rest.is_empty() { Ok(port) } else { Err(bad()) }
}

/// Parses `header`, `body`, or prefixes of them; any other text selects both.
pub(super) fn print(text: &str) -> Print {
    match text.bytes().next().map(|byte| byte.to_ascii_lowercase()) {
        Some(b'h') => Print { header: true, body: false },
        Some(b'b') => Print { header: false, body: true },
        _ => Print { header: true, body: true },
    }
}

pub(super) fn rate(text: &str) -> Result<Period, Bad> {
    match decimal(text) {
        Some((rate, "")) if rate > 0.0 => Ok(Period::Fixed { gap: 1.0 / rate, rate }),
        Some((_, "")) => Ok(Period::Sequential),
        _ => Err(Bad(format!("illegal request rate {text}"))),
    }
}

/// Parses `0.5`, `d0.5`, `u0.1,0.3`, `e0.2`, `v0.1,5,0.2,5`.
pub(super) fn period(text: &str) -> Result<Period, Bad> {
    let law = text.chars().next().filter(|letter| !letter.is_ascii_digit());
    let numbers = law.map_or(text, |letter| &text[letter.len_utf8()..]);
    match law.map(|letter| letter.to_ascii_lowercase()) {
        None | Some('d') => {
            let gap = mean(numbers)?;
            Ok(if gap > 0.0 { Period::Fixed { gap, rate: 1.0 / gap } } else { Period::Sequential })
        }
        Some('e') => {
            let mean = mean(numbers)?;
            Ok(if mean > 0.0 { Period::Exponential { mean } } else { Period::Sequential })
        }
        Some('u') => uniform(numbers),
        Some('v') => varying(numbers),
        Some(_) => {
            let letter = law.unwrap_or_default();
            Err(Bad(format!("illegal interarrival distribution '{letter}' in {text}")))
        }
    }
}

fn mean(text: &str) -> Result<f64, Bad> {
    match decimal(text) {
        Some((mean, "")) if mean >= 0.0 => Ok(mean),
        _ => Err(Bad(format!("illegal mean interarrival time {text}"))),
    }
}

fn uniform(text: &str) -> Result<Period, Bad> {
    let Some((low, rest)) = decimal(text).filter(|(low, _)| *low >= 0.0) else {
        return Err(Bad(format!("illegal minimum interarrival time {text}")));
    };
    let Some(behind) = rest.strip_prefix(',') else {
        let what = "minimum interarrival time not followed by `,MAX_IAT'";
        return Err(Bad(format!("{what} (rest: `{rest}')")));
    };
    match decimal(behind) {
        Some((high, "")) if high >= 0.0 && low + high > 0.0 => Ok(Period::Uniform { low, high }),
        Some((high, "")) if high >= 0.0 => Ok(Period::Sequential),
        _ => Err(Bad(format!("illegal request period {behind}"))),
    }
}

fn varying(text: &str) -> Result<Period, Bad> {
    let bad = || Bad(format!("illegal request period {text}"));
    let numbers: Vec<f64> = text
        .split(',')
        .map(|part| match decimal(part) {
            Some((number, "")) if number > 0.0 => Ok(number),
            _ => Err(bad()),
        })
        .collect::<Result<_, _>>()?;
    let pairs: Vec<(f64, f64)> = numbers.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
    if !numbers.len().is_multiple_of(2) || pairs.is_empty() || pairs.len() > VARYING_MAX {
        return Err(bad());
    }
    Ok(Period::Varying(pairs))
}

/// Parses `y,FILE`: the file's name starts after the second character, whatever that is.
pub(super) fn wlog(text: &str) -> (bool, String) {
    let mut letters = text.chars();
    let again = letters.next().is_some_and(|letter| letter.eq_ignore_ascii_case(&'y'));
    letters.next();
    (again, letters.as_str().to_owned())
}

/// Comma-separated numbers, parsed one by one.
struct ListValues<'a> {
    option: &'static str,
    rest: &'a str,
}

impl<'a> ListValues<'a> {
    fn bad<T>(&self, what: &str, rest: &str) -> Result<T, Bad> {
        Err(Bad(format!("{what} in --{} arg (rest: `{rest}')", self.option)))
    }

    fn whole(&mut self, what: &str) -> Result<u64, Bad> {
        match unsigned(self.rest, true) {
            Some((number, rest)) if number <= u64::from(u32::MAX) => {
                self.rest = rest;
                Ok(number)
            }
            _ => self.bad(what, self.rest),
        }
    }

    fn seconds(&mut self, what: &str) -> Result<f64, Bad> {
        match decimal(self.rest) {
            Some((number, rest)) if number >= 0.0 => {
                self.rest = rest;
                Ok(number)
            }
            Some((_, rest)) => self.bad(what, rest),
            None => self.bad(what, self.rest),
        }
    }

    fn comma(&mut self, next: &str) -> Result<(), Bad> {
        match self.rest.strip_prefix(',') {
            Some(rest) => {
                self.rest = rest;
                Ok(())
            }
            None => self.bad(next, self.rest),
        }
    }

    fn end(&self) -> Result<(), Bad> {
        if self.rest.is_empty() { Ok(()) } else { self.bad("extraneous parameter", self.rest) }
    }
}

const SESSIONS: &str = "bad number of sessions (1st param)";

/// Parses `10,5,2`: ten sessions of five calls, two seconds between bursts.
pub(super) fn wsess(text: &str) -> Result<Sessions, Bad> {
    let calls = "bad number of calls per session (2nd param)";
    let (sessions, calls, think) = three("wsess", calls, text)?;
    Ok(Sessions::Fixed { sessions, calls, think })
}

/// Parses `10,5,2`: ten sessions of five pages, two seconds between them.
pub(super) fn wsesspage(text: &str) -> Result<Sessions, Bad> {
    let pages = "bad number of user requests per session (2nd param)";
    let (sessions, pages, think) = three("wsesspage", pages, text)?;
    Ok(Sessions::Pages { sessions, pages, think })
}

fn three(option: &'static str, second: &str, text: &str) -> Result<(u64, u64, f64), Bad> {
    let mut parts = ListValues { option, rest: text };
    let sessions = parts.whole(SESSIONS)?;
    parts.comma(second)?;
    let count = parts.whole(second)?;
    let think = "bad user think time (3rd param)";
    parts.comma(think)?;
    let think = parts.seconds(think)?;
    parts.end()?;
    Ok((sessions, count, think))
}

/// Parses `10,2,FILE`; nothing may follow the file's name.
pub(super) fn wsesslog(text: &str) -> Result<Sessions, Bad> {
    let mut parts = ListValues { option: "wsesslog", rest: text };
    let sessions = parts.whole(SESSIONS)?;
    let think = "bad user think time (2nd param)";
    parts.comma(think)?;
    let think = parts.seconds(think)?;
    parts.comma("bad session filename (3rd param)")?;
    let (file, rest) = parts.rest.split_once(',').unwrap_or((parts.rest, ""));
    let file = file.to_owned();
    parts.rest = rest;
    parts.end()?;
    Ok(Sessions::Logged { sessions, think, file })
}

/// Parses `1000,0.25`.
pub(super) fn wset(text: &str) -> Result<WorkingSet, Bad> {
    let mut parts = ListValues { option: "wset", rest: text };
    let files = parts.whole("bad working set size (1st parameter)")?;
    let rate = "bad target miss rate (2nd parameter)";
    let Some(behind) = parts.rest.strip_prefix(',') else { return parts.bad(rate, text) };
    match decimal(behind) {
        Some((miss_rate, rest)) if (0.0..=1.0).contains(&miss_rate) => {
            parts.rest = rest;
            if !rest.is_empty() {
                return parts.bad("extraneous parameter", behind);
            }
            Ok(WorkingSet { files, miss_rate })
        }
        _ => parts.bad(rate, behind),
    }
}

/// Protocols below TLS 1.2 are no longer supported.
pub(super) fn protocol(text: &str) -> Result<(), Bad> {
    match text.replace('_', ".").as_str() {
        "auto" | "TLSv1.2" | "TLSv1.3" => Ok(()),
        "SSLv2" | "SSLv3" | "TLSv1.0" | "TLSv1.1" => Err(Bad(format!(
            "{text} is not supported here: give --ssl-protocol=TLSv1.2 or TLSv1.3, or auto"
        ))),
        _ => Err(Bad(format!("illegal SSL protocol {text}"))),
    }
}

/// Parses `--myaddr`: an address, or a range of them (`10.0.0.1-10.0.0.9`).
pub(super) fn addresses(text: &str) -> Result<Vec<std::net::IpAddr>, String> {
    use std::net::{IpAddr, Ipv4Addr};
    let bad =
        || format!("illegal local address {text}: give one, or a range such as 10.0.0.1-10.0.0.9");
    let Some((from, to)) = text.split_once('-') else {
        return text.parse().map(|address| vec![address]).map_err(|_| bad());
    };
    let number = |part: &str| part.parse::<Ipv4Addr>().map(u32::from).map_err(|_| bad());
    let (from, to) = (number(from)?, number(to)?);
    if from > to || (to - from) as usize >= plan::rules::BIND_MAX {
        return Err(bad());
    }
    Ok((from..=to).map(|address| IpAddr::V4(Ipv4Addr::from(address))).collect())
}
