//! The URL as ab parses it: partly by hand, partly by the Apache runtime's `apr_parse_addr_port`.

use crate::words::atoi;
use std::net::Ipv6Addr;

/// Destination of requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Address {
    /// The whole argument, for a proxy.
    pub(super) full: String,
    pub(super) secure: bool,
    /// An IPv6 address without brackets.
    pub(super) host: String,
    pub(super) v6: bool,
    pub(super) port: u16,
    /// Path from the first slash on, as typed.
    pub(super) path: String,
}

impl Address {
    /// Returns the host as in a URL and in the Host field.
    pub(super) fn host_field(&self) -> String {
        if self.v6 { format!("[{}]", self.host) } else { self.host.clone() }
    }

    /// Formats `:8080`, or empty for the scheme's default port.
    pub(super) fn colon_port(&self) -> String {
        let usual = if self.secure { 443 } else { 80 };
        if self.port == usual { String::new() } else { format!(":{}", self.port) }
    }

    pub(super) fn scheme(&self) -> &'static str {
        if self.secure { "https" } else { "http" }
    }
}

/// Returns `None` if ab prints "invalid URL".
pub(super) fn parse_url(typed: &str) -> Option<Address> {
    let (secure, rest) = if let Some(rest) = after(typed, "http://") {
        (false, rest)
    } else if let Some(rest) = after(typed, "https://") {
        (true, rest)
    } else {
        (false, typed)
    };
    let slash = rest.find('/')?;
    let (authority, path) = rest.split_at(slash);
    let (host, v6, port) = host_and_port(authority)?;
    let usual = if secure { 443 } else { 80 };
    Some(Address {
        full: typed.to_owned(),
        secure,
        host,
        v6,
        port: port.unwrap_or(usual),
        path: path.to_owned(),
    })
}

/// Returns the text after a scheme, which counts only if more text follows it.
fn after<'a>(typed: &'a str, scheme: &str) -> Option<&'a str> {
    typed.strip_prefix(scheme).filter(|rest| !rest.is_empty())
}

/// Splits off the port: digits at the end after a colon are a port from 1 to 65535; a colon without
/// digits belongs to the name; digits alone are a port without a host.
fn host_and_port(authority: &str) -> Option<(String, bool, Option<u16>)> {
    let name = authority.trim_end_matches(|byte: char| byte.is_ascii_digit());
    if name.is_empty() {
        return None;
    }
    let digits = &authority[name.len()..];
    let (host, port) = match name.strip_suffix(':') {
        Some(host) if !digits.is_empty() => {
            let number = u16::try_from(atoi(digits)).ok().filter(|port| *port > 0)?;
            (host, Some(number))
        }
        _ => (authority, None),
    };
    match host.strip_prefix('[') {
        None if host.is_empty() => None,
        None => Some((host.to_owned(), false, port)),
        Some(rest) => {
            let literal = rest.strip_suffix(']')?;
            literal.parse::<Ipv6Addr>().ok()?;
            Some((literal.to_owned(), true, port))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_distinguished_from_other_words() {
        let describe = |typed: &str| match parse_url(typed) {
            None => format!("{typed}: invalid"),
            Some(a) => format!(
                "{typed}: {} {} {} {} {}",
                a.scheme(),
                a.host_field(),
                a.port,
                a.colon_port(),
                a.path
            ),
        };
        insta::assert_snapshot!(
            ["http://h/", "h:81/a?b#c", "https://h/", "https://h:80/", "http://h", "http://",
             "ftp://h/", "h:0/", "h:99999/", ":80/", "80/", "/", "http://[::1]:8/x", "[::1/", "[x]/", "h:/"]
                .map(describe).join("\n"),
            @r"
        http://h/: http h 80  /
        h:81/a?b#c: http h 81 :81 /a?b#c
        https://h/: https h 443  /
        https://h:80/: https h 80 :80 /
        http://h: invalid
        http://: http http: 80  //
        ftp://h/: http ftp: 80  //h/
        h:0/: invalid
        h:99999/: invalid
        :80/: invalid
        80/: invalid
        /: invalid
        http://[::1]:8/x: http [::1] 8 :8 /x
        [::1/: invalid
        [x]/: invalid
        h:/: http h: 80  /
        "
        );
    }
}
