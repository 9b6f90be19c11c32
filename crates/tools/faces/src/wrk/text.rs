//! wrk's output.

use super::spread::Spread;
use super::units::{bytes, column, metric, time_s, time_us};
use std::fmt::Write;

/// Socket errors by kind, and responses with a status above 399.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Errors {
    pub connect: u64,
    pub read: u64,
    pub write: u64,
    pub status: u64,
    pub timeout: u64,
}

/// The figures of a finished run. Times in microseconds, rates per second and thread.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WrkFigures {
    pub requests: u64,
    pub bytes: u64,
    pub runtime_us: u64,
    pub errors: Errors,
    pub latency: Spread,
    pub rates: Spread,
}

/// Returns output at the start of a run.
pub(super) fn header(url: &str, duration_s: u64, threads: u64, connections: u64) -> String {
    let duration = time_s(duration_s);
    format!("Running {duration} test @ {url}\n  {threads} threads and {connections} connections\n")
}

/// Returns the lines between the header and the sums.
pub(super) fn thread_stats(latency: &Spread, rates: &Spread) -> String {
    let mut out = "  Thread Stats   Avg      Stdev     Max   +/- Stdev\n".to_owned();
    for (name, spread, show) in
        [("Latency", latency, time_us as fn(f64) -> String), ("Req/Sec", rates, metric)]
    {
        let within = spread.within_stdev();
        // 0 / 0, as the C library prints it
        let within = if within.is_nan() { "-nan".to_owned() } else { format!("{within:.2}") };
        writeln!(
            out,
            "    {name:<10}{}{}{}{within:>8}%",
            column(&show(spread.mean()), 8),
            column(&show(spread.stdev()), 10),
            column(&show(spread.max() as f64), 9),
        )
        .expect("a string takes everything");
    }
    out
}

/// Returns the block of `--latency`.
pub(super) fn distribution(latency: &Spread) -> String {
    let mut out = "  Latency Distribution\n".to_owned();
    for percent in [50.0, 75.0, 90.0, 99.0] {
        let value = column(&time_us(latency.percentile(percent) as f64), 10);
        writeln!(out, "{percent:>7.0}%{value}").expect("a string takes everything");
    }
    out
}

/// Renders the sums at the end.
pub(super) fn sums(figures: &WrkFigures) -> String {
    let Errors { connect, read, write, status, timeout } = figures.errors;
    let runtime = time_us(figures.runtime_us as f64);
    let seconds = figures.runtime_us as f64 / 1e6;
    let per_second = |sum: u64| if seconds > 0.0 { sum as f64 / seconds } else { 0.0 };
    let mut out = format!(
        "  {} requests in {runtime}, {}B read\n",
        figures.requests,
        bytes(figures.bytes as f64)
    );
    if connect + read + write + timeout > 0 {
        out += &format!(
            "  Socket errors: connect {connect}, read {read}, write {write}, timeout {timeout}\n"
        );
    }
    if status > 0 {
        out += &format!("  Non-2xx or 3xx responses: {status}\n");
    }
    out += &format!("Requests/sec: {:>9.2}\n", per_second(figures.requests));
    out += &format!("Transfer/sec: {:>10}B\n", bytes(per_second(figures.bytes)));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_has_wrks_layout() {
        let figures = WrkFigures {
            requests: 22_464_657,
            bytes: 19_069_999_999,
            runtime_us: 30_003_000,
            errors: Errors { read: 3, status: 7, ..Errors::default() },
            latency: Spread::new(vec![(400, 60), (800, 30), (12_920, 10)]),
            rates: Spread::new(vec![(56_000, 9), (62_000, 1)]),
        };
        let text = header("http://127.0.0.1:8080/", 30, 12, 400)
            + &thread_stats(&figures.latency, &figures.rates)
            + &distribution(&figures.latency)
            + &sums(&figures);
        let expected = "\
Running 30s test @ http://127.0.0.1:8080/
  12 threads and 400 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     1.77ms    3.74ms  12.92ms   90.00%
    Req/Sec    56.60k     1.90k   62.00k    90.00%
  Latency Distribution
     50%  400.00us
     75%  800.00us
     90%   12.92ms
     99%   12.92ms
  22464657 requests in 30.00s, 17.76GB read
  Socket errors: connect 0, read 3, write 0, timeout 0
  Non-2xx or 3xx responses: 7
Requests/sec: 748747.03
Transfer/sec:    606.16MB
";
        assert_eq!(text, expected);
    }

    #[test]
    fn nothing_measured_is_shown_as_wrk_shows_it() {
        let none = Spread::default();
        let expected = "  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     0.00us    0.00us   0.00us    -nan%
    Req/Sec     0.00      0.00     0.00      -nan%
";
        assert_eq!(thread_stats(&none, &none), expected);
        let sums = sums(&WrkFigures { runtime_us: 1_003_000, ..WrkFigures::default() });
        assert_eq!(
            sums,
            "  0 requests in 1.00s, 0.00B read\nRequests/sec:      0.00\nTransfer/sec:       0.00B\n"
        );
    }
}
