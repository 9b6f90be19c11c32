//! The list of targets, which may be long: all copies of a plan share it, until one is changed.

use crate::TargetPlan;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// The targets of a plan, in order. Copying is free; the first change to a copy copies the list.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlanTargets(Arc<Vec<TargetPlan>>);

impl Deref for PlanTargets {
    type Target = Vec<TargetPlan>;

    fn deref(&self) -> &Vec<TargetPlan> {
        &self.0
    }
}

impl DerefMut for PlanTargets {
    fn deref_mut(&mut self) -> &mut Vec<TargetPlan> {
        Arc::make_mut(&mut self.0)
    }
}

impl From<Vec<TargetPlan>> for PlanTargets {
    fn from(targets: Vec<TargetPlan>) -> PlanTargets {
        PlanTargets(Arc::new(targets))
    }
}

impl FromIterator<TargetPlan> for PlanTargets {
    fn from_iter<I: IntoIterator<Item = TargetPlan>>(targets: I) -> PlanTargets {
        PlanTargets::from(targets.into_iter().collect::<Vec<_>>())
    }
}

impl<'a> IntoIterator for &'a PlanTargets {
    type Item = &'a TargetPlan;
    type IntoIter = std::slice::Iter<'a, TargetPlan>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use crate::{Plan, TargetPlan};

    #[test]
    fn copies_of_a_plan_share_its_list_until_one_is_changed() {
        let url = |path: &str| format!("http://h{path}").parse().expect("a URL");
        let plan = Plan::for_targets(vec![TargetPlan::new(url("/a")), TargetPlan::new(url("/b"))]);
        let mut other = Plan { seed: 2, ..plan.clone() };
        assert!(std::ptr::eq(plan.targets.as_slice(), other.targets.as_slice()));
        other.targets[1].url = url("/c");
        let paths = |plan: &Plan| {
            plan.targets.iter().map(|it| it.url.path().to_owned()).collect::<String>()
        };
        assert_eq!((paths(&plan).as_str(), paths(&other).as_str()), ("/a/b", "/a/c"));
    }
}
