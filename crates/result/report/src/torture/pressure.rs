//! Effect on well-behaved clients: response times of the probes over the run, those refused or
//! lost, and the running case; and a row for each stress case.

use super::{badge, words};
use crate::section::chart::{
    AxisUnit, Chart, Dash, Dots, Horizontal, Line, POINTS_MAX, Range, Tone, Values,
};
use crate::section::{
    Block, Column, DataTable, Document, Forms, TableCell, Voice, Words, placed, text_block,
    with_lead,
};
use record::torture::{CaseRecord, ProbeRecord, TortureRecord};
use torture::judge::TestOutcome;
use torture::result::{ProbeKind, Seen};
use units::show;

/// Maximum number of marked cases, the longest first.
const BANDS_MAX: usize = 60;

pub(super) fn pressure(document: &mut Document, record: &TortureRecord) {
    let rows: Vec<Vec<TableCell>> = record.cases.iter().filter_map(row).collect();
    let chart = timeline(record);
    // probes alone yield a chart but no table
    let forms = match (rows.is_empty(), chart.is_none()) {
        (true, true) => return,
        (true, false) => Forms::PAGE,
        (false, _) => Forms::LONG | Forms::PAGE,
    };
    document.add(forms, [placed("felt", "Well-behaved clients under load")]);
    let before = record.baseline.as_ref().map(|base| format!("Before: {}.", words::baseline(base)));
    document.add(forms, before.map(|text| with_lead("  ", Voice::Plain, text)));
    if let Some(chart) = chart {
        let note = "Where several probes share a position, the slowest is drawn; a lost probe is \
            drawn at its timeout. Bands mark the running cases. Probes are sent before the first \
            case and during stress cases. Groups F and S have none: a plain request after each \
            of their cases tests whether the server still responds normally, and the case \
            reports any failure.";
        document.add(Forms::PAGE, [chart.into(), text_block(Voice::Note, note), Block::HowToLook]);
    }
    if rows.is_empty() {
        return;
    }
    let heads = ["", "correct", "shed", "lost", "p99", "recovery", "established", "followed"];
    let mut columns = heads.map(Column::from).to_vec();
    columns.push(Column::word("control").only(Forms::PAGE));
    document.add(forms, [Block::Table(DataTable::new(columns).with(rows))]);
    let note = "Correct, shed, lost: shares of the time in which probes got their usual \
        response, a well-formed refusal, or neither. Established: connections of the load, of \
        those wanted. Followed: rounds in which the load had an effect. Control: the result of \
        as many well-behaved connections. ~: fewer probes than a p99 needs.";
    document.add(Forms::PAGE, [text_block(Voice::Note, note)]);
}

fn row(case: &CaseRecord) -> Option<Vec<TableCell>> {
    let health = case.health.as_ref()?;
    let control =
        health.control_denied.map_or("-", |denied| if denied { "denied" } else { "held" });
    Some(vec![
        Words::from(case.id.as_str()).plain(" ").with(badge(case.outcome)).into(),
        show::share(health.correct).into(),
        show::share(health.shed).into(),
        show::share(health.lost).into(),
        words::p99(health.p99_s, health.probes).into(),
        health.recovery_s.map_or_else(|| "not known".to_owned(), words::recovery).into(),
        format!("{}/{}", health.armed, health.wanted).into(),
        words::followed(health).into(),
        control.into(),
    ])
}

/// Returns the timeline; `None` without probes.
fn timeline(record: &TortureRecord) -> Option<Chart> {
    let all = &record.probe_series;
    let mut probes: Vec<&ProbeRecord> = all.iter().filter(|probe| !probe.ours).collect();
    probes.sort_by(|one, other| one.due_s.total_cmp(&other.due_s));
    let (first, last) = (probes.first()?, probes.last()?);
    let (low, high) = (first.due_s, last.due_s);
    let width = ((high - low) / places(&probes) as f64).max(1e-3);
    let count = ((high - low) / width).floor() as usize + 1;
    let place = |probe: &ProbeRecord| (((probe.due_s - low) / width) as usize).min(count - 1);
    // the slowest of each position
    let slowest = |wanted: &dyn Fn(&ProbeRecord) -> bool| -> Values {
        let mut values: Values = vec![None; count];
        for probe in probes.iter().filter(|probe| wanted(probe)) {
            let value = &mut values[place(probe)];
            *value = Some(value.unwrap_or(0.0).max(probe.over_s));
        }
        values
    };
    let of = |kind: ProbeKind| slowest(&|probe| probe.kind == kind && probe.seen == Seen::Correct);
    let seen = |seen: Seen| slowest(&|probe| probe.seen == seen);
    let x = Horizontal {
        name: "time",
        unit: AxisUnit::Time,
        log: false,
        low,
        high: high.max(low + 1e-3),
    };
    let title = "Response time of the probes (log scale)";
    let at = (0..count).map(|n| low + (n as f64 + 0.5) * width).map(|at| at.min(high)).collect();
    let mut chart = Chart::new("probes", title, x, AxisUnit::Time).with_places(at);
    chart.log = true;
    chart.words = format!("{title} over the time of the run, with the running case");
    chart.lines = vec![
        Line::new("on new connections", Tone::Blue, of(ProbeKind::New)),
        Line::new("on a kept connection", Tone::Green, of(ProbeKind::Keep)).thin(),
    ];
    for (name, tone, which) in
        [("turned away", Tone::Orange, Seen::Shed), ("lost", Tone::Red, Seen::Lost)]
    {
        if probes.iter().any(|probe| probe.seen == which) {
            chart.lines.push(Line::new(name, tone, seen(which)).dotted(Dots::Alone));
        }
    }
    if let Some(base) = &record.baseline {
        let values = vec![Some(base.p99_s); count];
        let line = Line::new("p99 before", Tone::Soft, values);
        chart.lines.push(line.dashed(Dash::Short).thin());
    }
    // lost probes are not drawn on the edge
    chart.top = chart
        .lines
        .iter()
        .flat_map(|line| &line.values)
        .flatten()
        .fold(0.0, |most, one| one.max(most))
        * 1.2;
    chart.ranges = bands(record, &probes);
    chart.under = Some("case");
    Some(chart)
}

/// Returns the number of chart positions: fewer than probes of one kind, so that each has one of
/// both.
fn places(probes: &[&ProbeRecord]) -> usize {
    let new = probes.iter().filter(|probe| probe.kind == ProbeKind::New).count();
    let keep = probes.len() - new;
    let fewer = if new.min(keep) == 0 { new.max(keep) } else { new.min(keep) };
    (fewer / 2).clamp(1, POINTS_MAX - 1)
}

/// Returns the interval of each case, if probes reveal it.
fn bands(result: &TortureRecord, probes: &[&ProbeRecord]) -> Vec<Range> {
    let mut bands: Vec<(&str, f64, f64)> = Vec::new();
    for probe in probes {
        let at = probe.due_s;
        match bands.last_mut() {
            Some((case, _, high)) if *case == probe.case => *high = at,
            _ => bands.push((&probe.case, at, at)),
        }
    }
    bands.retain(|(case, ..)| !case.is_empty());
    bands.sort_by(|(_, a, b), (_, c, d)| (d - c).total_cmp(&(b - a)));
    bands.truncate(BANDS_MAX);
    let tone = |case: &str| {
        let found = result.cases.iter().find(|one| one.id == case);
        match found.map(|one| one.outcome) {
            Some(bad) if bad.is_finding() => Tone::Red,
            Some(TestOutcome::Advisory | TestOutcome::Shed) => Tone::Orange,
            Some(well) if well.is_favorable() => Tone::Green,
            _ => Tone::Soft,
        }
    };
    bands
        .into_iter()
        .map(|(case, low, high)| Range {
            name: words::safe(case),
            tone: tone(case),
            at: None,
            low,
            high,
        })
        .collect()
}
