//! An open load of valid requests on kept connections. Each request is due at a precomputed instant
//! and timed from it. Requests beyond the limit are not sent and count as not served.

use super::steps::{LoadedCall, Met};
use crate::GATE;
use crate::pressure::RecoveryWatch;
use crate::probes::ProbeListener;
use conduit::Close;
use dialogue::replies::Response;
use dialogue::talk::{Conversations, Director, Move, Talk, TalkEnd, TalkScript, Wake};
use sample::{Blame, FailureClass};
use std::collections::{BTreeMap, VecDeque};
use torture::judge::Plain;
use torture::result::Probe;
use units::Nanos;

/// Number of requests after which a connection is replaced, so that little is stored per
/// connection, and so that servers that close after 100 requests do not interfere.
const CALLS_MAX: usize = 100;
/// Lifetime of a connection, longer than servers keep one.
const LIFE: Nanos = Nanos::from_secs(86_400);
/// Connections idle for this long are closed, because they may occupy a slot.
const IDLE_MAX: Nanos = Nanos::from_secs(1);
/// The interval of the limit on new connections.
const SECOND: Nanos = Nanos::SECOND;

/// Requested page with its usual response.
#[derive(Clone, Debug)]
pub(super) struct Route {
    pub(super) request: Vec<u8>,
    pub(super) plain: Plain,
    /// Timeout of each request, from its due instant.
    pub(super) deadline: Nanos,
    /// Maximum share of outstanding requests.
    pub(super) share: f64,
}

/// A number of requests per second of a route, for a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Flow {
    pub(super) route: usize,
    /// Start, since the start of the load.
    pub(super) from: Nanos,
    pub(super) until: Nanos,
    /// Interval between two requests.
    pub(super) gap: Nanos,
}

impl Flow {
    pub(super) fn new(route: usize, from: Nanos, span: Nanos, rate: f64) -> Flow {
        let gap = Nanos::from_secs_f64(1.0 / rate.max(RATE_MIN));
        Flow { route, from, until: from + span, gap: gap.max(Nanos(1)) }
    }
}

/// Minimum rate in requests per second.
const RATE_MIN: f64 = 0.1;

/// The offered load.
#[derive(Clone, Debug)]
pub(super) struct OfferedLoad {
    pub(super) routes: Vec<Route>,
    pub(super) flows: Vec<Flow>,
    /// Conversations of another kind, in order of their start; their results are not used here.
    pub(super) odd: Vec<(Nanos, TalkScript)>,
    /// Template of a conversation with this server; its steps are replaced.
    pub(super) pattern: TalkScript,
    /// True to resend a request on a connection that the server closed without a response.
    pub(super) resends: bool,
    /// Maximum numbers of outstanding requests, and of new connections per second.
    pub(super) waiting_max: usize,
    pub(super) opens_max: u64,
    /// Instant from which probes are watched until they are normal, for at most [`GATE`]; the flows
    /// end then.
    pub(super) released: Nanos,
    pub(super) calm: RecoveryWatch,
    /// The start of the run, from which probes count.
    pub(super) origin: Nanos,
}

#[derive(Clone, Copy, Debug)]
struct LoadTarget {
    flow: usize,
    due: Nanos,
    late: Nanos,
    again: bool,
}

/// Connection of the load.
#[derive(Debug)]
struct LoadConnection {
    /// Number of consumed responses.
    answered: usize,
    call: Option<LoadTarget>,
    idle_since: Nanos,
    /// True while we close it.
    dropped: bool,
}

/// Director that plays a load.
#[derive(Debug)]
pub(super) struct Load {
    offer: OfferedLoad,
    start: Option<Nanos>,
    /// Next request of each flow, and number of started conversations of another kind.
    next: Vec<u64>,
    odd_begun: usize,
    lines: BTreeMap<usize, LoadConnection>,
    /// Idle connections, the last used at the end.
    idle: Vec<usize>,
    /// Resent, because the server closed the idle connection meanwhile.
    again: VecDeque<LoadTarget>,
    opened: VecDeque<Nanos>,
    calls: Vec<LoadedCall>,
    /// Maximum number of open connections.
    open_max: usize,
    /// Instants at which the server broke connections.
    broken_at: Vec<Nanos>,
    short: bool,
    /// True if a limit stopped it.
    cut_off: bool,
    over_at: Nanos,
}

impl Load {
    pub(super) fn new(offer: OfferedLoad) -> Load {
        Load {
            next: vec![0; offer.flows.len()],
            odd_begun: 0,
            offer,
            start: None,
            lines: BTreeMap::new(),
            idle: Vec::new(),
            again: VecDeque::new(),
            opened: VecDeque::new(),
            calls: Vec::new(),
            open_max: 0,
            broken_at: Vec::new(),
            short: false,
            cut_off: false,
            over_at: Nanos::ZERO,
        }
    }

    /// Returns all due calls in the order of their ends; instants count from the start of the load.
    pub(super) fn calls(&self) -> &[LoadedCall] {
        &self.calls
    }

    pub(super) fn start(&self) -> Nanos {
        self.start.unwrap_or_default()
    }

    pub(super) fn released_at(&self) -> Nanos {
        self.start() + self.offer.released
    }

    pub(super) fn over_at(&self) -> Nanos {
        self.over_at
    }

    pub(super) fn recovered_at(&self) -> Option<Nanos> {
        self.offer.calm.recovered_at()
    }

    pub(super) fn established(&self) -> u64 {
        self.open_max as u64
    }

    pub(super) fn broken_at(&self) -> &[Nanos] {
        &self.broken_at
    }

    pub(super) fn is_short(&self) -> bool {
        self.short
    }

    /// Returns the maximum number of outstanding requests.
    pub(super) fn waiting_max(&self) -> usize {
        self.offer.waiting_max
    }

    pub(super) fn is_cut_off(&self) -> bool {
        self.cut_off
    }

    fn note(&mut self, wanted: LoadTarget, met: Met, now: Nanos) {
        let flow = &self.offer.flows[wanted.flow];
        self.calls.push(LoadedCall {
            route: flow.route,
            due: wanted.due - self.start(),
            late: wanted.late,
            over: now - wanted.due,
            met,
        });
    }

    fn ended(&mut self, now: Nanos, place: usize, talk: &Talk) {
        let Some(line) = self.lines.remove(&place) else { return };
        self.idle.retain(|idle| *idle != place);
        match talk.end {
            TalkEnd::Broken(_) => self.broken_at.push(talk.start + talk.over),
            TalkEnd::Unconnected(class) if class.blame() == Blame::Driver => self.short = true,
            TalkEnd::Bounded => self.cut_off = true,
            _ => {}
        }
        let Some(wanted) = line.call else { return };
        let response = talk.replies.responses.get(line.answered);
        let met = match response {
            Some(response) if response.complete => self.judge_response(wanted, response),
            // closed between two requests: any client retries on a new connection
            None if line.answered > 0 && !wanted.again && self.resends(talk.end) => {
                self.again.push_back(LoadTarget { again: true, ..wanted });
                return;
            }
            Some(_) => Met::Short,
            None => without(talk.end),
        };
        self.note(wanted, met, now);
    }

    fn resends(&self, end: TalkEnd) -> bool {
        self.offer.resends && matches!(end, TalkEnd::Closed | TalkEnd::Broken(_))
    }

    fn route(&self, wanted: LoadTarget) -> &Route {
        &self.offer.routes[self.offer.flows[wanted.flow].route]
    }

    fn judge_response(&self, wanted: LoadTarget, response: &Response) -> Met {
        match response.status {
            _ if self.route(wanted).plain.is(response) => Met::Right,
            429 | 503 => Met::Shed,
            500.. => Met::Fault,
            _ => Met::Wrong,
        }
    }

    /// Consumes arrived responses and abandons late requests.
    fn observe(&mut self, now: Nanos, stage: &mut Conversations<'_>) {
        let busy: Vec<usize> =
            self.lines.iter().filter(|(_, line)| line.call.is_some()).map(|(at, _)| *at).collect();
        for place in busy {
            let line = &self.lines[&place];
            let Some(wanted) = line.call else { continue };
            let response = stage.replies(place).and_then(|all| all.responses.get(line.answered));
            let whole = response.filter(|response| response.complete);
            let met = match whole {
                Some(response) => self.judge_response(wanted, response),
                None if wanted.due + self.route(wanted).deadline <= now => Met::Silent,
                None => continue,
            };
            let stays = whole.is_some_and(|response| response.persistent);
            self.note(wanted, met, now);
            let Some(line) = self.lines.get_mut(&place) else { continue };
            line.call = None;
            line.answered += 1;
            line.idle_since = now;
            line.dropped = !stays || line.answered >= CALLS_MAX;
            match line.dropped {
                true => stage.end(place, Close::Orderly),
                false => self.idle.push(place),
            }
        }
    }

    /// Sends due requests; returns the instant of the next.
    fn begin(&mut self, now: Nanos, stage: &mut Conversations<'_>) -> Nanos {
        while let Some(wanted) = self.again.pop_front() {
            self.send(now, wanted, stage);
        }
        let start = self.start.unwrap_or(now);
        let mut soonest = self.begin_odd(now, start, stage);
        for flow in 0..self.offer.flows.len() {
            loop {
                let one = self.offer.flows[flow];
                let due = start + one.from + one.gap * self.next[flow];
                if due >= start + one.until {
                    break;
                }
                if due > now {
                    soonest = soonest.min(due);
                    break;
                }
                self.next[flow] += 1;
                self.send(now, LoadTarget { flow, due, late: now - due, again: false }, stage);
            }
        }
        soonest
    }

    fn begin_odd(&mut self, now: Nanos, start: Nanos, stage: &mut Conversations<'_>) -> Nanos {
        while let Some((from, script)) = self.offer.odd.get(self.odd_begun) {
            if start + *from > now {
                return start + *from;
            }
            stage.add(TalkScript { start: now, ..script.clone() });
            self.odd_begun += 1;
        }
        Nanos::NEVER
    }

    fn send(&mut self, now: Nanos, wanted: LoadTarget, stage: &mut Conversations<'_>) {
        if self.is_crowded(wanted) {
            return self.note(wanted, Met::Unsent, now);
        }
        let step = Move::Send(self.route(wanted).request.clone());
        let idle = if wanted.again { None } else { self.idle.pop() };
        if let Some(place) = idle {
            stage.add_steps(place, vec![step]);
            if let Some(line) = self.lines.get_mut(&place) {
                line.call = Some(wanted);
            }
            return;
        }
        while self.opened.front().is_some_and(|at| *at + SECOND <= now) {
            self.opened.pop_front();
        }
        let full = self.lines.len() >= self.offer.waiting_max;
        let hasty = self.opened.len() as u64 >= self.offer.opens_max;
        if full || hasty {
            return self.note(wanted, if full { Met::Unsent } else { Met::Unopened }, now);
        }
        self.opened.push_back(now);
        let script = TalkScript {
            start: now,
            steps: vec![step],
            deadline: LIFE,
            hold: true,
            ..self.offer.pattern.clone()
        };
        let place = stage.add(script);
        stage.watch(place);
        let line =
            LoadConnection { answered: 0, call: Some(wanted), idle_since: now, dropped: false };
        self.lines.insert(place, line);
    }

    /// Returns whether its route has reached the maximum of outstanding requests.
    fn is_crowded(&self, wanted: LoadTarget) -> bool {
        let (flows, share) = (&self.offer.flows, self.route(wanted).share);
        if share >= 1.0 {
            return false;
        }
        let own = |one: &LoadTarget| flows[one.flow].route == flows[wanted.flow].route;
        let calls = self.lines.values().filter_map(|line| line.call.as_ref());
        calls.filter(|call| own(call)).count() as f64 >= self.offer.waiting_max as f64 * share
    }

    /// Closes idle connections.
    fn tidy(&mut self, now: Nanos, stage: &mut Conversations<'_>) {
        let lines = &mut self.lines;
        self.idle.retain(|place| {
            let Some(line) = lines.get_mut(place) else { return false };
            if line.idle_since + IDLE_MAX > now {
                return true;
            }
            line.dropped = true;
            stage.end(*place, Close::Orderly);
            false
        });
    }

    /// Returns the earliest timeout of an outstanding request or an idle connection.
    fn expiry(&self) -> Nanos {
        let each = self.lines.values().filter(|line| !line.dropped);
        let at = each.map(|line| match line.call {
            Some(wanted) => wanted.due + self.route(wanted).deadline,
            None => line.idle_since + IDLE_MAX,
        });
        at.min().unwrap_or(Nanos::NEVER)
    }

    /// Returns whether a limit stopped it, or the load is over and probes are normal.
    fn is_complete(&self, now: Nanos) -> bool {
        let released = self.released_at();
        let pressing =
            |line: &LoadConnection| line.call.is_some_and(|wanted| wanted.due < released);
        let over = now >= released && !self.lines.values().any(pressing);
        self.cut_off || now >= released + GATE || over && self.offer.calm.is_calm()
    }
}

impl Director for Load {
    fn direct(
        &mut self,
        now: Nanos,
        stage: &mut Conversations<'_>,
        over: Vec<(usize, Talk)>,
    ) -> Wake {
        if self.start.is_none() {
            self.start = Some(now);
            self.offer.calm.release(now + self.offer.released - self.offer.origin);
        }
        for (place, talk) in &over {
            self.ended(now, *place, talk);
        }
        self.observe(now, stage);
        let next = self.begin(now, stage);
        self.tidy(now, stage);
        let open = self.lines.values().filter(|line| !line.dropped).count();
        self.open_max = self.open_max.max(open);
        if self.is_complete(now) {
            self.over_at = now;
            return Wake::Done;
        }
        let released = self.released_at();
        let end = if now < released { released } else { released + GATE };
        Wake::At(next.min(self.expiry()).min(end))
    }

    fn watches(&self) -> bool {
        true
    }

    fn on_abandoned(&mut self, over: Vec<(usize, Talk)>) {
        for (_, talk) in over {
            if matches!(talk.end, TalkEnd::Broken(_)) {
                self.broken_at.push(talk.start + talk.over);
            }
        }
    }
}

impl ProbeListener for Load {
    fn probed(&mut self, probe: &Probe) {
        self.offer.calm.note_probe(probe);
    }
}

/// Returns the result of a request without any response byte.
fn without(end: TalkEnd) -> Met {
    match end {
        TalkEnd::Unconnected(FailureClass::Refused) => Met::Refused,
        TalkEnd::Unconnected(class) if class.blame() == Blame::Driver => Met::Ours,
        TalkEnd::Unconnected(_) | TalkEnd::Silent | TalkEnd::Open => Met::Silent,
        TalkEnd::Closed => Met::Closed,
        TalkEnd::Broken(_) => Met::Reset,
        TalkEnd::Bounded | TalkEnd::Ours => Met::Ours,
    }
}
