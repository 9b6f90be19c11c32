//! The links of a path with the packets on them: an arriving packet is lost or waits for its time,
//! and due packets are delivered. Reading and writing of packets is done elsewhere: by the
//! forwarder between two devices, or by our own TCP in the same process.
//!
//! One heap entry per link with packets in flight: at the maximum number of links, a heap costs a
//! third of a microsecond per packet, compared with four for reading and writing it, so that a
//! timing wheel would make no difference.

use crate::buffers::Buffers;
use crate::tally::Tally;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::Ipv4Addr;
use std::sync::Arc;
use units::{Nanos, Seed};
use wan::{Delivery, Direction, LinkCounts, Lost, PathLink, PathSpec, flip};

/// A thread's sleep ends late by less than this.
const SPIN: Nanos = Nanos::from_micros(60);

/// The addresses of the clients and their kinds.
#[derive(Clone, Debug)]
pub struct LaneClients {
    /// Address of the first client; the others follow it.
    pub first: Ipv4Addr,
    /// The index of the kind of each.
    pub kinds: Vec<u32>,
    /// The number of the first client among all clients of the path, and the distance to the next:
    /// the behavior of a client's links depends on the seed and this number.
    pub numbers: (u64, u64),
    pub paths: Vec<PathSpec>,
}

/// Packet taken off its link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Drawn {
    pub(crate) direction: Direction,
    pub(crate) delivery: Delivery,
}

/// Two links per client, and the packets on them.
pub struct Lanes {
    links: Vec<PathLink>,
    clients: LaneClients,
    due: BinaryHeap<Reverse<(Nanos, u32)>>,
    /// Next poll of each link; other entries of `due` are stale.
    armed: Vec<Nanos>,
    buffers: Buffers,
    lost: Vec<Lost>,
    pub(crate) tally: Tally,
    /// The last reported counters, per kind.
    reported: Vec<[LinkCounts; 2]>,
    since: Nanos,
}

impl std::fmt::Debug for Lanes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lanes").field("clients", &self.clients.kinds.len()).finish_non_exhaustive()
    }
}

impl Lanes {
    /// Returns how long before a due time the carrier of the packets spins instead of sleeping:
    /// zero on a single core, where it would take time from the server.
    pub fn spin() -> Nanos {
        match std::thread::available_parallelism() {
            Ok(cores) if cores.get() > 1 => SPIN,
            _ => Nanos::ZERO,
        }
    }

    /// Creates empty links. `now`: time at which traces and outages start.
    pub fn new(clients: LaneClients, seed: u64, now: Nanos) -> Lanes {
        let specs: Vec<[Arc<wan::LinkSpec>; 2]> = clients
            .paths
            .iter()
            .map(|path| [Arc::new(path.up.clone()), Arc::new(path.down.clone())])
            .collect();
        let mut links = Vec::with_capacity(clients.kinds.len() * 2);
        let (first, step) = clients.numbers;
        for (row, kind) in clients.kinds.iter().enumerate() {
            let number = first + row as u64 * step;
            for direction in Direction::BOTH {
                let spec = specs[*kind as usize][direction as usize].clone();
                links.push(PathLink::new(spec, Seed(seed), number, direction, now));
            }
        }
        let kinds = clients.paths.len();
        Lanes {
            armed: vec![Nanos::NEVER; links.len()],
            links,
            clients,
            due: BinaryHeap::new(),
            buffers: Buffers::default(),
            lost: Vec::new(),
            tally: Tally::new(kinds),
            reported: vec![[LinkCounts::default(); 2]; kinds],
            since: now,
        }
    }

    /// Returns a buffer for one packet; `None` if there is no room, and the packet must be counted
    /// with [`Lanes::overflow`].
    pub fn take(&mut self) -> Option<u32> {
        self.buffers.take()
    }

    /// Returns the memory of the buffer.
    pub fn room(&mut self, number: u32) -> &mut [u8] {
        self.buffers.room(number)
    }

    /// Returns an unfilled buffer.
    pub fn release_unfilled(&mut self, number: u32) {
        self.buffers.release_unfilled(number);
    }

    /// Counts a packet that was dropped because the buffers were full.
    pub fn overflow(&mut self) {
        self.tally.overflowed += 1;
    }

    /// Puts the packet of `length` bytes in this buffer on the link of its client.
    pub fn put(&mut self, now: Nanos, direction: Direction, number: u32, length: usize) {
        let packet = &self.buffers.room(number)[..length];
        let Some(client) = client_of(packet, direction, &self.clients) else {
            self.tally.foreign += 1;
            self.buffers.release_unfilled(number);
            return;
        };
        self.put_on(now, client, direction, number, length);
        self.forget_lost(|_| {});
    }

    /// Puts a packet of a known client on its link; returns the number of copies there.
    /// [`Lanes::forget_lost`] must follow.
    pub(crate) fn put_on(
        &mut self,
        now: Nanos,
        client: usize,
        direction: Direction,
        number: u32,
        length: usize,
    ) -> u8 {
        let link = client * 2 + direction as usize;
        let copies = self.links[link].push(now, length as u32, number, &mut self.lost);
        self.buffers.fill(number, length, copies);
        self.arm(link);
        copies
    }

    /// Releases the packets lost by the links; `each` gets their buffers.
    pub(crate) fn forget_lost(&mut self, mut each: impl FnMut(u32)) {
        for lost in self.lost.drain(..) {
            self.buffers.done(lost.token);
            each(lost.token);
        }
    }

    /// Takes due packets off the links. Each packet must be passed to [`Lanes::copy_out`], and
    /// [`Lanes::forget_lost`] must follow.
    pub(crate) fn draw(&mut self, now: Nanos, into: &mut Vec<Drawn>) {
        while let Some(next) = self.next_due().filter(|next| *next <= now) {
            let Some(Reverse((_, link))) = self.due.pop() else { break };
            let link = link as usize;
            self.armed[link] = Nanos::NEVER;
            let direction = Direction::BOTH[link % 2];
            while let Some(delivery) = self.links[link].pop(now.max(next), &mut self.lost) {
                into.push(Drawn { direction, delivery });
            }
            self.arm(link);
        }
    }

    /// Appends the bytes of the packet and releases its buffer; returns their number.
    pub(crate) fn copy_out(&mut self, drawn: &Drawn, into: &mut Vec<u8>) -> usize {
        let Delivery { token, corrupt, .. } = drawn.delivery;
        let start = into.len();
        let packet = self.buffers.packet(token);
        into.extend_from_slice(packet);
        if let Some(bit) = corrupt {
            flip(&mut into[start..], bit);
        }
        self.buffers.done(token);
        into.len() - start
    }

    /// Schedules the next poll of the link.
    fn arm(&mut self, link: usize) {
        let next = self.links[link].next_at().unwrap_or(Nanos::NEVER);
        if self.armed[link] != next {
            self.armed[link] = next;
            if next != Nanos::NEVER {
                self.due.push(Reverse((next, link as u32)));
            }
        }
    }

    /// Passes all due packets to `write`, with the time. `clock` is read again if the next packet
    /// is due later than its last value, and for each packet.
    ///
    /// # Errors
    /// Fails like `write`: its packet is lost, and the others stay due.
    pub fn deliver_packets<E>(
        &mut self,
        now: &mut Nanos,
        clock: impl Fn() -> Nanos,
        mut write: impl FnMut(Nanos, Direction, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        while let Some(next) = self.next_due() {
            if next > *now {
                *now = clock();
                if next > *now {
                    break;
                }
            }
            let Some(Reverse((_, link))) = self.due.pop() else { break };
            let link = link as usize;
            self.armed[link] = Nanos::NEVER;
            let direction = Direction::BOTH[link % 2];
            let mut written = Ok(());
            while written.is_ok()
                && let Some(delivery) = self.links[link].pop(*now, &mut self.lost)
            {
                let packet = self.buffers.packet(delivery.token);
                if let Some(bit) = delivery.corrupt {
                    flip(packet, bit);
                }
                *now = clock();
                self.tally.late(*now - delivery.due);
                written = write(*now, direction, packet);
                if let Some(bit) = delivery.corrupt {
                    // flipped back: a copy may follow and be corrupted independently
                    flip(packet, bit);
                }
                self.buffers.done(delivery.token);
            }
            self.forget_lost(|_| {});
            self.arm(link);
            written?;
        }
        Ok(())
    }

    /// Returns the earliest time at which a link must be polled; removes stale entries.
    pub fn next_due(&mut self) -> Option<Nanos> {
        loop {
            let Reverse((at, link)) = *self.due.peek()?;
            if self.armed[link as usize] == at {
                return Some(at);
            }
            self.due.pop();
        }
    }

    /// Records how long the carrier of the packets slept, and how long it spun before due times.
    pub fn record_rest(&mut self, slept: Nanos, spun: Nanos) {
        self.tally.slept += slept;
        self.tally.spun += spun;
    }

    /// Returns the counters since the last call.
    pub fn take_tally(&mut self, now: Nanos) -> Tally {
        let kinds = self.clients.paths.len();
        let mut sums = vec![[LinkCounts::default(); 2]; kinds];
        for (number, link) in self.links.iter().enumerate() {
            let kind = self.clients.kinds[number / 2] as usize;
            sums[kind][number % 2] += link.counts();
        }
        let mut tally = std::mem::replace(&mut self.tally, Tally::new(kinds));
        for (row, both) in sums.iter().enumerate() {
            for (way, sum) in both.iter().enumerate() {
                tally.kinds[row][way] = sum.since(&self.reported[row][way]);
            }
        }
        self.reported = sums;
        tally.watch(now - self.since);
        self.since = now;
        tally
    }
}

/// Returns the client of a packet: by its source address on the way up, by its destination on the
/// way down.
fn client_of(packet: &[u8], direction: Direction, clients: &LaneClients) -> Option<usize> {
    let at = match direction {
        Direction::Up => 12,
        Direction::Down => 16,
    };
    if packet.first()? >> 4 != 4 || packet.len() < 20 {
        return None;
    }
    let address: [u8; 4] = packet[at..at + 4].try_into().ok()?;
    let number = u32::from_be_bytes(address).checked_sub(u32::from(clients.first))? as usize;
    (number < clients.kinds.len()).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wan::{NoTraces, Population};

    fn packet(source: [u8; 4], destination: [u8; 4]) -> Vec<u8> {
        let mut packet = vec![0x45; 20];
        packet[12..16].copy_from_slice(&source);
        packet[16..20].copy_from_slice(&destination);
        packet
    }

    #[test]
    fn a_packet_belongs_to_the_client_that_sends_or_gets_it() {
        let first = Ipv4Addr::new(198, 18, 0, 1);
        let kinds = vec![0, 0, 1];
        let clients = LaneClients { first, kinds, numbers: (0, 1), paths: Vec::new() };
        let up = |source| client_of(&packet(source, [127, 0, 0, 1]), Direction::Up, &clients);
        assert_eq!(up([198, 18, 0, 1]), Some(0));
        assert_eq!(up([198, 18, 0, 3]), Some(2));
        assert_eq!(up([198, 18, 0, 4]), None);
        assert_eq!(up([198, 18, 0, 0]), None);
        let down = packet([127, 0, 0, 1], [198, 18, 0, 2]);
        assert_eq!(client_of(&down, Direction::Down, &clients), Some(1));
        // not IPv4, truncated, empty
        assert_eq!(client_of(&[0x60; 40], Direction::Up, &clients), None);
        assert_eq!(client_of(&down[..19], Direction::Down, &clients), None);
        assert_eq!(client_of(&[], Direction::Up, &clients), None);
    }

    /// Returns, for each of 40 packets of client 3, whether it arrived.
    fn fates(numbers: (u64, u64), row: u8) -> String {
        let population = Population::parse("[rtt=4ms, loss=30%]:100%", &NoTraces);
        let paths = population.expect("a population").parts.into_iter().map(|part| part.path);
        let first = Ipv4Addr::new(10, 0, 0, 1);
        let clients =
            LaneClients { first, kinds: vec![0, 0, 0, 0], numbers, paths: paths.collect() };
        let mut lanes = Lanes::new(clients, 7, Nanos::ZERO);
        let mut text = String::new();
        for turn in 0..40 {
            let mut now = Nanos::from_millis(10 * turn);
            let number = lanes.take().expect("there is room");
            let bytes = packet([10, 0, 0, 1 + row], [127, 0, 0, 1]);
            lanes.room(number)[..20].copy_from_slice(&bytes);
            lanes.put(now, Direction::Up, number, 20);
            assert!(lanes.next_due().is_none_or(|due| due == now + Nanos::from_millis(2)));
            now += Nanos::from_millis(2);
            let (mut came, at) = (0, now);
            let write = |_: Nanos, way: Direction, bytes: &[u8]| -> Result<(), ()> {
                assert_eq!((way, bytes.len()), (Direction::Up, 20));
                came += 1;
                Ok(())
            };
            lanes.deliver_packets(&mut now, || at, write).expect("writing never fails");
            text += if came == 1 { "." } else { "x" };
        }
        assert_eq!(lanes.take_tally(Nanos::SECOND).kinds[0][0].arrived, 40);
        text
    }

    /// The fate of a client's packets does not depend on other clients.
    #[test]
    fn a_clients_losses_are_its_own_whichever_worker_carries_it() {
        let alone = fates((0, 1), 3);
        assert_eq!(alone, fates((1, 2), 1), "the second worker of two has clients 1, 3, 5, 7");
        assert_ne!(alone, fates((0, 1), 2));
        assert!(alone.contains('x') && alone.contains('.'), "{alone}");
    }

    /// Two packets are due, and writing the first one fails.
    #[test]
    fn packets_after_a_failed_write_stay_due() {
        let population = Population::parse("[rtt=4ms]:100%", &NoTraces).expect("a population");
        let paths = population.parts.into_iter().map(|part| part.path).collect();
        let first = Ipv4Addr::new(10, 0, 0, 1);
        let clients = LaneClients { first, kinds: vec![0], numbers: (0, 1), paths };
        let mut lanes = Lanes::new(clients, 7, Nanos::ZERO);
        let bytes = packet([10, 0, 0, 1], [127, 0, 0, 1]);
        for _ in 0..2 {
            let number = lanes.take().expect("there is room");
            lanes.room(number)[..20].copy_from_slice(&bytes);
            lanes.put(Nanos::ZERO, Direction::Up, number, 20);
        }
        let due = Nanos::from_millis(2);
        let mut now = due;
        let failed = lanes.deliver_packets(&mut now, || due, |_, _, _| Err("it is full"));
        assert_eq!((failed, lanes.next_due()), (Err("it is full"), Some(due)));
        let mut came = 0;
        let write = |_: Nanos, _: Direction, _: &[u8]| -> Result<(), ()> {
            came += 1;
            Ok(())
        };
        assert_eq!(
            (lanes.deliver_packets(&mut now, || due, write), lanes.next_due()),
            (Ok(()), None)
        );
        assert_eq!(came, 1);
    }
}
