//! Measures the baseline: responses to probes before any test.

use crate::probes::{ProbeListener, percentile};
use crate::{Runner, families};
use dialogue::talk::{Conversations, Director, Talk, Wake};
use torture::case::Case;
use torture::result::{Baseline, Probe, Seen};
use torture::result::{NOISE_FACTOR, NOISE_FLOOR};
use units::Nanos;

/// Minimum time that the idle server is probed before stress cases, for the default run and on
/// request.
const BEFORE_C: Nanos = Nanos::from_secs(5);
const BEFORE_PRESS: Nanos = Nanos::from_secs(10);

/// Director that plays nothing, so that the probes run without load.
#[derive(Debug)]
pub(crate) struct Idle {
    span: Nanos,
    end: Option<Nanos>,
}

impl Idle {
    pub(crate) fn new(span: Nanos) -> Idle {
        Idle { span, end: None }
    }
}

impl Director for Idle {
    fn direct(&mut self, now: Nanos, _: &mut Conversations<'_>, _: Vec<(usize, Talk)>) -> Wake {
        let end = *self.end.get_or_insert(now + self.span);
        if now < end { Wake::At(end) } else { Wake::Done }
    }
}

impl ProbeListener for Idle {}

/// Measures probes without load. The deadline of all later probes is derived from the result.
pub(crate) fn measure(runner: &mut Runner<'_>) -> Baseline {
    let presses = |case: &&Case| families::applies_load(case);
    let least = match runner.cases.iter().filter(presses).map(|case| case.press).max() {
        None => Nanos::ZERO,
        Some(false) => BEFORE_C,
        Some(true) => BEFORE_PRESS,
    };
    let span = runner.settings.baseline.max(least);
    let felt = runner.play_with_probes("", &mut Idle::new(span));
    let mut found = baseline(&felt);
    if found.failed > 0 && runner.prober.keeps() && !runner.is_stopped() {
        // the kept connection itself occupies a single-threaded server
        runner.prober.keep_connection(false);
        let alone = runner.play_with_probes("", &mut Idle::new(span));
        match baseline(&alone) {
            second if second.failed == 0 => found = second,
            _ => runner.prober.keep_connection(true),
        }
    }
    runner.prober.settle(found.p99);
    found
}

fn baseline(probes: &[Probe]) -> Baseline {
    let failed = probes.iter().filter(|probe| probe.seen != Seen::Correct).count();
    let p50 = percentile(probes, 50);
    let bound = (p50 * NOISE_FACTOR).max(NOISE_FLOOR);
    Baseline {
        probes: probes.len() as u64,
        failed: failed as u64,
        slow: probes.iter().filter(|probe| probe.over > bound).count() as u64,
        p50,
        p99: percentile(probes, 99),
    }
}
