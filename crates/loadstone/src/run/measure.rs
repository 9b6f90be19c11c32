//! One measurement: a prepared plan runs, and what is needed to judge it is gathered around it.

use super::own_stack;
use super::prepare::Prepared;
use super::sut;
use super::threads::{Cast, DriverCost, Watcher, Ways, execute};
use crate::calibration::Calibration;
use anyhow::Result;
use conduit::Peer;
use engine::{Logging, Setup};
use host::{Foreign, ForeignWatch};
use plan::Plan;
use sample::{FleetFacts, HeldFacts, PathFacts, PostFacts, StackFacts, SutSeries};
use stats::verdict::{Evidence, judge};
use stats::{Measurement, Verdict};
use std::sync::Arc;
use units::Nanos;

/// A measurement with its verdict.
pub(crate) struct Measured {
    pub(crate) measurement: Measurement,
    pub(crate) verdict: Verdict,
    pub(crate) cost: DriverCost,
    pub(crate) started_unix_s: f64,
    pub(crate) sut: Option<SutSeries>,
    pub(crate) path: Option<PathFacts>,
    /// Of our own TCP, where it measured.
    pub(crate) stack: Option<StackFacts>,
    /// Of connections that were held beside the load.
    pub(crate) held: Option<HeldFacts>,
    /// What was posted beside the server's log of it.
    pub(crate) posts: Option<PostFacts>,
    pub(crate) fleet: Option<FleetFacts>,
}

/// Runs the plan once. `watcher` makes the observer of the run, given the instant it starts at.
pub(crate) fn measure(
    plan: &Plan,
    prepared: &Prepared,
    calibration: Option<&Calibration>,
    logging: Logging,
    casts: Vec<Cast>,
    watcher: &mut dyn FnMut(&Setup) -> Box<dyn Watcher>,
) -> Result<Measured> {
    if let Some(fleet) = &prepared.fleet {
        return fleet.measure(plan, prepared, calibration, watcher);
    }
    let watch = ForeignWatch::start(&prepared.servers);
    let sut = watch_server(prepared)?;
    let part = prepared.part.as_ref();
    let start = part.map_or_else(
        || net::reactor::monotonic() + super::placement::lead(plan),
        |part| part.start,
    );
    let endpoints = prepared.endpoints.clone();
    let mut setup = Setup::new(plan.clone(), endpoints, prepared.workers, start)?;
    if let Some(part) = part {
        setup = setup.with_shares(part.shares.clone())?;
    }
    setup.logging = logging;
    let now_s = net::reactor::monotonic().as_secs_f64();
    setup.unix_s = (crate::wall_clock::unix_seconds() - now_s).max(0.0) as u64;
    let own = prepared.own.as_ref();
    setup.crowd = match (&prepared.route, own) {
        (Some(route), _) => route.crowd(plan),
        (None, Some(network)) => own_stack::crowd(network, plan),
        (None, None) => None,
    };
    let setup = Arc::new(setup);
    if let Some(sut) = &sut {
        sut.begin(setup.measure_from());
    }
    let mut observer = watcher(&setup);
    let route = prepared.route.as_ref();
    // what went through it until now was no part of this run
    route.map(|route| route.facts()).transpose()?;
    own.map(|network| network.facts());
    let ahead = (start - net::reactor::monotonic()).as_secs_f64();
    let started_unix_s = crate::wall_clock::unix_seconds() + ahead;
    let tls = prepared.tls.as_ref();
    let ways = Ways { route, own, sockets: prepared.sockets };
    let finished = execute(&setup, tls, &prepared.cores, casts, ways, &mut *observer);
    let sut = sut.map(sut::Watch::end);
    let closed = observer.close();
    let finished = finished?;
    closed?;
    let foreign = watch.end();
    let (stack, inside) = own.map(|network| network.facts()).unzip();
    let path = route.map(|route| route.facts()).transpose()?.or(inside.flatten());
    let (measurement, cost, held) = (finished.measurement, finished.cost, finished.held);
    let seen = Seen { busiest: cost.busiest, foreign, path: path.as_ref(), fleet: None };
    let verdict = verdict(plan, prepared, &measurement, seen, calibration);
    let (fleet, posts) = (None, None);
    Ok(Measured {
        measurement,
        verdict,
        cost,
        started_unix_s,
        sut,
        path,
        stack,
        held,
        posts,
        fleet,
    })
}

/// Makes ready to watch the server's own resources, where that was asked for.
pub(crate) fn watch_server(prepared: &Prepared) -> Result<Option<sut::Watch>> {
    let Some(who) = &prepared.sut else { return Ok(None) };
    let peers = prepared.endpoints.iter().flat_map(|endpoint| &endpoint.peers);
    let addresses: Vec<std::net::SocketAddr> = peers.filter_map(Peer::address).collect();
    let watch = sut::Watch::start(who, &addresses);
    watch.map(Some).map_err(|why| anyhow::anyhow!("--sut: {why}"))
}

/// What was seen beside a measurement; `None` is not held against it.
pub(crate) struct Seen<'a> {
    /// Share of its core that the busiest worker used, 0..=1.
    pub(crate) busiest: f64,
    pub(crate) foreign: Option<Foreign>,
    pub(crate) path: Option<&'a PathFacts>,
    pub(crate) fleet: Option<&'a FleetFacts>,
}

/// Judges a measurement, finished or so far.
pub(crate) fn verdict(
    plan: &Plan,
    prepared: &Prepared,
    measurement: &Measurement,
    seen: Seen<'_>,
    calibration: Option<&Calibration>,
) -> Verdict {
    let quantiles = printed_quantiles(plan, measurement);
    let mut evidence = Evidence::new(measurement);
    evidence.closed_loop = plan.is_closed();
    evidence.scenarios = plan.scenario_names();
    evidence.ramped = plan.is_ramped();
    evidence.without_row = without_row(plan, measurement);
    let throughput =
        measurement.total.in_window as f64 / measurement.window.as_secs_f64().max(1e-9);
    let ceiling =
        calibration.map_or(0.0, |known| known.share_of_ceiling(plan, throughput, prepared.workers));
    evidence.driver_busy = Some(seen.busiest.max(ceiling).min(1.0));
    evidence.path = seen.path;
    evidence.fleet = seen.fleet;
    if let Some(foreign) = seen.foreign.filter(|found| found.elapsed > Nanos::SECOND) {
        evidence.foreign_share = Some(foreign.share);
        evidence.steal_share = Some(foreign.steal_share);
    }
    evidence.shared_cores.clone_from(&prepared.shared_cores);
    evidence.quantiles = &quantiles;
    evidence.objectives = &plan.measure.slo;
    evidence.doubt_max = plan.measure.doubt_max;
    judge(&evidence)
}

/// Users or sessions that found no row of a feeder whose `used-up` is not given.
fn without_row(plan: &Plan, measurement: &Measurement) -> u64 {
    let feeders = plan.journeys.iter().flat_map(|journeys| &journeys.feeders);
    let dry = feeders.zip(&measurement.total.journeys.dry);
    dry.filter(|(feeder, _)| feeder.used_up.is_none()).map(|(_, count)| count).sum()
}

/// The quantiles that the report prints: those asked for, or the usual ones that there are samples
/// enough for.
pub(crate) fn printed_quantiles(plan: &Plan, measurement: &Measurement) -> Vec<f64> {
    let wanted = &plan.measure.quantiles;
    if *wanted != plan::MeasurePlan::default().quantiles {
        return wanted.clone();
    }
    let count = measurement.total.response().count();
    let enough = |q: &f64| *q >= 1.0 || count >= stats::samples_needed(*q);
    wanted.iter().copied().filter(enough).collect()
}
