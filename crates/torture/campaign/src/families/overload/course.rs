//! Plays one load, with probes alongside.

use super::load::{Flow, Load, OfferedLoad, Route};
use crate::pressure::{RecoveryWatch, slow_threshold};
use crate::{Runner, bounds, habits};
use dialogue::talk::TalkScript;
use torture::case::Case;
use torture::result::Probe;
use units::Nanos;

/// After a load, probes must be normal for this many of their gaps.
const CALM_GAPS: u64 = 2;

/// Description of a load.
#[derive(Clone, Debug)]
pub(super) struct LoadPlan {
    pub(super) routes: Vec<Route>,
    pub(super) flows: Vec<Flow>,
    /// Conversations of another kind, with their start times.
    pub(super) odd: Vec<(Nanos, TalkScript)>,
    /// Instant of the release, from which the recovery is watched.
    pub(super) released: Nanos,
    /// True to resend a request whose connection closes without a response, as clients do.
    pub(super) resends: bool,
}

impl LoadPlan {
    pub(super) fn new(routes: Vec<Route>, flows: Vec<Flow>, released: Nanos) -> LoadPlan {
        LoadPlan { routes, flows, odd: Vec::new(), released, resends: true }
    }
}

/// Finished load with its probes.
pub(super) struct Played {
    pub(super) load: Load,
    pub(super) probes: Vec<Probe>,
    /// Work of this process before the end of the load, as a share of a core.
    pub(super) work: Option<f64>,
    /// The time limit, or the end of the run, was reached first.
    pub(super) cut_short: bool,
}

/// Returns the probed page.
pub(super) fn probed_route(runner: &Runner<'_>) -> Route {
    Route {
        request: habits::plain_request(runner.target, ""),
        plain: runner.profile.plain().clone(),
        deadline: runner.prober.deadline(),
        share: 1.0,
    }
}

/// Plays flows with probes alongside; from `released` on, watches the recovery.
pub(super) fn play(runner: &mut Runner<'_>, case: &Case, waiting: u64, course: LoadPlan) -> Played {
    let LoadPlan { routes, flows, odd, released, resends } = course;
    let every = runner.prober.every();
    let offer = OfferedLoad {
        routes,
        flows,
        odd,
        pattern: runner.bare(Vec::new(), Nanos::ZERO),
        resends,
        waiting_max: bounds::connections_max(runner.world.governor(), waiting) as usize,
        opens_max: bounds::opens_max(runner.world.governor(), u64::MAX),
        released,
        calm: RecoveryWatch::new(slow_threshold(&runner.profile.quiet()), every, every * CALM_GAPS),
        origin: runner.prober.origin(),
    };
    let mut load = Load::new(offer);
    runner.world.own_work();
    let probes = runner.play_with_probes(&case.id, &mut load);
    // the watch after it is not work
    let stretch = (load.over_at() - load.start()).as_secs_f64() / released.as_secs_f64();
    let work = runner.world.own_work().map(|share| share * stretch.max(1.0));
    let cut_short = load.is_cut_off() || runner.is_stopped();
    Played { load, probes, work, cut_short }
}
