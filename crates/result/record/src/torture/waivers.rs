//! Known findings that are waived for a time: a file of cases whose findings do not count, each
//! with a reason and its last valid day.

#[cfg(any(test, feature = "schema"))]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
#[cfg(any(test, feature = "schema"))]
use std::borrow::Cow;
use std::fmt;
use time::{Date, Month, OffsetDateTime};
use torture::case::Case;
use torture::judge::TestOutcome;
use torture::result::CaseResult;
use units::quoted;

/// Maximum size of the file in bytes, and number of its waivers.
const BYTES_MAX: usize = 1 << 20;
const WAIVERS_MAX: usize = 1_000;
/// Maximum length of a reason in characters.
const REASON_MAX: usize = 400;

/// One waived finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct Waiver {
    pub case: String,
    /// Only this exchange of the case; null: any exchange.
    pub exchange: Option<String>,
    /// Worst waived outcome; null: any outcome.
    #[serde(with = "super::ids::outcome_or_none")]
    #[cfg_attr(
        any(test, feature = "schema"),
        schemars(schema_with = "super::ids::outcome_or_none::schema")
    )]
    pub outcome: Option<TestOutcome>,
    pub reason: String,
    /// The last day on which it holds, in UTC.
    pub until: Day,
}

/// A day of the calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Day(Date);

impl Serialize for Day {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

#[cfg(any(test, feature = "schema"))]
impl JsonSchema for Day {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Day".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "date" })
    }
}

impl<'de> Deserialize<'de> for Day {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Day, D::Error> {
        let text = String::deserialize(from)?;
        let wrong = || serde::de::Error::custom(format!("{} is not a day", quoted(&text)));
        Day::parse(&text).ok_or_else(wrong)
    }
}

impl Day {
    /// Returns the day in UTC of an instant in seconds since 1970-01-01; the first representable
    /// day if the number is not a valid instant.
    pub fn from_unix_seconds(seconds: f64) -> Day {
        // values beyond the range saturate, and are not instants
        let instant = OffsetDateTime::from_unix_timestamp(seconds as i64);
        Day(instant.map_or(Date::MIN, OffsetDateTime::date))
    }

    /// Parses a day in the format of [`Day`]: `2027-01-31`.
    pub fn parse(text: &str) -> Option<Day> {
        let mut parts = text.splitn(3, '-');
        let year = parts.next()?.parse().ok()?;
        let month: u8 = parts.next()?.parse().ok()?;
        let number = parts.next()?.parse().ok()?;
        Date::from_calendar_date(year, Month::try_from(month).ok()?, number).ok().map(Day)
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Day(date) = self;
        write!(f, "{:04}-{:02}-{:02}", date.year(), u8::from(date.month()), date.day())
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileText {
    #[serde(default)]
    waive: Vec<toml::Spanned<WaiverText>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WaiverText {
    case: toml::Spanned<String>,
    exchange: Option<toml::Spanned<String>>,
    outcome: Option<toml::Spanned<String>>,
    reason: toml::Spanned<String>,
    until: toml::Spanned<toml::value::Datetime>,
}

/// Position in the file, and the error.
type Wrong = (usize, String);

/// Reads the waivers of a file's text. `catalogue` has every existing case.
///
/// # Errors
/// Fails for invalid TOML, an unknown key, case, exchange or outcome, a missing reason, or an
/// invalid date: one sentence with the line.
pub fn read(text: &str, catalogue: &[Case]) -> Result<Vec<Waiver>, String> {
    let fault = |(at, why): Wrong| {
        let line = text.get(..at).unwrap_or(text).matches('\n').count() + 1;
        format!("line {line}: {}", why.trim_end())
    };
    if text.len() > BYTES_MAX {
        return Err("the file is longer than 1 MiB".to_owned());
    }
    let file: FileText = toml::from_str(text).map_err(|error| {
        fault((error.span().map_or(0, |span| span.start), error.message().to_owned()))
    })?;
    if file.waive.len() > WAIVERS_MAX {
        return Err(format!("more than {WAIVERS_MAX} waivers"));
    }
    let mut waivers: Vec<Waiver> = Vec::new();
    for one in file.waive {
        let at = one.span().start;
        let read = waiver(one.into_inner(), catalogue).map_err(fault)?;
        let same = |other: &Waiver| other.case == read.case && other.exchange == read.exchange;
        if waivers.iter().any(same) {
            return Err(fault((at, format!("{} is waived twice", read.case))));
        }
        waivers.push(read);
    }
    Ok(waivers)
}

fn waiver(text: WaiverText, catalogue: &[Case]) -> Result<Waiver, Wrong> {
    let at = text.case.span().start;
    let id = text.case.into_inner();
    let case = catalogue.iter().find(|case| case.id == id);
    let unknown =
        || (at, format!("{} is not a case; loadstone torture list prints them", quoted(&id)));
    let case = case.ok_or_else(unknown)?;
    let exchange = text.exchange.map(|name| exchange(name, case)).transpose()?;
    let outcome = text.outcome.map(outcome).transpose()?;
    let (at, reason) = (text.reason.span().start, text.reason.into_inner());
    if reason.trim().is_empty() || reason.chars().count() > REASON_MAX {
        return Err((at, format!("reason: write why, in 1 to {REASON_MAX} characters")));
    }
    let (at, until) = (text.until.span().start, text.until.into_inner());
    let until = parse_day(&until)
        .ok_or_else(|| (at, format!("{until} is not a day; write it like 2027-01-31")))?;
    Ok(Waiver { case: case.id.clone(), exchange, outcome, reason, until })
}

fn exchange(name: toml::Spanned<String>, case: &Case) -> Result<String, Wrong> {
    let (at, name) = (name.span().start, name.into_inner());
    let names: Vec<&str> = case.exchanges.iter().map(|known| known.name.as_str()).collect();
    match names.contains(&name.as_str()) {
        true => Ok(name),
        false if names.is_empty() => {
            Err((at, format!("{} has no named exchanges; omit the key exchange", case.id)))
        }
        false => {
            let list = names.join(", ");
            Err((at, format!("{} has no exchange {}; it has {list}", case.id, quoted(&name))))
        }
    }
}

fn outcome(id: toml::Spanned<String>) -> Result<TestOutcome, Wrong> {
    let (at, id) = (id.span().start, id.into_inner());
    let findings = || TestOutcome::ALL.into_iter().filter(|outcome| outcome.is_finding());
    let ids: Vec<&str> = findings().map(TestOutcome::id).collect();
    let wrong =
        || (at, format!("{} is not a finding; findings are {}", quoted(&id), ids.join(", ")));
    findings().find(|outcome| outcome.id() == id).ok_or_else(wrong)
}

fn parse_day(given: &toml::value::Datetime) -> Option<Day> {
    let date = given.date.filter(|_| given.time.is_none() && given.offset.is_none())?;
    let month = Month::try_from(date.month).ok()?;
    Date::from_calendar_date(i32::from(date.year), month, date.day).ok().map(Day)
}

/// Effect of a waiver in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum WaiverState {
    /// The waiver is valid, and the finding occurred.
    Used,
    /// The waiver has expired: the finding counts again.
    Expired,
    /// The case was tested and did not fail: remove the waiver.
    Unneeded,
    /// The finding is worse than the waiver permits, or the case failed in another way too.
    Exceeded,
    /// The case was not tested.
    Untested,
}

/// A waiver, and whether it held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct Applied {
    #[serde(flatten)]
    pub waiver: Waiver,
    pub state: WaiverState,
}

impl Applied {
    /// Describes the waiver: `S-07 tab, until 2027-01-31: reason`.
    pub fn what(&self) -> String {
        let waiver = &self.waiver;
        let exchange = waiver.exchange.as_ref().map(|name| format!(" {name}"));
        let exchange = exchange.unwrap_or_default();
        format!("{}{exchange}, until {}: {}", waiver.case, waiver.until, waiver.reason)
    }

    /// Returns why the waiver needs attention; `None` if it had its intended effect.
    pub fn word(&self) -> Option<&'static str> {
        match self.state {
            WaiverState::Used => None,
            WaiverState::Expired => Some("it has expired: the finding counts again"),
            WaiverState::Unneeded => Some("nothing that it names failed: remove it"),
            WaiverState::Exceeded => Some("the finding is worse than the waiver allows: it counts"),
            WaiverState::Untested => Some("the case was not tested"),
        }
    }
}

/// Returns the waiver of the findings of this case, if there is one.
pub(super) fn used<'a>(all: &'a [Applied], case: &str) -> Option<&'a Applied> {
    all.iter().find(|one| one.waiver.case == case && one.state == WaiverState::Used)
}

/// Compares the waivers with the results of the cases.
pub fn apply(waivers: &[Waiver], cases: &[CaseResult], today: Day) -> Vec<Applied> {
    let one = |waiver: &Waiver| {
        let case = cases.iter().find(|case| case.case.id == waiver.case);
        Applied { waiver: waiver.clone(), state: state(waiver, waivers, case, today) }
    };
    waivers.iter().map(one).collect()
}

fn state(waiver: &Waiver, all: &[Waiver], case: Option<&CaseResult>, today: Day) -> WaiverState {
    let Some(case) = case.filter(|case| case.outcome.is_tested()) else {
        return WaiverState::Untested;
    };
    let found = match &waiver.exchange {
        None => Some(case.outcome),
        Some(name) => {
            let own = case.exchanges.iter().find(|exchange| exchange.name == *name);
            own.map(|exchange| exchange.judgement.outcome)
        }
    };
    match found {
        None => WaiverState::Untested,
        Some(outcome) if !outcome.is_finding() => WaiverState::Unneeded,
        Some(_) if waiver.until < today => WaiverState::Expired,
        Some(outcome) if waiver.outcome.is_some_and(|most| outcome > most) => WaiverState::Exceeded,
        Some(_) if covered(case, all, today) => WaiverState::Used,
        Some(_) => WaiverState::Exceeded,
    }
}

/// Returns whether valid waivers cover every finding of a case.
fn covered(case: &CaseResult, all: &[Waiver], today: Day) -> bool {
    let holds = |waiver: &&Waiver| waiver.case == case.case.id && today <= waiver.until;
    let bears = |waiver: &Waiver, outcome| waiver.outcome.is_none_or(|most| outcome <= most);
    let own = all.iter().filter(holds);
    if own.clone().any(|waiver| waiver.exchange.is_none() && bears(waiver, case.outcome)) {
        return true;
    }
    let bad = || case.exchanges.iter().filter(|one| one.judgement.outcome.is_finding());
    // a reason outside the exchanges, such as a server that took long to answer again
    let beside = case.recovery.is_late()
        || bad().map(|one| one.judgement.outcome).max() != Some(case.outcome);
    !beside
        && bad().all(|one| {
            let outcome = one.judgement.outcome;
            let names = |waiver: &Waiver| waiver.exchange.as_ref() == Some(&one.name);
            own.clone().any(|waiver| names(waiver) && bears(waiver, outcome))
        })
}

#[cfg(test)]
mod tests;
