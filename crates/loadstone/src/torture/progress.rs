//! Which case is under way, on a terminal.

use campaign::Watcher;
use indicatif::ProgressBar;
use std::time::Duration;
use torture::case::Case;
use torture::result::CaseResult;

/// A case may take minutes: the time goes on meanwhile.
const TICK: Duration = Duration::from_millis(500);

/// `17 of 59  12s  1 finding  S-07 blank between field name and colon`.
pub(super) struct Progress {
    bar: Option<ProgressBar>,
    found: u64,
}

impl Progress {
    pub(super) fn new(quiet: bool, cases: usize) -> Progress {
        let template = "{pos} of {len}  {elapsed}  {prefix}{wide_msg}";
        let bar = crate::progress::bar(quiet, Some(cases as u64), template);
        if let Some(bar) = &bar {
            bar.enable_steady_tick(TICK);
        }
        Progress { bar, found: 0 }
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
        if let Some(bar) = &self.bar {
            bar.set_message(format!("{} {}", case.id, case.title));
        }
    }

    fn case(&mut self, result: &CaseResult) {
        self.found += u64::from(result.outcome.is_finding());
        let Some(bar) = &self.bar else { return };
        bar.inc(1);
        let word = if self.found == 1 { "finding" } else { "findings" };
        if self.found > 0 {
            bar.set_prefix(format!("{} {word}  ", self.found));
        }
    }
}
