//! Number of calls that a server handles concurrently, from one load: Little's law inside the
//! server, and the first calls of all users, which arrive at once.

use super::View;
use super::phase::Regularity;
use super::shape::{between, ratio};
use crate::Hist;
use units::Nanos;

/// Shorter work is lost in the noise that a busy machine adds to a single call.
pub(crate) const ALONE_MIN: Nanos = Nanos::from_millis(3);
/// Calls in flight per call in service above which calls count as waiting.
pub(crate) const CROWD_MIN: f64 = 1.4;
/// A queue in order of arrival shows in first calls that take up to this share of the later ones'
/// mean; if the server works on all in turns, the first take as long as the others.
const FAIR_MIN: f64 = 0.88;

/// If many calls wait, hardly any is as fast as a single call. If more are, the single call may
/// have been slow by chance, and is not evidence.
const QUICK_MAX: f64 = 0.05;

/// Calls that wait for each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Queueing {
    /// Mean number of calls in flight.
    pub(crate) crowd: f64,
    /// Time of a call without concurrency.
    pub(crate) alone: Nanos,
    /// Mean number of calls in service: throughput times `alone`.
    pub(crate) working: f64,
    /// Mean number of calls in service, from the first calls of all users, which arrived at once.
    pub(crate) from_first: Option<f64>,
    /// Number of first calls that completed together before any other, if the first calls completed
    /// in steps.
    pub(crate) step: Option<u64>,
    /// True if first calls took as long as later ones: all waiting calls are processed in turns.
    pub(crate) in_turns: bool,
}

/// Returns the concurrency; `None` if one load does not show it: a plan with pauses or pipelining,
/// an open load that the server sustains, or no call without concurrency.
pub(crate) fn queueing(view: &View<'_>) -> Option<Queueing> {
    if !view.enough() || !view.evidence.one_by_one || view.evidence.ramped {
        return None;
    }
    let alone = view.evidence.alone?;
    if super::rules::ticking(view.service()) || matches!(view.phase(), Regularity::Locked(_)) {
        return None;
    }
    let working = view.throughput * alone.as_secs_f64();
    let bare = Queueing {
        crowd: view.concurrency,
        alone,
        working,
        from_first: None,
        step: None,
        in_turns: false,
    };
    let Some(users) = view.evidence.users else {
        return view.overloaded().then_some(bare);
    };
    let first = &view.lives.first;
    let all_first = first.count() >= u64::from(users) && first.count() * 4 <= u64::from(users) * 5;
    let started = view.persistent() && all_first;
    if users < 2 || fast_share_after_first(view, alone, started.then_some(first)) > QUICK_MAX {
        return None;
    }
    if !started {
        return Some(bare);
    }
    let users = f64::from(users);
    let share = ratio(first.mean().as_secs_f64(), view.service().mean().as_secs_f64());
    let step = step(first);
    // a first call alone may have met a busy machine; the fastest of many has not, and if the first
    // calls complete in steps it is not by chance
    let alone = if step.is_some() { alone.min(first.min()) } else { alone };
    Some(Queueing {
        alone,
        working: view.throughput * alone.as_secs_f64(),
        from_first: Some((users * (2.0 * share - 1.0)).max(0.0)),
        step,
        in_turns: share >= FAIR_MIN && users >= 3.0,
        ..bare
    })
}

/// Returns the share of the calls that took barely longer than the single one; `first`: the users'
/// first calls, excluded because no call preceded them.
fn fast_share_after_first(view: &View<'_>, alone: Nanos, first: Option<&Hist>) -> f64 {
    let bound = Nanos(alone.0 / 4 * 5);
    let later = |all: u64, first: Option<u64>| all.saturating_sub(first.unwrap_or(0)) as f64;
    let quick = later(
        view.service().count_at_or_below(bound),
        first.map(|first| first.count_at_or_below(bound)),
    );
    ratio(quick, later(view.service().count(), first.map(Hist::count)))
}

/// Returns the number of calls of the first step, if the first calls are done in steps: at s, 2 s …
fn step(first: &Hist) -> Option<u64> {
    let s = first.quantile(0.0).max(first.min());
    let tick = Nanos(s.0 / 4 + 200_000);
    let one = between(first, Nanos::ZERO, s + tick);
    let gap = between(first, s + tick, s * 2 - tick);
    let two = between(first, s * 2 - tick, s * 2 + tick);
    let rest = first.count() - one;
    (one > 0 && gap == 0 && two * 5 >= 4 * one.min(rest) && rest > 0).then_some(one)
}

impl Queueing {
    /// Returns whether calls wait in order of their arrival: more of them are in flight than in
    /// service, and the first calls do not contradict it.
    pub(crate) fn waits(&self) -> bool {
        let agrees = self.from_first.is_none_or(|from_first| {
            let within = (0.35 * self.working).max(0.15 * self.crowd).max(1.0);
            (from_first - self.working).abs() <= within
        });
        self.alone >= ALONE_MIN
            && self.crowd >= CROWD_MIN * self.working.max(1.0)
            && !self.in_turns
            && agrees
    }
}
