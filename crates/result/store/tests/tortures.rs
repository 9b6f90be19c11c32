//! Tortures in the store: each loads as the stored report, regardless of its outcome.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its scene has failed")]

#[path = "../../report/src/tests/curves.rs"]
#[allow(dead_code, reason = "the reports' own tests take more of it")]
mod curves;
#[path = "../../report/src/tests/fixtures.rs"]
#[allow(dead_code, reason = "the reports' own tests take more of it")]
mod fixtures;
#[path = "../../report/src/tests/tortures.rs"]
#[allow(dead_code, reason = "the reports' own tests take more of it")]
mod tortures;

// the names that the fixtures, written for `report` itself, look for at the root
use ::torture::judge;
use ::torture::result::Boundary;
use ::torture::result::{Kept, ServerDuringCase, ServerRow, ServerSeen, Shrunk};
use dialogue::governor::Stop;
use dialogue::talk::Awaited;
use dialogue::talk::{Move, TalkScript};
use record::torture::waivers::{Applied, Day, Waiver, WaiverState};
use record::torture::{OverCase, TortureRecord};
use report::torture::Report;
use report::{
    Driver, DummyRun, Finding, FirstCall, Headline, Resolved, RunRecord, RunReport, SloResult,
    merged, ramp, torture,
};
use rusqlite::Connection;
use sample::{Death, Ending, Process, ServerState};
use std::path::Path;
use store::{Filter, Progress, ResultKind, Store, StoreError, StorePlace, Stored, Tortured};
use units::Nanos;

/// Returns a result with everything that it may contain besides its cases.
fn full() -> Report {
    let mut report = tortures::pressed();
    let steps = vec![
        Move::Send([b"GET /\0{}\xff HTTP/1.1\r\n".as_slice(), &[b'a'; 200]].concat()),
        Move::Pause(Nanos::from_millis(7)),
        Move::Await(Awaited::Response),
        Move::StopReading,
        Move::Sip(12),
        Move::Read,
        Move::Urgent,
        Move::Renegotiate,
        Move::HalfClose,
        Move::Await(Awaited::End),
        Move::Reset,
        Move::Close,
    ];
    for (name, kind) in
        [("one", judge::FailureKind::Status(502)), ("two", judge::FailureKind::NoHttp)]
    {
        report.result.shrunk.push(Shrunk {
            case: "F-01".into(),
            name: name.into(),
            kind,
            from: 4_000,
            script: TalkScript::new(steps.clone()),
            boundaries: vec![Boundary { what: "a line".to_owned(), passes: 199, fails: 200 }],
            executions: 77,
            finished: name == "one",
        });
    }
    report.result.shrunk[0].name = "number 42, seed 1".into();
    let kept = Kept { case: "S-07".into(), name: "space".into(), folder: "kept/a b".into() };
    report.result.kept.push(kept);
    let waiver = Waiver {
        case: "S-07".into(),
        exchange: Some("space".into()),
        outcome: Some(judge::TestOutcome::Fail),
        reason: "known: ä".into(),
        until: Day::parse("2027-01-31").unwrap(),
    };
    report.waivers.push(Applied { waiver: waiver.clone(), state: WaiverState::Used });
    let waiver = Waiver { exchange: None, outcome: None, case: "S-01".into(), ..waiver };
    report.waivers.push(Applied { waiver, state: WaiverState::Unneeded });
    let process = |pid, name: &str| Process { pid, started: 4_711, name: name.into() };
    let state = ServerState {
        listeners: vec![process(7, "nginx")],
        workers: vec![process(8, "nginx"), process(9, "a b")],
        memory_bytes: 1 << 40,
        cpu: Nanos::from_millis(12),
        sockets: [("established".to_owned(), 3), ("close-wait".to_owned(), 1)].into(),
        ..ServerState::default()
    };
    let ends = [Ending::Exit(3), Ending::Signal { number: 11, core: true }, Ending::Unseen];
    let deaths: Vec<Death> =
        ends.map(|how| Death { process: process(8, "nginx"), whole: false, how }).into();
    let meanwhile = ServerDuringCase { before: state.clone(), after: state.clone(), deaths };
    let row = ServerRow { at: Nanos::SECOND, case: "S-07".into(), state };
    let deaths = meanwhile.deaths.clone();
    report.result.server = Some(ServerSeen { rows: vec![row], deaths });
    report.result.cases[0].server = Some(meanwhile);
    report.result.slots_named = Some(150);
    report.result.stopped = Some(Stop::Bound("60 minutes are over".into()));
    report.result.ended_early = Some("60 minutes are over".into());
    report
}

fn all() -> Vec<(&'static str, Report)> {
    vec![
        ("mixed", tortures::mixed()),
        ("lost", tortures::lost()),
        ("pressed", tortures::pressed()),
        ("accompanied", tortures::report_with_load()),
        ("full", full()),
    ]
}

fn outputs(torture: &TortureRecord) -> [(&'static str, String); 6] {
    let style = report::Style {
        unicode: true,
        color: true,
        quiet: false,
        percentiles: true,
        full: true,
        columns: 0,
    };
    [
        ("text", torture::text(torture, style)),
        ("JSON", torture::json(torture)),
        ("JUnit", torture::junit(torture)),
        ("probes", torture::probes_csv(&torture.probe_series)),
        ("Markdown", torture::markdown(torture)),
        ("page", torture::html(torture)),
    ]
}

#[track_caller]
fn same(name: &str, loaded: &TortureRecord, stored: &TortureRecord) {
    for ((kind, loaded), (_, stored)) in outputs(loaded).iter().zip(&outputs(stored)) {
        assert!(loaded == stored, "the {kind} of {name}:\n{loaded}\nwas\n{stored}");
    }
}

fn load(store: &Store, wanted: &str) -> TortureRecord {
    match store.load(wanted).unwrap() {
        Stored::Torture(torture) => *torture,
        other => panic!("a {}", other.kind().id()),
    }
}

/// Returns the state before anything is sent.
fn beginning(report: &Report) -> TortureRecord {
    let slots_named = report.result.slots_named;
    let result = ::torture::result::RunResult { slots_named, ..Default::default() };
    let beside = None;
    Report { result, waivers: Vec::new(), beside, path: None, ..report.clone() }.record()
}

#[test]
fn a_torture_loads_as_it_was_stored() {
    let folder = tempfile::tempdir().unwrap();
    let place = StorePlace::File(folder.path().join("runs.db"));
    for (number, (name, stored)) in (1..).zip(all()) {
        let mut store = Store::open(&place).unwrap();
        let id = store.begin_torture(&beginning(&stored), "loadstone torture URL").unwrap();
        assert_eq!(id.to_string(), format!("torture-{number}"));
        // intermediate rows are removed
        for index in 0..20 {
            store.torture_case(&id, index, &OverCase::new(&stored.result.cases[0])).unwrap();
        }
        store.finish_torture(&id, &stored.record()).unwrap();
        drop(store);
        let store = Store::open_to_read(&place).unwrap();
        let loaded = load(&store, "last");
        same(name, &loaded, &stored.record());
        let entry = store.show("last").unwrap();
        assert_eq!(
            (entry.kind, entry.name.as_str()),
            (Some(ResultKind::Torture), stored.target.as_str())
        );
        let findings = stored.record().findings;
        let found = entry.tortured.unwrap();
        assert_eq!(
            (found.findings, found.worst >= judge::TestOutcome::Fail),
            (findings, true),
            "{name}"
        );
    }
    let store = Store::open_to_read(&place).unwrap();
    let kind = Some(ResultKind::Torture);
    assert_eq!(store.list(&Filter { kind, ..Filter::default() }).unwrap().len(), 5);
    let words =
        |cases, findings| Tortured { cases, findings, worst: judge::TestOutcome::Fail }.words();
    assert_eq!(
        (words(1, 0), words(2, 1)),
        ("no finding in 1 case".into(), "1 finding in 2 cases".into())
    );
}

/// Makes a result look as if its program had ended.
fn orphan(path: &Path) {
    Connection::open(path).unwrap().execute("UPDATE result SET writer = 'gone'", []).unwrap();
}

#[test]
fn a_killed_torture_keeps_its_finished_cases() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    let mut store = Store::open(&StorePlace::File(path.clone())).unwrap();
    let whole = full();
    let id = store.begin_torture(&beginning(&whole), "").unwrap();
    for (index, case) in whole.result.cases.iter().take(2).enumerate() {
        store.torture_case(&id, index, &OverCase::new(case)).unwrap();
    }
    let known = load(&store, "last");
    assert_eq!(store.show("last").unwrap().progress, Progress::Running);
    assert_eq!(known.ended_early.as_deref(), Some("it is still running after 2 cases"));
    orphan(&path);
    let known = load(&store, "last");
    assert_eq!(store.show("last").unwrap().progress, Progress::Killed);
    assert_eq!(known.ended_early.as_deref(), Some("its program was killed after 2 cases"));
    assert!(known.interrupted);
    let ids: Vec<&str> = known.cases.iter().map(|case| case.id.as_str()).collect();
    assert_eq!(ids, ["F-01", "S-07"]);
    let text = torture::text(&known, report::Style::default());
    assert!(text.contains("its program was killed after 2 cases"), "{text}");
}

/// The costs of a killed torture use the number of slots that the user gave.
#[test]
fn costs_of_a_killed_torture_equal_those_of_a_complete_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    let mut store = Store::open(&StorePlace::File(path.clone())).unwrap();
    let whole = full();
    let id = store.begin_torture(&beginning(&whole), "").unwrap();
    for (index, case) in whole.result.cases.iter().enumerate() {
        store.torture_case(&id, index, &OverCase::new(case)).unwrap();
    }
    orphan(&path);
    let known = load(&store, "last");
    let costs = whole.record().costs;
    assert!(costs.iter().any(|cost| cost.slots == Some(150.0)), "{costs:?}");
    assert_eq!(format!("{:?}", known.costs), format!("{costs:?}"));
}

#[test]
fn tortures_are_moved_between_stores_completely() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    let mut store = Store::open(&StorePlace::File(path.clone())).unwrap();
    let stored = tortures::report_with_load().record();
    let id = store.begin_torture(&stored, "").unwrap();
    store.finish_torture(&id, &stored).unwrap();
    let file = folder.path().join("exported.db");
    store.export(&file, std::slice::from_ref(&id)).unwrap();
    let mut other = Store::open(&StorePlace::Memory).unwrap();
    assert_eq!(other.import(&file).unwrap().taken.len(), 1);
    same("what was imported", &load(&other, "torture-1"), &stored);
    store.delete(&[id]).unwrap();
    let rows = Connection::open(&path).unwrap();
    for table in ["torture_case", "probe", "trial"] {
        let count = format!("SELECT count(*) FROM {table}");
        let left: i64 = rows.query_row(&count, [], |row| row.get(0)).unwrap();
        assert_eq!(left, 0, "{table}");
    }
}

#[test]
fn a_damaged_torture_is_reported_and_hides_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    let mut store = Store::open(&StorePlace::File(path.clone())).unwrap();
    for stored in [tortures::mixed(), tortures::report_with_load()] {
        let stored = stored.record();
        let id = store.begin_torture(&stored, "").unwrap();
        store.finish_torture(&id, &stored).unwrap();
    }
    let damaged = |what: &str, part: &str| {
        let file = Connection::open(&path).unwrap();
        assert!(file.execute(what, []).unwrap() > 0, "{what}");
        let error = store.load("torture-2").unwrap_err();
        let text = error.to_string();
        assert!(text.starts_with("result torture-2 in the results store "), "{what}: {text}");
        assert!(
            text.contains(part)
                && text.contains("(`loadstone runs delete torture-2`), then import it"),
            "{what}: {text}"
        );
        assert!(matches!(error, StoreError::DamagedResult { .. }), "{what}: {error:?}");
        assert_eq!(store.list(&Filter::default()).unwrap().len(), 2);
        assert!(matches!(store.load("torture-1").unwrap(), Stored::Torture(_)));
    };
    damaged(
        "UPDATE torture_case SET more = replace(more, '\"fail\"', '\"odd\"') \
         WHERE result = 2 AND id = 'S-07'",
        "\"odd\" is not an outcome",
    );
    damaged("UPDATE torture_case SET more = 'no' WHERE result = 2", "torture_case 0: expected");
    damaged("UPDATE result SET body = '{}' WHERE number = 2", "missing field `schema`");
    let file = Connection::open(&path).unwrap();
    file.execute("UPDATE result SET summary = '{\"tortured\": 7}' WHERE number = 2", []).unwrap();
    assert_eq!(store.show("torture-2").unwrap().progress, Progress::Damaged);
}
