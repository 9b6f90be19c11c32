//! Two endpoints over a bad network: despite loss, duplication and reordering, every byte arrives
//! once and in order, and both endpoints finish. The peer is one of our connections, created when a
//! SYN arrives.

use crate::connection::{Context, Spares, Tcb, TcpState, bit};
use crate::settings::FIRST_WINDOW;
use crate::*;
use sample::StackFacts;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use units::{Nanos, Purpose, Seed, Stream};

pub(super) const SERVER: End = End { address: IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)), port: 80 };

/// Returns the server, and the first client address: every second world uses IPv6.
fn ends(seed: u64) -> (End, IpAddr) {
    if seed.is_multiple_of(2) {
        return (SERVER, Ipv4Addr::new(10, 9, 0, 1).into());
    }
    let server = Ipv6Addr::new(0xfd00, 0, 0, 1, 0, 0, 0, 2).into();
    (End { address: server, port: 80 }, Ipv6Addr::new(0xfd00, 0, 0, 9, 0, 0, 0xfffe, 1).into())
}

/// Peer.
pub(super) struct Host {
    pub(super) connection: Option<Tcb>,
    syn_ack: Head,
    settings: TcpSettings,
    pub(super) out: Outbox,
    spare: Spares,
    counts: StackFacts,
    challenges: u32,
    client: End,
    server: End,
}

impl Host {
    pub(super) fn new(settings: TcpSettings, server: End) -> Host {
        Host {
            connection: None,
            syn_ack: Head::default(),
            settings,
            out: Outbox::new(Checksums::Ours),
            spare: Vec::new(),
            counts: StackFacts::default(),
            challenges: u32::MAX,
            client: server,
            server,
        }
    }

    /// Returns when it has something to do.
    pub(super) fn deadline(&self) -> Nanos {
        let cold = self.connection.as_ref().and_then(|host| host.cold.as_ref());
        cold.map_or(Nanos::NEVER, |cold| cold.deadline())
    }

    pub(super) fn with<T>(
        &mut self,
        now: Nanos,
        act: impl FnOnce(&mut Tcb, &mut Context<'_>) -> T,
    ) -> Option<T> {
        let mut context = Context {
            now,
            settings: &self.settings,
            out: &mut self.out,
            spare: &mut self.spare,
            counts: &mut self.counts,
            challenges: &mut self.challenges,
            stamp: (now.0 / 1_000_000) as u32,
            first: self.server.address,
            peer: self.client,
            path_mss: u16::MAX,
            stays_at: None,
        };
        self.connection.as_mut().map(|connection| act(connection, &mut context))
    }

    pub(super) fn arrive(&mut self, now: Nanos, flow: Flow, head: &Head, payload: &[u8], iss: u32) {
        if head.has(flag::SYN) {
            self.client = flow.from;
            if self.connection.is_none() {
                self.accept(now, head, iss);
            }
            self.out.push(&Flow { from: self.server, to: flow.from }, &self.syn_ack, [b"", b""]);
            return;
        }
        self.with(now, |connection, c| connection.arrive(head, payload, c));
    }

    fn accept(&mut self, now: Nanos, syn: &Head, iss: u32) {
        let stamp = (now.0 / 1_000_000) as u32;
        self.syn_ack = Head {
            seq: iss,
            ack: syn.seq.wrapping_add(1),
            flags: flag::SYN | flag::ACK,
            window: 64_240,
            mss: Some(1_460),
            shift: self.settings.sack.then_some(7),
            sack_permitted: self.settings.sack,
            stamps: self.settings.stamps.then_some((stamp, syn.stamps.map_or(0, |s| s.0))),
            ..Head::default()
        };
        let mut counts = StackFacts::default();
        let mut context = Context {
            now,
            settings: &self.settings,
            out: &mut Outbox::new(Checksums::Ours),
            spare: &mut self.spare,
            counts: &mut counts,
            challenges: &mut self.challenges,
            stamp,
            first: self.server.address,
            peer: self.client,
            path_mss: u16::MAX,
            stays_at: None,
        };
        let mut new = Tcb::open(self.server, 0, iss, true, &mut context);
        new.release(&mut self.spare);
        new.state = TcpState::Established;
        (new.snd_una, new.rcv_nxt) = (iss.wrapping_add(1), syn.seq.wrapping_add(1));
        new.snd_wnd = u32::from(syn.window);
        new.set(bit::SACK, self.settings.sack);
        new.set(bit::STAMPS, self.settings.stamps);
        new.ts_recent = syn.stamps.map_or(0, |stamps| stamps.0);
        new.shifts = if self.settings.sack { 7 << 4 | 7 } else { 0 };
        self.connection = Some(new);
    }
}

/// Impairments of a network.
#[derive(Clone, Copy)]
struct Bad {
    loss: f64,
    twice: f64,
    /// Delay in milliseconds.
    delay: f64,
    jitter: f64,
}

/// Arrival time, its number, whether the destination is the host, and the packet.
type Flying = (Nanos, u64, bool, Vec<u8>);

struct World {
    client: TcpStack,
    host: Host,
    now: Nanos,
    flying: BinaryHeap<Reverse<Flying>>,
    number: u64,
    draw: Stream,
    bad: Bad,
}

impl World {
    fn new(seed: u64, bad: Bad, settings: TcpSettings) -> World {
        let (server, first) = ends(seed);
        let sources = Sources { first, addresses: 1, port_first: 40_000, port_last: 50_000 };
        let client = TcpStack::new(settings.clone(), sources, Checksums::Ours, Seed(seed));
        // some send packets of several segments
        let mtu = if seed % 4 < 2 { settings.mtu } else { 9_000 };
        let host = Host::new(TcpSettings { mtu, ..settings }, server);
        let draw = Seed(seed).stream(Purpose::Simulation, 1);
        let (now, flying) = (Nanos::from_secs(1), BinaryHeap::new());
        World { client, host, now, flying, number: 0, draw, bad }
    }

    /// Puts the packets of both endpoints on the network.
    fn launch(&mut self) {
        let sides = [(self.client.outgoing(), true), (&self.host.out, false)];
        for (out, to_host) in sides {
            for packet in out.packets() {
                let copies = 1 + usize::from(self.draw.unit() < self.bad.twice);
                for _ in 0..copies {
                    let millis = self.bad.delay + self.bad.jitter * self.draw.unit();
                    if self.draw.unit() >= self.bad.loss {
                        let due = self.now + Nanos::from_secs_f64(millis / 1e3);
                        self.number += 1;
                        let row = (due, self.number, to_host, packet.to_vec());
                        self.flying.push(Reverse(row));
                    }
                }
            }
        }
        self.client.sent();
        self.host.out.clear();
    }

    /// Advances time to the next event; returns false if no event is left.
    fn step(&mut self) -> bool {
        self.launch();
        let timer = self.host.deadline().min(self.client.next_due(self.now));
        let packet = self.flying.peek().map_or(Nanos::NEVER, |Reverse(row)| row.0);
        let next = timer.min(packet);
        if next == Nanos::NEVER {
            return false;
        }
        self.now = self.now.max(next);
        if packet <= timer {
            let Some(Reverse((_, _, to_host, packet))) = self.flying.pop() else { return false };
            if to_host {
                let Some(ArrivedPacket::Segment { flow, head, payload }) = read(&packet, false)
                else {
                    panic!("the client sent what cannot be read");
                };
                // close to the wrap of sequence numbers, so that every transfer crosses it
                self.host.arrive(self.now, flow, &head, payload, u32::MAX - 20_000);
            } else {
                // once with data that stays until the next packet arrives, once without
                let end = packet.len() + 10;
                if self.number.is_multiple_of(3) {
                    self.client.deliver(self.now, &packet, false);
                } else {
                    self.client.room(16_000)[10..end].copy_from_slice(&packet);
                    self.client.deliver_here(self.now, 10..end, false);
                }
            }
        } else {
            self.client.arm(self.now);
            self.client.tick(self.now);
            self.host.with(self.now, |connection, c| connection.tick(c));
        }
        true
    }
}

fn byte(at: usize) -> u8 {
    (at * 31 + at / 251) as u8
}

/// Sends `up` and `down` bytes at once, then closes both sides; returns its duration in virtual
/// time.
fn transfer(seed: u64, bad: Bad, settings: TcpSettings, up: usize, down: usize) -> Nanos {
    let mut world = World::new(seed, bad, settings);
    let start = world.now;
    world.client.open(start, 0, world.host.server, true, (None, None)).expect("tuples are free");
    let (mut sent, mut came, mut host_sent, mut host_came) = (0, 0, 0, 0);
    let (mut ended, mut host_shut, mut shut) = (false, false, false);
    let mut buffer = [0; 5_000];
    let mut taken = vec![0; 16_000].into_boxed_slice();
    for _ in 0..2_000_000_u32 {
        let now = world.now;
        if sent < up {
            let chunk: Vec<u8> = (sent..up.min(sent + 4_000)).map(byte).collect();
            sent += world.client.write(now, 0, &chunk).unwrap_or(0);
        } else if !shut && world.client.write(now, 0, b"") == Ok(0) {
            world.client.shutdown_write(now, 0);
            shut = true;
        }
        // the reader is slow at times
        if world.draw.unit() < 0.7 {
            let read = match world.draw.unit() < 0.5 {
                true => world.client.take(now, 0, &mut taken),
                false => world.client.read(now, 0, &mut taken[..5_000]).map(|count| 0..count),
            };
            match read {
                Ok(range) if range.is_empty() => ended = true,
                Ok(range) => {
                    let got = &taken[range];
                    assert!(got.iter().enumerate().all(|(at, b)| *b == byte(came + at)));
                    came += got.len();
                }
                Err(NotDone::WouldBlock) => {}
                Err(NotDone::Failed(class)) => panic!("seed {seed}: {class:?} at {came} bytes"),
            }
        }
        world.host.with(now, |connection, c| {
            if host_sent < down {
                let chunk: Vec<u8> = (host_sent..down.min(host_sent + 9_000)).map(byte).collect();
                host_sent += connection.write(&chunk, c).unwrap_or(0);
            } else if !host_shut {
                connection.shutdown_write(c);
                host_shut = true;
            }
            let count = connection.read(&mut buffer, c).unwrap_or(0);
            assert!(buffer[..count].iter().enumerate().all(|(at, b)| *b == byte(host_came + at)));
            host_came += count;
        });
        let both = ended && came == down && host_came == up;
        if both && world.host.connection.as_ref().is_some_and(|host| host.has(bit::PEER_FIN)) {
            break;
        }
        if !world.step() && !matches!(world.client.read(world.now, 0, &mut []), Ok(0)) {
            // nothing in flight and no timer: only unread data may be left
            assert!(came < down || host_came < up || !ended, "seed {seed}: deadlock");
        }
    }
    assert_eq!((came, host_came, ended), (down, up, true), "seed {seed}");
    world.client.close(world.now, 0, false);
    let span = world.now - start;
    while world.client.connections() > 0 {
        assert!(world.step(), "seed {seed}: a connection is left without a timer");
    }
    span
}

#[test]
fn every_byte_arrives_once_and_in_order() {
    let mut draw = Seed(77).stream(Purpose::Simulation, 0);
    for seed in 0..300 {
        let bad = Bad {
            loss: [0.0, 0.01, 0.05, 0.2][(seed % 4) as usize],
            twice: 0.05 * draw.unit(),
            delay: 1.0 + 50.0 * draw.unit(),
            jitter: if seed % 3 == 0 { 30.0 * draw.unit() } else { 0.0 },
        };
        let settings = TcpSettings {
            sack: seed % 5 != 0,
            stamps: seed % 7 != 0,
            ecn: seed % 2 == 0,
            receive_max: if seed % 6 == 0 { 5_000 } else { 1 << 20 },
            ..TcpSettings::default()
        };
        let (up, down) = (draw.below(60_000) as usize, draw.below(60_000) as usize);
        transfer(seed, bad, settings, up, down);
    }
}

/// Without loss the rounds are those of slow start: 10, 20, 40 segments.
#[test]
fn a_clean_upload_takes_the_rounds_of_slow_start() {
    let bad = Bad { loss: 0.0, twice: 0.0, delay: 50.0, jitter: 0.0 };
    let span = transfer(1, bad, TcpSettings::default(), 60 * 1_448, 0);
    let rounds = span.as_secs_f64() / 0.1;
    // the handshake, three rounds of data, the close
    assert!((3.5..=5.0).contains(&rounds), "{rounds} rounds");
}

/// Arbitrary segments in any state: no panic, and memory limited by the window.
#[test]
fn random_segments_do_no_harm() {
    let bad = Bad { loss: 0.0, twice: 0.0, delay: 1.0, jitter: 0.0 };
    for seed in 0..60 {
        let mut world = World::new(seed, bad, TcpSettings { ecn: true, ..TcpSettings::default() });
        let mut draw = Seed(seed).stream(Purpose::Simulation, 9);
        world.client.open(world.now, 0, world.host.server, true, (None, None)).expect("free");
        for _ in 0..seed % 8 {
            world.step();
        }
        let (local, mut most) = (world.host.client, 0);
        for round in 0..400 {
            let near = |draw: &mut Stream, at: u32| match draw.below(4) {
                0 => draw.next_u64() as u32,
                1 => at,
                _ => at.wrapping_add(draw.below(200_000) as u32).wrapping_sub(100_000),
            };
            let host = world.host.connection.as_ref().map_or((0, 0), |x| (x.snd_nxt, x.rcv_nxt));
            let payload = vec![1; draw.below(1_400) as usize];
            let mut head = Head {
                seq: near(&mut draw, host.0),
                ack: near(&mut draw, host.1),
                flags: draw.next_u64() as u8 & if draw.below(8) > 0 { !flag::RST } else { 0xff },
                window: draw.next_u64() as u16,
                stamps: (draw.below(2) == 0).then(|| (draw.next_u64() as u32, 0)),
                sack_count: draw.below(5) as u8,
                ecn: draw.below(4) as u8,
                ..Head::default()
            };
            for block in &mut head.sacks {
                *block = (near(&mut draw, host.1), near(&mut draw, host.1));
            }
            let mut out = Outbox::new(Checksums::Ours);
            out.push(&Flow { from: world.host.server, to: local }, &head, [&payload, b""]);
            for packet in out.packets() {
                world.client.deliver(world.now, packet, false);
            }
            match round % 50 {
                3 => drop(world.client.write(world.now, 0, &[3; 2_000])),
                7 => drop(world.client.read(world.now, 0, &mut [0; 900])),
                30 if seed % 3 == 0 => world.client.shutdown_write(world.now, 0),
                _ => {}
            }
            world.now += Nanos::from_millis(draw.below(300));
            world.client.arm(world.now);
            world.client.tick(world.now);
            world.client.sent();
            most = most.max(world.client.buffers());
        }
        assert!(most <= 4 * FIRST_WINDOW as usize, "seed {seed}: {most} bytes");
        world.client.close(world.now, 0, seed % 2 == 0);
        // it ends, regardless of what it received before
        for _ in 0..40 {
            world.now += Nanos::from_secs(120);
            world.client.arm(world.now);
            world.client.tick(world.now);
        }
        assert_eq!(world.client.connections(), 0, "seed {seed}");
    }
}
