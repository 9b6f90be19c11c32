//! One site over several protocols: what each of them took beside the times, as a table, and the times
//! of all as bars. Only where the sides speak different protocols.

use super::CompareReport;
use crate::RunReport;
use plan::{HttpVersion, Plan};
use stats::{Hist, Snapshot};
use units::{Nanos, show};

/// The protocols, and the rows of the table: a name and a figure of each.
pub(crate) struct Protocols {
    pub(crate) names: Vec<&'static str>,
    pub(crate) rows: Vec<Vec<String>>,
    /// Response times of all runs of each.
    hists: Vec<Hist>,
}

/// Quantiles that have a bar.
const BARS: [(&str, f64); 4] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)];
/// Characters of the longest bar.
const BAR_MAX: usize = 40;

/// `None`: all sides speak the same protocol, or of one of them is not known what it took: it has no run,
/// or was read from JSON, which has its figures and response times alone.
pub(crate) fn protocols(report: &CompareReport) -> Option<Protocols> {
    let plan = |runs: &'_ Vec<RunReport>| runs.first().map(|run| run.plan.clone());
    let plans: Vec<Plan> = report.runs.iter().map(plan).collect::<Option<_>>()?;
    let versions: Vec<HttpVersion> = plans.iter().map(|plan| plan.request.version).collect();
    if versions.iter().all(|version| *version == versions[0]) {
        return None;
    }
    let sides: Vec<Side> = report.runs.iter().map(|runs| Side::of(runs)).collect();
    if sides.iter().any(|side| side.total.counts.done() == 0) {
        return None;
    }
    let rows = rows(&sides, &plans);
    let names = versions.into_iter().map(HttpVersion::name).collect();
    let hists = sides.iter().map(|side| side.total.response()).collect();
    Some(Protocols { names, rows, hists })
}

/// All runs of one side.
struct Side {
    total: Snapshot,
    runs: u64,
    window: Nanos,
}

impl Side {
    fn of(runs: &[RunReport]) -> Side {
        let mut side = Side { total: Snapshot::default(), runs: 0, window: Nanos::ZERO };
        for run in runs {
            side.total.merge(&run.measurement.total);
            side.runs += run.runs.len().max(1) as u64;
            side.window += run.measurement.window;
        }
        side
    }

    fn calls(&self) -> u64 {
        self.total.counts.done().max(1)
    }

    /// Bytes of fields of a response as they came, and of a request as they went: of HTTP/2 without
    /// the frames around them.
    fn fields(&self) -> Option<(u64, u64)> {
        let http2 = &self.total.connections.http2;
        (http2.streams > 0)
            .then(|| (http2.coded_sent / http2.streams, http2.coded_received / http2.streams))
    }
}

type Shown<'a> = (&'static str, &'a dyn Fn(&Side) -> String);

fn rows(sides: &[Side], plans: &[Plan]) -> Vec<Vec<String>> {
    let quantile = |hist: &Hist, q: f64| match hist.is_empty() {
        true => "-".to_owned(),
        false => show::duration(hist.quantile(q)),
    };
    let mean = |sum: u64, calls: u64| show::bytes(sum / calls);
    let figures: [Shown<'_>; 8] = [
        ("calls a second", &|side| {
            let rate = side.total.in_window as f64 / side.window.as_secs_f64().max(1e-9);
            show::rate(rate)
        }),
        ("response p50", &|side| quantile(&side.total.response(), 0.5)),
        ("response p99", &|side| quantile(&side.total.response(), 0.99)),
        ("first byte p50", &|side| quantile(&side.total.first_byte, 0.5)),
        ("connections a run", &|side| {
            show::count(side.total.connections.established / side.runs.max(1))
        }),
        ("connect p50", &|side| quantile(&side.total.connect, 0.5)),
        ("sent a call", &|side| mean(side.total.bytes_sent, side.calls())),
        ("received a call", &|side| mean(side.total.bytes_received, side.calls())),
    ];
    let row = |name: &str, of: &dyn Fn(&Side) -> String| -> Vec<String> {
        std::iter::once(name.to_owned()).chain(sides.iter().map(of)).collect()
    };
    let mut rows: Vec<Vec<String>> = figures.iter().map(|(name, of)| row(name, of)).collect();
    if sides.iter().any(|side| !side.total.tls.is_empty()) {
        rows.insert(6, row("TLS p50", &|side| quantile(&side.total.tls, 0.5)));
    }
    let depth = plans.iter().map(|plan| match plan.request.version.has_streams() {
        true => show::count(u64::from(plan.connection.pipeline)),
        false => "-".to_owned(),
    });
    rows.push(std::iter::once("streams of a connection".to_owned()).chain(depth).collect());
    for (name, of) in [
        ("coded fields sent a call", (|pair: (u64, u64)| pair.0) as fn((u64, u64)) -> u64),
        ("coded fields received", |pair| pair.1),
    ] {
        rows.push(row(name, &|side| {
            side.fields().map_or_else(|| "-".to_owned(), |pair| show::bytes(of(pair)))
        }));
    }
    rows
}

impl Protocols {
    /// A line for each quantile of each protocol: its name, the bar, the time.
    pub(crate) fn bars(&self) -> Vec<String> {
        let known = |(_, quantile): &&(&str, f64)| {
            self.hists.iter().all(|hist| hist.count() >= stats::samples_needed(*quantile))
        };
        let shown: Vec<&(&str, f64)> = BARS.iter().filter(known).collect();
        let longest = shown
            .iter()
            .flat_map(|(_, q)| self.hists.iter().map(|hist| hist.quantile(*q).0))
            .max()
            .unwrap_or(0)
            .max(1);
        let mut lines = Vec::new();
        for (name, quantile) in shown {
            for (side, hist) in self.hists.iter().enumerate() {
                let time = hist.quantile(*quantile);
                let length = (time.0 as f64 / longest as f64 * BAR_MAX as f64).round().max(1.0);
                let label = if side == 0 { *name } else { "" };
                lines.push(format!(
                    "  {label:<6}{:<9}{} {}",
                    self.names[side],
                    "█".repeat(length as usize),
                    show::duration(time)
                ));
            }
        }
        lines
    }
}
