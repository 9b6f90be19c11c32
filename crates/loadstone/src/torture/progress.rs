//! Progress: continuous on a terminal, otherwise one line per minute, so that a CI log shows that a
//! long test is not hung.

use campaign::{CampaignEvent, Watcher};
use indicatif::ProgressBar;
use std::time::Duration;
use torture::case::Case;
use torture::result::CaseResult;
use units::Nanos;

/// Redraw interval: a case may take minutes, and the elapsed time must advance.
const TICK: Duration = Duration::from_millis(500);

/// Interval of lines without a terminal.
const LINES: Nanos = Nanos::from_secs(60);

/// `17 of 59  12s  1 finding  S-07 whitespace between field name and colon`.
pub(super) struct Progress {
    bar: Option<ProgressBar>,
    /// Output without a terminal; `None` for no output.
    lines: Option<Lines>,
    found: u64,
    spans: Vec<(String, Nanos)>,
    left: Nanos,
}

/// Progress as lines of a log.
#[derive(Debug)]
struct Lines {
    start: Nanos,
    printed_at: Nanos,
    cases: usize,
    done: usize,
    /// Current case.
    now: String,
    /// Usual total duration of the remaining cases.
    left: Nanos,
}

impl Lines {
    fn new(start: Nanos, cases: usize) -> Lines {
        Lines { start, printed_at: start, cases, done: 0, now: String::new(), left: Nanos::ZERO }
    }

    /// Returns a line if one is due.
    fn line(&mut self, at: Nanos, found: u64) -> Option<String> {
        if at - self.printed_at < LINES {
            return None;
        }
        self.printed_at = at;
        let so_far = Nanos::from_secs((at - self.start).as_secs_f64() as u64);
        Some(format!(
            "{} of {} cases in {}, {}; now {}{}",
            self.done,
            self.cases,
            units::show::duration(so_far),
            findings(found),
            self.now,
            remaining_time_text(self.left)
        ))
    }
}

/// Returns the remaining time, rounded to ten seconds; empty if it is short.
fn remaining_time_text(left: Nanos) -> String {
    const STEP: u64 = 10;
    let seconds = (left.0 / 1_000_000_000).div_ceil(STEP) * STEP;
    match seconds {
        0..=STEP => String::new(),
        _ => {
            format!("; the rest usually takes {}", units::show::duration(Nanos::from_secs(seconds)))
        }
    }
}

fn findings(count: u64) -> String {
    record::words::counted(count, "finding")
}

impl Progress {
    /// Creates the progress display. `spans`: usual duration of each case, by id.
    pub(super) fn new(quiet: bool, spans: Vec<(String, Nanos)>) -> Progress {
        let cases = spans.len();
        let all = spans.iter().fold(Nanos::ZERO, |sum, (_, span)| sum + *span);
        if !quiet {
            let count = record::words::counted(cases as u64, "case");
            crate::print_message(&format!("{count}, usually {}", units::show::duration(all)));
        }
        let template = "{pos} of {len}  {elapsed}  {prefix}{wide_msg}";
        let bar = crate::progress::bar(quiet, Some(cases as u64), template);
        if let Some(bar) = &bar {
            bar.enable_steady_tick(TICK);
        }
        let lines = (bar.is_none() && !quiet).then(|| Lines::new(net::reactor::monotonic(), cases));
        let mut progress = Progress { bar, lines, found: 0, spans, left: all };
        progress.show_time_left();
        progress
    }

    fn show_time_left(&mut self) {
        if let Some(lines) = &mut self.lines {
            lines.left = self.left;
        }
    }

    /// Marks a case as over, regardless of the time it took.
    fn pass(&mut self, id: &str) {
        if let Some(at) = self.spans.iter().position(|(known, _)| known == id) {
            self.left = self.left - self.spans.swap_remove(at).1;
        }
        self.show_time_left();
    }

    fn print_progress(&mut self) {
        let found = self.found;
        let line =
            self.lines.as_mut().and_then(|lines| lines.line(net::reactor::monotonic(), found));
        if let Some(line) = line {
            crate::print_message(&line);
        }
    }

    /// Clears the terminal line.
    pub(super) fn finish(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }
}

impl Watcher for Progress {
    fn observe(&mut self, event: CampaignEvent<'_>) {
        match event {
            CampaignEvent::CaseBegins(case) => self.begin(case),
            CampaignEvent::ConversationOver(_) => self.print_progress(),
            CampaignEvent::Awaits { names, until } => self.await_states(names, until),
            CampaignEvent::CaseOver(result) => self.note_case_end(result),
            _ => {}
        }
    }
}

impl Progress {
    fn begin(&mut self, case: &Case) {
        let named = format!("{} {}", case.id, case.title);
        if let Some(lines) = &mut self.lines {
            lines.now.clone_from(&named);
        }
        if let Some(bar) = &self.bar {
            bar.set_message(named);
        }
    }

    /// Shows which connections are awaited, and the maximum wait.
    fn await_states(&mut self, names: &[String], until: Nanos) {
        let left = until - net::reactor::monotonic().min(until);
        let seconds = Nanos::from_secs(left.as_secs_f64().ceil() as u64);
        if seconds.is_zero() {
            return;
        }
        let (names, left) = (names.join(", "), units::show::duration(seconds));
        let text = format!("waiting at most {left} until the server closes: {names}");
        if let Some(lines) = &mut self.lines {
            lines.now.clone_from(&text);
            crate::print_message(&text);
        }
        if let Some(bar) = &self.bar {
            bar.set_message(text);
        }
    }

    fn note_case_end(&mut self, result: &CaseResult) {
        self.found += u64::from(result.outcome.is_finding());
        if let Some(lines) = &mut self.lines {
            lines.done += 1;
        }
        self.pass(&result.case.id);
        self.print_progress();
        let Some(bar) = &self.bar else { return };
        bar.inc(1);
        let found = if self.found > 0 { findings(self.found) } else { String::new() };
        let rest = remaining_time_text(self.left);
        bar.set_prefix(format!("{}  ", format!("{found}{rest}").trim_start_matches("; ")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_printed_once_a_minute() {
        let start = Nanos::from_secs(1_000);
        let after = |seconds| start + Nanos::from_secs(seconds);
        let mut lines = Lines { done: 17, now: "S-07 blank".to_owned(), ..Lines::new(start, 59) };
        let printed: Vec<(u64, String)> = (0..200)
            .filter_map(|second| Some((second, lines.line(after(second), second / 60)?)))
            .collect();
        let seconds: Vec<u64> = printed.iter().map(|(second, _)| *second).collect();
        assert_eq!(seconds, [60, 120, 180]);
        assert_eq!(printed[0].1, "17 of 59 cases in 1 m 00 s, 1 finding; now S-07 blank");
        assert_eq!(printed[1].1, "17 of 59 cases in 2 m 00 s, 2 findings; now S-07 blank");
        assert_eq!(remaining_time_text(Nanos::from_secs(9)), "");
        assert_eq!(remaining_time_text(Nanos::from_secs(91)), "; the rest usually takes 1 m 40 s");
    }
}
