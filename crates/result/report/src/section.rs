//! Content of a report, in reading order: blocks, each with the forms that show it. A subject (a
//! run, a ramp, a comparison, …) creates them from its record once; `page` renders text, a page and
//! Markdown from them, independent of the subject.

pub(crate) mod chart;
pub(crate) mod forest;
mod table;

use chart::Chart;
use forest::Forest;
use stats::Hist;
use std::ops::{BitAnd, BitOr};
pub(crate) use table::{CellLook, Column, ColumnKind, DataTable, RowLook, TableCell, TableRow};

/// Forms of a report, as a set: where a block appears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Forms(u8);

impl Forms {
    /// Brief text, on request.
    pub(crate) const QUIET: Forms = Forms(1);
    /// Text of one screen.
    pub(crate) const SCREEN: Forms = Forms(2);
    /// Full text.
    pub(crate) const FULL: Forms = Forms(4);
    /// HTML.
    pub(crate) const PAGE: Forms = Forms(8);
    pub(crate) const MARKDOWN: Forms = Forms(16);
    /// Text in any form except the brief one.
    pub(crate) const LONG: Forms = Forms(2 | 4);
    pub(crate) const TEXT: Forms = Forms(1 | 2 | 4);
    /// Forms with room for wide cells.
    pub(crate) const WIDE: Forms = Forms(8 | 16);
    pub(crate) const ALL: Forms = Forms(31);

    pub(crate) fn has(self, form: Forms) -> bool {
        self.0 & form.0 != 0
    }
}

impl BitOr for Forms {
    type Output = Forms;

    fn bitor(self, other: Forms) -> Forms {
        Forms(self.0 | other.0)
    }
}

impl BitAnd for Forms {
    type Output = Forms;

    fn bitand(self, other: Forms) -> Forms {
        Forms(self.0 & other.0)
    }
}

/// Blocks shared by the same forms.
#[derive(Clone, Debug)]
pub(crate) struct Section {
    pub(crate) forms: Forms,
    pub(crate) blocks: Vec<Block>,
}

/// A whole report, or its collapsed part.
#[derive(Clone, Debug, Default)]
pub(crate) struct Document {
    /// Title of the browser's window.
    pub(crate) title: String,
    pub(crate) sections: Vec<Section>,
}

impl Document {
    pub(crate) fn new(title: String) -> Document {
        Document { title, sections: Vec::new() }
    }

    /// Appends blocks for `forms`.
    pub(crate) fn add(&mut self, forms: Forms, blocks: impl IntoIterator<Item = Block>) {
        self.sections.push(Section { forms, blocks: blocks.into_iter().collect() });
    }

    /// Returns the content for one form.
    pub(crate) fn blocks(&self, form: Forms) -> impl Iterator<Item = &Block> {
        self.sections.iter().filter(move |one| one.forms.has(form)).flat_map(|one| &one.blocks)
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Block {
    /// A blank line of text; elsewhere blocks are separated anyway.
    Gap,
    /// The head of a page.
    Title(Title),
    Heading(Heading),
    Sentence(Sentence),
    /// Information that a reader needs before trusting the figures below.
    Caution(Caution),
    /// Marks whether a requested objective is met, in text and Markdown.
    Checked {
        good: bool,
        text: String,
    },
    /// A summary word, and the reasons.
    Notice(Notice),
    Facts(FactList),
    Table(DataTable),
    /// Verbatim lines: of a terminal, drawn with characters.
    Lines(Vec<String>),
    /// Verbatim input, or text to be copied; in a page.
    Code(String),
    List(Vec<Words>),
    /// Links to parts of the page: the id and the name of each.
    Places(Vec<(&'static str, String)>),
    /// Steps of a plan, each with its members below it.
    Steps(Vec<MarkedStep>),
    Tiles(Vec<Tile>),
    /// Requirements in a row, each with its figure; for a page.
    Marks(Vec<Mark>),
    /// Groups of blocks, side by side if the page has room for two.
    Grid(Vec<Vec<Block>>),
    Findings(Vec<Remedy>),
    Chart(Box<Chart>),
    Forest(Forest),
    /// Histogram of times, in at most this many rows.
    Histogram(Box<Hist>, usize),
    /// Figures over time as rows of small bars, for text.
    Sparks(Vec<Spark>),
    Composition(Composition),
    /// Help for the charts' pointer controls.
    HowToLook,
    /// Collapsed by default.
    Details(Details),
    /// Place and time of the measurement.
    Foot(String),
}

/// The head of a page: subject, name, subtitle.
#[derive(Clone, Debug, Default)]
pub(crate) struct Title {
    pub(crate) kicker: &'static str,
    pub(crate) name: String,
    pub(crate) lines: Vec<Words>,
}

/// 1: the report's heading, in Markdown; 2: of a part; 3: within a part.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heading {
    pub(crate) level: u8,
    pub(crate) text: String,
    /// Link target; may be empty.
    pub(crate) id: &'static str,
}

/// Style of a sentence relative to the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Voice {
    #[default]
    Plain,
    /// The result in a paragraph.
    Answer,
    /// Shown next to the figures.
    Note,
    Soft,
    /// Shown above the related content.
    Head,
}

/// A paragraph.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sentence {
    /// Prefix in text, by which further lines are indented.
    pub(crate) lead: Words,
    pub(crate) voice: Voice,
    pub(crate) words: Words,
}

#[derive(Clone, Debug)]
pub(crate) struct Caution {
    /// `Ended early`; empty: an ordinary caution.
    pub(crate) word: &'static str,
    pub(crate) text: String,
}

/// Rating, shown as its color.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Mood {
    Good,
    Doubtful,
    Bad,
    #[default]
    Unknown,
}

/// A summary word, its meaning, and its reasons.
#[derive(Clone, Debug, Default)]
pub(crate) struct Notice {
    /// Subject of the word, such as `Measurement`; empty for none.
    pub(crate) label: &'static str,
    pub(crate) mood: Mood,
    /// Word in color.
    pub(crate) word: String,
    /// Complete sentence that starts with the word; empty for only the word.
    pub(crate) sentence: String,
    /// Meaning of the word, shown if there is room.
    pub(crate) meaning: &'static str,
    /// A real response of the server, as an example.
    pub(crate) example: Option<String>,
    pub(crate) reasons: Vec<Reason>,
    /// Reasons shown in text, and how many of these have advice.
    pub(crate) shown: (usize, usize),
    /// Sentences in place of reasons.
    pub(crate) items: Vec<Words>,
}

impl Notice {
    /// Returns the sentence in the form that follows a word: it starts with a colon or a space.
    pub(crate) fn after_word(&self) -> &str {
        self.sentence.strip_prefix(&self.word).unwrap_or(&self.sentence)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Reason {
    pub(crate) id: String,
    pub(crate) text: String,
    pub(crate) advice: String,
}

/// Labels with a sentence each; an empty label continues the previous fact.
#[derive(Clone, Debug, Default)]
pub(crate) struct FactList {
    /// In text, number of spaces before a label, and width of the column of labels.
    pub(crate) indent: usize,
    pub(crate) width: usize,
    pub(crate) rows: Vec<(String, Words)>,
}

/// A step, whether it succeeded, and remarks on it.
#[derive(Clone, Debug, Default)]
pub(crate) struct MarkedStep {
    /// True if the step was met; `None` if it was not tried.
    pub(crate) met: Option<bool>,
    pub(crate) name: String,
    /// Duration.
    pub(crate) took: String,
    /// Sentences, each with its prefix.
    pub(crate) notes: Vec<(&'static str, String)>,
    pub(crate) members: Vec<MarkedStep>,
}

/// A figure in a frame: label, value, remark.
#[derive(Clone, Debug)]
pub(crate) struct Tile {
    pub(crate) label: String,
    pub(crate) value: String,
    pub(crate) sub: String,
}

/// Requirement, whether it is met, and its figure.
#[derive(Clone, Debug)]
pub(crate) struct Mark {
    pub(crate) mood: Mood,
    pub(crate) name: String,
    pub(crate) value: String,
}

/// A finding, its certainty, and advice.
#[derive(Clone, Debug)]
pub(crate) struct Remedy {
    pub(crate) id: String,
    pub(crate) sure: String,
    pub(crate) evidence: String,
    pub(crate) advice: String,
}

#[derive(Clone, Debug)]
pub(crate) struct Spark {
    pub(crate) label: &'static str,
    pub(crate) values: Vec<f64>,
    /// Minimum and maximum as text.
    pub(crate) ends: String,
}

/// Seconds that add up to a whole, as one bar.
#[derive(Clone, Debug)]
pub(crate) struct Composition {
    pub(crate) title: &'static str,
    /// Number of its colour, name, seconds.
    pub(crate) parts: Vec<(usize, &'static str, f64)>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Details {
    /// Link target; may be empty.
    pub(crate) id: String,
    pub(crate) open: bool,
    pub(crate) summary: Words,
    /// Prefix that makes the names of the charts within unique.
    pub(crate) charts: String,
    pub(crate) body: Document,
}

/// A sentence with highlighted pieces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Words(pub(crate) Vec<Inline>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Inline {
    Plain(String),
    Code(String),
    Strong(String),
    /// A word in the color of its rating.
    Badge(Mood, String),
    /// A link to a part of the page: its id, the text.
    Link(String, String),
    /// A command to copy: lines of text do not break in it.
    Command(String),
    /// Readable bytes: in one line, or in separate lines if there is room.
    Bytes {
        line: String,
        lines: String,
    },
    /// A remark on a separate line.
    Below(String),
    /// Bars of a small histogram, 0 to 100 each, and their description; for a page.
    Bars(Vec<u8>, String),
}

impl Words {
    pub(crate) fn plain(self, text: impl Into<String>) -> Words {
        self.with(Inline::Plain(text.into()))
    }

    pub(crate) fn code(self, text: impl Into<String>) -> Words {
        self.with(Inline::Code(text.into()))
    }

    pub(crate) fn strong(self, text: impl Into<String>) -> Words {
        self.with(Inline::Strong(text.into()))
    }

    pub(crate) fn with(mut self, piece: Inline) -> Words {
        self.0.push(piece);
        self
    }

    /// Returns the bare text.
    pub(crate) fn bare(&self) -> String {
        self.0.iter().map(Inline::bare).collect()
    }
}

impl Inline {
    pub(crate) fn bare(&self) -> &str {
        match self {
            Inline::Plain(text)
            | Inline::Code(text)
            | Inline::Strong(text)
            | Inline::Badge(_, text)
            | Inline::Link(_, text)
            | Inline::Command(text)
            | Inline::Bytes { line: text, .. }
            | Inline::Below(text) => text,
            Inline::Bars(..) => "",
        }
    }
}

impl From<Chart> for Block {
    fn from(chart: Chart) -> Block {
        Block::Chart(Box::new(chart))
    }
}

impl From<String> for Words {
    fn from(text: String) -> Words {
        Words(vec![Inline::Plain(text)])
    }
}

impl From<&str> for Words {
    fn from(text: &str) -> Words {
        text.to_owned().into()
    }
}

/// Returns the heading of a part.
pub(crate) fn heading(text: impl Into<String>) -> Block {
    Block::Heading(Heading { level: 2, text: text.into(), id: "" })
}

/// Returns the heading of a part, as a link target.
pub(crate) fn placed(id: &'static str, text: &str) -> Block {
    Block::Heading(Heading { level: 2, text: text.to_owned(), id })
}

/// Returns a [`Block::Grid`] with a group for each block.
pub(crate) fn grid(blocks: impl IntoIterator<Item = Block>) -> Block {
    Block::Grid(blocks.into_iter().map(|block| vec![block]).collect())
}

/// Returns a heading within a part.
pub(crate) fn subheading(text: impl Into<String>) -> Block {
    Block::Heading(Heading { level: 3, text: text.into(), id: "" })
}

/// Returns the report's own heading in Markdown.
pub(crate) fn title(text: impl Into<String>) -> Block {
    Block::Heading(Heading { level: 1, text: text.into(), id: "" })
}

/// Returns a sentence that begins at the margin.
pub(crate) fn text_block(voice: Voice, words: impl Into<Words>) -> Block {
    with_lead("", voice, words)
}

/// Returns a sentence after its prefix in text.
pub(crate) fn with_lead(lead: &str, voice: Voice, words: impl Into<Words>) -> Block {
    Block::Sentence(Sentence { lead: lead.into(), voice, words: words.into() })
}

/// Returns facts of a report, with labels in a column of 14 characters.
pub(crate) fn facts<L: Into<String>, W: Into<Words>>(
    rows: impl IntoIterator<Item = (L, W)>,
) -> Block {
    aligned(0, LABEL, rows)
}

/// Returns facts in text after `indent` spaces, with labels in a column of `width` characters.
pub(crate) fn aligned<L: Into<String>, W: Into<Words>>(
    indent: usize,
    width: usize,
    rows: impl IntoIterator<Item = (L, W)>,
) -> Block {
    let rows = rows.into_iter().map(|(label, words)| (label.into(), words.into())).collect();
    Block::Facts(FactList { indent, width, rows })
}

/// Width of the column of labels, in characters.
pub(crate) const LABEL: usize = 14;
