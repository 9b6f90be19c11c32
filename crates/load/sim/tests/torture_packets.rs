//! QUIC packets that no library sends, in virtual time, to a quinn-proto server: a correct server
//! has no finding, and planted bugs are found.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its scene has failed")]

use campaign::{Settings, TestTarget, Unwatched, World};
use conduit::OpenOptions;
use dialogue::http2::Protocol;
use dialogue::http3::{SETTINGS, packets, write};
use dialogue::talk::{Move, TalkEnd, TalkScript};
use quic::ignoring::IgnoredInput;
use sim::quic::{EarlyDataMode, QuicField, QuicWorld, Way};
use sim::torture::target_over_quic;
use sim::{Queue, Service};
use std::time::Instant;
use torture::case::Case;
use torture::catalogue;
use torture::judge::TestOutcome;
use torture::result::RunResult;
use units::Nanos;

/// Returns the cases with crafted packets.
fn cases() -> Vec<Case> {
    let mut cases = catalogue::cases().unwrap();
    let number = |case: &Case| case.id.trim_start_matches("Q-").parse::<u32>().unwrap_or(0);
    let by_hand = |number| (54..59).contains(&number) || (71..90).contains(&number);
    cases.retain(|case| case.group() == 'Q' && by_hand(number(case)));
    assert!(cases.len() >= 24, "{}", cases.len());
    cases
}

fn named(ids: &[&str]) -> Vec<Case> {
    let mut cases = cases();
    cases.retain(|case| ids.contains(&case.id.as_str()));
    assert_eq!(cases.len(), ids.len(), "{ids:?}");
    cases
}

fn world() -> QuicWorld {
    let service = Service::Fixed(Nanos::from_millis(1));
    QuicWorld { delay: Nanos::from_millis(1), ..QuicWorld::new(Queue::new(1, service, 1)) }
}

fn against(world: QuicWorld, cases: &[Case]) -> RunResult {
    let target = TestTarget { peer: QuicField::peer(), takes_bodies: false, ..target_over_quic() };
    let settings = Settings { seed: 1, baseline: Nanos::SECOND, ..Settings::default() };
    let mut field = QuicField::new(world, Instant::now());
    campaign::run(&target, &settings, cases, &mut field, &mut Unwatched)
}

/// Exchanges that are findings: case, exchange, observation.
fn findings(result: &RunResult) -> Vec<String> {
    assert_eq!(result.ended_early, None);
    let exchanges = result.cases.iter().flat_map(|case| {
        case.exchanges.iter().map(move |exchange| (case.case.id.as_str(), exchange))
    });
    let well = [TestOutcome::Pass, TestOutcome::Alternative, TestOutcome::Advisory];
    let bad = exchanges.filter(|(_, exchange)| !well.contains(&exchange.judgement.outcome));
    let describe = |(id, exchange): (&str, &torture::result::ExchangeResult)| {
        format!("{id} {}: {} {}", exchange.name, exchange.judgement.seen, exchange.judgement.why)
    };
    bad.map(describe).collect()
}

#[test]
fn a_correct_server_has_no_finding_after_the_handshake() {
    let cases = cases();
    let result = against(world(), &cases);
    assert_eq!(findings(&result), Vec::<String>::new());
    assert_eq!(result.cases.len(), cases.len());
}

/// Repeatable requests in early data are served, answered with 425, or rejected: all of this
/// passes.
#[test]
fn careful_handling_of_early_data_passes() {
    let cases = named(&["Q-83", "Q-84", "Q-85", "Q-86", "Q-89"]);
    for early in [EarlyDataMode::TooEarly, EarlyDataMode::Forgetful] {
        let result = against(QuicWorld { early, ..world() }, &cases);
        assert_eq!(findings(&result), Vec::<String>::new(), "{early:?}");
        let skipped = result.cases.iter().filter(|case| case.skipped.is_some()).count();
        assert_eq!(skipped, if early == EarlyDataMode::Forgetful { 3 } else { 0 }, "{early:?}");
    }
    let shut = against(world(), &cases);
    let reasons: Vec<_> = shut.cases.iter().filter_map(|case| case.skipped.clone()).collect();
    assert_eq!(reasons.len(), 5);
    assert!(reasons[0].contains("no ticket that allows early data"), "{reasons:?}");
}

/// Executes a POST in early data, and again when replayed; for a GET that is permitted.
#[test]
fn a_server_that_executes_a_replayed_post_is_found() {
    let cases = named(&["Q-83", "Q-84"]);
    let once = findings(&against(QuicWorld { early: EarlyDataMode::Open, ..world() }, &cases));
    assert_eq!(once.len(), 1, "{once:#?}");
    let result = against(QuicWorld { early: EarlyDataMode::Repeating, ..world() }, &cases);
    let found = findings(&result);
    assert_eq!(found.len(), 2, "{found:#?}");
    assert!(found.iter().all(|line| line.starts_with("Q-84 a POST")), "{found:#?}");
    let again = result.cases[0].exchanges.iter().find(|one| one.name.contains("replayed")).unwrap();
    assert_eq!(again.judgement.outcome, TestOutcome::Alternative, "{:?}", again.judgement);
    assert!(again.judgement.seen.contains("early-accepted"), "{:?}", again.judgement);
}

/// Planted bugs, and the case that finds each.
#[test]
fn ignored_violations_are_found() {
    let none = IgnoredInput::default();
    let planted = [
        (
            IgnoredInput { forbidden: true, ..none },
            "Q-72",
            "HANDSHAKE_DONE: the connection stays open",
        ),
        (IgnoredInput { windows: true, ..none }, "Q-75", "one byte too many on a stream"),
        (
            IgnoredInput { challenges: true, ..none },
            "Q-71",
            "PATH_CHALLENGE: the connection stays open",
        ),
        (IgnoredInput { forbidden: true, ..none }, "Q-85", "HANDSHAKE_DONE: early-accepted, the"),
        (IgnoredInput { windows: true, ..none }, "Q-86", "one byte too many on a stream"),
        (
            IgnoredInput { handshakes: true, ..none },
            "Q-55",
            "STREAM in a Handshake packet: the conn",
        ),
        (IgnoredInput { keys: true, ..none }, "Q-87", "between two halves of a request"),
        (IgnoredInput { alerts: true, ..none }, "Q-56", "an invalid Finished"),
        (IgnoredInput { parameters: true, ..none }, "Q-57", "ack_delay_exponent of 21: the conn"),
        (
            IgnoredInput { rejections: true, ..none },
            "Q-89",
            "a GET, with a ticket that the server does not",
        ),
    ];
    for (ignored, case, part) in planted {
        let mut cases = cases();
        cases.retain(|one| one.id == case);
        let early = EarlyDataMode::Open;
        let found = findings(&against(QuicWorld { ignored, early, ..world() }, &cases));
        assert!(found.iter().any(|line| line.contains(part)), "{case}: {found:#?}");
    }
}

/// The server ignores forbidden frames in Handshake packets and makes its own request: the client's
/// close of the connection is not a reaction of the server.
#[test]
fn a_server_request_does_not_hide_ignored_violations() {
    let ignored = IgnoredInput { handshakes: true, streams: true, ..IgnoredInput::default() };
    let result = against(QuicWorld { ignored, ..world() }, &named(&["Q-55"]));
    let found = findings(&result);
    let asked: Vec<_> = found.iter().filter(|one| one.contains("Handshake packet")).collect();
    assert!(asked.len() >= 6, "{found:#?}");
    assert!(asked.iter().all(|one| one.contains("it exceeded our flow-control")), "{asked:#?}");
}

/// The same for connections that the library closes.
#[test]
fn a_server_request_is_not_a_reply_to_bad_streams() {
    let mut cases = catalogue::cases().unwrap();
    cases.retain(|case| case.id == "Q-12");
    let ignored = IgnoredInput { streams: true, ..IgnoredInput::default() };
    let found = findings(&against(QuicWorld { ignored, ..world() }, &cases));
    let asked: Vec<_> = found.iter().filter(|one| one.contains("a second ")).collect();
    assert_eq!(asked.len(), 3, "{found:#?}");
    assert!(asked.iter().all(|one| one.contains("ended by us")), "{asked:#?}");
}

/// Returns SETTINGS_MAX_FIELD_SECTION_SIZE of this size, and a QPACK table.
fn control(section: u64, table: u64) -> Vec<u8> {
    let mut payload = vec![6];
    write::varint(section, &mut payload);
    payload.push(1);
    write::varint(table, &mut payload);
    [&[0][..], &write::frame(SETTINGS, &payload)].concat()
}

/// The limits of a server may grow from one connection to the next, except for the table, and may
/// not shrink.
#[test]
fn settings_reduced_after_early_data_are_found() {
    let cases = named(&["Q-89"]);
    for (begin, shrinks) in [
        ((|_| control(9_000, 100)) as fn(u64) -> Vec<u8>, false),
        (|number| control(9_000 + number, 100), false),
        (|number| control(9_000 - number, 100), true),
        (|number| control(9_000, 100 + number), true),
        (|number| if number % 2 == 0 { control(9_000, 100) } else { vec![0, 4, 0] }, true),
    ] {
        let early = EarlyDataMode::Open;
        let found = findings(&against(QuicWorld { early, control: begin, ..world() }, &cases));
        assert_eq!(!found.is_empty(), shrinks, "{:?}: {found:#?}", begin(1));
        assert!(found.iter().all(|line| line.contains("its SETTINGS allow less")), "{found:#?}");
    }
}

/// On a path of any length, SETTINGS have time to arrive after the ticket. If none arrived for the
/// comparison, the case does not pass.
#[test]
fn late_settings_are_compared_and_missing_ones_do_not_pass() {
    let cases = named(&["Q-89"]);
    let steady: fn(u64) -> Vec<u8> = |_| control(9_000, 100);
    let shrinks: fn(u64) -> Vec<u8> = |number| control(9_000 - number, 100);
    for (delay, control_after, control, expected) in [
        (1, 100, steady, TestOutcome::Pass),
        (1, 100, shrinks, TestOutcome::Fail),
        (150, 0, shrinks, TestOutcome::Fail),
        (150, 100, steady, TestOutcome::Pass),
        (150, 100, shrinks, TestOutcome::Fail),
        (1, 700, shrinks, TestOutcome::Inconclusive),
        (1, 2_500, shrinks, TestOutcome::Inconclusive),
    ] {
        let (delay, control_after) = (Nanos::from_millis(delay), Nanos::from_millis(control_after));
        let early = EarlyDataMode::Open;
        let result = against(QuicWorld { early, delay, control, control_after, ..world() }, &cases);
        let compared =
            result.cases[0].exchanges.iter().find(|one| one.name.starts_with("SETTINGS")).unwrap();
        let judged = (compared.judgement.outcome, delay, control_after);
        assert_eq!(judged, (expected, delay, control_after), "{:?}", compared.judgement);
        let mut parts = compared.judgement.seen.split(", ");
        assert!(parts.all(|part| part != "remembered"), "{:?}", compared.judgement);
        let nothing = compared.judgement.why.starts_with("nothing was compared");
        assert_eq!(nothing, expected == TestOutcome::Inconclusive, "{:?}", compared.judgement);
    }
}

/// The RFC says SHOULD: it is an advisory.
#[test]
fn a_server_that_accepts_any_acknowledgment_is_reported() {
    let mut cases = cases();
    cases.retain(|one| one.id == "Q-73");
    let of = |ignored| against(QuicWorld { ignored, ..world() }, &cases).cases[0].outcome;
    assert_eq!(of(IgnoredInput::default()), TestOutcome::Pass);
    let outcome = of(IgnoredInput { acks: true, ..IgnoredInput::default() });
    assert_eq!(outcome, TestOutcome::Alternative);
}

#[test]
fn a_server_without_migration_is_not_migrated() {
    let mut cases = cases();
    cases.retain(|one| one.id == "Q-81");
    let of = |fixed| against(QuicWorld { fixed, ..world() }, &cases);
    assert_eq!(of(false).cases[0].outcome, TestOutcome::Pass);
    let fixed = of(true);
    assert_eq!(fixed.cases[0].outcome, TestOutcome::Alternative);
    assert!(fixed.cases[0].exchanges[0].judgement.seen.contains("unmoved"), "{fixed:?}");
}

/// Lost data is retransmitted, in both directions and from the first datagram on.
#[test]
fn a_regular_hand_made_conversation_survives_losses() {
    for (name, loses) in [
        ("none", (|_, _| false) as fn(Way, u64) -> bool),
        ("the first", |_, number| number == 0),
        // by a hash, as a period could coincide with that of the server's probes forever
        ("every fourth", |_, number| number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 62 == 3),
        ("every other of the server's", |way, number| way == Way::Down && number % 2 == 1),
    ] {
        let mut field =
            QuicField::new(QuicWorld { loses, body: 50_000, ..world() }, Instant::now());
        let ping = packets::packet("none", &[1]).unwrap();
        let asked = write::request(0, &write::section(pseudo(), ""));
        let script = TalkScript {
            peer: QuicField::peer(),
            options: OpenOptions::default(),
            protocol: Protocol::Http3,
            start: field.now(),
            deadline: Nanos::from_secs(60),
            ..TalkScript::new(vec![Move::Send([write::opening(), ping, asked].concat())])
        };
        let talk = field.talk(vec![script]).remove(0);
        let responses = &talk.replies.responses;
        assert_eq!(responses.len(), 1, "{name}: {:?}", talk.end);
        let got = (responses[0].status, responses[0].body_len);
        assert_eq!(got, (200, 50_000), "{name}: {:?} {:?}", talk.end, talk.over);
        assert!(responses[0].complete && talk.end == TalkEnd::Open, "{name}: {:?}", talk.end);
    }
}

fn pseudo() -> dialogue::http2::write::PseudoFields<'static> {
    dialogue::http2::write::PseudoFields {
        method: "GET",
        scheme: "https",
        authority: "sim.example",
        path: "/",
    }
}
