//! Scripts against a simulated machine with a simple TCP, in virtual time.

use super::super::{PacketLink, PacketStep};
use super::*;
use crate::governor::Governor;
use crate::talk::{All, Conversations, Move, Talk, TalkEnd, TalkScript, What, play};
use conduit::{Close, Io, IoError, OpenOptions, Peer, Ready, Slot};
use sample::SocketFacts;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use tcp::{ArrivedPacket, Checksums, Outbox};

const REQUEST: &str = "GET / HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n";
const BODY: usize = 600;
const SERVER: End = End { address: IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)), port: 80 };
const CLIENT: End = End { address: IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), port: 30_000 };
const ISS: u32 = u32::MAX - 300;

/// A clock without sockets.
#[derive(Default)]
struct VirtualClock(Nanos);

impl Io for VirtualClock {
    fn now(&mut self) -> Nanos {
        self.0
    }
    fn open(&mut self, _: Slot, _: &Peer, _: &OpenOptions) -> Result<(), IoError> {
        panic!("a conversation of segments opens no socket")
    }
    fn write(&mut self, _: Slot, _: &[u8]) -> Result<usize, IoError> {
        panic!("a conversation of segments writes to no socket")
    }
    fn read(&mut self, _: Slot, _: &mut [u8]) -> Result<usize, IoError> {
        Err(IoError::WouldBlock)
    }
    fn close(&mut self, _: Slot, _: Close) {}
    fn shutdown_write(&mut self, _: Slot) {}
    fn send_urgent(&mut self, _: Slot, _: u8) {}
    fn facts(&mut self, _: Slot) -> Option<SocketFacts> {
        None
    }
    fn wait(&mut self, until: Nanos, ready: &mut Vec<Ready>) {
        ready.clear();
        self.0 = until;
    }
    fn spin(&self) -> Nanos {
        Nanos::ZERO
    }
}

/// The other machine: one connection, a request that ends with an empty line, one response.
#[derive(Default)]
struct Machine {
    listens_only: bool,
    /// Segments with content to drop.
    drops: u32,
    established: bool,
    gone: bool,
    /// The client's next sequence number, and data after a gap, by number.
    due: u32,
    behind: BTreeMap<u32, u8>,
    heard: Vec<u8>,
    /// The unacknowledged part of the response; its sequence numbers.
    unsent: Vec<u8>,
    acked: u32,
    next: u32,
    window: u32,
    mss: usize,
    answered: bool,
    closes_at: Option<u32>,
    out: VecDeque<Vec<u8>>,
}

impl Machine {
    fn push(&mut self, seq: u32, flags: u8, payload: &[u8]) {
        let flow = Flow { from: SERVER, to: CLIENT };
        let ack = if flags & flag::ACK != 0 { self.due } else { 0 };
        let head = Head { seq, ack, flags, window: 5_000, ..Head::default() };
        let mut out = Outbox::new(Checksums::Ours);
        out.push(&flow, &head, [payload, b""]);
        self.out.extend(out.packets().map(<[u8]>::to_vec));
    }

    fn take(&mut self, head: &Head, payload: &[u8]) {
        if self.gone {
            return self.push(head.ack, flag::RST, b"");
        }
        if head.has(flag::SYN) && !self.established {
            self.established = true;
            (self.due, self.acked, self.next) =
                (head.seq.wrapping_add(1), ISS, ISS.wrapping_add(1));
            self.mss = usize::from(head.mss.unwrap_or(536));
            self.window = u32::from(head.window);
            return self.push(ISS, flag::SYN | flag::ACK, b"");
        }
        let ahead = head.seq.wrapping_sub(self.due);
        if head.has(flag::RST) {
            match ahead {
                0 => self.gone = true,
                1..5_000 => self.push(self.next, flag::ACK, b""),
                _ => {}
            }
            return;
        }
        if head.has(flag::SYN) {
            return self.push(self.next, flag::ACK, b"");
        }
        if !head.has(flag::ACK) {
            return;
        }
        if !payload.is_empty() && self.drops > 0 {
            self.drops -= 1;
            return;
        }
        self.window = u32::from(head.window);
        let acked = head.ack.wrapping_sub(self.acked);
        if acked > 0 && acked <= self.next.wrapping_sub(self.acked) {
            // the SYN has a number and no byte
            let syn = u32::from(self.acked == ISS);
            let fin = u32::from(self.closes_at == Some(head.ack.wrapping_sub(1)));
            self.unsent.drain(..((acked - syn - fin) as usize).min(self.unsent.len()));
            self.acked = head.ack;
        }
        for (at, byte) in payload.iter().enumerate() {
            let number = head.seq.wrapping_add(at as u32);
            if number.wrapping_sub(self.due) < 5_000 {
                self.behind.entry(number).or_insert(*byte);
            }
        }
        while let Some(byte) = self.behind.remove(&self.due) {
            self.heard.push(byte);
            self.due = self.due.wrapping_add(1);
        }
        let fin = head.seq.wrapping_add(payload.len() as u32) == self.due && head.has(flag::FIN);
        self.due = self.due.wrapping_add(u32::from(fin));
        if !payload.is_empty() || fin {
            self.push(self.next, flag::ACK, b"");
        }
        self.answer(fin);
    }

    /// Sends the response as far as the window allows, followed by FIN.
    fn answer(&mut self, ended: bool) {
        if !self.answered && !self.listens_only && (ended || self.heard.ends_with(b"\r\n\r\n")) {
            self.answered = true;
            let length =
                format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {BODY}\r\n\r\n");
            self.unsent = [length.as_bytes(), &[b'x'; BODY]].concat();
        }
        let mut flight = self.next.wrapping_sub(self.acked.max(1)) as usize;
        flight = if self.acked == ISS { 0 } else { flight };
        while self.closes_at.is_none() && flight < self.unsent.len() {
            let room = (self.window as usize).saturating_sub(flight);
            let size = self.mss.min(room).min(self.unsent.len() - flight);
            if size == 0 {
                return;
            }
            let piece = self.unsent[flight..flight + size].to_vec();
            self.push(self.next, flag::PSH | flag::ACK, &piece);
            self.next = self.next.wrapping_add(size as u32);
            flight += size;
        }
        if self.answered && self.closes_at.is_none() {
            self.push(self.next, flag::FIN | flag::ACK, b"");
            self.closes_at = Some(self.next);
            self.next = self.next.wrapping_add(1);
        }
    }
}

impl PacketLink for Machine {
    fn place(&mut self) -> Option<End> {
        Some(CLIENT)
    }

    fn send(&mut self, packet: &[u8]) {
        if let Some(ArrivedPacket::Segment { head, payload, .. }) = tcp::read(packet, false) {
            self.take(&head, payload);
        }
    }

    fn receive(&mut self, into: &mut Vec<u8>) -> bool {
        match self.out.pop_front() {
            Some(packet) => {
                *into = packet;
                true
            }
            None => false,
        }
    }
}

fn moves(lines: &[&str]) -> Vec<Move> {
    let stream = format!("stream {REQUEST}");
    let each = std::iter::once(stream.as_str()).chain(lines.iter().copied());
    each.map(|line| match line.split_once(' ') {
        Some(("pause", span)) => Move::Pause(units::parse_duration(span).unwrap()),
        _ if line == "half-close" => Move::HalfClose,
        _ if line == "reset" => Move::Reset,
        _ => Move::Packet(PacketStep::parse(line).unwrap()),
    })
    .collect()
}

/// Plays the conversation; returns its duration too.
fn talk(lines: &[&str], machine: &mut Machine) -> (Talk, Nanos) {
    let script = TalkScript {
        peer: Peer::Tcp((SERVER.address, SERVER.port).into()),
        deadline: Nanos::from_secs(10),
        grace: Nanos::from_millis(60),
        linger: Nanos::from_secs(2),
        ..TalkScript::new(moves(lines))
    };
    let (mut io, mut governor) = (VirtualClock::default(), Governor::unbounded());
    let mut stage = Conversations::new(None, &mut governor).linked(Some(machine));
    let mut all = All::new(vec![script]);
    play(&mut io, &mut stage, &mut all, &mut |io, until, _| {
        let mut ready = Vec::new();
        io.wait(until, &mut ready);
        ready
    });
    drop(stage);
    (all.into_talks().remove(0), io.now())
}

/// Formats `200 closed, saw ack`: the responses, the end, the events that steps saw.
fn describe(talk: &Talk) -> String {
    let statuses: Vec<String> =
        talk.replies.responses.iter().map(|one| one.status.to_string()).collect();
    let saw = talk.events.iter().filter_map(|event| match event.what {
        What::Saw(kind) => Some(kind.id()),
        _ => None,
    });
    let end = match talk.end {
        TalkEnd::Closed => "closed",
        TalkEnd::Broken(_) => "reset",
        TalkEnd::Silent => "silent",
        TalkEnd::Open => "open",
        TalkEnd::Ours => "ours",
        TalkEnd::Unconnected(_) => "unconnected",
        TalkEnd::Bounded => "bounded",
    };
    let saw: Vec<&str> = saw.collect();
    format!("{} {end} {}", statuses.join(" "), saw.join(",")).trim().to_owned()
}

/// Lines of a script, with its result.
const SCRIPTS: &[(&[&str], &str)] = &[
    (&["open", "segment part=.."], "200 closed"),
    // out of order, duplicated, in single bytes
    (&["open", "segment part=10..", "pause 50ms", "segment part=..10"], "200 closed"),
    (&["open", "segment part=.. times=3"], "200 closed"),
    (&["open", "segment part=.. size=1 gap=2ms"], "200 closed"),
    (&["open mss=64", "segment part=.."], "200 closed"),
    // a wrong checksum is ignored, and the retransmission is served
    (
        &["open", "segment part=.. sum=wrong", "expect ack,data within=300ms", "segment part=.."],
        "200 closed nothing",
    ),
    // resets: outside the window, inside it, with the next number
    (&["open", "segment part=..9", "segment flags=R seq=edge+9", "segment part=9.."], "200 closed"),
    (
        &[
            "open",
            "segment part=..9",
            "segment flags=R seq=next+9",
            "expect ack,rst",
            "segment part=9..",
        ],
        "200 closed ack",
    ),
    (
        &[
            "open",
            "segment part=..9",
            "pause 10ms",
            "segment flags=R seq=next",
            "segment flags=A",
            "expect ack,rst",
        ],
        "reset rst",
    ),
    (
        &[
            "open",
            "segment part=..9",
            "segment flags=S seq=start-1",
            "expect ack,rst",
            "segment part=9..",
        ],
        "200 closed ack",
    ),
    (
        &["open", "segment part=..9", "segment flags=-", "segment flags=FPU", "segment part=9.."],
        "200 closed",
    ),
    // FIN with the request, before its end, and never
    (&["open", "segment part=.. flags=FPA"], "200 closed"),
    (&["open", "segment part=..9", "half-close"], "200 closed"),
    (&["open", "segment part=..9"], "silent"),
    (&["open", "reset"], "ours"),
    // windows
    (&["open window=0", "segment part=..", "pause 1s", "window 65535"], "200 closed"),
    (&["open window=64", "segment part=.."], "200 closed"),
    (&["open", "acks split", "segment part=.."], "200 closed"),
    (&["open", "acks ahead", "segment part=.."], "200 closed"),
    // a handshake by hand, and one without a reply
    (
        &["segment flags=S", "expect syn-ack", "segment flags=A", "segment part=.."],
        "200 closed syn-ack",
    ),
];

#[test]
fn scripts_yield_the_expected_results() {
    for (lines, what) in SCRIPTS {
        let (talk, _) = talk(lines, &mut Machine::default());
        assert_eq!(describe(&talk), *what, "{lines:?}: {:#?}", talk.events);
        assert!(
            talk.end == TalkEnd::Ours || talk.end == TalkEnd::Silent || talk.all_sent,
            "{lines:?}"
        );
    }
}

#[test]
fn overlapping_bytes_are_resolved_by_the_receiver() {
    let lines = ["open", "segment part=1..", "segment seq=start+1 data=YYY", "segment part=..1"];
    let mut machine = Machine::default();
    let (talk, _) = talk(&lines, &mut machine);
    assert_eq!(describe(&talk), "200 closed");
    assert!(machine.heard.starts_with(b"GET / "), "the first bytes counted");
    let lines = ["open", "segment seq=start+1 data=YYY", "segment part=1..", "segment part=..1"];
    let mut machine = Machine::default();
    self::talk(&lines, &mut machine);
    assert!(machine.heard.starts_with(b"GYYY/ "), "{:?}", machine.heard);
}

#[test]
fn a_closed_window_is_respected_and_waits_time_out() {
    let lines = ["open window=100", "segment part=..", "window 0", "pause 3s", "window 65535"];
    let (talk, took) = talk(&lines, &mut Machine::default());
    assert_eq!(describe(&talk), "200 closed");
    assert!((3_000..3_100).contains(&(took.0 / 1_000_000)), "{took:?}");
    let lines = ["open", "segment part=..", "pause 10ms", "expect rst within=2s"];
    let (talk, _) = self::talk(&lines, &mut Machine { listens_only: true, ..Machine::default() });
    assert_eq!(describe(&talk), "silent nothing");
    assert_eq!(talk.over, Nanos::from_secs(10), "until its time is up");
}

#[test]
fn an_unanswered_syn_is_retransmitted_a_few_times() {
    let mut machine = PacketTalk::new(CLIENT, SERVER, 7);
    machine.open(Nanos::ZERO, Opening::default());
    for second in 1..60 {
        machine.tick(Nanos::from_secs(second));
    }
    assert_eq!(machine.take_out().len(), SYN_TRIES as usize);
    machine.tick(Nanos::from_secs(60));
    assert_eq!(machine.due(), Nanos::NEVER);
    // the maximum stays in force, regardless of the request
    let step = SegmentStep { times: 1_000, ..SegmentStep::default() };
    let mut count = 0;
    for _ in 0..100 {
        machine.send_step(Nanos::from_secs(61), &step);
        count += machine.take_out().len() as u64;
    }
    assert!(machine.is_bounded() && count <= PACKETS_MAX, "{count}");
}

#[test]
fn dropped_segments_are_retransmitted_a_few_times() {
    for (drops, what) in [(1, "200 closed"), (3, "200 closed"), (4, "silent")] {
        let mut machine = Machine { drops, ..Machine::default() };
        let (talk, _) = talk(&["open", "segment part=.."], &mut machine);
        assert_eq!(describe(&talk), what, "{drops}");
    }
}

#[test]
fn no_connection_state_remains() {
    // reset with the number that the peer expects; FIN if the peer has closed
    let mut machine = Machine::default();
    let (talk, _) = talk(&["open", "segment part=..9"], &mut machine);
    assert_eq!(describe(&talk), "silent");
    assert!(machine.gone, "a RST with the next number came");
    let mut machine = Machine::default();
    self::talk(&["open", "segment part=.."], &mut machine);
    assert!(!machine.gone && machine.out.len() <= 1, "it ended in order");
}

proptest::proptest! {
    /// Any input: no panic, and no more packets than permitted.
    #[test]
    fn no_packet_panics(packets in proptest::collection::vec(proptest::collection::vec(0_u8.., 20..60), 0..30)) {
        let mut machine = PacketTalk::new(CLIENT, SERVER, 7);
        machine.open(Nanos::ZERO, Opening { stamps: true, ..Opening::default() });
        for (at, bytes) in packets.iter().enumerate() {
            let mut bytes = bytes.clone();
            bytes[12] = 5 << 4;
            let packet = tcp::raw_packet(SERVER.address, CLIENT.address, bytes, 0).unwrap();
            if let Some(ArrivedPacket::Segment { head, payload, .. }) = tcp::read(&packet, false) {
                machine.take(Nanos(at as u64), &head, payload);
            }
        }
        machine.leave(Nanos::SECOND);
        assert!(machine.take_out().len() < 1_000);
    }
}
