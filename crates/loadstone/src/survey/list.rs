//! The list of servers: entries and their addresses.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use units::quoted;
use url::Url;

/// Maximum number of lines in a list.
const ENTRIES_MAX: usize = 10_000;
/// The port of name servers (RFC 1035 section 4.2).
const DNS_PORT: u16 = 53;

/// Line of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SurveyedHost {
    /// Name as written in the list.
    pub(super) named: String,
    pub(super) host: String,
    pub(super) port: u16,
    /// URL; `None` for name servers.
    pub(super) url: Option<Url>,
}

/// Address and port, with its names in the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Listed {
    /// Names of the address; the requested one is first.
    pub(super) names: Vec<String>,
    pub(super) entry: SurveyedHost,
    pub(super) address: SocketAddr,
}

/// A line without a usable address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Lost {
    pub(super) named: String,
    pub(super) why: String,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Resolved {
    /// Each address and port once, in the order of the list.
    pub(super) servers: Vec<Listed>,
    pub(super) lost: Vec<Lost>,
}

/// # Errors
/// Fails for the first invalid line, by number; a list without a line; one that is too long.
pub(super) fn read(text: &str, dns: bool) -> Result<Vec<SurveyedHost>, String> {
    let mut entries = Vec::new();
    for (row, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if entries.len() == ENTRIES_MAX {
            return Err(format!("it has more than {ENTRIES_MAX} lines; survey it in parts"));
        }
        let entry = if dns { name_server(line) } else { web_server(line) };
        entries.push(entry.map_err(|why| format!("line {}: {why}", row + 1))?);
    }
    if entries.is_empty() {
        return Err("it is empty; give a URL or host[:port] per line".to_owned());
    }
    Ok(entries)
}

fn web_server(line: &str) -> Result<SurveyedHost, String> {
    let url = plan::parse_url(line).map_err(|error| error.0)?.url;
    let host = url.host_str().unwrap_or_default().to_owned();
    let port = url.port_or_known_default().unwrap_or(80);
    Ok(SurveyedHost { named: line.to_owned(), host, port, url: Some(url) })
}

/// Parses `host`, `host:port`, `[v6]:port`, or a bare address.
fn name_server(line: &str) -> Result<SurveyedHost, String> {
    let entry = |host: &str, port| SurveyedHost {
        named: line.to_owned(),
        host: host.to_owned(),
        port,
        url: None,
    };
    if line.parse::<std::net::IpAddr>().is_ok() {
        return Ok(entry(line, DNS_PORT));
    }
    let wrong = || {
        format!("{} is not a name server: write host, host:port or [address]:port", quoted(line))
    };
    let (host, port) = match line.rsplit_once(':') {
        Some((host, port)) => (host, port.parse().map_err(|_| wrong())?),
        None => (line, DNS_PORT),
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._[]:".contains(c);
    match !host.is_empty() && port > 0 && host.chars().all(plain) {
        true => Ok(entry(host, port)),
        false => Err(wrong()),
    }
}

/// Returns one visit per address and port, whatever the number of names that resolve to it.
pub(super) fn resolved(entries: &[SurveyedHost]) -> Resolved {
    let mut all = Resolved::default();
    let mut rows: BTreeMap<SocketAddr, usize> = BTreeMap::new();
    for entry in entries {
        let found = match host::resolve(&entry.host, entry.port, host::Family::Any) {
            Ok((found, _)) => found,
            Err(error) => {
                all.lost.push(Lost { named: entry.named.clone(), why: error.why() });
                continue;
            }
        };
        for address in found {
            let row = *rows.entry(address).or_insert_with(|| {
                all.servers.push(Listed { names: Vec::new(), entry: entry.clone(), address });
                all.servers.len() - 1
            });
            let names = &mut all.servers[row].names;
            if !names.contains(&entry.named) {
                names.push(entry.named.clone());
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read() {
        let text = "# ours\nhttps://a.example/x\n\n192.0.2.1:8080\n";
        let read = read(text, false).unwrap();
        let lines: Vec<_> = read.iter().map(|one| (one.host.as_str(), one.port)).collect();
        assert_eq!(lines, [("a.example", 443), ("192.0.2.1", 8080)]);
        let text = "ns.example\nns.example:5353\n::1\n[::1]:54\n192.0.2.1";
        let read = super::read(text, true).unwrap();
        let lines: Vec<_> = read.iter().map(|one| (one.host.as_str(), one.port)).collect();
        let expected = [
            ("ns.example", 53),
            ("ns.example", 5353),
            ("::1", 53),
            ("[::1]", 54),
            ("192.0.2.1", 53),
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn an_invalid_line_is_reported() {
        for (text, dns, why) in [
            ("ok.example\nftp://x/\n", false, "line 2: "),
            ("a b", true, "line 1: \"a b\" is not a name server"),
            ("x:99999", true, "line 1: \"x:99999\" is not a name server"),
            ("# nothing\n", true, "it is empty"),
        ] {
            let error = read(text, dns).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
        let long = "a.example\n".repeat(ENTRIES_MAX + 1);
        assert!(read(&long, false).unwrap_err().contains("survey it in parts"));
    }

    #[test]
    fn an_address_is_visited_once() {
        let entries =
            read("127.0.0.1:81\n127.0.0.1:82\nhttp://127.0.0.1:81/other\n", false).unwrap();
        let found = resolved(&entries);
        assert_eq!(found.servers.len(), 2);
        assert_eq!(found.servers[0].names, ["127.0.0.1:81", "http://127.0.0.1:81/other"]);
    }
}
