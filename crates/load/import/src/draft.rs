//! A plan before it is written: the settings of another tool's file, in the terms of plans but with
//! the file's variable names.

use crate::text::{Maker, Text};
use units::Nanos;

/// Settings of a file.
#[derive(Clone, Debug, Default)]
pub(crate) struct PlanDraft {
    /// Values by name. A value may contain other names.
    pub(crate) vars: Vec<(String, Text)>,
    /// Names whose values are generated for each iteration.
    pub(crate) made: Vec<(String, Maker)>,
    pub(crate) tables: Vec<DataTable>,
    pub(crate) setup: Vec<DraftStep>,
    pub(crate) journeys: Vec<DraftJourney>,
    pub(crate) teardown: Vec<DraftStep>,
    /// Requests sent in turn, used instead of journeys. No values are inserted into them.
    pub(crate) targets: Vec<DraftStep>,
    /// Pause after each response.
    pub(crate) think: Option<String>,
    pub(crate) settings: DraftSettings,
    pub(crate) loads: Vec<LoadPart>,
    pub(crate) slo: Vec<String>,
    /// Changes of meaning, for the comment at the start of the plan.
    pub(crate) notes: Vec<String>,
    pub(crate) left_out: LeftOutList,
}

/// Rows of values for the users.
#[derive(Clone, Debug)]
pub(crate) struct DataTable {
    pub(crate) name: String,
    pub(crate) columns: Vec<String>,
    pub(crate) rows: TableRows,
    pub(crate) order: &'static str,
    pub(crate) stop: bool,
}

#[derive(Clone, Debug)]
pub(crate) enum TableRows {
    /// CSV file with a header line, by its name.
    File(String),
    /// CSV text with a header line.
    Inline(String),
}

#[derive(Clone, Debug, Default)]
pub(crate) struct DraftSettings {
    /// Headers of all requests.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) no_cookies: bool,
    pub(crate) follow: Option<u32>,
    pub(crate) insecure: bool,
    pub(crate) compressed: bool,
    pub(crate) http: Option<&'static str>,
    pub(crate) timeout: Option<Nanos>,
    pub(crate) connect_timeout: Option<Nanos>,
    /// Uses a new connection for each call.
    pub(crate) close: bool,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct DraftJourney {
    pub(crate) name: String,
    pub(crate) weight: Option<f64>,
    pub(crate) think: Option<String>,
    /// True if a failed step ends the iteration.
    pub(crate) ends_on_failure: bool,
    pub(crate) parts: Vec<DraftPiece>,
}

#[derive(Clone, Debug)]
pub(crate) enum DraftPiece {
    Step(Box<DraftStep>),
    Block(DraftBlock),
}

#[derive(Clone, Debug, Default)]
pub(crate) struct DraftBlock {
    pub(crate) name: String,
    pub(crate) guard: DraftGuard,
    pub(crate) parts: Vec<DraftPiece>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct DraftGuard {
    pub(crate) when: Vec<(String, DraftRule)>,
    pub(crate) chance: Option<f64>,
    pub(crate) repeat: Option<(u32, u32)>,
    pub(crate) until: Vec<(String, DraftRule)>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct DraftStep {
    pub(crate) name: String,
    pub(crate) line: usize,
    pub(crate) comments: Vec<String>,
    pub(crate) method: String,
    pub(crate) url: Text,
    pub(crate) headers: Vec<(String, Text)>,
    pub(crate) body: Body,
    /// Login, as `name:password`.
    pub(crate) user: Option<Text>,
    pub(crate) guard: DraftGuard,
    pub(crate) once: bool,
    pub(crate) think: Option<String>,
    /// Expectations; if one fails, the call fails.
    pub(crate) expect: Checks,
    /// Checks; failures are only counted.
    pub(crate) check: Checks,
    pub(crate) captures: Vec<Capture>,
}

#[derive(Clone, Debug, Default)]
pub(crate) enum Body {
    #[default]
    None,
    Text(Text),
    /// Content of a file, by its name.
    File(String),
    Form(Vec<(String, Text)>),
    Multipart(Vec<(String, Text)>, Vec<FormUpload>),
}

#[derive(Clone, Debug)]
pub(crate) struct FormUpload {
    pub(crate) field: String,
    pub(crate) file: String,
    pub(crate) media_type: Option<String>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Checks {
    /// Status pattern: `200`, `200-299`, `2xx`.
    pub(crate) status: Vec<String>,
    pub(crate) headers: Vec<(String, DraftRule)>,
    pub(crate) exact: Option<Text>,
    pub(crate) contains: Vec<Text>,
    pub(crate) lacks: Vec<Text>,
    pub(crate) regex: Vec<Text>,
    pub(crate) json: Vec<(String, JsonRule)>,
    pub(crate) length: Option<u64>,
    pub(crate) graphql: bool,
    pub(crate) at_most: Option<Nanos>,
}

#[derive(Clone, Debug)]
pub(crate) enum JsonRule {
    Text(Text),
    /// A number or truth value in JSON form.
    Raw(String),
}

#[derive(Clone, Debug)]
pub(crate) enum DraftRule {
    Exact(Text),
    OneOf(Vec<Text>),
    Contains(Text),
    Regex(Text),
    Present,
    Absent,
}

#[derive(Clone, Debug)]
pub(crate) struct Capture {
    pub(crate) name: String,
    pub(crate) from: CaptureFrom,
    /// The value is the first group, or the whole match.
    pub(crate) regex: Option<Text>,
    pub(crate) take: Option<&'static str>,
    /// True if the value is kept for the lifetime of the user.
    pub(crate) user: bool,
    pub(crate) optional: bool,
}

#[derive(Clone, Debug)]
pub(crate) enum CaptureFrom {
    Status,
    Body,
    Header(String),
    Cookie(String),
    /// JSON pointer or JSONPath.
    Json(String),
    Css(String, Option<String>),
}

/// Load of the plan or of a scenario.
#[derive(Clone, Debug)]
pub(crate) struct LoadPart {
    pub(crate) name: String,
    /// Names of journeys; empty for all.
    pub(crate) journeys: Vec<String>,
    pub(crate) start: Nanos,
    pub(crate) duration: Option<Nanos>,
    /// Number of iterations over all users.
    pub(crate) iterations: Option<u64>,
    pub(crate) kind: LoadKind,
}

#[derive(Clone, Debug)]
pub(crate) enum LoadKind {
    Users(u64),
    Rate(f64),
    /// Length and the levels at both ends, in users or arrivals per second.
    Stages(Vec<(Nanos, f64, f64)>, bool),
}

/// Element of the file that is missing in the plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// Line, from 1; 0 if the format has no lines.
    pub line: usize,
    /// Name of the element in the file.
    pub what: String,
    /// Reason, with an alternative.
    pub why: String,
}

impl std::fmt::Display for LeftOut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.line > 0 {
            write!(f, "line {}: ", self.line)?;
        }
        write!(f, "{}: {}", self.what, self.why)
    }
}

/// Omitted elements, in the order of the file.
#[derive(Clone, Debug, Default)]
pub(crate) struct LeftOutList(pub(crate) Vec<LeftOut>);

/// Maximum length of the list; further entries are only counted.
const LEFT_OUT_MAX: usize = 1_000;

impl LeftOutList {
    pub(crate) fn add(&mut self, line: usize, what: impl Into<String>, why: impl Into<String>) {
        let one = LeftOut { line, what: one_line(&what.into()), why: one_line(&why.into()) };
        if self.0.len() < LEFT_OUT_MAX && !self.0.contains(&one) {
            self.0.push(one);
        }
    }
}

/// Maximum number of characters of a name or a reason.
const SHOWN_MAX: usize = 200;

/// Returns a text on one line: control characters become spaces, and the text is cut after
/// [`SHOWN_MAX`] characters.
pub(crate) fn one_line(text: &str) -> String {
    let clean = |c: char| if c.is_control() { ' ' } else { c };
    let mut line: String = text.trim().chars().map(clean).take(SHOWN_MAX).collect();
    if line.len() < text.trim().len() && line.chars().count() == SHOWN_MAX {
        line.push('…');
    }
    line
}

impl DraftStep {
    pub(crate) fn set_header(&mut self, name: &str, value: Text) {
        let known = self.headers.iter().position(|(known, _)| known.eq_ignore_ascii_case(name));
        match known {
            Some(at) => self.headers[at].1 = value,
            None => self.headers.push((name.to_owned(), value)),
        }
    }

    pub(crate) fn has_header(&self, name: &str) -> bool {
        self.headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name))
    }
}

impl Capture {
    pub(crate) fn new(name: impl Into<String>, from: CaptureFrom) -> Capture {
        Capture { name: name.into(), from, regex: None, take: None, user: false, optional: false }
    }
}

impl PlanDraft {
    /// Adds a load of the default size for the journeys, which the user should change.
    pub(crate) fn set_default_load(&mut self) {
        if self.loads.is_empty() {
            self.loads.push(LoadPart {
                name: "load".to_owned(),
                journeys: Vec::new(),
                start: Nanos::ZERO,
                duration: Some(Nanos::from_secs(10)),
                iterations: None,
                kind: LoadKind::Users(10),
            });
        }
    }
}
