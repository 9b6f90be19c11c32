//! Putting a call on a connection: an idle one, a new one, or the queue; and writing it out.

use crate::call::{Call, End, NOBODY};
use crate::connection::{Conn, ConnState};
use crate::setup::open_options;
use crate::worker::Worker;
use conduit::{Close, Io, IoError, Slot};
use plan::AddressOrder;
use sample::{ConnectionRecord, FailureClass};
use units::Nanos;
use workload::Template;

impl Worker {
    /// Finds a connection for a due call, or queues it, or drops it.
    #[inline(always)]
    pub(crate) fn place<I: Io>(&mut self, io: &mut I, call: Call, now: Nanos) {
        let endpoint = self.endpoint_of(&call);
        if let Some(slot) = self.usable(io, &call, endpoint, now) {
            return self.assign(slot, call, now);
        }
        if self.open_count < self.limits.connections || self.evict(io, endpoint, now) {
            return self.place_on_new(io, call, endpoint, now);
        }
        if self.queued >= self.limits.queue {
            return self.drop_call(io, call, now);
        }
        self.queued += 1;
        self.queues[endpoint as usize].push_back(call);
    }

    fn endpoint_of(&self, call: &Call) -> u32 {
        match &call.detour {
            Some(template) => template.endpoint,
            None => self.setup.targets.template(call.target).endpoint,
        }
    }

    /// An open connection that can take the call.
    #[inline(always)]
    fn usable<I: Io>(
        &mut self,
        io: &mut I,
        call: &Call,
        endpoint: u32,
        now: Nanos,
    ) -> Option<Slot> {
        let slot = self.people.user(call.user).and_then(|person| person.conn);
        if let Some(slot) = slot {
            let conn = &self.conns[slot as usize];
            if conn.endpoint == endpoint && conn.takes(self.limits.depth, self.limits.calls) {
                return Some(slot);
            }
            if self.limits.per_user > 1
                && conn.endpoint == endpoint
                && conn.assigned < self.limits.calls
            {
                return self.another(call.user, endpoint);
            }
            self.part(io, call.user, slot, endpoint, now);
        }
        self.listed(endpoint)
    }

    /// Of a user who may have several connections, and whose first is full: another one, or that
    /// one after all when there are no more to be had. `None` when one more is to be opened.
    fn another(&mut self, user: u32, endpoint: u32) -> Option<Slot> {
        let person = self.people.user(user)?;
        let fits = |slot: &&Slot| {
            let conn = &self.conns[**slot as usize];
            conn.endpoint == endpoint && conn.takes(self.limits.depth, self.limits.calls)
        };
        let (first, more) = (person.conn, &person.more);
        let full = more.len() as u64 + 1 >= u64::from(self.limits.per_user);
        more.iter().find(fits).copied().or(first.filter(|_| full))
    }

    /// A user leaves a connection that does not serve the next call: it is full, or goes elsewhere.
    fn part<I: Io>(&mut self, io: &mut I, user: u32, slot: Slot, endpoint: u32, now: Nanos) {
        let conn = &mut self.conns[slot as usize];
        if conn.endpoint == endpoint && !conn.calls.is_empty() && conn.assigned < self.limits.calls
        {
            return;
        }
        conn.user = NOBODY;
        let spent = conn.calls.is_empty() && conn.assigned >= self.limits.calls;
        if let Some(person) = self.people.user(user) {
            person.conn = None;
        }
        if spent {
            self.close(io, slot, self.close_kind(), now);
        } else {
            self.list(slot);
        }
    }

    /// The latest used connection to `endpoint` that can take a call and belongs to nobody.
    pub(crate) fn listed(&mut self, endpoint: u32) -> Option<Slot> {
        let list = &mut self.ready[endpoint as usize];
        while let Some(&(slot, generation)) = list.last() {
            let conn = &mut self.conns[slot as usize];
            let fits = conn.takes(self.limits.depth, self.limits.calls) && conn.user == NOBODY;
            if conn.generation == generation && fits {
                return Some(slot);
            }
            if conn.generation == generation {
                conn.listed = false;
            }
            list.pop();
        }
        None
    }

    /// Offers a connection to whoever comes next.
    pub(crate) fn list(&mut self, slot: Slot) {
        let conn = &mut self.conns[slot as usize];
        if !conn.listed && conn.user == NOBODY && conn.takes(self.limits.depth, self.limits.calls) {
            conn.listed = true;
            self.ready[conn.endpoint as usize].push((slot, conn.generation));
        }
    }

    /// Closes an idle connection to another endpoint to make room. False when there is none.
    fn evict<I: Io>(&mut self, io: &mut I, endpoint: u32, now: Nanos) -> bool {
        for other in 0..self.ready.len() as u32 {
            if other != endpoint
                && let Some(slot) = self.listed(other)
                && self.conns[slot as usize].calls.is_empty()
            {
                self.close(io, slot, self.close_kind(), now);
                return true;
            }
        }
        false
    }

    fn place_on_new<I: Io>(&mut self, io: &mut I, mut call: Call, endpoint: u32, now: Nanos) {
        // connecting is work on this call: its lag ends before it
        self.stamp_issue(&mut call, now);
        loop {
            self.recorder.now.connections.attempted += 1;
            let address = self.address[endpoint as usize].0;
            match self.open(io, endpoint, call.user, now) {
                Ok(slot) => return self.assign(slot, call, now),
                Err(_) if self.give_up_address(endpoint, address) => {}
                Err(class) => {
                    self.record_unopened(call.user, class, now);
                    return self.conclude(io, call, End::failed(class), now);
                }
            }
        }
    }

    fn record_unopened(&mut self, user: u32, class: FailureClass, now: Nanos) {
        if self.setup.logging.ends {
            let user = self.people.user(user).map(|person| person.id);
            let class = Some(class);
            let (opened, closed) = (now, now);
            let record = ConnectionRecord { user, opened, closed, class, ..Default::default() };
            self.ends.connections.push(record);
        }
    }

    /// The connection was refused: is its endpoint to be tried at another address?
    pub(crate) fn next_address(&mut self, slot: Slot) -> bool {
        let conn = &self.conns[slot as usize];
        let (endpoint, address) = (conn.endpoint, conn.address);
        self.give_up_address(endpoint, address)
    }

    /// Where addresses are tried in order and none has taken a connection yet: goes on to the next
    /// one. False when there is none.
    fn give_up_address(&mut self, endpoint: u32, address: usize) -> bool {
        if self.setup.plan.connection.addresses != AddressOrder::FirstThatAnswers {
            return false;
        }
        let known = self.endpoints[endpoint as usize].peers.len();
        let (now, reached) = &mut self.address[endpoint as usize];
        if *reached || (*now == address && address + 1 >= known) {
            return false;
        }
        *now = (*now).max(address + 1);
        true
    }

    fn stamp_issue(&mut self, call: &mut Call, now: Nanos) {
        if !call.is_issued() {
            if call.admitted.is_zero() {
                call.admitted = call.intended;
            }
            call.issued = now.max(call.intended);
            self.recorder.issued(call.intended, call.issued);
        }
    }

    /// Starts a connection for `user`; the first write follows with the next flush.
    fn open<I: Io>(
        &mut self,
        io: &mut I,
        endpoint: u32,
        user: u32,
        now: Nanos,
    ) -> Result<Slot, FailureClass> {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.conns.push(Conn::new(self.setup.keeps_heads() || self.wants_heads()));
            self.conns.len() as Slot - 1
        });
        let setup = self.setup.clone();
        let end = self.endpoints[endpoint as usize].clone();
        let turn = self.opened_count * u64::from(setup.workers) + u64::from(self.id);
        self.opened_count += 1;
        self.opens_this_turn += 1;
        let chosen = self.script.as_mut().and_then(|script| script.peer());
        let address = match setup.plan.connection.addresses {
            AddressOrder::InTurn => (turn % end.peers.len() as u64) as usize,
            AddressOrder::FirstThatAnswers => self.address[endpoint as usize].0,
        };
        let peer = chosen.as_ref().unwrap_or(&end.peers[address]);
        let options = open_options(&setup.plan, turn);
        if let Err(error) = io.open(slot, peer, &options) {
            self.free.push(slot);
            return Err(class_of(error));
        }
        let conn = &mut self.conns[slot as usize];
        conn.renew(endpoint, user, now);
        conn.address = address;
        conn.calls.reserve_exact(self.limits.depth as usize);
        conn.connected = io.now();
        conn.direct = end.tunnel.is_none() && end.tls_name.is_none();
        self.open_count += 1;
        self.connections_peak = self.connections_peak.max(self.open_count);
        if let Some(request) = &end.tunnel {
            self.conns[slot as usize].out.extend_from_slice(request);
        } else if let Some(name) = &end.tls_name
            && let Err(class) = self.begin_tls(slot, name)
        {
            self.close(io, slot, Close::Reset, now);
            return Err(class);
        }
        if let Some(person) = self.people.user(user) {
            person.connections += 1;
            match person.conn {
                Some(_) if self.limits.per_user > 1 => person.more.push(slot),
                _ => person.conn = Some(slot),
            }
        }
        Ok(slot)
    }

    /// Puts a TLS session on the connection and its first flight into the buffer.
    pub(crate) fn begin_tls(&mut self, slot: Slot, name: &str) -> Result<(), FailureClass> {
        let Some(factory) = &mut self.tls else { return Err(FailureClass::Tls) };
        let mut session = factory.0.session(name).map_err(|error| error.class)?;
        let conn = &mut self.conns[slot as usize];
        session.drain(&mut conn.out);
        conn.tls = Some(session);
        Ok(())
    }

    /// Puts a call on a connection that can take it.
    #[inline(always)]
    pub(crate) fn assign(&mut self, slot: Slot, mut call: Call, now: Nanos) {
        self.stamp_issue(&mut call, now);
        call.tries += 1;
        let conn = &mut self.conns[slot as usize];
        conn.assigned += 1;
        let last = conn.assigned >= self.limits.calls;
        let setup = &self.setup;
        let template = match &call.detour {
            Some(template) => template,
            None => setup.targets.template(call.target),
        };
        let cookie = if setup.plan.request.cookies {
            let person = self.people.users.get(call.user as usize);
            person.and_then(|person| match &person.cookie {
                Some(last) => Some(last.to_string()),
                None => person.jar.as_ref()?.header(&template.url),
            })
        } else {
            None
        };
        let open = conn.state == ConnState::Open;
        let out = if conn.direct { &mut conn.out } else { &mut conn.held };
        let before = out.len();
        match &mut self.script {
            None => write_request(out, template, last, cookie.as_deref()),
            Some(script) => (call.asked, call.answers_due) = script.request(out),
        }
        call.bytes_sent += (out.len() - before) as u64;
        if conn.calls.is_empty() {
            if open {
                conn.reader.start(call.asked);
            }
            conn.busy_since = now;
            conn.progress = now;
        }
        if open {
            call.sent = now;
        }
        conn.unflushed += 1;
        conn.calls.push_back(call);
        if !conn.dirty {
            conn.dirty = true;
            self.dirty.push(slot);
        }
        self.arm(slot);
    }

    fn drop_call<I: Io>(&mut self, io: &mut I, call: Call, now: Nanos) {
        self.recorder.dropped(call.intended, FailureClass::ConnectionLimit);
        let Some(person) = self.people.user(call.user) else { return };
        person.outstanding -= 1;
        person.left = 0;
        let first = person.turns == 1;
        person.failed = true;
        if first && person.outstanding == 0 {
            self.recorder.now.sessions.dropped += 1;
            self.people.retire(call.user);
        } else {
            self.retire_if_idle(io, call.user, now);
        }
    }

    /// Writes out what waits on the connections touched since the last flush.
    #[inline]
    pub(crate) fn flush_dirty<I: Io>(&mut self, io: &mut I, now: Nanos) {
        while let Some(slot) = self.dirty.pop() {
            let conn = &mut self.conns[slot as usize];
            if conn.dirty {
                conn.dirty = false;
                self.flush(io, slot, now);
            }
        }
    }

    /// Writes out one connection's bytes, as far as the transport takes them.
    #[inline]
    pub(crate) fn flush<I: Io>(&mut self, io: &mut I, slot: Slot, now: Nanos) {
        let conn = &mut self.conns[slot as usize];
        if conn.state == ConnState::Open
            && !conn.held.is_empty()
            && let Some(tls) = &mut conn.tls
        {
            tls.send(&conn.held);
            conn.held.clear();
            tls.drain(&mut conn.out);
        }
        if conn.out_at == conn.out.len() {
            return;
        }
        let resumed = (conn.out_at > 0).then_some(now);
        match io.write(slot, &conn.out[conn.out_at..]) {
            Ok(count) => {
                conn.out_at += count;
                match conn.state {
                    ConnState::Open => conn.unflushed = 0,
                    ConnState::Connecting => self.connected(slot, now),
                    _ => {}
                }
                self.flush_rest(io, slot, resumed);
            }
            Err(IoError::WouldBlock) => {}
            Err(error) => self.break_off(io, slot, class_of(error), now),
        }
    }

    /// The rest of a flush whose first write was taken. `resumed`: the instant, when bytes had been
    /// left over by the flush before.
    #[inline]
    fn flush_rest<I: Io>(&mut self, io: &mut I, slot: Slot, resumed: Option<Nanos>) {
        let conn = &mut self.conns[slot as usize];
        while conn.out_at < conn.out.len() {
            match io.write(slot, &conn.out[conn.out_at..]) {
                Ok(count) => conn.out_at += count,
                // an error shows again, with its reason, when the connection is read
                Err(_) => return,
            }
        }
        if let Some(at) = resumed
            && let Some(call) = conn.calls.back_mut()
        {
            call.written = at;
        }
        conn.out.clear();
        conn.out_at = 0;
    }

    /// The transport stands: the first bytes were taken.
    fn connected(&mut self, slot: Slot, now: Nanos) {
        let conn = &mut self.conns[slot as usize];
        // taken with the first flush: `connect` had done it all; later: it is done now
        let at = if now > conn.connected { now } else { conn.connected };
        conn.connected = at;
        conn.progress = at;
        let end = &self.endpoints[conn.endpoint as usize];
        if end.tunnel.is_some() {
            conn.state = ConnState::Tunnel;
            conn.reader.start(wire::answer::Asked::Connect);
        } else if conn.tls.is_some() {
            conn.state = ConnState::Handshake;
        } else {
            self.opened(slot, None, at);
        }
    }

    /// Requests can go out: the connection and all before it is made.
    pub(crate) fn opened(&mut self, slot: Slot, tls: Option<Nanos>, now: Nanos) {
        let conn = &mut self.conns[slot as usize];
        conn.state = ConnState::Open;
        conn.unflushed = if tls.is_some() { conn.unflushed } else { 0 };
        let connect = conn.connected - conn.opened;
        self.address[conn.endpoint as usize].1 = true;
        conn.setup = Some((connect, tls));
        conn.established = now;
        self.recorder.connection_opened(connect, tls);
        for call in &mut conn.calls {
            call.sent = now;
        }
        if let Some(call) = conn.calls.front() {
            conn.reader.start(call.asked);
        }
        // what is waited for now may have less time than the connect had
        self.arm(slot);
    }

    /// Takes the calls off a connection that cannot answer them any more.
    pub(crate) fn strand(&mut self, slot: Slot) {
        let conn = &mut self.conns[slot as usize];
        self.stranded.extend(conn.calls.drain(..));
    }

    /// Puts stranded calls on other connections; what was put too often has failed.
    pub(crate) fn replace_stranded<I: Io>(&mut self, io: &mut I, now: Nanos) {
        if self.stranded.is_empty() {
            return;
        }
        for mut call in std::mem::take(&mut self.stranded) {
            call.first_byte = Nanos::ZERO;
            call.sent = Nanos::ZERO;
            let over = self.people.user(call.user).is_some_and(|person| person.failed);
            if over || call.tries >= self.setup.plan.connection.tries {
                self.conclude(io, call, End::failed(FailureClass::ClosedEarly), now);
            } else {
                self.place_again(io, call, now);
            }
        }
    }

    /// As `place`, for a call that is in flight already: it is never queued or dropped.
    fn place_again<I: Io>(&mut self, io: &mut I, call: Call, now: Nanos) {
        let endpoint = self.endpoint_of(&call);
        match self.usable(io, &call, endpoint, now) {
            Some(slot) => self.assign(slot, call, now),
            None => self.place_on_new(io, call, endpoint, now),
        }
    }

    /// A redirect's request takes the call's place.
    pub(crate) fn detour<I: Io>(
        &mut self,
        io: &mut I,
        mut call: Call,
        template: Template,
        now: Nanos,
    ) {
        call.redirects += 1;
        call.tries = 0;
        call.asked = template.asked;
        call.first_byte = Nanos::ZERO;
        call.detour = Some(Box::new(template));
        self.place_again(io, call, now);
    }
}

/// Copies a request into the buffer, with the user's cookies where there are any.
#[inline]
fn write_request(out: &mut Vec<u8>, template: &Template, last: bool, cookie: Option<&str>) {
    let (bytes, at) = if last {
        (&template.last, template.cookie_at_last)
    } else {
        (&template.bytes, template.cookie_at)
    };
    let Some(cookie) = cookie else { return out.extend_from_slice(bytes) };
    let (head, rest) = bytes.split_at(at);
    out.extend_from_slice(head);
    out.extend_from_slice(b"Cookie: ");
    out.extend_from_slice(cookie.as_bytes());
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(rest);
}

pub(crate) fn class_of(error: IoError) -> FailureClass {
    match error {
        IoError::Failed(class) => class,
        // `open` and `read` of an ended connection never say this
        IoError::WouldBlock => FailureClass::OtherIo,
    }
}
