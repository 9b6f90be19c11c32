//! The machines of a fleet as lines: first all together, then each, conspicuous ones first.

use crate::words::{self, seconds};
use record::run::{AgentRecord, FleetRecord, MoveRecord};
use units::show;

/// Agents that have a line each.
const SHOWN: usize = 12;
/// Slots of a part that are named.
const SLOTS_SHOWN: usize = 8;

pub(crate) fn facts(fleet: &FleetRecord) -> Vec<(&'static str, String)> {
    let mut lines = vec![("Fleet", summary(fleet))];
    let mut order: Vec<usize> = (0..fleet.agents.len()).collect();
    order.sort_by(|one, other| {
        let odd = |row: usize| oddness(&fleet.agents[row]);
        odd(*other).total_cmp(&odd(*one)).then(one.cmp(other))
    });
    for row in order.iter().take(SHOWN) {
        lines.push(("", line(*row, &fleet.agents[*row])));
    }
    match order.len().saturating_sub(SHOWN) {
        0 => {}
        more => lines.push(("", format!("{more} more agents, less unusual than these"))),
    }
    lines.extend(moves(fleet).into_iter().map(|text| ("", text)));
    lines.extend(fleet.budgets.iter().map(|budget| {
        let (asked, most) = (show::rate(budget.asked_per_s), show::rate(budget.most_per_s));
        ("", format!("budget of {}: {asked} of {most}", words::printable(&budget.host, 80)))
    }));
    lines.extend(fleet.refused.iter().map(|refused| {
        let (foreign, late, replayed) = (refused.foreign, refused.late, refused.replayed);
        let text = format!(
            "refused messages: {foreign} of another process, {late} of another run, {replayed} replayed"
        );
        ("", text)
    }));
    lines
}

/// Returns the parts transferred from lost agents: a line for each agent that left or was offered
/// something.
fn moves(fleet: &FleetRecord) -> Vec<String> {
    let agent = |id: &str| {
        let row = fleet.agents.iter().position(|agent| agent.id == id);
        let host = row.map_or("", |row| &fleet.agents[row].host);
        format!("{} {}", row.map_or(0, |row| row + 1), words::printable(host, 40))
    };
    let tell = |step: &MoveRecord| {
        let numbers: Vec<String> =
            step.slots.iter().take(SLOTS_SHOWN).map(u32::to_string).collect();
        let more = match step.slots.len().saturating_sub(SLOTS_SHOWN) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let share = step.slots.len() as f64 / f64::from(step.of.max(1));
        let (from, to) = (agent(&step.from), agent(&step.to));
        let slots = format!("slots {}{more} of {}", numbers.join(", "), step.of);
        let what = format!("{} of the load ({slots}) of {from}", show::share(share));
        match &step.refused {
            None => format!("{to} took over {what} at {:.1} s", step.at_s),
            Some(why) => format!("{to} did not accept {what}: {}", words::printable(why, 120)),
        }
    };
    let mut lines: Vec<String> = fleet.moved.iter().take(SHOWN).map(tell).collect();
    match fleet.moved.len().saturating_sub(SHOWN) {
        0 => {}
        more => lines.push(format!("{more} more parts went to others")),
    }
    lines
}

/// Returns the rank of an agent in lists: lost ones first, then invalid, then late.
fn oddness(agent: &AgentRecord) -> f64 {
    let gone = if agent.lost > 0 || agent.lost_at_s.is_some() { 1e6 } else { 0.0 };
    let bad = if agent.state == "INVALID" { 1e3 } else { 0.0 };
    gone + bad + agent.slip_p99_s
}

fn summary(fleet: &FleetRecord) -> String {
    let mut parts = vec![words::counted(fleet.agents.len() as u64, "agent")];
    let bound = seconds(fleet.clock_bound_max_s);
    match fleet.start_spread_s {
        Some(spread) => {
            parts.push(format!(
                "started within {} of each other ({} by their own clocks, which are known to within \
                 {bound})",
                seconds(spread + clock_error_max_s(fleet)),
                seconds(spread)
            ));
        }
        None => parts.push(format!("clocks known to within {bound}")),
    }
    if fleet.lost > 0 {
        parts.push(format!("{} arrivals lost", show::count(fleet.lost)));
    }
    let mut builds: Vec<&str> = fleet.agents.iter().map(|agent| agent.build.as_str()).collect();
    builds.sort_unstable();
    builds.dedup();
    if builds.len() > 1 {
        parts.push(format!("versions {}", words::printable(&builds.join(", "), 80)));
    }
    parts.join(", ")
}

/// Returns the error bound between the two clocks with the largest errors.
fn clock_error_max_s(fleet: &FleetRecord) -> f64 {
    let mut bounds: Vec<f64> = fleet.agents.iter().map(|agent| agent.clock_bound_s).collect();
    bounds.sort_by(f64::total_cmp);
    bounds.iter().rev().take(2).sum()
}

fn line(row: usize, agent: &AgentRecord) -> String {
    let mut text = format!("{} {}", row + 1, words::printable(&agent.host, 40));
    if !agent.labels.is_empty() {
        text.push_str(&format!(" [{}]", words::printable(&agent.labels, 60)));
    }
    text.push_str(&format!(
        ": {} of the load, {} offered, p50 {}, p99 {}, slip p99 {}, core {} busy, clock to {}",
        show::share(agent.weight),
        show::count(agent.offered),
        seconds(agent.response_p50_s),
        seconds(agent.response_p99_s),
        seconds(agent.slip_p99_s),
        show::share(agent.busy),
        seconds(agent.clock_bound_s),
    ));
    if !agent.state.is_empty() {
        text.push_str(&format!(", {}", agent.state));
        if !agent.causes.is_empty() {
            text.push_str(&format!(" ({})", words::printable(&agent.causes.join(", "), 80)));
        }
    }
    if agent.ending != "done" {
        let at = agent.lost_at_s.map_or(String::new(), |at| format!(" at {at:.1} s"));
        text.push_str(&format!("; {}{at}", words::printable(&agent.ending, 80)));
    }
    if agent.lost > 0 {
        text.push_str(&format!(", {} lost", show::count(agent.lost)));
    }
    text
}
