//! Description of the emulated path of a run.

use crate::words::{self, seconds};
use record::run::{PathDirectionRecord, PathRecord};
use units::show;

/// Describes the requested path: `a path of 50.0 ms round trip (rtt=50ms)`.
pub(crate) fn describe_path(path: &PathRecord) -> String {
    let spec = words::printable(&path.spec, 200);
    match path.kinds.as_slice() {
        [kind] => format!("an emulated path, {spec}: {} round trip", seconds(kind.rtt_asked_s)),
        kinds => format!("{} kinds of emulated paths, {spec}", kinds.len()),
    }
}

/// Returns a fact for the path, one for each direction, and one for the accuracy of the emulation.
pub(crate) fn facts(path: &PathRecord) -> Vec<(&'static str, String)> {
    let several = path.kinds.len() > 1;
    let packets = path.kinds.iter().map(|kind| kind.up.arrived + kind.down.arrived).sum();
    let mut facts = vec![(
        "Path",
        format!(
            "{}, seed {}, {} packets",
            words::printable(&path.spec, 200),
            path.seed,
            show::count(packets)
        ),
    )];
    for kind in &path.kinds {
        let clients = if several {
            format!("{}, {} clients: ", words::printable(&kind.name, 60), kind.clients)
        } else {
            String::new()
        };
        facts.push(("", format!("{clients}configured round trip {}", seconds(kind.rtt_asked_s))));
        facts.push(("", format!("up: {}", direction(&kind.up))));
        facts.push(("", format!("down: {}", direction(&kind.down))));
    }
    facts.push(("", emulation(path)));
    facts
}

/// Describes a direction: `1,234 packets, 1.20 MiB, 12 lost (10 by the loss, 2 by a full queue); 3
/// Mbit/s, …`.
pub fn direction(facts: &PathDirectionRecord) -> String {
    let causes = [
        (facts.lost_to_model, "by the loss"),
        (facts.lost_to_outage, "by an outage"),
        (facts.lost_to_queue, "by a full queue"),
        (facts.lost_to_codel, "by CoDel"),
    ];
    let parts: Vec<String> = causes
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{} {what}", show::count(*count)))
        .collect();
    let mut text = format!(
        "{} packets, {} delivered, {} lost",
        show::count(facts.arrived),
        show::bytes(facts.delivered_bytes),
        show::count(causes.iter().map(|(count, _)| count).sum())
    );
    if !parts.is_empty() {
        text += &format!(" ({})", parts.join(", "));
    }
    for (count, what) in [(facts.duplicated, "duplicated"), (facts.corrupted, "corrupted")] {
        if count > 0 {
            text += &format!(", {} {what}", show::count(count));
        }
    }
    format!("{text}; {}", link(&facts.link))
}

/// Describes a link. The text has our signs beyond ASCII; the name of a trace in it does not.
fn link(described: &str) -> String {
    const OWN: [char; 2] = ['±', '·'];
    let piece = |piece: &str| {
        let text = piece.trim_end_matches(OWN);
        words::printable(text, 200) + &piece[text.len()..]
    };
    described.split_inclusive(OWN).map(piece).collect()
}

/// Describes the accuracy of the emulation.
pub fn emulation(path: &PathRecord) -> String {
    let mut text = format!(
        "delivered late by {} (p50), {} (p99), {} (max); the emulation was busy for {}",
        seconds(path.late_s.p50),
        seconds(path.late_s.p99),
        seconds(path.late_s.max),
        show::share(path.forwarder_busy)
    );
    if path.overflowed > 0 {
        text += &format!("; {} packets lost to the emulation itself", show::count(path.overflowed));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_sign_stays_and_foreign_ones_are_escaped() {
        let described = "2·(size / 56 kbit/s) ± 20.0 ms, trace \u{202e}a";
        assert_eq!(link(described), "2·(size / 56 kbit/s) ± 20.0 ms, trace \\u{202e}a");
    }
    use sample::{PathDirection, PathFacts, PathKind};
    use units::Nanos;

    #[test]
    fn a_path_is_described_in_words() {
        let down = PathDirection {
            link: "3 Mbit/s, loss 1.00 %".to_owned(),
            arrived: 1_234,
            delivered: 1_222,
            delivered_bytes: 1 << 20,
            lost_to_model: 10,
            lost_to_queue: 2,
            duplicated: 3,
            ..PathDirection::default()
        };
        let kind = PathKind { rtt: Nanos::from_millis(90), down, ..PathKind::default() };
        let path = PathFacts {
            spec: "train".to_owned(),
            seed: 7,
            kinds: vec![kind],
            late_p50: Nanos::from_micros(5),
            late_p99: Nanos::from_micros(40),
            late_max: Nanos::from_millis(1),
            busy: 0.25,
            overflowed: 9,
            ..PathFacts::default()
        };
        let lines: Vec<String> = facts(&PathRecord::new(&path))
            .into_iter()
            .map(|(label, text)| format!("{label}: {text}"))
            .collect();
        assert_eq!(
            lines,
            [
                "Path: train, seed 7, 1,234 packets",
                ": configured round trip 90.0 ms",
                ": up: 0 packets, 0 B delivered, 0 lost; ",
                ": down: 1,234 packets, 1.00 MiB delivered, 12 lost (10 by the loss, 2 by a full \
                 queue), 3 duplicated; 3 Mbit/s, loss 1.00 %",
                ": delivered late by 5.00 µs (p50), 40.0 µs (p99), 1.00 ms (max); the emulation \
                 was busy for 25.0 %; 9 packets lost to the emulation itself",
            ]
        );
        assert_eq!(
            describe_path(&PathRecord::new(&path)),
            "an emulated path, train: 90.0 ms round trip"
        );
    }
}
