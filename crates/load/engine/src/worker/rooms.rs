//! Members of rooms: opened without calls; and the messages that are published for them.

use super::Worker;
use crate::call::{Call, NO_USER};
use crate::fan_out::Reception;
use crate::speaker::websocket::SocketNews;
use conduit::{Io, Slot};
use units::Nanos;

impl Worker {
    /// Opens missing members, publishes waiting messages, and settles messages; returns when to do
    /// that again.
    #[cold]
    pub(super) fn update_rooms<I: Io>(&mut self, io: &mut I, now: Nanos) -> Nanos {
        self.open_members(io, now);
        while self.pool.has_queued()
            && let Some(slot) = self.fan_out.as_mut().and_then(|fan_out| fan_out.next_publisher())
            && let Some(mut call) = self.pool.dequeue_for(slot)
        {
            call.admitted = now;
            self.publish_on(slot, call, now);
        }
        let Some(fan_out) = &mut self.fan_out else { return Nanos::NEVER };
        while let Some(event) = fan_out.take_settled(now) {
            self.journal.fan_out(event);
        }
        let next = if fan_out.is_opening() { now } else { fan_out.next_deadline() };
        self.flush_dirty(io, now);
        next
    }

    fn open_members<I: Io>(&mut self, io: &mut I, now: Nanos) {
        let wanted = self.fan_out.as_mut().map(|fan_out| fan_out.take_unopened());
        let setup = self.setup.clone();
        let template = setup.targets.template(0);
        for (place, number) in wanted.unwrap_or_default() {
            self.journal.connection_attempted();
            match self.open(io, template.endpoint, (NO_USER, false), now) {
                Ok(slot) => {
                    let index = (u64::from(self.id) << 32) | u64::from(slot);
                    self.pool.assign_call(slot);
                    self.pool.conn_mut(slot).join(template, number, index);
                    if let Some(fan_out) = &mut self.fan_out {
                        fan_out.begin(slot, place);
                    }
                }
                Err(class) => self.record_unopened(NO_USER, class, now),
            }
        }
    }

    /// Publishes a due message in the room whose turn it is.
    pub(super) fn publish<I: Io>(&mut self, io: &mut I, call: Call, now: Nanos) {
        match self.fan_out.as_mut().and_then(|fan_out| fan_out.next_publisher()) {
            Some(slot) if self.pool.fits(slot, self.pool.conn(slot).endpoint()) => {
                self.publish_on(slot, call, now);
            }
            _ => {
                let endpoint = self.setup.targets.template(0).endpoint;
                if let Some(call) = self.pool.enqueue(call, endpoint) {
                    self.drop_call(io, &call, now);
                }
            }
        }
    }

    fn publish_on(&mut self, slot: Slot, call: Call, now: Nanos) {
        let due = call.intended;
        self.assign_outlined(slot, call, now);
        if let Some(key) = self.pool.conn_mut(slot).sent_key()
            && let Some(fan_out) = &mut self.fan_out
        {
            fan_out.publish(slot, key, due);
        }
    }

    /// Processes messages received by a member of a room.
    pub(super) fn process_room_messages(&mut self, slot: Slot, news: &mut SocketNews, now: Nanos) {
        let Some(fan_out) = &mut self.fan_out else { return };
        if news.counts.opened > 0 {
            fan_out.open(slot);
        }
        if let Some(key) = news.delivery.take() {
            match fan_out.receive(slot, key, now) {
                Reception::Event(event) => self.journal.fan_out(event),
                Reception::Own | Reception::Joining => {}
                Reception::Unknown => news.counts.unmatched += 1,
            }
        }
    }
}
