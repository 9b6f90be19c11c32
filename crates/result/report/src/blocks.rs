//! Blocks shared by the reports of runs and of ramps: verdict, conduct, findings, cells of times.

use crate::Finding;
use crate::section::{Block, CellLook, Mood, Notice, Reason, Remedy, TableCell, heading};
use crate::words::{self, printable};
use record::run::{ConductRecord, SloRecord, VerdictRecord};
use stats::{Hist, State, samples_needed};
use units::show;

/// Renders the state of the server, with one of its responses if they are faulty.
pub(crate) fn conduct(server: &ConductRecord) -> Block {
    Block::Notice(Notice {
        label: "Server",
        mood: if server.state.is_good() { Mood::Good } else { Mood::Bad },
        word: server.state.word().to_owned(),
        sentence: server.sentence.clone(),
        example: server.example.clone(),
        ..Notice::default()
    })
}

/// Returns only the sentence of [`conduct`].
pub(crate) fn conduct_line(server: &ConductRecord) -> Block {
    match conduct(server) {
        Block::Notice(notice) => Block::Notice(Notice { example: None, ..notice }),
        block => block,
    }
}

/// Returns the verdict with the ids of its causes: `INVALID: slip, drift`.
pub(crate) fn verdict_words(verdict: &VerdictRecord) -> String {
    let causes: Vec<&str> = verdict.causes.iter().map(|cause| cause.id.id()).collect();
    match (verdict.state, &causes[..]) {
        (State::Valid, _) | (_, []) => verdict.state.id().to_owned(),
        (state, causes) => format!("{}: {}", state.id(), causes.join(", ")),
    }
}

/// Returns [`verdict_words`] as a line.
pub(crate) fn verdict_line(verdict: &VerdictRecord) -> Block {
    let word = verdict.state.id().to_owned();
    let sentence = verdict_words(verdict);
    let mood = mood(verdict.state);
    Block::Notice(Notice { label: "Measurement", mood, word, sentence, ..Notice::default() })
}

/// Every cause of a verdict, with its advice.
pub(crate) const ALL_CAUSES: (usize, usize) = (usize::MAX, usize::MAX);

/// Renders the validity of a measurement. Text has the first `causes` of its causes, of these
/// `advised` with advice.
pub(crate) fn verdict(verdict: &VerdictRecord, (causes, advised): (usize, usize)) -> Block {
    let state = verdict.state;
    let reason = |cause: &record::run::CauseRecord| Reason {
        // remarks on a valid result do not reduce its validity
        id: if state == State::Valid { "note".to_owned() } else { cause.id.to_string() },
        text: cause.text.clone(),
        advice: cause.advice.clone(),
    };
    Block::Notice(Notice {
        label: "Measurement",
        mood: mood(state),
        word: state.id().to_owned(),
        meaning: words::state_meaning(verdict),
        reasons: verdict.causes.iter().map(reason).collect(),
        shown: (causes, advised),
        ..Notice::default()
    })
}

fn mood(state: State) -> Mood {
    match state {
        State::Valid => Mood::Good,
        State::Degraded => Mood::Doubtful,
        State::Invalid => Mood::Bad,
    }
}

/// Returns a cell with the verdict in its color.
pub(crate) fn state_cell(state: State) -> TableCell {
    TableCell::new(CellLook::State(mood(state)), state.id())
}

/// Formats the verdict and a name for Markdown: `✅ VALID: name`, or with missed objectives `❌
/// VALID, 1 of 3 objectives missed: name`.
pub(crate) fn verdict_heading(
    verdict: &VerdictRecord,
    objectives: &[SloRecord],
    name: &str,
) -> String {
    let missed = objectives.iter().filter(|one| !one.met && !one.undecided).count();
    let undecided = objectives.iter().filter(|one| one.undecided).count();
    let mark = match verdict.state {
        State::Invalid => "❌",
        _ if missed > 0 => "❌",
        State::Valid if undecided == 0 => "✅",
        State::Valid | State::Degraded => "⚠️",
    };
    let all = objectives.len();
    let missed = match (missed, undecided) {
        (0, 0) => String::new(),
        (0, count) => format!(", {count} of {all} objectives undecided"),
        (count, _) => format!(", {count} of {all} objectives missed"),
    };
    format!("{mark} {}{missed}: {}", verdict.state.id(), printable(name, 200))
}

/// Returns the server's bottlenecks, most certain first; nothing without findings.
pub(crate) fn findings(all: &[Finding]) -> Vec<Block> {
    if all.is_empty() {
        return Vec::new();
    }
    let remedy = |one: &Finding| Remedy {
        id: printable(&one.id, 80),
        sure: one.confidence.to_string(),
        evidence: one.evidence.clone(),
        advice: one.advice.clone(),
    };
    vec![heading("What limits this server"), Block::Findings(all.iter().map(remedy).collect())]
}

/// Formats a quantile, marked if it has fewer samples than it needs; a dash without samples.
pub(crate) fn quantile(hist: &Hist, quantile: f64) -> String {
    if hist.is_empty() {
        return "-".to_owned();
    }
    let mark = if hist.count() < samples_needed(quantile) { "~" } else { "" };
    format!("{mark}{}", show::duration(hist.quantile(quantile)))
}

/// Returns the quantile as a cell that is sorted by its time.
pub(crate) fn quantile_cell(hist: &Hist, of: f64) -> TableCell {
    match hist.is_empty() {
        true => "-".into(),
        false => TableCell::by(hist.quantile(of).0 as f64, quantile(hist, of)),
    }
}

/// Returns a cell with the longest time, sorted by that time.
pub(crate) fn longest_cell(hist: &Hist) -> TableCell {
    match hist.is_empty() {
        true => "-".into(),
        false => TableCell::by(hist.max().0 as f64, show::duration(hist.max())),
    }
}

/// Returns a cell with a count, sorted by that count.
pub(crate) fn count_cell(count: u64) -> TableCell {
    TableCell::by(count as f64, show::count(count))
}
