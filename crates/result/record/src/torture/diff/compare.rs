//! Differences.

use super::{
    ChangeKind, ChangeRecord, DiffRecord, DiffSideRecord, HabitChangeRecord, LimitChangeRecord,
    SCHEMA,
};
use crate::torture::{CaseRecord, LimitRecord, TortureRecord};
use torture::result::Unit;

/// Times vary between runs: a change below this share is not a difference.
const TIME_MOVES: f64 = 0.05;
/// Minimum reported change of a time, in seconds.
const TIME_MOVES_S: f64 = 0.5;
/// Rates and quotients move more than times.
const RATE_MOVES: f64 = 0.2;

/// Compares B with A.
pub fn compare(a: &TortureRecord, b: &TortureRecord) -> DiffRecord {
    let mut changes: Vec<ChangeRecord> =
        a.cases.iter().filter_map(|row| change(row, find(b, row))).collect();
    changes.extend(b.cases.iter().filter(|row| find(a, row).is_none()).map(only_in_b));
    changes.sort_by_key(|change| change.kind);
    let same = |row: &&CaseRecord| find(b, row).is_some() && change(row, find(b, row)).is_none();
    DiffRecord {
        schema: SCHEMA.to_owned(),
        a: DiffSideRecord::new(a),
        b: DiffSideRecord::new(b),
        worse: changes.iter().filter(|change| change.is_worse()).count() as u64,
        unchanged: a.cases.iter().filter(same).count() as u64,
        changes,
        limits: limits(a, b),
        habits: habits(a, b),
        cautions: cautions(a, b),
    }
}

fn find<'a>(document: &'a TortureRecord, row: &CaseRecord) -> Option<&'a CaseRecord> {
    document.cases.iter().find(|other| other.id == row.id)
}

fn is_tested(row: &CaseRecord) -> bool {
    row.outcome.is_tested()
}

/// Returns `None` without a change.
fn change(a: &CaseRecord, b: Option<&CaseRecord>) -> Option<ChangeRecord> {
    let Some(b) = b else {
        return Some(ChangeRecord {
            case: a.id.clone(),
            title: a.title.clone(),
            kind: ChangeKind::OnlyA,
            a: Some(a.outcome),
            b: None,
            detail: String::new(),
            waived: None,
        });
    };
    let (kind, detail) = verdict(a, b)?;
    let outcomes = (Some(a.outcome), Some(b.outcome));
    let waived = b.waived.clone().filter(|_| b.outcome.is_finding());
    let (case, title) = (b.id.clone(), b.title.clone());
    Some(ChangeRecord { case, title, kind, a: outcomes.0, b: outcomes.1, detail, waived })
}

fn only_in_b(row: &CaseRecord) -> ChangeRecord {
    ChangeRecord {
        case: row.id.clone(),
        title: row.title.clone(),
        kind: ChangeKind::OnlyB,
        a: None,
        b: Some(row.outcome),
        detail: String::new(),
        waived: row.waived.clone(),
    }
}

fn verdict(a: &CaseRecord, b: &CaseRecord) -> Option<(ChangeKind, String)> {
    if a.version != b.version {
        let versions = format!("version {} in A, {} in B: not compared", a.version, b.version);
        return Some((ChangeKind::Version, versions));
    }
    if !is_tested(a) || !is_tested(b) {
        let untested = if is_tested(a) { b } else { a };
        let finding = a.outcome.is_finding() || b.outcome.is_finding();
        return finding
            .then(|| (ChangeKind::Untested, untested.skipped.clone().unwrap_or_default()));
    }
    let kind = match (a.outcome.is_finding(), b.outcome.is_finding()) {
        (false, false) if a.outcome == b.outcome => return None,
        (false, false) => ChangeKind::Other,
        (false, true) => ChangeKind::New,
        (true, false) => ChangeKind::Fixed,
        (true, true) => {
            let (more, fewer) = (new_failures(a, b), new_failures(b, a));
            let kind = match b.outcome.cmp(&a.outcome) {
                std::cmp::Ordering::Greater => ChangeKind::Worse,
                std::cmp::Ordering::Less => ChangeKind::Eased,
                std::cmp::Ordering::Equal if !more.is_empty() => ChangeKind::Worse,
                std::cmp::Ordering::Equal if !fewer.is_empty() => ChangeKind::Eased,
                std::cmp::Ordering::Equal => ChangeKind::Still,
            };
            let describe = |what: &str, names: Vec<&str>| {
                (!names.is_empty()).then(|| format!("{what}: {}", names.join(", ")))
            };
            let parts = [describe("fails now", more), describe("no longer fails", fewer)];
            return Some((kind, parts.into_iter().flatten().collect::<Vec<_>>().join("; ")));
        }
    };
    Some((kind, impact(a, b)))
}

/// Returns the exchanges that fail in `b` and did not in `a`. Those of random data have different
/// names each time and are ignored.
fn new_failures<'a>(a: &CaseRecord, b: &'a CaseRecord) -> Vec<&'a str> {
    let fails = |row: &CaseRecord, name: &str| {
        row.exchanges.iter().any(|one| one.name == name && one.outcome.is_finding())
    };
    if !a.tally.is_empty() || !b.tally.is_empty() {
        return Vec::new();
    }
    let names = b.exchanges.iter().map(|one| one.name.as_str());
    names.filter(|name| fails(b, name) && !fails(a, name)).collect()
}

/// Describes the losses of well-behaved clients, if both sides applied load.
fn impact(a: &CaseRecord, b: &CaseRecord) -> String {
    match (&a.health, &b.health) {
        (Some(a), Some(b)) => {
            let share = units::show::share;
            format!("well-behaved clients lost {}, now {}", share(a.lost), share(b.lost))
        }
        _ => String::new(),
    }
}

fn limits(a: &TortureRecord, b: &TortureRecord) -> Vec<LimitChangeRecord> {
    let comparable = |limit: &&LimitRecord| {
        let version = |document: &TortureRecord| {
            document.cases.iter().find(|row| row.id == limit.case).map(|row| row.version)
        };
        version(a) == version(b)
    };
    let named = |all: &[LimitRecord], limit: &LimitRecord| -> Option<LimitRecord> {
        all.iter().find(|other| other.case == limit.case && other.what == limit.what).cloned()
    };
    let mut moved: Vec<LimitChangeRecord> = Vec::new();
    for limit in a.limits.iter().filter(comparable) {
        let other = named(&b.limits, limit);
        if other.as_ref().is_none_or(|other| is_moved(limit, other)) {
            let (case, what) = (limit.case.clone(), limit.what.clone());
            moved.push(LimitChangeRecord { case, what, a: Some(limit.clone()), b: other });
        }
    }
    for limit in b.limits.iter().filter(comparable) {
        if named(&a.limits, limit).is_none() {
            let (case, what) = (limit.case.clone(), limit.what.clone());
            moved.push(LimitChangeRecord { case, what, a: None, b: Some(limit.clone()) });
        }
    }
    moved
}

/// Returns whether the brackets do not overlap, by more than such numbers vary from run to run, or
/// whether the same size is refused in another way.
fn is_moved(a: &LimitRecord, b: &LimitRecord) -> bool {
    if a.unit != b.unit {
        return true;
    }
    let ends = |limit: &LimitRecord| {
        (limit.low.unwrap_or(f64::NEG_INFINITY), limit.high.unwrap_or(f64::INFINITY))
    };
    let ((a_low, a_high), (b_low, b_high)) = (ends(a), ends(b));
    let gap = (b_low - a_high).max(a_low - b_high);
    let size = [a.low, a.high, b.low, b.high]
        .into_iter()
        .flatten()
        .fold(0.0_f64, |most, one| most.max(one.abs()));
    let allowed = match a.unit {
        Unit::Seconds => (size * TIME_MOVES).max(TIME_MOVES_S),
        Unit::PerSecond | Unit::Ratio => size * RATE_MOVES,
        _ => 0.0,
    };
    let exact = matches!(a.unit, Unit::Bytes | Unit::Fields);
    gap > allowed || exact && a.note != b.note
}

fn habits(a: &TortureRecord, b: &TortureRecord) -> Vec<HabitChangeRecord> {
    let mut all = Vec::new();
    for habit in &a.habits {
        let now = b.habits.iter().find(|other| other.name == habit.name);
        if let Some(now) = now.filter(|now| now.seen != habit.seen) {
            let (name, a) = (habit.name.clone(), habit.seen.clone());
            all.push(HabitChangeRecord { name, a, b: now.seen.clone() });
        }
    }
    all
}

fn cautions(a: &TortureRecord, b: &TortureRecord) -> Vec<String> {
    let mut all = Vec::new();
    let mut differ = |what: &str, a: String, b: String| {
        if a != b {
            all.push(format!("{what}: {a} in A, {b} in B"));
        }
    };
    differ("targets", a.target.clone(), b.target.clone());
    differ("versions of loadstone", a.version.clone(), b.version.clone());
    differ("seeds, and therefore random data", a.seed.to_string(), b.seed.to_string());
    let page = |document: &TortureRecord| {
        format!("{} with {}", document.plain.status, units::show::bytes(document.plain.body_bytes))
    };
    differ("probed pages", page(a), page(b));
    for (letter, document) in [("A", a), ("B", b)] {
        if let Some(why) = &document.ended_early {
            all.push(format!("{letter} ended early: {why}"));
        }
        if document.interrupted {
            all.push(format!("{letter} was interrupted"));
        }
    }
    all
}
