//! A page as marks, the blocks that belong to them, and the rest.

use anyhow::{Context, bail};

/// A comment of a page, one to a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    /// `<!-- site: OPTIONS -->`: from here on `{site}` is a site with these options.
    Site(String),
    /// `<!-- start 8443: COMMAND -->`: a server, until the page's end.
    Start { port: u16, command: String },
    /// `<!-- run: COMMAND -->`: done in silence; it must end with 0.
    Run(String),
    /// `<!-- file: NAME -->`: the block that follows is put into this file.
    File { name: String, text: String },
    /// `<!-- output: COMMAND -->`: the block that follows is what this prints.
    Output(Shown),
}

/// `<!-- output+err exit 1: COMMAND -->`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shown {
    pub(super) command: String,
    /// Standard error as well.
    pub(super) errors: bool,
    pub(super) code: i32,
}

impl Shown {
    /// A measurement may turn out INVALID on a busy machine, and then has nothing to say about an
    /// objective either: 4 will do where 0 or 1 was expected.
    pub(super) fn allows(&self, code: i32) -> bool {
        code == self.code || (code == 4 && (0..=1).contains(&self.code))
    }
}

enum Piece {
    /// Lines as they stand.
    Own(String),
    Mark(Mark),
    /// What a mark's command printed, without its fences.
    Block,
}

pub(super) struct Page {
    pieces: Vec<Piece>,
}

impl Page {
    /// # Errors
    /// A mark that is none, a fence without its end, a file without its block.
    pub(super) fn parse(text: &str) -> anyhow::Result<Page> {
        let mut pieces = Vec::new();
        let mut lines = text.lines().enumerate().peekable();
        let mut fenced = false;
        while let Some((index, line)) = lines.next() {
            pieces.push(Piece::Own(format!("{line}\n")));
            if line.starts_with("```") {
                fenced = !fenced;
            }
            if fenced {
                continue;
            }
            let at = || format!("line {}", index + 1);
            let Some(mut mark) = mark(line).with_context(at)? else { continue };
            let with_block = matches!(mark, Mark::Output(_) | Mark::File { .. });
            let mut body = None;
            while with_block && lines.peek().is_some_and(|(_, next)| next.is_empty()) {
                lines.next();
            }
            if with_block && lines.peek().is_some_and(|(_, next)| next.starts_with("```")) {
                lines.next();
                let mut text = String::new();
                loop {
                    let (_, line) =
                        lines.next().with_context(|| format!("{}: open fence", at()))?;
                    if line == "```" {
                        break;
                    }
                    text.push_str(line);
                    text.push('\n');
                }
                body = Some(text);
            }
            let is_output = matches!(mark, Mark::Output(_));
            if let Mark::File { text, .. } = &mut mark {
                *text = body.with_context(|| format!("{}: a file needs a block", at()))?;
                pieces.push(Piece::Own(format!("```\n{text}```\n")));
            }
            pieces.push(Piece::Mark(mark));
            if is_output {
                pieces.push(Piece::Block);
                // a blank line parts the block from a paragraph that stood right behind the mark
                if lines.peek().is_some_and(|(_, next)| !next.is_empty()) {
                    pieces.push(Piece::Own("\n".to_owned()));
                }
            }
        }
        Ok(Page { pieces })
    }

    pub(super) fn marks(&self) -> impl Iterator<Item = &Mark> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Mark(mark) => Some(mark),
            Piece::Own(_) | Piece::Block => None,
        })
    }

    /// The page with a new text in each output's block.
    pub(super) fn filled(&self, blocks: &[String]) -> String {
        let mut blocks = blocks.iter();
        let mut text = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Own(own) => text.push_str(own),
                Piece::Mark(_) => {}
                Piece::Block => {
                    let block = blocks.next().map_or("", String::as_str);
                    text.push_str(&format!("```console\n{block}```\n"));
                }
            }
        }
        text
    }

    /// What somebody wrote, without what a program printed.
    pub(super) fn own_words(&self) -> String {
        let own = self.pieces.iter().filter_map(|piece| match piece {
            Piece::Own(text) => Some(text.as_str()),
            Piece::Mark(_) | Piece::Block => None,
        });
        own.collect()
    }
}

fn mark(line: &str) -> anyhow::Result<Option<Mark>> {
    let inner = line.strip_prefix("<!-- ").and_then(|rest| rest.strip_suffix(" -->"));
    let Some((head, tail)) = inner.and_then(|inner| inner.split_once(':')) else {
        return Ok(None);
    };
    let tail = tail.trim().to_owned();
    let mut words = head.split(' ');
    let kind = words.next().unwrap_or_default();
    let rest: Vec<&str> = words.collect();
    Ok(Some(match (kind, rest.as_slice()) {
        ("site", []) => Mark::Site(tail),
        ("run", []) => Mark::Run(tail),
        ("file", []) => Mark::File { name: tail, text: String::new() },
        ("start", [port]) => {
            Mark::Start { port: port.parse().context("not a port")?, command: tail }
        }
        ("output" | "output+err", exit) => {
            let code = match exit {
                [] => 0,
                ["exit", code] => code.parse().context("not an exit code")?,
                _ => bail!("{head:?} is no mark"),
            };
            Mark::Output(Shown { command: tail, errors: kind == "output+err", code })
        }
        _ => bail!("{head:?} is no mark"),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# Title

<!-- site: --delay 1ms -->
<!-- file: list.txt -->
```
/a
```

<!-- output+err exit 1: loadstone run {site} -->
```console
old
```
Words.
<!-- output: true -->

Last.
";

    #[test]
    fn marks_and_blocks_are_found_and_filled() {
        let page = Page::parse(PAGE).unwrap();
        let marks: Vec<&Mark> = page.marks().collect();
        let shown = |command: &str, errors, code| {
            Mark::Output(Shown { command: command.to_owned(), errors, code })
        };
        let expected = [
            Mark::Site("--delay 1ms".to_owned()),
            Mark::File { name: "list.txt".to_owned(), text: "/a\n".to_owned() },
            shown("loadstone run {site}", true, 1),
            shown("true", false, 0),
        ];
        assert_eq!(marks, expected.iter().collect::<Vec<_>>());
        let filled = page.filled(&["new\n".to_owned(), "$ true\n".to_owned()]);
        assert!(filled.contains("-->\n```console\nnew\n```\n\nWords."), "{filled}");
        assert!(
            filled.contains("<!-- output: true -->\n```console\n$ true\n```\n\nLast."),
            "{filled}"
        );
        assert!(!page.own_words().contains("old"));
        assert!(page.own_words().contains("/a"));
    }

    #[test]
    fn filling_again_changes_nothing() {
        let blocks = ["new\n".to_owned(), "$ true\n".to_owned()];
        let once = Page::parse(PAGE).unwrap().filled(&blocks);
        assert_eq!(Page::parse(&once).unwrap().filled(&blocks), once);
    }

    #[test]
    fn what_is_no_mark_is_named() {
        for wrong in ["<!-- outptu: x -->", "<!-- start x: y -->", "<!-- output code 3: x -->"] {
            assert!(Page::parse(wrong).is_err(), "{wrong}");
        }
        assert!(Page::parse("<!-- file: a -->\nno block\n").is_err());
        assert!(Page::parse("<!-- output: a -->\n```\nopen\n").is_err());
        assert_eq!(Page::parse("<!-- a note -->\n").unwrap().marks().count(), 0);
    }

    #[test]
    fn only_a_measurement_may_be_invalid_instead() {
        let shown = |code| Shown { command: String::new(), errors: false, code };
        assert!(shown(0).allows(4) && shown(1).allows(4) && shown(3).allows(3));
        assert!(!shown(3).allows(4) && !shown(0).allows(1) && !shown(2).allows(0));
    }
}
