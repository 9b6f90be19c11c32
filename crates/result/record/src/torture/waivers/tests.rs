use super::*;
use torture::catalogue;
use torture::judge::Judgement;
use torture::result::{ExchangeResult, Recovery};
use units::Nanos;

fn cases() -> Vec<Case> {
    catalogue::cases().unwrap()
}

fn case(id: &str) -> Case {
    cases().into_iter().find(|case| case.id == id).unwrap()
}

fn exchange(name: &str, outcome: TestOutcome) -> ExchangeResult {
    ExchangeResult {
        name: name.into(),
        judgement: Judgement { outcome, ..Judgement::default() },
        tries: 1,
        failed: 1,
        sent: Vec::new(),
        received: Vec::new(),
        took: Nanos::ZERO,
        pauses: Vec::new(),
    }
}

/// Returns S-07 with the results of its two exchanges.
fn blanks(space: TestOutcome, tab: TestOutcome) -> CaseResult {
    let exchanges = vec![exchange("space", space), exchange("tab", tab)];
    CaseResult { outcome: space.max(tab), exchanges, ..CaseResult::new(&case("S-07")) }
}

/// 2026-11-22.
const TODAY: f64 = 1_795_340_000.0;

fn states(file: &str, result: &CaseResult) -> Vec<WaiverState> {
    let waivers = read(file, &cases()).unwrap();
    let applied = apply(&waivers, std::slice::from_ref(result), Day::from_unix_seconds(TODAY));
    applied.into_iter().map(|one| one.state).collect()
}

const WHOLE: &str = "[[waive]]\ncase = \"S-07\"\nreason = \"old proxy\"\nuntil = 2026-11-22\n";

#[test]
fn a_waiver_holds_to_the_end_of_its_day() {
    assert_eq!(Day::from_unix_seconds(TODAY).to_string(), "2026-11-22");
    let (fail, pass) = (TestOutcome::Fail, TestOutcome::Pass);
    assert_eq!(states(WHOLE, &blanks(fail, pass)), [WaiverState::Used]);
    assert_eq!(states(WHOLE, &blanks(pass, pass)), [WaiverState::Unneeded]);
    let old = WHOLE.replace("11-22", "11-21");
    assert_eq!(states(&old, &blanks(fail, pass)), [WaiverState::Expired]);
    assert_eq!(states(WHOLE, &CaseResult::new(&case("S-01"))), [WaiverState::Untested]);
    let skipped = CaseResult { outcome: TestOutcome::Skipped, ..blanks(fail, pass) };
    assert_eq!(states(WHOLE, &skipped), [WaiverState::Untested]);
}

#[test]
fn a_waiver_covers_exactly_what_it_names() {
    let (fail, pass, flaky) = (TestOutcome::Fail, TestOutcome::Pass, TestOutcome::Flaky);
    let mild = format!("{WHOLE}outcome = \"flaky\"\n");
    assert_eq!(states(&mild, &blanks(flaky, pass)), [WaiverState::Used]);
    assert_eq!(states(&mild, &blanks(fail, pass)), [WaiverState::Exceeded]);
    let space = format!("{WHOLE}exchange = \"space\"\n");
    assert_eq!(states(&space, &blanks(fail, pass)), [WaiverState::Used]);
    assert_eq!(states(&space, &blanks(fail, fail)), [WaiverState::Exceeded]);
    assert_eq!(states(&space, &blanks(pass, fail)), [WaiverState::Unneeded]);
    let both = format!("{space}{WHOLE}exchange = \"tab\"\n");
    assert_eq!(states(&both, &blanks(fail, fail)), [WaiverState::Used, WaiverState::Used]);
    // the exchanges are waived, the silence after them is not
    let silent = CaseResult { recovery: Recovery::Never, ..blanks(fail, pass) };
    assert_eq!(states(&space, &silent), [WaiverState::Exceeded]);
    assert_eq!(states(WHOLE, &silent), [WaiverState::Used]);
}

#[test]
fn file_errors_name_their_line() {
    let whole = |from: &str, to: &str| WHOLE.replace(from, to);
    for (file, start) in [
        (whole("S-07", "S-99"), "line 2: \"S-99\" is not a case"),
        (whole("until", "till"), "line 4: unknown field `till`"),
        (whole("2026-11-22", "2026-02-30"), "line 4: "),
        (whole("2026-11-22", "2026-11-22T10:00:00Z"), "line 4: 2026-11-22T10:00:00Z is not a day"),
        (whole("2026-11-22", "\"soon\""), "line 4: "),
        (whole("old proxy", " "), "line 3: reason: write why"),
        (whole("reason = \"old proxy\"\n", ""), "line 1: missing field `reason`"),
        (
            format!("{WHOLE}exchange = \"x\"\n"),
            "line 5: S-07 has no exchange \"x\"; it has space, tab",
        ),
        (whole("S-07\"", "F-01\"\nexchange = \"x\""), "line 3: F-01 has no named exchanges"),
        (
            format!("{WHOLE}outcome = \"pass\"\n"),
            "line 5: \"pass\" is not a finding; findings are flaky,",
        ),
        (format!("{WHOLE}{WHOLE}"), "line 5: S-07 is waived twice"),
        ("waive = 3".to_owned(), "line 1: "),
        ("[[waive".to_owned(), "line 1: "),
    ] {
        let error = read(&file, &cases()).unwrap_err();
        assert!(error.starts_with(start), "{file}\n{error}");
    }
    assert_eq!(read("", &cases()), Ok(Vec::new()));
}
