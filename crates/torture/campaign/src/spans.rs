//! Estimates the duration of a run: the usual one, on a server that responds and has timeouts of
//! about a minute, and the maximum.

use crate::families::{self, applies_load, is_slow};
use crate::tries::max_silent_duration;
use crate::{GATE, PLAIN_DEADLINE, Settings, TRIES};
use dialogue::governor::Bounds;
use torture::case::{Case, Family, GRPC, HTTP2, HTTP3, PACKETS};
use units::Nanos;

/// Duration in three variants: usual, with hangs, and maximum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CaseSpan {
    pub usual: Nanos,
    /// For a case, the duration if one request hangs; for a run, if ten do and the server has no
    /// timeouts.
    pub hung: Nanos,
    /// Duration if no request gets a response, and every failure is searched to the end.
    pub most: Nanos,
}

/// Duration of an exchange on a responsive server: the exchange, the watch over its connection, and
/// the follow-up. Measured on nginx and on the built-in site.
const EXCHANGE: Nanos = Nanos::from_millis(30);
/// Duration of an exchange over HTTP/2, where the close after GOAWAY is awaited.
const FRAMES: Nanos = Nanos::from_millis(120);
/// Duration of an exchange of raw segments, with pauses for the server's kernel.
const SEGMENTS: Nanos = Nanos::from_millis(200);
/// Duration of a round of connections held by raw segments, in addition to the hold.
const HELD: Nanos = Nanos::from_secs(3);
/// Duration of one execution of random data with a response.
const EXECUTION_SPAN: Nanos = Nanos::from_millis(5);
/// Duration of a search for a limit, and of other cases in code.
const CODE: Nanos = Nanos::from_millis(1_500);
/// Duration of cases with many connections, with rounds and pauses: with `--press`, and without.
const PRESSURE: Nanos = Nanos::from_secs(40);
const CONNECTIONS_SPAN: Nanos = Nanos::from_secs(18);
/// Longest default timeout of common servers: that of an idle connection.
const DEADLINE: Nanos = Nanos::from_secs(75);

/// Duration of each attempt in a search for a limit that gets no response.
const LIMIT_HUNG: Nanos = Nanos::from_secs(10);
/// Number of hangs in a run with hangs.
const HANGS: usize = 10;

/// Returns the duration of one case. `first_slow`: all slow states are held with it.
fn span_of(case: &Case, settings: &Settings, bounds: &Bounds, first_slow: bool) -> CaseSpan {
    let count = case.exchanges.len() as u64;
    let silence =
        || case.exchanges.iter().map(|one| max_silent_duration(one, settings.silence_max));
    let each = match case.group() {
        GRPC | HTTP2 | HTTP3 => FRAMES,
        PACKETS => SEGMENTS,
        _ => EXCHANGE,
    };
    let usual = Nanos(each.0 * count);
    let mut span = CaseSpan {
        usual,
        hung: silence().max().unwrap_or_default(),
        most: silence().fold(Nanos::ZERO, |sum, one| sum + one),
    };
    if let Some(random) = &case.fuzz {
        let shots = random.count.min(settings.executions_max);
        span.usual += Nanos(EXECUTION_SPAN.0 * shots);
        // two of its attempts run concurrently
        span.hung = PLAIN_DEADLINE.min(settings.silence_max.unwrap_or(Nanos::NEVER)) * 2;
        span.most = bounds.case_max;
    }
    if case.family.is_some() {
        span.most = bounds.case_max;
        span.usual += match (is_slow(case), applies_load(case)) {
            (true, _) if first_slow => DEADLINE.min(bounds.case_max),
            (true, _) => Nanos::ZERO,
            (false, true) if case.group() == PACKETS => HELD + hold(case),
            (false, true) if case.press => PRESSURE.min(bounds.case_max),
            (false, true) => CONNECTIONS_SPAN.min(bounds.case_max),
            (false, false) => CODE,
        };
        span.hung = match (is_slow(case), applies_load(case)) {
            (true, _) if first_slow => bounds.case_max - span.usual.min(bounds.case_max),
            (true, _) | (_, true) => Nanos::ZERO,
            (false, false) => LIMIT_HUNG * u64::from(TRIES),
        };
    }
    let most =
        span.most.max(span.usual).min(bounds.case_max.max(settings.soak.unwrap_or_default()));
    // followed by a gate, and the budget for finding the culprit
    let search = settings.search.map_or(Nanos::ZERO, |budget| budget.span);
    CaseSpan { usual: span.usual, hung: span.usual + span.hung, most: most + GATE + search }
}

/// Returns how long a case holds connections.
fn hold(case: &Case) -> Nanos {
    match &case.family {
        Some(Family::SegmentsHeld(with)) => with.hold,
        _ => Nanos::ZERO,
    }
}

/// Returns the usual duration of each case in a complete run. States held during other cases add
/// only the remaining time.
pub fn usual_spans(cases: &[Case], settings: &Settings, bounds: &Bounds) -> Vec<Nanos> {
    let first = cases.iter().position(is_slow);
    let span = |(row, case)| span_of(case, settings, bounds, first == Some(row)).usual;
    let mut usual: Vec<Nanos> = cases.iter().enumerate().map(span).collect();
    if let Some(first) = first.filter(|_| families::run_in_background(cases, Some(bounds))) {
        let before = |(case, _): &(&Case, &Nanos)| families::precedes_states(case);
        let beside = sum(cases.iter().zip(&usual).filter(before));
        usual[first] = usual[first] - beside.min(usual[first]);
    }
    usual
}

fn sum<'a>(spans: impl Iterator<Item = (&'a Case, &'a Nanos)>) -> Nanos {
    spans.fold(Nanos::ZERO, |sum, (_, span)| sum + *span)
}

/// Returns the total duration of these cases, with the baseline before and the shrinking after
/// them.
pub fn span_of_run(cases: &[Case], settings: &Settings, bounds: &Bounds) -> CaseSpan {
    let usual = usual_spans(cases, settings, bounds);
    let first = cases.iter().position(is_slow);
    let beside = first.is_some() && families::run_in_background(cases, Some(bounds));
    let (mut most, mut endless, mut hangs) = (settings.baseline, Nanos::ZERO, Vec::new());
    for (row, case) in cases.iter().enumerate() {
        let span = span_of(case, settings, bounds, first == Some(row));
        match is_slow(case) {
            true => endless += span.hung - usual[row],
            false => hangs.push(span.hung - span.usual),
        }
        most += span.most;
    }
    hangs.sort_unstable();
    let worst = hangs.iter().rev().take(HANGS).fold(Nanos::ZERO, |sum, one| sum + *one);
    let search = settings.search.map_or(Nanos::ZERO, |budget| budget.span);
    most += search;
    let all = settings.baseline + sum(cases.iter().zip(&usual));
    // hangs and endless states are awaited concurrently: the longer of the two counts
    let late = if beside { endless.max(worst) } else { endless + worst };
    let span = CaseSpan { usual: all, hung: (all + late + search).min(most), most };
    let most = bounds.run_max.unwrap_or(Nanos::NEVER);
    CaseSpan { usual: span.usual.min(most), hung: span.hung.min(most), most: span.most.min(most) }
}

/// Attempts of one exchange, some of which run concurrently.
const _: () = assert!(TRIES as usize == crate::tries::TOGETHER + 1);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shrink::Budget;
    use torture::catalogue;
    use torture::safety::Class;

    #[test]
    fn the_usual_duration_is_accurate_to_a_minute() {
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
        // 4 m 20 s to 4 m 40 s on nginx, and half a minute more with raw segments
        assert!((200..=350).contains(&(span.usual.0 / 1_000_000_000)), "{span:?}");
        assert!(span.most > span.hung && span.hung > span.usual);
        assert!(span.hung <= Nanos::from_secs(15 * 60), "{span:?}");
        let quick =
            Settings { executions_max: 50, silence_max: Some(Nanos::SECOND), ..usual.clone() };
        cases.retain(|case| ['B', 'F', 'M', 'S'].contains(&case.group()));
        let span = span_of_run(&cases, &quick, &bounds);
        assert!(span.usual <= Nanos::from_secs(35), "{span:?}");
        let mut frames = catalogue::cases().unwrap();
        frames.retain(|case| case.group() == HTTP2 && !case.press);
        let span = span_of_run(&frames, &usual, &bounds);
        // 28.5 s on nginx
        assert!((20..=40).contains(&(span.usual.0 / 1_000_000_000)), "{span:?}");
    }
}
