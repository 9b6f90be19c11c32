//! Resources used by the server, if it was watched (`--sut`): along the window of a run, and
//! against the load of a ramp.

use crate::section::chart::{
    AxisUnit, Chart, Dash, Dots, Horizontal, Line, POINTS_MAX, Tone, Values,
};
use crate::section::{Block, Voice, grid, text_block};
use sample::{SutRow, SutSeries};

const MEBIBYTE: f64 = 1_048_576.0;

/// Several rows merged into one point.
type SutPoint<'a> = &'a [SutRow];

/// Renders the server's resources over the window; empty for fewer than two readings. `x`: the axis
/// of the run's other charts.
pub(crate) fn over_time(sut: &SutSeries, x: Option<Horizontal>) -> Vec<Block> {
    let rows: Vec<SutRow> = sut.measured().copied().collect();
    let [_, .., last] = &rows[..] else { return Vec::new() };
    let own =
        Horizontal { name: "time", unit: AxisUnit::Time, log: false, low: 0.0, high: last.at_s };
    let x = x.unwrap_or(own);
    let size = rows.len().div_ceil(POINTS_MAX);
    let points: Vec<SutPoint<'_>> =
        rows.chunks(size).filter(|rows| rows[rows.len() - 1].at_s <= x.high * 1.001).collect();
    let scene = Scene { sut, points, x };
    let charts =
        [scene.cpu(), scene.memory(), scene.held_chart(), scene.switches(), scene.queues()];
    let note = "Read each second on the server's side. Listen queues are those of the target's ports; \
                connections dropped because one was full are counted for the whole machine.";
    vec![grid(charts.map(Block::from)), text_block(Voice::Note, note)]
}

/// A watched server on the run's time axis.
struct Scene<'a> {
    sut: &'a SutSeries,
    points: Vec<SutPoint<'a>>,
    x: Horizontal,
}

impl Scene<'_> {
    fn chart(&self, id: &str, title: &str, y: AxisUnit, lines: Vec<Line>) -> Chart {
        let at = self.points.iter().map(|rows| rows[rows.len() - 1].at_s).collect();
        Chart {
            words: format!("{title} over time"),
            lines,
            ..Chart::new(id, title, self.x, y).with_places(at)
        }
    }

    fn mean(&self, of: fn(&SutRow) -> f64) -> Values {
        let mean = |rows: &SutPoint<'_>| rows.iter().map(of).sum::<f64>() / rows.len() as f64;
        self.points.iter().map(|rows| Some(mean(rows))).collect()
    }

    fn most(&self, of: fn(&SutRow) -> u64) -> Values {
        let most = |rows: &SutPoint<'_>| rows.iter().map(of).max().unwrap_or(0);
        self.points.iter().map(|rows| Some(most(rows) as f64)).collect()
    }

    /// Returns the line of a bound, if it is known and close enough to the figures to be in the
    /// chart.
    fn bound(&self, name: &str, most: f64, figures: &Values) -> Option<Line> {
        let highest = figures.iter().flatten().fold(0.0, |most: f64, value| most.max(*value));
        let line = Line::new(name, Tone::Soft, vec![Some(most); self.points.len()]);
        (most > 0.0 && highest >= most / 4.0).then(|| line.dashed(Dash::Short).thin())
    }

    fn cpu(&self) -> Chart {
        let busy = self.mean(|row| row.cpu_cores);
        let bound = self.bound("cores that it may use", self.sut.cores, &busy);
        let lines = std::iter::once(Line::new("busy", Tone::Purple, busy).filled()).chain(bound);
        self.chart("server-cpu", "CPU of the server, in cores", AxisUnit::Count, lines.collect())
    }

    fn memory(&self) -> Chart {
        let mut used = self.most(|row| row.memory_bytes);
        used.iter_mut().flatten().for_each(|bytes| *bytes /= MEBIBYTE);
        let bound =
            self.bound("the machine's memory", self.sut.memory_max as f64 / MEBIBYTE, &used);
        let lines = std::iter::once(Line::new("in use", Tone::Blue, used).filled()).chain(bound);
        self.chart(
            "server-memory",
            "Memory of the server, in MiB",
            AxisUnit::Count,
            lines.collect(),
        )
    }

    fn held_chart(&self) -> Chart {
        let open = self.most(|row| row.descriptors);
        let bound = self.bound("descriptors allowed", self.sut.descriptors_max as f64, &open);
        let threads = Line::new("threads", Tone::Orange, self.most(|row| row.threads));
        let lines = [Line::new("descriptors", Tone::Blue, open), threads.dashed(Dash::Long)];
        let title = "Descriptors and threads of the server";
        self.chart("server-held", title, AxisUnit::Count, lines.into_iter().chain(bound).collect())
    }

    fn switches(&self) -> Chart {
        let line = Line::new("context switches", Tone::Green, self.mean(|row| row.switches_per_s));
        self.chart("server-switches", "Context switches of the server", AxisUnit::Rate, vec![line])
    }

    fn queues(&self) -> Chart {
        let waiting = self.most(|row| row.accept_queue);
        let bound = self.bound("listen queue length", self.sut.accept_queue_max as f64, &waiting);
        let half_open = Line::new("half open", Tone::Sky, self.most(|row| row.half_open));
        let sum = |rows: &SutPoint<'_>| rows.iter().map(|row| row.listen_overflows).sum::<u64>();
        let lost: Values = self.points.iter().map(|rows| Some(sum(rows) as f64)).collect();
        let lines = [
            Line::new("wait to be accepted", Tone::Blue, waiting),
            half_open.dashed(Dash::Long),
            Line::new("dropped: listen queue full", Tone::Red, lost).dashed(Dash::Short),
        ];
        let lines = lines.into_iter().chain(bound).collect();
        self.chart("server-queues", "Listen queues: connections", AxisUnit::Count, lines)
    }
}

/// One target's watched steps: its name, and (load, use) in ascending order.
pub(crate) struct Watched {
    pub(crate) name: String,
    pub(crate) levels: Vec<(f64, sample::Fullness)>,
}

/// Draws the shares of the server's resources in use, against load; `None` if none are known.
/// `chart`: empty, with its positions.
pub(crate) fn against_load(mut chart: Chart, all: &[Watched]) -> Option<Chart> {
    type Resource = (&'static str, Dash, fn(&sample::Fullness) -> f64);
    const RESOURCES: [Resource; 4] = [
        ("CPU", Dash::None, |full| full.cpu),
        ("memory", Dash::Short, |full| full.memory),
        ("descriptors", Dash::Long, |full| full.descriptors),
        ("accept queue", Dash::Long, |full| full.accept_queue),
    ];
    for (n, watched) in all.iter().enumerate() {
        for (k, (name, dash, share)) in RESOURCES.iter().enumerate() {
            let of = |place: &f64| {
                let near = |(level, _): &&(f64, sample::Fullness)| (level - place).abs() < 1e-9;
                watched.levels.iter().find(near).map(|(_, full)| share(full).min(1.0))
            };
            let values: Values = chart.at.iter().map(of).collect();
            // with several targets only resources near their bounds: more lines would hide each
            // other
            let known = values.iter().flatten().any(|share| *share > 0.0);
            let high = values.iter().flatten().any(|share| *share > 0.5);
            if !known || (all.len() > 1 && k > 0 && !high) {
                continue;
            }
            let tone = if all.len() == 1 { Tone::nth([3, 0, 2, 1][k]).0 } else { Tone::nth(n).0 };
            let name = if all.len() == 1 {
                (*name).to_owned()
            } else {
                format!("{}: {name}", watched.name)
            };
            chart.lines.push(Line::new(&name, tone, values).dashed(*dash).dotted(Dots::Joined));
        }
    }
    chart.top = 1.0;
    (!chart.lines.is_empty()).then_some(chart)
}
