//! CSS selectors over HTML, for captures from a page. The tree is [`crate::html_tree`]'s. The
//! supported part of Selectors Level 4 consists of names, classes, ids, attributes and nesting.
//! (The libraries that support all of it are under a license that `deny.toml` does not permit.)

use crate::html_tree::{HtmlTree, HtmlVisit, NodeContent};

/// Maximum number of open elements that are tracked; deeper elements are ignored.
const DEPTH_MAX: usize = 1_000;
/// Maximum length of a selector's text in bytes.
const SELECTOR_BYTES_MAX: usize = 4_096;
/// Maximum number of bytes of an element's text, and of all elements' texts together: text inside
/// nested elements belongs to each of them.
const TEXT_BYTES_MAX: usize = 1 << 20;
const TEXTS_BYTES_MAX: usize = 16 << 20;

/// List of selectors, of which one must match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selector {
    text: String,
    /// Each selector from the outermost compound to the element itself.
    all: Vec<Vec<(Relation, Compound)>>,
}

/// Relation of a compound to the previous one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Relation {
    /// Descendant: a space.
    Inside,
    /// Child: `>`.
    Child,
}

/// Compound such as `input.big[name=token]`: all conditions must hold for one element.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Compound {
    /// Element name in lowercase; `None` for any element.
    element: Option<String>,
    tests: Vec<AttributeTest>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct AttributeTest {
    name: String,
    wants: AttributeRule,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum AttributeRule {
    There,
    Equals(String),
    /// One of the words separated by white space.
    Word(String),
    /// The value itself, or the value followed by a hyphen.
    Dashed(String),
    Begins(String),
    Ends(String),
    Contains(String),
}

/// Ancestor of the current element, or the element itself.
#[derive(Clone, Copy, Debug)]
struct Opened<'a> {
    name: &'a str,
    attributes: &'a [(String, String)],
}

impl Selector {
    /// # Errors
    /// Fails with a sentence if the text is not a selector, or uses an unsupported kind.
    pub fn parse(text: &str) -> Result<Selector, String> {
        if text.len() > SELECTOR_BYTES_MAX {
            return Err(format!("a selector has at most {SELECTOR_BYTES_MAX} bytes"));
        }
        let mut cursor = Cursor { rest: text };
        let mut all = Vec::new();
        loop {
            let one = cursor.complex();
            all.push(one.map_err(|why| format!("{text:?} is not a CSS selector: {why}"))?);
            if !cursor.take(",") {
                break;
            }
        }
        if !cursor.rest.is_empty() {
            return Err(format!("{text:?} is not a CSS selector: {:?} is left over", cursor.rest));
        }
        Ok(Selector { text: text.to_owned(), all })
    }

    /// Returns the selector as written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns for each matching element, in tree order, the value of `attribute` or, without
    /// `attribute`, its text with white space folded. Elements without the attribute are omitted.
    /// At most `most` values.
    pub fn find(&self, html: &[u8], attribute: Option<&str>, most: usize) -> Vec<String> {
        let tree = HtmlTree::parse(html);
        let mut search = PageSearch {
            selector: self,
            attribute,
            most,
            found: Vec::new(),
            room: TEXTS_BYTES_MAX,
            depth: 0,
            open: Vec::new(),
            gathering: Vec::new(),
        };
        tree.walk(&mut |visit| search.visit(visit));
        let mut found = search.found;
        if attribute.is_none() {
            for text in &mut found {
                *text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            }
        }
        found
    }

    /// Returns whether the innermost open element matches.
    fn matches(&self, open: &[Opened<'_>]) -> bool {
        self.all.iter().any(|one| {
            let Some(((_, last), _)) = one.split_last() else { return false };
            let Some((element, outer)) = open.split_last() else { return false };
            last.holds(element) && nested(one, outer)
        })
    }
}

/// Returns whether the part before the last compound of `one` matches the ancestors. Takes time
/// proportional to compounds times depth for any page: for each prefix of the selector, the
/// elements that can end it are kept.
fn nested(one: &[(Relation, Compound)], outer: &[Opened<'_>]) -> bool {
    let mut ends: Option<Vec<bool>> = None;
    for pair in one.windows(2) {
        let ((relation, wanted), (next, _)) = (&pair[0], &pair[1]);
        let mut seen = false;
        let here = (0..outer.len()).map(|at| {
            let before = match (&ends, relation) {
                (None, _) => true,
                (Some(ends), Relation::Child) => at > 0 && ends[at - 1],
                (Some(ends), Relation::Inside) => {
                    let inside = seen;
                    seen |= ends[at];
                    inside
                }
            };
            before && wanted.holds(&outer[at])
        });
        let here: Vec<bool> = here.collect();
        let last = std::ptr::eq(pair, &one[one.len() - 2..]);
        if last {
            return match next {
                Relation::Child => here.last().copied().unwrap_or(false),
                Relation::Inside => here.contains(&true),
            };
        }
        ends = Some(here);
    }
    true
}

/// Search for matching elements in a page.
struct PageSearch<'a> {
    selector: &'a Selector,
    attribute: Option<&'a str>,
    most: usize,
    found: Vec<String>,
    /// Number of bytes of text that may still be kept.
    room: usize,
    /// Number of enclosing elements, and the tracked ones among them.
    depth: usize,
    open: Vec<Opened<'a>>,
    /// Elements whose text is being collected: depth of the element, row in `found`.
    gathering: Vec<(usize, usize)>,
}

impl<'a> PageSearch<'a> {
    /// Visits a node; returns false if the walk ends.
    fn visit(&mut self, visit: HtmlVisit<'a>) -> bool {
        match visit {
            HtmlVisit::Enter(NodeContent::Element { name, attributes }) => {
                self.depth += 1;
                if self.depth <= DEPTH_MAX {
                    self.open.push(Opened { name, attributes });
                    self.look();
                }
            }
            HtmlVisit::Leave(NodeContent::Element { .. }) => {
                self.open.truncate(self.depth - 1);
                self.depth -= 1;
                self.gathering.retain(|(depth, _)| *depth <= self.depth);
            }
            HtmlVisit::Enter(NodeContent::Text(part)) => self.gather(part),
            HtmlVisit::Enter(NodeContent::Other) | HtmlVisit::Leave(_) => {}
        }
        self.found.len() < self.most || !self.gathering.is_empty()
    }

    /// Checks the innermost open element.
    fn look(&mut self) {
        if self.found.len() >= self.most || !self.selector.matches(&self.open) {
            return;
        }
        let Some(element) = self.open.last() else { return };
        match self.attribute {
            Some(name) => {
                let is = |(known, _): &&(String, String)| known.eq_ignore_ascii_case(name);
                self.found
                    .extend(element.attributes.iter().find(is).map(|(_, value)| value.clone()));
            }
            None => {
                self.gathering.push((self.depth, self.found.len()));
                self.found.push(String::new());
            }
        }
    }

    fn gather(&mut self, part: &str) {
        for (_, row) in &self.gathering {
            let text = &mut self.found[*row];
            let fits = (TEXT_BYTES_MAX - text.len()).min(self.room);
            let kept = &part[..part.floor_char_boundary(fits)];
            text.push_str(kept);
            self.room -= kept.len();
        }
    }
}

impl Compound {
    fn holds(&self, element: &Opened<'_>) -> bool {
        let named = self.element.as_ref().is_none_or(|name| name == element.name);
        named && self.tests.iter().all(|test| test.holds(element))
    }
}

impl AttributeTest {
    fn holds(&self, element: &Opened<'_>) -> bool {
        let is = |(name, _): &&(String, String)| name.eq_ignore_ascii_case(&self.name);
        let found = element.attributes.iter().find(is);
        let Some((_, value)) = found else { return false };
        match &self.wants {
            AttributeRule::There => true,
            AttributeRule::Equals(wanted) => value == wanted,
            AttributeRule::Word(wanted) => value.split_ascii_whitespace().any(|it| it == wanted),
            AttributeRule::Dashed(wanted) => value
                .strip_prefix(wanted.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('-')),
            AttributeRule::Begins(wanted) => value.starts_with(wanted.as_str()),
            AttributeRule::Ends(wanted) => value.ends_with(wanted.as_str()),
            AttributeRule::Contains(wanted) => value.contains(wanted.as_str()),
        }
    }
}

/// The unread rest of a selector.
struct Cursor<'a> {
    rest: &'a str,
}

impl<'a> Cursor<'a> {
    fn space(&mut self) -> bool {
        let trimmed = self.rest.trim_start();
        let any = trimmed.len() < self.rest.len();
        self.rest = trimmed;
        any
    }

    fn take(&mut self, sign: &str) -> bool {
        match self.rest.strip_prefix(sign) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// Parses compounds with their relations, up to a comma or the end.
    fn complex(&mut self) -> Result<Vec<(Relation, Compound)>, String> {
        let mut parts = Vec::new();
        let mut relation = Relation::Inside;
        self.space();
        loop {
            parts.push((relation, self.compound()?));
            let spaced = self.space();
            if self.rest.is_empty() || self.rest.starts_with(',') {
                return Ok(parts);
            }
            relation = if self.take(">") { Relation::Child } else { Relation::Inside };
            self.space();
            if relation == Relation::Inside && (!spaced || self.rest.starts_with(['+', '~', '|'])) {
                return Err(format!(
                    "{:?} is not supported; supported are names, #id, .class, [attribute], spaces, > and commas",
                    self.rest
                ));
            }
        }
    }

    fn compound(&mut self) -> Result<Compound, String> {
        let mut compound = Compound::default();
        let start = self.rest.len();
        if !self.take("*") && self.rest.starts_with(is_name) {
            compound.element = Some(self.name()?.to_ascii_lowercase());
        }
        loop {
            let test = if self.take("#") {
                AttributeTest { name: "id".into(), wants: AttributeRule::Equals(self.name()?) }
            } else if self.take(".") {
                AttributeTest { name: "class".into(), wants: AttributeRule::Word(self.name()?) }
            } else if self.take("[") {
                self.attribute()?
            } else if self.rest.starts_with(':') {
                return Err(format!("{:?}: pseudo-classes are not known here", self.rest));
            } else {
                break;
            };
            compound.tests.push(test);
        }
        if self.rest.len() == start {
            return Err(if self.rest.is_empty() {
                "an element is missing".to_owned()
            } else {
                format!("an element must precede {:?}", self.rest)
            });
        }
        Ok(compound)
    }

    /// Parses an attribute test after its `[`.
    fn attribute(&mut self) -> Result<AttributeTest, String> {
        self.space();
        let name = self.name()?.to_ascii_lowercase();
        self.space();
        if self.take("]") {
            return Ok(AttributeTest { name, wants: AttributeRule::There });
        }
        let rule: fn(String) -> AttributeRule = match () {
            () if self.take("~=") => AttributeRule::Word,
            () if self.take("|=") => AttributeRule::Dashed,
            () if self.take("^=") => AttributeRule::Begins,
            () if self.take("$=") => AttributeRule::Ends,
            () if self.take("*=") => AttributeRule::Contains,
            () if self.take("=") => AttributeRule::Equals,
            () => return Err(format!("{:?} is not a test of an attribute", self.rest)),
        };
        self.space();
        let value = self.value()?;
        self.space();
        if !self.take("]") {
            return Err("a [ has no ]".to_owned());
        }
        Ok(AttributeTest { name, wants: rule(value) })
    }

    fn value(&mut self) -> Result<String, String> {
        for quote in ["\"", "'"] {
            if self.take(quote) {
                let (value, rest) =
                    self.rest.split_once(quote).ok_or("a quotation mark is not closed")?;
                self.rest = rest;
                return Ok(value.to_owned());
            }
        }
        self.name()
    }

    fn name(&mut self) -> Result<String, String> {
        let end = self.rest.find(|c| !is_name(c)).unwrap_or(self.rest.len());
        let (name, rest) = self.rest.split_at(end);
        if name.is_empty() {
            return Err(format!("a name is missing before {:?}", self.rest));
        }
        self.rest = rest;
        Ok(name.to_owned())
    }
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '-' || c == '_' || !c.is_ascii()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &[u8] = b"<!doctype html><html><body class='wide dark'>\
        <form id=login action='/in'><p>Name <input name=name>\
        <input type=hidden name=csrf value='a&amp;b'></p></form>\
        <script>if (1 < 2) { document.write('<b>no</b>') }</script>\
        <ul><li class=item data-id=1>One <b>bold</b>\n thing</li>\
        <li class='item last' data-id=2>Two<br/>lines</li></ul></body></html>";

    fn found(selector: &str, attribute: Option<&str>) -> Vec<String> {
        Selector::parse(selector).unwrap().find(PAGE, attribute, 100)
    }

    #[test]
    fn elements_are_found_by_name_class_id_attribute_and_nesting() {
        assert_eq!(found("input[name=csrf]", Some("value")), ["a&b"]);
        assert_eq!(found("#login", Some("action")), ["/in"]);
        assert_eq!(found("li.item", None), ["One bold thing", "Twolines"]);
        assert_eq!(found("li.item.last", Some("data-id")), ["2"]);
        assert_eq!(found("body > ul > li", Some("data-id")), ["1", "2"]);
        assert_eq!(found("body > li", Some("data-id")), [""; 0]);
        assert_eq!(found("body li b", None), ["bold"]);
        assert_eq!(found("form input, li", Some("name")), ["name", "csrf"]);
        assert_eq!(found("[type^=hid][name$=\"rf\"]", Some("name")), ["csrf"]);
        assert_eq!(found("*[class~=dark]", Some("class")), ["wide dark"]);
        assert_eq!(found("LI", Some("data-id")), ["1", "2"]);
        assert_eq!(found("script b", None), [""; 0], "a script holds no markup");
    }

    #[test]
    fn a_slash_closes_an_element_of_svg_alone() {
        let texts = |selector: &str, page: &str| {
            Selector::parse(selector).unwrap().find(page.as_bytes(), None, 100)
        };
        assert_eq!(texts("p", "<p/>one</p> two"), ["one"]);
        assert_eq!(texts("div > b", "<div/><b>in</b></div><b>out</b>"), ["in"]);
        assert_eq!(texts("g", "<svg><g/>one</svg>"), [""]);
        assert_eq!(texts("svg", "<svg/>one"), [""]);
        assert_eq!(texts("p", "<svg><foreignObject><p/>one</p></foreignObject></svg>"), ["one"]);
        assert_eq!(texts("br, img", "<br/>one<img>two"), ["", ""]);
    }

    /// Pages without optional end tags, as parsed by Chromium 156 (`--dump-dom`).
    #[test]
    fn a_page_is_the_tree_that_a_browser_makes() {
        const LISTS: &str = "<!doctype html><ul><li>1<li class=sel>2<ul><li>a<li>b</ul><li>3</ul>\
            <table><tr><td>a<td>b<tr><td>c<td>d</table>\
            <select><option>x<option class=o>y<optgroup label=g><option>z</select>\
            <p class=q>one<p>two<div>three</div>four<dl><dt>t<dd>d<dt>u<dd>e</dl>";
        const TABLE: &str = "<table>out<tr><td>in</td><b>fostered</b></tr>\
            <caption>cap<tbody><tr><th>h</table>";
        const NESTED: &str = "<p>a<b>b<p>c</b>d<a href=1>x<a href=2>y</a>\
            <h1>h<h2>i</h1><button>u<button>v";
        const HEAD: &str = "<title>a<b></title><script><p>no</p></script><meta name=m content=c>\
            <noscript><i id=n>n</i></noscript><template><i>t</i></template><body class=w>\
            <html lang=de><textarea>\n<p>k</textarea><svg><title><p>s</title><linearGradient id='l'/></svg>";
        for (page, selector, texts) in [
            (LISTS, "li.sel", &["2ab"][..]),
            (LISTS, "ul > li", &["1", "2ab", "a", "b", "3"]),
            (LISTS, "li li", &["a", "b"]),
            (LISTS, "table > tbody > tr > td", &["a", "b", "c", "d"]),
            (LISTS, "table > tr", &[]),
            (LISTS, "option.o", &["y"]),
            (LISTS, "select > option", &["x", "y"]),
            (LISTS, "optgroup option", &["z"]),
            (LISTS, "p", &["one", "two"]),
            (LISTS, "p.q", &["one"]),
            (LISTS, "body > div", &["three"]),
            (LISTS, "dt", &["t", "u"]),
            (LISTS, "dl > dd", &["d", "e"]),
            (TABLE, "table b", &[]),
            (TABLE, "body > b", &["fostered"]),
            (TABLE, "body", &["outfosteredincaph"]),
            (TABLE, "caption", &["cap"]),
            (TABLE, "th, td", &["in", "h"]),
            (NESTED, "p", &["ab", "cdxy"]),
            (NESTED, "p > b", &["b", "c"]),
            (NESTED, "a", &["x", "y"]),
            (NESTED, "a a", &[]),
            (NESTED, "h1, h2", &["h", "i"]),
            (NESTED, "button", &["u", "v"]),
            (HEAD, "title", &["a<b>", "s"]),
            (HEAD, "p", &["s"]),
            (HEAD, "i", &["n"]),
            (HEAD, "html[lang=de] > body.w > textarea", &["<p>k"]),
            (HEAD, "lineargradient#l", &[""]),
            ("", "html > head, body", &["", ""]),
            ("x", "body", &["x"]),
            ("<frameset><frame></frameset><p>no", "p", &[]),
        ] {
            let found = Selector::parse(selector).unwrap().find(page.as_bytes(), None, 100);
            assert_eq!(found, texts, "{selector} in {page}");
        }
    }

    #[test]
    fn a_page_that_multiplies_its_elements_is_bounded() {
        // each paragraph gets all of them again
        let opened: String = (0..900).map(|row| format!("<b id={row}>")).collect();
        let page = format!("<p>{opened}{}", "<p>x".repeat(3_000));
        let found = Selector::parse("p").unwrap().find(page.as_bytes(), None, usize::MAX);
        assert!(found.len() > 100 && found.len() < 3_000, "{}", found.len());
    }

    #[test]
    fn the_search_stops_at_the_wanted_number() {
        let one = Selector::parse("li").unwrap().find(PAGE, None, 1);
        assert_eq!(one, ["One bold thing"]);
    }

    #[test]
    fn texts_are_bounded_in_bytes_each_and_together() {
        let divs = Selector::parse("div").unwrap();
        let page = |deep: usize, text: &str| [&"<div>".repeat(deep), text].concat().into_bytes();
        let found = divs.find(&page(1, &"é".repeat(TEXT_BYTES_MAX)), None, 1);
        assert_eq!(found[0].len(), TEXT_BYTES_MAX);
        // one byte before, so that the bound lies inside a character
        let found = divs.find(&page(1, &["a", &"é".repeat(TEXT_BYTES_MAX)].concat()), None, 1);
        assert_eq!(found[0].len(), TEXT_BYTES_MAX - 1);
        let found = divs.find(&page(999, &"x".repeat(1 << 20)), None, usize::MAX);
        // html and body enclose them
        assert_eq!(found.len(), 998);
        assert_eq!(found.iter().map(String::len).sum::<usize>(), TEXTS_BYTES_MAX);
    }

    #[test]
    fn an_invalid_selector_is_reported() {
        for (text, why) in [
            ("", "an element is missing"),
            ("li:first-child", "pseudo-classes"),
            ("a + b", "is not supported"),
            ("a[href", "is not a test of an attribute"),
            ("a[href=x", "a [ has no ]"),
            ("a[href='x]", "quotation mark"),
            ("a,,b", "an element must precede"),
            ("a >", "an element is missing"),
            ("a {", "an element must precede"),
        ] {
            let error = Selector::parse(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    proptest::proptest! {
        #[test]
        fn random_bytes_break_nothing(selector in ".{0,40}", html in ".{0,200}") {
            if let Ok(selector) = Selector::parse(&selector) {
                drop(selector.find(html.as_bytes(), None, 3));
            }
        }
    }
}
