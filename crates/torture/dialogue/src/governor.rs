//! Rate limiter that approves every connection, request and byte before it is sent, in every phase.
//! It also records why a run must stop.
//!
//! Limits per second hold for any second: a sliding window counts what was sent.

mod requests;
mod window;

pub use requests::{Requests, SendPermit};

use crate::front::front;
use crate::replies::Response;
use crate::talk::{Move, Talk, TalkEnd, TalkScript};
use conduit::Peer;
use sample::FailureClass;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use units::Nanos;
use window::Window;

/// Reason why a run must end early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Stopped by the user.
    Interrupted,
    /// Limit of time or amount that was reached.
    Bound(String),
    /// The target requested the stop, in this way.
    TargetRequest(String),
    /// The permission was withdrawn; with the reason.
    Permission(String),
}

impl Stop {
    pub fn id(&self) -> &'static str {
        match self {
            Stop::Interrupted => "interrupted",
            Stop::Bound(_) => "bound",
            Stop::TargetRequest(_) => "wish",
            Stop::Permission(_) => "permission",
        }
    }

    /// Returns the reason as the end of "it ended early: ".
    pub fn why(&self) -> &str {
        match self {
            Stop::Interrupted => "interrupted",
            Stop::Bound(why) | Stop::TargetRequest(why) | Stop::Permission(why) => why,
        }
    }
}

/// Limits of a run. `None` means unlimited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Maximum number of open connections, including probes.
    pub connections_max: u64,
    /// Maximum number of new connections in any second, including probes.
    pub opens_max: u64,
    /// Maximum number of requests started in any second, without probes.
    pub requests_max: Option<u64>,
    /// Maximum number of bytes sent in any second.
    pub bytes_max: Option<u64>,
    /// Maximum number of bytes sent on a connection before a response.
    pub message_max: u64,
    pub case_max: Nanos,
    pub run_max: Option<Nanos>,
    /// Maximum time without a correct response to a probe before the run stops.
    pub lost_max: Option<Nanos>,
}

/// Traffic sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    pub connections: u64,
    pub requests: u64,
    pub bytes: u64,
}

impl Spent {
    /// Formats `3 connections, 1 request, 512 bytes`.
    pub fn words(self) -> String {
        let counted = |n: u64, word: &str| format!("{n} {word}{}", if n == 1 { "" } else { "s" });
        let connections = self.connections;
        let requests = self.requests;
        let all = [(connections, "connection"), (requests, "request"), (self.bytes, "byte")];
        all.map(|(n, word)| counted(n, word)).join(", ")
    }

    /// Returns the traffic since `before`.
    pub fn since(self, before: Spent) -> Spent {
        Spent {
            connections: self.connections - before.connections,
            requests: self.requests - before.requests,
            bytes: self.bytes - before.bytes,
        }
    }
}

/// Decision on opening a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    Now,
    /// Try again at this instant.
    At(Nanos),
    /// The run has stopped, or the peer is not a permitted address.
    Never,
}

/// Response field with which a server asks a tester to stop, with its value.
pub const STOP_FIELD: (&str, &str) = ("loadstone-torture", "stop");

/// Interval of repeated requests for a connection if there is no room.
const RETRY_INTERVAL: Nanos = Nanos::from_millis(10);
/// Connections and new connections per second reserved for probes, at most half of all.
const PROBES_OPEN: u64 = 4;
const PROBES_OPENED: u64 = 10;
/// Bytes per second reserved for probes, at most a quarter of all.
const PROBES_BYTES: u64 = 8 << 10;
/// Divisor of the bytes per second that gives the smallest useful piece.
const PIECE: u64 = 64;

/// Enforces the limits.
#[derive(Clone, Debug)]
pub struct Governor {
    bounds: Option<Bounds>,
    /// Classified addresses; empty for any.
    pinned: Vec<SocketAddr>,
    /// True if PUT, DELETE and PATCH are permitted.
    writes: bool,
    /// Effective stress may be repeated.
    repeats: bool,
    open: u64,
    opens: Window,
    requests: Window,
    bytes: Window,
    spent: Spent,
    began: Option<Nanos>,
    /// Time limit of the case, counted from its first connection.
    case_ends: CaseTime,
    /// Minimum time of the current case.
    case_least: Nanos,
    /// The end of the time for all cases.
    cases_end: Option<Nanos>,
    lost_since: Option<Nanos>,
    /// A regular request got a response.
    answered: bool,
    stop: Option<Stop>,
    beacon: Option<Beacon>,
    /// Cases that are not permitted here, with the reason.
    barred: BTreeMap<String, String>,
    /// Cases that are not permitted once third-party machines are seen in front of the server.
    in_front: Vec<String>,
}

/// Regular request that announces the run and the case in the server's log. [`SPENT`] in the text
/// is replaced with the traffic since it was set.
#[derive(Clone, Debug)]
struct Beacon {
    script: TalkScript,
    due: Nanos,
    before: Spent,
}

/// Placeholder for totals in a beacon.
pub const SPENT: &str = "<spent>";

/// Interval of beacons during a case.
pub const BEACON_EVERY: Nanos = Nanos::from_secs(60);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CaseTime {
    None,
    NotBegun,
    Ends(Nanos),
}

impl Governor {
    /// Permits traffic within `bounds`, to these addresses only.
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

    /// Permits everything, for a simulated world.
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
            cases_end: None,
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

    /// Forbids repeating inputs that had an effect.
    pub fn forbid_repeats(&mut self) {
        self.repeats = false;
    }

    /// Returns whether effective stress may be repeated for confirmation.
    pub fn may_repeat(&self) -> bool {
        self.repeats
    }

    pub fn spent(&self) -> Spent {
        self.spent
    }

    /// Returns the number of open connections.
    pub fn open(&self) -> u64 {
        self.open
    }

    /// Ends the run; the first reason is kept.
    pub fn stop(&mut self, why: Stop) {
        self.stop.get_or_insert(why);
    }

    pub fn stopped(&self) -> Option<&Stop> {
        self.stop.as_ref()
    }

    /// Checks the time: whether the run has lasted too long, or probes were lost for too long.
    pub fn look(&mut self, now: Nanos) {
        let Some(bounds) = &self.bounds else { return };
        let shown = units::show::duration;
        if let (Some(began), Some(span)) = (self.began, bounds.run_max)
            && now >= began + span
        {
            let why = format!("the time limit of a run, {}, was reached", shown(span));
            self.stop(Stop::Bound(why));
        } else if let (Some(since), Some(span)) = (self.lost_since, bounds.lost_max)
            && now >= since + span
        {
            let why = format!("no probe got a response for {}", shown(span));
            self.stop(Stop::Bound(why));
        }
    }

    /// Returns when [`Governor::look`] may find something, or a beacon is due.
    pub fn due(&self) -> Option<Nanos> {
        let bounds = self.bounds.as_ref()?;
        let run = self.began.zip(bounds.run_max).map(|(began, span)| began + span);
        let lost = self.lost_since.zip(bounds.lost_max).map(|(since, span)| since + span);
        let beacon = self.beacon.as_ref().map(|beacon| beacon.due);
        [run, lost, beacon].into_iter().flatten().min()
    }

    /// Sets the request sent every [`BEACON_EVERY`] from now on, alongside everything else.
    pub fn set_beacon(&mut self, now: Nanos, script: Option<TalkScript>) {
        let due = now + BEACON_EVERY;
        let before = self.spent;
        self.beacon = script.map(|script| Beacon { script, due, before });
    }

    /// Returns the due beacon.
    pub fn beacon(&mut self, now: Nanos) -> Option<TalkScript> {
        let beacon = self.beacon.as_mut().filter(|beacon| beacon.due <= now)?;
        beacon.due = now + BEACON_EVERY;
        let spent = self.spent.since(beacon.before).words();
        let mut script = TalkScript { start: now, probe: true, ..beacon.script.clone() };
        for step in &mut script.steps {
            if let Move::Send(bytes) = step {
                *bytes = String::from_utf8_lossy(bytes).replace(SPENT, &spent).into_bytes();
            }
        }
        Some(script)
    }

    /// Schedules the last beacon again because it failed.
    pub(crate) fn repeat_beacon(&mut self) {
        if let Some(beacon) = &mut self.beacon {
            beacon.due = Nanos::ZERO;
        }
    }

    /// Skips this case for this reason.
    pub fn bar(&mut self, id: &str, why: &str) {
        self.barred.insert(id.to_owned(), why.to_owned());
    }

    /// Sets cases to skip once a response shows third-party machines in front of the server: its
    /// owner cannot give permission for those.
    pub fn bar_if_third_party(&mut self, ids: Vec<String>) {
        self.in_front = ids;
    }

    /// Returns why this case is not permitted here.
    pub fn why_forbidden(&self, id: &str) -> Option<&str> {
        self.barred.get(id).map(String::as_str)
    }

    /// Starts a case; its time begins with its first connection.
    pub fn begin_case(&mut self) {
        self.case_ends = CaseTime::NotBegun;
    }

    pub fn end_case(&mut self) {
        self.case_ends = CaseTime::None;
        self.case_least = Nanos::ZERO;
    }

    /// Sets this time as the minimum limit of a case that has not sent anything yet: the user
    /// requested it.
    pub fn lengthen_case(&mut self, span: Nanos) {
        self.case_least = span;
    }

    /// Sets the end of the time for all cases.
    pub fn end_cases_at(&mut self, at: Nanos) {
        self.cases_end = Some(at);
    }

    /// Returns whether the time for all cases is up.
    pub fn cases_are_over(&self, now: Nanos) -> bool {
        self.cases_end.is_some_and(|at| at <= now)
    }

    /// Returns the time limit of the case; `None` if the time for all cases ends earlier, or
    /// without limits.
    pub fn case_limit(&self) -> Option<Nanos> {
        let bounds = self.bounds.as_ref()?;
        let by_all = self.cases_end.is_some() && self.case_ends() == self.cases_end;
        (!by_all).then(|| bounds.case_max.max(self.case_least))
    }

    /// Returns when the time of the case is up; everything except probes ends then.
    pub fn case_ends(&self) -> Option<Nanos> {
        match self.case_ends {
            CaseTime::Ends(at) => Some(at),
            CaseTime::None | CaseTime::NotBegun => None,
        }
    }

    /// Decides whether a connection may be opened now; with [`Admission::Now`] it counts as open
    /// until [`Governor::closed`].
    pub fn admit(&mut self, now: Nanos, peer: &Peer, probe: bool) -> Admission {
        self.admit_after(now, peer, probe, 0)
    }

    /// Decides on a connection that `others` precede or follow in the same slot.
    pub fn admit_after(&mut self, now: Nanos, peer: &Peer, probe: bool, others: u64) -> Admission {
        let mut opens = 1 + others;
        self.began.get_or_insert(now);
        self.look(now);
        if let Some(address) = &peer.address()
            && !self.pinned.is_empty()
            && !self.pinned.contains(address)
        {
            let why = format!("a connection to {address} was requested without permission");
            self.stop(Stop::Permission(why));
        }
        if self.stop.is_some() {
            return Admission::Never;
        }
        if let Some(bounds) = &self.bounds {
            let kept = if probe { 0 } else { PROBES_OPEN.min(bounds.connections_max / 2) };
            if self.open + kept >= bounds.connections_max {
                return Admission::At(now + RETRY_INTERVAL);
            }
            let kept = if probe { 0 } else { PROBES_OPENED.min(bounds.opens_max / 2) };
            // if fewer are permitted than it needs, it takes all of them
            opens = opens.min(bounds.opens_max.saturating_sub(kept).max(1));
            if self.opens.room(now) < kept + opens {
                return Admission::At(self.opens.free_at(kept + opens));
            }
            if !probe && self.case_ends == CaseTime::NotBegun {
                let end = now + bounds.case_max.max(self.case_least);
                self.case_ends = CaseTime::Ends(self.cases_end.map_or(end, |all| all.min(end)));
            }
        }
        self.opens.take(now, opens);
        self.open += 1;
        self.spent.connections += 1 + others;
        Admission::Now
    }

    /// Marks an admitted connection as closed.
    pub fn closed(&mut self) {
        self.open = self.open.checked_sub(1).expect("a closed connection was admitted before");
    }

    /// Starts a request, or returns when to ask again.
    ///
    /// # Errors
    /// Fails if no request may start now, with the instant from which one may.
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

    /// Renews the grant of requests at an earlier instant. The grant is valid for a moment; after
    /// that, requests are counted again.
    ///
    /// # Errors
    /// Fails with the instant from which they may be sent.
    pub fn renew(
        &mut self,
        granted: Nanos,
        now: Nanos,
        count: u64,
        probe: bool,
    ) -> Result<(), Nanos> {
        if probe || self.requests.postpone(granted, now) {
            return Ok(());
        }
        if self.requests.room(now) < count {
            return Err(self.requests.free_at(count));
        }
        self.requests.take(now, count);
        Ok(())
    }

    /// Returns how many of these bytes may be sent now: zero if there is no room for a useful
    /// piece.
    ///
    /// # Errors
    /// Fails if there is no room now, with the instant from which there is.
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

    /// Counts sent bytes.
    pub fn sent(&mut self, now: Nanos, count: usize) {
        self.bytes.take(now, count as u64);
        self.spent.bytes += count as u64;
    }

    /// Returns the maximum number of bytes on one connection before a response.
    pub fn message_max(&self) -> u64 {
        self.bounds.as_ref().map_or(u64::MAX, |bounds| bounds.message_max)
    }

    /// Handles the end of a probe, a plain request or a beacon: records whether the target requests
    /// us to stop, and whether it still responds.
    pub fn heard(&mut self, talk: &Talk) {
        talk.replies.responses.iter().for_each(|response| self.note_response(response));
        let unreachable = match talk.end {
            TalkEnd::Unconnected(class) | TalkEnd::Broken(class) => {
                class == FailureClass::Unreachable
            }
            _ => false,
        };
        // continuing would mean unexpected traffic later
        if unreachable && self.answered {
            let why = "this machine can no longer reach the server: host or network unreachable"
                .to_owned();
            self.stop(Stop::Bound(why));
        }
        if talk.replies.responses.iter().any(|response| response.complete) {
            self.lost_since = None;
            self.answered = true;
        } else if !matches!(talk.end, TalkEnd::Ours | TalkEnd::Bounded) {
            self.lost_since.get_or_insert(talk.start + talk.over);
        }
    }

    /// Checks whether the response to a regular request asks us to stop.
    pub fn note_response(&mut self, response: &Response) {
        if !self.in_front.is_empty()
            && let Some(provider) = front(response)
        {
            let why = format!(
                "{provider} responds in front of the server, but the proof says \"behind: none\""
            );
            for id in std::mem::take(&mut self.in_front) {
                self.bar(&id, &why);
            }
        }
        let (name, value) = STOP_FIELD;
        if response.field(name).any(|found| found.eq_ignore_ascii_case(value)) {
            let why = "the server asked us to stop (Loadstone-Torture: stop)";
            self.stop(Stop::TargetRequest(why.to_owned()));
        }
        if response.status == 429 && response.has_field("retry-after") {
            let why = "the server asked us to retry later (429 with Retry-After)";
            self.stop(Stop::TargetRequest(why.to_owned()));
        }
    }
}

#[cfg(test)]
mod tests;
