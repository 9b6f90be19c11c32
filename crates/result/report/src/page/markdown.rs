//! Documents as Markdown, for a pull request or a ticket. Text from elsewhere is escaped, so that
//! it is plain text in Markdown too.

use crate::section::{
    Block, DataTable, Details, Document, Forms, Heading, Inline, Notice, Remedy, Words,
};
use crate::words::{self, safe};

/// Renders the document as Markdown, with a line feed at its end.
pub(crate) fn markdown(document: &Document) -> String {
    let mut out = Markdown::default();
    document.blocks(Forms::MARKDOWN).for_each(|block| out.block(block));
    out.end_list();
    out.text
}

#[derive(Debug, Default)]
struct Markdown {
    text: String,
    /// The last line belongs to a list, which an empty line must end.
    in_list: bool,
}

impl Markdown {
    fn block(&mut self, block: &Block) {
        match block {
            Block::Heading(heading) => self.heading(heading),
            Block::Sentence(sentence) => self.paragraph(&inline(&sentence.words)),
            Block::Caution(caution) => match caution.word {
                "" => self.item(&format!("⚠️ {}", plain(&caution.text))),
                word => self.paragraph(&format!("**{word}:** {}", plain(&caution.text))),
            },
            Block::Checked { good, text } => {
                let mark = if *good { "✅" } else { "❌" };
                self.item(&format!("{mark} {}", plain(text)));
            }
            Block::Notice(notice) => self.notice(notice),
            Block::Facts(list) => list.rows.iter().for_each(|(label, words)| {
                self.item(&format!("{}: {}", plain(label), inline(words)));
            }),
            Block::Table(one) => {
                let text = data_table(one);
                self.put(&text);
            }
            Block::List(items) => items.iter().for_each(|item| self.item(&inline(item))),
            Block::Findings(all) => all.iter().for_each(|one| self.item(&finding(one))),
            Block::Details(one) => self.details(one),
            Block::Grid(groups) => groups.iter().flatten().for_each(|one| self.block(one)),
            Block::Foot(text) => self.put(&format!("<sub>{}</sub>\n", plain(text))),
            Block::Gap
            | Block::Title(_)
            | Block::Places(_)
            | Block::Lines(_)
            | Block::Code(_)
            | Block::Steps(_)
            | Block::Tiles(_)
            | Block::Marks(_)
            | Block::Chart(_)
            | Block::Forest(_)
            | Block::Histogram(..)
            | Block::Sparks(_)
            | Block::Composition(_)
            | Block::HowToLook => {}
        }
    }

    fn put(&mut self, text: &str) {
        self.end_list();
        self.text += text;
    }

    fn paragraph(&mut self, text: &str) {
        self.put(&format!("{text}\n\n"));
    }

    fn item(&mut self, text: &str) {
        self.text += &format!("- {text}\n");
        self.in_list = true;
    }

    fn end_list(&mut self) {
        if std::mem::take(&mut self.in_list) {
            self.text.push('\n');
        }
    }

    fn heading(&mut self, one: &Heading) {
        match one.level {
            1 => self.paragraph(&format!("### {}", plain(&one.text))),
            _ => self.paragraph(&format!("**{}**", plain(&one.text))),
        }
    }

    fn notice(&mut self, notice: &Notice) {
        if !notice.sentence.is_empty() {
            let (label, word, behind) = (notice.label, &notice.word, notice.after_word());
            let (colon, rest) = behind.strip_prefix(':').map_or(("", behind), |rest| (":", rest));
            self.paragraph(&format!("**{label} {word}{colon}** {}", plain(rest.trim_start())));
        }
        if let Some(example) = &notice.example {
            self.paragraph(&format!("It responds: {}", plain(example)));
        }
        for reason in &notice.reasons {
            let advice = words::sentence(&reason.advice);
            let text = format!("`{}`: {}. {}", reason.id, plain(&reason.text), plain(&advice));
            self.item(&text);
        }
    }

    fn details(&mut self, one: &Details) {
        self.put(&format!("<details><summary>{}</summary>\n\n", inline(&one.summary)));
        one.body.blocks(Forms::MARKDOWN).for_each(|block| self.block(block));
        self.put("</details>\n\n");
    }
}

fn inline(words: &Words) -> String {
    let piece = |piece: &Inline| match piece {
        Inline::Code(text) if !text.contains(['`', '|', '\n']) => format!("`{text}`"),
        Inline::Strong(text) => format!("**{}**", plain(text)),
        other => plain(other.bare()),
    };
    words.0.iter().map(piece).collect()
}

fn finding(one: &Remedy) -> String {
    let in_a_name = |c: &char| c.is_ascii_alphanumeric() || *c == '-';
    let id: String = one.id.chars().filter(in_a_name).collect();
    let advice = match one.advice.is_empty() {
        true => String::new(),
        false => format!(" Try: {}", plain(&words::sentence(&one.advice))),
    };
    format!("`{id}` ({}): {}{advice}", one.sure, plain(&words::sentence(&one.evidence)))
}

fn data_table(one: &DataTable) -> String {
    let columns = || one.columns(Forms::MARKDOWN);
    let head: Vec<String> = columns().map(|(_, column)| plain(&column.head)).collect();
    let cell = |cells: &[crate::section::TableCell], at: usize| {
        cells.get(at).map_or_else(String::new, |cell| inline(&cell.words))
    };
    let rows: Vec<Vec<String>> = one
        .rows
        .iter()
        .map(|row| columns().map(|(at, _)| cell(&row.cells, at)).collect())
        .collect();
    let title = match one.title.as_str() {
        "" => String::new(),
        title => format!("**{}**\n\n", plain(title)),
    };
    title + &lines(&head, &rows)
}

/// Renders a table whose first row is its head, with an empty line before and after it.
fn lines(head: &[String], rows: &[Vec<String>]) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let marks: Vec<&str> = (0..head.len()).map(|n| if n == 0 { "---" } else { "---:" }).collect();
    let rows: String = rows.iter().map(|row| line(row)).collect();
    format!("{}| {} |\n{rows}\n", line(head), marks.join(" | "))
}

/// Escapes text so that it has no meaning in Markdown: no emphasis, link, tag, table cell or
/// mention.
fn plain(text: &str) -> String {
    // line ends are not possible in a cell
    let one_line = text.replace(['\r', '\n', '\t'], " ");
    let mut out = String::new();
    for c in safe(&one_line).chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '@' => out.push_str("&#64;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '#' | '!' => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}
