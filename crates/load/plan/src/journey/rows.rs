//! Steps as rows of the target list, by which their figures are counted.

use super::{JourneyPlan, JourneyStep, websocket_base};
use crate::{TargetPlan, is_websocket_url};
use url::Url;

/// Returns a row for each step, by its name.
pub(crate) fn targets(plan: &JourneyPlan) -> Vec<TargetPlan> {
    plan.steps().into_iter().map(|step| row(plan, step)).collect()
}

fn row(plan: &JourneyPlan, step: &JourneyStep) -> TargetPlan {
    let mut target = TargetPlan::new(place(&base_of(plan, step), &step.ask.url.shown()));
    target.method = Some(step.ask.method.clone());
    target.name = Some(step.name.clone());
    target
}

/// Returns the base of a step's URL.
fn base_of(plan: &JourneyPlan, step: &JourneyStep) -> Url {
    match step.socket {
        Some(_) => websocket_base(&plan.base),
        None => plan.base.clone(),
    }
}

/// Returns the destination of a step, if known before its values: a URL that starts with a value
/// counts as the base.
fn place(base: &Url, shown: &str) -> Url {
    known_place(base, shown).unwrap_or_else(|| base.clone())
}

/// Returns the destination of a step for any values; `None` if its values determine the server.
fn known_place(base: &Url, shown: &str) -> Option<Url> {
    let known = |url: &Url| {
        url.host_str().is_some_and(|host| !host.contains('{'))
            && is_websocket_url(url) == is_websocket_url(base)
            && matches!(url.scheme(), "http" | "https" | "ws" | "wss")
    };
    // a text that starts with slashes is a path of the base, and is sent unchanged
    let path =
        shown.strip_prefix('/').map(|rest| format!("/{}", rest.trim_start_matches(['/', '\\'])));
    let joined = base.join(path.as_deref().unwrap_or(shown));
    joined.ok().filter(|url| !shown.starts_with('{') && known(url))
}

impl JourneyPlan {
    /// Returns a step whose values determine its server; `None` if there is no such step.
    pub fn step_with_variable_host(&self) -> Option<&JourneyStep> {
        let unknown = |step: &&JourneyStep| {
            known_place(&base_of(self, step), &step.ask.url.shown()).is_none()
        };
        self.steps().into_iter().find(unknown)
    }
}
