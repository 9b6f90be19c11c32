//! Combinations with journeys.

use super::Problems;
use crate::{Load, Order, Plan};

pub(super) fn check(plan: &Plan, problems: &mut Problems) {
    if plan.journeys.is_none() {
        return;
    }
    let (request, connection) = (&plan.request, &plan.connection);
    let steps = plan.journeys.as_ref().map_or(0, |journeys| journeys.steps().len());
    let in_sessions = |load: &&Load| match load {
        Load::Closed { session, .. } => session.is_some(),
        Load::Open { session, .. } => {
            session.as_ref().is_none_or(|it| it.calls != 1 || !it.visits.is_empty() || it.retry)
        }
    };
    let sessions = plan.loads().iter().any(in_sessions);
    let by_k6 = plan.journeys.iter().flat_map(|it| &it.journeys);
    let by_k6 = by_k6.filter_map(|it| it.script.as_ref()).any(|it| it.script.is_javascript());
    for (wrong, option, why) in [
        (plan.script.is_some(), "--script", "both define the requests"),
        (plan.targets.len() != steps, "--urls", "the steps define the requests"),
        (plan.order == Order::Random, "--random", "journeys have their own weights"),
        (plan.order == Order::Once, "--once", "-n 1 makes one iteration"),
        (!plan.sequence.is_empty(), "sequence", "the order of the steps is fixed"),
        (sessions, "--session", "an iteration of a journey is a session already"),
        (connection.pipeline > 1, "--pipeline or --streams", "a user waits for each response"),
        (connection.group.is_some(), "--group", "a user waits for each response"),
        (by_k6 && request.compressed, "--compressed", "the script sets Accept-Encoding itself"),
        (by_k6 && request.follow_max > 0, "--follow", "the script follows redirects itself"),
        (request.body.is_some(), "--body", "each step has its own body"),
        (request.method != "GET", "--method", "each step has its own method"),
    ] {
        if wrong {
            let text =
                format!("a plan with journeys cannot be used with {option}: {why}; drop one");
            problems.add("journey", text);
        }
    }
}
