//! The worker: its state, its turn, and its loop.

mod arrivals;
mod churn;
mod login;
mod outcome;
mod placement;
mod response;
mod rooms;
mod transfer;

use crate::edges::Edges;
use crate::fan_out::FanOut;
use crate::feedback::Feedback;
use crate::guide::Directory;
use crate::heartbeats::Timed;
use crate::intake::Intake;
use crate::journal::Journal;
use crate::link::{Link, Order};
use crate::pool::Pool;
use crate::proof;
use crate::setup::Setup;
use crate::speaker::websocket::Conclusion;
use crate::speaker::{KeptAlive, ReadCaches};
use conduit::{Io, READ_SIZE, Ready, Slot, TlsFactory};
use response::ResponsePiece;
use sample::FailureClass;
use std::sync::Arc;
use units::Nanos;
use workload::{Guide, RequestMaker, Script};

/// Maximum number of rounds in which a turn concludes calls without responses before it reads.
const CONCLUSIONS_MAX: u32 = 16;

/// Next action of the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Wait for readiness, at most until this instant.
    Wait(Nanos),
    /// The run is over; all connections are closed.
    Done,
}

/// Part of a run on one core. Owns everything it touches.
///
/// It has four independent parts and carries calls between them. The `Pool` has the connections and
/// the calls that wait for one; a connection has its `Speaker`, the only part that knows the
/// protocol. The `Edges` are the instants at which the worker acts without an event. The `Feedback`
/// decides which call comes next, from the plan or from responses. The `Journal` counts.
///
/// A turn checks the link for orders, ends the finished beat or row, passes on logged data,
/// abandons calls past their deadline, issues due calls, and writes the connections that this
/// touched. Issuing a call takes it from the feedback, counts it as due, and places it: on a
/// connection that can take it, on a new one, or in the queue; or it is dropped. An event
/// (`handle`) first writes if a write can continue, then reads until the socket is drained. Input
/// goes through TLS, if used, to the connection's speaker, which determines its meaning for a call.
/// A completed response removes its call from the connection, is judged, and becomes a sample in
/// the journal, or a redirect that is placed again; then the user's next call is issued at once or
/// falls due later, and the connection is offered to waiting calls. Last, the event's own writes
/// are sent, and calls that fell due meanwhile are issued.
#[derive(Debug)]
pub struct Worker {
    setup: Arc<Setup>,
    id: u32,
    /// Number of parts of the load that the worker has taken over.
    taken: usize,
    arrivals_this_turn: u32,
    pool: Pool,
    edges: Edges,
    feedback: Feedback,
    journal: Journal,
    /// Bodies are examined, because of the plan's expectations or by a script.
    looks: bool,
    /// True if each request needs its own proof.
    proves: bool,
    /// Requests are sent as their templates: no request is signed, scripted, or has a user's
    /// cookies.
    ready_made: bool,
    /// Makes the content of requests, call by call.
    maker: Option<Box<dyn RequestMaker>>,
    /// True if some responses cause their call to be resent: those to logins, and to early data.
    repeats: bool,
    shared: ReadCaches,
    /// Last input, and its decrypted form; shared by all connections.
    buffer: Box<[u8]>,
    plain: Vec<u8>,
    /// WebSockets that are pinged or closed at set times, and streams whose messages have a rate.
    timed: Option<Box<Timed>>,
    /// Rooms of WebSockets, and the messages for them.
    fan_out: Option<Box<FanOut>>,
    /// Calls are messages without answers: each ends once its message is sent.
    unanswered: bool,
    /// Connections with messages that are sent alone, once per message.
    sent_alone: Vec<Slot>,
    /// Intakes of ended calls, for reuse.
    #[expect(
        clippy::vec_box,
        reason = "a call has its intake in a box, which is returned unchanged"
    )]
    intakes: Vec<Box<Intake>>,
}

impl Worker {
    /// Creates worker `id` of `setup.workers`; `tls` is required if an endpoint uses TLS.
    pub fn new(setup: Arc<Setup>, id: u32, tls: Option<Box<dyn TlsFactory + Send>>) -> Worker {
        let received_max = setup.plan.stop.bytes.map_or(u64::MAX, |total| setup.share(total, id));
        let proves = proof::needs_proofs(&setup.plan);
        Worker {
            pool: Pool::new(&setup, id, tls),
            edges: Edges::new(&setup),
            feedback: Feedback::new(&setup, id),
            journal: Journal::new(&setup, received_max),
            looks: setup.body.looks(),
            proves,
            ready_made: !proves
                && !setup.plan.request.cookies
                && !setup.is_unanswered()
                && setup.plan.grpc.message_rate.is_none(),
            maker: None,
            timed: Timed::new(&setup, id),
            fan_out: FanOut::new(&setup, id).map(Box::new),
            unanswered: setup.is_unanswered(),
            sent_alone: Vec::new(),
            repeats: proves || setup.plan.tls.early_data,
            shared: ReadCaches::default(),
            buffer: vec![0; READ_SIZE].into_boxed_slice(),
            plain: Vec::new(),
            intakes: Vec::new(),
            taken: 0,
            arrivals_this_turn: 0,
            id,
            setup,
        }
    }

    /// Makes `script` the source of the worker's requests, which are sent to the plan's first
    /// target.
    #[must_use]
    pub fn with_script(mut self, script: Box<dyn Script>) -> Worker {
        self.feedback.use_script(script);
        self.ready_made = false;
        self.attend()
    }

    /// Makes a guide decide the steps of the worker's users. The load is closed without think times
    /// and sessions, or consists of arriving sessions; each user stays until the guide lets it
    /// leave.
    #[must_use]
    pub fn with_guide(mut self, guide: Box<dyn Guide>, directory: Box<dyn Directory>) -> Worker {
        self.feedback.set_guide(guide, directory);
        // the calls of such users have their own time limits
        self.ready_made &= !self.feedback.has_simultaneous_calls();
        self.attend()
    }

    /// Makes `maker` generate the content of the worker's requests; method, URL and fields are
    /// those of the target.
    #[must_use]
    pub fn with_maker(mut self, maker: Box<dyn RequestMaker>) -> Worker {
        self.maker = Some(maker);
        self
    }

    fn attend(mut self) -> Worker {
        self.looks = self.looks || self.feedback.wants_bodies();
        if self.feedback.wants_heads() {
            self.pool.keep_heads();
        }
        if self.feedback.is_attended_to_the_end() {
            self.journal.watch();
        }
        self
    }

    /// Processes everything due and returns when the next item is due.
    pub fn turn<I: Io>(&mut self, io: &mut I, link: &mut dyn Link) -> Turn {
        let now = io.now();
        self.pool.start_turn();
        self.arrivals_this_turn = 0;
        self.edges.start_turn(now);
        let order = if self.edges.is_cut(now) { Order::Abandon } else { link.order() };
        match order {
            Order::Go => self.take_over(link),
            Order::Stop => self.stop(),
            Order::Abandon => return self.give_up(io, link, now),
        }
        if let Some(text) = self.feedback.script_failure() {
            link.report_script_failure(text);
            return self.give_up(io, link, now);
        }
        if self.edges.is_past_last_due(now) {
            self.stop();
        }
        if self.edges.is_at_edge(now) {
            self.end_beat_or_row(io, link, now);
        }
        self.journal.pass_records(link);
        self.expire(io, now);
        self.issue_due(io, now);
        self.flush_dirty(io, now);
        let beat = self.beat(io, now);
        if self.is_finished(now) {
            self.close_all(io, now);
            self.end_row(io, link, now, true);
            return Turn::Done;
        }
        let (deadline, queued) = (self.pool.next_deadline().min(beat), self.pool.queue_deadline());
        Turn::Wait(self.edges.wake(now, deadline, queued))
    }

    /// Processes one readiness event.
    #[inline]
    pub fn handle<I: Io>(&mut self, io: &mut I, ready: Ready) {
        self.edges.count_event();
        let now = self.progress(io, ready);
        self.flush_dirty(io, now);
        if self.edges.is_due(now) {
            self.issue_due(io, now);
        }
    }

    /// Sends the heartbeats that are due and concludes messages that have no answers; returns when
    /// the next heartbeat is due.
    #[inline]
    fn beat<I: Io>(&mut self, io: &mut I, now: Nanos) -> Nanos {
        let mut again = match self.sent_alone.is_empty() {
            true => Nanos::NEVER,
            false => self.conclude_all_sent(io, now),
        };
        if self.fan_out.is_some() {
            again = again.min(self.update_rooms(io, now));
        }
        match &self.timed {
            None => again,
            Some(_) => again.min(self.send_timed(io, now)),
        }
    }

    /// Sends heartbeats and messages of streams that are due; returns when the next is due.
    #[cold]
    fn send_timed<I: Io>(&mut self, io: &mut I, now: Nanos) -> Nanos {
        let sent = self.send_heartbeats(io, now).min(self.send_paced(io, now));
        sent.min(self.churn(io, now))
    }

    fn send_paced<I: Io>(&mut self, io: &mut I, now: Nanos) -> Nanos {
        let pacer = self.timed.as_mut().and_then(|timed| timed.pacer.as_mut());
        let Some(pacer) = pacer else { return Nanos::NEVER };
        while let Some(message) = pacer.take_due(now) {
            let conn = self.pool.conn_mut(message.slot);
            if !conn.has_generation(message.generation) {
                continue;
            }
            // a call that ended, or moved to another connection, has no message here
            let Some(released) = conn.release_message(message.index) else { continue };
            self.journal.message_released(released.held_back, message.due);
            self.pool.mark_dirty(message.slot);
            if !released.last {
                pacer.again(message);
            }
        }
        let next = pacer.next();
        self.flush_dirty(io, now);
        next
    }

    fn send_heartbeats<I: Io>(&mut self, io: &mut I, now: Nanos) -> Nanos {
        let heartbeats = self.timed.as_mut().and_then(|timed| timed.heartbeats.as_mut());
        let Some(heartbeats) = heartbeats else { return Nanos::NEVER };
        let mut lost = Vec::new();
        while let Some((slot, generation)) = heartbeats.timers.take_due(now) {
            if !self.pool.conn(slot).has_generation(generation) {
                continue;
            }
            self.pool.wake(slot);
            let conn = self.pool.conn_mut(slot);
            let Some(interval) = heartbeats.keepalive() else {
                conn.ping(now);
                self.pool.mark_dirty(slot);
                heartbeats.again(slot, generation, now);
                continue;
            };
            match conn.keep_alive(interval, now) {
                KeptAlive::Pinged { again } => {
                    self.pool.mark_dirty(slot);
                    heartbeats.timers.set(slot, generation, again);
                }
                KeptAlive::Later { again } => heartbeats.timers.set(slot, generation, again),
                KeptAlive::Unanswered => lost.push(slot),
            }
        }
        let next = heartbeats.timers.next();
        for slot in lost {
            self.break_off(io, slot, FailureClass::KeepaliveTimeout, now);
        }
        self.flush_dirty(io, now);
        next
    }

    /// Concludes calls that wait for no answer, and calls that are due at once because of that;
    /// returns when to continue.
    #[cold]
    fn conclude_all_sent<I: Io>(&mut self, io: &mut I, now: Nanos) -> Nanos {
        for _ in 0..CONCLUSIONS_MAX {
            if !self.conclude_sent(io, now) {
                return Nanos::NEVER;
            }
            self.flush_dirty(io, now);
        }
        now
    }

    /// Ends calls whose messages have no answer and were sent, and waits whose messages have
    /// already arrived. Returns true if a call ended.
    fn conclude_sent<I: Io>(&mut self, io: &mut I, now: Nanos) -> bool {
        let mut any = false;
        let slots = std::mem::take(&mut self.sent_alone);
        for slot in slots {
            match self.pool.conn_mut(slot).conclude_sent() {
                Conclusion::ByEvent => {}
                Conclusion::Later => self.sent_alone.push(slot),
                Conclusion::Done => {
                    any = true;
                    let answer = self.pool.conn_mut(slot).take_answer();
                    self.gather_answer(slot, answer.as_deref(), now);
                    self.responded(io, slot, 0, now);
                    if self.journal.is_sampling() {
                        self.journal.end_sample(answer.as_deref().unwrap_or_default());
                    }
                }
            }
        }
        any
    }

    /// Collects the response of a call that was concluded without an event.
    fn gather_answer(&mut self, slot: Slot, answer: Option<&[u8]>, now: Nanos) {
        if let Some(body) = answer.filter(|_| self.needs_body()) {
            let came = ResponsePiece { piece: &[], body, last: true };
            self.gather(slot, 0, &came, now);
        }
    }

    /// Takes over parts of the load from other workers.
    fn take_over(&mut self, link: &mut dyn Link) {
        while let Some(more) = link.more(self.taken) {
            self.taken += 1;
            self.feedback.take_over(&more);
            self.edges.add_due(self.feedback.next_arrival());
        }
    }

    fn stop(&mut self) {
        if self.edges.stop() {
            self.feedback.stop();
        }
    }

    /// Ends the run now, with its calls in flight.
    fn give_up<I: Io>(&mut self, io: &mut I, link: &mut dyn Link, now: Nanos) -> Turn {
        self.abandon(io, now);
        self.end_row(io, link, now, true);
        Turn::Done
    }

    /// Ends the finished beat or row.
    #[cold]
    fn end_beat_or_row<I: Io>(&mut self, io: &mut I, link: &mut dyn Link, now: Nanos) {
        if self.edges.is_row_over(now) {
            self.end_row(io, link, now, false);
        }
        self.edges.set_beat(self.journal.beat(now));
    }

    fn end_row<I: Io>(&mut self, io: &mut I, link: &mut dyn Link, now: Nanos, last: bool) {
        self.collect_remarks();
        let row = self.edges.end_row(now, io.spin());
        self.journal.end_row(link, self.id, &row, now, last);
    }
}

/// Unit that runs on a driver: a worker, or several workers of one core.
pub trait Driven {
    /// Processes everything due and returns when the next item is due.
    fn turn<I: Io>(&mut self, io: &mut I, link: &mut dyn Link) -> Turn;

    /// Processes one readiness event.
    fn handle<I: Io>(&mut self, io: &mut I, ready: Ready);
}

impl Driven for Worker {
    fn turn<I: Io>(&mut self, io: &mut I, link: &mut dyn Link) -> Turn {
        Worker::turn(self, io, link)
    }

    #[inline]
    fn handle<I: Io>(&mut self, io: &mut I, ready: Ready) {
        Worker::handle(self, io, ready);
    }
}

/// Runs a worker to its end on one driver.
pub fn drive<I: Io>(worker: &mut impl Driven, io: &mut I, link: &mut dyn Link) {
    let mut ready = Vec::with_capacity(1024);
    while let Turn::Wait(until) = worker.turn(io, link) {
        io.wait(until, &mut ready);
        for event in ends_first(&ready) {
            worker.handle(io, *event);
        }
    }
}

/// Orders ready events with the ends of connections first: calls that another event makes due must
/// not be written to a connection whose end the kernel has reported.
pub fn ends_first(ready: &[Ready]) -> impl Iterator<Item = &Ready> {
    let of = |ended| ready.iter().filter(move |event| event.ended == ended);
    of(true).chain(of(false))
}

#[cfg(test)]
mod tests;
