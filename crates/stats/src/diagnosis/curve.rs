//! What limits a server, from its whole curve: several loads against one target.

use super::{Diagnosis, Evidence, of_run, ranked};
use crate::curve::Usl;

/// What limits the server, from the steps of a ramp against one target, in the order of their loads,
/// and the law fitted to them. The surest first.
///
/// A finding of a single step counts with the number of steps that show it.
pub fn of_ramp(steps: &[Evidence<'_>], _usl: Option<&Usl>) -> Vec<Diagnosis> {
    let mut found: Vec<(Diagnosis, usize)> = Vec::new();
    for one in steps.iter().flat_map(of_run) {
        match found.iter_mut().find(|(known, _)| known.rule.id == one.rule.id) {
            Some((known, count)) => {
                *count += 1;
                if one.confidence > known.confidence {
                    *known = one;
                }
            }
            None => found.push((one, 1)),
        }
    }
    let told = |(mut one, count): (Diagnosis, usize)| {
        one.evidence = format!("{} (seen at {count} of {} steps)", one.evidence, steps.len());
        one
    };
    ranked(found.into_iter().map(told).collect())
}
