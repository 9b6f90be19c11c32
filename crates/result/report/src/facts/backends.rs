//! One-line facts of the balance among back ends.

use crate::words::{counted, printable};
use record::run::{BackendsRecord, LoadFigureRecord, LoadRecord};
use units::show;

/// Back ends that are listed, the busiest first, and characters of a name.
const LISTED_MAX: usize = 8;
const NAME_MAX: usize = 80;

/// Returns the shares of the back ends if there are several, and the load that they report.
pub(crate) fn facts(backends: &BackendsRecord) -> Vec<(&'static str, String)> {
    let named = backends.names.iter().map(|one| (&*one.name, one.calls)).collect();
    let addressed = backends.addresses.iter().map(|one| (&*one.address, one.calls)).collect();
    let mut lines: Vec<(&str, String)> = Vec::new();
    let shown = [(named, 1), (addressed, 2)];
    for (rows, least) in shown {
        let label = if lines.is_empty() { "Back ends" } else { "" };
        lines.extend(shares(rows, least).map(|text| (label, text)));
    }
    let label = if lines.is_empty() { "Back ends" } else { "" };
    lines.extend(backends.load.as_ref().map(|load| (label, reported(load))));
    lines
}

/// Formats the shares of back ends: `pod-a 600 (60.0 %), pod-b 400 (40.0 %)`; `None` for fewer than
/// `least` rows.
fn shares(mut rows: Vec<(&str, u64)>, least: usize) -> Option<String> {
    if rows.len() < least {
        return None;
    }
    rows.sort_by_key(|(name, calls)| (std::cmp::Reverse(*calls), *name));
    let all = rows.iter().map(|(_, calls)| calls).sum::<u64>().max(1);
    let one = |(name, calls): &(&str, u64)| {
        let share = show::share(*calls as f64 / all as f64);
        format!("{} {} ({share})", printable(name, NAME_MAX), show::count(*calls))
    };
    let mut parts: Vec<String> = rows.iter().take(LISTED_MAX).map(one).collect();
    if rows.len() > LISTED_MAX {
        parts.push(format!("{} more", rows.len() - LISTED_MAX));
    }
    Some(parts.join(", "))
}

/// Describes the load that back ends report.
fn reported(load: &LoadRecord) -> String {
    let share = |name: &str, figure: &Option<LoadFigureRecord>| {
        let figure = figure.as_ref()?;
        Some(format!("{name} {} (at most {})", show::share(figure.mean), show::share(figure.max)))
    };
    let rate = |name: &str, figure: &Option<LoadFigureRecord>| {
        figure.as_ref().map(|figure| format!("{name} {}", show::rate(figure.mean)))
    };
    let parts: Vec<String> = [
        share("CPU", &load.cpu),
        share("memory", &load.memory),
        share("utilization", &load.application),
        rate("requests", &load.requests_per_s),
        rate("errors", &load.errors_per_s),
    ]
    .into_iter()
    .flatten()
    .collect();
    let mut text = counted(load.reports, "load report");
    if !parts.is_empty() {
        text += &format!(": {}", parts.join(", "));
    }
    if load.malformed > 0 {
        text += &format!("; {} malformed", show::count(load.malformed));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::run::{AddressRecord, BackendRecord};

    #[test]
    fn the_balance_of_back_ends_is_a_line() {
        let address = |address: &str, calls| AddressRecord {
            address: address.to_owned(),
            connections: 1,
            calls,
        };
        let mut backends = BackendsRecord {
            addresses: vec![address("10.0.0.1:80", 300), address("10.0.0.2:80", 100)],
            names: vec![BackendRecord { name: "pod-a".to_owned(), calls: 400 }],
            load: Some(LoadRecord {
                reports: 400,
                malformed: 2,
                cpu: Some(LoadFigureRecord { mean: 0.5, max: 0.75 }),
                memory: None,
                application: None,
                requests_per_s: Some(LoadFigureRecord { mean: 100.0, max: 120.0 }),
                errors_per_s: None,
            }),
        };
        let lines = [
            ("Back ends", "pod-a 400 (100 %)".to_owned()),
            ("", "10.0.0.1:80 300 (75.0 %), 10.0.0.2:80 100 (25.0 %)".to_owned()),
            (
                "",
                "400 load reports: CPU 50.0 % (at most 75.0 %), requests 100/s; 2 malformed"
                    .to_owned(),
            ),
        ];
        assert_eq!(facts(&backends), lines);
        // no line about the balance: there is a single address
        backends.addresses.truncate(1);
        (backends.names, backends.load) = (Vec::new(), None);
        assert_eq!(facts(&backends), []);
    }
}
