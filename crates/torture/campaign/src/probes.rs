//! Probes of the server's health: regular requests on their own schedule. A late response does not
//! delay the next probe, and each has a separate deadline.

mod beside;
mod kept;

pub use beside::{ProbeListener, Probed};

use dialogue::replies::Response;
use dialogue::talk::{Conversations, Talk, TalkEnd, TalkScript, What};
use kept::KeptConnection;
use sample::{Blame, FailureClass};
use std::collections::BTreeMap;
use torture::judge;
use torture::judge::Plain;
use torture::result::{Probe, ProbeKind, Seen};
use units::{Nanos, show};

/// Timeout of a probe, unless the server is slower: see [`Probing::settle`].
pub const PROBE_DEADLINE: Nanos = Nanos::from_secs(2);
/// A probe's deadline is at least this multiple of the idle server's 99th percentile.
pub const DEADLINE_FACTOR: u64 = 10;
/// Maximum number of outstanding probes; a probe due beyond it counts as lost.
pub const WAITING_MAX: usize = 256;

/// Settings of the health probes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probing {
    /// Interval between two probes of a kind.
    pub every: Nanos,
    /// Timeout of each probe.
    pub deadline: Nanos,
    /// True to send probes on a kept connection too.
    pub keep: bool,
}

impl Default for Probing {
    /// Returns five per second of each kind, for servers on this machine.
    fn default() -> Probing {
        Probing { every: Nanos::from_millis(200), deadline: PROBE_DEADLINE, keep: true }
    }
}

impl Probing {
    /// Sets a deadline not shorter than ten times the idle server's 99th percentile.
    pub fn settle(&mut self, p99: Nanos) {
        self.deadline = self.deadline.max(p99 * DEADLINE_FACTOR);
    }
}

/// Template of a probe.
#[derive(Clone, Debug)]
pub struct Pattern {
    /// Script for a new connection; the probes set deadline and instants.
    pub new: TalkScript,
    /// Request on the kept connection.
    pub keep: Vec<u8>,
    /// The usual response to either.
    pub plain: Plain,
    /// Start of the run.
    pub origin: Nanos,
    /// Current case.
    pub case: String,
}

const CUT_OFF: &str = "a truncated response";

/// Due instant of a probe, with its delay.
#[derive(Clone, Copy, Debug)]
struct ProbeCall {
    due: Nanos,
    late: Nanos,
}

/// The probes of both kinds, as a part of a director.
#[derive(Debug)]
pub struct Probes {
    probing: Probing,
    pattern: Pattern,
    /// Instants at which the next probe of each kind is due; `None` before the first.
    next: Option<[Nanos; 2]>,
    stopped: bool,
    new: BTreeMap<usize, ProbeCall>,
    keeper: KeptConnection,
    over: Vec<Probe>,
}

impl Probes {
    pub fn new(probing: &Probing, pattern: Pattern) -> Probes {
        Probes {
            probing: probing.clone(),
            keeper: KeptConnection::default(),
            pattern,
            next: None,
            stopped: false,
            new: BTreeMap::new(),
            over: Vec::new(),
        }
    }

    /// Removes its own conversations from the completed ones, and returns the others. Must be
    /// called before a conversation is started.
    pub fn absorb(&mut self, now: Nanos, over: Vec<(usize, Talk)>) -> Vec<(usize, Talk)> {
        let mut others = Vec::new();
        for (place, talk) in over {
            if let Some(call) = self.new.remove(&place) {
                self.over.extend(new_connection_probe(
                    &self.pattern,
                    call,
                    &talk,
                    self.probing.deadline,
                ));
            } else if !self.keeper.owns(place) {
                others.push((place, talk));
            } else if let Some(found) = self.keeper.ended(now, place, &talk) {
                self.note_kept(found);
            }
        }
        others
    }

    /// Starts due probes. Returns the instant of the next call.
    pub fn begin(&mut self, now: Nanos, stage: &mut Conversations<'_>) -> Nanos {
        let half = Nanos(self.probing.every.0 / 2);
        let [mut new, mut keep] = *self.next.get_or_insert([now, now + half]);
        while !self.stopped && new <= now {
            self.begin_new(now, new, stage);
            new += self.probing.every;
        }
        while !self.stopped && self.probing.keep && keep <= now {
            self.begin_kept(keep);
            keep += self.probing.every;
        }
        self.next = Some([new, keep]);
        for found in self.keeper.turn(now, stage, &self.pattern, self.probing.deadline) {
            self.note_kept(found);
        }
        let due = match (self.stopped, self.probing.keep) {
            (true, _) => Nanos::NEVER,
            (false, true) => new.min(keep),
            (false, false) => new,
        };
        due.min(self.keeper.expiry(self.probing.deadline))
    }

    /// Starts no further probes.
    pub fn stop(&mut self) {
        self.stopped = true;
    }

    /// Returns whether every started probe is over.
    pub fn is_idle(&self) -> bool {
        self.new.is_empty() && self.keeper.is_idle()
    }

    /// Returns the number of its outstanding conversations.
    pub fn count(&self) -> usize {
        self.new.len() + self.keeper.count()
    }

    /// Returns probes completed since the previous call.
    pub fn take(&mut self) -> Vec<Probe> {
        std::mem::take(&mut self.over)
    }

    fn begin_new(&mut self, now: Nanos, due: Nanos, stage: &mut Conversations<'_>) {
        if self.new.len() == WAITING_MAX {
            let probe = unsent_probe(&self.pattern, ProbeKind::New, due);
            self.over.push(probe);
            return;
        }
        let (mut script, deadline) = (self.pattern.new.clone(), self.probing.deadline);
        (script.start, script.deadline) = (due, deadline);
        self.new.insert(stage.add(script), ProbeCall { due, late: now - due });
    }

    fn begin_kept(&mut self, due: Nanos) {
        if !self.keeper.queue(due, WAITING_MAX) {
            let probe = unsent_probe(&self.pattern, ProbeKind::Keep, due);
            self.over.push(probe);
        }
    }

    fn note_kept(&mut self, found: kept::KeptReading) {
        let (pattern, deadline) = (&self.pattern, self.probing.deadline);
        let (seen, reported, ours) = match &found.met {
            kept::Met::Response(response) => {
                let (seen, reported) = judge_probe(&pattern.plain, response);
                (seen, reported, false)
            }
            kept::Met::Half => (Seen::Lost, CUT_OFF.to_owned(), false),
            kept::Met::Nothing => (Seen::Lost, no_response(deadline), false),
            kept::Met::End(end) => (Seen::Lost, without(*end, deadline), is_ours(*end)),
        };
        let refused = matches!(&found.met, kept::Met::End(end) if is_refused(*end));
        self.over.push(Probe {
            kind: ProbeKind::Keep,
            due: found.call.due - pattern.origin,
            late: found.call.late,
            connected: found.connected,
            first_byte: found.first_byte,
            over: found.over,
            seen,
            said: reported,
            ours,
            refused,
            case: pattern.case.clone(),
        });
    }
}

fn unsent_probe(pattern: &Pattern, kind: ProbeKind, due: Nanos) -> Probe {
    Probe {
        kind,
        due: due - pattern.origin,
        late: Nanos::ZERO,
        connected: None,
        first_byte: None,
        over: Nanos::ZERO,
        seen: Seen::Lost,
        said: format!("not sent: {WAITING_MAX} probes already wait for a response"),
        ours: false,
        refused: false,
        case: pattern.case.clone(),
    }
}

/// Returns the result of a probe on a new connection; `None` if we cut it short.
fn new_connection_probe(
    pattern: &Pattern,
    call: ProbeCall,
    talk: &Talk,
    deadline: Nanos,
) -> Option<Probe> {
    let response = talk.replies.responses.first();
    let whole = response.filter(|response| response.complete);
    if matches!(talk.end, TalkEnd::Ours | TalkEnd::Bounded) && whole.is_none() {
        return None;
    }
    let (seen, reported, ours) = match whole {
        Some(response) => {
            let (seen, reported) = judge_probe(&pattern.plain, response);
            (seen, reported, false)
        }
        None if response.is_some() && talk.end == TalkEnd::Silent => {
            (Seen::Lost, format!("no complete response in {}", show::duration(deadline)), false)
        }
        None if response.is_some() => (Seen::Lost, CUT_OFF.to_owned(), false),
        None => (Seen::Lost, without(talk.end, deadline), is_ours(talk.end)),
    };
    let came = talk.events.iter().find(|event| matches!(event.what, What::Received(_)));
    Some(Probe {
        kind: ProbeKind::New,
        due: call.due - pattern.origin,
        late: call.late,
        connected: talk.connected,
        first_byte: came.map(|event| event.at),
        over: talk.over,
        seen,
        said: reported,
        ours,
        refused: is_refused(talk.end),
        case: pattern.case.clone(),
    })
}

fn judge_probe(plain: &Plain, response: &Response) -> (Seen, String) {
    let status = response.status;
    if plain.is(response) {
        return (Seen::Correct, status.to_string());
    }
    match status {
        429 | 503 => (Seen::Shed, status.to_string()),
        _ if status == plain.status => (Seen::Lost, format!("{status} with a different body")),
        _ => (Seen::Lost, status.to_string()),
    }
}

fn no_response(deadline: Nanos) -> String {
    format!("no response in {}", show::duration(deadline))
}

fn without(end: TalkEnd, deadline: Nanos) -> String {
    match end {
        TalkEnd::Unconnected(FailureClass::ConnectTimeout) => {
            format!("no connection in {}", show::duration(deadline))
        }
        TalkEnd::Unconnected(class) => format!("no connection: {}", class.explain()),
        TalkEnd::Closed => judge::NOTHING.to_owned(),
        TalkEnd::Broken(_) => "reset".to_owned(),
        TalkEnd::Open | TalkEnd::Silent | TalkEnd::Bounded | TalkEnd::Ours => no_response(deadline),
    }
}

/// Returns whether we ran out of descriptors or ports, which shows nothing about the server.
fn is_ours(end: TalkEnd) -> bool {
    matches!(end, TalkEnd::Unconnected(class) if class.blame() == Blame::Driver)
}

fn is_refused(end: TalkEnd) -> bool {
    end == TalkEnd::Unconnected(FailureClass::Refused)
}

/// Returns the percentile of response times; a lost probe counts with its waiting time. Zero
/// without probes.
pub(crate) fn percentile(probes: &[Probe], percent: usize) -> Nanos {
    let mut times: Vec<Nanos> = probes.iter().map(|probe| probe.over).collect();
    times.sort_unstable();
    let rank = (times.len() * percent).div_ceil(100).max(1);
    times.get(rank - 1).copied().unwrap_or(Nanos::ZERO)
}
