use super::super::shape::{between, ratio};
use super::super::{Confidence, Rule, Sign, View};
use crate::lives::BEAT;
use sample::FailureClass;
use units::{Nanos, show};

const SHARE_MIN: f64 = 0.05;
const COUNT_MIN: u64 = 2;
/// Maximum time without success at the end of a run whose server still serves, with short calls.
const SILENCE_MAX: Nanos = Nanos::from_millis(250);

pub(crate) const RULE: Rule = Rule {
    id: "connection-cap",
    title: "The server serves a fixed number of connections at once",
    reasoning: "A server with a thread or process for each connection, or with a limit of clients, \
        serves k connections and makes the rest wait or rejects them. The k connections are served \
        well while they last. The others are closed without a response, or stay connected and wait \
        until one of the k ends: their first response takes as long as the run. A pool of request \
        workers would instead delay every connection a little. k is the number of connections that \
        were served at the same time.",
    source: "Stevens, Fenner, Rudoff: UNIX Network Programming 1, chapter 30 (preforked servers); \
             Apache httpd's MaxRequestWorkers; Swerve's MaxClients.",
    thresholds: &[
        (SHARE_MIN, "share of the connections that wait or are rejected, at least"),
        (2.0, "such connections, at least"),
        (0.5, "share of the run that a first response takes to count as waiting"),
    ],
    advice: "Raise the server's limit of connections or workers (MaxRequestWorkers, \
        worker_connections, the thread pool, the descriptor limit), shorten keep-alive, or use an \
        event-driven server.",
    excludes: &[
        "serial-handler",
        "worker-pool",
        "rate-limit",
        "round-timeout",
        "drift",
        "mixed-backends",
        "scheduling-quantum",
        "periodic-stall",
        "warm-up",
    ],
    find,
};

fn find(view: &View<'_>) -> Option<Sign> {
    if !view.enough() || view.lives.answered == 0 {
        return None;
    }
    waiting(view).or_else(|| refused_connections(view))
}

/// Detects that some connections are served at once, the others after those have closed.
fn waiting(view: &View<'_>) -> Option<Sign> {
    let first = &view.lives.first;
    let usual = view.typical();
    let patience = Nanos::from_secs_f64(view.window_s / 2.0).max(usual * 20);
    let slow = between(first, patience, Nanos::NEVER);
    let silent = view.lives.unanswered - view.lives.turned_away;
    let (prompt, kept) = (first.count() - slow, slow + silent);
    let all = prompt + kept;
    if !view.persistent()
        || prompt == 0
        || kept < COUNT_MIN
        || ratio(kept as f64, all as f64) < SHARE_MIN
        // served connections are served often
        || view.done() < 5 * all
    {
        return None;
    }
    let text = format!(
        "{} connections were served all the time, a call in {}; {} others were \
         established and got no response for at least {}",
        show::count(prompt),
        show::duration(usual),
        show::count(kept),
        show::duration(patience)
    );
    Sign::new(Confidence::Certain, text)
}

/// Detects that connections beyond the cap are closed or refused at once.
fn refused_connections(view: &View<'_>) -> Option<Sign> {
    let failed = |class| view.total.failures.get(&class).copied().unwrap_or(0);
    let away = view.lives.turned_away + failed(FailureClass::Refused);
    let all = view.lives.answered + away;
    let stood = view.lives.answered_open.as_secs_f64();
    let served = (stood / view.evidence.measurement.elapsed.as_secs_f64().max(1e-9)).round();
    if away < COUNT_MIN || ratio(away as f64, all as f64) < SHARE_MIN || served < 1.0 {
        return None;
    }
    // a dead server rejects every connection; one with a cap continues to serve
    let silent = view.beats.iter().rev().take_while(|(_, good)| *good == 0).count();
    // with few successes, intervals without any are normal
    let good: u64 = view.beats.iter().map(|(_, good)| u64::from(*good)).sum();
    let gap = Nanos::from_secs_f64(view.window_s / good.max(1) as f64);
    if BEAT * silent as u64 > (view.typical().max(gap) * 4).max(SILENCE_MAX) {
        return None;
    }
    // a server that fails at random would not block the others for the whole run
    let lasting = view.persistent() && view.lives.answered as f64 <= 1.5 * served;
    let text = format!(
        "{} connections were closed or refused without a response, while {served} at a time were \
         served{}",
        show::count(away),
        if lasting { " all the time" } else { "" }
    );
    Sign::new(if lasting { Confidence::Certain } else { Confidence::Possible }, text)
}

#[cfg(test)]
mod tests {
    use super::super::super::Evidence;
    use super::*;
    use crate::Measurement;
    use crate::lives::Beats;

    /// Returns the finding for eight connections during 8 of 10 s, and refusals.
    fn finding(beat: impl Fn(u32) -> (u32, u32)) -> Option<Confidence> {
        let window = Nanos::from_secs(10);
        let mut measurement = Measurement { window, elapsed: window, ..Measurement::default() };
        let total = &mut measurement.total;
        total.counts.due = 2_000;
        total.counts.succeeded = 1_600;
        total.counts.failed = 400;
        total.service.record_n(Nanos::from_millis(5), 1_600);
        total.connections.lives.answered = 8;
        total.connections.lives.answered_open = Nanos::from_secs(64);
        total.failures.insert(FailureClass::Refused, 400);
        total.beats = Beats::from_all((0..200).map(beat).collect());
        find(&View::new(&Evidence::new(&measurement))).map(|sign| sign.confidence)
    }

    #[test]
    fn a_dead_server_is_not_a_connection_cap() {
        let until = |end: u32| move |at: u32| (10, if at < end { 10 } else { 0 });
        assert_eq!(finding(until(160)), None);
        assert_eq!(finding(until(200)), Some(Confidence::Certain));
        // two successes a second, the last 450 ms before the end
        assert_eq!(finding(|at| (1, u32::from(at % 10 == 0))), Some(Confidence::Certain));
    }
}
