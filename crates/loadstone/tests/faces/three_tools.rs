//! `docs/lineage/three-tools.md`: relations between the figures of ab, siege and wrk.

use crate::support::{Site, run};

/// Returns the first number after a label; panics if no line has the label.
fn figure(text: &str, label: &str) -> f64 {
    let line = text.lines().find(|line| line.contains(label));
    let line = line.unwrap_or_else(|| panic!("{label} is not in {text}"));
    let rest = &line[line.find(label).unwrap() + label.len()..];
    let digits = |c: char| c.is_ascii_digit() || c == '.';
    let rest = &rest[rest.find(digits).unwrap()..];
    rest[..rest.find(|c| !digits(c)).unwrap_or(rest.len())].parse().unwrap()
}

fn near(found: f64, wanted: f64, off: f64, what: &str) {
    assert!((found / wanted - 1.0).abs() < off, "{what}: {found} is not {wanted}");
}

/// The rate is requests over seconds. The time per request is its inverse, once multiplied by the
/// concurrency and once not.
#[test]
fn ab_figures_are_consistent() {
    let site = Site::start(&[]);
    let text = run(&["ab", "-q", "-c", "20", "-n", "2000", &site.url("/hw")]).expect(&[0]).stdout;
    let seconds = figure(&text, "Time taken for tests:");
    let mean = figure(&text, "Time per request:");
    near(figure(&text, "Requests per second:"), 2_000.0 / seconds, 0.01, "requests per second");
    near(mean, 20.0 * seconds * 1e3 / 2_000.0, 0.01, "time per request");
    let across = text.lines().find(|line| line.contains("across all")).unwrap();
    near(figure(across, "Time per request:"), mean / 20.0, 0.03, "across all");
    let total = figure(&text, "Total transferred:");
    near(figure(&text, "Transfer rate:"), total / 1024.0 / seconds, 0.01, "transfer rate");
}

/// The concurrency is the sum of the response times over the elapsed time, and at most the number
/// of users.
#[test]
fn siege_figures_are_consistent() {
    let site = Site::start(&[]);
    let url = site.url("/timed?0.02");
    let ran = run(&["siege", "-q", "-j", "-b", "-c", "10", "-r", "20", &url]).expect(&[0]);
    let text = ran.stdout + &ran.stderr;
    let transactions = figure(&text, "\"transactions\":");
    let elapsed = figure(&text, "\"elapsed_time\":");
    let concurrency = figure(&text, "\"concurrency\":");
    assert_eq!(figure(&text, "\"successful_transactions\":") as u64, 200);
    // two decimals of half a second
    near(figure(&text, "\"transaction_rate\":"), transactions / elapsed, 0.05, "rate");
    let summed = transactions * figure(&text, "\"response_time\":") / elapsed;
    near(concurrency, summed, 0.35, "concurrency");
    assert!(concurrency <= 10.01, "{concurrency}");
}

/// Little's law: the number of users is the rate times the response time.
#[test]
fn wrk_figures_are_consistent() {
    let site = Site::start(&[]);
    let url = site.url("/timed?0.05");
    let text = run(&["wrk", "-c", "20", "-t", "1", "-d", "6s", &url]).expect(&[0]).stdout;
    let rate = figure(&text, "Requests/sec:");
    let latency = figure(&text, "Latency");
    assert!(text.lines().any(|line| line.contains("Latency") && line.contains("ms")), "{text}");
    near(rate * latency / 1e3, 20.0, 0.15, "users");
}
