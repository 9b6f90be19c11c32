//! The number of concurrent conversations changes neither the bytes sent nor the conclusions about
//! the replies.

use campaign::{CampaignEvent, Settings, Watcher, run};
use faulty::{Defect, Defects};
use sim::World;
use sim::torture::{Field, FiringRange, target};
use torture::case::Case;
use torture::catalogue;
use torture::record::Execution;
use units::Nanos;

/// Everything that was sent and judged, in order, as text.
#[derive(Debug, Default)]
struct Heard(Vec<String>);

impl Watcher for Heard {
    fn observe(&mut self, event: CampaignEvent<'_>) {
        let CampaignEvent::ConversationOver(execution) = event else { return };
        let Execution { case, name, attempt, script, talk, judgement } = execution;
        let (id, steps, raw) = (&case.id, &script.steps, &talk.raw);
        self.0.push(format!("{id} {name} {attempt} {steps:?} {raw:?} {judgement:?}"));
    }
}

fn heard(defects: &[Defect], workers: usize, cases: &[Case]) -> (Vec<String>, String) {
    let defects: Defects = defects.iter().copied().collect();
    let server = Box::new(FiringRange::new(&defects));
    let world = World::new(server, Nanos::from_millis(1), Nanos::from_secs(1_000));
    let settings = Settings { seed: 7, executions_max: 40, workers, ..Settings::default() };
    let mut heard = Heard::default();
    let result = run(&target(), &settings, cases, &mut Field::new(world), &mut heard);
    assert_eq!(result.ended_early, None);
    let row = |case: &torture::result::CaseResult| {
        let each: Vec<String> = case
            .exchanges
            .iter()
            .map(|one| format!("{} {} of {}", one.name, one.failed, one.tries))
            .collect();
        format!("{} {:?} {:?} {each:?}\n", case.case.id, case.outcome, case.tally)
    };
    (heard.0, result.cases.iter().map(row).collect())
}

#[test]
fn bytes_and_verdicts_do_not_depend_on_the_workers() {
    let mut cases = catalogue::cases().unwrap();
    cases.retain(|case| case.fuzz.is_some());
    for defects in [&[][..], &[Defect::FailsOnEncodedNul], &[Defect::AnswersBackwards]] {
        let alone = heard(defects, 1, &cases);
        assert!(alone.0.len() >= 40 * cases.len(), "{}", alone.0.len());
        for workers in [2, 8] {
            assert!(heard(defects, workers, &cases) == alone, "{defects:?} with {workers} workers");
        }
    }
}
