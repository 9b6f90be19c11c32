//! The bounds, kept: every connection, request and byte of a torture is asked for here before it
//! goes out, on whichever stage it is said. It also knows why a run has to stop.
//!
//! Bounds per second hold for every second, wherever it begins: a window slides over what went out.

mod requests;
mod window;

pub use requests::{Leave, Requests};

use crate::front::front;
use crate::replies::Response;
use crate::talk::{Move, Talk, TalkEnd, TalkScript};
use conduit::Peer;
use sample::FailureClass;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use units::Nanos;
use window::Window;

/// Why a run is to end before its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The user's wish.
    Interrupted,
    /// A bound of time or amount was reached: which.
    Bound(String),
    /// The target asked for it: how.
    Wish(String),
    /// The permission is gone: what became of it.
    Permission(String),
}

impl Stop {
    pub fn id(&self) -> &'static str {
        match self {
            Stop::Interrupted => "interrupted",
            Stop::Bound(_) => "bound",
            Stop::Wish(_) => "wish",
            Stop::Permission(_) => "permission",
        }
    }

    /// Why, as the end of "it ended early: ".
    pub fn why(&self) -> &str {
        match self {
            Stop::Interrupted => "interrupted",
            Stop::Bound(why) | Stop::Wish(why) | Stop::Permission(why) => why,
        }
    }
}

/// The bounds in force. `None`: none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Connections open at once, those of probes too.
    pub connections_max: u64,
    /// New connections in any second, those of probes too.
    pub opens_max: u64,
    /// Requests begun in any second, probes not counted.
    pub requests_max: Option<u64>,
    /// Bytes handed over in any second.
    pub bytes_max: Option<u64>,
    /// Bytes said on a connection before a response came.
    pub message_max: u64,
    pub case_max: Nanos,
    pub run_max: Option<Nanos>,
    /// How long probes may stay without a right response before the run stops.
    pub lost_max: Option<Nanos>,
}

/// What went out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    pub connections: u64,
    pub requests: u64,
    pub bytes: u64,
}

impl Spent {
    /// `3 connections, 1 request, 512 bytes`.
    pub fn words(self) -> String {
        let counted = |n: u64, word: &str| format!("{n} {word}{}", if n == 1 { "" } else { "s" });
        let (connections, requests) = (self.connections, self.requests);
        let all = [(connections, "connection"), (requests, "request"), (self.bytes, "byte")];
        all.map(|(n, word)| counted(n, word)).join(", ")
    }

    /// What went out since `before`.
    pub fn since(self, before: Spent) -> Spent {
        Spent {
            connections: self.connections - before.connections,
            requests: self.requests - before.requests,
            bytes: self.bytes - before.bytes,
        }
    }
}

/// Whether a connection may be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    Now,
    /// To be asked again then.
    At(Nanos),
    /// The run has stopped, or the peer is none of the addresses that were permitted.
    Never,
}

/// The field by which a server asks a tester to stop, and its value.
pub const STOP_FIELD: (&str, &str) = ("loadstone-torture", "stop");

/// How soon a connection that finds no room asks again.
const ASK_AGAIN: Nanos = Nanos::from_millis(10);
/// Connections and new connections a second that are kept free for probes, at most half of all.
const PROBES_OPEN: u64 = 4;
const PROBES_OPENED: u64 = 10;
/// Bytes a second that are kept free for probes, at most a quarter of all.
const PROBES_BYTES: u64 = 8 << 10;
/// The smallest piece worth waiting for, in parts of a second's bytes.
const PIECE: u64 = 64;

/// Keeps the bounds.
#[derive(Clone, Debug)]
pub struct Governor {
    bounds: Option<Bounds>,
    /// The addresses that were classified; empty: any.
    pinned: Vec<SocketAddr>,
    /// PUT, DELETE and PATCH are permitted.
    writes: bool,
    /// What had an effect may be tried once more.
    repeats: bool,
    open: u64,
    opens: Window,
    requests: Window,
    bytes: Window,
    spent: Spent,
    began: Option<Nanos>,
    /// A case has begun; from its first connection on its time counts.
    case_ends: CaseTime,
    /// What the case under way may take at least.
    case_least: Nanos,
    lost_since: Option<Nanos>,
    /// An ordinary request was answered.
    answered: bool,
    stop: Option<Stop>,
    beacon: Option<Beacon>,
    /// Cases that are not permitted here, and why.
    barred: BTreeMap<String, String>,
    /// Cases that are not permitted once machines of others are seen in front of the server.
    in_front: Vec<String>,
}

/// An ordinary request that names the run and the case to the server's log. [`SPENT`] in it stands for
/// what went out since it was set.
#[derive(Clone, Debug)]
struct Beacon {
    script: TalkScript,
    due: Nanos,
    before: Spent,
}

/// What a beacon has in the place of totals.
pub const SPENT: &str = "<spent>";

/// How often a beacon is sent while a case goes on.
pub const BEACON_EVERY: Nanos = Nanos::from_secs(60);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CaseTime {
    None,
    NotBegun,
    Ends(Nanos),
}

impl Governor {
    /// Permits what `bounds` say, towards these addresses alone.
    pub fn new(bounds: Bounds, pinned: Vec<SocketAddr>, writes: bool) -> Governor {
        Governor {
            opens: Window::new(Some(bounds.opens_max)),
            requests: Window::new(bounds.requests_max),
            bytes: Window::new(bounds.bytes_max),
            bounds: Some(bounds),
            pinned,
            writes,
            ..Governor::unbounded()
        }
    }

    /// Permits everything: for a made-up world.
    pub fn unbounded() -> Governor {
        Governor {
            bounds: None,
            pinned: Vec::new(),
            writes: true,
            repeats: true,
            open: 0,
            opens: Window::new(None),
            requests: Window::new(None),
            bytes: Window::new(None),
            spent: Spent::default(),
            began: None,
            case_ends: CaseTime::None,
            case_least: Nanos::ZERO,
            lost_since: None,
            answered: false,
            stop: None,
            beacon: None,
            barred: BTreeMap::new(),
            in_front: Vec::new(),
        }
    }

    pub fn bounds(&self) -> Option<&Bounds> {
        self.bounds.as_ref()
    }

    pub fn writes(&self) -> bool {
        self.writes
    }

    /// What did harm is not tried a second time.
    pub fn forbid_repeats(&mut self) {
        self.repeats = false;
    }

    /// Whether pressure that had an effect may be tried once more, to be sure of it.
    pub fn may_repeat(&self) -> bool {
        self.repeats
    }

    pub fn spent(&self) -> Spent {
        self.spent
    }

    /// Connections open now.
    pub fn open(&self) -> u64 {
        self.open
    }

    /// Ends the run; the first reason stands.
    pub fn stop(&mut self, why: Stop) {
        self.stop.get_or_insert(why);
    }

    pub fn stopped(&self) -> Option<&Stop> {
        self.stop.as_ref()
    }

    /// Looks at the clock: whether the run has lasted too long, or probes were lost for too long.
    pub fn look(&mut self, now: Nanos) {
        let Some(bounds) = &self.bounds else { return };
        let shown = units::show::duration;
        if let (Some(began), Some(span)) = (self.began, bounds.run_max)
            && now >= began + span
        {
            let why = format!("the bound on the time of a run, {}, was reached", shown(span));
            self.stop(Stop::Bound(why));
        } else if let (Some(since), Some(span)) = (self.lost_since, bounds.lost_max)
            && now >= since + span
        {
            let why = format!("no probe was answered for {}", shown(span));
            self.stop(Stop::Bound(why));
        }
    }

    /// When [`Governor::look`] may find something, or a beacon falls due.
    pub fn due(&self) -> Option<Nanos> {
        let bounds = self.bounds.as_ref()?;
        let run = self.began.zip(bounds.run_max).map(|(began, span)| began + span);
        let lost = self.lost_since.zip(bounds.lost_max).map(|(since, span)| since + span);
        let beacon = self.beacon.as_ref().map(|beacon| beacon.due);
        [run, lost, beacon].into_iter().flatten().min()
    }

    /// What is sent every [`BEACON_EVERY`] from now on, beside whatever is under way.
    pub fn set_beacon(&mut self, now: Nanos, script: Option<TalkScript>) {
        let (due, before) = (now + BEACON_EVERY, self.spent);
        self.beacon = script.map(|script| Beacon { script, due, before });
    }

    /// The beacon that is due.
    pub fn beacon(&mut self, now: Nanos) -> Option<TalkScript> {
        let beacon = self.beacon.as_mut().filter(|beacon| beacon.due <= now)?;
        beacon.due = now + BEACON_EVERY;
        let said = self.spent.since(beacon.before).words();
        let mut script = TalkScript { start: now, probe: true, ..beacon.script.clone() };
        for step in &mut script.steps {
            if let Move::Send(bytes) = step {
                *bytes = String::from_utf8_lossy(bytes).replace(SPENT, &said).into_bytes();
            }
        }
        Some(script)
    }

    /// The last one did not come through: it is due again.
    pub(crate) fn repeat_beacon(&mut self) {
        if let Some(beacon) = &mut self.beacon {
            beacon.due = Nanos::ZERO;
        }
    }

    /// This case is skipped, for this reason.
    pub fn bar(&mut self, id: &str, why: &str) {
        self.barred.insert(id.to_owned(), why.to_owned());
    }

    /// These cases are skipped from the moment on at which a response shows that machines of others
    /// stand in front of the server: those are not its owner's to give leave for.
    pub fn bar_in_front(&mut self, ids: Vec<String>) {
        self.in_front = ids;
    }

    /// Why this case may not be had here.
    pub fn barred(&self, id: &str) -> Option<&str> {
        self.barred.get(id).map(String::as_str)
    }

    /// A case begins: its time counts from its first connection on.
    pub fn begin_case(&mut self) {
        self.case_ends = CaseTime::NotBegun;
    }

    pub fn end_case(&mut self) {
        self.case_ends = CaseTime::None;
        self.case_least = Nanos::ZERO;
    }

    /// The case that has begun and has sent nothing so far may take so long, whatever the bound says:
    /// the user asked for this span.
    pub fn lengthen_case(&mut self, span: Nanos) {
        self.case_least = span;
    }

    /// When the time of the case is up; what is not a probe ends then.
    pub fn case_ends(&self) -> Option<Nanos> {
        match self.case_ends {
            CaseTime::Ends(at) => Some(at),
            CaseTime::None | CaseTime::NotBegun => None,
        }
    }

    /// Whether a connection may be opened now; with [`Admission::Now`] it counts as open until
    /// [`Governor::closed`].
    pub fn admit(&mut self, now: Nanos, peer: &Peer, probe: bool) -> Admission {
        self.admit_behind(now, peer, probe, 0)
    }

    /// The same of a connection in whose place others are open before or after it: so many.
    pub fn admit_behind(&mut self, now: Nanos, peer: &Peer, probe: bool, others: u64) -> Admission {
        let mut opens = 1 + others;
        self.began.get_or_insert(now);
        self.look(now);
        if let Some(address) = &peer.address()
            && !self.pinned.is_empty()
            && !self.pinned.contains(address)
        {
            let why = format!("a connection to {address}, which nobody permitted, was asked for");
            self.stop(Stop::Permission(why));
        }
        if self.stop.is_some() {
            return Admission::Never;
        }
        if let Some(bounds) = &self.bounds {
            let kept = if probe { 0 } else { PROBES_OPEN.min(bounds.connections_max / 2) };
            if self.open + kept >= bounds.connections_max {
                return Admission::At(now + ASK_AGAIN);
            }
            let kept = if probe { 0 } else { PROBES_OPENED.min(bounds.opens_max / 2) };
            // where fewer are permitted than it needs, it takes all of them
            opens = opens.min(bounds.opens_max.saturating_sub(kept).max(1));
            if self.opens.room(now) < kept + opens {
                return Admission::At(self.opens.free_at(kept + opens));
            }
            if !probe && self.case_ends == CaseTime::NotBegun {
                self.case_ends = CaseTime::Ends(now + bounds.case_max.max(self.case_least));
            }
        }
        self.opens.take(now, opens);
        self.open += 1;
        self.spent.connections += 1 + others;
        Admission::Now
    }

    /// A connection that was admitted is no more.
    pub fn closed(&mut self) {
        self.open = self.open.checked_sub(1).expect("what is closed was admitted");
    }

    /// Begins a request, or says when to ask again.
    ///
    /// # Errors
    /// The instant from which on one more may begin.
    pub fn request(&mut self, now: Nanos, probe: bool) -> Result<(), Nanos> {
        if !probe {
            if self.requests.room(now) == 0 {
                return Err(self.requests.free_at(1));
            }
            self.requests.take(now, 1);
        }
        self.spent.requests += 1;
        Ok(())
    }

    /// Requests that were granted at an earlier instant go out now. A moment later they are still
    /// those; after that they count once more.
    ///
    /// # Errors
    /// The instant from which on they may.
    pub fn renew(
        &mut self,
        granted: Nanos,
        now: Nanos,
        count: u64,
        probe: bool,
    ) -> Result<(), Nanos> {
        if probe || self.requests.put_off(granted, now) {
            return Ok(());
        }
        if self.requests.room(now) < count {
            return Err(self.requests.free_at(count));
        }
        self.requests.take(now, count);
        Ok(())
    }

    /// How many of these bytes may be handed over now: none, when there is not room enough for a
    /// piece that is worth it.
    ///
    /// # Errors
    /// The instant from which on there is.
    pub fn grant(&mut self, now: Nanos, wanted: usize, probe: bool) -> Result<usize, Nanos> {
        let Some(max) = self.bounds.as_ref().and_then(|bounds| bounds.bytes_max) else {
            return Ok(wanted);
        };
        let kept = if probe { 0 } else { PROBES_BYTES.min(max / 4) };
        let room = self.bytes.room(now).saturating_sub(kept);
        let worth = (wanted as u64).min((max / PIECE).max(1));
        if room < worth {
            return Err(self.bytes.free_at(kept + worth));
        }
        Ok(usize::try_from(room).unwrap_or(usize::MAX).min(wanted))
    }

    /// So many bytes went out.
    pub fn sent(&mut self, now: Nanos, count: usize) {
        self.bytes.take(now, count as u64);
        self.spent.bytes += count as u64;
    }

    /// Bytes that may be said on one connection before a response comes.
    pub fn message_max(&self) -> u64 {
        self.bounds.as_ref().map_or(u64::MAX, |bounds| bounds.message_max)
    }

    /// A probe, a plain request or a beacon is over: whether the target wants us to stop, and
    /// whether it still answers.
    pub fn heard(&mut self, talk: &Talk) {
        talk.replies.responses.iter().for_each(|response| self.told(response));
        let unreachable = match talk.end {
            TalkEnd::Unconnected(class) | TalkEnd::Broken(class) => {
                class == FailureClass::Unreachable
            }
            _ => false,
        };
        // to go on would be to come back later, when nobody expects it
        if unreachable && self.answered {
            let why = "our own way to the server is lost: host or network unreachable".to_owned();
            self.stop(Stop::Bound(why));
        }
        if talk.replies.responses.iter().any(|response| response.complete) {
            self.lost_since = None;
            self.answered = true;
        } else if !matches!(talk.end, TalkEnd::Ours | TalkEnd::Bounded) {
            self.lost_since.get_or_insert(talk.start + talk.over);
        }
    }

    /// What an ordinary request was answered may ask us to stop.
    pub fn told(&mut self, response: &Response) {
        if !self.in_front.is_empty()
            && let Some(provider) = front(response)
        {
            let why = format!(
                "{provider} answers in front of the server, and the proof says \"behind: none\""
            );
            for id in std::mem::take(&mut self.in_front) {
                self.bar(&id, &why);
            }
        }
        let (name, value) = STOP_FIELD;
        if response.field(name).any(|found| found.eq_ignore_ascii_case(value)) {
            let why = "the server asked us to stop (Loadstone-Torture: stop)";
            self.stop(Stop::Wish(why.to_owned()));
        }
        if response.status == 429 && response.has_field("retry-after") {
            let why = "the server asked us to come later (429 with Retry-After)";
            self.stop(Stop::Wish(why.to_owned()));
        }
    }
}

#[cfg(test)]
mod tests;
