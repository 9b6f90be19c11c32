//! Assigns a call to a connection: an idle one or a new one; or puts it into the queue.

use super::Worker;
use crate::call::{Call, End, NO_USER};
use crate::feedback::DroppedPart;
use crate::pool::Opener;

use crate::render::{build_template, raw_template};
use crate::setup::{Endpoint, paced};
use crate::speaker::Request;
use conduit::{Close, Io, Slot};
use sample::{ConnectionRecord, FailureClass};
use units::Nanos;
use workload::{SocketAction, Template};

impl Worker {
    /// Finds a connection for a due call, or queues it, or drops it.
    #[inline(always)]
    pub(super) fn place<I: Io>(&mut self, io: &mut I, call: Call, now: Nanos) {
        let endpoint = self.template_of(&call).endpoint;
        self.place_at(io, call, endpoint, now);
    }

    /// Places a call to a known endpoint.
    #[inline(always)]
    pub(super) fn place_at<I: Io>(&mut self, io: &mut I, call: Call, endpoint: u32, now: Nanos) {
        if self.maker.is_some() {
            return self.place_prepared(io, call, endpoint, now);
        }
        match self.usable(io, &call, endpoint, now) {
            Some(slot) => self.assign(slot, call, now),
            None => self.place_elsewhere(io, call, endpoint, now),
        }
    }

    /// Places a call with its own request.
    #[inline(never)]
    fn place_prepared<I: Io>(&mut self, io: &mut I, mut call: Call, endpoint: u32, now: Nanos) {
        if !self.make_request(&mut call, now) {
            return self.conclude(io, call, End::failed(FailureClass::WorkloadEnd), now);
        }
        match self.usable(io, &call, endpoint, now) {
            Some(slot) => self.assign_outlined(slot, call, now),
            None => self.place_elsewhere(io, call, endpoint, now),
        }
    }

    /// Opens a connection for a call, assigns it to one with calls in flight, queues it, or drops
    /// it.
    #[inline(never)]
    fn place_elsewhere<I: Io>(&mut self, io: &mut I, call: Call, endpoint: u32, now: Nanos) {
        if self.pool.has_room() || self.evict(io, endpoint, now) {
            return self.place_on_new(io, call, endpoint, now);
        }
        if let Some(slot) = self.pool.next_in_turn(endpoint) {
            return self.assign_outlined(slot, call, now);
        }
        if let Some(call) = self.pool.enqueue(call, endpoint) {
            self.drop_call(io, &call, now);
        }
    }

    /// Assigns a call to the user's WebSocket, or opens one.
    #[inline(never)]
    pub(super) fn place_on_socket<I: Io>(
        &mut self,
        io: &mut I,
        mut call: Call,
        endpoint: u32,
        now: Nanos,
    ) {
        let on = self.template_of(&call).socket.as_ref();
        let (action, number) = (on.map(|call| &call.action), on.map_or(0, |call| call.socket));
        let opens = matches!(action, Some(SocketAction::Connect));
        let ends = opens || matches!(action, Some(SocketAction::Close { .. }));
        let slot = self.feedback.socket_of(call.user, number);
        if opens {
            if let Some(slot) = slot {
                self.close(io, slot, self.close_kind(), now);
            }
            if self.pool.has_room() || self.evict(io, endpoint, now) {
                return self.place_on_new(io, call, endpoint, now);
            }
            return self.drop_call(io, &call, now);
        }
        if let Some(slot) = slot {
            self.end_listening(io, slot, now);
        }
        let Some(slot) = slot.filter(|slot| self.pool.fits(*slot, endpoint)) else {
            self.journal.issue(&mut call, now);
            return self.conclude(io, call, End::failed(FailureClass::SocketClosed), now);
        };
        self.assign_outlined(slot, call, now);
        self.pool.arm(slot);
        if !ends {
            self.sent_alone.push(slot);
        }
    }

    /// Ends the calls that listen on a WebSocket, in favor of another call on it.
    fn end_listening<I: Io>(&mut self, io: &mut I, slot: Slot, now: Nanos) {
        while let Some(row) = self.pool.conn(slot).listening_row() {
            let Some((call, _)) = self.pool.conn_mut(slot).withdraw(row, now) else { return };
            self.conclude(io, call, End::timed_out(FailureClass::ClientTimeout), now);
        }
    }

    /// Makes a request for a single call. Returns false if that is not possible.
    #[inline(never)]
    fn make_request(&mut self, call: &mut Call, now: Nanos) -> bool {
        let Some(maker) = &mut self.maker else { return true };
        let Some(made) = maker.make(call.index, now) else { return false };
        let setup = &*self.setup;
        let template = setup.targets.template(call.target);
        let endpoint = template.endpoint;
        let absolute = setup.endpoints[endpoint as usize].absolute;
        let (url, method) = (template.url(), &template.method);
        let body = Some(&made.body[..]);
        let built =
            build_template(&setup.plan, url, method, &made.headers, body, endpoint, absolute);
        call.request = built.ok().map(|template| Box::new(paced(&setup.plan, template)));
        call.request.is_some()
    }

    fn template_of<'a>(&'a self, call: &'a Call) -> &'a Template {
        match &call.request {
            Some(template) => template,
            None => self.setup.targets.template(call.target),
        }
    }

    /// Finds an open connection that can take the call.
    #[inline(always)]
    fn usable<I: Io>(
        &mut self,
        io: &mut I,
        call: &Call,
        endpoint: u32,
        now: Nanos,
    ) -> Option<Slot> {
        if let Some(slot) = self.feedback.connection_of(call.user) {
            if self.pool.fits(slot, endpoint) {
                return Some(slot);
            }
            if self.pool.holds_back(slot, endpoint, call.user) {
                return Some(slot);
            }
            if self.feedback.has_simultaneous_calls() {
                // such users keep their connections to all servers
                let more = self.feedback.further_connections_of(call.user);
                return self.pool.fitting([slot].iter().chain(more), endpoint);
            }
            let conn = self.pool.conn(slot);
            if self.pool.has_several_per_user()
                && conn.endpoint() == endpoint
                && !conn.has_reached_limit(self.pool.calls_max())
            {
                let more = self.feedback.further_connections_of(call.user);
                return self.pool.another(Some(slot), more, endpoint);
            }
            self.part(io, call.user, slot, endpoint, now);
        }
        let id = self.setup.crowd.as_ref().and_then(|_| self.feedback.user_id(call.user));
        self.pool.listed_for(endpoint, id)
    }

    /// Detaches a user from a connection that does not serve the next call: it is full, or leads
    /// elsewhere.
    fn part<I: Io>(&mut self, io: &mut I, user: u32, slot: Slot, endpoint: u32, now: Nanos) {
        let conn = self.pool.conn(slot);
        let used_up = conn.has_reached_limit(self.pool.calls_max());
        if conn.endpoint() == endpoint && !conn.is_idle() && !used_up {
            return;
        }
        let spent = conn.is_idle() && used_up;
        self.pool.conn_mut(slot).release();
        self.feedback.part_from_connection(user);
        if spent {
            self.close(io, slot, self.close_kind(), now);
        } else {
            self.pool.list(slot);
        }
    }

    /// Closes an idle connection to another endpoint to make room. Returns false without one.
    fn evict<I: Io>(&mut self, io: &mut I, endpoint: u32, now: Nanos) -> bool {
        let Some(slot) = self.pool.idle_elsewhere(endpoint) else { return false };
        self.close(io, slot, self.close_kind(), now);
        true
    }

    fn place_on_new<I: Io>(&mut self, io: &mut I, mut call: Call, endpoint: u32, now: Nanos) {
        // the connect is work on this call: its lag ends before it
        self.journal.issue(&mut call, now);
        loop {
            self.journal.connection_attempted();
            let address = self.pool.address(endpoint);
            match self.open(io, endpoint, (call.user, call.late), now) {
                Ok(slot) => {
                    if let Some(socket) = self.template_of(&call).socket.as_ref() {
                        self.feedback.give_socket(call.user, socket.socket, slot);
                    }
                    self.assign_outlined(slot, call, now);
                    return self.share(slot);
                }
                Err(_) if self.pool.give_up_address(endpoint, address) => {}
                Err(class) => {
                    self.record_unopened(call.user, class, now);
                    self.feedback.end_with_connection(call.user);
                    return self.conclude(io, call, End::failed(class), now);
                }
            }
        }
    }

    /// Offers the connection to the next call at once if its protocol has streams: that call need
    /// not wait until this one is answered.
    fn share(&mut self, slot: Slot) {
        if self.pool.conn(slot).is_multiplexed() {
            self.pool.list(slot);
        }
    }

    pub(super) fn record_unopened(&mut self, user: u32, class: FailureClass, now: Nanos) {
        if self.journal.logs_ends() {
            let user = self.feedback.user_id(user);
            let class = Some(class);
            let (opened, closed) = (now, now);
            let record = ConnectionRecord { user, opened, closed, class, ..Default::default() };
            self.journal.log_connection(record);
        }
    }

    /// Starts a connection for `user`; the first write follows with the next flush.
    pub(super) fn open<I: Io>(
        &mut self,
        io: &mut I,
        endpoint: u32,
        (user, late): (u32, bool),
        now: Nanos,
    ) -> Result<Slot, FailureClass> {
        let chosen = self.feedback.scripted_peer();
        let id = self.feedback.user_id(user);
        let opener = Opener { user, id, late };
        let slot = self.pool.open(io, endpoint, opener, chosen.as_ref(), now)?;
        self.journal.count_connection_start();
        let end = self.pool.endpoint(endpoint);
        if !end.is_direct()
            && let Err(class) = self.start_indirect(slot, &end.clone())
        {
            self.close(io, slot, Close::Reset, now);
            return Err(class);
        }
        // a WebSocket of a step is given to its user with its number
        if !self.pool.is_socket(endpoint) {
            self.feedback.give_connection(user, slot, self.pool.has_several_per_user());
        }
        Ok(slot)
    }

    /// Sends the bytes before the first request: CONNECT to a proxy, or TLS's first flight.
    fn start_indirect(&mut self, slot: Slot, end: &Endpoint) -> Result<(), FailureClass> {
        match (&end.tunnel, &end.tls_name) {
            (Some(request), _) => self.pool.conn_mut(slot).send_connect(request),
            (None, Some(name)) => self.start_tls(slot, name)?,
            (None, None) => {}
        }
        Ok(())
    }

    /// Adds a TLS session to the connection and sends its first flight.
    pub(super) fn start_tls(&mut self, slot: Slot, name: &str) -> Result<(), FailureClass> {
        let endpoint = self.pool.conn(slot).endpoint();
        let streams = self.setup.plan.request.version.has_streams();
        // a WebSocket with TLS of its own begins with an upgrade of HTTP/1.1
        let alpn = match (self.pool.is_grpc(endpoint), self.pool.is_socket(endpoint)) {
            (true, _) => Some(http2::ALPN),
            (false, true) if streams => Some("http/1.1"),
            _ => None,
        };
        if let Some(alpn) = alpn {
            let session = self.pool.tls_session_for(name, &[alpn])?;
            self.pool.conn_mut(slot).start_tls(session);
            return Ok(());
        }
        let user = match self.setup.plan.tls.user_sessions {
            true => self.feedback.user_id(self.pool.conn(slot).user()),
            false => None,
        };
        let session = self.pool.tls_session(name, user)?;
        self.pool.conn_mut(slot).start_tls(session);
        Ok(())
    }

    /// Assigns a call to a connection that can take it.
    #[inline(always)]
    pub(super) fn assign(&mut self, slot: Slot, mut call: Call, now: Nanos) {
        self.journal.issue(&mut call, now);
        call.tries += 1;
        if !self.ready_made {
            return self.assign_made(slot, call, now);
        }
        let template = match &call.request {
            Some(template) => template,
            None => self.setup.targets.template(call.target),
        };
        let calls_max = self.pool.calls_max();
        let employed = self.pool.assign_call(slot);
        let last = employed.assigned >= calls_max;
        let written = employed.work.send_request(&Request {
            template,
            last,
            cookie: None,
            index: call.index,
        });
        let put = employed.put(call, written, now);
        self.pool.arm_for(slot, put);
    }

    /// Calls [`Worker::assign`] from rare paths, so that its code is not inlined into each of them.
    #[inline(never)]
    pub(super) fn assign_outlined(&mut self, slot: Slot, call: Call, now: Nanos) {
        self.assign(slot, call, now);
    }

    /// Assigns a request that differs from its template.
    #[inline(never)]
    fn assign_made(&mut self, slot: Slot, mut call: Call, now: Nanos) {
        let by_script = self.feedback.is_scripted();
        if by_script && self.proves && call.request.is_none() {
            self.resend_scripted(&mut call);
        }
        let calls_max = self.pool.calls_max();
        let employed = self.pool.assign_call(slot);
        let written = if by_script && !self.proves {
            let feedback = &mut self.feedback;
            let (asked, written) =
                employed.work.submit_rendered(|out| feedback.scripted_request(out));
            (call.asked, call.responses_due) = asked;
            written
        } else {
            let proved = match self.proves {
                true => super::login::proved(&self.setup, &mut self.feedback, &call, now),
                false => None,
            };
            let template = match (&proved, &call.request) {
                (Some(template), _) => template,
                (None, Some(template)) => template,
                (None, None) => self.setup.targets.template(call.target),
            };
            let cookies = self.setup.plan.request.cookies;
            let cookie = if cookies { self.feedback.cookie(call.user, template) } else { None };
            let last = employed.assigned >= calls_max;
            employed.work.send_request(&Request {
                template,
                last,
                cookie: cookie.as_deref(),
                index: call.index,
            })
        };
        let (index, intended, limited) = (call.index, call.intended, call.time_limit().is_some());
        let put = employed.put(call, written, now);
        match limited {
            true => self.pool.arm(slot),
            false => self.pool.arm_for(slot, put),
        }
        if let Some(timed) = &mut self.timed
            && let Some(pacer) = &mut timed.pacer
        {
            pacer.begin(slot, self.pool.conn(slot).generation(), index, intended);
        }
        if self.unanswered {
            self.sent_alone.push(slot);
        }
    }

    /// Sends a request of the script that needs a proof: it is resent unchanged with the answer to
    /// a challenge.
    #[cold]
    fn resend_scripted(&mut self, call: &mut Call) {
        let mut bytes = Vec::new();
        (call.asked, call.responses_due) = self.feedback.scripted_request(&mut bytes);
        let place = self.setup.targets.template(call.target);
        let method = bytes.split(|byte| *byte == b' ').next().unwrap_or_default();
        let method = String::from_utf8_lossy(method).into_owned();
        call.request = Some(Box::new(raw_template(place.url(), &method, &bytes, place.endpoint)));
    }

    pub(super) fn drop_call<I: Io>(&mut self, io: &mut I, call: &Call, now: Nanos) {
        self.journal.drop_call(call.intended);
        match self.feedback.drop_call(call.user) {
            DroppedPart::Nothing => {}
            DroppedPart::All => self.journal.session_dropped(call.intended),
            DroppedPart::Rest => self.retire_if_idle(io, call.user, now),
        }
    }

    /// Assigns stranded calls to other connections. A call moved too often fails, and a call
    /// without time left times out.
    #[inline]
    pub(super) fn replace_stranded<I: Io>(&mut self, io: &mut I, now: Nanos) {
        if self.pool.has_stranded() {
            self.replace_all_stranded(io, now);
        }
    }

    fn replace_all_stranded<I: Io>(&mut self, io: &mut I, now: Nanos) {
        for mut call in self.pool.take_stranded() {
            if call.deadline(&self.setup.plan.timeouts) <= now {
                self.feedback.fail_session(call.user);
                self.conclude(io, call, End::timed_out(FailureClass::ClientTimeout), now);
                continue;
            }
            // an open request cannot be repeated once a part of its body may be sent
            let begun = call.open_lane().is_some() && !call.sent.is_zero();
            call.first_byte = Nanos::ZERO;
            call.sent = Nanos::ZERO;
            let over = begun || self.feedback.has_failed(call.user);
            if over || call.tries >= self.setup.plan.connection.tries {
                self.conclude(io, call, End::failed(FailureClass::ClosedEarly), now);
            } else {
                self.place_again(io, call, now);
            }
        }
    }

    /// Like `place`, for a call that is already in flight: it is never queued or dropped.
    pub(super) fn place_again<I: Io>(&mut self, io: &mut I, call: Call, now: Nanos) {
        let endpoint = self.template_of(&call).endpoint;
        if self.pool.is_socket(endpoint) {
            // messages of a closed WebSocket are not sent on another one
            return self.conclude(io, call, End::failed(FailureClass::ClosedEarly), now);
        }
        let found = self.usable(io, &call, endpoint, now);
        // a server that has answered has completed the handshake
        match found.filter(|slot| !call.late || self.pool.conn(*slot).has_served()) {
            Some(slot) => {
                let is_open = call.open_lane().is_some();
                self.assign_outlined(slot, call, now);
                let conn = self.pool.conn_mut(slot);
                if is_open && conn.is_open() {
                    conn.send_kept();
                }
            }
            None => self.place_on_new(io, call, endpoint, now),
        }
    }

    /// Gives a queued call to a connection with room, or offers the connection to the next call.
    #[inline]
    pub(super) fn offer(&mut self, slot: Slot, now: Nanos) {
        let conn = self.pool.conn(slot);
        // a message for a room is published by only one member
        if conn.user() == NO_USER && conn.is_open() && self.fan_out.is_none() {
            self.offer_to_all(slot, now);
        }
    }

    fn offer_to_all(&mut self, slot: Slot, now: Nanos) {
        while let Some(mut call) = self.pool.dequeue_for(slot) {
            call.admitted = now;
            if self.setup.has_streams() {
                self.journal.waited_for_stream(call.index, now - call.intended);
            }
            self.assign_outlined(slot, call, now);
        }
        self.pool.list(slot);
        self.pool.rest(slot);
    }
}
