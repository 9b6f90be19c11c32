//! Connections that were held beside a load, in words.

use sample::HeldFacts;
use units::show;

/// How many stood and how soon, and what the server did with them.
pub(crate) fn fact(held: &HeldFacts) -> String {
    let seconds = held.setup.as_secs_f64();
    let mut text = format!(
        "{} of {} were established, the last {} after the first was opened",
        show::count(held.stood),
        show::count(held.wanted),
        show::duration(held.setup),
    );
    if seconds > 0.0 {
        text += &format!(" ({})", show::rate(held.stood as f64 / seconds));
    }
    if held.failed > 0 {
        text += &format!(", {} failed", show::count(held.failed));
    }
    text += &format!("; {} open when the load ended", show::count(held.open));
    if held.ended() > 0 {
        text += &format!(
            "; the server closed {} and reset {}, after {} (p50; {} to {})",
            show::count(held.closed),
            show::count(held.reset),
            show::duration(held.age_p50),
            show::duration(held.age_min),
            show::duration(held.age_max)
        );
    }
    if held.bytes > 0 {
        text += &format!(", and sent {} unasked", show::bytes(held.bytes));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Nanos;

    #[test]
    fn a_census_in_words() {
        let held = HeldFacts {
            wanted: 1_000,
            stood: 1_000,
            open: 1_000,
            setup: Nanos::from_millis(20),
            ..HeldFacts::default()
        };
        assert_eq!(
            fact(&held),
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
            fact(&ended),
            "998 of 1,000 were established, the last 20.0 ms after the first was opened (49,900/s), 2 \
             failed; 990 open when the load ended; the server closed 7 and reset 1, after 5.00 s (p50; \
             4.00 s to 6.00 s), and sent 96 B unasked"
        );
    }
}
