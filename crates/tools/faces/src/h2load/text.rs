//! h2load's output.

use super::tally::{SummaryRow, Tally};
use super::values::{
    show_bytes, show_duration, show_period, show_plain_seconds, show_seconds, two_digits,
};
use super::work::Work;
use crate::ab::ciphers;
use sample::TlsFacts;
use units::Nanos;

/// Printed to standard error for each client without a connection.
pub(super) const NOT_CONNECTED: &str = "client could not connect to host\n";

/// Renders the output before anything is sent.
pub(super) fn opening(work: &Work) -> String {
    let mut out = "starting benchmark...\n".to_owned();
    let options = &work.options;
    for thread in 0..options.threads {
        let (clients, requests) = work.share(thread);
        put!(out, "spawning thread #{thread}: {clients} total client(s). ");
        if work.is_timed() {
            putln!(
                out,
                "Timing-based test with {}s of warm-up time and {}s of main duration for \
                 measurements.",
                show_plain_seconds(options.warm_up),
                show_plain_seconds(options.duration)
            );
            continue;
        }
        if let Some(rate) = options.rate {
            let each = rate / options.threads + u64::from(thread < rate % options.threads);
            if clients > each {
                let period = show_period(options.period);
                put!(out, "Up to {each} client(s) will be created every {period} ");
            }
        }
        putln!(out, "{requests} total requests");
    }
    if work.is_timed() {
        for thread in 0..options.threads {
            putln!(out, "Warm-up started for thread #{thread}.");
            if thread == 0 {
                out += &clients_started(work, 0, work.share(0).0);
            }
        }
        if options.warm_up.is_zero() {
            out += &main_part(work);
        }
    }
    out
}

/// Returns the lines about the end of the warm-up.
pub(super) fn main_part(work: &Work) -> String {
    let mut out = String::new();
    for thread in 0..work.options.threads {
        putln!(out, "Warm-up phase is over for thread #{thread}.");
        putln!(out, "Main benchmark duration is started for thread #{thread}.");
    }
    out
}

/// Returns the lines about the end of the main part.
pub(super) fn end_of_main_part(work: &Work) -> String {
    let mut out = String::new();
    for thread in 0..work.options.threads {
        putln!(out, "Main benchmark duration is over for thread #{thread}. Stopping all clients.");
        putln!(out, "Stopped all clients for thread #{thread}");
    }
    out
}

/// Returns lines for the first thread's clients, from number `before` on.
pub(super) fn clients_started(work: &Work, before: u64, now: u64) -> String {
    let all = work.share(0).0;
    steps(before, now, all, "of clients started")
}

/// Returns lines for the first thread's requests, from number `before` on.
pub(super) fn progress(before: u64, now: u64, all: u64) -> String {
    steps(before, now, all, "done")
}

/// Returns a line for each tenth of `all` between `before` and `now`, by integer division.
fn steps(before: u64, now: u64, all: u64, what: &str) -> String {
    let step = (all / 10).max(1);
    let mut out = String::new();
    for at in (before / step + 1)..=(now / step) {
        putln!(out, "progress: {}% {what}", at * step * 100 / all.max(1));
    }
    out
}

/// Formats TLS parameters, by OpenSSL's names.
pub(super) fn secured(facts: &TlsFacts) -> String {
    let (cipher, _) = ciphers::openssl_name(&facts.cipher);
    let mut out = format!("TLS Protocol: {}\nCipher: {cipher}\n", facts.version);
    let exchange = match facts.group.as_str() {
        "X25519" => "X25519 253 bits",
        "secp256r1" => "ECDH prime256v1 256 bits",
        "secp384r1" => "ECDH secp384r1 384 bits",
        _ => return out,
    };
    putln!(out, "Server Temp Key: {exchange}");
    out
}

/// Received bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Traffic {
    pub(super) total: u64,
    /// Fields as received, and uncompressed.
    pub(super) fields: u64,
    pub(super) plain_fields: u64,
}

/// Renders the figures at the end. `elapsed`: from the start to the end; `span`: denominator of
/// rates.
pub(super) fn figures(
    work: &Work,
    tally: &Tally,
    traffic: Traffic,
    (elapsed, span): (Nanos, Nanos),
) -> String {
    let seconds = span.as_secs_f64();
    let per_second = |sum: u64| if seconds > 0.0 { sum as f64 / seconds } else { 0.0 };
    let total = work.requests().unwrap_or(tally.done);
    let failed = total.saturating_sub(tally.good);
    let errored = failed.saturating_sub(tally.bad);
    let [two, three, four, five] = tally.statuses;
    let saved = match traffic.plain_fields {
        0 => 0.0,
        plain => (1.0 - traffic.fields as f64 / plain as f64) * 100.0,
    };
    let sized = |bytes: u64| format!("{}B ({bytes})", show_bytes(bytes));
    let mut out = format!(
        "\nfinished in {}, {:.2} req/s, {}B/s\n",
        show_duration(elapsed),
        per_second(tally.whole),
        show_bytes(per_second(traffic.total) as u64)
    );
    putln!(
        out,
        "requests: {total} total, {} started, {} done, {} succeeded, {failed} failed, {errored} \
         errored, {} timeout",
        tally.started,
        tally.done,
        tally.good,
        tally.timed_out
    );
    putln!(out, "status codes: {two} 2xx, {three} 3xx, {four} 4xx, {five} 5xx");
    putln!(
        out,
        "traffic: {} total, {} headers (space savings {saved:.2}%), {} data",
        sized(traffic.total),
        sized(traffic.fields),
        sized(tally.content)
    );
    let from_start = work.is_timed() && !work.options.warm_up.is_zero();
    let [connect, first_byte, rates] = tally.rows(from_start);
    out += "                     min         max         mean         sd        +/- sd\n";
    out += &row("time for request: ", &tally.requests.row(), show_seconds);
    out += &row("time for connect: ", &connect, show_seconds);
    out += &row("time to 1st byte: ", &first_byte, show_seconds);
    out += &row("req/s           : ", &rates, |rate| format!("{rate:.2}"));
    out
}

fn row(name: &str, row: &SummaryRow, show: impl Fn(f64) -> String) -> String {
    format!(
        "{name}{:>10}  {:>10}  {:>10}  {:>10}{:>9}%\n",
        show(row.least),
        show(row.most),
        show(row.mean),
        show(row.stdev),
        two_digits(row.within)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_printed_in_tenths() {
        assert_eq!(
            progress(0, 3, 3),
            "progress: 33% done\nprogress: 66% done\nprogress: 100% done\n"
        );
        assert_eq!(progress(4, 9, 25), "progress: 24% done\nprogress: 32% done\n");
        assert_eq!(progress(0, 9, 100), "");
    }

    #[test]
    fn a_row_has_the_originals_form() {
        let times =
            SummaryRow { least: 49e-6, most: 2.93e-3, mean: 765e-6, stdev: 1.08e-3, within: 80.0 };
        let wanted = "time for request:       49us      2.93ms       765us      1.08ms    80.00%\n";
        assert_eq!(row("time for request: ", &times, show_seconds), wanted);
        let rates =
            SummaryRow { least: 4936.69, most: 5528.11, mean: 5351.77, stdev: 279.2, within: 75.0 };
        let wanted = "req/s           :    4936.69     5528.11     5351.77      279.20    75.00%\n";
        assert_eq!(row("req/s           : ", &rates, |rate| format!("{rate:.2}")), wanted);
    }
}
