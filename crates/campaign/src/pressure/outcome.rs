//! What pressure did to well-behaved clients, in one word and its figures: a pure function over the probes
//! of a round. Every threshold is a constant here, and the report prints them.

use torture::judge::{PressureOutcome, TestOutcome};
use torture::result::{Baseline, Health, Probe, ProbeKind, Seen};
use units::{Nanos, show};

/// Held: at least this share of the time was answered correctly ...
pub const CORRECT_HELD: f64 = 0.995;
/// ... no slower than so many times the quiet server's 99th percentile, or this much more ...
pub const P99_FACTOR: u64 = 3;
pub const P99_MORE: Nanos = Nanos::from_millis(20);
/// ... where up to so many slow probes, less than these, are anybody's hiccup ...
pub const SLOW_FEW: usize = 3;
/// ... and all was as before so soon after the release.
pub const BACK_WITHIN: Nanos = Nanos::SECOND;
/// Shed: less than this share was lost, and more than this was answered 503 or 429.
pub const LOST_SHED: f64 = 0.005;
pub const SHED_SHARE: f64 = 0.01;
/// Degraded, not denied: at least this share was answered correctly, or 503 or 429.
pub const SERVED_DEGRADED: f64 = 0.95;
/// Denied: more than this share of any such span was lost.
pub const DENIED_SHARE: f64 = 0.05;
pub const DENIED_WINDOW: Nanos = Nanos::from_secs(10);
/// Crashed: probes were refused for longer than this after the release.
pub const REFUSED_MAX: Nanos = Nanos::from_secs(3);
/// Resets that come within this of a refusal belong to it: the process died.
const TOGETHER: Nanos = Nanos::SECOND;
/// Connections that are meant to press have to stand, this share of them.
pub const ARMED: f64 = 0.95;
/// A probe that we sent later than this tells of us: what is slow then is not judged ...
pub const LATE_MAX: Nanos = Nanos::from_millis(5);
/// ... and nor is what is lost where some were sent as late as this. Whoever is served well by a
/// machine that is too busy is served well.
pub const LATE_GRAVE: Nanos = Nanos::from_millis(500);
/// Probes that are not answered as before so shortly before the watch ends: the server never came
/// back. Otherwise it is slow.
const AT_THE_END: Nanos = Nanos::from_secs(5);
/// What one probe in so many may do without being anything but chance: the 99th percentile.
const RARE: f64 = 0.01;

/// A round of pressure as the outcome sees it. Instants count from the start of the run.
#[derive(Clone, Debug)]
pub struct Pressed<'a> {
    pub base: Baseline,
    /// Between two probes of a kind.
    pub every: Nanos,
    /// Of the round, in any order.
    pub probes: &'a [Probe],
    /// When the last of the connections had been begun; when all were let go; when the watch ended.
    pub armed_at: Nanos,
    pub released_at: Nanos,
    pub over_at: Nanos,
    /// From when on all probes were as before; `None`: they never were.
    pub back_at: Option<Nanos>,
    pub wanted: u64,
    /// The most that stood at once.
    pub armed: u64,
    /// Some could not be opened for want of descriptors or ports of ours.
    pub short: bool,
    /// When pressing connections were broken by the server.
    pub broken_at: Vec<Nanos>,
}

/// One word and its reasons.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PressureVerdict {
    pub outcome: PressureOutcome,
    pub notes: Vec<String>,
}

/// From which response time on a probe is slow.
pub fn slow_from(base: &Baseline) -> Nanos {
    (base.p99 * P99_FACTOR).max(base.p99 + P99_MORE)
}

impl Pressed<'_> {
    /// Probes of a kind that fell due while all pressed, in the order of their instants. Left out are
    /// those that could not be sent for our own fault, and those that were answered only after the
    /// release: who knows what else they would have met.
    pub fn armed_probes(&self, kind: ProbeKind) -> impl Iterator<Item = &Probe> {
        let mut own: Vec<&Probe> = self
            .probes
            .iter()
            .filter(|probe| probe.kind == kind && !probe.ours)
            .filter(|probe| probe.seen == Seen::Lost || probe.due + probe.over <= self.released_at)
            .filter(|probe| (self.armed_at..self.released_at).contains(&probe.due))
            .collect();
        own.sort_by_key(|probe| probe.due);
        own.into_iter()
    }

    /// The kind that was served worse.
    pub fn worst_kind(&self) -> ProbeKind {
        let good = |kind: ProbeKind| self.shares(kind).map_or(1.0, |shares| shares[0]);
        if good(ProbeKind::Keep) < good(ProbeKind::New) { ProbeKind::Keep } else { ProbeKind::New }
    }

    /// The kept probe's own connection was there and answered while all pressed.
    pub fn kept_served(&self) -> bool {
        let kept = |probe: &Probe| probe.seen == Seen::Correct && probe.connected.is_none();
        self.armed_probes(ProbeKind::Keep).any(kept)
    }

    /// Shares of time of one kind that were correct, shed and lost: a probe stands for the time until
    /// the next falls due.
    fn shares(&self, kind: ProbeKind) -> Option<[f64; 3]> {
        let own: Vec<&Probe> = self.armed_probes(kind).collect();
        let ends = own.iter().skip(1).map(|probe| probe.due);
        let last = own.last()?.due + self.every;
        let mut sums = [0.0; 3];
        for (probe, end) in own.iter().zip(ends.chain([last.min(self.released_at)])) {
            sums[place(probe.seen)] += (end - probe.due).0.max(1) as f64;
        }
        let all: f64 = sums.iter().sum();
        Some(sums.map(|sum| sum / all))
    }

    /// The largest share of a window of [`DENIED_WINDOW`] that was lost.
    fn lost_in_window(&self, kind: ProbeKind) -> f64 {
        let own: Vec<&Probe> = self.armed_probes(kind).collect();
        let lost = |from: Nanos| {
            let within = |probe: &&&Probe| {
                probe.due >= from && probe.due < from + DENIED_WINDOW && probe.seen == Seen::Lost
            };
            own.iter().filter(within).count() as u64
        };
        let most = own.iter().map(|probe| lost(probe.due)).max().unwrap_or(0);
        (self.every * most).0 as f64 / DENIED_WINDOW.0 as f64
    }

    /// Refused probes, by when they fell due.
    fn refused(&self) -> impl Iterator<Item = Nanos> {
        let refused = |probe: &&Probe| probe.kind == ProbeKind::New && probe.refused;
        self.probes.iter().filter(refused).map(|probe| probe.due)
    }

    /// Refused for a moment, and the connections that pressed were broken at the same time.
    fn restarted(&self) -> Option<Nanos> {
        let near = |at: Nanos| {
            let close = |broken: &&Nanos| at.0.abs_diff(broken.0) <= TOGETHER.0;
            self.broken_at.iter().filter(close).count() as u64
        };
        self.refused().find(|at| self.armed > 0 && near(*at) * 2 >= self.armed)
    }

    fn refused_after(&self) -> Nanos {
        let after: Vec<Nanos> = self.refused().filter(|at| *at >= self.released_at).collect();
        match (after.iter().min(), after.iter().max()) {
            (Some(_), Some(last)) => *last - self.released_at,
            _ => Nanos::ZERO,
        }
    }

    /// Nothing could be sent, and that was our fault.
    fn is_short(&self) -> bool {
        self.short || self.probes.iter().any(|probe| probe.ours)
    }

    /// Probes were sent late: by how much at most, and in words.
    fn lateness(&self) -> Option<(Nanos, String)> {
        let late: Vec<Nanos> =
            self.probes.iter().map(|probe| probe.late).filter(|late| *late > LATE_MAX).collect();
        let often = late.len() >= SLOW_FEW && late.len() as f64 > RARE * self.probes.len() as f64;
        let worst = late.iter().copied().max().filter(|worst| often || *worst > LATE_GRAVE)?;
        let words = format!(
            "{} of {} probes were sent more than {} after they were due (up to {}): this machine was too busy",
            late.len(),
            self.probes.len(),
            show::duration(LATE_MAX),
            show::duration(worst)
        );
        Some((worst, words))
    }

    /// To the end of the watch probes were not answered as before.
    fn is_lost_for_good(&self) -> bool {
        let from = self.over_at - AT_THE_END;
        let bad = |probe: &&Probe| probe.due >= from && probe.seen != Seen::Correct;
        self.back_at.is_none() && self.probes.iter().any(|probe| bad(&probe))
    }
}

fn place(seen: Seen) -> usize {
    match seen {
        Seen::Correct => 0,
        Seen::Shed => 1,
        Seen::Lost => 2,
    }
}

/// The figures: of the kind of probe that was served worse.
pub fn health(pressed: &Pressed<'_>) -> Health {
    let kind = pressed.worst_kind();
    let [correct, shed, lost] = pressed.shares(kind).unwrap_or([1.0, 0.0, 0.0]);
    let both = [ProbeKind::New, ProbeKind::Keep];
    let new: Vec<Probe> = pressed.armed_probes(ProbeKind::New).cloned().collect();
    Health {
        correct,
        shed,
        lost,
        probes: both.iter().map(|kind| pressed.armed_probes(*kind).count() as u64).sum(),
        p99: crate::probes::percentile(&new, 99),
        recovery: pressed.back_at.map(|at| at - pressed.released_at),
        cut_short: false,
        wanted: pressed.wanted,
        armed: pressed.armed,
        followed: 0,
        rounds: 1,
        control_denied: None,
    }
}

/// The word, and why.
pub fn outcome(pressed: &Pressed<'_>, health: &Health) -> PressureVerdict {
    let nothing =
        |why: String| PressureVerdict { outcome: PressureOutcome::Inconclusive, notes: vec![why] };
    if pressed.is_short() {
        return nothing("descriptors or ports of ours ran out".to_owned());
    }
    if health.probes == 0 {
        return nothing("no probe fell due while it pressed".to_owned());
    }
    let found = found(pressed, health);
    match (pressed.lateness(), found.outcome) {
        (Some((_, why)), PressureOutcome::Degraded) => nothing(why),
        (Some((worst, why)), word)
            if worst > LATE_GRAVE && TestOutcome::from(word).is_finding() =>
        {
            nothing(why)
        }
        _ => found,
    }
}

fn found(pressed: &Pressed<'_>, health: &Health) -> PressureVerdict {
    let verdict = |outcome, notes| PressureVerdict { outcome, notes };
    let mut notes = Vec::new();
    if let Some(at) = pressed.restarted() {
        let span = show::duration(at - pressed.armed_at.min(at));
        notes.push(format!(
            "the server was gone {span} after all connections of the pressure were open: connections were reset and new ones refused at the same time"
        ));
        return verdict(PressureOutcome::Crashed, notes);
    }
    let refused = pressed.refused_after();
    if refused > REFUSED_MAX {
        notes.push(format!(
            "new connections were refused until {} after the release",
            show::duration(refused)
        ));
        return verdict(PressureOutcome::Crashed, notes);
    }
    notes.extend(signature(pressed));
    if health.recovery.is_none() {
        notes.push(format!(
            "probes were not as before within {} of the release",
            show::duration(pressed.over_at - pressed.released_at)
        ));
    }
    if pressed.is_lost_for_good() {
        return verdict(PressureOutcome::Leak, notes);
    }
    let word = word(pressed, health);
    if word == PressureOutcome::Degraded {
        notes.extend(degradation(pressed, health));
    }
    verdict(word, notes)
}

/// What of it was worse than before, a sentence each.
fn degradation(pressed: &Pressed<'_>, health: &Health) -> Vec<String> {
    let mut said = Vec::new();
    if health.correct < CORRECT_HELD {
        let not = 1.0 - health.correct;
        said.push(format!("{} of the time well-behaved clients were not served", show::share(not)));
    }
    if is_slow(pressed) {
        let bound = show::duration(slow_from(&pressed.base));
        let p99 = show::duration(health.p99);
        said.push(format!("their 99th percentile was {p99}, and up to {bound} is as before"));
    }
    if let Some(span) = health.recovery.filter(|span| *span > BACK_WITHIN) {
        said.push(format!("all was as before only {} after the release", show::duration(span)));
    }
    said
}

fn word(pressed: &Pressed<'_>, health: &Health) -> PressureOutcome {
    let denied = [ProbeKind::New, ProbeKind::Keep]
        .into_iter()
        .any(|kind| pressed.lost_in_window(kind) > DENIED_SHARE);
    let back = health.recovery.is_some_and(|span| span <= BACK_WITHIN);
    match health {
        _ if denied => PressureOutcome::Denied,
        Health { lost, shed, .. } if *lost < LOST_SHED && *shed > SHED_SHARE => {
            PressureOutcome::Shed
        }
        Health { correct, .. } if *correct >= CORRECT_HELD && !is_slow(pressed) && back => {
            PressureOutcome::Held
        }
        Health { correct, shed, .. } if correct + shed >= SERVED_DEGRADED => {
            PressureOutcome::Degraded
        }
        _ => PressureOutcome::Denied,
    }
}

/// The 99th percentile is beyond what is held, by more than a hiccup.
fn is_slow(pressed: &Pressed<'_>) -> bool {
    let bound = slow_from(&pressed.base);
    let own: Vec<&Probe> = pressed.armed_probes(ProbeKind::New).collect();
    let slow = own.iter().filter(|probe| probe.over > bound).count();
    slow >= SLOW_FEW && slow as f64 > RARE * own.len() as f64
}

/// What it means that one kind of probe, or both, got lost.
fn signature(pressed: &Pressed<'_>) -> Option<String> {
    let lost = |kind| pressed.lost_in_window(kind) > DENIED_SHARE;
    let has = |kind| pressed.armed_probes(kind).next().is_some();
    match (lost(ProbeKind::New), lost(ProbeKind::Keep)) {
        (false, false) => None,
        (true, false) if has(ProbeKind::Keep) => Some(
            "new connections were not served while a kept one was: accept queue or pool of workers exhausted"
                .to_owned(),
        ),
        (true, false) => Some("new connections were not served".to_owned()),
        (true, true) => Some(
            "neither new connections nor a kept one were served: everything stands still, or every worker is taken"
                .to_owned(),
        ),
        (false, true) => {
            Some("a kept connection was not served while new ones were".to_owned())
        }
    }
}

#[cfg(test)]
mod tests;
