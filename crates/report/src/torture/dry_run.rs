//! What would be sent, where, how often and within which bounds.

use super::Report;
use crate::page::text::layout::Page;
use campaign::{Settings, TestTarget, span_of_run, worst};
use dialogue::governor::{Bounds, Spent};
use std::net::IpAddr;
use torture::case::Case;
use torture::safety::class;
use units::show;

/// What a run would do.
#[derive(Clone, Copy, Debug)]
pub struct DryRun<'a> {
    pub report: &'a Report,
    pub target: &'a TestTarget,
    pub settings: &'a Settings,
    pub bounds: &'a Bounds,
    /// The cases, and why one of them would be skipped.
    pub cases: &'a [(Case, Option<String>)],
    /// What is still to be shown before anything is sent; nothing for most targets.
    pub wanting: Option<&'a str>,
}

/// The plan of a run, as text.
pub fn dry_run(plan: &DryRun<'_>) -> String {
    let DryRun { report, target, settings, bounds, cases, wanting } = *plan;
    let mut page = Page::default();
    page.wrapped("", &format!("{} would be tested; nothing is sent.", report.target));
    page.blank();
    for address in &report.addresses {
        let address: IpAddr = *address;
        page.wrapped("  address      ", &format!("{address} ({})", class(address).id()));
    }
    page.wrapped("  class        ", report.class.id());
    if let Some(wanting) = wanting {
        page.wrapped("  wanting      ", wanting);
    }
    page.wrapped("  plain page   ", &format!("GET {}", target.values.path));
    let bodies = if target.takes_bodies { target.values.post.as_str() } else { "none: skipped" };
    page.wrapped("  bodies go to ", bodies);
    for line in target.fields.lines() {
        page.wrapped("  we are       ", line);
    }
    page.blank();
    page.wrapped("", "Bounds in force:");
    for (name, value) in torture::safety::bounds::rows(bounds) {
        page.wrapped(&format!("  {name:<26} "), &value);
    }
    page.blank();
    page.wrapped("", "At most, if every try of everything fails:");
    page.blank();
    let [connections, requests, bytes] = ["connections", "requests", "bytes"];
    page.wrapped(&format!("  {:<6} {connections:>11} {requests:>11} {bytes:>12}", "case"), "");
    let mut all = Spent::default();
    for (case, skipped) in cases {
        if let Some(why) = skipped {
            page.wrapped(&format!("  {:<6} skipped: ", case.id), why);
            continue;
        }
        let most = worst(case, target, settings, bounds);
        all = sum(all, most);
        page.wrapped(&row(&case.id, most), &case.title);
    }
    page.wrapped(&row("all", all), "");
    page.blank();
    let chosen: Vec<Case> = cases
        .iter()
        .filter(|(_, skipped)| skipped.is_none())
        .map(|(case, _)| case.clone())
        .collect();
    let span = span_of_run(&chosen, settings, bounds);
    page.wrapped(
        "",
        &format!(
            "Usually {} on a server that answers, and no more than {} where ten cases meet silence and \
             nothing ends what is unfinished. The bounds end it after {}, should all of it meet silence.",
            show::duration(span.usual),
            show::duration(span.hung),
            show::duration(span.most)
        ),
    );
    page.blank();
    let (before, gates) = (settings.baseline, cases.len());
    page.wrapped(
        "",
        &format!(
            "Plain requests come on top: a few at the beginning, probes for {}, at least {gates} \
             between the cases, and one a minute while a case goes on.",
            show::duration(before)
        ),
    );
    page.finish()
}

fn sum(one: Spent, other: Spent) -> Spent {
    Spent {
        connections: one.connections.saturating_add(other.connections),
        requests: one.requests.saturating_add(other.requests),
        bytes: one.bytes.saturating_add(other.bytes),
    }
}

fn row(name: &str, most: Spent) -> String {
    let count = |n: u64| if n == u64::MAX { "no bound".to_owned() } else { show::count(n) };
    let bytes = if most.bytes == u64::MAX { count(most.bytes) } else { show::bytes(most.bytes) };
    let (connections, requests) = (count(most.connections), count(most.requests));
    format!("  {name:<6} {connections:>11} {requests:>11} {bytes:>12}  ")
}
