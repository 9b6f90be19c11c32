//! Probes of a server's health, in virtual time: they run on schedule regardless of the server.

use campaign::probes::{Pattern, Probed, Probes, Probing};
use campaign::{Unwatched, World as _};
use conduit::{OpenOptions, Peer};
use dialogue::talk::{Conversations, Director, Move, Talk, TalkScript, Wake};
use sim::torture::Field;
use sim::{Action, Admission, Client, Server, World};
use std::net::SocketAddr;
use torture::judge::Plain;
use torture::result::{Probe, ProbeKind, Seen};
use units::{Nanos, show};

const START: Nanos = Nanos::from_secs(100);
const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const CLOSING: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";
const BUSY: &[u8] = b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n";

/// A load without its own requests, for this long.
struct Nothing(Nanos);

impl campaign::probes::ProbeListener for Nothing {}

impl Director for Nothing {
    fn direct(&mut self, now: Nanos, _: &mut Conversations<'_>, _: Vec<(usize, Talk)>) -> Wake {
        if now < self.0 { Wake::At(self.0) } else { Wake::Done }
    }
}

fn pattern() -> Pattern {
    let request = |fields: &str| format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n").into_bytes();
    Pattern {
        new: TalkScript {
            peer: Peer::Tcp(SocketAddr::from(([127, 0, 0, 1], 80))),
            options: OpenOptions::default(),
            tls_name: None,
            protocol: Default::default(),
            start: START,
            steps: vec![Move::Send(request("Connection: close\r\n"))],
            methods: vec!["GET".to_owned()],
            deadline: Nanos::SECOND,
            follow_up: None,
            grace: Nanos::ZERO,
            linger: Nanos::ZERO,
            hold: false,
            probe: true,
        },
        keep: request(""),
        plain: Plain { status: 200, body_len: 2, digest: None, outside: None },
        origin: START,
        case: "X-01".to_owned(),
    }
}

fn probed(server: impl Server + 'static, span: Nanos) -> Vec<Probe> {
    let world = World::new(Box::new(server), Nanos::from_millis(1), START);
    let mut nothing = Nothing(START + span);
    let mut unwatched = Unwatched;
    let probes = Probes::new(&Probing::default(), pattern());
    let mut both = Probed::new(&mut nothing, probes, &mut unwatched);
    Field::new(world).play(&mut both);
    both.into_completed()
}

fn shown(probes: &[Probe]) -> String {
    let row = |probe: &Probe| {
        let kind = if probe.kind == ProbeKind::New { "new " } else { "keep" };
        let span = |at: Option<Nanos>| at.map_or("-".to_owned(), show::duration);
        format!(
            "{kind} {} late {} connected {} first byte {} over {}: {:?}, {}",
            show::duration(probe.due),
            show::duration(probe.late),
            span(probe.connected),
            span(probe.first_byte),
            show::duration(probe.over),
            probe.seen,
            probe.said
        )
    };
    probes.iter().map(row).collect::<Vec<_>>().join("\n")
}

/// Responds with the result of `said` for the current time.
struct Scripted<F>(F);

impl<F: FnMut(Nanos) -> Option<Vec<(Nanos, Action)>>> Server for Scripted<F> {
    fn connect(&mut self, now: Nanos, _: Client) -> Admission {
        if (self.0)(now).is_some() { Admission::Accept } else { Admission::Refuse }
    }

    fn receive(&mut self, now: Nanos, _: Client, _: &[u8]) -> Vec<(Nanos, Action)> {
        (self.0)(now).unwrap_or_default()
    }
}

#[test]
fn a_healthy_server_is_probed_in_both_ways() {
    let felt = probed(
        Scripted(|now| Some(vec![(now, Action::Bytes(OK.to_vec()))])),
        Nanos::from_millis(400),
    );
    insta::assert_snapshot!(shown(&felt));
}

#[test]
fn a_late_response_delays_no_probe_and_a_missing_one_is_lost() {
    let stall = START + Nanos::from_millis(300);
    let server = Scripted(move |now| {
        let at = if now < stall { now } else { START + Nanos::from_millis(2_600) };
        Some(vec![(at.max(now), Action::Bytes(OK.to_vec()))])
    });
    let felt = probed(server, Nanos::from_millis(900));
    insta::assert_snapshot!(shown(&felt));
}

#[test]
fn refusals_sheds_resets_and_truncations_are_distinguished() {
    let server = Scripted(|now: Nanos| {
        let mut actions = vec![(now, Action::Bytes(OK.to_vec()))];
        match (now - START).0 / 200_000_000 {
            0 => {}
            1 => actions = vec![(now, Action::Bytes(BUSY.to_vec()))],
            2 => actions = vec![(now, Action::Reset)],
            3 => actions = vec![(now, Action::Bytes(OK[..39].to_vec())), (now, Action::End)],
            4 => return None,
            _ => actions = vec![(now, Action::Bytes(CLOSING.to_vec()))],
        }
        Some(actions)
    });
    insta::assert_snapshot!(shown(&probed(server, Nanos::from_millis(1_400))));
}

#[test]
fn a_connection_closed_between_two_calls_is_reopened() {
    let server = Scripted(|now: Nanos| {
        let idle = now + Nanos::from_millis(50);
        Some(vec![(now, Action::Bytes(OK.to_vec())), (idle, Action::End)])
    });
    let felt = probed(server, Nanos::from_millis(1_000));
    assert!(felt.iter().all(|probe| probe.seen == Seen::Correct), "{}", shown(&felt));
    assert_eq!(felt.len(), 11);
}

#[test]
fn each_probe_is_counted_once_during_long_silence() {
    let felt = probed(Scripted(|_| Some(Vec::new())), Nanos::from_secs(10));
    assert_eq!(felt.len(), 101);
    assert!(felt.iter().all(|probe| probe.seen == Seen::Lost && probe.over >= Nanos::from_secs(2)));
}
