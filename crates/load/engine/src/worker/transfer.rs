//! Bytes out and bytes in: from readiness to the speaker of a connection, through TLS if used.

use super::Worker;
use super::response::{ResponsePiece, fresh};
use crate::connection::ConnState;
use crate::pool::class_of;
use crate::setup::head_limits;
use crate::speaker::{Event, Fault, Processed};
use conduit::{Io, IoError, Ready, Slot};
use sample::FailureClass;
use units::Nanos;

/// Maximum number of further reads of a drained socket for which requests wait.
const READS_AGAIN_MAX: u32 = 8;

impl Worker {
    /// Processes a readiness event; returns the instant of the last clock reading.
    #[inline]
    pub(super) fn progress<I: Io>(&mut self, io: &mut I, ready: Ready) -> Nanos {
        let slot = ready.slot;
        let mut now = Nanos::ZERO;
        if ready.writable && self.pool.conn(slot).wants_to_write() {
            now = io.now();
            self.flush(io, slot, now);
        }
        if ready.readable {
            now = self.read_all(io, slot, ready.ended);
        }
        if now.is_zero() { io.now() } else { now }
    }

    /// Writes the queued data of the connections touched since the last flush.
    #[inline]
    pub(super) fn flush_dirty<I: Io>(&mut self, io: &mut I, now: Nanos) {
        while let Some(slot) = self.pool.take_dirty() {
            self.flush(io, slot, now);
        }
    }

    /// Writes one connection's bytes, until the transport accepts no more.
    #[inline]
    fn flush<I: Io>(&mut self, io: &mut I, slot: Slot, now: Nanos) {
        match self.pool.conn_mut(slot).flush(io, slot, now) {
            Ok(false) => {}
            Ok(true) => self.connected(slot, now),
            Err(error) => self.write_failed(io, slot, class_of(error), now),
        }
    }

    /// Reads the server's data before it handles a failed write: the server may have responded
    /// before it closed (RFC 9112 section 9.5).
    #[cold]
    #[inline(never)]
    fn write_failed<I: Io>(&mut self, io: &mut I, slot: Slot, class: FailureClass, now: Nanos) {
        let conn = self.pool.conn_mut(slot);
        let generation = conn.generation();
        if conn.is_open() {
            let first = conn.note_unwritable(class);
            // the buffer is in use: the read that this write is part of continues to the end of the
            // input
            if self.buffer.is_empty() {
                return;
            }
            if first {
                self.read_rest(io, slot);
            }
        }
        if self.pool.conn(slot).has_generation(generation) {
            self.break_off(io, slot, class, now);
        }
    }

    /// Notes that the transport is established: the first bytes were accepted.
    fn connected(&mut self, slot: Slot, now: Nanos) {
        let endpoint = self.pool.conn(slot).endpoint();
        let tunnelled = self.pool.endpoint(endpoint).tunnel.is_some();
        let tunnel = tunnelled.then(|| head_limits(&self.setup.plan));
        let conn = self.pool.conn_mut(slot);
        let at = conn.connect(tunnel, now);
        if conn.state() == ConnState::Connecting {
            self.established(slot, None, at);
        }
    }

    /// Notes that the connection is fully established: requests can be sent.
    fn established(&mut self, slot: Slot, tls: Option<Nanos>, now: Nanos) {
        let conn = self.pool.conn_mut(slot);
        let connect = conn.establish(tls, now);
        let (endpoint, generation) = (conn.endpoint(), conn.generation());
        self.pool.mark_reached(endpoint);
        self.journal.connection_established(connect, tls);
        if self.feedback.has_simultaneous_calls() {
            self.pool.conn_mut(slot).send_kept();
            self.flush_later(slot);
        }
        // the next wait may have a shorter limit than the connect
        self.pool.arm(slot);
        let socket = self.pool.conn_mut(slot).is_socket();
        if let Some(timed) = &mut self.timed {
            timed.begin(slot, generation, socket, now);
        }
    }

    /// Reads until the socket is drained, or the connection is closed. While a connection gathers
    /// requests, its drained socket is read again before they are written.
    #[inline(always)]
    fn read_all<I: Io>(&mut self, io: &mut I, slot: Slot, ended: bool) -> Nanos {
        let mut buffer = std::mem::take(&mut self.buffer);
        let generation = self.pool.conn(slot).generation();
        let mut now = Nanos::ZERO;
        let mut again = READS_AGAIN_MAX;
        while self.pool.conn(slot).has_generation(generation) {
            let taken = io.take(slot, &mut buffer);
            now = io.now();
            match taken {
                Ok(range) if range.is_empty() => {
                    self.input_ended(io, slot, now);
                    break;
                }
                Ok(range) => {
                    let drained = range.len() < buffer.len();
                    self.receive(io, slot, &buffer[range], now);
                    if drained && !ended {
                        if again == 0 || !self.pool.conn(slot).gathers_requests() {
                            break;
                        }
                        again -= 1;
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

    /// Reads what remains after a failed write.
    #[inline(never)]
    fn read_rest<I: Io>(&mut self, io: &mut I, slot: Slot) {
        self.read_all(io, slot, true);
    }

    /// Processes bytes from the transport.
    #[inline(always)]
    fn receive<I: Io>(&mut self, io: &mut I, slot: Slot, bytes: &[u8], now: Nanos) {
        let conn = self.pool.conn_mut(slot);
        let (state, encrypted) = conn.note_received(now);
        if state == ConnState::Open && !encrypted {
            return self.process(io, slot, bytes, now);
        }
        match state {
            ConnState::Open | ConnState::Handshake => self.receive_tls(io, slot, bytes, now),
            ConnState::Tunnel => self.receive_tunnel(io, slot, bytes, now),
            // bytes before our first write: a server that sends first is not an HTTP server
            ConnState::Connecting => self.break_off(io, slot, FailureClass::Unasked, now),
            ConnState::Closed => {}
        }
    }

    #[inline(never)]
    fn receive_tls<I: Io>(&mut self, io: &mut I, slot: Slot, bytes: &[u8], now: Nanos) {
        let mut plain = std::mem::take(&mut self.plain);
        plain.clear();
        let conn = self.pool.conn_mut(slot);
        let fed = conn.decrypt(bytes, &mut plain);
        // requests of an open connection wait for the end of the input
        let mut replies = conn.wants_to_write();
        if fed.is_ok()
            && let Some((took, facts)) = conn.take_handshake(now)
        {
            replies = true;
            let misled = conn.has_wrong_protocol(facts.as_ref());
            if let Some(facts) = facts {
                self.journal.count_tls(facts);
            }
            if misled {
                self.plain = plain;
                return self.break_off(io, slot, FailureClass::Protocol, now);
            }
            self.established(slot, Some(took), now);
        }
        let generation = self.pool.conn(slot).generation();
        if fed.is_ok() && replies {
            self.flush(io, slot, now);
        }
        // a failed write has ended the connection, and the slot may already have another one
        if !plain.is_empty() && self.pool.conn(slot).has_generation(generation) {
            self.process(io, slot, &plain, now);
        }
        self.plain = plain;
        let conn = self.pool.conn(slot);
        if !conn.has_generation(generation) {
            return;
        }
        if let Err(error) = fed {
            // the alert, if there is one, is sent if the transport accepts it
            self.flush(io, slot, now);
            self.break_off(io, slot, error.class, now);
        } else if conn.is_tls_closed() {
            // close_notify ends the stream, whether or not TCP's end arrives with it (RFC 8446
            // §6.1)
            self.input_ended(io, slot, now);
        }
    }

    /// Reads the proxy's response to CONNECT.
    fn receive_tunnel<I: Io>(&mut self, io: &mut I, slot: Slot, bytes: &[u8], now: Nanos) {
        let conn = self.pool.conn_mut(slot);
        match conn.receive_proxy_response(bytes, now) {
            Ok(true) => {}
            Ok(false) => return,
            Err(class) => return self.break_off(io, slot, class, now),
        }
        let end = self.pool.endpoint(self.pool.conn(slot).endpoint()).clone();
        match &end.tls_name {
            Some(name) => match self.start_tls(slot, name) {
                Ok(()) => self.flush(io, slot, now),
                Err(class) => self.break_off(io, slot, class, now),
            },
            None => self.break_off(io, slot, FailureClass::Proxy, now),
        }
    }

    /// Passes plaintext to the speaker, which determines its meaning for a call.
    #[inline(always)]
    fn process<I: Io>(&mut self, io: &mut I, slot: Slot, input: &[u8], now: Nanos) {
        if self.pool.conn(slot).is_multiplexed() {
            self.receive_streams(io, slot, input, now);
        } else {
            self.receive_in_order(io, slot, input, now);
        }
    }

    /// Processes responses in request order. A separate loop: the additional work for streams would
    /// cost each HTTP/1 call about fifty instructions.
    #[inline(always)]
    fn receive_in_order<I: Io>(&mut self, io: &mut I, slot: Slot, input: &[u8], now: Nanos) {
        let generation = self.pool.conn(slot).generation();
        let (mut at, mut start) = (0, 0);
        while at < input.len() {
            let conn = self.pool.conn_mut(slot);
            let advance = match conn.receive_in_order(&mut self.shared, &input[at..], now) {
                Ok(advance) => advance,
                Err(Fault::Unasked) if self.pool.is_resting(slot) => {
                    return self.receive_streams(io, slot, &input[at..], now);
                }
                Err(fault) => {
                    if self.journal.keeps_responses() {
                        let came = ResponsePiece { piece: &input[at..], body: &[], last: false };
                        self.gather(slot, 0, &came, now);
                    }
                    return self.break_after_fault(io, slot, fault, now);
                }
            };
            if self.needs_body() {
                let piece = &input[at..at + advance.consumed];
                let body = &piece[advance.body];
                self.gather(slot, 0, &ResponsePiece { piece, body, last: advance.done }, now);
            }
            at += advance.consumed;
            if advance.done {
                self.responded(io, slot, 0, now);
                if self.journal.is_sampling() {
                    self.journal.end_sample(&input[start..at]);
                }
                start = at;
                if !self.pool.conn(slot).has_generation(generation) {
                    return;
                }
            } else if advance.consumed == 0 {
                break;
            }
        }
        if start < at {
            self.sample_part(slot, 0, &input[start..at]);
        }
        self.pool.arm_again(slot);
    }

    /// Processes part of an incomplete response: its start is kept, because the response may be cut
    /// short.
    #[inline(never)]
    fn sample_part(&mut self, slot: Slot, row: usize, piece: &[u8]) {
        if !piece.is_empty() {
            self.pool.conn_mut(slot).sample(row, piece, || fresh(&mut self.intakes));
        }
    }

    /// Processes messages and control frames outside of calls. Returns whether one was a pong.
    fn pass_news(&mut self, slot: Slot, now: Nanos) -> bool {
        let Some(mut news) = self.pool.conn_mut(slot).take_news() else { return false };
        self.process_room_messages(slot, &mut news, now);
        self.count_restored(slot, &news, now);
        self.journal.messages(&news, now);
        news.counts.pongs > 0
    }

    /// Processes events of streams, in any order.
    #[inline(never)]
    fn receive_streams<I: Io>(&mut self, io: &mut I, slot: Slot, input: &[u8], now: Nanos) {
        // an idle WebSocket has no working state until something arrives
        let mut rests = self.pool.wake(slot);
        let generation = self.pool.conn(slot).generation();
        let (mut at, mut early) = (0, false);
        while at < input.len() {
            let conn = self.pool.conn_mut(slot);
            let Processed { consumed, event } = match conn.process(&input[at..], now) {
                Ok(heard) => heard,
                // the WebSocket was idle: its working state is restored first
                Err(Fault::Unasked) if self.pool.wake(slot) => {
                    rests = true;
                    continue;
                }
                Err(fault) => return self.break_after_fault(io, slot, fault, now),
            };
            rests |= self.pass_news(slot, now);
            match event {
                Event::Response { call, body, done } => {
                    let mut answer = None;
                    let body = &input[at..at + consumed][body];
                    if self.needs_body() {
                        // frames are useless to readers of a response: only its head is kept
                        answer = self.pool.conn_mut(slot).take_answer();
                        let body = answer.as_deref().unwrap_or(body);
                        let passed = self.feedback.has_simultaneous_calls()
                            && self.pass_part(slot, call, body, now);
                        let body = if passed { &[] } else { body };
                        let came = ResponsePiece { piece: &[], body, last: done };
                        early |= self.gather(slot, call, &came, now);
                        if done {
                            self.keep_head(slot, call);
                        }
                    }
                    if done {
                        self.responded(io, slot, call, now);
                        if self.journal.is_sampling() {
                            self.journal.end_sample(answer.as_deref().unwrap_or(body));
                        }
                    } else {
                        self.sample_part(slot, call, body);
                    }
                }
                Event::Connection => {
                    let journal = &mut self.journal;
                    let waited = |index, wait| journal.waited_for_stream(index, wait);
                    self.pool.conn_mut(slot).count_late_bytes(now, waited);
                    self.flush_later(slot);
                    self.close_if_left(io, slot, now);
                }
                Event::Refused { call } => self.refused(io, slot, call, now),
                Event::Failed { call, class } => self.failed(io, slot, call, class, now),
            }
            at += consumed;
            if !self.pool.conn(slot).has_generation(generation) {
                return;
            }
        }
        if early && !self.end_early_calls(io, slot, now) {
            return;
        }
        if rests {
            self.flush(io, slot, now);
            if self.pool.conn(slot).has_generation(generation) {
                self.pool.rest(slot);
            }
        }
        self.pool.arm_again(slot);
    }

    /// Breaks a connection that cannot be used any further.
    #[cold]
    fn break_after_fault<I: Io>(&mut self, io: &mut I, slot: Slot, fault: Fault, now: Nanos) {
        match fault {
            Fault::Unasked => self.close_on_unrequested(io, slot, now),
            Fault::Broken { class, .. } => {
                let conn = self.pool.conn_mut(slot);
                if conn.is_multiplexed() {
                    // the peer is notified of the reason, if the transport accepts it: the
                    // connection ends in any case
                    conn.flush(io, slot, now).ok();
                }
                self.break_off(io, slot, class, now);
            }
        }
    }

    /// Schedules a flush, because the protocol may have replied.
    fn flush_later(&mut self, slot: Slot) {
        if self.pool.conn(slot).has_output() {
            self.pool.mark_dirty(slot);
        }
    }

    /// Closes the connection to a server that accepts no further calls.
    fn close_if_left<I: Io>(&mut self, io: &mut I, slot: Slot, now: Nanos) {
        let conn = self.pool.conn_mut(slot);
        if conn.is_abandoned_by_peer() {
            conn.end_by_server();
            self.close(io, slot, self.close_kind(), now);
        }
    }

    /// Handles the end of the input: the server closed its side.
    fn input_ended<I: Io>(&mut self, io: &mut I, slot: Slot, now: Nanos) {
        let conn = self.pool.conn_mut(slot);
        if conn.is_idle() {
            conn.end_by_server();
            return self.close(io, slot, self.close_kind(), now);
        }
        if conn.is_unwritten() {
            // the end arrived with the previous response, whose user continued at once
            conn.end_by_server();
            self.pool.detach_calls(slot);
            self.close(io, slot, self.close_kind(), now);
            return self.replace_stranded(io, now);
        }
        if self.setup.plan.connection.needs_length && !conn.is_unanswered() {
            return self.break_off(io, slot, FailureClass::Truncated, now);
        }
        match conn.receive_end() {
            Ok(()) => {
                self.responded(io, slot, 0, now);
                if self.journal.is_sampling() {
                    self.journal.end_sample(&[]);
                }
            }
            Err(class) => self.break_off(io, slot, class, now),
        }
    }
}
