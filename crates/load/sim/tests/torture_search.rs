//! Failures that are replayed, attributed and shrunk, against servers with known defects.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its scene has failed")]

use campaign::shrink::Budget;
use campaign::{Failure, Settings, TestTarget, Timing, Unwatched};
use dialogue::text::Values;
use faulty::{Defect, Defects};
use sim::torture::{Field, FiringRange, KeptFailures, target};
use sim::{Action, Admission, Client, Server, World};
use torture::case::{Case, Need};
use torture::catalogue;
use torture::judge::{FailureKind, Severity, TestOutcome, severity};
use torture::result::{CULPRIT, ExchangeResult, ReplayResult, ReplayVerdict, RunResult, SUSPECT};
use units::Nanos;

fn settings() -> Settings {
    Settings {
        seed: 1,
        executions_max: 25,
        baseline: Nanos::SECOND,
        search: Some(Budget { executions: 1_000, span: Nanos::from_secs(600) }),
        ..Settings::default()
    }
}

fn only(ids: &[&str]) -> Vec<Case> {
    let all = catalogue::cases().unwrap();
    all.into_iter().filter(|case| ids.contains(&case.id.as_str())).collect()
}

fn field(server: Box<dyn Server>) -> Field {
    Field::new(World::new(server, Nanos::from_millis(1), Nanos::from_secs(5_000)))
}

fn defective(defects: &[Defect]) -> Field {
    let defects: Defects = defects.iter().copied().collect();
    field(Box::new(FiringRange::new(&defects)))
}

fn tested(mut world: Field, ids: &[&str]) -> RunResult {
    campaign::run(&target(), &settings(), &only(ids), &mut world, &mut Unwatched)
}

#[test]
fn random_data_shrinks_to_the_byte_that_fails() {
    let result = tested(defective(&[Defect::FailsOnEncodedNul]), &["F-01", "F-09"]);
    let text: Vec<String> = result
        .shrunk
        .iter()
        .map(|one| {
            assert!(one.finished && one.bytes().len() < one.from);
            format!("{} {} {}", one.case, one.kind, one.bytes().escape_ascii())
        })
        .collect();
    let shortest = r"500 GET /%00 HTTP/1.1\r\nHost:\r\n\r\n";
    // two cases, one cause
    assert_eq!(text, [format!("F-01 {shortest}"), format!("F-09 {shortest}")]);
    assert_eq!(result.shrunk[0].bucket(), result.shrunk[1].bucket());
}

#[test]
fn a_hang_shrinks_to_a_whole_request_that_hangs() {
    let result = tested(defective(&[Defect::HangsOnEncodedNul]), &["F-01"]);
    let [one] = &result.shrunk[..] else { panic!("{:?}", result.shrunk) };
    assert_eq!(one.kind, FailureKind::Hang);
    let bytes = one.bytes();
    assert!(faulty::responds_or_closes(&bytes), "half a request: {}", bytes.escape_ascii());
    assert!(bytes.len() < 60 && one.from > 60, "{}", bytes.escape_ascii());
}

#[test]
fn nothing_is_shrunk_of_a_server_without_a_defect() {
    let result = tested(defective(&[]), &["F-01", "F-07", "F-09"]);
    assert!(result.shrunk.is_empty() && result.kept.is_empty());
    let notes: Vec<&String> = result.cases.iter().flat_map(|case| &case.notes).collect();
    assert_eq!(notes, Vec::<&String>::new());
}

/// Crashes on a percent-encoded NUL, and restarts two seconds later.
struct Supervised {
    back: Nanos,
}

impl Server for Supervised {
    fn connect(&mut self, now: Nanos, _: Client) -> Admission {
        if now < self.back { Admission::Refuse } else { Admission::Accept }
    }

    fn receive(&mut self, now: Nanos, _: Client, bytes: &[u8]) -> Vec<(Nanos, Action)> {
        if bytes.windows(3).any(|three| three == b"%00") {
            self.back = now + Nanos::from_secs(2);
            return vec![(now, Action::Reset)];
        }
        let heads = bytes.windows(4).filter(|four| *four == b"\r\n\r\n").count();
        let response = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi".repeat(heads);
        vec![(now, Action::Bytes(response))]
    }
}

#[test]
fn a_crashing_input_is_reported_and_shrunk() {
    let result = tested(field(Box::new(Supervised { back: Nanos::ZERO })), &["F-09"]);
    let case = &result.cases[0];
    assert_eq!((case.outcome, &case.notes[..]), (TestOutcome::Fail, &[][..]));
    let found = case.exchanges.iter().find(|one| one.name.starts_with("culprit: number"));
    let culprit = found.unwrap_or_else(|| panic!("{:#?}", case.exchanges));
    assert!(culprit.sent.windows(3).any(|three| three == b"%00"));
    let lost: Vec<_> = result.shrunk.iter().filter(|one| one.kind == FailureKind::Lost).collect();
    let [one] = &lost[..] else { panic!("{:?}", result.shrunk) };
    // a correct server would not wait for more of this request
    assert_eq!(one.bytes().escape_ascii().to_string(), r"%00\r\n\r\n");
}

/// Refuses connections for a while after a percent-encoded NUL, and for good after the last of
/// `left`.
struct Stopping {
    left: u32,
    back: Nanos,
}

impl Server for Stopping {
    fn connect(&mut self, now: Nanos, _: Client) -> Admission {
        if now < self.back { Admission::Refuse } else { Admission::Accept }
    }

    fn receive(&mut self, now: Nanos, client: Client, bytes: &[u8]) -> Vec<(Nanos, Action)> {
        let mut one = Supervised { back: self.back };
        let actions = one.receive(now, client, bytes);
        if one.back != self.back {
            self.left = self.left.saturating_sub(1);
            self.back = if self.left == 0 { Nanos::NEVER } else { one.back };
        }
        actions
    }
}

#[test]
fn a_request_that_stops_the_server_for_good_is_critical() {
    let mut reasons = Vec::new();
    // while the case runs, and while the search for its cause repeats it
    for left in [1, 8] {
        let server = Stopping { left, back: Nanos::ZERO };
        let result = tested(field(Box::new(server)), &["F-09", "F-11"]);
        assert!(result.ended_early.unwrap().ends_with("within 30.0 s of F-09"));
        let case = result.cases.iter().find(|case| case.case.id == "F-09").unwrap();
        assert_eq!(severity::of_case(case).unwrap().severity, Severity::Critical);
        let kind = |one: &&ExchangeResult| one.judgement.kind == Some(FailureKind::Stopped);
        let [culprit] = &case.exchanges.iter().filter(kind).collect::<Vec<_>>()[..] else {
            panic!("{:#?}", case.exchanges)
        };
        assert!(culprit.sent.windows(3).any(|three| three == b"%00"));
        let ExchangeResult { judgement, tries, failed, .. } = culprit;
        reasons.push(format!("{}, {failed} of {tries}", judgement.why));
    }
    insta::assert_debug_snapshot!(reasons);
}

#[test]
fn state_leaking_between_clients_is_named_with_its_cause() {
    let result = tested(defective(&[Defect::LeavesTraces]), &["S-03", "S-30"]);
    let inherited: Vec<String> = result
        .cases
        .iter()
        .flat_map(|case| &case.exchanges)
        .filter(|one| one.judgement.kind == Some(FailureKind::Inherited))
        .map(|one| format!("{}: {}", one.name, one.judgement.why))
        .collect();
    insta::assert_debug_snapshot!(inherited);
    let kept = failures(Defect::LeavesTraces, &only(&["S-03", "S-30"]));
    assert_eq!(kept.iter().map(|one| one.before.len()).collect::<Vec<usize>>(), [1, 1]);
    let verdicts = |defects: &[Defect]| -> Vec<(ReplayVerdict, u32)> {
        let result = replayed(&kept, defective(defects));
        result.rows.iter().map(|row| (row.verdict, row.failed)).collect()
    };
    assert_eq!(verdicts(&[Defect::LeavesTraces]), [(ReplayVerdict::Failing, 3); 2]);
    assert_eq!(verdicts(&[]), [(ReplayVerdict::Fixed, 0); 2]);
}

#[test]
fn mixed_up_responses_are_critical_and_reproducible() {
    let kept = failures(Defect::MixesPipelined, &only(&["M-02"]));
    assert!(kept.len() > 1);
    for one in &kept {
        let judgement = &one.transcript.judgement;
        assert!(judgement.why.contains("but the response is that of "), "{}", judgement.why);
    }
    let verdicts = |defects: &[Defect]| -> Vec<(ReplayVerdict, u32)> {
        let result = replayed(&kept[..1], defective(defects));
        result.rows.iter().map(|row| (row.verdict, row.failed)).collect()
    };
    assert_eq!(verdicts(&[Defect::MixesPipelined]), [(ReplayVerdict::Failing, 3)]);
    assert_eq!(verdicts(&[]), [(ReplayVerdict::Fixed, 0)]);
    let result = tested(defective(&[Defect::MixesPipelined]), &["M-02"]);
    let weight = severity::of_case(&result.cases[0]).unwrap();
    assert_eq!(weight.severity, Severity::Critical);
}

/// Returns the culprits of a case, with the number of bytes sent.
fn culprits(result: &RunResult) -> Vec<String> {
    let cases = result.cases.iter().flat_map(|case| {
        let accused = case
            .exchanges
            .iter()
            .filter(|one| one.judgement.kind == Some(FailureKind::Lost) && !one.sent.is_empty());
        accused.map(|one| {
            let outcome = one.judgement.outcome.id();
            format!("{} {} {outcome}: {}", case.case.id, one.name, one.judgement.why)
        })
    });
    cases.collect()
}

#[test]
fn a_crash_in_a_search_for_a_limit_has_its_bytes() {
    let result = tested(defective(&[Defect::DiesOfLongField]), &["L-02", "L-03", "L-06", "L-07"]);
    insta::assert_debug_snapshot!(culprits(&result));
    let lengths: Vec<usize> = result.shrunk.iter().map(|one| one.bytes().len()).collect();
    assert!(
        !lengths.is_empty() && lengths.iter().all(|length| (9_000..9_080).contains(length)),
        "{lengths:?}"
    );
}

#[test]
fn a_crash_of_a_pipeline_has_its_bytes() {
    let result = tested(defective(&[Defect::DiesOfPipelined]), &["L-13"]);
    insta::assert_debug_snapshot!(culprits(&result));
    let [one] = &result.shrunk[..] else { panic!("{:?}", result.shrunk.len()) };
    let requests = one.bytes().windows(4).filter(|four| *four == b"\r\n\r\n").count();
    assert_eq!(requests, 9, "{}", one.bytes().escape_ascii());
}

#[test]
fn a_crash_under_pressure_has_its_bytes() {
    insta::assert_debug_snapshot!(culprits(&tested(
        defective(&[Defect::DiesOfMany]),
        &["W-10", "C-03"]
    )));
}

#[test]
fn several_requests_that_crash_together_are_reported_together() {
    let result = tested(defective(&[Defect::CrashesOnThirdNul]), &["F-09"]);
    let notes = &result.cases[0].notes;
    let [died, note] = &notes[..] else { panic!("{notes:?}") };
    assert!(died.contains("ended: signal 11"), "{died}");
    assert!(note.contains("in this order, and not after fewer of them: F-09 number"), "{note}");
}

/// Failures of a server, after they were written and parsed.
fn failures(defect: Defect, cases: &[Case]) -> Vec<Failure> {
    let mut failed = KeptFailures::new(|outcome| outcome == TestOutcome::Fail);
    campaign::run(&target(), &settings(), cases, &mut defective(&[defect]), &mut failed);
    failed.failures(cases)
}

fn replayed(failures: &[Failure], mut world: Field) -> ReplayResult {
    let settings = Settings::default();
    campaign::replay(&target(), &settings, failures, (3, Timing::Kept), &mut world, &mut Unwatched)
}

#[test]
fn a_failure_replays_as_a_failure_and_as_fixed_once_it_is() {
    let cases: Vec<Case> = catalogue::cases()
        .unwrap()
        .into_iter()
        .filter(|case| "FS".contains(case.group()) && case.family.is_none())
        .collect();
    // one switch in four, of those that always fail single requests
    let now_and_then =
        [Defect::FailsNowAndThen, Defect::CrashesOnThirdNul, Defect::CrashesByChance];
    let sampled = Defect::ALL.iter().filter(|defect| {
        defect.kind() == faulty::DefectKind::Syntax && !now_and_then.contains(defect)
    });
    let mut replays = 0;
    for defect in sampled.step_by(4) {
        let kept = failures(*defect, &cases);
        let verdicts = |result: ReplayResult| -> Vec<ReplayVerdict> {
            assert_eq!(result.ended_early, None, "{}", defect.id());
            result.rows.iter().map(|row| row.verdict).collect()
        };
        replays += kept.len();
        let failing = verdicts(replayed(&kept, defective(&[*defect])));
        assert_eq!(failing, vec![ReplayVerdict::Failing; kept.len()], "{}", defect.id());
        let fixed = verdicts(replayed(&kept, defective(&[])));
        assert_eq!(fixed, vec![ReplayVerdict::Fixed; kept.len()], "{}", defect.id());
    }
    assert!(replays > 30, "{replays}");
}

#[test]
fn an_intermittent_failure_is_flaky() {
    let kept = failures(Defect::FailsOnEncodedNul, &only(&["F-09"]));
    // every tenth connection fails, and most of the others do not
    let settings = Settings::default();
    let result = campaign::replay(
        &target(),
        &settings,
        &kept[..1],
        (40, Timing::Asap),
        &mut defective(&[Defect::FailsNowAndThen]),
        &mut Unwatched,
    );
    let row = &result.rows[0];
    assert_eq!(row.verdict, ReplayVerdict::Flaky);
    assert!(row.failed > 0 && row.failed < row.tries, "{} of {}", row.failed, row.tries);
}

#[test]
fn an_unreachable_server_is_reported() {
    let kept = failures(Defect::FailsOnEncodedNul, &only(&["F-09"]));
    let dead = field(Box::new(Supervised { back: Nanos::NEVER }));
    let result = replayed(&kept, dead);
    assert!(result.rows.is_empty());
    assert!(result.ended_early.unwrap().starts_with("no connection"));
}

/// Crashes for good were replayed like any other conversation: by their response, which a suspect
/// need not have, or by running the whole case again.
#[test]
fn a_suspect_is_replayed_by_the_plain_requests_after_it() {
    let mut lost = KeptFailures::new(|outcome| outcome == TestOutcome::Fail);
    let cases = only(&["F-09"]);
    let mut world = field(Box::new(Supervised { back: Nanos::ZERO }));
    campaign::run(&target(), &settings(), &cases, &mut world, &mut lost);
    let mut suspects = lost.failures(&cases);
    suspects.retain(|one| one.transcript.name.starts_with(CULPRIT));
    let [suspect] = &mut suspects[..] else { panic!("{}", suspects.len()) };
    suspect.transcript.name = suspect.transcript.name.replace(CULPRIT, SUSPECT);
    suspect.transcript.judgement.outcome = TestOutcome::Crashed;
    // a replay runs this family again, unless a conversation is accused
    suspect.case = only(&["M-02"]).remove(0);
    let bad = || field(Box::new(Supervised { back: Nanos::ZERO }));
    let row = |world| replayed(&suspects, world).rows[0].clone();
    let (failing, fixed) = (row(bad()), row(defective(&[])));
    assert_eq!((failing.verdict, failing.failed), (ReplayVerdict::Failing, 3), "{failing:?}");
    assert_eq!((fixed.verdict, fixed.failed), (ReplayVerdict::Fixed, 0), "{fixed:?}");
    let mut unwatched = Unwatched;
    let shrunk =
        campaign::shrink_failures(&target(), &settings(), &suspects, &mut bad(), &mut unwatched);
    let Ok([Some(one)]) = shrunk.as_deref() else { panic!("{shrunk:?}") };
    assert_eq!(one.kind, FailureKind::Lost);
}

/// A case whose exchanges all lack something passed although nothing was sent.
#[test]
fn a_case_that_sends_nothing_is_skipped() {
    let mut cases = only(&["S-07", "S-08"]);
    cases[0].exchanges.iter_mut().for_each(|one| one.needs = vec![Need::Outside]);
    cases[1].exchanges[0].needs = vec![Need::Outside];
    let mut world = defective(&[]);
    let result = campaign::run(&target(), &settings(), &cases, &mut world, &mut Unwatched);
    let [none, some] = &result.cases[..] else { panic!("{:?}", result.cases.len()) };
    assert_eq!(none.outcome, TestOutcome::Skipped);
    let why = none.skipped.as_deref().unwrap();
    assert!(why.contains("was not sent: no file that must not be served is given"), "{why}");
    assert_eq!(some.outcome == TestOutcome::Skipped, cases[1].exchanges.len() == 1);
}

/// A page that refuses every POST says nothing about the server's handling of content.
#[test]
fn cases_with_content_need_a_page_that_accepts_a_plain_post() {
    let plain = target();
    let values = Values { post: "/none".to_owned(), ..plain.values };
    let wrong = TestTarget { values, ..plain };
    let (cases, mut world) = (only(&["B-14", "S-07"]), defective(&[]));
    let result = campaign::run(&wrong, &settings(), &cases, &mut world, &mut Unwatched);
    let [skipped, other] = &result.cases[..] else { panic!("{:?}", result.cases.len()) };
    let why = skipped.skipped.as_deref().unwrap_or_default();
    assert!(why.starts_with("the --post page refuses a plain POST: 40"), "{why}");
    assert_eq!(other.outcome, TestOutcome::Pass);
}
