//! Growth over the whole run, which a single case cannot show. Resources that grow from case to
//! case are confirmed by repeating each kind of request in batches; the result is a slope with its
//! interval.

use crate::attempts::Rate;
use crate::families::random;
use crate::leak::HeldResource;
use crate::{PLAIN_CALLS, Runner, culprit, habits, memory, scripts};
use dialogue::talk::TalkScript;
use sample::ServerState;
use stats::{fit, interval};
use torture::case::{Case, Fuzz, GrowthRounds};
use torture::fuzz::{self, FuzzPlace};
use torture::judge::{self, Cause, ConversationOutcome, Judgement, PressureOutcome};
use torture::result::{CaseResult, ServerRow};
use units::{Nanos, show};

/// Resource; the growth over the run from which it is examined; and the minimum growth in the
/// batches that confirms it.
struct Resource {
    what: HeldResource,
    grown: u64,
    least: u64,
}

impl Resource {
    fn levels(&self, states: &[ServerState]) -> Vec<u64> {
        states.iter().map(|state| self.what.level(state)).collect()
    }
}

/// Factor on the number of batches to confirm growth of memory, and the number of confirmations.
const LONGER: u64 = 4;
const CONFIRMATIONS: usize = 3;

const RESOURCES: [Resource; 3] = [
    Resource { what: HeldResource::Memory, grown: 8 << 20, least: 1 << 20 },
    Resource { what: HeldResource::Descriptors, grown: 16, least: 8 },
    Resource { what: HeldResource::Threads, grown: 16, least: 8 },
];

/// Growth by at least this factor is examined.
const FACTOR: f64 = 1.25;
/// Time for the server to settle after a batch.
const SETTLE: Nanos = Nanos::from_millis(300);
/// Number of concurrent requests.
const AT_ONCE: usize = 8;
/// Longest random data of a batch.
const LENGTH: u64 = 4_000;
/// First index of the batches, above those of the cases.
const FIRST: u64 = 1 << 32;
/// The plain page is slow if it takes more than this multiple of its median before the run, and at
/// least this much longer.
const SLOW_FACTOR: u64 = 5;
const SLOW_MORE: Nanos = Nanos::from_millis(20);

/// Kinds of requests that a batch repeats. Plain requests show growth that unusual requests do not
/// cause.
const KINDS: [(&str, Repeated); 6] = [
    ("plain requests", Repeated::Plain),
    ("random data in the query", Repeated::Random(FuzzPlace::Query)),
    ("random data in the body", Repeated::Random(FuzzPlace::Body)),
    ("random bytes", Repeated::Random(FuzzPlace::Raw)),
    ("random fields", Repeated::Random(FuzzPlace::Fields)),
    ("aborted requests", Repeated::Random(FuzzPlace::Aborts)),
];

/// Requests of a batch.
#[derive(Clone, Copy, PartialEq)]
enum Repeated {
    Plain,
    Random(FuzzPlace),
}

pub(super) fn run(
    runner: &mut Runner<'_>,
    case: &Case,
    with: &GrowthRounds,
    result: &mut CaseResult,
) {
    response_time(runner, result);
    let mut grown = grown_resources(runner.life.rows());
    let has_memory = grown.iter().any(|one| one.what == HeldResource::Memory);
    if has_memory && memory::note_idle_growth(runner, result) {
        grown.retain(|one| one.what != HeldResource::Memory);
    }
    if grown.is_empty() || !runner.world.governor().may_repeat() {
        return;
    }
    for (name, repeated) in KINDS {
        if runner.life.is_gone() {
            return;
        }
        if repeated == Repeated::Random(FuzzPlace::Body) && !runner.target.takes_bodies {
            continue;
        }
        let Some(batches) = batches(runner, case, repeated, with) else {
            return unexamined(&grown, name, None, result);
        };
        for resource in &RESOURCES {
            if !grown.iter().any(|known| known.what == resource.what) {
                continue;
            }
            let levels = resource.levels(&batches.levels);
            let Some(slope) = Slope::new(&levels).filter(|slope| slope.is_growth(resource)) else {
                continue;
            };
            let (slope, batches) = match resource.what {
                HeldResource::Memory => {
                    match continued(runner, case, repeated, with, (resource, &slope)) {
                        Continued::Steady(slope, batches) => (slope, *batches),
                        Continued::LevelsOff => continue,
                        Continued::CutShort => {
                            return unexamined(&grown, name, Some((resource, &slope)), result);
                        }
                    }
                }
                HeldResource::Descriptors | HeldResource::Threads => (slope, batches),
            };
            leaked(runner, case, (name, with.requests), resource, &slope, &batches, result);
            let every = repeated == Repeated::Plain && resource.what == HeldResource::Descriptors;
            if let Some(last) = result.exchanges.last_mut().filter(|_| every) {
                last.judgement.cause = Some(Cause::EveryConnection);
            }
            return;
        }
    }
    result.notes.push(format!(
        "{}, but repeating each kind of request does not add to it: a cache or a pool was filled",
        description(&grown)
    ));
}

fn description(grown: &[Grown]) -> String {
    let all: Vec<&str> = grown.iter().map(|one| one.text.as_str()).collect();
    all.join("; ")
}

/// Records growth that was not confirmed, because the time was over or the server's processes were
/// not visible during batches of this kind. `steep`: the growth in the first batches of this kind.
fn unexamined(
    grown: &[Grown],
    name: &str,
    steep: Option<(&Resource, &Slope)>,
    result: &mut CaseResult,
) {
    let found = steep.map(|(resource, slope)| {
        let per_batch = resource.what.format_amount(slope.per_batch.max(0.0) as u64);
        format!(" ({per_batch} a batch so far)")
    });
    let why = format!(
        "{}; batches of {name}{} ended too early to show whether the growth continues",
        description(grown),
        found.unwrap_or_default()
    );
    result.note(PressureOutcome::Inconclusive, why);
}

/// Result of more batches.
enum Continued {
    /// The growth continued: the last slope and its batches.
    Steady(Slope, Box<Batches>),
    /// The growth stopped, or fell below half of the first slope.
    LevelsOff,
    /// The time was over, or the server's processes were no longer visible.
    CutShort,
}

/// Repeats more batches several times, because the heap of a garbage-collected language grows for a
/// while.
fn continued(
    runner: &mut Runner<'_>,
    case: &Case,
    repeated: Repeated,
    with: &GrowthRounds,
    (resource, first): (&Resource, &Slope),
) -> Continued {
    let more = GrowthRounds { batches: with.batches * LONGER, ..*with };
    let mut last = Continued::LevelsOff;
    for _ in 0..CONFIRMATIONS {
        let Some(batches) = batches(runner, case, repeated, &more) else {
            return Continued::CutShort;
        };
        let levels = resource.levels(&batches.levels);
        match Slope::new(&levels).filter(|slope| slope.is_growth(resource)) {
            Some(slope) if slope.per_batch * 2.0 >= first.per_batch => {
                last = Continued::Steady(slope, Box::new(batches));
            }
            _ => return Continued::LevelsOff,
        }
    }
    last
}

/// Growth over the run.
struct Grown {
    what: HeldResource,
    text: String,
}

/// Returns the resources that grew from the first case to the last, with the cases that added most.
/// If the number of workers changes, so do their resources.
fn grown_resources(rows: &[ServerRow]) -> Vec<Grown> {
    let (Some(first), Some(last)) = (rows.first(), rows.last()) else { return Vec::new() };
    let same = first.state.workers.len() == last.state.workers.len();
    if !same || !first.state.machine.is_empty() || first.state.listeners != last.state.listeners {
        return Vec::new();
    }
    let one = |resource: &Resource| {
        let what = resource.what;
        let (before, after) = (what.level(&first.state), what.level(&last.state));
        let is_grown = after.saturating_sub(before) >= resource.grown
            && after as f64 >= before as f64 * FACTOR;
        let (before, after) = (what.format_amount(before), what.format_amount(after));
        let most = most_added(rows, what);
        let name = what.text();
        let text = format!("{name} grew from {before} to {after} over the run{most}");
        is_grown.then_some(Grown { what, text })
    };
    RESOURCES.iter().filter_map(one).collect()
}

/// Names the cases that added most.
fn most_added(rows: &[ServerRow], what: HeldResource) -> String {
    let mut steps: Vec<(u64, &str)> = rows
        .windows(2)
        .map(|two| {
            let added = what.level(&two[1].state).saturating_sub(what.level(&two[0].state));
            (added, two[1].case.as_str())
        })
        .filter(|(added, _)| *added > 0)
        .collect();
    steps.sort_by_key(|(added, _)| std::cmp::Reverse(*added));
    let named: Vec<String> = steps
        .iter()
        .take(3)
        .map(|(added, case)| format!("{case} {}", what.format_amount(*added)))
        .collect();
    if named.is_empty() { String::new() } else { format!(" (most in {})", named.join(", ")) }
}

/// Samples of the server before the batches and after each batch, with a request of the batches.
struct Batches {
    levels: Vec<ServerState>,
    example: TalkScript,
}

/// Repeats a kind of request in batches; `None` if the server is not visible.
fn batches(
    runner: &mut Runner<'_>,
    case: &Case,
    repeated: Repeated,
    with: &GrowthRounds,
) -> Option<Batches> {
    let mut levels = vec![runner.world.server()?];
    let mut example = None;
    for batch in 0..with.batches {
        let numbers: Vec<u64> = (0..with.requests).map(|at| at + batch * with.requests).collect();
        for some in numbers.chunks(AT_ONCE) {
            if runner.must_end_run() {
                return None;
            }
            let scripts: Vec<TalkScript> = some
                .iter()
                .map(|index| match repeated {
                    Repeated::Plain => scripts::plain(runner),
                    Repeated::Random(place) => {
                        random_script(runner, case, (place, with.requests), FIRST + index)
                    }
                })
                .collect();
            example = example.or_else(|| scripts.first().cloned());
            runner.play_all(scripts);
        }
        runner.world.pause(SETTLE);
        levels.push(runner.world.server()?);
    }
    Some(Batches { levels, example: example? })
}

fn random_script(
    runner: &mut Runner<'_>,
    case: &Case,
    (place, count): (FuzzPlace, u64),
    index: u64,
) -> TalkScript {
    let random = Fuzz { place, count, length: LENGTH };
    let (seed, values) = (runner.settings.seed, &runner.target.values);
    let fields = &runner.target.fields;
    let shot = fuzz::shot(seed, &case.id, case.version, &random, index, values, fields);
    random::script(runner, &shot)
}

/// Growth per batch by least squares, with the lower end of its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Slope {
    per_batch: f64,
    lower: f64,
    batches: f64,
}

impl Slope {
    /// Fits the growth per batch; `None` if the levels have no trend. `levels`: one before the
    /// first batch, which fills pools and is omitted, and one after each batch.
    fn new(levels: &[u64]) -> Option<Slope> {
        let levels = levels.get(1..).filter(|levels| levels.len() > 2)?;
        let points: Vec<(f64, f64)> =
            levels.iter().enumerate().map(|(at, level)| (at as f64, *level as f64)).collect();
        let per_batch = fit::slope(&points);
        let count = points.len() as f64;
        let mean_x = (count - 1.0) / 2.0;
        let mean_y = points.iter().map(|(_, y)| y).sum::<f64>() / count;
        let spread: f64 = points.iter().map(|(x, _)| (x - mean_x).powi(2)).sum();
        let residual = |(x, y): &(f64, f64)| (y - mean_y - per_batch * (x - mean_x)).powi(2);
        let degrees = points.len() as u64 - 2;
        let error = (points.iter().map(residual).sum::<f64>() / degrees as f64 / spread).sqrt();
        let half = interval::student_t(degrees) * error;
        Some(Slope { per_batch, lower: per_batch - half, batches: count - 1.0 })
    }

    fn is_growth(&self, resource: &Resource) -> bool {
        self.lower > 0.0 && self.lower * self.batches >= resource.least as f64
    }
}

/// Records a confirmed leak, with one of the requests.
fn leaked(
    runner: &mut Runner<'_>,
    case: &Case,
    (name, requests): (&str, u64),
    resource: &Resource,
    slope: &Slope,
    batches: &Batches,
    result: &mut CaseResult,
) {
    let words = |value: f64| resource.what.format_amount(value.max(0.0) as u64);
    let why = format!(
        "{} grows by {} per {requests} requests (at least {} with 95 % confidence), over {} \
        batches, without leveling off",
        resource.what.text(),
        words(slope.per_batch),
        words(slope.lower),
        show::count(slope.batches as u64)
    );
    let script = TalkScript { start: runner.now(), ..batches.example.clone() };
    let talk = runner.hold(script.clone());
    let judgement = Judgement {
        outcome: PressureOutcome::Leak.into(),
        seen: judge::seen(&talk),
        expected: "resources of a request are released after it".to_owned(),
        why,
        ..Judgement::default()
    };
    culprit::keep(runner, case, name, Rate::ONCE, (&script, talk), judgement, result);
}

/// Compares the response time of the plain page with that before the first case.
fn response_time(runner: &mut Runner<'_>, result: &mut CaseResult) {
    let before = runner.profile.quiet().p50;
    let mut now: Vec<Nanos> = Vec::new();
    for _ in 0..PLAIN_CALLS {
        let talk = runner.ask(&habits::plain_request(runner.target, "Connection: close\r\n"));
        now.push(talk.over);
    }
    now.sort();
    let median = now[now.len() / 2];
    if before > Nanos::ZERO && median > before * SLOW_FACTOR && median > before + SLOW_MORE {
        let why = format!(
            "the plain page takes {} at the end of the run, and took {} before it",
            show::duration(median),
            show::duration(before)
        );
        result.note(ConversationOutcome::Advisory, why);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use torture::judge::TestOutcome;

    #[test]
    fn steady_growth_is_a_leak_and_noise_is_not() {
        let [memory, descriptors, _] = RESOURCES;
        let mib = |levels: [u64; 6]| Slope::new(&levels.map(|level| level << 20)).unwrap();
        assert!(mib([10, 20, 22, 24, 26, 28]).is_growth(&memory));
        // filled by the first batch
        assert!(!mib([10, 60, 60, 60, 60, 60]).is_growth(&memory));
        assert!(!mib([10, 30, 24, 31, 25, 30]).is_growth(&memory));
        assert!(!Slope::new(&[5, 6, 7, 8, 9, 10]).unwrap().is_growth(&descriptors));
        assert!(Slope::new(&[5, 25, 45, 65, 85, 105]).unwrap().is_growth(&descriptors));
        assert_eq!(Slope::new(&[1, 2, 3]), None);
    }

    #[test]
    fn growth_that_batches_did_not_confirm_is_reported() {
        let rows = |levels: &[(&str, u64)]| -> Vec<ServerRow> {
            let row = |(case, memory): &(&str, u64)| {
                let state = ServerState { memory_bytes: memory << 20, ..ServerState::default() };
                ServerRow { at: Nanos::ZERO, case: (*case).to_owned(), state }
            };
            levels.iter().map(row).collect()
        };
        assert!(grown_resources(&rows(&[("", 20), ("F-01", 24), ("F-02", 26)])).is_empty());
        let grown = grown_resources(&rows(&[("", 20), ("F-01", 24), ("F-02", 40)]));
        let text = "resident memory grew from 20.0 MiB to 40.0 MiB over the run (most in F-02 16.0 MiB, F-01 \
            4.00 MiB)";
        assert_eq!(description(&grown), text);
        let cases = torture::catalogue::cases().unwrap();
        let case = cases.iter().find(|case| case.id == "C-14").unwrap();
        let [memory, ..] = RESOURCES;
        let slope = Slope::new(&[10, 20, 22, 24, 26, 28].map(|level| level << 20)).unwrap();
        for (steep, found) in [(None, ""), (Some((&memory, &slope)), " (2.00 MiB a batch so far)")]
        {
            let mut result = CaseResult::new(case);
            unexamined(&grown, "random bytes", steep, &mut result);
            assert_eq!(result.outcome, TestOutcome::Inconclusive);
            let why = format!(
                "{text}; batches of random bytes{found} ended too early to show whether the growth continues"
            );
            assert_eq!(result.notes, [why]);
        }
    }
}
