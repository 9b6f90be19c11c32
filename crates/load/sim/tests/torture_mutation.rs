//! A bug that is reached only from earlier findings: a search that keeps specimens with new
//! behavior finds it, rates it, shrinks it and replays it; a search that keeps none does not.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its scene has failed")]

use campaign::shrink::Budget;
use campaign::{CampaignEvent, Failure, Settings, Timing, Unwatched, Watcher};
use faulty::{Defect, Defects};
use sim::World;
use sim::torture::{Field, FiringRange, target};
use std::fmt::Write;
use torture::case::{Case, Family};
use torture::catalogue;
use torture::judge::{TestOutcome, severity};
use torture::record;
use torture::record::{Run, Transcript};
use torture::result::{RunResult, is_accused};
use units::Nanos;

/// The default number of a run.
const MUTANTS: u64 = 1_000;

const BUG: [Defect; 1] = [Defect::DiesOfTrailedExtension];

fn field(defects: &[Defect]) -> Field {
    let defects: Defects = defects.iter().copied().collect();
    let range = Box::new(FiringRange::new(&defects));
    Field::new(World::new(range, Nanos::from_millis(1), Nanos::from_secs(20_000)))
}

/// Returns case F-15 with room for this many specimens in addition to the seeds.
fn case(corpus: u64) -> Case {
    let mut case = catalogue::cases().unwrap().into_iter().find(|case| case.id == "F-15").unwrap();
    let Some(Family::MutateBodies(with)) = &mut case.family else { panic!("{:?}", case.family) };
    with.corpus = corpus;
    with.span = Nanos::from_secs(10_000);
    case
}

fn settings(seed: u64) -> Settings {
    let search = Some(Budget { executions: 2_000, span: Nanos::from_secs(600) });
    Settings {
        seed,
        baseline: Nanos::SECOND,
        search,
        mutants_max: Some(MUTANTS),
        ..Settings::default()
    }
}

#[derive(Default)]
struct Kept {
    run: Run,
    failures: Vec<Transcript>,
    sent: Vec<Vec<u8>>,
}

impl Watcher for Kept {
    fn observe(&mut self, event: CampaignEvent<'_>) {
        match event {
            CampaignEvent::Ready(plain) => self.run.plain = plain.clone(),
            CampaignEvent::ConversationOver(execution) => {
                self.sent.push(record::sent(&execution.script.steps));
                if execution.judgement.outcome.is_finding() {
                    self.failures.push(Transcript::new(&self.run, execution));
                }
            }
            _ => {}
        }
    }
}

fn searched(seed: u64, corpus: u64, defects: &[Defect]) -> (RunResult, Kept) {
    let (cases, mut kept) = ([case(corpus)], Kept::default());
    let result = campaign::run(&target(), &settings(seed), &cases, &mut field(defects), &mut kept);
    (result, kept)
}

fn replayed(failure: &Failure, defects: &[Defect]) -> String {
    let failures = std::slice::from_ref(failure);
    let (settings, times) = (Settings::default(), (3, Timing::Kept));
    let mut world = field(defects);
    let result =
        campaign::replay(&target(), &settings, failures, times, &mut world, &mut Unwatched);
    let row = &result.rows[0];
    format!("{}, {} of {}", row.verdict.id(), row.failed, row.tries)
}

/// The first 8 seeds, none chosen; of the first 64, 57 find the bug, and 1 without feedback.
const SEEDS: std::ops::RangeInclusive<u64> = 1..=8;

#[test]
fn a_bug_after_new_behavior_is_found_by_feedback() {
    let mut text = String::new();
    let crashes = |seed: &u64, corpus: u64| {
        searched(*seed, corpus, &BUG).0.cases[0].outcome == TestOutcome::Crashed
    };
    let found: Vec<u64> = SEEDS.filter(|seed| crashes(seed, 200)).collect();
    let without = SEEDS.filter(|seed| crashes(seed, 0)).count();
    writeln!(text, "new behaviour is kept: found with {} of 8 seeds", found.len()).unwrap();
    writeln!(text, "nothing is kept: found with {without} of 8 seeds").unwrap();
    assert!(found.len() > without, "{text}");
    let (result, kept) = searched(found[0], 200, &BUG);
    let row = &result.cases[0];
    let weight = severity::of_case(row).unwrap().severity;
    writeln!(text, "{} {}: {}", row.case.id, row.outcome.id(), weight.id()).unwrap();
    let accused = |one: &&Transcript| is_accused(&one.name);
    let transcript = kept.failures.iter().find(accused).unwrap();
    writeln!(text, "{}: {}", transcript.name, transcript.judgement.why).unwrap();
    let shrunk = result.shrunk.first().map(|one| one.bytes().escape_ascii().to_string());
    writeln!(text, "shrunk: {}", shrunk.unwrap_or_else(|| "no".to_owned())).unwrap();
    let case = row.case.clone();
    let failure = Failure { transcript: transcript.clone(), case, before: Vec::new() };
    writeln!(text, "replayed: {}", replayed(&failure, &BUG)).unwrap();
    writeln!(text, "without the bug: {}", replayed(&failure, &[])).unwrap();
    insta::assert_snapshot!(text);
}

#[test]
fn a_correct_server_is_not_blamed_and_gets_the_same_bytes() {
    let (result, kept) = searched(3, 200, &[]);
    let row = &result.cases[0];
    let bad: Vec<String> = row
        .exchanges
        .iter()
        .map(|one| format!("{}: {}", one.judgement.why, one.sent.escape_ascii()))
        .collect();
    assert_eq!(bad, Vec::<String>::new());
    assert_eq!(row.outcome, TestOutcome::Pass);
    assert_eq!(kept.sent, searched(3, 200, &[]).1.sent);
    assert!(row.notes[0].starts_with("1,000 requests showed "), "{}", row.notes[0]);
}
