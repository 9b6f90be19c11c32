//! Broadcasts over WebSockets: in each room one member publishes, and every other member should
//! receive each message. A room belongs to one worker, so that all its instants are of one clock.

use crate::setup::Setup;
use conduit::Slot;
use sample::FanOutEvent;
use std::collections::VecDeque;
use units::{Nanos, NumberMap};

/// Time from due after which a message that a member has not received counts as lost. The timeout
/// of calls applies if it is shorter.
const REACH_MAX: Nanos = Nanos::from_secs(5);

/// The latest messages of a room that are remembered for each member by a bit, to find duplicates.
const REMEMBERED: u64 = 64;

/// Maximum number of older messages remembered for each member because it has not received them.
const MISSED_MAX: usize = 1_024;

/// Members opened in one turn of the worker.
const OPENS_MAX: u64 = 64;

/// A room and its members.
#[derive(Debug, Default)]
struct OpenRoom {
    /// Open members, the publisher first.
    open: Vec<Slot>,
    /// Messages published so far.
    sequence: u64,
}

/// A connection that belongs to a room.
#[derive(Clone, Debug)]
struct Member {
    room: usize,
    /// The latest message received, from 1; and those before it, by bits.
    latest: u64,
    seen: u64,
    /// Older messages that it has not received, in rising order.
    missed: VecDeque<u64>,
    /// Messages published before it was open.
    joined: u64,
}

/// Place of a received message among those of the member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReceptionOrder {
    InOrder,
    Overtaken,
    Again,
}

impl Member {
    /// Notes the reception of message `number` of the room.
    fn note(&mut self, number: u64) -> ReceptionOrder {
        let Some(behind) = self.latest.checked_sub(number) else {
            self.advance(number);
            return ReceptionOrder::InOrder;
        };
        if behind >= REMEMBERED {
            return match self.missed.binary_search(&number) {
                Ok(place) => {
                    self.missed.remove(place);
                    ReceptionOrder::Overtaken
                }
                Err(_) => ReceptionOrder::Again,
            };
        }
        if self.seen >> behind & 1 == 1 {
            return ReceptionOrder::Again;
        }
        self.seen |= 1 << behind;
        ReceptionOrder::Overtaken
    }

    /// Message `number` is the latest: those that leave the bits without a reception are
    /// remembered as missed.
    fn advance(&mut self, number: u64) {
        let oldest = self.latest.saturating_sub(REMEMBERED - 1).max(self.joined + 1);
        let leave = (number + 1).saturating_sub(REMEMBERED);
        for older in oldest.max(leave.saturating_sub(MISSED_MAX as u64))..leave {
            if older > self.latest || self.seen >> (self.latest - older) & 1 == 0 {
                self.missed.push_back(older);
            }
        }
        while self.missed.len() > MISSED_MAX {
            self.missed.pop_front();
        }
        let ahead = number - self.latest;
        self.seen = if ahead >= REMEMBERED { 1 } else { self.seen << ahead | 1 };
        self.latest = number;
    }
}

/// A published message, until every member has it or its time limit has passed.
#[derive(Clone, Copy, Debug)]
struct Published {
    due: Nanos,
    room: usize,
    /// Number in its room, from 1.
    number: u64,
    expected: u64,
    received: u64,
    first: Nanos,
    last: Nanos,
}

/// Meaning of a message that a member received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reception {
    Event(FanOutEvent),
    /// The publisher's own copy.
    Own,
    /// It was not published, or its time limit has passed.
    Unknown,
}

/// A worker's rooms.
#[derive(Debug)]
pub(crate) struct FanOut {
    rooms: Vec<OpenRoom>,
    /// Their numbers among those of all workers.
    numbers: Vec<u64>,
    members_each: u64,
    /// Members requested so far.
    asked: u64,
    members: NumberMap<Member>,
    published: NumberMap<Published>,
    /// Messages that are not settled, by the instants at which their time is over.
    deadlines: VecDeque<(Nanos, u64)>,
    /// Settled ones, remembered until then to find duplicates.
    settled: VecDeque<(Nanos, u64)>,
    next_room: usize,
    patience: Nanos,
}

impl FanOut {
    /// The rooms of worker `worker`; `None`: the plan has none.
    pub(crate) fn of(setup: &Setup, worker: u32) -> Option<FanOut> {
        let rooms = setup.plan.websocket.rooms.filter(|_| setup.plan.is_websocket())?;
        let part = setup.part(worker);
        let count = part.count_of(u64::from(rooms));
        Some(FanOut {
            rooms: (0..count).map(|_| OpenRoom::default()).collect(),
            numbers: (0..count).map(|row| part.nth(row)).collect(),
            members_each: setup.plan.room_members(),
            asked: 0,
            members: NumberMap::default(),
            published: NumberMap::default(),
            deadlines: VecDeque::new(),
            settled: VecDeque::new(),
            next_room: 0,
            patience: setup.plan.timeouts.call.min(REACH_MAX),
        })
    }

    /// Rooms whose members must be opened now: the place of each among the worker's rooms, and its
    /// number. The publishers are the first.
    pub(crate) fn take_unopened(&mut self) -> Vec<(usize, u64)> {
        let rooms = self.rooms.len() as u64;
        let now = self.unopened().min(OPENS_MAX);
        let places = (self.asked..self.asked + now).map(|member| (member % rooms) as usize);
        let taken = places.map(|place| (place, self.numbers[place])).collect();
        self.asked += now;
        taken
    }

    /// Returns whether members remain to be opened.
    pub(crate) fn is_opening(&self) -> bool {
        self.unopened() > 0
    }

    /// Number of members that were not requested yet.
    fn unopened(&self) -> u64 {
        (self.rooms.len() as u64 * self.members_each).saturating_sub(self.asked)
    }

    /// A connection for a member was begun.
    pub(crate) fn begin(&mut self, slot: Slot, room: usize) {
        let member = Member { room, latest: 0, seen: 0, missed: VecDeque::new(), joined: u64::MAX };
        self.members.insert(u64::from(slot), member);
    }

    /// The handshake of a member is over.
    pub(crate) fn open(&mut self, slot: Slot) {
        let Some(member) = self.members.get_mut(&u64::from(slot)) else { return };
        let room = &mut self.rooms[member.room];
        member.joined = room.sequence;
        member.latest = room.sequence;
        room.open.push(slot);
    }

    /// A connection ended; it may be a member's.
    pub(crate) fn lose(&mut self, slot: Slot) {
        if let Some(member) = self.members.remove(&u64::from(slot)) {
            self.rooms[member.room].open.retain(|other| *other != slot);
        }
    }

    /// The publisher of the room whose turn it is; `None`: none is open.
    pub(crate) fn next_publisher(&mut self) -> Option<Slot> {
        let count = self.rooms.len();
        let mut turns = (0..count).map(|step| (self.next_room + step) % count);
        let room = turns.find(|room| !self.rooms[*room].open.is_empty())?;
        self.next_room = (room + 1) % count;
        self.rooms[room].open.first().copied()
    }

    /// A message with this key was published on `slot`.
    pub(crate) fn publish(&mut self, slot: Slot, key: u64, due: Nanos) {
        let Some(member) = self.members.get(&u64::from(slot)) else { return };
        let room = &mut self.rooms[member.room];
        room.sequence += 1;
        let expected = (room.open.len() as u64).saturating_sub(1);
        let published = Published {
            due,
            room: member.room,
            number: room.sequence,
            expected,
            received: 0,
            first: Nanos::ZERO,
            last: Nanos::ZERO,
        };
        self.published.insert(key, published);
        self.deadlines.push_back((due + self.patience, key));
    }

    /// A member received a message with this key.
    pub(crate) fn receive(&mut self, slot: Slot, key: Option<u64>, now: Nanos) -> Reception {
        let found = key.and_then(|key| self.published.get_mut(&key));
        let (Some(member), Some(published)) = (self.members.get_mut(&u64::from(slot)), found)
        else {
            return Reception::Unknown;
        };
        let own = self.rooms[member.room].open.first() == Some(&slot);
        if published.room != member.room || published.number <= member.joined {
            return Reception::Unknown;
        }
        if own {
            return Reception::Own;
        }
        let due = published.due;
        let arrival = member.note(published.number);
        if arrival == ReceptionOrder::Again {
            return Reception::Event(FanOutEvent::Duplicate { due });
        }
        let in_order = arrival == ReceptionOrder::InOrder;
        published.received += 1;
        published.last = now;
        if published.received == 1 {
            published.first = now;
        }
        Reception::Event(FanOutEvent::Delivered { due, at: now, in_order })
    }

    /// Returns a message that every receiver has, or whose time limit has passed. Must be called
    /// until it returns `None`.
    pub(crate) fn take_settled(&mut self, now: Nanos) -> Option<FanOutEvent> {
        while let Some((_, key)) = self.settled.pop_front_if(|(deadline, _)| *deadline <= now) {
            self.published.remove(&key);
        }
        let (deadline, key) = *self.deadlines.front()?;
        let published = *self.published.get(&key)?;
        if deadline > now && published.received < published.expected {
            return None;
        }
        self.deadlines.pop_front();
        self.settled.push_back((deadline, key));
        let Published { due, expected, received, first, last, .. } = published;
        Some(FanOutEvent::Settled { due, expected, received, first, last })
    }

    /// Deadline of the oldest unsettled message, or `NEVER`.
    pub(crate) fn next_deadline(&self) -> Nanos {
        self.deadlines.front().map_or(Nanos::NEVER, |(at, _)| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_found_however_late_it_arrives() {
        let missed = VecDeque::new();
        let mut member = Member { room: 0, latest: 10, seen: 0, missed, joined: 10 };
        // 20 and 500 to 699 are late; all others arrive in order
        let late = |number: &u64| *number == 20 || (500..700).contains(number);
        for number in (11..=1_000).filter(|number| !late(number)) {
            assert_eq!(member.note(number), ReceptionOrder::InOrder, "{number}");
        }
        assert_eq!(member.missed.len(), 201);
        for number in (11..=1_000).filter(late) {
            assert_eq!(member.note(number), ReceptionOrder::Overtaken, "{number}");
        }
        for number in 11..=1_000 {
            assert_eq!(member.note(number), ReceptionOrder::Again, "{number}");
        }
        // a long loss takes bounded memory
        assert_eq!(member.note(1_000_000), ReceptionOrder::InOrder);
        assert_eq!(member.missed.len(), MISSED_MAX);
        assert_eq!(member.note(999_999), ReceptionOrder::Overtaken);
    }
}
