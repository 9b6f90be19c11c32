//! One page of the guide as HTML, and its sections for the search.

use crate::tidy::anchor;
use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, TagEnd, html};

/// A rendered page.
pub(super) struct Page {
    pub(super) html: String,
    pub(super) sections: Vec<Section>,
    /// Images, as paths from the guide's folder.
    pub(super) images: Vec<String>,
}

/// The text below one heading.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Section {
    pub(super) title: String,
    pub(super) anchor: String,
    pub(super) text: String,
}

impl Section {
    /// Renders an array element of the search index.
    pub(super) fn json(&self, page: &str) -> String {
        let words = self.text.split_whitespace().collect::<Vec<_>>().join(" ");
        let to = format!("{page}#{}", self.anchor);
        let row = serde_json::json!([to, self.title, words]);
        format!("{row},\n")
    }
}

/// Returns the file name of a rendered page: README.md becomes index.html.
pub(super) fn html_name(file: &str) -> String {
    let stem = file.trim_end_matches(".md");
    format!("{}.html", if stem == "README" { "index" } else { stem })
}

/// Escapes text for HTML.
pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

impl Page {
    /// Renders Markdown. Comments with instructions for `cargo xtask guide` are dropped.
    pub(super) fn render(markdown: &str, repository: &str) -> Page {
        let mut page = Page { html: String::new(), sections: Vec::new(), images: Vec::new() };
        let events: Vec<Event<'_>> = Parser::new_ext(markdown, Options::ENABLE_TABLES).collect();
        let mut kept = Vec::with_capacity(events.len());
        let mut heading = None;
        for (index, event) in events.iter().enumerate() {
            let event = match event {
                Event::Html(_) | Event::InlineHtml(_) => continue,
                Event::Start(Tag::HtmlBlock) | Event::End(TagEnd::HtmlBlock) => continue,
                Event::Start(Tag::Heading { level, classes, attrs, .. }) => {
                    let title = heading_text(&events[index..]);
                    let id = anchor(&title);
                    heading = Some(title.clone());
                    page.sections.push(Section { title, anchor: id.clone(), ..Section::default() });
                    Event::Start(Tag::Heading {
                        level: *level,
                        id: Some(CowStr::from(id)),
                        classes: classes.clone(),
                        attrs: attrs.clone(),
                    })
                }
                Event::End(TagEnd::Heading(_)) => {
                    heading = None;
                    event.clone()
                }
                Event::Start(Tag::Link { link_type, dest_url, title, id }) => {
                    let dest_url = CowStr::from(target(dest_url, repository));
                    let title = title.clone();
                    let id = id.clone();
                    Event::Start(Tag::Link { link_type: *link_type, dest_url, title, id })
                }
                Event::Start(Tag::Image { link_type, dest_url, title, id }) => {
                    page.images.push(dest_url.to_string());
                    let name = dest_url.rsplit('/').next().unwrap_or_default();
                    let dest_url = CowStr::from(format!("images/{name}"));
                    let title = title.clone();
                    let id = id.clone();
                    Event::Start(Tag::Image { link_type: *link_type, dest_url, title, id })
                }
                other => other.clone(),
            };
            if heading.is_none() {
                page.collect(&event);
            }
            kept.push(event);
        }
        html::push_html(&mut page.html, kept.into_iter());
        page
    }

    /// Adds an event's text to the current section.
    fn collect(&mut self, event: &Event<'_>) {
        let Some(section) = self.sections.last_mut() else { return };
        match event {
            Event::Text(text) | Event::Code(text) => section.text.push_str(text),
            Event::SoftBreak | Event::HardBreak | Event::End(_) => section.text.push(' '),
            _ => {}
        }
    }
}

/// Returns the text of the heading that begins here.
fn heading_text(events: &[Event<'_>]) -> String {
    let inside = events.iter().take_while(|event| !matches!(event, Event::End(TagEnd::Heading(_))));
    let text = inside.filter_map(|event| match event {
        Event::Text(text) | Event::Code(text) => Some(text.as_ref()),
        _ => None,
    });
    text.collect()
}

/// Returns the target of a link in the book: pages of the guide become HTML files, other files of
/// the repository get the prefix.
fn target(link: &str, repository: &str) -> String {
    if link.contains(':') || link.starts_with('#') {
        return link.to_owned();
    }
    let (file, anchor) = match link.split_once('#') {
        Some((file, anchor)) => (file, format!("#{anchor}")),
        None => (link, String::new()),
    };
    match file.strip_prefix("../../") {
        Some(rest) => format!("{repository}/{rest}{anchor}"),
        None => match file.strip_prefix("../") {
            Some(rest) => format!("{repository}/docs/{rest}{anchor}"),
            None => format!("{}{anchor}", html_name(file)),
        },
    }
}
