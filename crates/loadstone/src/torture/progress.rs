//! Which case is under way: on a terminal all the time, elsewhere with a line a minute, so that a
//! log of CI tells a long test from a hung one.

use campaign::Watcher;
use indicatif::ProgressBar;
use std::time::Duration;
use torture::case::Case;
use torture::record::Execution;
use torture::result::CaseResult;
use units::Nanos;

/// A case may take minutes: the time goes on meanwhile.
const TICK: Duration = Duration::from_millis(500);

/// Between two lines where there is no terminal.
const LINES: Nanos = Nanos::from_secs(60);

/// `17 of 59  12s  1 finding  S-07 blank between field name and colon`.
pub(super) struct Progress {
    bar: Option<ProgressBar>,
    /// What is told where there is no terminal; `None`: nothing.
    lines: Option<Lines>,
    found: u64,
}

/// Lines for a log.
#[derive(Debug)]
struct Lines {
    start: Nanos,
    told: Nanos,
    cases: usize,
    done: usize,
    /// The case that is under way.
    now: String,
}

impl Lines {
    fn new(start: Nanos, cases: usize) -> Lines {
        Lines { start, told: start, cases, done: 0, now: String::new() }
    }

    /// A line, where one is due.
    fn line(&mut self, at: Nanos, found: u64) -> Option<String> {
        if at - self.told < LINES {
            return None;
        }
        self.told = at;
        let so_far = Nanos::from_secs((at - self.start).as_secs_f64() as u64);
        Some(format!(
            "{} of {} cases in {}, {}; now {}",
            self.done,
            self.cases,
            units::show::duration(so_far),
            findings(found),
            self.now
        ))
    }
}

fn findings(count: u64) -> String {
    record::words::counted(count, "finding")
}

impl Progress {
    pub(super) fn new(quiet: bool, cases: usize) -> Progress {
        let template = "{pos} of {len}  {elapsed}  {prefix}{wide_msg}";
        let bar = crate::progress::bar(quiet, Some(cases as u64), template);
        if let Some(bar) = &bar {
            bar.enable_steady_tick(TICK);
        }
        let lines = (bar.is_none() && !quiet).then(|| Lines::new(reactor::monotonic(), cases));
        Progress { bar, lines, found: 0 }
    }

    fn tell(&mut self) {
        let found = self.found;
        let line = self.lines.as_mut().and_then(|lines| lines.line(reactor::monotonic(), found));
        if let Some(line) = line {
            crate::say(&line);
        }
    }

    /// Leaves nothing behind on the terminal.
    pub(super) fn finish(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }
}

impl Watcher for Progress {
    fn begin(&mut self, case: &Case) {
        let named = format!("{} {}", case.id, case.title);
        if let Some(lines) = &mut self.lines {
            lines.now.clone_from(&named);
        }
        if let Some(bar) = &self.bar {
            bar.set_message(named);
        }
    }

    fn execution(&mut self, _execution: &Execution<'_>) {
        self.tell();
    }

    fn case(&mut self, result: &CaseResult) {
        self.found += u64::from(result.outcome.is_finding());
        if let Some(lines) = &mut self.lines {
            lines.done += 1;
        }
        self.tell();
        let Some(bar) = &self.bar else { return };
        bar.inc(1);
        if self.found > 0 {
            bar.set_prefix(format!("{}  ", findings(self.found)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_told_each_minute_and_no_sooner() {
        let start = Nanos::from_secs(1_000);
        let after = |seconds| start + Nanos::from_secs(seconds);
        let mut lines = Lines { done: 17, now: "S-07 blank".to_owned(), ..Lines::new(start, 59) };
        let told: Vec<(u64, String)> = (0..200)
            .filter_map(|second| Some((second, lines.line(after(second), second / 60)?)))
            .collect();
        let seconds: Vec<u64> = told.iter().map(|(second, _)| *second).collect();
        assert_eq!(seconds, [60, 120, 180]);
        assert_eq!(told[0].1, "17 of 59 cases in 1 m 00 s, 1 finding; now S-07 blank");
        assert_eq!(told[1].1, "17 of 59 cases in 2 m 00 s, 2 findings; now S-07 blank");
    }
}
