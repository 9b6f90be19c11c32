//! The maximum traffic of a case, computed before it runs.

use crate::scripts::compile;
use crate::{Settings, TRIES, TestTarget, habits};
use dialogue::governor::{Bounds, Spent};
use dialogue::text::Values;
use torture::case::{Case, Need};
use torture::fuzz;
use torture::record;
use units::Nanos;

/// Returns the traffic of a case if every attempt fails. Cases in code are bounded only by the
/// limits, which apply to all other cases too. Plain requests before, during and after are not
/// counted.
pub fn worst_case_traffic(
    case: &Case,
    target: &TestTarget,
    settings: &Settings,
    bounds: &Bounds,
) -> Spent {
    let soak = settings.soak.filter(|_| case.needs.contains(&Need::Soak)).unwrap_or_default();
    let by_bounds = by_bounds(bounds, bounds.case_max.max(soak));
    if case.family.is_some() {
        return by_bounds;
    }
    let plain = habits::plain_request(target, "").len() as u64;
    let mut all = Spent::default();
    for exchange in &case.exchanges {
        let values = Values { marker: "m00000".to_owned(), ..target.values.clone() };
        let moves: Vec<_> = exchange.steps.iter().map(|step| compile(step, &values)).collect();
        let follow_up = u64::from(exchange.in_step);
        all.connections += 1;
        all.requests += exchange.methods.len().max(1) as u64 + follow_up;
        all.bytes += record::sent(&moves).len() as u64 + follow_up * plain;
    }
    if let Some(random) = &case.fuzz {
        let count = random.count.min(settings.executions_max);
        for turn in 0..count {
            let (seed, id) = (settings.seed, &case.id);
            let (values, fields) = (&target.values, &target.fields);
            let index = turn * random.count / count;
            let shot = fuzz::shot(seed, id, case.version, random, index, values, fields);
            let follow_up = u64::from(shot.follows);
            all.connections += 1;
            all.requests += shot.methods.len().max(1) as u64 + follow_up;
            all.bytes += record::sent(&shot.moves).len() as u64 + follow_up * plain;
        }
    }
    let tries = u64::from(TRIES);
    Spent {
        connections: (all.connections * tries).min(by_bounds.connections),
        requests: (all.requests * tries).min(by_bounds.requests),
        bytes: (all.bytes * tries).min(by_bounds.bytes),
    }
}

/// Returns the traffic that the limits allow in the time of a case. `u64::MAX`: no limit.
fn by_bounds(bounds: &Bounds, span: Nanos) -> Spent {
    let seconds = span.0.div_ceil(1_000_000_000) + 1;
    let of = |each: Option<u64>| each.map_or(u64::MAX, |each| each.saturating_mul(seconds));
    Spent {
        connections: of(Some(bounds.opens_max)),
        requests: of(bounds.requests_max),
        bytes: of(bounds.bytes_max),
    }
}
