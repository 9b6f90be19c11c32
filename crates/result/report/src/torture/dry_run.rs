//! Requests that would be sent, their destination, rate and limits.

use super::Report;
use crate::page;
use crate::section::{Block, Document, Forms, Voice, text_block, with_lead};
use campaign::{Settings, TestTarget, span_of_run, worst_case_traffic};
use dialogue::governor::{Bounds, Spent};
use std::net::IpAddr;
use torture::case::Case;
use torture::safety::class;
use units::show;

/// Plan of a run.
#[derive(Clone, Copy, Debug)]
pub struct DryRun<'a> {
    pub report: &'a Report,
    pub target: &'a TestTarget,
    pub settings: &'a Settings,
    pub bounds: &'a Bounds,
    /// The cases, each with the reason why it would be skipped, if any.
    pub cases: &'a [(Case, Option<String>)],
    /// Missing requirements for sending; empty for most targets.
    pub wanting: Option<&'a str>,
}

/// Returns the plan of a run as text.
pub fn dry_run(plan: &DryRun<'_>) -> String {
    let mut document = Document::default();
    let what = format!("{} would be tested; nothing is sent.", plan.report.target);
    document.add(Forms::TEXT, [text_block(Voice::Plain, what), Block::Gap]);
    document.add(Forms::TEXT, target(plan));
    document.add(Forms::TEXT, [Block::Gap, text_block(Voice::Plain, "Limits:")]);
    let bound =
        |(name, value): (&str, String)| with_lead(&format!("  {name:<26} "), Voice::Plain, value);
    document.add(Forms::TEXT, torture::safety::bounds::rows(plan.bounds).into_iter().map(bound));
    let most = "At most, if every attempt fails:";
    document.add(Forms::TEXT, [Block::Gap, text_block(Voice::Plain, most), Block::Gap]);
    document.add(Forms::TEXT, amounts(plan));
    document.add(Forms::TEXT, [Block::Gap, text_block(Voice::Plain, span(plan)), Block::Gap]);
    let (probes, gates) = (show::duration(plan.settings.baseline), plan.cases.len());
    let on_top = format!(
        "In addition, plain requests are sent: a few at the start, probes for {probes}, at least \
        {gates} between the cases, and one per minute during a case."
    );
    document.add(Forms::TEXT, [text_block(Voice::Plain, on_top)]);
    page::text::whole(&document)
}

/// Describes the target and the requests.
fn target(plan: &DryRun<'_>) -> Vec<Block> {
    let DryRun { report, target, wanting, .. } = *plan;
    let mut lines = Vec::new();
    let mut add = |label: &str, value: &str| {
        lines.push(with_lead(&format!("  {label:<13}"), Voice::Plain, value));
    };
    for address in &report.addresses {
        let address: IpAddr = *address;
        add("address", &format!("{address} ({})", class(address).id()));
    }
    add("class", report.class.id());
    wanting.into_iter().for_each(|wanting| add("wanting", wanting));
    add("plain page", &format!("GET {}", target.values.path));
    let bodies = if target.takes_bodies { target.values.post.as_str() } else { "none: skipped" };
    add("body page", bodies);
    target.fields.lines().for_each(|line| add("we are", line));
    lines
}

/// Lists the maximum traffic of each case, and of all together.
fn amounts(plan: &DryRun<'_>) -> Vec<Block> {
    let [connections, requests, bytes] = ["connections", "requests", "bytes"];
    let head = format!("  {:<6} {connections:>11} {requests:>11} {bytes:>12}", "case");
    let mut lines = vec![with_lead(&head, Voice::Plain, "")];
    let mut all = Spent::default();
    for (case, skipped) in plan.cases {
        if let Some(why) = skipped {
            let lead = format!("  {:<6} skipped: ", case.id);
            lines.push(with_lead(&lead, Voice::Plain, why.as_str()));
            continue;
        }
        let most = worst_case_traffic(case, plan.target, plan.settings, plan.bounds);
        all = sum(all, most);
        lines.push(with_lead(&row(&case.id, most), Voice::Plain, case.title.as_str()));
    }
    lines.push(with_lead(&row("all", all), Voice::Plain, ""));
    lines
}

/// Describes the duration.
fn span(plan: &DryRun<'_>) -> String {
    let chosen = plan.cases.iter().filter(|(_, skipped)| skipped.is_none());
    let chosen: Vec<Case> = chosen.map(|(case, _)| case.clone()).collect();
    let span = span_of_run(&chosen, plan.settings, plan.bounds);
    format!(
        "Usually {} on a server that responds, and no more than {} if ten cases get no response \
        and the server has no timeouts. The limits stop it after {} if no case gets a response.",
        show::duration(span.usual),
        show::duration(span.hung),
        show::duration(span.most)
    )
}

fn sum(one: Spent, other: Spent) -> Spent {
    Spent {
        connections: one.connections.saturating_add(other.connections),
        requests: one.requests.saturating_add(other.requests),
        bytes: one.bytes.saturating_add(other.bytes),
    }
}

fn row(name: &str, most: Spent) -> String {
    let count = |n: u64| if n == u64::MAX { "no limit".to_owned() } else { show::count(n) };
    let bytes = if most.bytes == u64::MAX { count(most.bytes) } else { show::bytes(most.bytes) };
    let (connections, requests) = (count(most.connections), count(most.requests));
    format!("  {name:<6} {connections:>11} {requests:>11} {bytes:>12}  ")
}
