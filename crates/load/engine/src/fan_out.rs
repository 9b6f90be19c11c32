//! Broadcasts over WebSockets: in each room one member publishes, and every other member should
//! receive each message. A room belongs to one worker, so that all its instants come from one
//! clock.

use crate::setup::Setup;
use conduit::Slot;
use sample::FanOutEvent;
use std::collections::VecDeque;
use units::{Nanos, NumberMap};

/// Time after the due instant when a message that a member has not received counts as lost. The
/// timeout of calls applies if it is shorter.
const REACH_MAX: Nanos = Nanos::from_secs(5);

/// Number of latest messages of a room for which each member has a bit, to find duplicates.
const REMEMBERED: u64 = 64;

/// Maximum number of missed older messages remembered per member.
const MISSED_MAX: usize = 1_024;

/// Maximum number of members opened in one turn of the worker.
const OPENS_MAX: u64 = 64;

/// A room and its members.
#[derive(Debug, Default)]
struct OpenRoom {
    /// Open members, the publisher first.
    open: Vec<Slot>,
    /// Number of messages published so far.
    sequence: u64,
}

/// A connection that belongs to a room.
#[derive(Clone, Debug)]
struct Member {
    room: usize,
    /// Number of the latest message received, from 1, and bits for the messages before it.
    latest: u64,
    seen: u64,
    /// Older messages that the member has not received, in ascending order.
    missed: VecDeque<u64>,
    /// Number of messages published before the member's connection was opened, and before its
    /// handshake was complete. Between the two, the server may already deliver.
    began: u64,
    joined: u64,
}

/// Position of a received message relative to the member's other messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReceptionOrder {
    InOrder,
    Overtaken,
    Again,
}

impl Member {
    /// Notes that message `number` of the room was received.
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

    /// Makes message `number` the latest: messages whose bits are shifted out unreceived are
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
    publisher: Slot,
    /// Number in its room, from 1.
    number: u64,
    expected: u64,
    received: u64,
    first: Nanos,
    last: Nanos,
}

/// Kind of a received message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reception {
    Event(FanOutEvent),
    /// The publisher's own copy.
    Own,
    /// Published while the member was joining: not expected from it, and no error.
    Joining,
    /// The message was not published, or its time limit has passed.
    Unknown,
}

/// A worker's rooms.
#[derive(Debug)]
pub(crate) struct FanOut {
    rooms: Vec<OpenRoom>,
    /// Numbers of these rooms among the rooms of all workers.
    numbers: Vec<u64>,
    members_each: u64,
    /// Number of members requested so far.
    asked: u64,
    members: NumberMap<Member>,
    published: NumberMap<Published>,
    /// Unsettled messages, by their deadlines.
    deadlines: VecDeque<(Nanos, u64)>,
    /// Settled messages, remembered until their deadline to find duplicates.
    settled: VecDeque<(Nanos, u64)>,
    next_room: usize,
    patience: Nanos,
}

impl FanOut {
    /// Creates the rooms of worker `worker`, or `None` if the plan has no rooms.
    pub(crate) fn new(setup: &Setup, worker: u32) -> Option<FanOut> {
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

    /// Takes the rooms whose members must be opened now: the place of each among the worker's
    /// rooms, and its number. Publishers come first.
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

    /// Returns the number of members that were not requested yet.
    fn unopened(&self) -> u64 {
        (self.rooms.len() as u64 * self.members_each).saturating_sub(self.asked)
    }

    /// Records that a connection for a member is being opened.
    pub(crate) fn begin(&mut self, slot: Slot, room: usize) {
        let began = self.rooms.get(room).map_or(0, |room| room.sequence);
        let (missed, joined) = (VecDeque::new(), u64::MAX);
        let member = Member { room, latest: 0, seen: 0, missed, began, joined };
        self.members.insert(u64::from(slot), member);
    }

    /// Notes that the handshake of a member is complete.
    pub(crate) fn open(&mut self, slot: Slot) {
        let Some(member) = self.members.get_mut(&u64::from(slot)) else { return };
        let room = &mut self.rooms[member.room];
        member.joined = room.sequence;
        member.latest = room.sequence;
        room.open.push(slot);
    }

    /// Notes that a connection ended, which may belong to a member.
    pub(crate) fn lose(&mut self, slot: Slot) {
        if let Some(member) = self.members.remove(&u64::from(slot)) {
            self.rooms[member.room].open.retain(|other| *other != slot);
        }
    }

    /// Returns the publisher of the room whose turn it is, or `None` if no publisher is open.
    pub(crate) fn next_publisher(&mut self) -> Option<Slot> {
        let count = self.rooms.len();
        let mut turns = (0..count).map(|step| (self.next_room + step) % count);
        let room = turns.find(|room| !self.rooms[*room].open.is_empty())?;
        self.next_room = (room + 1) % count;
        self.rooms[room].open.first().copied()
    }

    /// Notes that a message with this key was published on `slot`.
    pub(crate) fn publish(&mut self, slot: Slot, key: u64, due: Nanos) {
        let Some(member) = self.members.get(&u64::from(slot)) else { return };
        let room = &mut self.rooms[member.room];
        room.sequence += 1;
        let expected = (room.open.len() as u64).saturating_sub(1);
        let published = Published {
            due,
            room: member.room,
            publisher: slot,
            number: room.sequence,
            expected,
            received: 0,
            first: Nanos::ZERO,
            last: Nanos::ZERO,
        };
        self.published.insert(key, published);
        self.deadlines.push_back((due + self.patience, key));
    }

    /// Notes that a member received a message with this key.
    pub(crate) fn receive(&mut self, slot: Slot, key: Option<u64>, now: Nanos) -> Reception {
        let found = key.and_then(|key| self.published.get_mut(&key));
        let (Some(member), Some(published)) = (self.members.get_mut(&u64::from(slot)), found)
        else {
            return Reception::Unknown;
        };
        if published.room != member.room || published.number <= member.began {
            return Reception::Unknown;
        }
        if published.number <= member.joined {
            return Reception::Joining;
        }
        if published.publisher == slot {
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

    /// Returns the deadline of the oldest unsettled message, or `NEVER`.
    pub(crate) fn next_deadline(&self) -> Nanos {
        self.deadlines.front().map_or(Nanos::NEVER, |(at, _)| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room() -> FanOut {
        FanOut {
            rooms: vec![OpenRoom::default()],
            numbers: vec![0],
            members_each: 2,
            asked: 0,
            members: NumberMap::default(),
            published: NumberMap::default(),
            deadlines: VecDeque::new(),
            settled: VecDeque::new(),
            next_room: 0,
            patience: REACH_MAX,
        }
    }

    #[test]
    fn the_next_publisher_receives_messages_of_the_previous() {
        let mut fan_out = room();
        let (publisher, next, member) = (0, 1, 2);
        for slot in [publisher, next, member] {
            fan_out.begin(slot, 0);
            fan_out.open(slot);
        }
        fan_out.publish(publisher, 100, Nanos::ZERO);
        fan_out.lose(publisher);
        for slot in [next, member] {
            let reception = fan_out.receive(slot, Some(100), Nanos::ZERO);
            assert!(matches!(reception, Reception::Event(FanOutEvent::Delivered { .. })));
        }
        assert_eq!(fan_out.take_settled(Nanos::ZERO), settled(2));
        fan_out.publish(next, 200, Nanos::ZERO);
        assert_eq!(fan_out.receive(next, Some(200), Nanos::ZERO), Reception::Own);
    }

    #[test]
    fn members_may_receive_while_they_join_but_no_history() {
        let mut fan_out = room();
        let (publisher, member) = (0, 1);
        fan_out.begin(publisher, 0);
        fan_out.open(publisher);
        fan_out.publish(publisher, 100, Nanos::ZERO);
        fan_out.begin(member, 0);
        fan_out.publish(publisher, 200, Nanos::ZERO);
        fan_out.open(member);
        fan_out.publish(publisher, 300, Nanos::ZERO);
        let mut receive = |key| fan_out.receive(member, Some(key), Nanos::ZERO);
        assert_eq!([100, 200].map(&mut receive), [Reception::Unknown, Reception::Joining]);
        assert!(matches!(receive(300), Reception::Event(FanOutEvent::Delivered { .. })));
        assert_eq!(fan_out.take_settled(Nanos::ZERO), settled(0));
        assert_eq!(fan_out.take_settled(Nanos::ZERO), settled(0));
        assert_eq!(fan_out.take_settled(Nanos::ZERO), settled(1));
    }

    /// Returns the event of a message that this number of members expected and received.
    fn settled(count: u64) -> Option<FanOutEvent> {
        let (due, first, last) = (Nanos::ZERO, Nanos::ZERO, Nanos::ZERO);
        Some(FanOutEvent::Settled { due, expected: count, received: count, first, last })
    }

    #[test]
    fn a_copy_is_found_however_late_it_arrives() {
        let missed = VecDeque::new();
        let mut member = Member { room: 0, latest: 10, seen: 0, missed, began: 0, joined: 10 };
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
