//! One-line facts that the text and the page share: connections, bytes, the client and the like.

mod backends;
mod early;
pub(crate) mod grpc;
mod http2;
mod http3;
pub(crate) mod messages;
pub(crate) mod streams;
pub(crate) mod verified;

use crate::figures::FigureKind;
use crate::words::{self, counted};
use crate::{RunRecord, figures, fleet, held, path, stack};
use record::run::{AgreedRecord, OutcomesRecord, PostsRecord, RunHist};
use sample::FailureClass;
use stats::Hist;
use std::collections::BTreeMap;
use units::{Nanos, show};

/// Outcomes of arrivals: name and count, in the order of the sum.
type OutcomeCount = (&'static str, fn(&OutcomesRecord) -> u64);

/// The last has a row only if it is not zero: it exists only for fleets.
const ENDS: [OutcomeCount; 6] = [
    ("succeeded", |counts| counts.succeeded),
    ("failed", |counts| counts.failed),
    ("timed out", |counts| counts.timed_out),
    ("dropped", |counts| counts.dropped),
    ("abandoned", |counts| counts.abandoned),
    ("lost", |counts| counts.lost),
];

/// Returns the outcomes of arrivals, with lost ones if there are any.
pub(crate) fn ends(counts: &OutcomesRecord) -> impl Iterator<Item = (&'static str, u64)> {
    let all = ENDS.iter().map(|(name, count)| (*name, count(counts)));
    all.filter(|(name, count)| *name != "lost" || *count > 0)
}

/// Describes the calls of the warm-up; `None` without a warm-up.
pub(crate) fn warm_up(report: &RunRecord) -> Option<String> {
    let counts = &report.warm_up;
    (counts.due > 0).then(|| {
        format!(
            "{} due, {} of them failed, timed out or were dropped; reported separately",
            counted(counts.due, "call"),
            show::count(counts.bad())
        )
    })
}

/// Failures of a connection that was never usable.
const UNOPENED: [FailureClass; 8] = [
    FailureClass::Refused,
    FailureClass::Unreachable,
    FailureClass::ConnectTimeout,
    FailureClass::FdUnavailable,
    FailureClass::AddressUnavailable,
    FailureClass::FileTableFull,
    FailureClass::Tls,
    FailureClass::Certificate,
];

/// Describes the pause that shaped a closed load whose connections could not all be opened; `None`
/// if no user paused.
fn reconnect_pause(report: &RunRecord) -> Option<String> {
    let plan = report.plan.plan();
    let pause = plan.connection.reconnect_pause;
    let unopened = report.failures.iter().filter(|failure| UNOPENED.contains(&failure.class));
    let unopened: u64 = unopened.map(|failure| failure.count).sum();
    (plan.is_closed() && !pause.is_zero() && unopened > 0).then(|| {
        format!(
            "after each of {} without a connection the user waited {} before the next call, which \
             limits the throughput (--reconnect-pause)",
            counted(unopened, "call"),
            show::duration(pause)
        )
    })
}

/// Describes the sessions of a partly open load.
pub(crate) fn sessions(report: &RunRecord) -> Option<String> {
    if !figures::has_sessions(report.plan.plan()) {
        return None;
    }
    let sessions = &report.sessions;
    let intended = sessions
        .intended_per_s
        .map_or_else(String::new, |rate| format!("{} intended, ", show::rate(rate)));
    Some(format!(
        "{intended}{} started, {} completed, {} failed, {} dropped",
        show::count(sessions.started),
        show::count(sessions.completed),
        show::count(sessions.failed),
        show::count(sessions.dropped)
    ))
}

/// Returns the parts of service time that were recorded, by name.
pub(crate) fn phases(report: &RunRecord, names: [&'static str; 5]) -> Vec<(&'static str, Hist)> {
    let mut dns = Hist::new();
    report.resolved.iter().for_each(|lookup| dns.record(Nanos::from_secs_f64(lookup.took_s)));
    let parts = [RunHist::Connect, RunHist::Tls, RunHist::FirstByte, RunHist::Transfer];
    let all = std::iter::once(dns).chain(parts.map(|of| report.hist(of)));
    names.into_iter().zip(all).filter(|(_, hist)| !hist.is_empty()).collect()
}

/// Formats the responses by status: `200 × 1,000, 404 × 3`; empty without a response.
pub(crate) fn statuses(report: &RunRecord) -> String {
    if report.bodies.messages.as_ref().is_some_and(|it| !it.belongs_to_steps()) {
        // each has the status of the upgrade
        return String::new();
    }
    let seen = report.status.iter().map(|(code, n)| format!("{code} × {}", show::count(*n)));
    seen.collect::<Vec<_>>().join(", ")
}

/// Returns the POSTs compared with the server's log, if there are any.
pub(crate) fn posts(report: &RunRecord) -> Option<&PostsRecord> {
    report.bodies.specweb99.as_ref()?.posts.as_ref()
}

/// Returns the label and sentence of each applicable fact; an empty label continues the previous
/// fact.
pub(crate) fn facts(report: &RunRecord) -> Vec<(&'static str, String)> {
    let one = [
        ("Connections", Some(connections(report))),
        ("Concurrency", concurrency(report)),
        ("Bytes", Some(bytes(report))),
        ("Weighted", weighted(report)),
        ("Conforming", conforming(report)),
    ];
    let mut facts: Vec<(&str, String)> =
        one.into_iter().filter_map(|(label, text)| Some((label, text?))).collect();
    facts.extend(posts(report).map(|posts| ("POSTs", posts.sentence())));
    facts.extend(words::priority(report.plan.plan()).map(|text| ("Priority", text)));
    facts.extend(report.bodies.grpc.iter().flat_map(grpc::facts));
    facts.extend(streams::sentence(report).map(|text| ("Streams", text)));
    facts.extend(messages::facts(report));
    facts.extend(verified::sentence(report).map(|text| ("Verified", text)));
    facts.extend(verified::examples(report).map(|text| ("", text)));
    facts.extend(report.http2.iter().flat_map(http2::facts));
    facts.extend(report.http3.iter().flat_map(http3::facts));
    facts.extend(report.parts.backends.iter().flat_map(backends::facts));
    let early = report.tls.early_data.as_ref().filter(|_| report.plan.plan().tls.early_data);
    let early = early.map(early::sentence);
    facts.extend(early.map(|text| ("Early data", text)));
    facts.extend(tls(report).into_iter().map(|text| ("TLS", text)));
    facts.extend(tcp(report).map(|text| ("TCP", text)));
    facts.extend(report.held.as_ref().map(|held| ("Held", held::fact(held))));
    facts.extend(report.tokens.as_ref().map(|tokens| ("Tokens", tokens.sentence())));
    facts.extend(report.stack.iter().flat_map(stack::facts));
    facts.extend(report.path.iter().flat_map(path::facts));
    facts.extend(report.fleet.iter().flat_map(fleet::facts));
    facts.extend(report.sut.as_ref().map(|sut| ("Server", server(&sut.series()))));
    facts.extend(reconnect_pause(report).map(|text| ("Pauses", text)));
    facts
}

/// Returns the facts of the client itself.
pub(crate) fn of_client(report: &RunRecord) -> impl Iterator<Item = (&'static str, String)> {
    std::iter::once(("Client", client(report))).chain(dummy(report).map(|text| ("", text)))
}

/// Returns the failures by blamed party: `server 12, path 3`; empty without failures.
pub(crate) fn blames(report: &RunRecord) -> String {
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    for failure in &report.failures {
        *sums.entry(failure.blame.id()).or_default() += failure.count;
    }
    let parts: Vec<String> =
        sums.iter().map(|(blame, count)| format!("{blame} {}", show::count(*count))).collect();
    parts.join(", ")
}

/// Describes the resources used by the server, and which resource was exhausted.
pub(crate) fn server(sut: &sample::SutSeries) -> String {
    let mut text = words::printable(&sut.name, 100);
    let rows: Vec<&sample::SutRow> = sut.measured().collect();
    let Some(last) = rows.last() else {
        return format!("{text}: no reading{}", trouble(sut));
    };
    let busy = rows.iter().map(|row| row.cpu_cores).sum::<f64>() / rows.len() as f64;
    text += &format!(": CPU {} of {} cores", words::figure(busy), sut.cores);
    text += &format!(", memory {}", show::bytes(last.memory_bytes));
    if last.threads > 0 {
        text += &format!(", {}", counted(last.threads, "thread"));
    }
    text += &format!(", {}", counted(last.descriptors, "descriptor"));
    if sut.descriptors_max > 0 {
        text += &format!(" of {}", show::count(sut.descriptors_max));
    }
    let switches = rows.iter().map(|row| row.switches_per_s).sum::<f64>() / rows.len() as f64;
    text += &format!(", {} context switches", show::rate(switches));
    text += &queues(sut, &rows);
    let fullness = sut.fullness();
    let (full, overflows) = (fullness.full(), fullness.overflows);
    text += &match full.is_empty() {
        true => "; no resource was full".to_owned(),
        false => format!("; full: {}", full.join(", ")),
    };
    if overflows > 0 {
        text += &format!(" ({} connections dropped)", show::count(overflows));
    }
    text + &trouble(sut)
}

/// Describes the longest observed listen queues; empty if there were none.
fn queues(sut: &sample::SutSeries, rows: &[&sample::SutRow]) -> String {
    let most = |of: fn(&sample::SutRow) -> u64| rows.iter().map(|row| of(row)).max().unwrap_or(0);
    let (waiting, half_open) = (most(|row| row.accept_queue), most(|row| row.half_open));
    let mut text = String::new();
    if sut.accept_queue_max > 0 {
        let room = show::count(sut.accept_queue_max);
        text += &format!(", accept queue up to {} of {room}", show::count(waiting));
    } else if waiting > 0 {
        text += &format!(", accept queue up to {}", show::count(waiting));
    }
    if half_open > 0 {
        text += &format!(", up to {} half open", show::count(half_open));
    }
    text
}

fn trouble(sut: &sample::SutSeries) -> String {
    match sut.trouble.as_str() {
        "" => String::new(),
        why => format!("; {}", words::printable(why, 200)),
    }
}

fn connections(report: &RunRecord) -> String {
    let connections = &report.connections;
    let mut text = format!("{} opened", show::count(connections.established));
    if connections.attempted > connections.established {
        text = format!("{text} of {} attempted", show::count(connections.attempted));
    }
    text = format!("{text}, at most {} at once", show::count(connections.peak));
    if let Some(calls) = report.calls_per_connection {
        text = format!("{text}, {} calls per connection", words::figure(calls));
    }
    if report.redirects > 0 {
        let redirects = counted(report.redirects, "redirect");
        text = format!("{text}, {redirects} followed");
    }
    text
}

fn concurrency(report: &RunRecord) -> Option<String> {
    let concurrency = &report.concurrency;
    Some(format!(
        "mean {}, peak {}; throughput × service time = {} (Little's law, {} apart)",
        words::figure(concurrency.mean),
        show::count(concurrency.peak),
        words::figure(concurrency.by_littles_law?),
        show::share(concurrency.deviation?)
    ))
}

fn bytes(report: &RunRecord) -> String {
    let (bytes, window) = (&report.bytes, Nanos::from_secs_f64(report.duration_s));
    let flow = |n: u64| {
        let per_s = record::run::per_second(n, window);
        format!("{} ({}/s)", show::bytes(n), show::bytes(per_s as u64))
    };
    let mut text = format!(
        "sent {}, received {}; bodies: {}",
        flow(bytes.sent),
        flow(bytes.received),
        show::bytes(bytes.body)
    );
    if bytes.decoded != bytes.body && bytes.decoded > 0 {
        text = format!("{text}, decoded {}", show::bytes(bytes.decoded));
    }
    text
}

fn weighted(report: &RunRecord) -> Option<String> {
    let weighted = report.weighted_response.as_ref()?;
    Some(format!(
        "T = w·S + mean R = {} × {} + {} = {} (w: connections per call, S: set-up, R: from \
         sending to the end of the response)",
        words::figure(weighted.w),
        words::seconds(weighted.setup_s),
        words::seconds(weighted.exchange_s),
        words::seconds(report.weighted_response_time_s?)
    ))
}

fn conforming(report: &RunRecord) -> Option<String> {
    let connections = &report.conforming_connections;
    if connections.judged == 0 {
        return None;
    }
    Some(format!(
        "{} of {} ({}) {}",
        show::count(connections.count),
        counted(connections.judged, "connection"),
        FigureKind::Share.show(connections.share.unwrap_or(f64::NAN)),
        words::conforming_rule(report.plan.plan())
    ))
}

fn tls(report: &RunRecord) -> Vec<String> {
    let sentence = |facts: &AgreedRecord| {
        let mut parts = vec![facts.version.clone(), facts.cipher.clone()];
        parts.push(facts.group.clone());
        let alpn = words::printable(&facts.alpn, 40);
        parts.push(if alpn.is_empty() { alpn } else { format!("ALPN {alpn}") });
        parts.retain(|part| !part.is_empty());
        let how = if facts.resumed { "resumed" } else { "full handshake" };
        let connections = counted(facts.connections, "connection");
        format!("{}: {connections}, {how}", parts.join(", "))
    };
    let mut agreed: Vec<&AgreedRecord> = report.tls.agreed.iter().collect();
    agreed.sort_by_key(|one| (&one.version, &one.cipher, &one.group, one.resumed, &one.alpn));
    agreed.into_iter().map(sentence).collect()
}

fn tcp(report: &RunRecord) -> Option<String> {
    let rtt = &report.tcp.rtt_s;
    if rtt.count == 0 {
        return None;
    }
    Some(format!(
        "{} sent again, round trip p50 {}, max {} (of {} sampled)",
        counted(report.tcp.retransmits, "segment"),
        words::seconds(rtt.p50),
        words::seconds(rtt.max),
        counted(rtt.count, "connection")
    ))
}

pub(crate) fn client(report: &RunRecord) -> String {
    let driver = &report.client;
    let mut parts = Vec::new();
    if !driver.io.is_empty() {
        parts.push(words::printable(&driver.io, 40));
    }
    parts.push(counted(u64::from(driver.threads), "thread"));
    parts.push(format!(
        "CPU {} user, {} system",
        words::seconds(driver.cpu_user_s),
        words::seconds(driver.cpu_system_s)
    ));
    if driver.spin_s > 0.0 {
        parts.push(format!("including {} of busy-waiting", words::seconds(driver.spin_s)));
    }
    parts.extend(driver.cpu_per_call_s.map(|cpu| format!("{} per call", words::seconds(cpu))));
    if let Some(busiest) = driver.busy.iter().copied().reduce(f64::max) {
        parts.push(format!("busiest thread {}", show::share(busiest)));
    }
    parts.join(", ")
}

/// Returns torture.pl's dummy run: the time that the reader may subtract.
pub(crate) fn dummy(report: &RunRecord) -> Option<String> {
    let dummy = report.client.dummy?;
    let response = &report.response_time_s;
    if response.count == 0 {
        return None;
    }
    let median = response.p50;
    let part = figures::ratio(dummy.call_s, median).min(1.0);
    Some(format!(
        "Of the p50 of {}, about {} ({}) is this client and the loopback, as measured by \
         calibrate on {}.",
        show::duration(Nanos::from_secs_f64(median)),
        words::seconds(dummy.call_s.min(median)),
        show::share(part),
        words::timestamp(dummy.taken_unix_s)
    ))
}
