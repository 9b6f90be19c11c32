//! One site over several protocols: the resources used by each, as a table, and the times of all as
//! bars. Only if the sides use different protocols.

use crate::section::{Block, DataTable, Document, Forms, heading};
use crate::words::seconds;
use record::compare::{CompareRecord, ProtocolRecord, SideRecord};
use stats::Hist;
use units::show;

/// Quantiles that have a bar.
const BARS: [(&str, f64); 4] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)];
/// Characters of the longest bar.
const BAR_MAX: usize = 40;

/// Renders the protocols; empty if all sides use the same protocol, or the resources of one are
/// unknown.
pub(super) fn protocols(document: &mut Document, report: &CompareRecord) {
    let sides = report.protocols.as_slice();
    if sides.is_empty() {
        return;
    }
    let names: Vec<&str> = sides.iter().map(|side| side.version.as_str()).collect();
    let table = DataTable::new(std::iter::once("").chain(names.iter().copied())).with(rows(sides));
    document.add(Forms::PAGE, [heading("The protocols")]);
    document.add(Forms::LONG, [Block::Gap]);
    document.add(Forms::LONG | Forms::PAGE, [Block::Table(table)]);
    let bars = bars(&names, &report.sides().map(SideRecord::response).collect::<Vec<_>>());
    if !bars.is_empty() {
        let both = if names.len() == 2 { "both" } else { "all" };
        let head = heading(format!("Response times of {both}"));
        document.add(Forms::LONG, [head, Block::Lines(bars)]);
    }
}

/// Name in the table, with its figure for one side.
type SideFigure = (&'static str, fn(&ProtocolRecord) -> String);

fn rows(sides: &[ProtocolRecord]) -> Vec<Vec<String>> {
    let figures: [SideFigure; 12] = [
        ("calls a second", |side| show::rate(side.calls_per_s)),
        ("response p50", |side| time(side.response_p50_s)),
        ("response p99", |side| time(side.response_p99_s)),
        ("first byte p50", |side| time(side.first_byte_p50_s)),
        ("connections a run", |side| show::count(side.connections_per_run)),
        ("connect p50", |side| time(side.connect_p50_s)),
        ("TLS p50", |side| time(side.tls_p50_s)),
        ("sent a call", |side| show::bytes(side.bytes_sent_per_call)),
        ("received a call", |side| show::bytes(side.bytes_received_per_call)),
        ("streams of a connection", |side| {
            known(side.streams_per_connection, |streams| show::count(u64::from(streams)))
        }),
        ("coded fields sent a call", |side| known(side.coded_sent_per_call, show::bytes)),
        ("coded fields received", |side| known(side.coded_received_per_call, show::bytes)),
    ];
    let without_tls = sides.iter().all(|side| side.tls_p50_s.is_none());
    let shown = figures.iter().filter(|(name, _)| !(without_tls && *name == "TLS p50"));
    let row = |(name, of): &SideFigure| -> Vec<String> {
        std::iter::once((*name).to_owned()).chain(sides.iter().map(of)).collect()
    };
    shown.map(row).collect()
}

fn time(figure: Option<f64>) -> String {
    known(figure, seconds)
}

fn known<T>(figure: Option<T>, show: impl Fn(T) -> String) -> String {
    figure.map_or_else(|| "-".to_owned(), show)
}

/// Renders a line for each quantile of each protocol: its name, the bar, the time.
fn bars(names: &[&str], hists: &[Hist]) -> Vec<String> {
    let known = |(_, quantile): &&(&str, f64)| {
        hists.iter().all(|hist| hist.count() >= stats::samples_needed(*quantile))
    };
    let shown: Vec<&(&str, f64)> = BARS.iter().filter(known).collect();
    let longest = shown
        .iter()
        .flat_map(|(_, q)| hists.iter().map(|hist| hist.quantile(*q).0))
        .max()
        .unwrap_or(0)
        .max(1);
    let mut lines = Vec::new();
    for (name, quantile) in shown {
        for (side, hist) in hists.iter().enumerate() {
            let time = hist.quantile(*quantile);
            let length = (time.0 as f64 / longest as f64 * BAR_MAX as f64).round().max(1.0);
            let label = if side == 0 { *name } else { "" };
            lines.push(format!(
                "  {label:<6}{:<9}{} {}",
                names[side],
                "█".repeat(length as usize),
                show::duration(time)
            ));
        }
    }
    lines
}
