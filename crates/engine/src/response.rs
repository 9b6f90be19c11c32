//! Bytes coming in: from readiness to answers, and from answers to outcomes.

use crate::call::{Call, End};
use crate::connection::ConnState;
use crate::placement::class_of;
use crate::render::build_template;
use crate::script::keep_body;
use crate::setup::{endpoint_key, redirect_method};
use crate::worker::Worker;
use conduit::{Close, Io, IoError, Ready, Slot};
use sample::FailureClass;
use units::Nanos;
use wire::answer::{AnswerError, AnswerFacts};
use wire::fields;
use wire::timing::{Malformed, Timing};
use workload::Template;

impl Worker {
    /// Does what readiness allows; gives back the instant of the last clock reading.
    #[inline]
    pub(crate) fn progress<I: Io>(&mut self, io: &mut I, ready: Ready) -> Nanos {
        let slot = ready.slot;
        let mut now = Nanos::ZERO;
        if ready.writable && self.wants_to_write(slot) {
            now = io.now();
            self.flush(io, slot, now);
        }
        if ready.readable {
            now = self.read_all(io, slot, ready.ended);
        }
        if now.is_zero() { io.now() } else { now }
    }

    fn wants_to_write(&self, slot: Slot) -> bool {
        let conn = &self.conns[slot as usize];
        conn.state != ConnState::Closed && conn.out_at < conn.out.len()
    }

    /// Reads until the socket is drained, or the connection is no more.
    #[inline]
    fn read_all<I: Io>(&mut self, io: &mut I, slot: Slot, ended: bool) -> Nanos {
        let generation = self.conns[slot as usize].generation;
        let mut buffer = std::mem::take(&mut self.buffer);
        let mut now = Nanos::ZERO;
        loop {
            let conn = &self.conns[slot as usize];
            if conn.state == ConnState::Closed || conn.generation != generation {
                break;
            }
            let read = io.read(slot, &mut buffer);
            now = io.now();
            match read {
                Ok(0) => {
                    self.input_ended(io, slot, now);
                    break;
                }
                Ok(count) => {
                    self.receive(io, slot, &buffer[..count], now);
                    if count < buffer.len() && !ended {
                        break;
                    }
                }
                Err(IoError::WouldBlock) => break,
                Err(error) => {
                    self.break_off(io, slot, class_of(error), now);
                    break;
                }
            }
        }
        self.buffer = buffer;
        now
    }

    /// Bytes off the transport.
    #[inline]
    fn receive<I: Io>(&mut self, io: &mut I, slot: Slot, bytes: &[u8], now: Nanos) {
        let conn = &mut self.conns[slot as usize];
        conn.progress = now;
        match conn.state {
            ConnState::Open if conn.tls.is_none() => self.answers(io, slot, bytes, now),
            ConnState::Open | ConnState::Handshake => self.receive_tls(io, slot, bytes, now),
            ConnState::Tunnel => self.receive_tunnel(io, slot, bytes, now),
            // bytes before our first write went out: a server that speaks first is no HTTP server
            ConnState::Connecting => self.break_off(io, slot, FailureClass::Unasked, now),
            ConnState::Closed => {}
        }
    }

    fn receive_tls<I: Io>(&mut self, io: &mut I, slot: Slot, bytes: &[u8], now: Nanos) {
        let conn = &mut self.conns[slot as usize];
        let Some(tls) = &mut conn.tls else { return };
        let mut plain = std::mem::take(&mut self.plain);
        plain.clear();
        let fed = tls.feed(bytes, &mut plain);
        tls.drain(&mut conn.out);
        let ready = conn.state == ConnState::Handshake && !tls.handshaking();
        let facts = if ready { tls.facts() } else { None };
        if ready && fed.is_ok() {
            let took = now - conn.connected;
            if let Some(facts) = facts {
                *self.recorder.now.connections.tls.entry(facts).or_default() += 1;
            }
            self.opened(slot, Some(took), now);
        }
        if fed.is_ok() && self.has_output(slot) {
            self.flush(io, slot, now);
        }
        let generation = self.conns[slot as usize].generation;
        if !plain.is_empty() {
            self.answers(io, slot, &plain, now);
        }
        self.plain = plain;
        let conn = &self.conns[slot as usize];
        if conn.generation != generation || conn.state == ConnState::Closed {
            return;
        }
        if let Err(error) = fed {
            // the alert, if there is one, goes out as far as the transport takes it
            self.flush(io, slot, now);
            self.break_off(io, slot, error.class, now);
        } else if conn.tls.as_ref().is_some_and(|tls| tls.closed()) {
            // close_notify ends the stream, whether or not TCP's end comes with it (RFC 8446 §6.1)
            self.input_ended(io, slot, now);
        }
    }

    fn has_output(&self, slot: Slot) -> bool {
        let conn = &self.conns[slot as usize];
        !conn.held.is_empty() || conn.out_at < conn.out.len()
    }

    /// The proxy's answer to CONNECT.
    fn receive_tunnel<I: Io>(&mut self, io: &mut I, slot: Slot, bytes: &[u8], now: Nanos) {
        let conn = &mut self.conns[slot as usize];
        let advance = match conn.reader.advance(&mut self.cache, bytes) {
            Ok(advance) => advance,
            Err(_) => return self.break_off(io, slot, FailureClass::Proxy, now),
        };
        if !advance.done {
            return;
        }
        if !(200..300).contains(&conn.reader.facts().status) || advance.consumed < bytes.len() {
            return self.break_off(io, slot, FailureClass::Proxy, now);
        }
        conn.connected = now;
        conn.state = ConnState::Handshake;
        let end = self.endpoints[self.conns[slot as usize].endpoint as usize].clone();
        match &end.tls_name {
            Some(name) => match self.begin_tls(slot, name) {
                Ok(()) => self.flush(io, slot, now),
                Err(class) => self.break_off(io, slot, class, now),
            },
            None => self.break_off(io, slot, FailureClass::Proxy, now),
        }
    }

    /// Plaintext: answers to the calls outstanding, in order.
    #[inline]
    fn answers<I: Io>(&mut self, io: &mut I, slot: Slot, input: &[u8], now: Nanos) {
        let generation = self.conns[slot as usize].generation;
        let looks = self.looks;
        let mut at = 0;
        while at < input.len() {
            let conn = &mut self.conns[slot as usize];
            if conn.awaited() == 0 {
                return self.unasked(io, slot, now);
            }
            let Some(call) = conn.calls.front_mut() else { return };
            if call.first_byte.is_zero() {
                call.first_byte = now;
            }
            let advance = match conn.reader.advance(&mut self.cache, &input[at..]) {
                Ok(advance) => advance,
                Err(error) => return self.break_off(io, slot, class_of_answer(&error), now),
            };
            if self.answers_left > 0 {
                conn.keep(&input[at..at + advance.consumed]);
            }
            if looks && !advance.body.is_empty() {
                let body = at + advance.body.start..at + advance.body.end;
                self.look(slot, &input[body]);
            }
            at += advance.consumed;
            if advance.done {
                self.answered(io, slot, now);
                let conn = &self.conns[slot as usize];
                if conn.generation != generation || conn.state == ConnState::Closed {
                    return;
                }
            } else if advance.consumed == 0 {
                return;
            }
        }
    }

    /// Bytes that no request had asked for: the connection cannot be trusted any further.
    fn unasked<I: Io>(&mut self, io: &mut I, slot: Slot, now: Nanos) {
        *self.recorder.now.failures.entry(FailureClass::Unasked).or_default() += 1;
        self.conns[slot as usize].broken = Some(FailureClass::Unasked);
        self.strand(slot);
        self.close(io, slot, Close::Reset, now);
        self.replace_stranded(io, now);
    }

    /// A piece of a body that the plan wants to see.
    fn look(&mut self, slot: Slot, piece: &[u8]) {
        let wanted = self.wants_bodies();
        let conn = &mut self.conns[slot as usize];
        if wanted {
            keep_body(conn, piece);
        }
        if !self.setup.body.looks() {
            return;
        }
        let encoding = fields::content_encoding(conn.reader.head());
        let inspect = conn.inspect.get_or_insert_with(|| {
            let mut fresh = Box::<crate::inspect::Inspect>::default();
            fresh.reset();
            fresh
        });
        inspect.take(&self.setup.body, encoding, piece);
    }

    /// The first outstanding call has its whole answer.
    #[inline]
    fn answered<I: Io>(&mut self, io: &mut I, slot: Slot, now: Nanos) {
        let conn = &mut self.conns[slot as usize];
        let facts = conn.reader.facts();
        if facts.timed {
            self.count_timings(slot);
        }
        if self.attended && self.script_answered(slot, &facts, now) {
            return;
        }
        let conn = &mut self.conns[slot as usize];
        let Some(mut call) = conn.calls.pop_front() else { return };
        conn.served += 1;
        let (decoded, wrong) = if self.setup.body.looks() {
            self.judge_body(slot, &facts, &call)
        } else {
            (facts.body_bytes, self.setup.body.judge_length(facts.body_bytes))
        };
        // the connection ends before the other answers of a script's call
        let wrong = wrong.or((call.answers_due > 1).then_some(FailureClass::ClosedEarly));
        call.add(&facts, decoded);
        let detour = if (300..400).contains(&facts.status) || self.setup.plan.request.cookies {
            self.read_head(slot, &mut call, &facts)
        } else {
            Ok(None)
        };
        let conn = &mut self.conns[slot as usize];
        let heads = self.setup.plan.measure.conforming_counts_heads;
        conn.received += facts.body_bytes + if heads { facts.head_bytes } else { 0 };
        let setup_times = conn.setup.take();
        let mut answer = Vec::new();
        if self.answers_left > 0 {
            self.answers_left -= 1;
            answer = std::mem::take(&mut conn.kept);
        }
        match conn.calls.front() {
            Some(next) => {
                let asked = next.asked;
                conn.reader.start(asked);
            }
            None => conn.busy += now - conn.busy_since,
        }
        let spent = conn.calls.is_empty() && conn.assigned >= self.limits.calls;
        if !facts.persistent || spent {
            conn.by_server = !spent;
            self.strand(slot);
            self.close(io, slot, self.close_kind(), now);
            // before the user's next call, so that none waits behind newer ones for ever
            self.replace_stranded(io, now);
        }
        self.answer = answer;
        match detour {
            Ok(Some(template)) => self.detour(io, call, template, now),
            Ok(None) => {
                let end = self.judge(&facts, wrong);
                self.conclude_with(io, call, end, now, setup_times);
            }
            Err(class) => {
                let end = End::answered(&facts, Some(class));
                self.conclude_with(io, call, end, now, setup_times);
            }
        }
        self.offer(slot, now);
    }

    /// A connection with room takes a queued call, or is offered to the next.
    fn offer(&mut self, slot: Slot, now: Nanos) {
        let conn = &self.conns[slot as usize];
        if conn.user != crate::call::NOBODY || conn.state != ConnState::Open {
            return;
        }
        let endpoint = conn.endpoint as usize;
        while self.conns[slot as usize].takes(self.limits.depth, self.limits.calls) {
            let Some(mut call) = self.queues[endpoint].pop_front() else { break };
            self.queued -= 1;
            call.admitted = now;
            self.assign(slot, call, now);
        }
        self.list(slot);
    }

    /// What the server says of its own work, of calls of the measured phase.
    #[inline(never)]
    fn count_timings(&mut self, slot: Slot) {
        let conn = &self.conns[slot as usize];
        let measured = |call: &Call| !self.recorder.in_warm_up(call.intended);
        if !conn.calls.front().is_some_and(measured) {
            return;
        }
        let counted = &mut self.recorder.now.server_timings;
        for timing in conn.reader.server_timings() {
            match timing {
                Ok(Timing { name, duration: Some(duration) }) => counted.record(name, duration),
                Ok(Timing { duration: None, .. }) => {}
                Err(Malformed) => counted.count_malformed(),
            }
        }
    }

    fn judge_body(
        &mut self,
        slot: Slot,
        facts: &AnswerFacts,
        call: &Call,
    ) -> (u64, Option<FailureClass>) {
        let test = &self.setup.body;
        let inspect = self.conns[slot as usize].inspect.get_or_insert_default();
        if facts.body_bytes == 0 {
            inspect.reset();
        }
        let verdict = inspect.finish(test);
        inspect.reset();
        // an answer without content by rule (HEAD, 204, 304) cannot have the expected body
        let bodiless =
            call.asked != wire::answer::Asked::Ordinary || matches!(facts.status, 204 | 304);
        if bodiless { (0, None) } else { verdict }
    }

    #[inline]
    fn judge(&self, facts: &AnswerFacts, wrong: Option<FailureClass>) -> End {
        let class =
            if self.setup.status_ok(facts.status) { wrong } else { Some(FailureClass::Status) };
        End::answered(facts, class)
    }

    /// Cookies for the user's jar, and the request that a redirect asks for.
    fn read_head(
        &mut self,
        slot: Slot,
        call: &mut Call,
        facts: &AnswerFacts,
    ) -> Result<Option<Template>, FailureClass> {
        let setup = self.setup.clone();
        let head = self.conns[slot as usize].reader.head();
        let from = call.detour.as_deref().unwrap_or_else(|| setup.targets.template(call.target));
        if setup.plan.request.last_cookie
            && let Some(person) = self.people.user(call.user)
            && let Some(value) = fields::set_cookies(head).last()
        {
            let pair = value.split(|byte| *byte == b';').next().unwrap_or_default();
            person.cookie = Some(String::from_utf8_lossy(pair).trim().into());
        } else if let Some(jar) = self.people.user(call.user).and_then(|person| person.jar.as_mut())
        {
            for value in fields::set_cookies(head) {
                jar.absorb(&from.url, value);
            }
        }
        if setup.plan.request.follow_max == 0 {
            return Ok(None);
        }
        let Some(next) = redirect_method(facts.status, &from.method) else { return Ok(None) };
        let Some(location) = fields::location(head) else { return Ok(None) };
        if call.redirects >= setup.plan.request.follow_max {
            return Err(FailureClass::Redirects);
        }
        let location = std::str::from_utf8(location).map_err(|_| FailureClass::Redirects)?;
        let url = from.url.join(location).map_err(|_| FailureClass::Redirects)?;
        let Some(endpoint) = setup.keys.get(&endpoint_key(&url)).copied() else {
            return Err(FailureClass::Redirects);
        };
        let target = &setup.plan.targets[call.target as usize];
        let body = target.body.as_deref().or(setup.plan.request.body.as_deref());
        let body = body.filter(|_| next == from.method);
        let absolute = setup.endpoints[endpoint as usize].absolute;
        let template = build_template(&setup.plan, &url, next, body, endpoint, absolute);
        template.map(Some).map_err(|_| FailureClass::Redirects)
    }

    /// The server ended its side.
    fn input_ended<I: Io>(&mut self, io: &mut I, slot: Slot, now: Nanos) {
        let conn = &mut self.conns[slot as usize];
        if conn.calls.is_empty() {
            conn.by_server = true;
            return self.close(io, slot, self.close_kind(), now);
        }
        if conn.state != ConnState::Open {
            let class = match conn.state {
                ConnState::Tunnel => FailureClass::Proxy,
                ConnState::Handshake => FailureClass::Tls,
                _ => FailureClass::ClosedEarly,
            };
            return self.break_off(io, slot, class, now);
        }
        match conn.reader.end_of_input() {
            Ok(()) => self.answered(io, slot, now),
            Err(error) => self.break_off(io, slot, class_of_answer(&error), now),
        }
    }

    /// The connection is no more. Before it stood, all its calls fail for that reason; after, the
    /// call being answered does, and those behind it are put on another connection.
    pub(crate) fn break_off<I: Io>(
        &mut self,
        io: &mut I,
        slot: Slot,
        class: FailureClass,
        now: Nanos,
    ) {
        let conn = &mut self.conns[slot as usize];
        let stood = conn.state == ConnState::Open;
        if conn.state == ConnState::Connecting && self.next_address(slot) {
            self.strand(slot);
            self.close(io, slot, Close::Reset, now);
            return self.replace_stranded(io, now);
        }
        let conn = &mut self.conns[slot as usize];
        conn.broken = Some(class);
        let answer = std::mem::take(&mut conn.kept);
        let unbegun = conn.calls.front().is_some_and(|call| call.first_byte.is_zero());
        conn.by_server =
            unbegun && matches!(class, FailureClass::ClosedEarly | FailureClass::Reset);
        let resend = stood && unbegun && conn.served > 0 && self.setup.plan.connection.resend;
        let mut first = if resend { None } else { conn.calls.pop_front() };
        if let Some(call) = first.as_mut().filter(|_| stood && conn.reader.begun()) {
            // what came of the answer came over the wire all the same
            let facts = conn.reader.facts();
            call.add(&facts, facts.body_bytes);
        }
        if let Some(call) = &first
            && let Some(person) = self.people.user(call.user)
            && !self.source.retries(person)
        {
            self.people.fail_session(call.user, &self.source);
        }
        self.strand(slot);
        self.close(io, slot, Close::Reset, now);
        let end = End::failed(class);
        if stood {
            self.replace_stranded(io, now);
        }
        if let Some(call) = first {
            self.answer = answer;
            self.conclude(io, call, end, now);
        }
        for call in std::mem::take(&mut self.stranded) {
            self.conclude(io, call, end, now);
        }
    }
}

fn class_of_answer(error: &AnswerError) -> FailureClass {
    match error {
        AnswerError::NotHttp => FailureClass::NotHttp,
        AnswerError::BadFraming(_) | AnswerError::HeadTooLarge => FailureClass::BadFraming,
        AnswerError::ClosedEarly => FailureClass::ClosedEarly,
        AnswerError::Truncated => FailureClass::Truncated,
    }
}
