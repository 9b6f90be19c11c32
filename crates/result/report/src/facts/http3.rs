//! One-line facts of HTTP/3 and QUIC.

use crate::words::seconds;
use crate::words::{counted, printable};
use record::run::{Http3Record, MigrationRecord, QuicRecord};
use sample::http3_code;
use units::show;

/// Characters of a reason that are shown.
const REASON_MAX: usize = 160;

pub(super) fn facts(facts: &Http3Record) -> Vec<(&'static str, String)> {
    let fields = super::http2::fields(&facts.fields);
    let mut lines = vec![("HTTP/3", streams(facts)), ("", fields)];
    if facts.streams == 0 && facts.quic.handshakes > 0 {
        // its streams are WebSockets
        lines.clear();
    }
    lines.extend(frames(facts).map(|text| ("", text)));
    let violation = |(why, count): (&String, &u64)| {
        let connections = counted(*count, "connection");
        ("", format!("{connections} broken off: {}", printable(why, REASON_MAX)))
    };
    lines.extend(facts.violations.iter().map(violation));
    if let Some([handshakes, packets]) = quic(&facts.quic) {
        lines.extend([("QUIC", handshakes), ("", packets)]);
    }
    lines.extend(facts.migration.as_ref().map(|found| ("Migration", migration(found))));
    lines
}

fn streams(facts: &Http3Record) -> String {
    let allowed = match facts.streams_max {
        None => "no connection was established".to_owned(),
        Some(max) => format!("the server allows {} initially", show::count(max)),
    };
    format!(
        "{}, at most {} at once on a connection; {allowed}",
        counted(facts.streams, "stream"),
        show::count(facts.streams_peak)
    )
}

/// Describes the server's announcements about streams, and the connections that it ends.
fn frames(facts: &Http3Record) -> Option<String> {
    let waited = (facts.waited > 0)
        .then(|| format!("{} waited for a stream", counted(facts.waited, "call")));
    let refused = (facts.refused > 0)
        .then(|| format!("{} refused and sent again", counted(facts.refused, "stream")));
    let mut codes: Vec<(&String, &u64)> = facts.resets.iter().collect();
    codes.sort_by_key(|(code, _)| http3_code(code));
    let one = |(code, count): &(&String, &u64)| format!("{code} {}", show::count(**count));
    let codes: Vec<String> = codes.iter().map(one).collect();
    let resets = (!codes.is_empty()).then(|| format!("reset by {}", codes.join(", ")));
    let goaways = (facts.goaways > 0).then(|| format!("GOAWAY {}", show::count(facts.goaways)));
    let parts: Vec<String> = [waited, refused, resets, goaways].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// Returns the figures of QUIC.
fn quic(facts: &QuicRecord) -> Option<[String; 2]> {
    let rtt = facts.rtt_s.as_ref()?;
    let handshakes = format!(
        "{}, {} resumed; round trip at least {}, mean {}",
        counted(facts.handshakes, "handshake"),
        show::count(facts.resumed),
        seconds(rtt.min),
        seconds(rtt.mean),
    );
    let lost = facts.packets_lost as f64 / facts.packets_sent.max(1) as f64;
    let packets = format!(
        "{} sent, {} lost ({}); {} of UDP sent, {} received",
        counted(facts.packets_sent, "packet"),
        show::count(facts.packets_lost),
        show::share(lost),
        show::bytes(facts.bytes_sent),
        show::bytes(facts.bytes_received),
    );
    Some([handshakes, packets])
}

/// Describes connections that continued from another port.
fn migration(facts: &MigrationRecord) -> String {
    let mut parts = Vec::new();
    if facts.made > 0 {
        let mut text = format!(
            "{} of the local port, {} validated",
            counted(facts.made, "change"),
            show::count(facts.validated)
        );
        if let Some(time) = &facts.time_s {
            let (mean, most) = (seconds(time.mean), seconds(time.max));
            text.push_str(&format!(" after a mean of {mean}, {most} at most"));
        }
        parts.push(text);
        let (lost, calls) = (show::count(facts.calls_lost), show::count(facts.calls));
        parts.push(format!("{lost} of {calls} calls under way were lost"));
    }
    if facts.forbidden > 0 {
        let count = counted(facts.forbidden, "connection");
        parts.push(format!("{count} stayed: the server forbids it (disable_active_migration)"));
    }
    parts.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use sample::{Http3Facts, MigrationFacts, QuicFacts};
    use units::Nanos;

    #[test]
    fn each_fact_has_its_sentence() {
        let mut seen = Http3Facts {
            streams: 12_000,
            streams_peak: 10,
            streams_max: Some(100),
            waited: 5,
            refused: 3,
            resets: [(0x10b, 3), (0x102, 1)].into(),
            goaways: 2,
            fields_sent: 1_000_000,
            coded_sent: 50_000,
            fields_received: 2_000_000,
            coded_received: 400_000,
            quic: QuicFacts {
                handshakes: 4,
                resumed: 1,
                packets_sent: 20_000,
                packets_lost: 50,
                bytes_sent: 1 << 20,
                bytes_received: 3 << 20,
                rtt_sum: Nanos::from_micros(800),
                rtt_min: Nanos::from_micros(90),
                rtt_max: Nanos::from_micros(300),
                ..QuicFacts::default()
            },
            migration: MigrationFacts {
                made: 40,
                validated: 39,
                forbidden: 2,
                time_sum: Nanos::from_micros(39_000),
                time_min: Nanos::from_micros(400),
                time_max: Nanos::from_millis(3),
                calls: 400,
                calls_lost: 10,
            },
            ..Http3Facts::default()
        };
        seen.add_violation("H3_FRAME_ERROR: x (RFC 9114 section 7.1)", 2);
        let lines: Vec<String> = facts(&Http3Record::new(&seen).unwrap())
            .into_iter()
            .map(|(name, text)| format!("{name}|{text}"))
            .collect();
        assert_eq!(
            lines,
            [
                "HTTP/3|12,000 streams, at most 10 at once on a connection; the server allows 100 \
                 initially",
                "|fields: 977 KiB sent as 48.8 KiB (95.0 % saved), 1.91 MiB received as 391 KiB \
                 (80.0 % saved)",
                "|5 calls waited for a stream; 3 streams refused and sent again; reset by \
                 H3_INTERNAL_ERROR 1, H3_REQUEST_REJECTED 3; GOAWAY 2",
                "|2 connections broken off: H3_FRAME_ERROR: x (RFC 9114 section 7.1)",
                "QUIC|4 handshakes, 1 resumed; round trip at least 90.0 µs, mean 200 µs",
                "|20,000 packets sent, 50 lost (0.250 %); 1.00 MiB of UDP sent, 3.00 MiB received",
                "Migration|40 changes of the local port, 39 validated after a mean of 1.00 ms, 3.00 ms \
                 at most; 10 of 400 calls under way were lost; 2 connections stayed: the server forbids \
                 it (disable_active_migration)",
            ]
        );
    }
}
