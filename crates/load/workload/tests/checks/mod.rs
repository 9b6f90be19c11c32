//! Rules for arbitrary bytes; the fuzz target of the same name runs them too.

use url::Url;
use workload::{LINKS_MAX, links};

/// Parses arbitrary bytes as a page: the result is a bounded list of absolute URLs without
/// fragments, the same each time.
pub(crate) fn page_links(bytes: &[u8]) {
    let base = Url::parse("http://host:81/folder/page?x=1").expect("a URL");
    let found = links(bytes, &base);
    assert!(found.len() <= LINKS_MAX);
    for link in &found {
        assert!(link.url.fragment().is_none(), "{}", link.url);
        assert_eq!(Url::parse(link.url.as_str()).as_ref(), Ok(&link.url));
        assert!(!link.element.is_empty());
    }
    assert_eq!(found, links(bytes, &base));
}
