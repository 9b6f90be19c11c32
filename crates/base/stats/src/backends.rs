//! Balance of a load among the back ends of a server, and the load that they report.

use sample::LoadReport;
use std::collections::BTreeMap;

/// Maximum number of back ends that are counted separately; all others share one row.
pub const BACKENDS_MAX: usize = 64;

/// Row of the back ends beyond [`BACKENDS_MAX`].
pub const BACKENDS_OTHER: &str = "(other)";

/// Share of one back end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BackendTally {
    /// Connections that were established; 0 if back ends are known by responses.
    pub connections: u64,
    /// Number of responses.
    pub calls: u64,
}

/// Calls by back end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Backends {
    /// Calls by peer address: streams of HTTP/2 and HTTP/3 in the whole run.
    pub addresses: BTreeMap<String, BackendTally>,
    /// Calls by the value of the field that names the back end: responses of the measured phase.
    pub names: BTreeMap<String, BackendTally>,
    /// Reports of load in responses of the measured phase.
    pub load: LoadTally,
}

impl Backends {
    /// Counts an ended connection to this address, with its responses.
    pub fn add_connection(&mut self, address: String, responses: u64) {
        add(&mut self.addresses, &address, BackendTally { connections: 1, calls: responses });
    }

    /// Counts a response of the back end with this name.
    pub fn add_response(&mut self, name: &str) {
        add(&mut self.names, name, BackendTally { connections: 0, calls: 1 });
    }

    pub fn merge(&mut self, other: &Backends) {
        let pairs = [(&mut self.addresses, &other.addresses), (&mut self.names, &other.names)];
        for (sum, more) in pairs {
            more.iter().for_each(|(name, tally)| add(sum, name, *tally));
        }
        self.load.merge(&other.load);
    }
}

fn add(all: &mut BTreeMap<String, BackendTally>, name: &str, more: BackendTally) {
    let is_full = all.len() >= BACKENDS_MAX && !all.contains_key(name);
    let name = if is_full { BACKENDS_OTHER } else { name };
    let sum = match all.get_mut(name) {
        Some(sum) => sum,
        None => all.entry(name.to_owned()).or_default(),
    };
    sum.connections += more.connections;
    sum.calls += more.calls;
}

/// Sum and maximum of one figure of load reports, in millionths: sums of integers do not depend on
/// their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoadFigure {
    /// Number of reports that contain it.
    pub reports: u64,
    pub sum: u128,
    pub most: u64,
}

/// Parts of a unit in which figures of load reports are added.
const MILLIONTHS: f64 = 1e6;

impl LoadFigure {
    /// Adds a value; values above 2^64 millionths count as that.
    fn add(&mut self, value: f64) {
        if value > 0.0 {
            let value = (value * MILLIONTHS).round() as u64;
            self.merge(&LoadFigure { reports: 1, sum: u128::from(value), most: value });
        }
    }

    fn merge(&mut self, other: &LoadFigure) {
        self.reports += other.reports;
        self.sum += other.sum;
        self.most = self.most.max(other.most);
    }

    /// Returns the mean; `None` without a report.
    pub fn mean(&self) -> Option<f64> {
        (self.reports > 0).then(|| self.sum as f64 / MILLIONTHS / self.reports as f64)
    }

    /// Returns the highest value; 0 without a report.
    pub fn highest(&self) -> f64 {
        self.most as f64 / MILLIONTHS
    }
}

/// Load reports of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoadTally {
    pub reports: u64,
    /// Reports that cannot be read.
    pub malformed: u64,
    pub cpu: LoadFigure,
    pub memory: LoadFigure,
    pub application: LoadFigure,
    pub requests_per_s: LoadFigure,
    pub errors_per_s: LoadFigure,
}

impl LoadTally {
    /// Counts a report; `None` if it cannot be read.
    pub fn add(&mut self, report: Option<LoadReport>) {
        self.reports += 1;
        let Some(report) = report else {
            self.malformed += 1;
            return;
        };
        self.cpu.add(report.cpu);
        self.memory.add(report.memory);
        self.application.add(report.application);
        self.requests_per_s.add(report.requests_per_s);
        self.errors_per_s.add(report.errors_per_s);
    }

    fn merge(&mut self, other: &LoadTally) {
        self.reports += other.reports;
        self.malformed += other.malformed;
        self.cpu.merge(&other.cpu);
        self.memory.merge(&other.memory);
        self.application.merge(&other.application);
        self.requests_per_s.merge(&other.requests_per_s);
        self.errors_per_s.merge(&other.errors_per_s);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn back_ends_add_up_and_are_bounded() {
        let mut one = Backends::default();
        (0..100).for_each(|number| one.add_response(&format!("pod-{number:03}")));
        one.add_connection("10.0.0.1:50051".to_owned(), 7);
        let mut sum = one.clone();
        sum.merge(&one);
        assert_eq!(sum.names.len(), BACKENDS_MAX + 1);
        assert_eq!(sum.names[BACKENDS_OTHER].calls, 72);
        assert_eq!(sum.names["pod-000"].calls, 2);
        let address = sum.addresses["10.0.0.1:50051"];
        assert_eq!(address, BackendTally { connections: 2, calls: 14 });
    }

    #[test]
    fn a_load_figure_is_averaged_over_the_reports_that_have_it() {
        let mut tally = LoadTally::default();
        tally.add(Some(LoadReport { cpu: 0.5, ..LoadReport::default() }));
        tally.add(Some(LoadReport { cpu: 0.7, requests_per_s: 100.0, ..LoadReport::default() }));
        tally.add(None);
        assert_eq!((tally.reports, tally.malformed, tally.cpu.reports), (3, 1, 2));
        assert!((tally.cpu.mean().unwrap() - 0.6).abs() < 1e-12);
        assert_eq!((tally.requests_per_s.mean(), tally.memory.mean()), (Some(100.0), None));
        assert!((tally.cpu.highest() - 0.7).abs() < 1e-12);
    }
}
