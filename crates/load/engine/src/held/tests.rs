use super::*;
use std::collections::VecDeque;

/// A world in which every connection is established or refused at the next turn, in the order of
/// opening.
#[derive(Debug, Default)]
struct World {
    now: Nanos,
    /// For each slot: whether it is established, and its readable data.
    established: Vec<bool>,
    opened: Vec<(Slot, Peer)>,
    fresh: VecDeque<Slot>,
    ready_reads: Vec<(Slot, Result<usize, IoError>)>,
    closed: Vec<Slot>,
    /// Slots that refuse.
    refusing: Vec<Slot>,
}

impl Io for World {
    fn now(&mut self) -> Nanos {
        self.now
    }

    fn open(&mut self, slot: Slot, peer: &Peer, _: &OpenOptions) -> Result<(), IoError> {
        self.opened.push((slot, peer.clone()));
        self.established.resize(self.established.len().max(slot as usize + 1), false);
        self.fresh.push_back(slot);
        Ok(())
    }

    fn write(&mut self, slot: Slot, bytes: &[u8]) -> Result<usize, IoError> {
        match self.established[slot as usize] {
            _ if self.refusing.contains(&slot) => Err(IoError::Failed(FailureClass::Refused)),
            true => Ok(bytes.len()),
            false => Err(IoError::WouldBlock),
        }
    }

    fn read(&mut self, slot: Slot, _: &mut [u8]) -> Result<usize, IoError> {
        match self.ready_reads.iter().position(|(at, _)| *at == slot) {
            Some(row) => self.ready_reads.remove(row).1,
            None => Err(IoError::WouldBlock),
        }
    }

    fn close(&mut self, slot: Slot, _: Close) {
        self.closed.push(slot);
    }

    fn shutdown_write(&mut self, _: Slot) {}

    fn facts(&mut self, _: Slot) -> Option<SocketFacts> {
        None
    }

    fn wait(&mut self, until: Nanos, ready: &mut Vec<Ready>) {
        ready.clear();
        self.now += Nanos::from_millis(1);
        for slot in self.fresh.drain(..) {
            self.established[slot as usize] = true;
            ready.push(Ready { slot, readable: false, writable: true, ended: false });
        }
        for (slot, _) in &self.ready_reads {
            ready.push(Ready { slot: *slot, readable: true, writable: false, ended: true });
        }
        assert!(until >= Nanos::ZERO);
    }
}

fn peers() -> Vec<Peer> {
    ["127.0.0.1:1", "127.0.0.1:2"].map(|text| Peer::Tcp(text.parse().expect("an address"))).into()
}

#[test]
fn connections_open_in_batches_behind_the_workers_slots() {
    let mut held = WithHeldConnections::new(World::default(), 100, peers(), true);
    let mut ready = Vec::new();
    held.wait(Nanos::SECOND, &mut ready);
    assert_eq!((held.io.opened.len(), held.facts().stood), (64, 64));
    assert!(ready.is_empty(), "no event of theirs is the worker's: {ready:?}");
    held.open(0, &peers()[0], &OpenOptions::default()).expect("it opens");
    held.wait(Nanos::SECOND, &mut ready);
    assert_eq!(ready.iter().map(|event| event.slot).collect::<Vec<_>>(), [0]);
    assert_eq!(held.io.opened[64], (100, peers()[0].clone()), "behind all that are held");
    let facts = held.facts();
    assert_eq!((facts.wanted, facts.stood, facts.open, facts.peak), (100, 100, 100, 100));
    assert_eq!(facts.setup, Nanos::from_millis(2));
    let to_second = held.io.opened.iter().filter(|(_, peer)| *peer == peers()[1]).count();
    assert_eq!(to_second, 50, "to each server in turn");
}

#[test]
fn connections_closed_by_the_server_are_counted_by_age() {
    let mut held = WithHeldConnections::new(World::default(), 4, peers(), true);
    held.io.refusing = vec![3];
    let mut ready = Vec::new();
    held.wait(Nanos::SECOND, &mut ready);
    held.io.ready_reads = vec![(0, Ok(0)), (1, Ok(7))];
    held.wait(Nanos::SECOND, &mut ready);
    held.wait(Nanos::SECOND, &mut ready);
    held.io.ready_reads = vec![(2, Err(IoError::Failed(FailureClass::Reset)))];
    held.wait(Nanos::SECOND, &mut ready);
    assert_eq!(
        held.facts(),
        HeldFacts {
            wanted: 4,
            stood: 3,
            failed: 1,
            peak: 3,
            open: 1,
            closed: 1,
            reset: 1,
            bytes: 7,
            setup: Nanos::from_millis(1),
            age_min: Nanos::from_millis(1),
            age_p50: Nanos::from_millis(3),
            age_max: Nanos::from_millis(3),
        }
    );
    assert_eq!(held.io.closed, [3, 0, 2]);
}

/// A million idle connections use eight megabytes here.
#[test]
fn a_held_connection_takes_eight_bytes() {
    assert_eq!(size_of::<HeldLine>(), 8);
    for held_state in [HeldState::Pending, HeldState::Over, HeldState::Open(Nanos::ZERO)] {
        assert_eq!(HeldLine::from(held_state).held_state(), held_state);
    }
}
