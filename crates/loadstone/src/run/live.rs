//! The live line on a terminal: one line on standard error, redrawn each second.

use super::call_log::CallLog;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use live::terminal::TimeLeft;
use sample::{AgentNow, AgentState, CallRecord};
use session::Watcher;
use session::console::stderr_is_terminal;
use stats::{Second, Snapshot};
use units::{Nanos, show};

/// Shows seconds and writes the log of calls.
pub(crate) struct Live {
    bar: Option<ProgressBar>,
    /// Prefix of each line.
    heading: String,
    /// Length of the whole run in seconds; `None` if a number of calls ends it.
    span_s: Option<f64>,
    calls_max: Option<u64>,
    /// Time left of all steps of a ramp together.
    all_steps: Option<TimeLeft>,
    log: Option<CallLog>,
    /// Number of running machines of a fleet, if there is one.
    agents: String,
}

impl Live {
    pub(crate) fn new(
        quiet: bool,
        span: Option<Nanos>,
        calls_max: Option<u64>,
        log: Option<CallLog>,
    ) -> Live {
        // redrawing a line needs a terminal that can move its cursor
        let shown = !quiet && !crate::progress::dumb_terminal() && stderr_is_terminal();
        let bar = shown.then(|| {
            let target = ProgressDrawTarget::stderr_with_hz(4);
            let bar = ProgressBar::with_draw_target(None, target);
            let style = ProgressStyle::with_template("{msg}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
            bar
        });
        let (heading, agents) = (String::new(), String::new());
        let span_s = span.map(Nanos::as_secs_f64);
        Live { bar, heading, span_s, calls_max, all_steps: None, log, agents }
    }

    /// Shows a ramp step and the remaining time of the ramp.
    pub(crate) fn of_all(self, left: TimeLeft) -> Live {
        Live { all_steps: Some(left), ..self }
    }

    /// Sets the prefix of each line: `step 7 of 20  `.
    pub(crate) fn with_heading(mut self, heading: String) -> Live {
        self.heading = format!("{}  ", heading.trim_end());
        self
    }

    fn time_left(&self, second: &Second, total: &Snapshot) -> String {
        let passed = second.at_s + second.span_s;
        if let Some(span) = self.span_s {
            let left = show::duration(Nanos::from_secs_f64((span - passed).max(0.0)));
            return match self.all_steps {
                Some(all) => format!("{left} left, {} for all steps", all.after(passed)),
                None => format!("{left} left"),
            };
        }
        match self.calls_max {
            Some(max) => {
                let left = max.saturating_sub(total.counts.due);
                format!("{} to go", show::count(left))
            }
            None => String::new(),
        }
    }
}

impl Watcher for Live {
    fn second(&mut self, second: &Second, total: &Snapshot) {
        let Some(bar) = &self.bar else { return };
        let counts = second.counts;
        let done = counts.succeeded + counts.failed + counts.timed_out;
        let failed = total.counts.failed + total.counts.timed_out + total.counts.dropped;
        let line = format!(
            "{}{}{}{}  {} in flight  p99 {}  {} failed  {}",
            self.heading,
            self.agents,
            if second.warm_up { "warm-up  " } else { "" },
            show::rate(done as f64 / second.span_s.max(1e-9)),
            show::count(second.in_flight),
            show::duration(second.p99),
            show::count(failed),
            self.time_left(second, total),
        );
        bar.set_message(line);
        bar.tick();
    }

    fn agents(&mut self, agents: &[AgentNow]) {
        let running = agents.iter().filter(|agent| agent.state == AgentState::Running).count();
        self.agents = format!("{running} of {} agents  ", agents.len());
    }

    fn calls(&mut self, calls: &[CallRecord]) -> anyhow::Result<()> {
        self.log.as_mut().map_or(Ok(()), |log| log.write(calls))
    }

    fn end(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    fn close(&mut self) -> anyhow::Result<()> {
        self.log.take().map_or(Ok(()), CallLog::close)
    }
}
