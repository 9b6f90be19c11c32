//! One-line facts of WebSockets.

use crate::RunRecord;
use crate::words::counted;
use record::run::{FanOutRecord, MessagesRecord, ReconnectsRecord, RunHist};
use stats::Hist;
use units::show;

/// Returns the label and sentence of each fact; empty without WebSockets.
pub(crate) fn facts(report: &RunRecord) -> Vec<(&'static str, String)> {
    let Some(messages) = &report.bodies.messages else { return Vec::new() };
    let mut facts = vec![("Messages", sentence(messages)), ("WebSockets", sockets(messages))];
    facts.extend(messages.fan_out.as_ref().map(|it| ("Fan-out", fan_out(it))));
    let back = report.hist(RunHist::Reconnect);
    facts.extend(messages.reconnects.as_ref().map(|it| ("Reconnects", reconnects(it, &back))));
    let mut violations: Vec<_> = messages.violations.iter().collect();
    violations.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let describe = |(why, count): &(&String, &u64)| {
        ("", format!("{} × {}", crate::printable(why, 100), show::count(**count)))
    };
    facts.extend(violations.iter().take(3).map(describe));
    facts
}

/// Returns messages and reach for a line of a log; `None` without WebSockets.
pub(crate) fn short_form(report: &RunRecord) -> Option<String> {
    let messages = report.bodies.messages.as_ref()?;
    let (sent, received) = (show::count(messages.sent), show::count(messages.received));
    let reach = messages.fan_out.as_ref().and_then(|fan_out| fan_out.reach);
    let reach = reach.map_or_else(String::new, |reach| format!(", reach {}", show::share(reach)));
    Some(format!("{sent} messages sent, {received} received{reach}"))
}

fn sentence(messages: &MessagesRecord) -> String {
    if messages.sent == 0 && messages.pings > 0 {
        let pongs = counted(messages.pongs, "pong");
        return format!(
            "{} and {pongs}: connections are held, and each call is a ping",
            counted(messages.pings, "ping")
        );
    }
    let mut text = format!(
        "{} sent, {} received ({})",
        show::count(messages.sent),
        show::count(messages.received),
        show::rate(messages.received_per_s)
    );
    if messages.fan_out.is_none() && !messages.belongs_to_steps() {
        text += &format!(", answers by {}", messages.expect);
    }
    for (count, what) in [
        (messages.unmatched, "unmatched"),
        (messages.late, "late"),
        (messages.lost, "without an answer in time"),
    ] {
        if count > 0 {
            text += &format!("; {} {what}", show::count(count));
        }
    }
    text
}

fn fan_out(record: &FanOutRecord) -> String {
    let receivers = counted(record.members.saturating_sub(1), "receiver");
    let rooms = counted(u64::from(record.rooms), "room");
    let mut text =
        format!("{} to {receivers} each in {rooms}", counted(record.messages, "message"));
    if let Some(reach) = record.reach {
        text += &format!(
            "; reach {} ({} of {})",
            show::share(reach),
            show::count(record.received),
            show::count(record.expected)
        );
    }
    for (count, what) in [(record.duplicates, "duplicate"), (record.out_of_order, "out of order")] {
        if count > 0 {
            text += &format!("; {} {what}", show::count(count));
        }
    }
    text
}

/// Returns how WebSockets were reopened after all of them were reset.
fn reconnects(record: &ReconnectsRecord, times: &Hist) -> String {
    let lost = show::count(record.lost);
    let mut text = match record.restored {
        0 => format!("{lost} reset at once; none was open again"),
        all if all >= record.lost => {
            format!("{lost} reset at once; all open again after {}", show::duration(times.max()))
        }
        some => format!("{lost} reset at once; only {} open again", show::count(some)),
    };
    if record.restored > 0 {
        let median = show::duration(times.quantile(0.5));
        let peak = show::rate(record.peak_per_s);
        text += &format!(" (median {median}), at most {peak} in 100 ms");
    }
    if record.failed > 0 {
        text += &format!("; {} failed", counted(record.failed, "attempt"));
    }
    text
}

fn sockets(messages: &MessagesRecord) -> String {
    let mut text = format!("{} opened", show::count(messages.opened));
    for (version, count) in
        [("HTTP/2", messages.http2_connections), ("HTTP/3", messages.http3_connections)]
    {
        if count > 0 {
            text += &format!(" on {} of {version}", counted(count, "connection"));
        }
    }
    if messages.compressed > 0 {
        let ratio = messages.payload_sent as f64 / messages.wire_sent.max(1) as f64;
        text += &format!(
            ", {} with compression ({ratio:.1} bytes of payload sent per byte)",
            show::count(messages.compressed)
        );
    }
    if messages.mask == "zero" {
        text += ", masked with zero keys";
    }
    for close in &messages.closes {
        let count = show::count(close.count);
        text += &match close.by.as_str() {
            "client" if close.code == 1006 => format!("; {count} reset by the client"),
            "client" if messages.belongs_to_steps() => {
                format!("; {count} closed by the client ({})", close.code)
            }
            "client" => format!("; {count} closed at the end ({})", close.code),
            "server" => format!("; {count} closed by the server ({})", close.code),
            "violation" => format!("; {count} broken off after a violation ({})", close.code),
            "refused" => format!("; {count} handshakes failed"),
            _ => format!("; {count} lost without a close frame"),
        };
    }
    if messages.pings > 0 && messages.sent > 0 {
        text += &format!(
            "; {} answered by {}",
            counted(messages.pings, "ping"),
            counted(messages.pongs, "pong")
        );
    }
    text
}

/// Returns the names and times: of the handshake, between messages, of heartbeats.
pub(crate) fn times(report: &RunRecord) -> Vec<(&'static str, Hist)> {
    if report.bodies.messages.is_none() {
        return Vec::new();
    }
    let rows = [
        ("handshake", RunHist::Handshake),
        ("between messages", RunHist::MessageGap),
        ("ping to pong", RunHist::Heartbeat),
        ("until open again", RunHist::Reconnect),
        ("first receiver", RunHist::FirstReceiver),
        ("each receiver", RunHist::Receiver),
        ("last receiver", RunHist::LastReceiver),
    ];
    let rows = rows.map(|(name, of)| (name, report.hist(of)));
    rows.into_iter().filter(|(_, hist)| !hist.is_empty()).collect()
}
