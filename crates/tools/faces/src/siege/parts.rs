//! Resources that an HTML page makes a user request: style sheets, scripts, images and backgrounds,
//! and a refresh to another page.

use url::Url;
use workload::{Link, Use, links};

/// References of a page, in document order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PageReferences {
    pub(super) parts: Vec<Url>,
    /// Target of a `META` element with `http-equiv="refresh"`.
    pub(super) refresh: Option<Url>,
}

/// Elements whose parts siege fetches; for a `link`, only style sheets.
const FETCHED: [&str; 7] = ["img", "script", "body", "table", "td", "th", "tr"];

/// Parses a page with the URL `base`.
pub(super) fn read(html: &[u8], base: &Url) -> PageReferences {
    let mut page = PageReferences::default();
    for link in links(html, base) {
        if link.usage == Use::Refresh {
            page.refresh = Some(link.url);
        } else if fetched(&link) {
            page.parts.push(link.url);
        }
    }
    page
}

fn fetched(link: &Link) -> bool {
    FETCHED.contains(&link.element.as_str())
        || link.relation.split_ascii_whitespace().any(|relation| relation == "stylesheet")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_names_its_parts_in_order() {
        let html = br#"<LINK REL="stylesheet" HREF="/a.css"><link rel=icon href=/i.ico>
            <script src='b.js'></script><body background="/bg.png"><img alt=x src=c.png>
            <a href="/z">z</a><iframe src="/f.html"></iframe><img src="">
            <META http-equiv=refresh content="0; url=/next">"#;
        let base = Url::parse("http://h/d/").expect("a URL");
        let page = read(html, &base);
        let paths: Vec<&str> = page.parts.iter().map(Url::path).collect();
        assert_eq!(paths, ["/a.css", "/d/b.js", "/bg.png", "/d/c.png"]);
        assert_eq!(page.refresh.as_ref().map(Url::path), Some("/next"));
    }
}
