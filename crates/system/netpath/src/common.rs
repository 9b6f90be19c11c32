//! One path whose links are shared by several workers, each with its own connections: the worker
//! that sends a packet over the path gets it back when it is due, and delivers it itself.
//!
//! A lock is held while packets are put on the links and taken off: some hundred nanoseconds each,
//! without a system call. A sleeping worker need not be woken by the others: their packets can only
//! delay its own, never advance them.

use crate::lanes::{Drawn, LaneClients, Lanes};
use crate::tally::Tally;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use units::Nanos;
use wan::Direction;

/// The two links of the path of one client, for any number of workers.
#[derive(Debug)]
pub struct CommonLanes {
    state: Mutex<CommonState>,
    kinds: usize,
}

#[derive(Debug)]
struct CommonState {
    lanes: Lanes,
    /// Worker whose packet is in the buffer, by buffer number.
    owners: Vec<u32>,
    workers: Vec<WorkerPackets>,
    /// The latest time passed to the links: it never decreases.
    latest: Nanos,
    drawn: Vec<Drawn>,
}

/// State of one worker.
#[derive(Debug, Default)]
struct WorkerPackets {
    /// Packets and copies on the links.
    on_links: u64,
    /// Packets taken off the links, to be delivered.
    due: Vec<Drawn>,
}

/// Access of one worker to shared links.
#[derive(Debug)]
pub struct LanesShare {
    common: Arc<CommonLanes>,
    worker: u32,
    tally: Tally,
    since: Nanos,
    taken: Vec<TakenPacket>,
    bytes: Vec<u8>,
}

/// Packet to be delivered; its bytes follow those of the previous packet.
#[derive(Clone, Copy, Debug)]
struct TakenPacket {
    due: Nanos,
    direction: Direction,
    length: usize,
}

/// The number of the only client.
const CLIENT: usize = 0;

impl CommonLanes {
    /// Creates empty links for workers 0 to `workers` - 1. `clients` has one client.
    pub fn new(clients: LaneClients, workers: u32, seed: u64, now: Nanos) -> Arc<CommonLanes> {
        let kinds = clients.paths.len();
        let state = CommonState {
            lanes: Lanes::new(clients, seed, now),
            owners: Vec::new(),
            workers: (0..workers).map(|_| WorkerPackets::default()).collect(),
            latest: now,
            drawn: Vec::new(),
        };
        Arc::new(CommonLanes { state: Mutex::new(state), kinds })
    }

    /// Returns the access of worker `worker`, one at a time.
    pub fn share(self: &Arc<Self>, worker: u32, now: Nanos) -> LanesShare {
        LanesShare {
            common: self.clone(),
            worker,
            tally: Tally::new(self.kinds),
            since: now,
            taken: Vec::new(),
            bytes: Vec::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, CommonState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CommonState {
    /// Returns the time of the links, which never decreases.
    fn at(&mut self, now: Nanos) -> Nanos {
        self.latest = self.latest.max(now);
        self.latest
    }

    fn put(&mut self, now: Nanos, worker: u32, direction: Direction, packet: &[u8]) {
        let now = self.at(now);
        let Some(number) = self.lanes.take() else { return self.lanes.overflow() };
        let row = number as usize;
        if self.owners.len() <= row {
            self.owners.resize(row + 1, 0);
        }
        self.owners[row] = worker;
        self.lanes.room(number)[..packet.len()].copy_from_slice(packet);
        let copies = self.lanes.put_on(now, CLIENT, direction, number, packet.len());
        self.workers[worker as usize].on_links += u64::from(copies);
        self.forget_lost();
    }

    fn forget_lost(&mut self) {
        let CommonState { lanes, owners, workers, .. } = self;
        lanes.forget_lost(|number| workers[owners[number as usize] as usize].on_links -= 1);
    }

    /// Takes due packets of any worker off the links.
    fn draw(&mut self, now: Nanos) {
        let now = self.at(now);
        self.lanes.draw(now, &mut self.drawn);
        for drawn in self.drawn.drain(..) {
            let owner = self.owners[drawn.delivery.token as usize];
            let waiting = &mut self.workers[owner as usize];
            waiting.on_links -= 1;
            waiting.due.push(drawn);
        }
        self.forget_lost();
    }
}

impl LanesShare {
    /// Adds packets to the link in this direction.
    pub fn put<'a>(
        &mut self,
        now: Nanos,
        direction: Direction,
        packets: impl Iterator<Item = &'a [u8]>,
    ) {
        let mut state = self.common.lock();
        packets.for_each(|packet| state.put(now, self.worker, direction, packet));
    }

    /// Counts a packet that does not belong to this worker.
    pub fn foreign(&mut self) {
        self.tally.foreign += 1;
    }

    /// Passes all due packets of this worker to `write`, with the time. `clock` is read again for
    /// each packet, and at the end.
    pub fn deliver_packets(
        &mut self,
        now: &mut Nanos,
        clock: impl Fn() -> Nanos,
        mut write: impl FnMut(Nanos, Direction, &[u8]),
    ) {
        while self.take(*now) {
            let mut rest = &self.bytes[..];
            for packet in self.taken.drain(..) {
                let (bytes, behind) = rest.split_at(packet.length);
                rest = behind;
                *now = clock();
                self.tally.late(*now - packet.due);
                write(*now, packet.direction, bytes);
            }
        }
    }

    /// Moves due packets of this worker into its own memory; false if there are none.
    fn take(&mut self, now: Nanos) -> bool {
        self.bytes.clear();
        let mut state = self.common.lock();
        state.draw(now);
        let CommonState { lanes, workers, .. } = &mut *state;
        for drawn in workers[self.worker as usize].due.drain(..) {
            let length = lanes.copy_out(&drawn, &mut self.bytes);
            let due = drawn.delivery.due;
            let direction = drawn.direction;
            self.taken.push(TakenPacket { due, direction, length });
        }
        !self.taken.is_empty()
    }

    /// Returns when this worker must poll again; `None` if it has no packets in flight.
    pub fn next_due(&mut self) -> Option<Nanos> {
        let mut state = self.common.lock();
        let WorkerPackets { on_links, due } = &state.workers[self.worker as usize];
        match (due.first().map(|drawn| drawn.delivery.due), *on_links) {
            (Some(due), _) => Some(due),
            (None, 0) => None,
            // of any worker
            (None, _) => state.lanes.next_due(),
        }
    }

    /// Records how long this worker slept, and how long it spun before due times.
    pub fn record_rest(&mut self, slept: Nanos, spun: Nanos) {
        self.tally.slept += slept;
        self.tally.spun += spun;
    }

    /// Returns the counters since the last call: those of this worker, and those of the links not
    /// yet reported by any worker.
    pub fn take_tally(&mut self, now: Nanos) -> Tally {
        let mut tally = std::mem::replace(&mut self.tally, Tally::new(self.common.kinds));
        tally.watch(now - self.since);
        self.since = now;
        let mut links = self.common.lock().lanes.take_tally(now);
        // the links read no clock
        links.watch(Nanos::ZERO);
        tally.add(&links);
        tally
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::net::Ipv4Addr;
    use wan::{NoTraces, Population};

    fn links(path: &str, workers: u32) -> Arc<CommonLanes> {
        let population = Population::parse(&format!("[{path}]:100%"), &NoTraces);
        let paths = population.expect("a path").parts.into_iter().map(|part| part.path).collect();
        let first = Ipv4Addr::new(10, 0, 0, 1);
        let clients = LaneClients { first, kinds: vec![0], numbers: (0, 1), paths };
        CommonLanes::new(clients, workers, 5, Nanos::ZERO)
    }

    /// Each worker gets its own packets back, and all together get the rate of one link: 12 Mbit/s
    /// are one packet of 1,500 bytes per millisecond.
    #[test]
    fn workers_on_common_links_share_one_rate() {
        for workers in [1, 2, 5_u8] {
            let common = links("rtt=10ms, rate=12M, queue=100p", workers.into());
            let mut shares: Vec<LanesShare> =
                (0..workers).map(|row| common.share(row.into(), Nanos::ZERO)).collect();
            let mut got = vec![0_u64; usize::from(workers)];
            for millis in 0..1_000 {
                let now = Nanos::from_millis(millis);
                for (row, share) in shares.iter_mut().enumerate() {
                    // each offers as much load as the link carries
                    let packet = vec![row as u8; 1_500];
                    share.put(now, Direction::Down, std::iter::once(&packet[..]));
                    let mut at = now;
                    share.deliver_packets(
                        &mut at,
                        || now,
                        |_, direction, bytes| {
                            assert_eq!((direction, bytes.len()), (Direction::Down, 1_500));
                            assert!(bytes.iter().all(|byte| usize::from(*byte) == row));
                            got[row] += 1;
                        },
                    );
                }
            }
            let sum: u64 = got.iter().sum();
            assert!((990..=1_000).contains(&sum), "{workers} workers: {got:?}");
            let counts = shares.iter_mut().map(|share| share.take_tally(Nanos::SECOND));
            let counts = counts.reduce(|mut sum, one| {
                sum.add(&one);
                sum
            });
            let counts = counts.expect("there is a worker");
            let [_, down] = counts.kinds[0];
            assert_eq!((down.arrived, down.delivered), (1_000 * u64::from(workers), sum));
            assert_eq!(counts.span, Nanos::SECOND);
        }
    }

    /// The losses are those of one link, in the order in which packets arrive at it.
    #[test]
    fn losses_do_not_depend_on_the_sending_worker() {
        let fates = |workers: u32| {
            let common = links("rtt=10ms, loss=30%", workers);
            let mut shares: Vec<LanesShare> =
                (0..workers).map(|row| common.share(row, Nanos::ZERO)).collect();
            let mut text = String::new();
            for number in 0..60_u64 {
                let share = &mut shares[(number % u64::from(workers)) as usize];
                let mut now = Nanos::from_millis(10 * number);
                share.put(now, Direction::Up, std::iter::once(&[9; 40][..]));
                now += Nanos::from_millis(5);
                let (at, mut came) = (now, false);
                share.deliver_packets(&mut now, || at, |_, _, _| came = true);
                text += if came { "." } else { "x" };
            }
            text
        };
        assert_eq!(fates(1), fates(3));
        assert!(fates(1).contains('x'));
    }

    /// The first worker to poll takes due packets off and leaves those of the others to them; a
    /// worker without packets in flight need not wake.
    #[test]
    fn a_worker_sleeps_until_something_of_its_own_may_be_due() {
        let common = links("rtt=10ms", 3);
        let mut shares: Vec<LanesShare> =
            (0..3).map(|row| common.share(row, Nanos::ZERO)).collect();
        let [first, second, third] = &mut shares[..] else { panic!("there are three") };
        let millis = Nanos::from_millis;
        first.put(millis(1), Direction::Up, std::iter::once(&[1; 40][..]));
        second.put(millis(2), Direction::Up, std::iter::once(&[2; 40][..]));
        assert_eq!((first.next_due(), second.next_due()), (Some(millis(6)), Some(millis(6))));
        assert_eq!(third.next_due(), None);
        let mut now = millis(8);
        let none = Cell::new(true);
        third.deliver_packets(&mut now, || millis(8), |_, _, _| none.set(false));
        first.deliver_packets(&mut now, || millis(8), |_, _, bytes| assert_eq!(bytes, [1; 40]));
        assert!(none.get());
        assert_eq!((first.next_due(), second.next_due()), (None, Some(millis(7))));
        second.deliver_packets(&mut now, || millis(9), |_, _, bytes| assert_eq!(bytes, [2; 40]));
        assert_eq!(second.next_due(), None);
        // late by the time of delivery, not of removal from the link
        assert_eq!(second.take_tally(millis(10)).late.max() / 100_000, 20);
    }
}
