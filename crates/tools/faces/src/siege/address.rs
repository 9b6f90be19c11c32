//! A URL as siege parses and shows it: followed by a method and a body, or found on a page.

use super::config::{Config, error};
use super::media;
use crate::Files;
use std::sync::Arc;
use url::{Position, Url};

/// Methods that may follow a URL, in search order.
const METHODS: [&str; 5] = ["POST", "PUT", "PATCH", "OPTIONS", "DELETE"];

/// Characters of a URL that a refusal shows.
const SHOWN_MAX: usize = 100;

/// A body with its media type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PostedBody {
    pub(super) bytes: Vec<u8>,
    pub(super) content_type: String,
}

/// Target of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Address {
    /// Scheme, host, port and path: the base for references of a page.
    pub(super) url: Url,
    /// The value of its Host field: an address as typed, such as `127.1`.
    pub(super) authority: String,
    /// Path and query as they are sent.
    pub(super) request: String,
    /// Complete URL as shown.
    pub(super) shown: String,
    pub(super) method: &'static str,
    /// Body for every method except GET and HEAD.
    pub(super) body: Option<Arc<PostedBody>>,
    /// Name and password in the URL.
    pub(super) login: Option<(String, String)>,
    /// Row of the list; 0 for URLs discovered during the run.
    pub(super) row: u32,
}

/// Reason why a URL cannot be requested: a line for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unusable(pub(super) String);

impl Address {
    /// Reads one entry of the list. Complaints about a body's file are appended to `output`.
    pub(super) fn parse(
        text: &str,
        config: &Config,
        files: &dyn Files,
        output: &mut String,
    ) -> Result<Address, Unusable> {
        let text = text.trim();
        let found = METHODS.iter().find_map(|method| {
            let at = text.find(&format!(" {method}"))?;
            Some((*method, &text[..at], &text[at + 1 + method.len()..]))
        });
        let (method, place, data) = found.unwrap_or(("GET", text, ""));
        let place = match method {
            "GET" if config.url_escaping => escaped(place),
            _ => place.to_owned(),
        };
        let body =
            (method != "GET").then(|| Arc::new(body(data.trim_start(), config, files, output)));
        let mut address = Address::at(&place)?;
        (address.method, address.body) = (method, body);
        Ok(address)
    }

    /// Returns the address of a URL without a method.
    fn at(text: &str) -> Result<Address, Unusable> {
        let unusable = |why: &str| {
            let begins: String = text.chars().take(SHOWN_MAX).collect();
            Unusable(format!("{begins}: {why}"))
        };
        let lower = text.to_ascii_lowercase();
        let (scheme, rest) = if lower.starts_with("http://") {
            ("http", &text[7..])
        } else if lower.starts_with("https://") {
            ("https", &text[8..])
        } else if lower.starts_with("ftp:") {
            return Err(unusable("FTP is not supported here; http:// and https:// are"));
        } else if has_scheme(text) {
            return Err(unusable("this protocol is not supported here; http:// and https:// are"));
        } else {
            ("http", text)
        };
        let login_end =
            rest.find(['@', '/', '?', '#', ';']).filter(|at| rest[*at..].starts_with('@'));
        let (login, rest) = match login_end {
            Some(at) => {
                let (user, password) = rest[..at].split_once(':').unwrap_or((&rest[..at], ""));
                (Some((user.to_owned(), password.to_owned())), &rest[at + 1..])
            }
            None => (None, rest),
        };
        let host_end = rest.find(['/', '?', '#', ' ', '\t']).unwrap_or(rest.len());
        let (host, path) = rest.split_at(host_end);
        let request = match path.find(['#', ' ', '\t', '\r', '\n']) {
            Some(end) => &path[..end],
            None => path,
        };
        // without a slash there is no path, regardless of what follows
        let request = if request.starts_with('/') { request } else { "/" };
        let base = Url::parse(&format!("{scheme}://{host}/")).ok().filter(|_| !host.is_empty());
        let base = base.ok_or_else(|| unusable("no host that a connection could go to"))?;
        // a path that the parser rejects is still sent unchanged
        let url = base.join(request).ok().filter(|url| url.host() == base.host()).unwrap_or(base);
        let shown = if has_scheme(text) {
            text.split([' ', '\t']).next().unwrap_or(text).to_owned()
        } else {
            format!("http://{host}{request}")
        };
        let request = request.to_owned();
        let authority = authority(&url, host);
        Ok(Address { url, authority, request, shown, method: "GET", body: None, login, row: 0 })
    }

    /// Returns the target of a reference in a Location field; `None` if it is not an HTTP URL.
    pub(super) fn join(&self, reference: &str) -> Option<Address> {
        self.resolve_reference(self.url.join(reference.trim()).ok()?)
    }

    /// Returns the address of a URL that this one refers to.
    pub(super) fn resolve_reference(&self, mut url: Url) -> Option<Address> {
        url.set_fragment(None);
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none_or(str::is_empty) {
            return None;
        }
        let request = url[Position::BeforePath..Position::AfterQuery].to_owned();
        let shown = url.to_string();
        let login = self.login.clone().filter(|_| url.host() == self.url.host());
        let here = url.origin() == self.url.origin();
        let authority = if here { self.authority.clone() } else { authority(&url, "") };
        Some(Address { url, authority, request, shown, method: "GET", body: None, login, row: 0 })
    }

    /// Formats the URL for its line: the path for GET.
    pub(super) fn display(&self, full: bool) -> &str {
        if full || self.method != "GET" { &self.shown } else { &self.request }
    }

    pub(super) fn host(&self) -> &str {
        self.url.host_str().unwrap_or_default()
    }
}

/// Returns the value of a Host field; `typed`: host and port as given, if they were.
fn authority(url: &Url, typed: &str) -> String {
    let name = typed.split(':').next().unwrap_or_default();
    match url.host() {
        Some(url::Host::Ipv4(_)) if !name.is_empty() => {
            format!("{name}{}", &url[Position::AfterHost..Position::AfterPort])
        }
        _ => url[Position::BeforeHost..Position::AfterPort].to_owned(),
    }
}

/// Returns whether the text begins with a word and a colon; a name with a port does not count.
fn has_scheme(text: &str) -> bool {
    let sign = |sign: char| sign.is_ascii_alphanumeric() || sign == '-' || sign == '+';
    let end = text.find(|each| !sign(each)).unwrap_or(text.len());
    let behind = text[end..].strip_prefix(':');
    end > 0 && behind.is_some_and(|rest| !rest.starts_with(|digit: char| digit.is_ascii_digit()))
}

/// Parses the part after a method: `-T TYPE; DATA` (since 4.1), `<FILE`, or the body itself.
fn body(data: &str, config: &Config, files: &dyn Files, output: &mut String) -> PostedBody {
    let mut data = data;
    let mut content_type = config.content_type.clone();
    if config.newer
        && let Some(typed) = data.strip_prefix("-T ")
    {
        let typed = typed.trim_start();
        let end = typed.find([';', ' ']).unwrap_or(typed.len());
        content_type = typed[..end].to_owned();
        data = typed[end..].trim_start_matches([';', ' ']);
    }
    let Some(path) = data.strip_prefix('<') else {
        return PostedBody { bytes: data.as_bytes().to_vec(), content_type };
    };
    let path = path.trim();
    match files.read(path) {
        Ok(bytes) => {
            let known = media::media_type(path);
            let bytes = if known.text { bytes.trim_ascii().to_vec() } else { bytes };
            // by the file's name since 4.1 only
            let named = known.name.filter(|_| config.newer);
            PostedBody { bytes, content_type: named.map_or(content_type, str::to_owned) }
        }
        Err(why) => {
            output.push_str(&error(&format!("unable to open file: {path}: {}", why.text)));
            PostedBody { bytes: Vec::new(), content_type }
        }
    }
}

/// Percent-encodes bytes that are invalid in a URL, and decodes `%XX` of an unreserved byte (RFC
/// 1738 section 2.2).
fn escaped(text: &str) -> String {
    const RESERVED: &[u8] = b"#&+/:;=?@[]";
    const UNSAFE: &[u8] = b" \"%<>\\^`{|}~#:@[]";
    let unsafe_byte = |byte: u8| {
        byte <= b' ' || byte >= 0x7f || UNSAFE.contains(&byte) || RESERVED.contains(&byte)
    };
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        if byte != b'%' {
            let plain = RESERVED.contains(&byte) || !unsafe_byte(byte);
            if plain {
                out.push(byte.into())
            } else {
                put!(out, "%{byte:02X}")
            }
            continue;
        }
        let hex = |at: usize| behind.get(at).and_then(|digit| char::from(*digit).to_digit(16));
        match (hex(0), hex(1)) {
            (Some(high), Some(low)) => {
                let meant = (high * 16 + low) as u8;
                let kept = std::str::from_utf8(&behind[..2]).unwrap_or_default();
                if unsafe_byte(meant) {
                    put!(out, "%{kept}")
                } else {
                    out.push(meant.into())
                }
                rest = &behind[2..];
            }
            _ => out.push_str("%25"),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SystemError;

    struct Folder;

    impl Files for Folder {
        fn read(&self, path: &str) -> Result<Vec<u8>, SystemError> {
            match path {
                "a.txt" | "a.bin" => Ok(b" x=1\n".to_vec()),
                _ => Err(SystemError { number: 2, text: "No such file or directory".into() }),
            }
        }
    }

    fn read(text: &str, newer: bool) -> Result<Address, Unusable> {
        let config = Config { newer, ..Config::default() };
        Address::parse(text, &config, &Folder, &mut String::new())
    }

    #[test]
    fn urls_are_read_as_people_write_them() {
        for (text, authority, request, shown) in [
            ("127.0.0.1:81", "127.0.0.1:81", "/", "http://127.0.0.1:81/"),
            ("h.example/a", "h.example", "/a", "http://h.example/a"),
            ("localhost:81/a", "localhost:81", "/a", "http://localhost:81/a"),
            ("HTTPS://u:p@h:443/x;y?z#f", "h", "/x;y?z", "HTTPS://u:p@h:443/x;y?z#f"),
            ("http://h?q", "h", "/", "http://h?q"),
            ("http://h/a b?c=ä&d=%41%2f<>", "h", "/a%20b?c=%C3%A4&d=A%2f%3C%3E", ""),
            ("http://h/~%7e%zz", "h", "/%7E%7e%25zz", ""),
        ] {
            let address = read(text, false).expect(text);
            assert_eq!(
                (address.authority.as_str(), address.request.as_str()),
                (authority, request)
            );
            assert!(shown.is_empty() || address.shown == shown, "{}", address.shown);
        }
        for text in ["ftp://h/x", "gopher:x", "u:p@h/", "http://", "/x", ""] {
            assert!(read(text, false).is_err(), "{text}");
        }
    }

    #[test]
    fn methods_and_bodies_follow_the_url() {
        let parts = |text: &str, newer| {
            let address = read(text, newer).expect(text);
            let body = address.body.expect(text);
            let bytes = String::from_utf8(body.bytes.clone()).expect("text");
            (address.method, address.request, bytes, body.content_type.clone())
        };
        let form = "application/x-www-form-urlencoded";
        for (text, newer, wanted) in [
            ("http://h/p POST a=1 b", false, ("POST", "/p", "a=1 b", form)),
            ("http://h/p DELETE", false, ("DELETE", "/p", "", form)),
            ("http://h/p PUT <a.txt", false, ("PUT", "/p", "x=1", form)),
            ("http://h/p PATCH <a.bin", false, ("PATCH", "/p", " x=1\n", form)),
            ("http://h/p PUT <a.txt", true, ("PUT", "/p", "x=1", "text/plain")),
            ("http://h/p POST <none", false, ("POST", "/p", "", form)),
            ("http://h/p POST -T a/b; {}", false, ("POST", "/p", "-T a/b; {}", form)),
            ("http://h/p POST -T a/b; {}", true, ("POST", "/p", "{}", "a/b")),
        ] {
            let (method, request, body, kind) = parts(text, newer);
            assert_eq!((method, request.as_str(), body.as_str(), kind.as_str()), wanted);
        }
    }

    #[test]
    fn references_lead_where_a_browser_would_go() {
        let page = read("http://h:81/a/b?c", false).expect("a URL");
        let joined = |text: &str| page.join(text).map(|address| address.shown);
        assert_eq!(joined("d.png").as_deref(), Some("http://h:81/a/d.png"));
        assert_eq!(joined("//other/x#y").as_deref(), Some("http://other/x"));
        assert_eq!(joined("data:image/png;base64,AA"), None);
        assert_eq!(joined("javascript:void(0)"), None);
    }
}
