//! One link in one direction: a packet arrives, and is lost or leaves at a computed time. The
//! stages, in this order: loss, outage, duplication, queue, rate, delay, order.

use crate::draw::{Direction, Draw, Draws, outages};
use crate::loss::LossState;
use crate::outage::OutageState;
use crate::queue::{Lost, LostTo, Packet};
use crate::spec::LinkSpec;
use crate::transmitter::{Transmitter, transmission};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;
use units::{Nanos, Seed};

/// A delivered packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    pub token: u32,
    /// Delivery time.
    pub due: Nanos,
    /// The argument for [`flip`].
    pub corrupt: Option<u64>,
}

/// Counters of a link. `arrived` + `duplicated` = lost (all four) + `delivered` + the packets
/// inside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounts {
    pub arrived: u64,
    /// Number of copies created.
    pub duplicated: u64,
    /// Delivered with a flipped bit, including copies.
    pub corrupted: u64,
    pub delivered: u64,
    pub delivered_bytes: u64,
    pub lost_to_model: u64,
    pub lost_to_outage: u64,
    pub lost_to_queue: u64,
    pub lost_to_codel: u64,
    /// Maximum number of packets in the queue.
    pub queued_max: u64,
}

impl LinkCounts {
    pub fn lost(&self) -> u64 {
        self.lost_to_model + self.lost_to_outage + self.lost_to_queue + self.lost_to_codel
    }

    /// Returns the difference to `before`; the maximum queue length covers the whole time.
    #[must_use]
    pub fn since(&self, before: &LinkCounts) -> LinkCounts {
        LinkCounts {
            arrived: self.arrived - before.arrived,
            duplicated: self.duplicated - before.duplicated,
            corrupted: self.corrupted - before.corrupted,
            delivered: self.delivered - before.delivered,
            delivered_bytes: self.delivered_bytes - before.delivered_bytes,
            lost_to_model: self.lost_to_model - before.lost_to_model,
            lost_to_outage: self.lost_to_outage - before.lost_to_outage,
            lost_to_queue: self.lost_to_queue - before.lost_to_queue,
            lost_to_codel: self.lost_to_codel - before.lost_to_codel,
            queued_max: self.queued_max,
        }
    }

    fn lose(&mut self, to: LostTo) {
        *match to {
            LostTo::Model => &mut self.lost_to_model,
            LostTo::Outage => &mut self.lost_to_outage,
            LostTo::LinkQueue => &mut self.lost_to_queue,
            LostTo::CoDel => &mut self.lost_to_codel,
        } += 1;
    }
}

impl std::ops::AddAssign for LinkCounts {
    fn add_assign(&mut self, other: LinkCounts) {
        self.arrived += other.arrived;
        self.duplicated += other.duplicated;
        self.corrupted += other.corrupted;
        self.delivered += other.delivered;
        self.delivered_bytes += other.delivered_bytes;
        self.lost_to_model += other.lost_to_model;
        self.lost_to_outage += other.lost_to_outage;
        self.lost_to_queue += other.lost_to_queue;
        self.lost_to_codel += other.lost_to_codel;
        self.queued_max = self.queued_max.max(other.queued_max);
    }
}

/// A packet between departure and arrival; ordered by arrival time, then by departure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Flying {
    due: Nanos,
    number: u64,
    token: u32,
    bytes: u32,
    corrupt: Option<u64>,
}

/// Packets in flight. With a constant delay a simple queue; packets that overtake are in a heap.
#[derive(Clone, Debug, Default)]
struct Flight {
    in_order: VecDeque<Flying>,
    overtaking: BinaryHeap<Reverse<Flying>>,
    number: u64,
}

impl Flight {
    fn push(&mut self, packet: &Packet, due: Nanos) {
        self.number += 1;
        let Packet { token, bytes, corrupt, .. } = *packet;
        let flying = Flying { due, number: self.number, token, bytes, corrupt };
        match self.in_order.back() {
            Some(last) if last.due > due => self.overtaking.push(Reverse(flying)),
            _ => self.in_order.push_back(flying),
        }
    }

    fn first(&self) -> Option<&Flying> {
        let overtaking = self.overtaking.peek().map(|Reverse(flying)| flying);
        self.in_order.front().into_iter().chain(overtaking).min()
    }

    fn pop(&mut self, now: Nanos) -> Option<Flying> {
        let first = *self.first().filter(|first| first.due <= now)?;
        if self.in_order.front() == Some(&first) {
            self.in_order.pop_front()
        } else {
            self.overtaking.pop().map(|Reverse(flying)| flying)
        }
    }
}

/// Link in one direction. Its time arguments never decrease.
#[derive(Clone, Debug)]
pub struct PathLink {
    spec: Arc<LinkSpec>,
    draws: Draws,
    loss: LossState,
    /// Outages that lose packets; those that delay them are in the transmitter.
    losing: Option<OutageState>,
    transmitter: Transmitter,
    flight: Flight,
    /// With order preserved, no packet is due before this.
    last_due: Nanos,
    packets: u64,
    counts: LinkCounts,
}

impl PathLink {
    /// Creates link number `index` of a path. `origin`: time at which traces and outages start.
    pub fn new(
        spec: Arc<LinkSpec>,
        seed: Seed,
        index: u64,
        direction: Direction,
        origin: Nanos,
    ) -> PathLink {
        let outage = |loses: bool| {
            let outage = spec.outage.filter(|outage| outage.loses == loses)?;
            Some(OutageState::new(&outage, outages(seed, index, direction), origin))
        };
        let losing = outage(true);
        let holding = outage(false);
        PathLink {
            draws: Draws::new(seed, index, direction),
            loss: LossState::default(),
            losing,
            transmitter: Transmitter::new(holding, origin),
            flight: Flight::default(),
            last_due: Nanos::ZERO,
            packets: 0,
            counts: LinkCounts::default(),
            spec,
        }
    }

    pub fn counts(&self) -> LinkCounts {
        self.counts
    }

    /// Handles the arrival of a packet of `bytes` (its IP length). `token` is returned with its
    /// delivery or in `lost`, as often as the return value indicates: 0 to 2 copies are held.
    pub fn push(&mut self, now: Nanos, bytes: u32, token: u32, lost: &mut Vec<Lost>) -> u8 {
        self.run(now, lost);
        self.counts.arrived += 1;
        self.packets += 1;
        let draw = self.draws.next();
        if let Some(to) = self.refuses(now, &draw) {
            self.counts.lose(to);
            return 0;
        }
        let twice = draw.duplicate < self.spec.duplicate;
        self.counts.duplicated += u64::from(twice);
        let corrupt = (draw.corrupt < self.spec.corrupt).then_some(draw.bit);
        let ahead = self.spec.ahead.is_some_and(|ahead| {
            self.packets.is_multiple_of(u64::from(ahead.every.max(1))) && draw.ahead < ahead.share
        });
        let mut held = 0;
        let before = lost.len();
        for unit in &draw.delay[..1 + usize::from(twice)] {
            let delay = self.delay(bytes, *unit);
            let packet = Packet { token, bytes, arrived: now, delay, corrupt, ahead };
            if self.transmitter.push(&self.spec, packet, lost) {
                held += 1;
            } else {
                self.counts.lose(LostTo::LinkQueue);
            }
        }
        lost[before..].iter().for_each(|oldest| self.counts.lose(oldest.to));
        let queued = self.transmitter.queued() as u64;
        self.counts.queued_max = self.counts.queued_max.max(queued);
        self.run(now, lost);
        held
    }

    fn refuses(&mut self, now: Nanos, draw: &Draw) -> Option<LostTo> {
        if self.loss.loses(&self.spec.loss, draw.loss) {
            return Some(LostTo::Model);
        }
        let state = self.losing.as_mut()?;
        let outage = self.spec.outage.as_ref()?;
        (state.present(outage, now) > now).then_some(LostTo::Outage)
    }

    fn delay(&self, bytes: u32, unit: f64) -> Nanos {
        match &self.spec.webmark {
            None => self.spec.delay.at(unit),
            Some(law) => {
                let one_way = transmission(u64::from(bytes), law.bits_per_second) + law.propagation;
                one_way * 2
            }
        }
    }

    /// Returns when the next packet may leave; an earlier query is pointless.
    pub fn next_at(&mut self) -> Option<Nanos> {
        let flying = self.flight.first().map(|first| first.due);
        let floor = if self.spec.ahead.is_some() { Nanos::ZERO } else { self.spec.delay.least() };
        let leaving = self.transmitter.next(&self.spec).map(|at| at + floor);
        match (flying, leaving) {
            (Some(flying), Some(leaving)) => Some(flying.min(leaving)),
            (one, other) => one.or(other),
        }
    }

    /// Returns the next packet due by `now`. Packets that the queue drops meanwhile are added to
    /// `lost`.
    pub fn pop(&mut self, now: Nanos, lost: &mut Vec<Lost>) -> Option<Delivery> {
        self.run(now, lost);
        let flying = self.flight.pop(now)?;
        self.counts.delivered += 1;
        self.counts.delivered_bytes += u64::from(flying.bytes);
        self.counts.corrupted += u64::from(flying.corrupt.is_some());
        Some(Delivery { token: flying.token, due: flying.due, corrupt: flying.corrupt })
    }

    /// Processes all departures up to `now`, each at its own computed time.
    fn run(&mut self, now: Nanos, lost: &mut Vec<Lost>) {
        let before = lost.len();
        let PathLink { spec, transmitter, flight, last_due, .. } = self;
        while let Some(at) = transmitter.next(spec).filter(|at| *at <= now) {
            transmitter.serve(spec, at, lost, &mut |packet, left| {
                let due = due(spec, &packet, left, last_due);
                flight.push(&packet, due);
            });
        }
        lost[before..].iter().for_each(|dropped| self.counts.lose(dropped.to));
    }
}

/// Returns the arrival time of a packet that left at `left`.
fn due(spec: &LinkSpec, packet: &Packet, left: Nanos, last_due: &mut Nanos) -> Nanos {
    if packet.ahead {
        return left;
    }
    let mut due = left + packet.delay;
    if !spec.quantum.is_zero() {
        due = Nanos(due.0.div_ceil(spec.quantum.0).saturating_mul(spec.quantum.0));
    }
    if spec.keeps_order {
        due = due.max(*last_due);
        *last_due = due;
    }
    due
}

/// Flips the bit of an IP packet selected by the number of a delivery, somewhere after the IP
/// header. Checksums are not updated, so that the receiver can detect the error.
pub fn flip(packet: &mut [u8], number: u64) {
    let header = match packet.first() {
        Some(first) if first >> 4 == 4 => usize::from(first & 15) * 4,
        Some(first) if first >> 4 == 6 => 40,
        _ => 0,
    };
    let bits = packet.len().saturating_sub(header) as u64 * 8;
    if bits == 0 {
        return;
    }
    let bit = number % bits;
    packet[header + (bit / 8) as usize] ^= 1 << (bit % 8);
}

#[cfg(test)]
mod figure5;
#[cfg(test)]
mod hour;
#[cfg(test)]
mod tests;
