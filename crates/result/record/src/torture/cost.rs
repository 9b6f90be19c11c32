//! Cost of denial: for each deadline that was measured, how many new connections a second keep every slot of the
//! server busy.

use super::{CostRecord, LimitRecord};
use torture::case::Case;
use torture::cost::{SLOTS, connections_per_second};
use torture::result::Unit;

/// Returns whether the seconds that a case measures are how long the server keeps a state.
pub(super) fn is_meter(case: &Case) -> bool {
    matches!(case.group(), 'W' | 'T') && !case.press
}

/// Returns the cost for every deadline, in the order of the limits. The number of slots is the
/// user's, or else the smallest that a case found.
pub(super) fn costs(
    limits: &[LimitRecord],
    slots_named: Option<u64>,
    is_meter: impl Fn(&str) -> bool,
) -> Vec<CostRecord> {
    let slots = slots_named.map(|slots| slots as f64).or_else(|| slots_found(limits));
    let deadline = |one: &&LimitRecord| one.unit == Unit::Seconds && is_meter(&one.case);
    let cost = |one: &LimitRecord| CostRecord {
        case: one.case.clone(),
        what: one.what.clone(),
        slots,
        deadline_s: one.high,
        connections_per_s: slots
            .zip(one.high)
            .and_then(|(slots, deadline_s)| connections_per_second(slots, deadline_s)),
    };
    limits.iter().filter(deadline).map(cost).collect()
}

/// Returns the fewest slots that a case found; a pool that was not exhausted has no number.
fn slots_found(limits: &[LimitRecord]) -> Option<f64> {
    let exhausted = |one: &&LimitRecord| {
        one.unit == Unit::Connections && one.what == SLOTS && one.high.is_some()
    };
    limits.iter().filter(exhausted).filter_map(|one| one.low).min_by(f64::total_cmp)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(what: &str, low: Option<f64>, high: Option<f64>, unit: Unit) -> LimitRecord {
        LimitRecord { case: "W-02".into(), what: what.into(), low, high, unit, note: String::new() }
    }

    #[test]
    fn the_cost_is_slots_over_deadline() {
        let table = [
            // Apache event as Debian ships it; nginx with one worker of 768 connections
            (Some(20.0), Some(150), None, Some(7.5)),
            (Some(60.0), Some(768), None, Some(12.8)),
            // the user's value takes precedence over the measured one
            (Some(20.0), Some(150), Some((4.0, Some(5.0))), Some(7.5)),
            (Some(2.0), None, Some((4.0, Some(5.0))), Some(2.0)),
            // nothing ends it: once is enough; the slots were not exhausted; their number is
            // unknown
            (None, Some(150), None, None),
            (Some(2.0), None, Some((256.0, None)), None),
            (Some(2.0), None, None, None),
            (Some(0.0), Some(4), None, None),
        ];
        for (deadline, named, found, expected) in table {
            let low = deadline.or(Some(180.0));
            let mut limits = vec![limit("half a head", low, deadline, Unit::Seconds)];
            limits
                .extend(found.map(|(low, high)| limit(SLOTS, Some(low), high, Unit::Connections)));
            let costs = costs(&limits, named, |case| case == "W-02");
            assert_eq!(costs.len(), 1, "{deadline:?}");
            assert_eq!(costs[0].connections_per_s, expected, "{deadline:?} {named:?} {found:?}");
            assert_eq!(costs[0].deadline_s, deadline);
        }
        let other = limit("half a head", Some(1.0), Some(2.0), Unit::Seconds);
        assert!(costs(&[other], Some(1), |_| false).is_empty());
    }
}
