//! One site over two protocols: what each of them took beside the times, as a table, and the times of
//! both as bars. Only where the two sides speak different protocols.

use super::CompareReport;
use crate::RunReport;
use plan::{HttpVersion, Plan};
use stats::{Hist, Snapshot};
use units::{Nanos, show};

/// The two protocols, and the rows of the table: a name and both figures.
pub(crate) struct Protocols {
    pub(crate) names: [&'static str; 2],
    pub(crate) rows: Vec<[String; 3]>,
    /// Response times of all runs of each.
    hists: [Hist; 2],
}

/// Quantiles that have a bar.
const BARS: [(&str, f64); 4] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)];
/// Characters of the longest bar.
const BAR_MAX: usize = 40;

/// `None`: both sides speak the same protocol.
pub(crate) fn protocols(report: &CompareReport) -> Option<Protocols> {
    let plan = |side: usize| report.runs[side].first().map(|run: &RunReport| &run.plan);
    let plans = [plan(0)?, plan(1)?];
    let versions = plans.map(|plan| plan.request.version);
    if versions[0] == versions[1] {
        return None;
    }
    let sides = [0, 1].map(|side: usize| Side::of(&report.runs[side]));
    let rows = rows(&sides, plans);
    let names = versions.map(HttpVersion::name);
    Some(Protocols { names, rows, hists: sides.map(|side| side.total.response()) })
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

fn rows(sides: &[Side; 2], plans: [&Plan; 2]) -> Vec<[String; 3]> {
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
    let mut rows: Vec<[String; 3]> = figures
        .iter()
        .map(|(name, of)| [(*name).to_owned(), of(&sides[0]), of(&sides[1])])
        .collect();
    if sides.iter().any(|side| !side.total.tls.is_empty()) {
        let [first, second] = sides.each_ref().map(|side| quantile(&side.total.tls, 0.5));
        rows.insert(6, ["TLS p50".to_owned(), first, second]);
    }
    let depth = plans.map(|plan| match plan.request.version.has_streams() {
        true => show::count(u64::from(plan.connection.pipeline)),
        false => "-".to_owned(),
    });
    rows.push(["streams of a connection".to_owned(), depth[0].clone(), depth[1].clone()]);
    for (name, of) in [
        ("coded fields sent a call", (|pair: (u64, u64)| pair.0) as fn((u64, u64)) -> u64),
        ("coded fields received", |pair| pair.1),
    ] {
        let shown = |side: &Side| {
            side.fields().map_or_else(|| "-".to_owned(), |pair| show::bytes(of(pair)))
        };
        rows.push([name.to_owned(), shown(&sides[0]), shown(&sides[1])]);
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
