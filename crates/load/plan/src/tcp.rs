//! Settings of the program's own TCP that differ from a Linux client.

use crate::rules::show_span;
use std::fmt;
use units::{Nanos, ParseError, parse_count, parse_duration, parse_size, quoted};

/// Differences from a Linux client; none by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TcpTraits {
    /// Requests explicit congestion notification (RFC 3168).
    pub ecn: bool,
    /// Time without a segment after which a keep-alive probe is sent: 1 s to 1 day.
    pub keep_alive: Option<Nanos>,
    /// Selective acknowledgements are not offered (RFC 2018).
    pub no_sack: bool,
    /// Time stamps are not offered (RFC 7323).
    pub no_timestamps: bool,
    /// Segments in flight at the beginning: 1 to 100; 10 by default (RFC 6928).
    pub initial_window: Option<u16>,
    /// Maximum size of the receive window in bytes: 4 KiB to 1 GiB; 6 MiB by default.
    pub receive_window: Option<u32>,
    /// Delay of acknowledgments: 0 to 500 ms (RFC 9293 section 3.8.6.3); 40 ms by default.
    pub ack_delay: Option<Nanos>,
}

const EXAMPLE: &str = "ecn, keep-alive=15s, no-sack, no-timestamps, initial-window=4, receive-window=64k, ack-delay=0ms";

/// Parses words and values separated by commas: `ecn, keep-alive=15s`.
///
/// # Errors
/// Fails for an unknown word, a value out of bounds, a duplicate word, or an empty text.
pub(crate) fn parse_traits(text: &str) -> Result<TcpTraits, ParseError> {
    let bad = |part: &str, why: &str| {
        ParseError(format!("{} in --tcp {why}; write some of {EXAMPLE}", quoted(part)))
    };
    let mut traits = TcpTraits::default();
    let mut names = Vec::new();
    for part in text.split(',').map(str::trim) {
        let (name, value) = match part.split_once('=') {
            Some((name, value)) => (name.trim(), Some(value.trim())),
            None => (part, None),
        };
        if names.contains(&name) {
            return Err(bad(part, "is given twice"));
        }
        names.push(name);
        match (name, value) {
            ("ecn", None) => traits.ecn = true,
            ("no-sack", None) => traits.no_sack = true,
            ("no-timestamps", None) => traits.no_timestamps = true,
            ("keep-alive", Some(value)) => {
                let span = parse_duration(value)?;
                let bounds = Nanos::SECOND..=Nanos::from_secs(86_400);
                let span = Some(span).filter(|span| bounds.contains(span));
                let why = "is not a time from 1s to 1 day (86400s)";
                traits.keep_alive = Some(span.ok_or_else(|| bad(part, why))?);
            }
            ("ack-delay", Some(value)) => {
                let span = Some(parse_duration(value)?).filter(|span| *span <= ACK_DELAY_MAX);
                let why = "is longer than the 500ms that RFC 9293 section 3.8.6.3 permits";
                traits.ack_delay = Some(span.ok_or_else(|| bad(part, why))?);
            }
            ("initial-window", Some(value)) => {
                let segments = u16::try_from(parse_count(value)?).ok();
                let segments = segments.filter(|segments| (1..=100).contains(segments));
                let why = "is not a number of segments from 1 to 100";
                traits.initial_window = Some(segments.ok_or_else(|| bad(part, why))?);
            }
            ("receive-window", Some(value)) => {
                let bytes = u32::try_from(parse_size(value)?).ok();
                let bytes = bytes.filter(|bytes| (4 << 10..=1 << 30).contains(bytes));
                let why = "is not a size from 4k to 1G";
                traits.receive_window = Some(bytes.ok_or_else(|| bad(part, why))?);
            }
            ("ecn" | "no-sack" | "no-timestamps", Some(_)) => {
                return Err(bad(part, "takes no value"));
            }
            ("keep-alive" | "ack-delay" | "initial-window" | "receive-window", None) => {
                return Err(bad(part, "needs a value"));
            }
            _ => return Err(bad(part, "is not an option of our own TCP")),
        }
    }
    Ok(traits)
}

const ACK_DELAY_MAX: Nanos = Nanos::from_millis(500);

impl fmt::Display for TcpTraits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = |set: bool, word: &str| set.then(|| word.to_owned());
        let parts = [
            word(self.ecn, "ecn"),
            self.keep_alive.map(|span| format!("keep-alive={}", show_span(span))),
            word(self.no_sack, "no-sack"),
            word(self.no_timestamps, "no-timestamps"),
            self.initial_window.map(|segments| format!("initial-window={segments}")),
            self.receive_window.map(|bytes| format!("receive-window={bytes}")),
            self.ack_delay.map(|span| format!("ack-delay={}", show_span(span))),
        ];
        f.write_str(&parts.into_iter().flatten().collect::<Vec<String>>().join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traits_are_written_as_they_are_read() {
        for text in [
            "ecn",
            "keep-alive=15s",
            "ecn,keep-alive=1500ms,no-sack,no-timestamps,initial-window=4,receive-window=65536,ack-delay=0s",
        ] {
            assert_eq!(parse_traits(text).map(|it| it.to_string()), Ok(text.to_owned()));
        }
        let spaced = parse_traits(" no-sack , receive-window = 64k ").map(|it| it.to_string());
        assert_eq!(spaced.as_deref(), Ok("no-sack,receive-window=65536"));
    }

    #[test]
    fn an_unknown_tcp_setting_is_reported() {
        let failure: String = [
            "",
            "ecn,",
            "sack",
            "ecn=1",
            "ecn, ecn",
            "keep-alive",
            "keep-alive=10ms",
            "keep-alive=x",
            "initial-window=0",
            "receive-window=2G",
            "ack-delay=1s",
        ]
        .iter()
        .map(|text| {
            let error = parse_traits(text).expect_err(text).0;
            error.split("; write").next().unwrap_or_default().to_owned() + "\n"
        })
        .collect();
        assert_eq!(
            failure,
            "\"\" in --tcp is not an option of our own TCP\n\"\" in --tcp is not an option of our \
             own TCP\n\"sack\" in --tcp is not an option of our own TCP\n\"ecn=1\" in --tcp takes \
             no value\n\"ecn\" in --tcp is given twice\n\"keep-alive\" in --tcp needs a \
             value\n\"keep-alive=10ms\" in --tcp is not a time from 1s to 1 day (86400s)\n\"x\" is \
             not a duration: \"x\" does not begin with a number\n\"initial-window=0\" in --tcp is \
             not a number of segments from 1 to 100\n\"receive-window=2G\" in --tcp is not a size \
             from 4k to 1G\n\"ack-delay=1s\" in --tcp is longer than the 500ms that RFC 9293 \
             section 3.8.6.3 permits\n"
        );
    }
}
