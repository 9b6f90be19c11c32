//! References in a page: its links, its parts, its refresh address.

use html5gum::emitters::default::DefaultEmitter;
use html5gum::{HtmlString, StartTag, Token, Tokenizer};
use url::Url;

/// Maximum number of links of one page; any more are dropped.
pub const LINKS_MAX: usize = 10_000;

/// Elements with an attribute that holds a URL, and the purpose of that URL.
const PLACES: [(&str, &str, Use); 19] = [
    ("a", "href", Use::Link),
    ("area", "href", Use::Link),
    ("audio", "src", Use::Part),
    ("body", "background", Use::Part),
    ("embed", "src", Use::Part),
    ("frame", "src", Use::Part),
    ("iframe", "src", Use::Part),
    ("img", "src", Use::Part),
    ("input", "src", Use::Part),
    ("object", "data", Use::Part),
    ("script", "src", Use::Part),
    ("source", "src", Use::Part),
    ("table", "background", Use::Part),
    ("td", "background", Use::Part),
    ("th", "background", Use::Part),
    ("tr", "background", Use::Part),
    ("track", "src", Use::Part),
    ("video", "poster", Use::Part),
    ("video", "src", Use::Part),
];

/// Relations of a `link` element that a browser fetches to show the page.
const SHOWN_RELATIONS: [&str; 4] = ["stylesheet", "icon", "apple-touch-icon", "preload"];

/// Purpose of a URL in a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// A link that a user can follow.
    Link,
    /// A resource that a browser fetches to show the page.
    Part,
    /// `<meta http-equiv="refresh">`: a browser loads the URL without user action.
    Refresh,
}

/// URL in a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The element's name in lowercase: `img`.
    pub element: String,
    /// The `rel` of a `link` element, in lowercase; empty for other elements.
    pub relation: String,
    pub usage: Use,
    /// Absolute URL without a fragment; of any scheme.
    pub url: Url,
}

/// Returns the URLs of a page in document order, with repetitions. `base`: the page's own URL,
/// until a `base` element overrides it. Invalid URLs are skipped, and so are comments and scripts.
pub fn links(html: &[u8], base: &Url) -> Vec<Link> {
    let mut base = base.clone();
    let mut stated = false;
    let mut found = Vec::new();
    let mut emitter = DefaultEmitter::<()>::default();
    // script content is not markup
    emitter.naively_switch_states(true);
    for token in Tokenizer::new_with_emitter(html, emitter).flatten() {
        let Token::StartTag(tag) = token else { continue };
        let element = text(&tag.name);
        if element == "base" {
            // of several base elements the first one counts (HTML, section 4.2.3)
            let href = attribute(&tag, "href").filter(|_| !stated);
            if let Some(url) = href.and_then(|href| base.join(href.trim()).ok()) {
                (base, stated) = (url, true);
            }
            continue;
        }
        let relation = match element.as_str() {
            "link" => attribute(&tag, "rel").unwrap_or_default().to_ascii_lowercase(),
            _ => String::new(),
        };
        for (usage, reference) in references(&element, &tag) {
            if found.len() == LINKS_MAX {
                return found;
            }
            let reference = reference.trim();
            let joined = base.join(reference).ok().filter(|_| !reference.is_empty());
            if let Some(mut url) = joined {
                url.set_fragment(None);
                let (element, relation) = (element.clone(), relation.clone());
                found.push(Link { element, relation, usage, url });
            }
        }
    }
    found
}

/// Returns the URLs of one element, as written.
fn references(element: &str, tag: &StartTag<()>) -> Vec<(Use, String)> {
    match element {
        "link" => {
            let relations = attribute(tag, "rel").unwrap_or_default().to_ascii_lowercase();
            let shown =
                relations.split_ascii_whitespace().any(|word| SHOWN_RELATIONS.contains(&word));
            let usage = if shown { Use::Part } else { Use::Link };
            attribute(tag, "href").map(|href| (usage, href)).into_iter().collect()
        }
        "meta" => refresh(tag).map(|url| (Use::Refresh, url)).into_iter().collect(),
        _ => PLACES
            .iter()
            .filter(|(name, ..)| *name == element)
            .filter_map(|(_, name, usage)| Some((*usage, attribute(tag, name)?)))
            .collect(),
    }
}

/// Returns the URL of `<meta http-equiv="refresh" content="5; url=/next">`.
fn refresh(tag: &StartTag<()>) -> Option<String> {
    let what = attribute(tag, "http-equiv")?;
    let content = attribute(tag, "content").filter(|_| what.eq_ignore_ascii_case("refresh"))?;
    let (_, rest) = content.split_once([';', ','])?;
    let rest = rest.trim();
    let named = rest.get(..3).is_some_and(|word| word.eq_ignore_ascii_case("url"));
    let value = if named { rest[3..].trim_start().strip_prefix('=').unwrap_or(rest) } else { rest };
    let value = value.trim().trim_matches(['\'', '"']);
    (!value.is_empty()).then(|| value.to_owned())
}

pub(crate) fn attribute(tag: &StartTag<()>, name: &str) -> Option<String> {
    tag.attributes.get(name.as_bytes()).map(|value| text(value))
}

pub(crate) fn text(bytes: &HtmlString) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(html: &str) -> Vec<String> {
        let base = Url::parse("http://h/dir/page.html").unwrap();
        let line = |link: Link| format!("{:?} {} {}", link.usage, link.element, link.url);
        links(html.as_bytes(), &base).into_iter().map(line).collect()
    }

    #[test]
    fn links_and_parts_in_their_order() {
        let html = "<html><head><link rel='shortcut ICON' href=/i.ico><link rel=next href=p2>\
                    <link rel=stylesheet href=\"c.css\"></head><body background=bg.png>\
                    <A HREF='../up?a=1&amp;b=2#there'>up</A><img alt=x src = a.png>\
                    <video poster=v.png src=v.mp4></video><object data=o></object>\
                    <frame src=//other/f><form action=/never></form>";
        assert_eq!(
            found(html),
            [
                "Part link http://h/i.ico",
                "Link link http://h/dir/p2",
                "Part link http://h/dir/c.css",
                "Part body http://h/dir/bg.png",
                "Link a http://h/up?a=1&b=2",
                "Part img http://h/dir/a.png",
                "Part video http://h/dir/v.png",
                "Part video http://h/dir/v.mp4",
                "Part object http://h/dir/o",
                "Part frame http://other/f",
            ]
        );
    }

    #[test]
    fn text_and_invalid_urls_are_skipped() {
        let html = "<!-- <img src=c.png> --><script src=s.js>document.write('<img src=w.png>')\
                    </script><style>a { b: url(<img src=u.png>) }</style><img><img src=''>\
                    <img src='http://[bad/'><a href='mailto:me@h'>m</a><p href=x><img src=l.png";
        assert_eq!(found(html), ["Part script http://h/dir/s.js", "Link a mailto:me@h"]);
    }

    #[test]
    fn a_base_and_a_refresh_are_followed() {
        let html = "<base href=/deep/er/><a href=x>x</a><base href=y/><a href=x>x</a>";
        assert_eq!(found(html), ["Link a http://h/deep/er/x", "Link a http://h/deep/er/x"]);
        for (content, wanted) in [
            ("0; URL='/next'", "http://h/next"),
            ("5,next", "http://h/dir/next"),
            ("5; url = n?x=1", "http://h/dir/n?x=1"),
        ] {
            let html = format!("<meta HTTP-EQUIV=Refresh content=\"{content}\">");
            assert_eq!(found(&html), [format!("Refresh meta {wanted}")], "{content}");
        }
        assert!(found("<meta http-equiv=refresh content=5>").is_empty());
        assert!(found("<meta name=refresh content='0; url=/x'>").is_empty());
    }

    #[test]
    fn a_page_of_nothing_but_links_is_bounded() {
        let html = "<a href=x>".repeat(LINKS_MAX + 5);
        assert_eq!(found(&html).len(), LINKS_MAX);
        assert!(found("<a href=\u{0}\u{fffd} <<<a <a href=\"").len() <= 1);
    }
}
