//! How long a run takes, before it begins: usually, on a server that answers and keeps deadlines of a
//! minute or so, and at most.

use crate::families::{is_slow, presses};
use crate::hang::cost_of_silence;
use crate::{GATE, Settings, TRIES};
use dialogue::governor::Bounds;
use torture::case::Case;
use units::Nanos;

/// A length of time twice: as it usually is, and at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CaseSpan {
    pub usual: Nanos,
    pub most: Nanos,
}

/// An exchange on a server that answers: itself, the watch over its connection, a request to try
/// whether it is in step. Measured on nginx and on the built-in site.
const EXCHANGE: Nanos = Nanos::from_millis(30);
/// Random data that is answered.
const SHOT: Nanos = Nanos::from_millis(5);
/// A search for a limit, and another case that is code.
const CODE: Nanos = Nanos::from_millis(1_500);
/// Many connections at once: rounds, and the rests between them; with `--press` and without.
const PRESSURE: Nanos = Nanos::from_secs(40);
const CROWD: Nanos = Nanos::from_secs(18);
/// The longest deadline that servers keep as they are shipped: that of an idle connection.
const DEADLINE: Nanos = Nanos::from_secs(75);

/// How long one case takes. `first_slow`: it is the one with which all slow states are held.
pub fn span_of(case: &Case, settings: &Settings, bounds: &Bounds, first_slow: bool) -> CaseSpan {
    let count = case.exchanges.len() as u64;
    let hung = case.exchanges.iter().map(|one| cost_of_silence(one, settings.silence_max));
    let mut span = CaseSpan {
        usual: Nanos(EXCHANGE.0 * count),
        most: hung.fold(Nanos::ZERO, |sum, one| sum + one),
    };
    if let Some(random) = &case.fuzz {
        let shots = random.count.min(settings.executions_max);
        span.usual += Nanos(SHOT.0 * shots);
        span.most = bounds.case_max;
    }
    if case.family.is_some() {
        span.most = bounds.case_max;
        span.usual += match (is_slow(case), presses(case)) {
            (true, _) if first_slow => DEADLINE.min(bounds.case_max),
            (true, _) => Nanos::ZERO,
            (false, true) if case.press => PRESSURE.min(bounds.case_max),
            (false, true) => CROWD.min(bounds.case_max),
            (false, false) => CODE,
        };
    }
    let most =
        span.most.max(span.usual).min(bounds.case_max.max(settings.soak.unwrap_or_default()));
    // behind it a gate, and what may be spent on finding who did it
    let search = settings.search.map_or(Nanos::ZERO, |budget| budget.span);
    CaseSpan { usual: span.usual, most: most + GATE + search }
}

/// How long these cases take together, with the baseline before and the shrinking behind them.
pub fn span_of_run(cases: &[Case], settings: &Settings, bounds: &Bounds) -> CaseSpan {
    let mut all = CaseSpan { usual: settings.baseline, most: settings.baseline };
    let mut slow = false;
    for case in cases {
        let span = span_of(case, settings, bounds, is_slow(case) && !slow);
        slow |= is_slow(case);
        all.usual += span.usual;
        all.most += span.most;
    }
    all.most += settings.search.map_or(Nanos::ZERO, |budget| budget.span);
    if let Some(most) = bounds.run_max {
        all = CaseSpan { usual: all.usual.min(most), most: all.most.min(most) };
    }
    all
}

/// Tries of one exchange, of which some are had side by side.
const _: () = assert!(TRIES as usize == crate::hang::TOGETHER + 1);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shrink::Budget;
    use torture::catalogue;
    use torture::safety::Class;

    #[test]
    fn the_usual_run_is_told_to_the_minute() {
        let bounds = Class::Local.usual();
        let usual = Settings {
            executions_max: u64::MAX,
            baseline: Nanos::from_secs(2),
            search: Some(Budget::USUAL),
            ..Settings::default()
        };
        let mut cases = catalogue::cases().unwrap();
        cases.retain(|case| !case.press);
        let span = span_of_run(&cases, &usual, &bounds);
        // 4 m 20 s to 4 m 40 s on nginx
        assert!((200..=320).contains(&(span.usual.0 / 1_000_000_000)), "{span:?}");
        assert!(span.most > span.usual);
        let quick = Settings { executions_max: 50, silence_max: Some(Nanos::SECOND), ..usual };
        cases.retain(|case| ['B', 'F', 'M', 'S'].contains(&case.group()));
        let span = span_of_run(&cases, &quick, &bounds);
        assert!(span.usual <= Nanos::from_secs(35), "{span:?}");
    }
}
