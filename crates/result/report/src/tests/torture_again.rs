//! Recorded failures, replayed and judged again: text and JSON.

use super::fits_its_schema;
use crate::torture::{case_file, rejudged_text, replay_text};
use dialogue::talk::Awaited;
use dialogue::talk::{Move, Talk, TalkEnd, TalkScript};
use record::document::printed;
use record::torture::rejudged::{Rejudged, RejudgedRecord};
use record::torture::replay::{Replay, ReplayRecord, ReplayRow};
use serde_json::Value;
use torture::case::read_own;
use torture::judge::{Judgement, Plain, TestOutcome};
use torture::record::Transcript;
use torture::result::{ReplayResult, ReplayVerdict, Replayed};
use torture::safety::Class;
use units::Nanos;

fn judgement(outcome: TestOutcome, why: &str) -> Judgement {
    Judgement {
        outcome,
        seen: "200, closed".into(),
        expected: "400".into(),
        why: why.into(),
        ..Judgement::default()
    }
}

fn kept(name: &str) -> Transcript {
    let talk = Talk {
        steps: Vec::new(),
        start: Nanos::ZERO,
        connected: None,
        over: Nanos::ZERO,
        end: TalkEnd::Closed,
        replies: dialogue::replies::Replies::new(&["GET".to_owned()]),
        before_follow_up: None,
        sent: 0,
        received: 0,
        raw: Vec::new(),
        events: Vec::new(),
        all_sent: true,
    };
    Transcript {
        loadstone: "9.1.0".into(),
        target: "http://127.0.0.1:8080/".into(),
        case: "S-03".into(),
        version: 2,
        name: name.into(),
        attempt: 1,
        began_unix_ns: 0,
        plain: Plain::default(),
        script: TalkScript::new(Vec::new()),
        talk,
        judgement: judgement(TestOutcome::Fail, "the standard requires a different response"),
    }
}

#[test]
fn replay_results_are_reported() {
    let transcripts = ["different", "by code", "never reached"].map(kept);
    let replayed = |verdict, failed, judgement| Replayed { verdict, tries: 3, failed, judgement };
    let by_code = "C-04 is judged by code while it runs and cannot be judged again";
    let result = ReplayResult {
        rows: vec![
            replayed(
                ReplayVerdict::Flaky,
                2,
                judgement(TestOutcome::Fail, "the standard requires a different response"),
            ),
            replayed(ReplayVerdict::Unlearned, 0, judgement(TestOutcome::Inconclusive, by_code)),
        ],
        ended_early: Some("no plain request got its usual response within 30 s".into()),
        interrupted: false,
    };
    let rows: Vec<ReplayRow<'_>> = transcripts
        .iter()
        .enumerate()
        .map(|(index, kept)| ReplayRow {
            folder: format!("S-03-{index}"),
            kept,
            version: 2,
            row: result.rows.get(index),
        })
        .collect();
    let notes = ["S-03 was version 2 and is 3 in this program".to_owned()];
    let target = "http://127.0.0.1:8080/";
    let replay =
        Replay { target, class: Class::Local, rows: &rows, notes: &notes, result: &result };
    let record = ReplayRecord::new(&replay);
    insta::assert_snapshot!("torture_replay", replay_text(&record));
    let json = printed(&record);
    assert_eq!(serde_json::from_str::<ReplayRecord>(&json).unwrap(), record);
    fits_its_schema("torture-replay", &json);
    let json: Value = serde_json::from_str(&json).unwrap();
    let verdicts: Vec<&Value> =
        json["failures"].as_array().unwrap().iter().map(|row| &row["verdict"]).collect();
    assert_eq!(verdicts, ["flaky", "unlearned", "not-sent"]);
}

#[test]
fn changed_judgments_are_reported_with_versions() {
    let row =
        |case: &str, kept_by: &str, now_version: Option<u32>, now: Option<TestOutcome>| Rejudged {
            file: format!("wire/{case}.lsw"),
            kept_by: kept_by.into(),
            case: case.into(),
            name: "different".into(),
            versions: (1, now_version),
            then: judgement(TestOutcome::Pass, ""),
            now: now
                .map(|outcome| judgement(outcome, "the standard requires a different response")),
        };
    let ours = env!("CARGO_PKG_VERSION");
    let rows = [
        row("S-01", ours, Some(1), Some(TestOutcome::Pass)),
        row("S-02", "9.1.0", Some(2), Some(TestOutcome::Fail)),
        row("C-04", ours, Some(1), None),
        row("X-01", ours, None, None),
    ];
    let record = RejudgedRecord::new(&rows);
    insta::assert_snapshot!("torture_judge", rejudged_text(&record));
    let json = printed(&record);
    assert_eq!(serde_json::from_str::<RejudgedRecord>(&json).unwrap(), record);
    fits_its_schema("torture-judge", &json);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["judged"], &json["otherwise"]), (&2.into(), &1.into()));
}

#[test]
fn a_failure_becomes_a_case_file() {
    let case = super::tortures::case("S-03");
    let mut kept = kept("different");
    kept.target = "http://[::1]:8080/a/b?c".into();
    kept.script.steps = vec![
        Move::Send(b"GET /a/b?c HTTP/1.1\r\nHost: [::1]:8080\r\nUser-Agent: loadstone-torture/1 (run x)\r\nFrom: ops@example.org\r\nFrom: 'b'\r\n{\r\n".to_vec()),
        Move::Pause(Nanos::from_millis(1_500)),
        Move::Await(Awaited::Response),
        Move::Send(b"GET /a/bc HTTP/1.1\r\n\r\n".to_vec()),
        Move::HalfClose,
    ];
    kept.script.methods = vec!["GET".into(), "POST".into()];
    kept.script.deadline = Nanos::from_secs(10);
    kept.talk.replies.take(b"HTTP/1.1 200 OK\r\nserver: a \"b\"\r\nContent-Length: 0\r\n\r\n");
    let file = case_file(&kept, &case, "X-12").unwrap();
    insta::assert_snapshot!("torture_case_file", file);
    let again = read_own("X-12.toml", &file).unwrap();
    assert_eq!(again.exchanges[0].accept, case.exchanges[0].accept);
    assert!(case_file(&kept, &case, "S-12").unwrap_err().contains("name your case X-01"));
    assert!(case_file(&kept, &case, "X\"12").unwrap_err().contains("is not an id"));
    kept.script.steps.push(Move::Sip(1));
    assert!(case_file(&kept, &case, "X-12").unwrap_err().contains("in small pieces"));
    let code = super::tortures::case("C-01");
    assert!(case_file(&kept, &code, "X-12").unwrap_err().contains("judged by code"));
}
