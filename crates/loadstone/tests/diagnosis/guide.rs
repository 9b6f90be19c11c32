//! docs/design/diagnosis.md has every rule of the diagnosis; `cargo xtask bless` writes it.

use std::path::Path;

const HEAD: &str = "\
# The rules of the diagnosis

[The guide](../guide/ramp.md#what-limits-the-server) describes how to use the findings. This page
has the reasoning, the thresholds and the source of each rule. Times are in seconds, shares from 0
to 1. The program generates this page from the rules it runs (`cargo xtask bless`).

## Rules
";

/// Wraps the paragraphs of a text at 100 columns, after a blank line.
fn wrapped(text: &str) -> String {
    let mut page = "\n".to_owned();
    for line in text.lines() {
        let indent = if line.starts_with("- ") { "  " } else { "" };
        let mut width = 0;
        for word in line.split(' ') {
            let long = word.chars().count();
            if width > 0 && width + 1 + long > 100 {
                page.push('\n');
                page.push_str(indent);
                width = indent.len();
            } else if width > 0 {
                page.push(' ');
                width += 1;
            }
            page.push_str(word);
            width += long;
        }
        page.push('\n');
    }
    page
}

#[test]
fn the_page_has_every_rule() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/design/diagnosis.md");
    let sections = stats::diagnosis::RULES.iter().map(|rule| wrapped(&rule.section()));
    let page: String = std::iter::once(HEAD.to_owned()).chain(sections).collect();
    if std::env::var_os("INSTA_UPDATE").is_some_and(|how| how == "always") {
        std::fs::write(&path, &page).expect("the page is writable");
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == page,
        "docs/design/diagnosis.md is out of date: cargo xtask bless writes it"
    );
}
