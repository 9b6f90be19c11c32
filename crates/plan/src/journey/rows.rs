//! Steps as rows of the target list: their figures are counted by these.

use super::{JourneyPlan, JourneyStep};
use crate::TargetPlan;
use url::Url;

/// A row for each step, by its name.
pub(crate) fn targets(plan: &JourneyPlan) -> Vec<TargetPlan> {
    plan.steps().into_iter().map(|step| row(plan, step)).collect()
}

fn row(plan: &JourneyPlan, step: &JourneyStep) -> TargetPlan {
    let url = place(&plan.base, &step.ask.url.shown());
    let mut target = TargetPlan::new(url);
    target.method = Some(step.ask.method.clone());
    target.name = Some(step.name.clone());
    target
}

/// Where a step goes, as far as that is known before its values are: a place that begins with a value
/// is taken for the base.
fn place(base: &Url, shown: &str) -> Url {
    let unknown = |url: &Url| {
        url.host_str().is_none_or(|host| host.contains('{'))
            || !matches!(url.scheme(), "http" | "https")
    };
    match base.join(shown) {
        Ok(url) if !shown.starts_with('{') && !unknown(&url) => url,
        _ => base.clone(),
    }
}
