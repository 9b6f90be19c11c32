//! Conversations: scripts played on their own connections, with complete results. Many run at once,
//! each with its own start: a case, its probes and the connections of a load are all lines of one
//! [`Conversations`].

mod carried;
mod director;
mod line;
mod raw;

pub use carried::Carried;
pub use director::{All, Director, WaitUntil, Wake, play};

use crate::governor::Governor;
use crate::http2::Protocol;
use crate::packets::{PacketKind, PacketLink, PacketStep};
use crate::replies::{Replies, Response};
use conduit::{Close, Io, OpenOptions, Peer, Ready, Slot, TlsFactory};
use line::Conversation;
use sample::FailureClass;
use units::Nanos;

/// Maximum number of received bytes kept per connection.
pub const RECEIVED_MAX: usize = 64 << 10;
/// Maximum number of events kept per connection.
pub const EVENTS_MAX: usize = 4_096;

/// Script of one connection.
#[derive(Clone, Debug)]
pub struct TalkScript {
    pub peer: Peer,
    pub options: OpenOptions,
    /// Name for SNI; `None` for no TLS.
    pub tls_name: Option<String>,
    /// Protocol, which determines parsing and replies.
    pub protocol: Protocol,
    /// Start time.
    pub start: Nanos,
    pub steps: Vec<Move>,
    /// The request methods.
    pub methods: Vec<String>,
    /// Timeout from the start.
    pub deadline: Nanos,
    /// Valid GET for the same connection, sent when every response has arrived and the connection
    /// is open.
    pub follow_up: Option<Vec<u8>>,
    /// Time for which the connection is watched after its last response, for surplus bytes.
    pub grace: Nanos,
    /// Time for the server to close a connection after announcing the close.
    pub linger: Nanos,
    /// True to keep the connection after everything is sent and received, until it ends or the
    /// deadline passes.
    pub hold: bool,
    /// True for a regular request that checks the server: it uses the reserved part of the limits,
    /// and a request to stop in its response stops the run.
    pub probe: bool,
}

impl TalkScript {
    /// Returns a script of these steps without a target.
    pub fn new(steps: Vec<Move>) -> TalkScript {
        TalkScript {
            peer: Peer::Unix(std::path::PathBuf::new()),
            options: OpenOptions::default(),
            tls_name: None,
            protocol: Protocol::Http1,
            start: Nanos::ZERO,
            steps,
            methods: vec!["GET".to_owned()],
            deadline: Nanos::ZERO,
            follow_up: None,
            grace: Nanos::ZERO,
            linger: Nanos::ZERO,
            hold: false,
            probe: false,
        }
    }

    /// Returns the handshake options if our own packets are sent within its connection.
    pub(crate) fn by_hand(&self) -> Option<Vec<u8>> {
        let over_quic = self.protocol == Protocol::Http3;
        over_quic.then(|| crate::http3::packets::handshake(&self.steps)).flatten()
    }

    /// Returns whether it sends raw TCP segments without sockets.
    pub fn is_raw(&self) -> bool {
        is_raw(&self.steps)
    }
}

/// Returns whether these steps send raw TCP segments.
pub fn is_raw(steps: &[Move]) -> bool {
    steps.iter().any(|step| matches!(step, Move::Packet(_)))
}

/// A step with its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Move {
    Send(Vec<u8>),
    Pause(Nanos),
    Await(Awaited),
    /// One byte of urgent data.
    Urgent,
    HalfClose,
    Reset,
    Close,
    StopReading,
    Read,
    /// Reads at most this many bytes while reading is stopped.
    Sip(usize),
    /// Requests a renegotiation within this TLS 1.2 session (RFC 5246 section 7.4.1.2). A script
    /// with this step sees complete server records, decrypted after their headers.
    Renegotiate,
    /// A step of a conversation of raw TCP segments.
    Packet(PacketStep),
}

/// Event that a step waits for; the end of the connection also ends the wait. Data received before
/// the step counts, unless an earlier waiting step consumed it. In frames, where replies have no
/// order, only data received since the last other step counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaited {
    /// Interim response, or the head of a final one.
    Interim,
    /// A complete response, or the end of a stream instead.
    Response,
    /// End of the connection.
    End,
    /// The server's SETTINGS in HTTP/2.
    Settings,
    /// End of the stream of a WebSocket over HTTP/2.
    SocketEnd,
}

/// Event of a line; times count from the line's start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TalkEvent {
    pub at: Nanos,
    pub what: What,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    Connected,
    /// The TLS handshake is complete.
    Secure,
    /// The kernel accepted this many of our bytes; this many bytes were received.
    Sent(usize),
    Received(usize),
    /// FIN or RST from us; the end of our interest.
    HalfClosed,
    ResetByUs,
    ClosedByUs,
    /// FIN from the peer, or a broken connection.
    Ended,
    Broken(FailureClass),
    /// A segment in either direction, as a line; the event that a step waited for.
    Segment(String),
    Saw(PacketKind),
}

/// End of a conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TalkEnd {
    /// No connection was established.
    Unconnected(FailureClass),
    /// The server closed it; broke it.
    Closed,
    Broken(FailureClass),
    /// Everything got a response, and the connection stays open.
    Open,
    /// Something was pending at the deadline, and the connection stays open.
    Silent,
    /// One of our limits stopped the conversation, or prevented its start.
    Bounded,
    /// Closed by us, by the script or on request.
    #[default]
    Ours,
}

/// A completed conversation.
#[derive(Clone, Debug)]
pub struct Talk {
    pub start: Nanos,
    /// Time of establishment, since the start.
    pub connected: Option<Nanos>,
    pub over: Nanos,
    pub end: TalkEnd,
    /// Steps; empty if they are known from elsewhere.
    pub steps: Vec<Move>,
    pub replies: Replies,
    /// Number of responses before the follow-up was sent; `None` if it was not sent.
    pub before_follow_up: Option<usize>,
    pub sent: u64,
    pub received: u64,
    /// The first [`RECEIVED_MAX`] received bytes, after TLS.
    pub raw: Vec<u8>,
    pub events: Vec<TalkEvent>,
    /// All bytes of the script were sent.
    pub all_sent: bool,
}

impl Talk {
    /// Returns the responses to the script, and those to the follow-up.
    pub fn own_and_following(&self) -> (&[Response], &[Response]) {
        let responses = &self.replies.responses;
        responses.split_at(self.before_follow_up.unwrap_or(responses.len()).min(responses.len()))
    }
}

/// State of a line for a load: held connections count as occupied slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineState {
    /// The start is in the future.
    Waiting,
    Connecting,
    Open,
    Over,
}

/// Result of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// Nothing can be done until this instant, unless a connection becomes ready.
    Until(Nanos),
    Over,
}

/// Active conversations.
pub struct Conversations<'t> {
    lines: Vec<Option<Conversation>>,
    free: Vec<usize>,
    done: Vec<(usize, Talk)>,
    /// Conversations to end at the next turn.
    endings: Vec<(usize, Close)>,
    /// A response of a watched conversation began or ended.
    news: bool,
    tls: Option<&'t mut dyn TlsFactory>,
    /// Governor that approves everything before it is sent.
    governor: &'t mut Governor,
    /// Positions of beacons, which are invisible to callers.
    beacons: Vec<usize>,
    /// The first positions belong to conversations carried over from an earlier play to the next
    /// one; which of them are over, and when one of the others needs a turn.
    carried: usize,
    carried_over: Vec<(usize, Talk)>,
    carried_due: Nanos,
    /// Additional time for a connection before the time of its conversation starts.
    patience: Nanos,
    /// Destination of raw TCP segments, if there is a device.
    link: Option<&'t mut dyn PacketLink>,
}

impl std::fmt::Debug for Conversations<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stage").field("lines", &self.lines.len()).finish_non_exhaustive()
    }
}

impl<'t> Conversations<'t> {
    /// Creates the conversations of these scripts.
    /// `tls` is required if a script has a `tls_name`.
    pub fn new(
        tls: Option<&'t mut dyn TlsFactory>,
        governor: &'t mut Governor,
    ) -> Conversations<'t> {
        Conversations {
            lines: Vec::new(),
            free: Vec::new(),
            done: Vec::new(),
            endings: Vec::new(),
            news: false,
            tls,
            governor,
            beacons: Vec::new(),
            carried: 0,
            carried_over: Vec::new(),
            carried_due: Nanos::NEVER,
            patience: Nanos::ZERO,
            link: None,
        }
    }

    /// Sets the destination of raw TCP segments.
    #[must_use]
    pub fn linked(self, link: Option<&'t mut dyn PacketLink>) -> Conversations<'t> {
        Conversations { link, ..self }
    }

    /// Keeps these conversations running alongside all others, until [`Conversations::return_carried`].
    /// Must be called before a conversation is added.
    #[must_use]
    pub fn carrying(mut self, carried: &mut Carried) -> Conversations<'t> {
        debug_assert!(self.lines.is_empty(), "carried conversations occupy the first slots");
        let (lines, ends) = carried.pass_to_play(self.patience);
        self.carried = lines.len();
        if ends {
            self.endings = (0..lines.len()).map(|slot| (slot, Close::Orderly)).collect();
        }
        self.lines = lines;
        self
    }

    /// Gives the carried conversations back to `carried` after everything else was played.
    pub fn return_carried(mut self, carried: &mut Carried) {
        carried.return_carried(self.lines.drain(..self.carried), self.carried_over);
    }

    /// Returns the number of carried conversations, including those not started yet.
    pub fn carried_count(&self) -> usize {
        self.lines[..self.carried].iter().flatten().count()
    }

    /// Returns when a carried conversation needs a turn, as of the last turn.
    fn carried_due(&self) -> Nanos {
        self.carried_due
    }

    /// Allows for packet loss on the path: a conversation that is not connected at its deadline
    /// gets this additional time, and its own time is restored when it is connected. A quarter of
    /// it is for the response: a lost segment costs 200 ms and its doubles, a lost SYN a second and
    /// its doubles.
    #[must_use]
    pub fn patient(self, patience: Nanos) -> Conversations<'t> {
        Conversations { patience, ..self }
    }

    /// Returns the rate limiter.
    pub fn governor(&mut self) -> &mut Governor {
        self.governor
    }

    /// Adds a conversation; returns a number unique among the active ones.
    pub fn add(&mut self, mut script: TalkScript) -> usize {
        script.deadline += Nanos(self.patience.0 / 4);
        let raw = script.is_raw();
        let mut line = Conversation::new(script, self.patience);
        if raw && let Some(from) = self.link.as_mut().and_then(|link| link.place()) {
            line.speak_raw(from);
        }
        let line = Some(line);
        match self.free.pop() {
            Some(place) => {
                self.lines[place] = line;
                place
            }
            None => {
                self.lines.push(line);
                self.lines.len() - 1
            }
        }
    }

    /// Does everything that is possible now.
    pub fn turn(&mut self, io: &mut impl Io) -> Pause {
        for (slot, how) in std::mem::take(&mut self.endings) {
            self.release(io, slot, how);
        }
        self.exchange_packets(io);
        let now = io.now();
        self.governor.look(now);
        if let Some(script) = self.governor.beacon(now) {
            let place = self.add(script);
            self.beacons.push(place);
        }
        let mut next: Option<Nanos> = None;
        self.carried_due = Nanos::NEVER;
        for slot in 0..self.lines.len() {
            let Some(line) = &mut self.lines[slot] else { continue };
            let case_over = self.governor.case_ends().is_some_and(|at| at <= now);
            let cut = slot >= self.carried && case_over;
            // nothing is opened once the time of the case is up
            if cut && line.is_waiting() {
                line.cut_off(now);
            }
            if line.due() <= now && !line.is_over() {
                line.turn(io, slot as Slot, &mut self.tls, self.governor);
                self.news |= line.take_news(self.governor);
            }
            // a line whose own deadline is reached at the same instant has ended because of that
            if cut {
                line.cut_off(now);
            }
            match line.is_over() {
                true => self.retire(io, slot),
                false if slot < self.carried => {
                    self.carried_due = self.carried_due.min(line.due());
                }
                false => next = Some(next.map_or(line.due(), |at| at.min(line.due()))),
            }
        }
        if self.exchange_packets(io) {
            // replies of the peer's machine arrived while packets were sent
            next = Some(now);
        }
        let bounds = [self.governor.due(), self.governor.case_ends().filter(|at| *at > now)];
        next.map_or(Pause::Over, |at| {
            Pause::Until(bounds.into_iter().flatten().fold(at, Nanos::min))
        })
    }

    /// Handles one readiness event.
    pub fn handle(&mut self, io: &mut impl Io, event: Ready) {
        let slot = event.slot as usize;
        let Some(Some(line)) = self.lines.get_mut(slot) else { return };
        line.ready(io, event.slot, self.governor);
        self.news |= line.take_news(self.governor);
        if line.is_over() {
            self.retire(io, slot);
        }
    }

    /// Adds steps to an active conversation; ignored if it is over.
    pub fn add_steps(&mut self, slot: usize, steps: Vec<Move>) {
        if let Some(Some(line)) = self.lines.get_mut(slot) {
            line.append_steps(steps);
        }
    }

    /// Calls the director whenever a response of this conversation begins or ends.
    pub fn watch(&mut self, slot: usize) {
        if let Some(Some(line)) = self.lines.get_mut(slot) {
            line.watch();
        }
    }

    /// Returns the received data of an active conversation.
    pub fn replies(&self, slot: usize) -> Option<&Replies> {
        self.lines.get(slot).and_then(Option::as_ref).map(Conversation::replies)
    }

    /// Returns how long the connection of an active conversation took to establish.
    pub fn connected(&self, slot: usize) -> Option<Nanos> {
        self.lines.get(slot).and_then(Option::as_ref).and_then(Conversation::connected)
    }

    /// Ends a conversation at the next turn, by FIN or by RST.
    pub fn end(&mut self, slot: usize, how: Close) {
        self.endings.push((slot, how));
    }

    /// Ends a conversation now, by FIN or by RST.
    pub fn release(&mut self, io: &mut impl Io, slot: usize, how: Close) {
        let Some(Some(line)) = self.lines.get_mut(slot) else { return };
        line.give_up(io, slot as Slot, how);
        self.retire(io, slot);
    }

    /// Ends everything now, except conversations that are carried to the next play.
    pub fn abandon(&mut self, io: &mut impl Io) {
        for slot in self.carried..self.lines.len() {
            self.release(io, slot, Close::Orderly);
        }
    }

    pub fn line_state(&self, slot: usize) -> LineState {
        self.lines
            .get(slot)
            .and_then(Option::as_ref)
            .map_or(LineState::Over, Conversation::line_state)
    }

    /// Returns the number of active conversations, including those not started yet.
    pub fn count(&self) -> usize {
        self.lines[self.carried..].iter().flatten().count() - self.beacons.len()
    }

    /// Returns the number of open connections.
    pub fn open_count(&self) -> usize {
        let lines = self.lines[self.carried..].iter().flatten();
        lines.filter(|line| line.line_state() == LineState::Open).count()
    }

    /// Takes the conversations completed since the previous call.
    pub fn finished(&mut self) -> Vec<(usize, Talk)> {
        std::mem::take(&mut self.done)
    }

    /// Returns whether data of a watched conversation arrived since the previous call.
    fn take_news(&mut self) -> bool {
        std::mem::take(&mut self.news)
    }

    fn retire(&mut self, io: &mut impl Io, slot: usize) {
        let Some(mut line) = self.lines[slot].take() else { return };
        match &mut self.link {
            Some(link) if line.is_raw() => line.end_without_state(io.now(), &mut **link),
            _ => io.close(slot as Slot, Close::Orderly),
        }
        if line.was_admitted() {
            self.governor.closed();
        }
        if slot < self.carried {
            // its position stays reserved: the next play identifies the others by position
            self.carried_over.push((slot, line.into_talk()));
            return;
        }
        self.free.push(slot);
        let sign = line.is_sign_of_life();
        let talk = line.into_talk();
        if sign {
            self.governor.heard(&talk);
        }
        match self.beacons.iter().position(|place| *place == slot) {
            Some(at) => {
                self.beacons.swap_remove(at);
                if talk.end == TalkEnd::Ours {
                    self.governor.repeat_beacon();
                }
            }
            None => self.done.push((slot, talk)),
        }
    }
}
