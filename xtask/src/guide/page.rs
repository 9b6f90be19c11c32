//! A page of the guide as marks, the blocks that they describe, and other text.

use anyhow::{Context, bail};

/// A comment of a page, one per line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    /// `<!-- site: OPTIONS -->`: starts a site with these options on [`SITE`]. The page shows the
    /// line that starts it.
    Site(String),
    /// `<!-- start 8443: COMMAND -->`: starts a server until the page's end; a path instead of the
    /// port is that of a Unix socket. The page shows the line.
    Start { at: Listener, command: String },
    /// `<!-- run: COMMAND -->`: shown without its output; must end with 0 or 4.
    Run(String),
    /// `<!-- wait: COMMAND -->`: until the servers are ready; readers do not need it.
    Wait(String),
    /// `<!-- file: NAME -->`: the block that follows is written to this file.
    File { name: String, text: String },
    /// `<!-- output: COMMAND -->`: the block that follows is the output of the command.
    Output(Shown),
}

/// Default address of the built-in site, used in all pages.
pub(super) const SITE: &str = "127.0.0.1:2020";

/// Address at which to wait for a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Listener {
    Port(u16),
    Socket(String),
}

impl Mark {
    /// Returns whether its output is shown in a generated block.
    fn is_shown(&self) -> bool {
        matches!(self, Mark::Site(_) | Mark::Start { .. } | Mark::Run(_) | Mark::Output(_))
    }
}

/// `<!-- output+err invalid exit 4: COMMAND -->`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shown {
    pub(super) command: String,
    /// True to show standard error as well.
    pub(super) errors: bool,
    pub(super) code: i32,
    /// The page deliberately shows an INVALID result.
    pub(super) invalid: bool,
}

impl Shown {
    /// Returns the accepted exit codes. A measurement may be INVALID on a busy machine, and then
    /// decides no objective either: 4 replaces 0 or 1 if the output is not shown.
    pub(super) fn allows(&self, code: i32) -> bool {
        code == self.code || (code == 4 && (0..=1).contains(&self.code))
    }

    /// Returns whether the output may be shown in the page: an example with an INVALID verdict
    /// teaches nothing.
    pub(super) fn may_be_shown(&self, code: i32, text: &str) -> bool {
        code == self.code && (self.invalid || !text.contains("INVALID"))
    }
}

enum Piece {
    /// Unchanged lines.
    Own(String),
    Mark(Mark),
    /// Output of a mark's command, without its fences.
    Block,
}

pub(super) struct Page {
    pieces: Vec<Piece>,
}

/// Beginnings of marks whose block includes the text shown before them.
const SHARING: [&str; 5] = ["<!-- site", "<!-- start", "<!-- run", "<!-- wait", "<!-- output"];

impl Page {
    /// # Errors
    /// Fails for an invalid mark, an unclosed fence, a file without its block.
    pub(super) fn parse(text: &str) -> anyhow::Result<Page> {
        if text.contains("{site}") {
            bail!("{{site}} cannot be typed by a reader: write http://{SITE}");
        }
        let mut pieces = Vec::new();
        let mut lines = text.lines().enumerate().peekable();
        let mut fenced = false;
        let mut pending = false;
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
            let carries = mark.is_shown() || (pending && matches!(mark, Mark::Wait(_)));
            let with_block = carries || matches!(mark, Mark::File { .. });
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
            // marks that follow each other share a block
            let shares = lines
                .peek()
                .is_some_and(|(_, next)| SHARING.iter().any(|mark| next.starts_with(mark)));
            let with_output = carries && (body.is_some() || !shares);
            pending = carries && !with_output;
            if let Mark::File { text, .. } = &mut mark {
                *text = body.with_context(|| format!("{}: a file needs a block", at()))?;
                pieces.push(Piece::Own(format!("```\n{text}```\n")));
            }
            pieces.push(Piece::Mark(mark));
            if with_output {
                pieces.push(Piece::Block);
                // a blank line separates the block from a following paragraph
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

    /// Returns the page with new texts in its blocks, one for each mark that is shown.
    pub(super) fn filled(&self, blocks: &[String]) -> String {
        let mut blocks = blocks.iter();
        let mut text = String::new();
        let mut block = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Own(own) => text.push_str(own),
                Piece::Mark(mark) if mark.is_shown() => {
                    block.push_str(blocks.next().map_or("", String::as_str));
                }
                Piece::Mark(_) => {}
                Piece::Block => {
                    text.push_str(&format!("```console\n{block}```\n"));
                    block.clear();
                }
            }
        }
        text
    }

    /// Returns the written text, without program output.
    pub(super) fn written_text(&self) -> String {
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
        ("wait", []) => Mark::Wait(tail),
        ("start", [at]) => {
            let at = match at.parse() {
                Ok(port) => Listener::Port(port),
                Err(_) if at.ends_with(".sock") => Listener::Socket((*at).to_owned()),
                Err(_) => bail!("{at:?} is neither a port nor a path that ends in .sock"),
            };
            Mark::Start { at, command: tail }
        }
        ("output" | "output+err", more) => {
            let invalid = more.first() == Some(&"invalid");
            let code = match &more[usize::from(invalid)..] {
                [] => 0,
                ["exit", code] => code.parse().context("not an exit code")?,
                _ => bail!("{head:?} is not a mark"),
            };
            Mark::Output(Shown { command: tail, errors: kind == "output+err", code, invalid })
        }
        _ => bail!("{head:?} is not a mark"),
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

<!-- output+err exit 1: loadstone run http://127.0.0.1:2020/ -->
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
            Mark::Output(Shown { command: command.to_owned(), errors, code, invalid: false })
        };
        let expected = [
            Mark::Site("--delay 1ms".to_owned()),
            Mark::File { name: "list.txt".to_owned(), text: "/a\n".to_owned() },
            shown("loadstone run http://127.0.0.1:2020/", true, 1),
            shown("true", false, 0),
        ];
        assert_eq!(marks, expected.iter().collect::<Vec<_>>());
        let filled = page.filled(&BLOCKS.map(str::to_owned));
        assert!(filled.contains("-->\n```console\n$ loadstone site &\n```\n"), "{filled}");
        assert!(filled.contains("-->\n```console\nnew\n```\n\nWords."), "{filled}");
        assert!(
            filled.contains("<!-- output: true -->\n```console\n$ true\n```\n\nLast."),
            "{filled}"
        );
        assert!(!page.written_text().contains("old"));
        assert!(page.written_text().contains("/a"));
    }

    const BLOCKS: [&str; 3] = ["$ loadstone site &\n", "new\n", "$ true\n"];

    #[test]
    fn marks_that_follow_each_other_share_a_block() {
        let text = "<!-- site: --delay 1ms -->\n<!-- wait: true -->\n<!-- run: a > b -->\n<!-- output: \
                    cat b -->\n```console\nold\n```\nEnd.\n";
        let blocks = ["$ loadstone site &\n", "$ a > b\n", "$ cat b\nc\n"].map(str::to_owned);
        let filled = Page::parse(text).unwrap().filled(&blocks);
        let whole = "cat b -->\n```console\n$ loadstone site &\n$ a > b\n$ cat b\nc\n```\n";
        assert!(filled.contains(whole) && filled.ends_with("```\n\nEnd.\n"), "{filled}");
        assert_eq!(Page::parse(&filled).unwrap().filled(&blocks), filled);
    }

    #[test]
    fn filling_again_changes_nothing() {
        let blocks = BLOCKS.map(str::to_owned);
        let once = Page::parse(PAGE).unwrap().filled(&blocks);
        assert_eq!(Page::parse(&once).unwrap().filled(&blocks), once);
    }

    #[test]
    fn an_invalid_mark_is_reported() {
        for wrong in [
            "<!-- outptu: x -->",
            "<!-- start x: y -->",
            "<!-- output code 3: x -->",
            "loadstone run {site}/hw",
        ] {
            assert!(Page::parse(wrong).is_err(), "{wrong}");
        }
        assert!(Page::parse("<!-- file: a -->\nno block\n").is_err());
        assert!(Page::parse("<!-- output: a -->\n```\nopen\n").is_err());
        assert_eq!(Page::parse("<!-- a note -->\n").unwrap().marks().count(), 0);
    }

    #[test]
    fn only_a_measurement_may_be_invalid_instead() {
        let shown = |code| Shown { command: String::new(), errors: false, code, invalid: false };
        assert!(shown(0).allows(4) && shown(1).allows(4) && shown(3).allows(3));
        assert!(!shown(3).allows(4) && !shown(0).allows(1) && !shown(2).allows(0));
    }

    #[test]
    fn invalid_results_are_shown_only_on_request() {
        let shown = |mark: &str| match Page::parse(mark).unwrap().marks().next() {
            Some(Mark::Output(shown)) => shown.clone(),
            other => panic!("{other:?}"),
        };
        let (plain, asked) =
            (shown("<!-- output: x -->"), shown("<!-- output invalid exit 4: x -->"));
        assert!(plain.may_be_shown(0, "VALID\n") && plain.may_be_shown(0, "DEGRADED  lag\n"));
        assert!(
            !plain.may_be_shown(4, "INVALID  slip\n") && !plain.may_be_shown(0, "\"INVALID\"\n")
        );
        assert!(asked.may_be_shown(4, "INVALID  slip\n") && !asked.may_be_shown(0, "VALID\n"));
    }
}
