//! Pages of the dynamic operations: request, response, and how the file is located in a response.

use super::{Advertising, ShownAd, Visitor};
use crate::fileset::FileContent;
use crate::fileset::content::{AD_CLOSE, AD_OPEN, ad_picture};
use crate::fileset::specweb99_files::FileName;

/// The media type of a page.
pub const DYNAMIC_TYPE: &str = "text/html";

/// Text before and after the file in a page.
const OPEN: &str = "<pre>\n";
const CLOSE: &str = "\n</pre>\n</body>\n</html>\n";

/// The query of a dynamic request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DynamicQuery {
    /// `/specweb99/file_set/dir00001/class1_3`: the part before the set's folder depends on the
    /// server.
    File(FileName),
    /// `command/Reset&…`: resets the log of POSTs.
    Reset,
    /// `command/Fetch`: that log.
    Fetch,
}

impl DynamicQuery {
    pub fn parse(query: &str) -> Option<DynamicQuery> {
        if let Some(command) = query.strip_prefix("command/") {
            return match command.split('&').next()? {
                "Reset" => Some(DynamicQuery::Reset),
                "Fetch" => Some(DynamicQuery::Fetch),
                _ => None,
            };
        }
        let at = query.rfind("file_set/")?;
        let rooted = query[..at].starts_with('/') && query[..at].ends_with('/');
        FileName::parse(&query[at..]).filter(|_| rooted).map(DynamicQuery::File)
    }
}

/// Facts of the request in a page.
#[derive(Clone, Copy, Debug)]
pub struct PageHead<'a> {
    /// SERVER_SOFTWARE, REMOTE_ADDR, SCRIPT_NAME and QUERY_STRING, as CGI names them (RFC 3875).
    pub software: &'a str,
    pub remote: &'a str,
    pub script: &'a str,
    pub query: &'a str,
    pub visitor: Option<Visitor>,
}

/// Returns a page that contains a file.
pub fn page(head: &PageHead<'_>, file: &[u8]) -> Vec<u8> {
    let mut text = "<html>\n<head><title>A dynamic page</title></head>\n<body>\n".to_owned();
    let cookie = head.visitor.map(|visitor| visitor.to_string());
    for (name, value) in [
        ("SERVER_SOFTWARE", Some(head.software)),
        ("REMOTE_ADDR", Some(head.remote)),
        ("SCRIPT_NAME", Some(head.script)),
        ("QUERY_STRING", Some(head.query)),
        ("COOKIE_STRING", cookie.as_deref()),
    ] {
        if let Some(value) = value {
            text += &format!("<p>{name} = {}\n", escaped(value));
        }
    }
    text += OPEN;
    let mut page = text.into_bytes();
    page.reserve_exact(file.len() + CLOSE.len());
    page.extend_from_slice(file);
    page.extend_from_slice(CLOSE.as_bytes());
    page
}

/// Returns the page of a file of the set with this seed. With the tables, for a visitor with the
/// chosen advertisement, which the response's cookie names.
pub fn page_of_file(
    seed: units::Seed,
    head: &PageHead<'_>,
    name: FileName,
    ads: Option<&Advertising>,
) -> (Vec<u8>, Option<ShownAd>) {
    let mut file = vec![0; name.size() as usize];
    FileContent::new(seed, &name.to_string()).fill(0, &mut file);
    let shown = ads.zip(head.visitor).map(|(ads, visitor)| ads.choose(visitor));
    if let Some(shown) = shown.filter(|_| name.has_ad()) {
        substitute_ad(&mut file, shown.ad);
    }
    (page(head, &file), shown)
}

/// Escapes HTML: data of the peer is shown as text.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Inserts the picture of an advertisement into the placeholders of a file; returns the number of
/// placeholders.
pub fn substitute_ad(file: &mut [u8], ad: u32) -> usize {
    let picture = ad_picture(ad).to_string();
    let (open, close) = (AD_OPEN.as_bytes(), AD_CLOSE.as_bytes());
    let whole = open.len() + picture.len() + close.len();
    let (mut at, mut found) = (0, 0);
    while let Some(next) = file[at..].iter().position(|byte| *byte == open[0]) {
        at += next;
        let Some(place) = file.get_mut(at..at + whole) else { break };
        if place.starts_with(open) && place.ends_with(close) {
            place[open.len()..][..picture.len()].copy_from_slice(picture.as_bytes());
            (found, at) = (found + 1, at + whole);
        } else {
            at += 1;
        }
    }
    found
}

/// Position of the file in the body of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileOfPage<'a> {
    Found(&'a [u8]),
    /// There is no file, or it has another length.
    Missing,
}

/// Returns the `size` bytes between `<pre>` and `</pre>`; each tag may have an additional line end.
pub fn file_of_page(body: &[u8], size: usize) -> FileOfPage<'_> {
    const PRE: &[u8] = b"<pre>";
    let Some(at) = body.windows(PRE.len()).position(|window| window == PRE) else {
        return FileOfPage::Missing;
    };
    let rest = &body[at + PRE.len()..];
    let rest = rest.strip_prefix(b"\r\n").or(rest.strip_prefix(b"\n")).unwrap_or(rest);
    let Some((file, rest)) = rest.split_at_checked(size) else { return FileOfPage::Missing };
    let rest = rest.strip_prefix(b"\r\n").or(rest.strip_prefix(b"\n")).unwrap_or(rest);
    if rest.starts_with(b"</pre>") { FileOfPage::Found(file) } else { FileOfPage::Missing }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fileset::FileContent;
    use units::Seed;

    fn file(name: FileName) -> Vec<u8> {
        let mut bytes = vec![0; name.size() as usize];
        FileContent::new(Seed(1), &name.to_string()).fill(0, &mut bytes);
        bytes
    }

    #[test]
    fn queries_are_files_or_commands() {
        let name = FileName { directory: 1, class: 1, file: 3 };
        for (query, wanted) in [
            ("/file_set/dir00001/class1_3", Some(DynamicQuery::File(name))),
            ("/specweb99/file_set/dir00001/class1_3", Some(DynamicQuery::File(name))),
            ("command/Reset&maxload=100", Some(DynamicQuery::Reset)),
            ("command/Fetch", Some(DynamicQuery::Fetch)),
            ("command/Delete", None),
            ("file_set/dir00001/class1_3", None),
            ("/file_set/dir00001/class1_3/..", None),
            ("", None),
        ] {
            assert_eq!(DynamicQuery::parse(query), wanted, "{query}");
        }
    }

    #[test]
    fn the_file_is_found_in_its_page_again() {
        let name = FileName { directory: 1, class: 1, file: 3 };
        let bytes = file(name);
        let head = PageHead {
            software: "s/1",
            remote: "127.0.0.1",
            script: "/x",
            query: "<pre>&\"",
            visitor: Some(Visitor { user: 1, last_ad: 2 }),
        };
        let page = page(&head, &bytes);
        assert!(file_of_page(&page, bytes.len()) == FileOfPage::Found(&bytes));
        for size in [bytes.len() - 1, bytes.len() + 2, bytes.len() + 1_000, 0] {
            assert!(file_of_page(&page, size) == FileOfPage::Missing, "{size}");
        }
        let text = String::from_utf8(page).unwrap();
        assert!(text.contains("QUERY_STRING = &lt;pre&gt;&amp;&quot;\n"), "{text}");
        assert!(text.contains("COOKIE_STRING = my_cookie=user_id=1&amp;last_ad=2\n"), "{text}");
        assert_eq!(file_of_page(b"<pre>ab</pre>", 2), FileOfPage::Found(b"ab"));
    }

    /// A search finds the place that also follows from the file's content.
    #[test]
    fn an_advertisement_is_put_in_its_place() {
        for (class, places) in [(0, 0), (1, 1), (2, 1), (3, 0)] {
            let name = FileName { directory: 7, class, file: 8 };
            let mut bytes = file(name);
            assert_eq!(substitute_ad(&mut bytes, 77), places, "class {class}");
            let mut wanted = vec![0; bytes.len()];
            FileContent::new(Seed(1), &name.to_string()).with_ad(77).fill(0, &mut wanted);
            assert!(bytes == wanted, "class {class}");
        }
        let mut cut = b"<<!WEB99CAD><IMG SRC=\"/file_set".to_vec();
        assert_eq!(substitute_ad(&mut cut, 1), 0);
    }
}
