//! Description of connections held open during a load.

use crate::words::seconds;
use record::run::HeldRecord;
use units::show;

/// Describes how many were established, how soon, and how the server ended them.
pub(crate) fn fact(held: &HeldRecord) -> String {
    let mut text = format!(
        "{} of {} were established, the last {} after the first was opened",
        show::count(held.stood),
        show::count(held.wanted),
        seconds(held.setup_s),
    );
    if held.setup_s > 0.0 {
        text += &format!(" ({})", show::rate(held.stood as f64 / held.setup_s));
    }
    if held.failed > 0 {
        text += &format!(", {} failed", show::count(held.failed));
    }
    text += &format!("; {} open when the load ended", show::count(held.open));
    if let Some(age) = &held.age_s {
        text += &format!(
            "; the server closed {} and reset {}, after {} (p50; {} to {})",
            show::count(held.closed),
            show::count(held.reset),
            seconds(age.p50),
            seconds(age.min),
            seconds(age.max)
        );
    }
    if held.bytes > 0 {
        text += &format!(", and sent {} without a request", show::bytes(held.bytes));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use sample::HeldFacts;
    use units::Nanos;

    #[test]
    fn a_census_is_described_as_text() {
        let held = HeldFacts {
            wanted: 1_000,
            stood: 1_000,
            open: 1_000,
            setup: Nanos::from_millis(20),
            ..HeldFacts::default()
        };
        assert_eq!(
            fact(&HeldRecord::new(&held)),
            "1,000 of 1,000 were established, the last 20.0 ms after the first was opened (50,000/s); \
             1,000 open when the load ended"
        );
        let ended = HeldFacts {
            stood: 998,
            failed: 2,
            open: 990,
            closed: 7,
            reset: 1,
            bytes: 96,
            age_min: Nanos::from_secs(4),
            age_p50: Nanos::from_secs(5),
            age_max: Nanos::from_secs(6),
            ..held
        };
        assert_eq!(
            fact(&HeldRecord::new(&ended)),
            "998 of 1,000 were established, the last 20.0 ms after the first was opened (49,900/s), 2 \
             failed; 990 open when the load ended; the server closed 7 and reset 1, after 5.00 s (p50; \
             4.00 s to 6.00 s), and sent 96 B without a request"
        );
    }
}
