//! Cost of denial: how many new connections a second keep every slot of a server busy, computed of
//! what was measured with one connection per state. Nothing has to be broken to learn it.

use crate::result::{Measure, RunResult, Unit};

/// What the measure of a server's slots is called.
pub const SLOTS: &str = "slots";

/// What it costs to keep a server busy with connections in one state.
#[derive(Clone, Debug, PartialEq)]
pub struct Cost<'a> {
    /// The case that measured the deadline, and the state.
    pub case: &'a str,
    pub what: &'a str,
    /// Connections that the server serves at once; `None` where nobody knows.
    pub slots: Option<f64>,
    /// How long the server keeps a connection in this state, in seconds; `None`: nothing ended it
    /// within the horizon.
    pub deadline_s: Option<f64>,
    /// New connections per second that keep every slot busy; `None` without slots, and where
    /// `slots` connections do it once and for all.
    pub per_second: Option<f64>,
}

/// New connections per second that keep `slots` connections busy where each lasts `deadline_s`
/// seconds: the quotient. `None` for a deadline that is none.
pub fn connections_per_second(slots: f64, deadline_s: f64) -> Option<f64> {
    let rate = slots / deadline_s;
    (deadline_s > 0.0 && rate.is_finite()).then_some(rate)
}

/// The cost for every deadline that was measured, in the order of the cases. The slots are those that
/// the user named, or else the fewest that a case found.
pub fn costs(result: &RunResult) -> Vec<Cost<'_>> {
    let slots = result.slots_named.map(|slots| slots as f64).or_else(|| slots_found(result));
    let mut costs = Vec::new();
    for case in result.cases.iter().filter(|case| is_meter(case.case.group(), case.case.press)) {
        for measure in case.measures.iter().filter(|one| one.unit == Unit::Seconds) {
            let deadline_s = measure.high;
            let per_second = slots
                .zip(deadline_s)
                .and_then(|(slots, deadline_s)| connections_per_second(slots, deadline_s));
            let (case, what) = (case.case.id.as_str(), measure.what.as_str());
            costs.push(Cost { case, what, slots, deadline_s, per_second });
        }
    }
    costs
}

/// Whether the seconds that a case measured are how long the server bears a state.
fn is_meter(group: char, press: bool) -> bool {
    matches!(group, 'W' | 'T') && !press
}

/// The fewest slots that a case found; what was not exhausted says nothing.
fn slots_found(result: &RunResult) -> Option<f64> {
    let all = result.cases.iter().flat_map(|case| &case.measures);
    let exhausted =
        |one: &&Measure| one.unit == Unit::Connections && one.what == SLOTS && one.high.is_some();
    all.filter(exhausted).filter_map(|one| one.low).min_by(f64::total_cmp)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue;
    use crate::result::CaseResult;

    fn result(deadline: Option<f64>, slots: Option<(f64, Option<f64>)>) -> RunResult {
        let mut cases = catalogue::cases().unwrap();
        let mut slow = CaseResult::of(&cases.remove(0));
        slow.case.id = "W-02".into();
        let note = String::new();
        let measure = |what: &str, low, high, unit| Measure {
            what: what.into(),
            low,
            high,
            unit,
            note: note.clone(),
        };
        slow.measures.push(measure(
            "half a head",
            deadline.or(Some(180.0)),
            deadline,
            Unit::Seconds,
        ));
        if let Some((low, high)) = slots {
            slow.measures.push(measure(SLOTS, Some(low), high, Unit::Connections));
        }
        RunResult { cases: vec![slow], ..RunResult::default() }
    }

    #[test]
    fn slots_over_deadline() {
        let table = [
            // Apache event as Debian ships it; nginx with one worker of 768 connections
            (Some(20.0), Some(150), None, Some(7.5)),
            (Some(60.0), Some(768), None, Some(12.8)),
            // what the user says goes before what was found
            (Some(20.0), Some(150), Some((4.0, Some(5.0))), Some(7.5)),
            (Some(2.0), None, Some((4.0, Some(5.0))), Some(2.0)),
            // nothing ends it: once is enough; the slots were not exhausted; nobody knows them
            (None, Some(150), None, None),
            (Some(2.0), None, Some((256.0, None)), None),
            (Some(2.0), None, None, None),
            (Some(0.0), Some(4), None, None),
        ];
        for (deadline, named, found, expected) in table {
            let mut result = result(deadline, found);
            result.slots_named = named;
            let costs = costs(&result);
            assert_eq!(costs.len(), 1, "{deadline:?}");
            assert_eq!(costs[0].per_second, expected, "{deadline:?} {named:?} {found:?}");
            assert_eq!(costs[0].deadline_s, deadline);
        }
    }
}
