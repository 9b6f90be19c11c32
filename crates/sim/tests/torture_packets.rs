//! Packets of QUIC that no library sends, in virtual time, to a server that is quinn-proto's: a right one has no
//! finding, and what is planted in it is found.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its scene has failed")]

use campaign::{Settings, TestTarget, Unwatched, World};
use conduit::OpenOptions;
use dialogue::http2::Spoken;
use dialogue::http3::{SETTINGS, packets, write};
use dialogue::talk::{Move, TalkEnd, TalkScript};
use quic::deaf::Deafness;
use sim::quic::{Bay, EarlyDoor, Pond, Way};
use sim::torture::target_over_quic;
use sim::{Queue, Service};
use std::time::Instant;
use torture::case::Case;
use torture::catalogue;
use torture::judge::TestOutcome;
use torture::result::RunResult;
use units::Nanos;

/// The cases whose packets are made by hand.
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

fn pond() -> Pond {
    let service = Service::Fixed(Nanos::from_millis(1));
    Pond { delay: Nanos::from_millis(1), ..Pond::new(Queue::new(1, service, 1)) }
}

fn against(pond: Pond, cases: &[Case]) -> RunResult {
    let target = TestTarget { peer: Bay::peer(), takes_bodies: false, ..target_over_quic() };
    let settings = Settings { seed: 1, baseline: Nanos::SECOND, ..Settings::default() };
    let mut bay = Bay::new(pond, Instant::now());
    campaign::run(&target, &settings, cases, &mut bay, &mut Unwatched)
}

/// Exchanges that are findings: case, exchange, what was seen.
fn findings(result: &RunResult) -> Vec<String> {
    assert_eq!(result.ended_early, None);
    let exchanges = result.cases.iter().flat_map(|case| {
        case.exchanges.iter().map(move |exchange| (case.case.id.as_str(), exchange))
    });
    let well = [TestOutcome::Pass, TestOutcome::Alternative, TestOutcome::Advisory];
    let bad = exchanges.filter(|(_, exchange)| !well.contains(&exchange.judgement.outcome));
    let told = |(id, exchange): (&str, &torture::result::ExchangeResult)| {
        format!("{id} {}: {} {}", exchange.name, exchange.judgement.seen, exchange.judgement.why)
    };
    bad.map(told).collect()
}

#[test]
fn a_right_server_has_no_finding_behind_the_handshake() {
    let cases = cases();
    let result = against(pond(), &cases);
    assert_eq!(findings(&result), Vec::<String>::new());
    assert_eq!(result.cases.len(), cases.len());
}

/// What becomes of requests in early data where they may be repeated: they are served, asked for again, or passed over.
#[test]
fn early_data_is_read_with_care_or_not_at_all() {
    let cases = named(&["Q-83", "Q-84", "Q-85", "Q-86", "Q-89"]);
    for early in [EarlyDoor::TooEarly, EarlyDoor::Forgetful] {
        let result = against(Pond { early, ..pond() }, &cases);
        assert_eq!(findings(&result), Vec::<String>::new(), "{early:?}");
        let skipped = result.cases.iter().filter(|case| case.skipped.is_some()).count();
        assert_eq!(skipped, if early == EarlyDoor::Forgetful { 3 } else { 0 }, "{early:?}");
    }
    let shut = against(pond(), &cases);
    let told: Vec<_> = shut.cases.iter().filter_map(|case| case.skipped.clone()).collect();
    assert_eq!(told.len(), 5);
    assert!(told[0].contains("no ticket that allows early data"), "{told:?}");
}

/// It serves a POST in early data, and again when it is recorded and repeated; a GET may be.
#[test]
fn a_server_that_repeats_a_post_is_found() {
    let cases = named(&["Q-83", "Q-84"]);
    let once = findings(&against(Pond { early: EarlyDoor::Open, ..pond() }, &cases));
    assert_eq!(once.len(), 1, "{once:#?}");
    let result = against(Pond { early: EarlyDoor::Repeating, ..pond() }, &cases);
    let found = findings(&result);
    assert_eq!(found.len(), 2, "{found:#?}");
    assert!(found.iter().all(|line| line.starts_with("Q-84 a POST")), "{found:#?}");
    let again = result.cases[0].exchanges.iter().find(|one| one.name.contains("replayed")).unwrap();
    assert_eq!(again.judgement.outcome, TestOutcome::Alternative, "{:?}", again.judgement);
    assert!(again.judgement.seen.contains("early-accepted"), "{:?}", again.judgement);
}

/// What is planted, and the case that finds it.
#[test]
fn what_a_server_passes_over_is_found() {
    let none = Deafness::default();
    let planted = [
        (Deafness { forbidden: true, ..none }, "Q-72", "HANDSHAKE_DONE: the connection stays open"),
        (Deafness { windows: true, ..none }, "Q-75", "one byte too many on a stream"),
        (
            Deafness { challenges: true, ..none },
            "Q-71",
            "PATH_CHALLENGE: the connection stays open",
        ),
        (Deafness { forbidden: true, ..none }, "Q-85", "HANDSHAKE_DONE: early-accepted, the"),
        (Deafness { windows: true, ..none }, "Q-86", "one byte too many on a stream"),
        (Deafness { handshakes: true, ..none }, "Q-55", "STREAM in a Handshake packet: the conn"),
        (Deafness { keys: true, ..none }, "Q-87", "between two halves of a request"),
        (Deafness { alerts: true, ..none }, "Q-56", "an invalid Finished"),
        (Deafness { parameters: true, ..none }, "Q-57", "ack_delay_exponent of 21: the conn"),
        (
            Deafness { rejections: true, ..none },
            "Q-89",
            "a GET, with a ticket that the server does not",
        ),
    ];
    for (deaf_to, case, told) in planted {
        let mut cases = cases();
        cases.retain(|one| one.id == case);
        let early = EarlyDoor::Open;
        let found = findings(&against(Pond { deaf_to, early, ..pond() }, &cases));
        assert!(found.iter().any(|line| line.contains(told)), "{case}: {found:#?}");
    }
}

/// It passes over what Handshake packets cannot hold and makes a request of its own: that we end the connection for that
/// is no word of the server's.
#[test]
fn a_request_of_the_servers_hides_nothing_that_it_passes_over() {
    let deaf_to = Deafness { handshakes: true, streams: true, ..Deafness::default() };
    let result = against(Pond { deaf_to, ..pond() }, &named(&["Q-55"]));
    let found = findings(&result);
    let asked: Vec<_> = found.iter().filter(|one| one.contains("Handshake packet")).collect();
    assert!(asked.len() >= 6, "{found:#?}");
    assert!(asked.iter().all(|one| one.contains("it exceeded our flow-control")), "{asked:#?}");
}

/// The same of connections that the library ends.
#[test]
fn a_request_of_the_servers_is_no_answer_to_bad_streams() {
    let mut cases = catalogue::cases().unwrap();
    cases.retain(|case| case.id == "Q-12");
    let deaf_to = Deafness { streams: true, ..Deafness::default() };
    let found = findings(&against(Pond { deaf_to, ..pond() }, &cases));
    let asked: Vec<_> = found.iter().filter(|one| one.contains("a second ")).collect();
    assert_eq!(asked.len(), 3, "{found:#?}");
    assert!(asked.iter().all(|one| one.contains("ended by us")), "{asked:#?}");
}

/// SETTINGS_MAX_FIELD_SECTION_SIZE of so many bytes, and a table of QPACK.
fn control(section: u64, table: u64) -> Vec<u8> {
    let mut payload = vec![6];
    write::varint(section, &mut payload);
    payload.push(1);
    write::varint(table, &mut payload);
    [&[0][..], &write::frame(SETTINGS, &payload)].concat()
}

/// What a server permits may grow from one connection to the next, but for the table, and may not shrink.
#[test]
fn settings_that_shrink_behind_early_data_are_found() {
    let cases = named(&["Q-89"]);
    for (begin, shrinks) in [
        ((|_| control(9_000, 100)) as fn(u64) -> Vec<u8>, false),
        (|number| control(9_000 + number, 100), false),
        (|number| control(9_000 - number, 100), true),
        (|number| control(9_000, 100 + number), true),
        (|number| if number % 2 == 0 { control(9_000, 100) } else { vec![0, 4, 0] }, true),
    ] {
        let early = EarlyDoor::Open;
        let found = findings(&against(Pond { early, control: begin, ..pond() }, &cases));
        assert_eq!(!found.is_empty(), shrinks, "{:?}: {found:#?}", begin(1));
        assert!(found.iter().all(|line| line.contains("its SETTINGS allow less")), "{found:#?}");
    }
}

/// However long the path is: from the ticket on there is time for SETTINGS to come. Where none came that could be
/// compared, that is no pass.
#[test]
fn late_settings_are_compared_and_nothing_compared_is_no_pass() {
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
        let early = EarlyDoor::Open;
        let result = against(Pond { early, delay, control, control_after, ..pond() }, &cases);
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

/// The text says SHOULD: it is an advisory.
#[test]
fn a_server_that_takes_any_acknowledgement_is_told() {
    let mut cases = cases();
    cases.retain(|one| one.id == "Q-73");
    let of = |deaf_to| against(Pond { deaf_to, ..pond() }, &cases).cases[0].outcome;
    assert_eq!(of(Deafness::default()), TestOutcome::Pass);
    let outcome = of(Deafness { acks: true, ..Deafness::default() });
    assert_eq!(outcome, TestOutcome::Alternative);
}

#[test]
fn a_server_whose_clients_may_not_move_is_not_moved_about() {
    let mut cases = cases();
    cases.retain(|one| one.id == "Q-81");
    let of = |fixed| against(Pond { fixed, ..pond() }, &cases);
    assert_eq!(of(false).cases[0].outcome, TestOutcome::Pass);
    let fixed = of(true);
    assert_eq!(fixed.cases[0].outcome, TestOutcome::Alternative);
    assert!(fixed.cases[0].exchanges[0].judgement.seen.contains("unmoved"), "{fixed:?}");
}

/// What is lost is sent again, in both directions and from the first datagram on.
#[test]
fn a_polite_conversation_by_hand_survives_losses() {
    for (name, loses) in [
        ("none", (|_, _| false) as fn(Way, u64) -> bool),
        ("the first", |_, number| number == 0),
        // by a hash, as a period could meet that of the server's probes for ever
        ("every fourth", |_, number| number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 62 == 3),
        ("every other of the server's", |way, number| way == Way::Down && number % 2 == 1),
    ] {
        let mut bay = Bay::new(Pond { loses, body: 50_000, ..pond() }, Instant::now());
        let ping = packets::packet("none", &[1]).unwrap();
        let asked = write::request(0, &write::section(pseudo(), ""));
        let script = TalkScript {
            peer: Bay::peer(),
            options: OpenOptions::default(),
            spoken: Spoken::Http3,
            start: bay.now(),
            deadline: Nanos::from_secs(60),
            ..TalkScript::of(vec![Move::Send([write::opening(), ping, asked].concat())])
        };
        let talk = bay.talk(vec![script]).remove(0);
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
