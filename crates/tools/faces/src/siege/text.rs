//! The end of siege's output: the statistics as text and as JSON, and the row of the log file.

use super::config::Config;
use super::tally::SiegeFigures;

const ABORTED: &str = "siege aborted due to excessive socket failure; you
can change the failure threshold in $HOME/.siegerc
";

/// Returns the block on standard error. From 4.1.7 on counts are narrower and the times of
/// transactions are in milliseconds.
pub(super) fn statistics(config: &Config, figures: &SiegeFigures, aborted: bool) -> String {
    let mut out = if aborted { ABORTED.to_owned() } else { String::new() };
    let f = figures;
    let newer = config.newer;
    let count = |number: u64| if newer { format!("{number:9}") } else { format!("{number:12}") };
    let times = if newer { 1_000.0 } else { 1.0 };
    let hits = if newer { "    hits" } else { " hits" };
    putln!(out, "\nTransactions:\t\t{}{hits}", count(f.hits));
    putln!(out, "Availability:\t\t{:12.2} %", f.availability);
    putln!(out, "Elapsed time:\t\t{:12.2} secs", f.elapsed);
    putln!(out, "Data transferred:\t{:12.2} MB", f.megabytes);
    let unit = if newer { "ms" } else { "secs" };
    putln!(out, "Response time:\t\t{:12.2} {unit}", f.response * times);
    putln!(out, "Transaction rate:\t{:12.2} trans/sec", f.rate);
    putln!(out, "Throughput:\t\t{:12.2} MB/sec", f.throughput);
    putln!(out, "Concurrency:\t\t{:12.2}", f.concurrency);
    putln!(out, "Successful transactions:{}", count(f.success));
    if config.debug {
        putln!(out, "HTTP OK received:\t{}", count(f.okay));
    }
    putln!(out, "Failed transactions:\t{}", count(f.failed));
    let unit = if newer { " ms" } else { "" };
    putln!(out, "Longest transaction:\t{:12.2}{unit}", f.longest * times);
    putln!(out, "Shortest transaction:\t{:12.2}{unit}", f.shortest * times);
    out + " \n"
}

/// Renders the output of `-j`: always in seconds. The first member directly follows the brace up to
/// 4.0.7.
pub(super) fn json(config: &Config, figures: &SiegeFigures) -> String {
    let f = figures;
    let mut out = String::from(if config.newer { "{\n" } else { "{" });
    putln!(out, "\t\"transactions\":\t\t\t{:12},", f.hits);
    putln!(out, "\t\"availability\":\t\t\t{:12.2},", f.availability);
    putln!(out, "\t\"elapsed_time\":\t\t\t{:12.2},", f.elapsed);
    putln!(out, "\t\"data_transferred\":\t\t{:12.2},", f.megabytes);
    putln!(out, "\t\"response_time\":\t\t{:12.2},", f.response);
    putln!(out, "\t\"transaction_rate\":\t\t{:12.2},", f.rate);
    putln!(out, "\t\"throughput\":\t\t\t{:12.2},", f.throughput);
    putln!(out, "\t\"concurrency\":\t\t\t{:12.2},", f.concurrency);
    putln!(out, "\t\"successful_transactions\":\t{:12},", f.success);
    putln!(out, "\t\"failed_transactions\":\t\t{:12},", f.failed);
    putln!(out, "\t\"longest_transaction\":\t\t{:12.2},", f.longest);
    putln!(out, "\t\"shortest_transaction\":\t\t{:12.2}", f.shortest);
    out + "}\n"
}

const LOG_HEAD: &str = "      Date & Time,  Trans,  Elap Time,  Data Trans,  Resp Time,  \
                        Trans Rate,  Throughput,  Concurrent,    OKAY,   Failed\n";

/// Returns the text of `-m` in the log file, before the lines of the run.
pub(super) fn log_mark(config: &Config, fresh: bool) -> Option<String> {
    let mark = config.mark.as_ref()?;
    let head = if fresh { LOG_HEAD } else { "" };
    Some(format!("{head}**** {mark} ****\n"))
}

/// Returns the text appended to the log file. `fresh`: the file does not exist yet; `date`: of the
/// end.
pub(super) fn log(
    config: &Config,
    figures: &SiegeFigures,
    fresh: bool,
    date: &str,
    aborted: bool,
) -> String {
    let headed = fresh && config.mark.is_none();
    let mut out = if headed { LOG_HEAD.to_owned() } else { String::new() };
    let f = figures;
    let whole = f.megabytes as u64;
    let over = if f.elapsed > 0.0 { whole as f64 / f.elapsed } else { 0.0 };
    put!(out, "{date},{:7},{:11.2},{whole:12},{:11.2},", f.hits, f.elapsed, f.response);
    putln!(
        out,
        "{:12.2},{over:12.2},{:12.2},{:8},{:8}",
        f.rate,
        f.concurrency,
        f.success,
        f.failed
    );
    if aborted {
        out.push_str("**** siege aborted due to excessive socket failure. ****\n");
    }
    out
}
