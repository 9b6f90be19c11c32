//! The report, line by line.

use super::options::Options;
use super::tally::{Moments, Tally};

/// Data for the report in addition to the tally.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct ClientUsage {
    /// Most connections open at once.
    pub(super) concurrent: u64,
    /// CPU seconds of the client.
    pub(super) user_s: f64,
    pub(super) system_s: f64,
    /// Computes like the original: bins for the median, whole bytes for mean sizes.
    pub(super) strict: bool,
}

/// Renders everything after the first line.
pub(super) fn report(options: &Options, tally: &Tally, beside: &ClientUsage) -> String {
    let mut text = String::new();
    let rates = tally.rates();
    if options.verbose > 0 {
        for (replies, sessions) in &rates {
            text += &format!("reply-rate = {replies:<8.1}\n");
            if options.sessions.is_some() {
                text += &format!("session-rate = {sessions:<8.1}\n");
            }
        }
    }
    text += &format!("Maximum connect burst length: {}\n", tally.burst);
    if options.verbose > 1 {
        text += &histogram(tally);
    }
    text += &format!(
        "\nTotal: connections {} requests {} replies {} test-duration {:.3} s\n",
        tally.connections,
        tally.requests,
        tally.replies(),
        tally.duration_s()
    );
    text += &connections(tally, beside);
    text += &requests(tally, beside);
    text += &replies(tally, &rates, beside);
    text += &rest(tally, beside);
    if options.sessions.is_some() {
        text += &sessions(tally, &rates);
    }
    text
}

fn histogram(tally: &Tally) -> String {
    let mut text = "\nConnection lifetime histogram (time in ms):\n".to_owned();
    let mut next = 0;
    for (bin, count) in tally.bins() {
        if bin > next {
            text += &format!("{:>14}\n", ':');
        }
        text += &format!("{:>16.1} {count}\n", bin as f64 + 0.5);
        next = bin + 1;
    }
    text
}

/// Returns a rate and its inverse in milliseconds; 0 and 0 without events.
fn rate(count: u64, seconds: f64) -> (f64, f64) {
    let inverse = if count == 0 { 0.0 } else { 1e3 * seconds / count as f64 };
    (count as f64 / seconds, inverse)
}

/// Returns the bytes per `count`.
fn size(bytes: u64, count: u64, strict: bool) -> f64 {
    match count {
        0 => 0.0,
        _ if strict => (bytes / count) as f64,
        _ => bytes as f64 / count as f64,
    }
}

fn connections(tally: &Tally, beside: &ClientUsage) -> String {
    let (per_s, ms) = rate(tally.connections, tally.duration_s());
    let lifetimes = &tally.lifetimes;
    let median = match beside.strict {
        true => tally.binned_median_s(),
        false => tally.lifetime_hist.quantile(0.5).as_secs_f64(),
    };
    let length = match lifetimes.count {
        0 => 0.0,
        count => tally.replies() as f64 / count as f64,
    };
    format!(
        "\nConnection rate: {per_s:.1} conn/s ({ms:.1} ms/conn, <={} concurrent connections)\n\
         Connection time [ms]: min {:.1} avg {:.1} max {:.1} median {:.1} stddev {:.1}\n\
         Connection time [ms]: connect {:.1}\n\
         Connection length [replies/conn]: {length:.3}\n",
        beside.concurrent.max(u64::from(tally.connections > 0)),
        1e3 * lifetimes.min,
        1e3 * lifetimes.mean(),
        1e3 * lifetimes.max,
        1e3 * median,
        1e3 * lifetimes.deviation(),
        1e3 * tally.connects.mean(),
    )
}

fn requests(tally: &Tally, beside: &ClientUsage) -> String {
    let (per_s, ms) = rate(tally.requests, tally.duration_s());
    let size = size(tally.request_bytes, tally.requests, beside.strict);
    format!("\nRequest rate: {per_s:.1} req/s ({ms:.1} ms/req)\nRequest size [B]: {size:.1}\n")
}

fn replies(tally: &Tally, rates: &[(f64, f64)], beside: &ClientUsage) -> String {
    let mut samples = Moments::default();
    rates.iter().for_each(|(replies, _)| samples.add(*replies));
    let count = tally.replies();
    let transfer_ms = if count == 0 { 0.0 } else { 1e3 * tally.transfer_s / count as f64 };
    let head = size(tally.head_bytes, count, beside.strict);
    let body = size(tally.body_bytes, count, beside.strict);
    let trailer = size(tally.trailer_bytes, count, beside.strict);
    let status = &tally.by_class;
    format!(
        "\nReply rate [replies/s]: min {:.1} avg {:.1} max {:.1} stddev {:.1} ({} samples)\n\
         Reply time [ms]: response {:.1} transfer {transfer_ms:.1}\n\
         Reply size [B]: header {head:.1} content {body:.1} footer {trailer:.1} (total {:.1})\n\
         Reply status: 1xx={} 2xx={} 3xx={} 4xx={} 5xx={}\n",
        samples.min,
        samples.mean(),
        samples.max,
        samples.deviation(),
        samples.count,
        1e3 * tally.responses.mean(),
        head + body + trailer,
        status[1],
        status[2],
        status[3],
        status[4],
        status[5],
    )
}

fn rest(tally: &Tally, beside: &ClientUsage) -> String {
    let seconds = tally.duration_s();
    let share = |cpu_s: f64| 100.0 * cpu_s / seconds;
    let bytes = (tally.request_bytes + tally.head_bytes + tally.body_bytes) as f64 / seconds;
    let errors = &tally.errors;
    format!(
        "\nCPU time [s]: user {:.2} system {:.2} (user {:.1}% system {:.1}% total {:.1}%)\n\
         Net I/O: {:.1} KB/s ({:.1}*10^6 bps)\n\
         \nErrors: total {} client-timo {} socket-timo {} connrefused {} connreset {}\n\
         Errors: fd-unavail {} addrunavail {} ftab-full {} other {}\n",
        beside.user_s,
        beside.system_s,
        share(beside.user_s),
        share(beside.system_s),
        share(beside.user_s + beside.system_s),
        bytes / 1_024.0,
        8e-6 * bytes,
        errors.total(),
        errors.client_timeout,
        errors.socket_timeout,
        errors.refused,
        errors.reset,
        errors.descriptors,
        errors.addresses,
        errors.file_table,
        errors.other,
    )
}

fn sessions(tally: &Tally, rates: &[(f64, f64)]) -> String {
    let mut samples = Moments::default();
    rates.iter().for_each(|(_, sessions)| samples.add(*sessions));
    let all = &tally.sessions;
    let mean = |sum: f64, count: u64| if count == 0 { 0.0 } else { sum / count as f64 };
    let lengths: String = match all.lengths.as_slice() {
        [] => " 0".to_owned(),
        lengths => lengths.iter().map(|count| format!(" {count}")).collect(),
    };
    format!(
        "\nSession rate [sess/s]: min {:.2} avg {:.2} max {:.2} stddev {:.2} ({}/{})\n\
         Session: avg {:.2} connections/session\n\
         Session lifetime [s]: {:.1}\n\
         Session failtime [s]: {:.1}\n\
         Session length histogram:{lengths}\n",
        samples.min,
        all.completed as f64 / tally.duration_s(),
        samples.max,
        samples.deviation(),
        all.completed,
        all.completed + all.failed,
        mean(all.connections as f64, all.completed),
        mean(all.lifetime_s, all.completed),
        mean(all.failtime_s, all.failed),
    )
}
