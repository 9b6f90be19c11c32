//! Conversations: what a case says, said on connections of their own, and everything that came of
//! it. Many at once, each from an instant of its own: a case, the probes beside it and the
//! connections that press are all lines of one [`Conversations`].

mod carried;
mod director;
mod line;
mod raw;

pub use carried::Carried;
pub use director::{All, Director, Lull, Wake, play};

use crate::governor::Governor;
use crate::http2::Spoken;
use crate::packets::{PacketKind, PacketLink, PacketStep};
use crate::replies::{Replies, Response};
use conduit::{Close, Io, OpenOptions, Peer, Ready, Slot, TlsFactory};
use line::Conversation;
use sample::FailureClass;
use units::Nanos;

/// Bytes received on one connection that are kept as they came.
pub const RECEIVED_MAX: usize = 64 << 10;
/// Events of one connection that are kept.
pub const EVENTS_MAX: usize = 4_096;

/// What one connection is to say.
#[derive(Clone, Debug)]
pub struct TalkScript {
    pub peer: Peer,
    pub options: OpenOptions,
    /// Name for SNI; `None`: what is sent goes out as it is.
    pub tls_name: Option<String>,
    /// How what comes back is read, and whether it is answered.
    pub spoken: Spoken,
    /// When to begin.
    pub start: Nanos,
    pub steps: Vec<Move>,
    /// The methods that the server is taken to answer to.
    pub methods: Vec<String>,
    /// Time for everything, from the start.
    pub deadline: Nanos,
    /// A valid GET for the same connection, sent when every response has come and the connection
    /// stands.
    pub follow_up: Option<Vec<u8>>,
    /// How long the connection is watched after its last response, for surplus bytes.
    pub grace: Nanos,
    /// How long the server is given to close a connection that it said it would close.
    pub linger: Nanos,
    /// Hold the connection when everything is said and answered, until it ends or the deadline.
    pub hold: bool,
    /// An ordinary request that sees how the server is: room is kept for it among the bounds, and what
    /// it is told to stop, stops the run.
    pub probe: bool,
}

impl TalkScript {
    /// These steps, of which it is not known to whom they were said.
    pub fn of(steps: Vec<Move>) -> TalkScript {
        TalkScript {
            peer: Peer::Unix(std::path::PathBuf::new()),
            options: OpenOptions::default(),
            tls_name: None,
            spoken: Spoken::Http1,
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

    /// How hands are shaken where packets of our own making go among those of its connection.
    pub(crate) fn by_hand(&self) -> Option<Vec<u8>> {
        let over_quic = self.spoken == Spoken::Http3;
        over_quic.then(|| crate::http3::packets::handshake(&self.steps)).flatten()
    }

    /// It is held segment by segment, past all sockets.
    pub fn is_raw(&self) -> bool {
        is_raw(&self.steps)
    }
}

/// These steps are of a conversation that is held segment by segment.
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
    /// Takes so many bytes at most of what has come, while reading is stopped.
    Sip(usize),
    /// Asks for a new handshake within this session of TLS 1.2 (RFC 5246 section 7.4.1.2). A script
    /// with this step sees the records of the server whole, decrypted behind their headers.
    Renegotiate,
    /// Of a conversation that is held segment by segment.
    Packet(PacketStep),
}

/// What a step waits for; the end of the connection ends the wait too. What came before the step began counts,
/// unless an earlier step that waited took it; in frames, where answers have no order, only what came since the last
/// step of another kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaited {
    /// An interim response, or the head of a final one.
    Interim,
    /// A whole response, or the end of a stream in its place.
    Response,
    /// The end of the connection.
    End,
    /// The server's SETTINGS, where HTTP/2 is spoken.
    Settings,
}

/// What happened, in order; times count from the line's start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TalkEvent {
    pub at: Nanos,
    pub what: What,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    Connected,
    /// The TLS handshake is over.
    Secure,
    /// So many bytes of ours were taken by the kernel; so many of theirs came.
    Sent(usize),
    Received(usize),
    /// FIN or RST from us; the end of our interest.
    HalfClosed,
    ResetByUs,
    ClosedByUs,
    /// FIN from them, or the connection broke.
    Ended,
    Broken(FailureClass),
    /// A segment, ours or theirs, as a line; what a step saw that waited for one.
    Segment(String),
    Saw(PacketKind),
}

/// How a conversation ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TalkEnd {
    /// No connection came to be.
    Unconnected(FailureClass),
    /// The server ended it in order; broke it.
    Closed,
    Broken(FailureClass),
    /// Everything was answered, and the connection stays open.
    Open,
    /// Something was still to come when the time was up, and the connection stays open.
    Silent,
    /// A bound of ours ended it, or kept it from beginning.
    Bounded,
    /// We ended it, as the script says, or were told to stop.
    #[default]
    Ours,
}

/// A conversation that is over.
#[derive(Clone, Debug)]
pub struct Talk {
    pub start: Nanos,
    /// Counted from the start.
    pub connected: Option<Nanos>,
    pub over: Nanos,
    pub end: TalkEnd,
    /// What was to be said; empty where it is known from elsewhere.
    pub steps: Vec<Move>,
    pub replies: Replies,
    /// Responses that had come before the follow-up was sent; `None` when it was not.
    pub before_follow_up: Option<usize>,
    pub sent: u64,
    pub received: u64,
    /// The first [`RECEIVED_MAX`] bytes that came, after TLS.
    pub raw: Vec<u8>,
    pub events: Vec<TalkEvent>,
    /// Every byte of the script was handed over.
    pub all_sent: bool,
}

impl Talk {
    /// Responses to what the script said, and behind them those to the request that followed.
    pub fn own_and_behind(&self) -> (&[Response], &[Response]) {
        let responses = &self.replies.responses;
        responses.split_at(self.before_follow_up.unwrap_or(responses.len()).min(responses.len()))
    }
}

/// Where a line stands, for who presses: connections that are held count as slots taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Its start has not come.
    Waiting,
    Connecting,
    Open,
    Over,
}

/// What a turn ends in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// Nothing to do until then, unless a connection becomes ready.
    Until(Nanos),
    Over,
}

/// Conversations under way.
pub struct Conversations<'t> {
    lines: Vec<Option<Conversation>>,
    free: Vec<usize>,
    done: Vec<(usize, Talk)>,
    /// Conversations to be ended at the next turn.
    endings: Vec<(usize, Close)>,
    /// A response of a watched conversation began or ended.
    news: bool,
    tls: Option<&'t mut dyn TlsFactory>,
    /// Asked before anything goes out.
    governor: &'t mut Governor,
    /// Places of beacons: of no concern to anybody here.
    beacons: Vec<usize>,
    /// The first so many places are those of conversations that came from an earlier play, and go on in
    /// the next one; which of them are over, and when one of the others wants a turn.
    carried: usize,
    carried_over: Vec<(usize, Talk)>,
    carried_due: Nanos,
    /// What a connection may take to stand before the time of its conversation runs.
    patience: Nanos,
    /// Where segments of our own making go, where there is a device for them.
    link: Option<&'t mut dyn PacketLink>,
}

impl std::fmt::Debug for Conversations<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stage").field("lines", &self.lines.len()).finish_non_exhaustive()
    }
}

impl<'t> Conversations<'t> {
    /// `tls` must be there when a script has a `tls_name`.
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

    /// Has conversations that are held segment by segment go out here.
    #[must_use]
    pub fn linked(self, link: Option<&'t mut dyn PacketLink>) -> Conversations<'t> {
        Conversations { link, ..self }
    }

    /// Has these go on beside everything else, until [`Conversations::put_down`]. Nothing was taken on yet.
    #[must_use]
    pub fn carrying(mut self, carried: &mut Carried) -> Conversations<'t> {
        debug_assert!(self.lines.is_empty(), "theirs are the first places");
        let (lines, ends) = carried.pick_up(self.patience);
        self.carried = lines.len();
        if ends {
            self.endings = (0..lines.len()).map(|slot| (slot, Close::Orderly)).collect();
        }
        self.lines = lines;
        self
    }

    /// Gives them back once everything else has been played.
    pub fn put_down(mut self, carried: &mut Carried) {
        carried.put_down(self.lines.drain(..self.carried), self.carried_over);
    }

    /// Conversations that go on beside this play, those among them that have yet to begin.
    pub fn carried_count(&self) -> usize {
        self.lines[..self.carried].iter().flatten().count()
    }

    /// When one of those wants a turn, as of the last turn.
    fn carried_due(&self) -> Nanos {
        self.carried_due
    }

    /// The way to the server loses packets by itself: whoever is not connected at the end of his time is
    /// waited for so much longer, and has that time back when he is. A quarter of it is for the response:
    /// a lost segment costs 200 ms and its doubles where a lost SYN costs a second and its.
    #[must_use]
    pub fn patient(self, patience: Nanos) -> Conversations<'t> {
        Conversations { patience, ..self }
    }

    /// Who keeps the bounds.
    pub fn governor(&mut self) -> &mut Governor {
        self.governor
    }

    /// Takes a conversation on; the number tells it from the others that are under way.
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

    /// Does what can be done now.
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
            if line.due() <= now {
                line.turn(io, slot as Slot, &mut self.tls, self.governor);
                self.news |= line.take_news(self.governor);
            }
            // a line whose own time is up at the same instant has ended by it
            if slot >= self.carried && self.governor.case_ends().is_some_and(|at| at <= now) {
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
            // answers of the peer's machine came while packets went out
            next = Some(now);
        }
        let bounds = [self.governor.due(), self.governor.case_ends().filter(|at| *at > now)];
        next.map_or(Pause::Over, |at| {
            Pause::Until(bounds.into_iter().flatten().fold(at, Nanos::min))
        })
    }

    /// Takes one readiness event.
    pub fn handle(&mut self, io: &mut impl Io, event: Ready) {
        let slot = event.slot as usize;
        let Some(Some(line)) = self.lines.get_mut(slot) else { return };
        line.ready(io, event.slot, self.governor);
        self.news |= line.take_news(self.governor);
        if line.is_over() {
            self.retire(io, slot);
        }
    }

    /// More to say in a conversation that is under way; nothing where it is over.
    pub fn say(&mut self, slot: usize, steps: Vec<Move>) {
        if let Some(Some(line)) = self.lines.get_mut(slot) {
            line.say_more(steps);
        }
    }

    /// The director is to be heard whenever a response of this conversation begins or ends.
    pub fn watch(&mut self, slot: usize) {
        if let Some(Some(line)) = self.lines.get_mut(slot) {
            line.watch();
        }
    }

    /// What has come in a conversation that is under way.
    pub fn replies(&self, slot: usize) -> Option<&Replies> {
        self.lines.get(slot).and_then(Option::as_ref).map(Conversation::replies)
    }

    /// How long the connection of a conversation under way took to stand.
    pub fn connected(&self, slot: usize) -> Option<Nanos> {
        self.lines.get(slot).and_then(Option::as_ref).and_then(Conversation::connected)
    }

    /// Ends a conversation at the next turn, in order or by a reset.
    pub fn end(&mut self, slot: usize, how: Close) {
        self.endings.push((slot, how));
    }

    /// Ends a conversation now, in order or by a reset.
    pub fn release(&mut self, io: &mut impl Io, slot: usize, how: Close) {
        let Some(Some(line)) = self.lines.get_mut(slot) else { return };
        line.give_up(io, slot as Slot, how);
        self.retire(io, slot);
    }

    /// Ends everything now, but for what goes on in the next play.
    pub fn abandon(&mut self, io: &mut impl Io) {
        for slot in self.carried..self.lines.len() {
            self.release(io, slot, Close::Orderly);
        }
    }

    pub fn standing(&self, slot: usize) -> Standing {
        self.lines.get(slot).and_then(Option::as_ref).map_or(Standing::Over, Conversation::standing)
    }

    /// Conversations that are under way, those among them that have yet to begin.
    pub fn count(&self) -> usize {
        self.lines[self.carried..].iter().flatten().count() - self.beacons.len()
    }

    /// Connections that stand now.
    pub fn open_count(&self) -> usize {
        let lines = self.lines[self.carried..].iter().flatten();
        lines.filter(|line| line.standing() == Standing::Open).count()
    }

    /// What is over since this was asked last.
    pub fn finished(&mut self) -> Vec<(usize, Talk)> {
        std::mem::take(&mut self.done)
    }

    /// Something came in a watched conversation since this was asked last.
    fn take_news(&mut self) -> bool {
        std::mem::take(&mut self.news)
    }

    fn retire(&mut self, io: &mut impl Io, slot: usize) {
        let Some(mut line) = self.lines[slot].take() else { return };
        match &mut self.link {
            Some(link) if line.is_raw() => line.part_raw(io.now(), &mut **link),
            _ => io.close(slot as Slot, Close::Orderly),
        }
        if line.was_admitted() {
            self.governor.closed();
        }
        if slot < self.carried {
            // its place stays its own: the next play tells the others by theirs
            self.carried_over.push((slot, line.into_talk()));
            return;
        }
        self.free.push(slot);
        let sign = line.is_sign();
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
