//! Findings from the program's own TCP: anomalies of its packets.

use crate::ramp::RampStep;
use crate::run::{ConflictRecord, Finding, RunReport};
use plan::Plan;
use sample::StackFacts;
use stats::diagnosis::Confidence;
use units::show;
use url::Host;

const SHARED_ADDRESS: &str = "address-conflict";
const PACED: &str = "paced-by-bbr";
/// The ids of all findings of this kind.
pub(super) const IDS: [&str; 2] = [SHARED_ADDRESS, PACED];

/// Minimum size of the mean response for detecting pacing: more than a packet of the device.
const PACED_MIN: u64 = 64 << 10;

/// Returns the findings of one run.
pub(super) fn findings(report: &RunReport) -> impl Iterator<Item = Finding> {
    shared_address(report.stack.as_ref()).into_iter().chain(paced(report))
}

/// Returns the findings of the steps of a ramp: each from the first step that has it.
pub(super) fn of_steps(steps: &[&RampStep]) -> Vec<Finding> {
    let mut found: Vec<Finding> = Vec::new();
    for one in steps.iter().flat_map(|step| findings(&step.run)) {
        if !found.iter().any(|known| known.id == one.id) {
            found.push(one);
        }
    }
    found
}

/// Reports that another host uses one of our addresses: the figures may not be the server's.
fn shared_address(stack: Option<&StackFacts>) -> Option<Finding> {
    let ConflictRecord { address, by } = ConflictRecord::new(&stack?.conflict?);
    Some(Finding {
        id: SHARED_ADDRESS.to_owned(),
        confidence: Confidence::Certain,
        evidence: format!(
            "{address} is in use by {by} as well: the server's packets may have gone there"
        ),
        advice: "Choose --sources that no other machine uses, and repeat.".to_owned(),
    })
}

/// Reports a server of this host that sends long responses by BBR, which measures too little
/// bandwidth over a device and paces them accordingly (docs/decisions/0065).
fn paced(report: &RunReport) -> Option<Finding> {
    let total = &report.measurement.total;
    let mean = total.body_bytes.checked_div(total.counts.done())?;
    let congestion = &report.environment.congestion;
    // an emulated path has a bandwidth limit that would be found, and a fleet has other hosts
    let over_a_device = report.stack.is_some() && report.path.is_none() && report.fleet.is_none();
    if !over_a_device
        || !is_here(&report.plan)
        || !congestion.starts_with("bbr")
        || mean < PACED_MIN
    {
        return None;
    }
    Some(Finding {
        id: PACED.to_owned(),
        confidence: Confidence::Likely,
        evidence: format!(
            "the mean response has {}, and this host's TCP uses {congestion}, which \
             underestimates the bandwidth of a network device and paces long responses: the server \
             may reach half of its throughput over sockets",
            show::bytes(mean)
        ),
        advice: "Measure long responses with the kernel's sockets (without --stack own) or over a \
            real link, or use another congestion control on the server."
            .to_owned(),
    })
}

/// Returns whether calls go over a TUN device to a server of this host, judging by the plan.
fn is_here(plan: &Plan) -> bool {
    let over_tun = plan.driver.stack.is_own() && plan.driver.stack.xdp().is_none();
    let is_loopback = |host: Host<&str>| match host {
        Host::Domain(name) => name == "localhost",
        Host::Ipv4(address) => address.is_loopback(),
        Host::Ipv6(address) => address.is_loopback(),
    };
    over_tun && plan.targets.iter().any(|target| target.url.host().is_some_and(is_loopback))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnosis::finding_ids;
    use plan::StackChoice;
    use sample::AddressConflict;

    #[test]
    fn an_address_that_two_have_is_a_finding() {
        let conflict = AddressConflict { address: [10, 9, 0, 7].into(), by: [2, 0, 0, 0, 0, 0xab] };
        let shared = StackFacts { conflict: Some(conflict), ..StackFacts::default() };
        let found = shared_address(Some(&shared)).unwrap();
        assert_eq!(
            found.evidence,
            "10.9.0.7 is in use by 02:00:00:00:00:ab as well: the server's packets may have gone \
             there"
        );
        assert!(finding_ids().any(|id| id == found.id), "{}", found.id);
        assert_eq!(shared_address(Some(&StackFacts::default())), None);
        assert_eq!(shared_address(None), None);
    }

    /// Returns ten responses of `mean` bytes, by our own TCP from a server at `url`, on a host that
    /// sends by BBR.
    fn paced_run(url: &str, mean: u64) -> RunReport {
        let mut measurement = stats::Measurement::default();
        measurement.total.counts.succeeded = 10;
        measurement.total.body_bytes = 10 * mean;
        let mut report = crate::server::tests::report(measurement);
        report.plan = Plan::for_targets(vec![plan::TargetPlan::new(url.parse().unwrap())]);
        report.plan.driver.stack = StackChoice::Own;
        report.stack = Some(StackFacts::default());
        report.environment.congestion = "bbr".to_owned();
        report
    }

    #[test]
    fn long_responses_by_bbr_of_this_host_are_a_finding() {
        let found = paced(&paced_run("http://127.0.0.1:8080/megabyte", 1_000_000)).unwrap();
        assert!(
            found
                .evidence
                .starts_with("the mean response has 977 KiB, and this host's TCP uses bbr,"),
            "{}",
            found.evidence
        );
        assert!(finding_ids().any(|id| id == found.id), "{}", found.id);
    }

    #[test]
    fn pacing_is_not_a_finding_without_evidence() {
        assert_eq!(paced(&paced_run("http://localhost:8080/", 200)), None, "short");
        assert_eq!(paced(&paced_run("http://192.0.2.7:8080/", 1_000_000)), None, "elsewhere");
        let mut report = paced_run("http://[::1]:8080/", 1_000_000);
        assert!(paced(&report).is_some());
        report.environment.congestion = "cubic".to_owned();
        assert_eq!(paced(&report), None, "not paced");
        report.environment.congestion = "bbr".to_owned();
        report.stack = None;
        assert_eq!(paced(&report), None, "by sockets");
        report.stack = Some(StackFacts::default());
        // long pages for a few calls, short pages for the many that failed
        report.measurement.total.counts.failed = 990;
        assert_eq!(paced(&report), None, "short in the mean");
        report.measurement.total.counts = Default::default();
        assert_eq!(paced(&report), None, "no response");
    }
}
