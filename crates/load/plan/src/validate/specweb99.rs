//! Combinations with a SPECweb99 load.

use super::Problems;
use crate::specweb99::Specweb99Plan;
use crate::{HttpVersion, Load, Order, Plan, Think};
use workload::fileset::specweb99::SHARES;
use workload::fileset::specweb99_files::DIRECTORY_MAX;

pub(super) fn check(plan: &Plan, problems: &mut Problems) {
    let Some(specweb99) = plan.specweb99 else { return };
    let (request, connection) = (&plan.request, &plan.connection);
    let old = matches!(request.version, HttpVersion::Http10 | HttpVersion::Http11);
    let plain = matches!(plan.load, Load::Closed { think: Think::None, session: None, .. });
    for (wrong, option, why) in [
        (plan.journeys.is_some(), "journeys", "both define the requests"),
        (plan.script.is_some(), "--script", "both define the requests"),
        (!plan.scenarios.is_empty(), "scenarios", "its score is that of one load"),
        (plan.order != Order::InOrder, "--random or --once", "it has its own mix"),
        (!plan.sequence.is_empty(), "sequence", "it has its own mix"),
        (!plain, "--rate, --session or --think", "its connections are paced by their lines"),
        (plan.stages.is_some(), "--stages", "its connections stay open"),
        (!old, "--http 2 or 3", "its connections end by a count of requests"),
        (connection.pipeline > 1, "--pipeline", "a connection has one request at a time"),
        (connection.group.is_some(), "--group", "a connection has one request at a time"),
        (connection.calls.is_some(), "--close or --calls", "connections have their own lengths"),
        (request.cookies, "--cookies", "its cookies are its own"),
        (request.body.is_some(), "--body", "its POSTs have their own bodies"),
        (request.method != "GET", "--method", "it has its own methods"),
        (
            plan.expect.verify.is_some(),
            "--verify",
            "each response is compared with its file already",
        ),
        (plan.measure.stream.is_some(), "--stream", "its responses are files"),
        (plan.stop.duration.is_none(), "-n", "its connections are judged over a duration: give -d"),
        (request.follow_max > 0, "--follow", "each operation has one response"),
        (request.compressed, "--compressed", "each response is compared with its file"),
    ] {
        if wrong {
            let text =
                format!("--workload specweb99-like cannot be used with {option}: {why}; drop it");
            problems.add("--workload", text);
        }
    }
    problems.add_if(
        !(1..=DIRECTORY_MAX).contains(&specweb99.directories),
        "specweb99",
        "directories of [specweb99] are 1 to 99999",
    );
    let rows = [1, SHARES.len()].contains(&plan.targets.len());
    problems.add_if(
        !rows || Specweb99Plan::folder(plan).is_none(),
        "specweb99",
        "a plan with [specweb99] has its operations as targets: the first is that of \
         file_set/dir00000/class0_0; see what --print-plan makes",
    );
}
