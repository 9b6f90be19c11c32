//! What a report says, in the order in which it is read: blocks, each with the forms that have it. A subject
//! (a run, a ramp, a comparison, …) makes them of its record once; `page` makes text, a page and Markdown of
//! them and knows no subject.

pub(crate) mod chart;
pub(crate) mod forest;
mod table;

use chart::Chart;
use forest::Forest;
use stats::Hist;
use std::ops::{BitAnd, BitOr};
pub(crate) use table::{CellLook, Column, ColumnKind, DataTable, RowLook, TableCell, TableRow};

/// Forms of a report, as a set: what is said in which of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Forms(u8);

impl Forms {
    /// Text that is asked to be brief.
    pub(crate) const QUIET: Forms = Forms(1);
    /// Text of one screen.
    pub(crate) const SCREEN: Forms = Forms(2);
    /// Text with everything.
    pub(crate) const FULL: Forms = Forms(4);
    /// HTML.
    pub(crate) const PAGE: Forms = Forms(8);
    pub(crate) const MARKDOWN: Forms = Forms(16);
    /// Text, but for the brief one.
    pub(crate) const LONG: Forms = Forms(2 | 4);
    pub(crate) const TEXT: Forms = Forms(1 | 2 | 4);
    /// What has room for wide cells.
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

/// Blocks that the same forms have.
#[derive(Clone, Debug)]
pub(crate) struct Section {
    pub(crate) forms: Forms,
    pub(crate) blocks: Vec<Block>,
}

/// A whole report, or what is folded away in it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Document {
    /// Of the browser's window.
    pub(crate) title: String,
    pub(crate) sections: Vec<Section>,
}

impl Document {
    pub(crate) fn new(title: String) -> Document {
        Document { title, sections: Vec::new() }
    }

    /// Blocks that `forms` have, below what is there.
    pub(crate) fn add(&mut self, forms: Forms, blocks: impl IntoIterator<Item = Block>) {
        self.sections.push(Section { forms, blocks: blocks.into_iter().collect() });
    }

    /// What one form has of it.
    pub(crate) fn blocks(&self, form: Forms) -> impl Iterator<Item = &Block> {
        self.sections.iter().filter(move |one| one.forms.has(form)).flat_map(|one| &one.blocks)
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Block {
    /// A blank line of text; elsewhere blocks stand apart anyway.
    Gap,
    /// The head of a page.
    Title(Title),
    Heading(Heading),
    Sentence(Sentence),
    /// What a reader must know before believing anything below.
    Caution(Caution),
    /// Whether something that was asked for is so, in text and Markdown.
    Checked {
        good: bool,
        text: String,
    },
    /// A word on the whole, and why.
    Notice(Notice),
    Facts(FactList),
    Table(DataTable),
    /// Lines as they are: of a terminal, drawn with characters.
    Lines(Vec<String>),
    /// What was given to us or is to be copied, as it is; of a page.
    Code(String),
    List(Vec<Words>),
    /// Ways to parts of the page: the id and the name of each.
    Places(Vec<(&'static str, String)>),
    /// Steps of a plan, each with its members below it.
    Steps(Vec<MarkedStep>),
    Tiles(Vec<Tile>),
    /// Requirements in a row, each with its figure; of a page.
    Marks(Vec<Mark>),
    /// Groups of blocks side by side where the page has room for two.
    Grid(Vec<Vec<Block>>),
    Findings(Vec<Remedy>),
    Chart(Box<Chart>),
    Forest(Forest),
    /// Times by classes, in so many rows at most.
    Histogram(Box<Hist>, usize),
    /// Figures along the time as rows of small bars, of text.
    Sparks(Vec<Spark>),
    Composition(Composition),
    /// What can be done with the charts by pointer.
    HowToLook,
    /// Folded away until somebody wants to see it.
    Details(Details),
    /// When and where it was measured.
    Foot(String),
}

/// The head of a page: what it is about, its name, what stands below that.
#[derive(Clone, Debug, Default)]
pub(crate) struct Title {
    pub(crate) kicker: &'static str,
    pub(crate) name: String,
    pub(crate) lines: Vec<Words>,
}

/// 1: the report's own, of Markdown; 2: of a part; 3: within one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heading {
    pub(crate) level: u8,
    pub(crate) text: String,
    /// Where links lead; empty: none does.
    pub(crate) id: &'static str,
}

/// How a sentence looks beside the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Voice {
    #[default]
    Plain,
    /// The result in a paragraph.
    Answer,
    /// Said beside the figures.
    Note,
    Soft,
    /// Over what belongs to it.
    Head,
}

/// A paragraph.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sentence {
    /// What stands before it in text, whose further lines are indented as far.
    pub(crate) lead: Words,
    pub(crate) voice: Voice,
    pub(crate) words: Words,
}

#[derive(Clone, Debug)]
pub(crate) struct Caution {
    /// `Ended early`; empty: a caution like any other.
    pub(crate) word: &'static str,
    pub(crate) text: String,
}

/// How good it is, in the colour of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Mood {
    Good,
    Doubtful,
    Bad,
    #[default]
    Unknown,
}

/// A word on the whole, what it means, and the reasons for it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Notice {
    /// What it is a word on: `Measurement`; empty: nothing before the word.
    pub(crate) label: &'static str,
    pub(crate) mood: Mood,
    /// In colour.
    pub(crate) word: String,
    /// A whole sentence that begins with the word; empty: the word stands alone.
    pub(crate) sentence: String,
    /// What the word means, said where there is room.
    pub(crate) meaning: &'static str,
    /// One of the server's own responses, as an example.
    pub(crate) example: Option<String>,
    pub(crate) reasons: Vec<Reason>,
    /// Reasons that text has, and of these such with advice.
    pub(crate) shown: (usize, usize),
    /// In place of reasons: sentences.
    pub(crate) items: Vec<Words>,
}

impl Notice {
    /// The sentence behind its word: it begins with a colon or a blank.
    pub(crate) fn behind_word(&self) -> &str {
        self.sentence.strip_prefix(&self.word).unwrap_or(&self.sentence)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Reason {
    pub(crate) id: String,
    pub(crate) text: String,
    pub(crate) advice: String,
}

/// Labels with a sentence each; an empty label goes on with the fact before it.
#[derive(Clone, Debug, Default)]
pub(crate) struct FactList {
    /// In text: blanks before a label, and the width of the column of labels.
    pub(crate) indent: usize,
    pub(crate) width: usize,
    pub(crate) rows: Vec<(String, Words)>,
}

/// A step, whether it came out as it was to, and what is to be said of that.
#[derive(Clone, Debug, Default)]
pub(crate) struct MarkedStep {
    /// `None`: it was not tried.
    pub(crate) met: Option<bool>,
    pub(crate) name: String,
    /// How long it took.
    pub(crate) took: String,
    /// Sentences, each behind what stands before it.
    pub(crate) told: Vec<(&'static str, String)>,
    pub(crate) members: Vec<MarkedStep>,
}

/// A figure in a frame: label, value, what is to be said of it.
#[derive(Clone, Debug)]
pub(crate) struct Tile {
    pub(crate) label: String,
    pub(crate) value: String,
    pub(crate) sub: String,
}

/// A requirement, whether it is met, and its figure.
#[derive(Clone, Debug)]
pub(crate) struct Mark {
    pub(crate) mood: Mood,
    pub(crate) name: String,
    pub(crate) value: String,
}

/// Something found, how sure that is, and what to do.
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
    /// The least and the greatest in words.
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
    /// Where links lead; empty: none does.
    pub(crate) id: String,
    pub(crate) open: bool,
    pub(crate) summary: Words,
    /// Before the names of the charts within, so that each stays the only one of its name.
    pub(crate) charts: String,
    pub(crate) body: Document,
}

/// A sentence in which pieces may be set apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Words(pub(crate) Vec<Inline>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Inline {
    Plain(String),
    Code(String),
    Strong(String),
    /// A word in the colour of how good it is.
    Badge(Mood, String),
    /// A way to a part of the page: its id, the words.
    Link(String, String),
    /// A command to be copied: no line of text breaks in it.
    Command(String),
    /// Bytes that can be read: in one line, and in lines of their own where there is room.
    Bytes {
        line: String,
        lines: String,
    },
    /// A remark on a line of its own.
    Below(String),
    /// Bars of a small histogram, 0 to 100 each, and what they show in words; of a page.
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

    /// The bare text.
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

/// The heading of a part.
pub(crate) fn heading(text: impl Into<String>) -> Block {
    Block::Heading(Heading { level: 2, text: text.into(), id: "" })
}

/// The heading of a part that links lead to.
pub(crate) fn placed(id: &'static str, text: &str) -> Block {
    Block::Heading(Heading { level: 2, text: text.to_owned(), id })
}

/// A group of [`Block::Grid`] for each block.
pub(crate) fn grid(blocks: impl IntoIterator<Item = Block>) -> Block {
    Block::Grid(blocks.into_iter().map(|block| vec![block]).collect())
}

/// A heading within a part.
pub(crate) fn subheading(text: impl Into<String>) -> Block {
    Block::Heading(Heading { level: 3, text: text.into(), id: "" })
}

/// The report's own heading in Markdown.
pub(crate) fn title(text: impl Into<String>) -> Block {
    Block::Heading(Heading { level: 1, text: text.into(), id: "" })
}

/// A sentence that begins at the margin.
pub(crate) fn say(voice: Voice, words: impl Into<Words>) -> Block {
    led("", voice, words)
}

/// A sentence behind what text has before it.
pub(crate) fn led(lead: &str, voice: Voice, words: impl Into<Words>) -> Block {
    Block::Sentence(Sentence { lead: lead.into(), voice, words: words.into() })
}

/// Facts of a report: labels in a column of 14 characters.
pub(crate) fn facts<L: Into<String>, W: Into<Words>>(
    rows: impl IntoIterator<Item = (L, W)>,
) -> Block {
    aligned(0, LABEL, rows)
}

/// Facts in text behind `indent` blanks, their labels in a column of `width` characters.
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
