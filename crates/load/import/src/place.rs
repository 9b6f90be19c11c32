//! The server of a plan, and the URLs of its steps relative to it.

use crate::names::Names;
use crate::text::{DraftPart, Text};
use url::Url;

/// Placeholder server if the file names none.
pub(crate) const NO_SERVER: &str = "http://localhost:8080";

/// Splits a text that begins like a web URL into its origin and the rest.
pub(crate) fn split_origin(text: &str) -> Option<(Url, usize)> {
    let lower = text.get(..8).unwrap_or(text).to_ascii_lowercase();
    let scheme = if lower.starts_with("http://") { 7 } else { 8 };
    if scheme == 8 && !lower.starts_with("https://") {
        return None;
    }
    let end = text[scheme..].find(['/', '?', '#']).map_or(text.len(), |at| scheme + at);
    let mut url = Url::parse(&text[..end]).ok().filter(Url::has_host)?;
    // a login in the URL is not applied to the plan's server
    let cleared = url.set_username("").and_then(|()| url.set_password(None));
    cleared.ok().map(|()| (url, end))
}

/// Normalizes a URL: with a scheme or a leading slash, without a fragment, spaces and non-ASCII
/// characters percent-encoded.
pub(crate) fn tidy(url: Text) -> Text {
    let mut url = without_fragment(url).map_plain(encode);
    if let Some(DraftPart::Plain(first)) = url.0.first_mut() {
        *first = first.trim_start().to_owned();
        let has_scheme = first.contains("://");
        let host = first.split(['/', '?', '#']).next().unwrap_or_default();
        let like_host = host.contains('.') || host.contains(':') || host == "localhost";
        if !has_scheme && !first.starts_with('/') {
            let start = if like_host { "http://" } else { "/" };
            first.insert_str(0, start);
        }
    }
    url
}

fn without_fragment(url: Text) -> Text {
    let mut out = Text::default();
    for part in url.0 {
        match part {
            DraftPart::Plain(text) => match text.split_once('#') {
                Some((before, _)) => {
                    out.push_str(before);
                    break;
                }
                None => out.push_str(&text),
            },
            part => out.push(part),
        }
    }
    out
}

fn encode(text: &str) -> String {
    use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
    const ODD: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'<').add(b'>').add(b'`');
    utf8_percent_encode(text.trim_matches(['\n', '\r']), ODD).to_string()
}

/// Server of the requests.
#[derive(Debug)]
pub(crate) struct PlanServer {
    /// URL of the plan.
    pub(crate) base: Url,
    /// Origin in the file, which `base` replaces.
    pub(crate) origin: Option<Url>,
    /// A name without a value at the start of URLs, in place of a server.
    pub(crate) unknown: Option<String>,
}

impl PlanServer {
    /// Finds the server of these URLs: the first server that a URL names. `base` overrides it.
    pub(crate) fn new(urls: &[&Text], names: &Names, base: Option<&Url>) -> PlanServer {
        let mut unknown = None;
        for url in urls {
            let full = names.expanded(url, 0);
            if let Some((origin, end)) = split_origin(full.beginning())
                && (end < full.beginning().len() || full.0.len() == 1)
            {
                let base = base.unwrap_or(&origin).clone();
                return PlanServer { base, origin: Some(origin), unknown };
            }
            if let Some(DraftPart::Named(name)) = full.0.first()
                && !names.is_known(name)
            {
                unknown.get_or_insert_with(|| name.clone());
            }
        }
        let fallback = || Url::parse(NO_SERVER).expect("the constant is a URL");
        PlanServer { base: base.cloned().unwrap_or_else(fallback), origin: None, unknown }
    }

    /// Writes a URL as a step does: relative to the base if it has the origin that the base
    /// replaces.
    pub(crate) fn relative(&self, url: &Text, names: &Names) -> Text {
        let full = names.expanded(url, 0);
        let rest = match (split_origin(full.beginning()), full.0.first()) {
            (Some((origin, end)), _)
                if Some(origin.origin()) == self.origin.as_ref().map(Url::origin) =>
            {
                let whole = end < full.beginning().len() || full.0.len() == 1;
                whole.then(|| without_prefix(&full, end))
            }
            (None, Some(DraftPart::Named(name))) if Some(name) == self.unknown.as_ref() => {
                Some(Text(full.0[1..].to_vec()))
            }
            (None, None) => Some(Text::default()),
            (None, Some(DraftPart::Plain(text))) if text.starts_with('/') => Some(full.clone()),
            _ => None,
        };
        let Some(rest) = rest else { return url.clone() };
        // names that represent whole parts of the path stay names
        let rest = if rest.beginning().is_empty() || url.0.len() == full.0.len() {
            rest
        } else {
            kept_names(url, rest)
        };
        let prefix = self.base.path().trim_end_matches('/');
        let mut text = Text::plain(prefix);
        if !rest.beginning().starts_with('/') {
            text.push_str("/");
        }
        text.append(rest);
        text
    }
}

fn without_prefix(text: &Text, end: usize) -> Text {
    let mut out = Text::default();
    for (index, part) in text.0.iter().enumerate() {
        match part {
            DraftPart::Plain(plain) if index == 0 => {
                out.push_str(plain.get(end..).unwrap_or_default())
            }
            part => out.push(part.clone()),
        }
    }
    out
}

/// Returns the part of a URL after its server, with names as written, if the first name contains
/// the whole server.
fn kept_names(url: &Text, expanded: Text) -> Text {
    match &url.0[..] {
        [DraftPart::Named(_), DraftPart::Plain(second), rest @ ..] if second.starts_with('/') => {
            let mut text = Text::plain(second.clone());
            rest.iter().for_each(|part| text.push(part.clone()));
            let grows = expanded.beginning().len() > second.len()
                && !expanded.beginning().starts_with(second.as_str());
            if grows { expanded } else { text }
        }
        [DraftPart::Plain(first), rest @ ..] => match split_origin(first) {
            Some((_, end)) if end < first.len() => {
                let mut text = Text::plain(&first[end..]);
                rest.iter().for_each(|part| text.push(part.clone()));
                text
            }
            _ => expanded,
        },
        _ => expanded,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::variables;

    fn relative(vars: &[(&str, &str)], urls: &[&str], base: Option<&str>) -> Vec<String> {
        let vars =
            vars.iter().map(|(name, value)| ((*name).to_owned(), variables(value))).collect();
        let mut names = Names::new(vars, Vec::new(), &[]);
        let urls: Vec<Text> = urls.iter().map(|url| tidy(variables(url))).collect();
        let base = base.map(|base| base.parse().unwrap());
        let server = PlanServer::new(&urls.iter().collect::<Vec<_>>(), &names, base.as_ref());
        let mut all = vec![server.base.to_string()];
        for url in &urls {
            let text = server.relative(url, &names);
            all.push(names.render(&text, 0));
        }
        all
    }

    #[test]
    fn urls_become_relative_to_the_server_of_the_first_one() {
        let urls = ["http://h:1/a?b=c#d", "https://other/x", "http://h:1", "/e f", "h2.example/y"];
        assert_eq!(
            relative(&[], &urls, None),
            ["http://h:1/", "/a?b=c", "https://other/x", "/", "/e%20f", "http://h2.example/y"]
        );
        assert_eq!(relative(&[], &urls[..1], Some("http://n/p/")), ["http://n/p/", "/p/a?b=c"]);
    }

    #[test]
    fn a_variable_may_be_the_server() {
        let vars = [("base", "http://h/v1"), ("id", "7")];
        assert_eq!(relative(&vars, &["{{base}}/items/{{id}}"], None), ["http://h/", "/v1/items/7"]);
        let vars = [("base", "http://h"), ("id", "7")];
        assert_eq!(
            relative(&vars, &["{{base}}/items/{{id}}", "{{base}}"], None),
            ["http://h/", "/items/{{id}}", "/"]
        );
        assert_eq!(
            relative(&[], &["{{nowhere}}/items", "{{nowhere}}"], None),
            ["http://localhost:8080/", "/items", "/"]
        );
        assert_eq!(relative(&[], &["localhost:{{port}}/x"], None)[0], "http://localhost:8080/");
    }
}
