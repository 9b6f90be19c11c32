//! The budgets of docs/design.md section 7 and whether a raw file keeps them.

use super::figures::{Estimate, estimate};
use super::raw::Raw;

/// One budget for this program.
struct Budget {
    table: &'static str,
    tool: &'static str,
    metric: &'static str,
    against: Against,
    max: f64,
    unit: &'static str,
}

enum Against {
    /// Ratio of this program's figure to the other tool's, in the same round.
    Ratio(&'static str),
    /// Difference between this program's figure and the other tool's, in the same round.
    Difference(&'static str),
    /// Only this program's figure.
    Nothing,
}

/// Minimum number of rounds for a decision on a budget.
pub(super) const ROUNDS_MIN: usize = 9;
/// Resident memory and system calls hardly vary between runs.
const STEADY_ROUNDS_MIN: usize = 3;

const OURS: &str = "loadstone";
/// Suffix of the name of a table that was measured in a network namespace with TCP Reno.
pub(super) const RENO: &str = "-reno";
/// The same program with `--stack own`.
const OWN: &str = "own";

const BUDGETS: &[Budget] = &[
    cpu("keepalive", "bare", 1.06),
    cpu("keepalive", "wrk", 0.82),
    own("keepalive", "bare", 0.75),
    own("keepalive", "wrk", 0.56),
    own("many", "bare", 0.60),
    own("many", "wrk", 0.45),
    own("one", "bare", 1.05),
    own("nginx", "bare", 0.80),
    own("close", "bare", 0.60),
    own("bulk", OURS, 1.1),
    cpu("nginx", "httperf", 1.0),
    cpu("nginx", "wrk", 1.0),
    cpu("nginx", "ab", 1.0),
    cpu("nginx", "oha", 1.0),
    alone("keepalive", OURS, "user_us", 0.30, "µs"),
    difference("syscalls-null", "per_call", 0.1, "calls"),
    difference("syscalls-nginx", "per_call", 0.1, "calls"),
    cpu("close", "bare", 1.04),
    cpu("tls", "wrk", 0.88),
    alone("depth16", OURS, "cpu_us", 0.45, "µs"),
    alone("memory", "loadstone@5000", "kib_per_connection", 2.0, "KiB"),
    alone("memory", "loadstone@19000", "kib_per_connection", 2.0, "KiB"),
    alone("pace", "loadstone@2000", "late_p50_us", 20.0, "µs"),
    Budget {
        table: "pace",
        tool: "loadstone@2000",
        metric: "late_p99_us",
        against: Against::Ratio("reference@2000"),
        max: 1.5,
        unit: "×",
    },
    cpu("http2-1", "h2load", 0.90),
    cpu("http2-10", "h2load", 0.90),
    cpu("http2-100", "h2load", 0.90),
    user("http2-1", "h2load"),
    user("http2-10", "h2load"),
    user("http2-100", "h2load"),
    cpu("http2-tls-1", "h2load", 0.90),
    cpu("http2-tls-10", "h2load", 0.90),
    cpu("http2-tls-100", "h2load", 0.90),
    Budget {
        table: "http2-memory",
        tool: OURS,
        metric: "kib_per_connection",
        against: Against::Ratio("h2load"),
        max: 1.0,
        unit: "×",
    },
    cpu("http3-1", "h2load", 1.0),
    cpu("http3-10", "h2load", 1.0),
    cpu("http3-100", "h2load", 1.0),
    cpu("http3-connect", "h2load", 1.0),
    // the norm site serves a small file at no less than half of nginx's rate
    Budget {
        table: "site",
        tool: "nginx",
        metric: "calls_per_s",
        against: Against::Ratio("norm"),
        max: 2.0,
        unit: "×",
    },
];

const fn cpu(table: &'static str, reference: &'static str, max: f64) -> Budget {
    let against = Against::Ratio(reference);
    Budget { table, tool: OURS, metric: "cpu_us", against, max, unit: "×" }
}

/// The same for the own TCP.
const fn own(table: &'static str, reference: &'static str, max: f64) -> Budget {
    Budget { tool: OWN, ..cpu(table, reference, max) }
}

/// Returns the budget that the time in user space is at most that of the other tool.
const fn user(table: &'static str, reference: &'static str) -> Budget {
    let against = Against::Ratio(reference);
    Budget { table, tool: OURS, metric: "user_us", against, max: 1.0, unit: "×" }
}

const fn difference(
    table: &'static str,
    metric: &'static str,
    max: f64,
    unit: &'static str,
) -> Budget {
    Budget { table, tool: OURS, metric, against: Against::Difference("bare"), max, unit }
}

const fn alone(
    table: &'static str,
    tool: &'static str,
    metric: &'static str,
    max: f64,
    unit: &'static str,
) -> Budget {
    Budget { table, tool, metric, against: Against::Nothing, max, unit }
}

/// Result for one budget.
#[derive(Debug)]
pub(super) struct Judged {
    pub(super) what: String,
    pub(super) max: f64,
    pub(super) unit: &'static str,
    /// Figures found; `None` if the raw file has none.
    pub(super) found: Option<Estimate>,
    /// True if the budget is met; `None` with too few rounds.
    pub(super) holds: Option<bool>,
}

impl Judged {
    /// Returns the decision as one word.
    pub(super) fn word(&self) -> &'static str {
        match (self.holds, self.found) {
            (Some(true), _) => "holds",
            (Some(false), _) => "MISSED",
            (None, Some(_)) => "too few rounds",
            (None, None) => "not measured",
        }
    }

    pub(super) fn line(&self) -> String {
        let found = self.found.map_or_else(String::new, |found| {
            format!(": {:.3} [{:.3}, {:.3}] n {}", found.median, found.low, found.high, found.count)
        });
        format!("{}, at most {} {}{found}: {}", self.what, self.max, self.unit, self.word())
    }
}

/// Judges all budgets, in the order of the table, followed by those of the own TCP with Reno. A
/// budget is met if the median is at or below it.
pub(super) fn judge(raw: &Raw) -> Vec<Judged> {
    let plain = BUDGETS.iter().map(|budget| judge_one(budget, budget.table, raw));
    // those of our own TCP apply with either congestion control
    let own = BUDGETS.iter().filter(|budget| budget.tool == OWN);
    let reno = own.map(|budget| judge_one(budget, &format!("{}{RENO}", budget.table), raw));
    plain.chain(reno).collect()
}

/// Judges a budget by the figures of `table`.
fn judge_one(budget: &Budget, table: &str, raw: &Raw) -> Judged {
    let Budget { tool, metric, max, unit, .. } = *budget;
    let (values, what) = match budget.against {
        Against::Ratio(other) => (
            raw.paired(table, metric, (tool, other), |own, other| own / other),
            format!("{table}: {tool} / {other}, {metric}"),
        ),
        Against::Difference(other) => (
            raw.paired(table, metric, (tool, other), |own, other| own - other),
            format!("{table}: {tool} − {other}, {metric}"),
        ),
        Against::Nothing => (raw.values(table, tool, metric), format!("{table}: {tool}, {metric}")),
    };
    let steady = table.ends_with("memory") || table.starts_with("syscalls");
    let needed = if steady { STEADY_ROUNDS_MIN } else { ROUNDS_MIN };
    let found = estimate(&values);
    let enough = found.filter(|found| found.count >= needed);
    Judged { what, max, unit, found, holds: enough.map(|found| found.median <= max) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(rounds: u32, ours: impl Fn(u32) -> f64) -> Raw {
        let mut text = String::new();
        for round in 1..=rounds {
            // the machine is slower in every third round, for all tools
            let pace = if round % 3 == 0 { 1.3 } else { 1.0 };
            let own = ours(round) * pace;
            text += &format!("keepalive\t{round}\tbare\tcpu_us\t{}\n", 4.6 * pace);
            text += &format!("keepalive\t{round}\tloadstone\tcpu_us\t{own}\n");
        }
        Raw::parse(&text).unwrap()
    }

    fn first(raw: &Raw) -> Judged {
        judge(raw).into_iter().next().unwrap()
    }

    #[test]
    fn ratios_within_a_round_do_not_see_the_machine() {
        let judged = first(&raw(9, |_| 4.6 * 1.05));
        let found = judged.found.unwrap();
        assert!((found.low - 1.05).abs() < 1e-9 && (found.high - 1.05).abs() < 1e-9);
        assert_eq!(judged.holds, Some(true));
    }

    #[test]
    fn a_missed_budget_is_missed() {
        let judged = first(&raw(9, |_| 4.6 * 1.07));
        assert_eq!(judged.holds, Some(false));
        assert!(judged.line().ends_with("MISSED"), "{}", judged.line());
    }

    #[test]
    fn the_median_decides() {
        let judged = first(&raw(9, |round| 4.6 * if round < 6 { 1.06 } else { 1.10 }));
        assert_eq!(judged.holds, Some(true));
        let judged = first(&raw(9, |round| 4.6 * if round < 5 { 1.06 } else { 1.10 }));
        assert_eq!(judged.holds, Some(false));
    }

    #[test]
    fn too_few_rounds_are_undecided() {
        let judged = first(&raw(8, |_| 1.0));
        assert_eq!((judged.holds, judged.word()), (None, "too few rounds"));
        assert_eq!(judge(&Raw::parse("").unwrap())[0].word(), "not measured");
    }
}
