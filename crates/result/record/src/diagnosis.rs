//! Computes findings from finished runs, for reports.

mod fleet;
mod own_stack;

use crate::ramp::RampStep;
use crate::run::{Finding, RunReport};
use crate::server::{Conduct, Server};
use plan::{HttpVersion, Load, Plan, Think};
use stats::CauseId;
use stats::curve::Curve;
use stats::diagnosis::{Confidence, Diagnosis, Evidence, Http2Limits, RULES, of_ramp, of_run};
use std::cmp::Reverse;
use units::Nanos;

/// Returns bottlenecks of the server found in one run, most certain first. Ignores findings that
/// the report already has.
pub fn findings(report: &RunReport) -> Vec<Finding> {
    let limits = of_run(&evidence(report)).into_iter().map(Finding::from);
    let agents = report.fleet.iter().flat_map(|facts| fleet::findings(facts, report));
    let own = own_stack::findings(report);
    conduct(&Server::new(report)).into_iter().chain(own).chain(limits).chain(agents).collect()
}

/// States of the server that are findings themselves: the state, the finding's id, the advice.
const CONDUCTS: [(Conduct, &str, &str); 4] = [
    (
        Conduct::Gone,
        "server-gone",
        "Check the server's log, its exit status and the kernel's log (dmesg: out of memory, a \
         signal) at that instant, and repeat with --sut to record its memory and descriptors.",
    ),
    (
        Conduct::Refusing,
        "server-refusing",
        "Check whether the server still listens, and whether it reached its limit of connections \
         or descriptors at that instant.",
    ),
    (
        Conduct::Stalled,
        "server-stalled",
        "Check what each worker of the server waits for (a lock, a database, a full disk): take a \
         stack trace of each thread at that moment.",
    ),
    (
        Conduct::Failing,
        "server-failing",
        "Check the server's log for these responses, and lower the load until they end, which \
         distinguishes a fault from overload.",
    ),
];

/// Returns the ids of all findings that there can be.
pub fn finding_ids() -> impl Iterator<Item = &'static str> {
    let limits = RULES.iter().map(|rule| rule.id);
    let conducts = CONDUCTS.iter().map(|(_, id, _)| *id);
    conducts.chain(own_stack::IDS).chain(limits).chain(fleet::IDS)
}

/// Returns the finding for a server that dies, goes silent or fails a share of its calls.
fn conduct(server: &Server) -> Option<Finding> {
    let (_, id, advice) = CONDUCTS.iter().find(|(conduct, ..)| *conduct == server.conduct)?;
    Some(Finding {
        id: (*id).to_owned(),
        confidence: Confidence::Certain,
        evidence: server.sentence(),
        advice: (*advice).to_owned(),
    })
}

/// Returns the steps of one target in which the server died or fell silent, in one finding.
fn conduct_of_steps(steps: &[&RampStep]) -> Option<Finding> {
    let ended = |server: &Server| {
        matches!(server.conduct, Conduct::Gone | Conduct::Refusing | Conduct::Stalled)
    };
    let servers = steps.iter().map(|step| (step.point.level, Server::new(&step.run)));
    let mut ended = servers.filter(|(_, server)| ended(server));
    let (level, first) = ended.next()?;
    let mut found = conduct(&first)?;
    let more = match ended.count() {
        0 => String::new(),
        n => format!("; the same in {n} steps above"),
    };
    found.evidence = format!("at a load of {level}: {}{more}", first.sentence());
    Some(found)
}

/// Returns bottlenecks of each target of a ramp, from all of its steps, most certain first. With
/// several targets, the evidence of each finding names its target; `labels`, `curves`: one per
/// target, or empty.
pub fn ramp_findings(steps: &[RampStep], labels: &[String], curves: &[Curve]) -> Vec<Finding> {
    let targets = steps.iter().map(|step| step.label + 1).max().unwrap_or(0);
    let of_target = |label: usize| -> Vec<Finding> {
        let mut own: Vec<&RampStep> = steps.iter().filter(|step| step.label == label).collect();
        own.sort_by(|a, b| a.point.level.total_cmp(&b.point.level));
        let evidence: Vec<Evidence<'_>> = own.iter().map(|step| evidence(&step.run)).collect();
        let usl = curves.get(label).and_then(|curve| curve.usl.as_ref());
        let mut found: Vec<Finding> =
            of_ramp(&evidence, usl).into_iter().map(Finding::from).collect();
        found.extend(conduct_of_steps(&own));
        found.extend(own_stack::of_steps(&own));
        found.extend(fleet::of_steps(&own));
        if let Some(name) = labels.get(label).filter(|_| targets > 1) {
            found.iter_mut().for_each(|one| one.evidence = format!("{name}: {}", one.evidence));
        }
        found
    };
    let mut all: Vec<Finding> = (0..targets).flat_map(of_target).collect();
    // where calls fail, the client's limit explains nothing
    let fails = steps.iter().any(|step| step.point.fails());
    let last = |found: &Finding| fails && found.id == "client-limited";
    all.sort_by_key(|found| (last(found), Reverse(found.confidence)));
    all
}

impl From<Diagnosis> for Finding {
    fn from(found: Diagnosis) -> Finding {
        Finding {
            id: found.rule.id.to_owned(),
            confidence: found.confidence,
            evidence: found.evidence,
            advice: found.rule.advice.to_owned(),
        }
    }
}

fn evidence(report: &RunReport) -> Evidence<'_> {
    let plan = &report.plan;
    let mut evidence = Evidence::new(&report.measurement);
    evidence.users = match &plan.load {
        _ if !plan.scenarios.is_empty() => None,
        Load::Closed { users, .. } => Some(*users),
        Load::Open { .. } => None,
    };
    evidence.machine_busy =
        report.verdict.causes.iter().any(|cause| cause.id == CauseId::ForeignCpu);
    evidence.ramped = plan.is_ramped();
    evidence.uneven = plan.is_uneven();
    // calls of several targets differ, so the time of a single call describes none of them
    evidence.one_by_one = one_by_one(plan) && plan.targets.len() == 1 && report.runs.is_empty();
    evidence.calls_max = plan.connection.calls;
    evidence.timeout = plan.timeouts.call;
    evidence.connect_timeout = plan.timeouts.connect;
    evidence.alone = alone(report);
    let judged = report.verdict.causes.iter().find(|cause| cause.id == CauseId::DriverCpu);
    let busy = report.driver.busy.iter().copied().fold(0.0, f64::max);
    evidence.driver_busy = Some(judged.map_or(busy, |cause| cause.figure.max(busy)));
    evidence.sut = report.sut.as_ref();
    evidence.path = report.path.as_ref();
    evidence.read_rate = plan.websocket.read_rate;
    evidence.http2 = (plan.request.version == HttpVersion::Http2 && !plan.is_websocket())
        .then_some(Http2Limits {
            streams: plan.connection.pipeline,
            stream_window: plan.http2.stream_window,
            connection_window: plan.http2.connection_window,
            header_table: plan.http2.header_table,
            encoder_table: plan.http2.encoder_table,
        });
    evidence
}

fn one_by_one(plan: &Plan) -> bool {
    let connection = &plan.connection;
    let single =
        connection.pipeline == 1 && connection.group.is_none() && plan.scenarios.is_empty();
    single
        && match &plan.load {
            Load::Closed { think, session, .. } => *think == Think::None && session.is_none(),
            Load::Open { session, .. } => session.is_none(),
        }
}

/// Returns the duration of the first call, minus the usual time of connect and TLS.
fn alone(report: &RunReport) -> Option<Nanos> {
    let call = report.first_call.as_ref().filter(|call| call.failure.is_none())?;
    let total = &report.measurement.total;
    Some(call.took - total.connect.quantile(0.5) - total.tls.quantile(0.5))
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_finding_has_a_row_with_its_rivals() {
        let page = include_str!("../../../../docs/measuring.md");
        let (_, rest) = page.split_once("## Findings and their rivals").expect("the section");
        let (section, _) = rest.split_once("\n## ").expect("the next section");
        let rows: Vec<&str> =
            section.lines().filter_map(|line| line.strip_prefix("| ")?.split('|').next()).collect();
        for id in super::finding_ids() {
            assert!(rows.iter().any(|row| row.contains(&format!("`{id}`"))), "{id} has no row");
        }
    }
}
