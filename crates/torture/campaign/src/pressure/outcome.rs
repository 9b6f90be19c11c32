//! Effect of a load on well-behaved clients: a verdict and its figures, as a pure function of the
//! probes of a round. Every threshold is a constant here, and the report prints them.

use torture::judge::{PressureOutcome, TestOutcome};
use torture::result::{Baseline, Health, Probe, ProbeKind, Seen};
use units::{Nanos, show};

/// Held: correct responses for at least this share of the time ...
pub const CORRECT_HELD: f64 = 0.995;
/// ... at most this multiple of the idle server's 99th percentile, or at most this much longer ...
pub const P99_FACTOR: u64 = 3;
pub const P99_MORE: Nanos = Nanos::from_millis(20);
/// ... where fewer slow probes than this may be noise ...
pub const SLOW_FEW: usize = 3;
/// ... and normal within this time after the release.
pub const BACK_WITHIN: Nanos = Nanos::SECOND;
/// Shed: less than this share was lost, and more than the second share got 503 or 429.
pub const LOST_SHED: f64 = 0.005;
pub const SHED_SHARE: f64 = 0.01;
/// Degraded, not denied: at least this share got a correct response, 503 or 429.
pub const SERVED_DEGRADED: f64 = 0.95;
/// Denied: more than this share of any window of this length was lost.
pub const DENIED_SHARE: f64 = 0.05;
pub const DENIED_WINDOW: Nanos = Nanos::from_secs(10);
/// Crashed: probes were refused for longer than this after the release.
pub const REFUSED_MAX: Nanos = Nanos::from_secs(3);
/// Maximum interval between a refusal and resets that belong to it: the process crashed.
const TOGETHER: Nanos = Nanos::SECOND;
/// Minimum share of the load's connections that must be open.
pub const ARMED: f64 = 0.95;
/// A probe sent later than this was delayed by us: slowness is then not judged ...
pub const LATE_MAX: Nanos = Nanos::from_millis(5);
/// ... nor is loss, if some probes were sent this late. Good results on a busy machine still count.
pub const LATE_GRAVE: Nanos = Nanos::from_millis(500);
/// If probes are abnormal this shortly before the end of the watch, the server never recovered;
/// otherwise it is slow.
const AT_THE_END: Nanos = Nanos::from_secs(5);
/// Share of probes that may be outliers by chance: the 99th percentile.
const RARE: f64 = 0.01;

/// Round of load as the verdict sees it. Instants count from the start of the run.
#[derive(Clone, Debug)]
pub struct Pressed<'a> {
    pub base: Baseline,
    /// Interval between two probes of a kind.
    pub every: Nanos,
    /// Probes of the round, in any order.
    pub probes: &'a [Probe],
    /// Start of the last connection; release of all; end of the watch.
    pub armed_at: Nanos,
    pub released_at: Nanos,
    pub over_at: Nanos,
    /// Instant from which all probes were normal; `None` if they never were.
    pub back_at: Option<Nanos>,
    pub wanted: u64,
    /// Maximum number of open connections.
    pub armed: u64,
    /// Some could not be opened because this machine ran out of descriptors or ports.
    pub short: bool,
    /// Instants at which the server broke connections of the load.
    pub broken_at: Vec<Nanos>,
}

/// Verdict with its reasons.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PressureVerdict {
    pub outcome: PressureOutcome,
    pub notes: Vec<String>,
}

/// Returns the response time from which a probe is slow.
pub fn slow_threshold(base: &Baseline) -> Nanos {
    (base.p99 * P99_FACTOR).max(base.p99 + P99_MORE)
}

impl Pressed<'_> {
    /// Returns probes of a kind that were due under full load, in order. Omits probes that we could
    /// not send, and probes with a response only after the release: their result without the
    /// release is unknown.
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

    /// Returns the kind that was served worse.
    pub fn worst_kind(&self) -> ProbeKind {
        let good = |kind: ProbeKind| self.shares(kind).map_or(1.0, |shares| shares[0]);
        if good(ProbeKind::Keep) < good(ProbeKind::New) { ProbeKind::Keep } else { ProbeKind::New }
    }

    /// Returns whether the kept probe's connection existed and was served under full load.
    pub fn kept_served(&self) -> bool {
        let kept = |probe: &Probe| probe.seen == Seen::Correct && probe.connected.is_none();
        self.armed_probes(ProbeKind::Keep).any(kept)
    }

    /// Returns the correct, shed and lost shares of the time for one kind; a probe represents the
    /// time until the next one is due.
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

    /// Returns the largest lost share of a window of [`DENIED_WINDOW`].
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

    /// Returns refused probes by their due instants.
    fn refused(&self) -> impl Iterator<Item = Nanos> {
        let refused = |probe: &&Probe| probe.kind == ProbeKind::New && probe.refused;
        self.probes.iter().filter(refused).map(|probe| probe.due)
    }

    /// Returns the instant at which connections were refused for a moment and connections of the
    /// load were reset.
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

    /// Returns whether nothing could be sent because of us.
    fn is_short(&self) -> bool {
        self.short || self.probes.iter().any(|probe| probe.ours)
    }

    /// Returns the maximum delay of late probes, with a description.
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

    /// Returns whether probes were abnormal until the end of the watch.
    fn never_recovers(&self) -> bool {
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

/// Returns the figures of the kind of probe that was served worse.
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

/// Returns the verdict with its reasons.
pub fn outcome(pressed: &Pressed<'_>, health: &Health) -> PressureVerdict {
    let nothing =
        |why: String| PressureVerdict { outcome: PressureOutcome::Inconclusive, notes: vec![why] };
    if pressed.is_short() {
        return nothing("this machine ran out of descriptors or ports".to_owned());
    }
    if health.probes == 0 {
        return nothing("no probe was due during the load".to_owned());
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
            "the server was down {span} after all connections of the load were open: connections \
            were reset and new ones refused at the same time"
        ));
        return verdict(PressureOutcome::Crashed, notes);
    }
    let refused = pressed.refused_after();
    if refused > REFUSED_MAX {
        notes.push(format!(
            "new connections were refused until {} after the load ended",
            show::duration(refused)
        ));
        return verdict(PressureOutcome::Crashed, notes);
    }
    notes.extend(signature(pressed));
    if health.recovery.is_none() {
        notes.push(format!(
            "probes did not recover within {} of the end of the load",
            show::duration(pressed.over_at - pressed.released_at)
        ));
    }
    if pressed.never_recovers() {
        return verdict(PressureOutcome::Leak, notes);
    }
    let word = classify(pressed, health);
    if word == PressureOutcome::Degraded {
        notes.extend(degradation(pressed, health));
    }
    verdict(word, notes)
}

/// Describes what became worse, one sentence each.
fn degradation(pressed: &Pressed<'_>, health: &Health) -> Vec<String> {
    let mut lines = Vec::new();
    if health.correct < CORRECT_HELD {
        let not = 1.0 - health.correct;
        lines
            .push(format!("{} of the time well-behaved clients were not served", show::share(not)));
    }
    if is_slow(pressed) {
        let bound = show::duration(slow_threshold(&pressed.base));
        let p99 = show::duration(health.p99);
        lines.push(format!("their 99th percentile was {p99}; up to {bound} is normal"));
    }
    if let Some(span) = health.recovery.filter(|span| *span > BACK_WITHIN) {
        lines.push(format!(
            "the server recovered only {} after the load ended",
            show::duration(span)
        ));
    }
    lines
}

fn classify(pressed: &Pressed<'_>, health: &Health) -> PressureOutcome {
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

/// Returns whether the 99th percentile exceeds the limit by more than noise.
fn is_slow(pressed: &Pressed<'_>) -> bool {
    let bound = slow_threshold(&pressed.base);
    let own: Vec<&Probe> = pressed.armed_probes(ProbeKind::New).collect();
    let slow = own.iter().filter(|probe| probe.over > bound).count();
    slow >= SLOW_FEW && slow as f64 > RARE * own.len() as f64
}

/// Interprets the loss of one or both kinds of probe.
fn signature(pressed: &Pressed<'_>) -> Option<String> {
    let lost = |kind| pressed.lost_in_window(kind) > DENIED_SHARE;
    let has = |kind| pressed.armed_probes(kind).next().is_some();
    match (lost(ProbeKind::New), lost(ProbeKind::Keep)) {
        (false, false) => None,
        (true, false) if has(ProbeKind::Keep) => Some(
            "new connections were not served but a kept one was: accept queue or worker pool \
            exhausted"
                .to_owned(),
        ),
        (true, false) => Some("new connections were not served".to_owned()),
        (true, true) => Some(
            "neither new connections nor a kept one were served: the server hangs, or every \
            worker is busy"
                .to_owned(),
        ),
        (false, true) => Some("a kept connection was not served but new ones were".to_owned()),
    }
}

#[cfg(test)]
mod tests;
