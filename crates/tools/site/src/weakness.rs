//! Weaknesses that servers have under load, as plain values; each corresponds to one finding of the
//! diagnosis. They can be combined with the faults and with each other.

use units::{Nanos, parse_duration, parse_rate};

use crate::TimeLaw;
use crate::faults::{TIME_MAX, parse_share};

/// A token bucket: calls per second, after a burst.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateLimit {
    pub per_s: f64,
    /// Calls admitted before the rate applies, at least 1.
    pub burst: f64,
    /// Status for refused requests: 429 or 503.
    pub status: u16,
}

/// Slower start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cold {
    /// Duration from the first request on.
    pub length: Nanos,
    /// Factor by which the work is slower; above 1.
    pub times: f64,
}

/// The universal scalability law: with n calls in progress each takes 1 + a (n − 1) + b n (n − 1)
/// times as long (Gunther).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Contention {
    pub contention: f64,
    pub coherency: f64,
}

/// A share of the requests is answered 504 after a time-out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Late {
    /// Share, 0..=1.
    pub share: f64,
    pub after: Nanos,
}

/// All weaknesses; the default has none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Weaknesses {
    /// Number of workers that perform `service`, instead of one.
    pub workers: Option<u64>,
    /// Responses leave at the ticks of a clock with this period: at the same instants for all.
    pub quantum: Option<Nanos>,
    /// True if head and body are written separately, with Nagle's algorithm on.
    pub nagle: bool,
    pub rate_limit: Option<RateLimit>,
    pub cold: Option<Cold>,
    /// Additional time of each request compared with the previous one.
    pub leak: Option<Nanos>,
    /// Bytes a second of all bodies together.
    pub bandwidth: Option<u64>,
    pub contention: Option<Contention>,
    pub late: Option<Late>,
    /// `delay` of every other connection.
    pub other_delay: Option<TimeLaw>,
    /// Minimum time between two accepted connections.
    pub accept_every: Option<Nanos>,
}

impl RateLimit {
    /// Parses `100/s`, `100/s:20` with a burst, `100/s:20:503`.
    pub(crate) fn parse(text: &str) -> Result<RateLimit, String> {
        let mut parts = text.split(':');
        let rate = parse_rate(parts.next().unwrap_or_default()).map_err(|e| e.to_string())?;
        let burst = match parts.next() {
            None => 1.0,
            Some(text) => number(text)
                .filter(|burst| *burst >= 1.0)
                .ok_or("the burst is a number of calls, at least 1")?,
        };
        let status = match parts.next() {
            None | Some("429") => 429,
            Some("503") => 503,
            Some(_) => return Err("refused calls are answered 429 or 503".to_owned()),
        };
        if parts.next().is_some() {
            return Err("write a rate, a burst and a status, like 100/s:20:503".to_owned());
        }
        Ok(RateLimit { per_s: rate.0, burst, status })
    }
}

impl Cold {
    /// Parses `4s:5`: for four seconds five times as long.
    pub(crate) fn parse(text: &str) -> Result<Cold, String> {
        let (length, times) =
            text.split_once(':').ok_or("write how long and how many times slower, like 4s:5")?;
        let length = time(length)?;
        let times = number(times).filter(|times| *times > 1.0 && *times <= 1_000.0);
        Ok(Cold { length, times: times.ok_or("it is above 1 and at most 1000 times slower")? })
    }
}

impl Contention {
    /// Parses `0.05:0.002`.
    pub(crate) fn parse(text: &str) -> Result<Contention, String> {
        let (a, b) =
            text.split_once(':').ok_or("write contention and coherency, like 0.05:0.002")?;
        let figure = |text| number(text).filter(|figure| (0.0..=1.0).contains(figure));
        match (figure(a), figure(b)) {
            (Some(contention), Some(coherency)) => Ok(Contention { contention, coherency }),
            _ => Err("contention and coherency are 0 to 1".to_owned()),
        }
    }

    /// Returns the slowdown factor of a call with `n` in progress, including itself.
    pub(crate) fn slowdown(self, n: f64) -> f64 {
        1.0 + self.contention * (n - 1.0) + self.coherency * n * (n - 1.0)
    }
}

impl Late {
    /// Parses `1%:2s`.
    pub(crate) fn parse(text: &str) -> Result<Late, String> {
        let (share, after) = text.split_once(':').ok_or("write a share and a time, like 1%:2s")?;
        Ok(Late { share: parse_share(share)?, after: time(after)? })
    }
}

/// Parses a time above zero, at most an hour.
pub(crate) fn time(text: &str) -> Result<Nanos, String> {
    match parse_duration(text).map_err(|error| error.to_string())? {
        Nanos::ZERO => Err("it must be above zero".to_owned()),
        time if time > TIME_MAX => Err("the maximum is an hour".to_owned()),
        time => Ok(time),
    }
}

fn number(text: &str) -> Option<f64> {
    text.trim().parse::<f64>().ok().filter(|number| number.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weaknesses_are_read_or_refused() {
        let limit = RateLimit { per_s: 100.0, burst: 20.0, status: 503 };
        assert_eq!(RateLimit::parse("100/s:20:503"), Ok(limit));
        assert_eq!(RateLimit::parse("100/s"), Ok(RateLimit { burst: 1.0, status: 429, ..limit }));
        for text in ["", "100/s:0", "100/s:x", "100/s:5:500", "100/s:5:503:1"] {
            assert!(RateLimit::parse(text).is_err(), "{text}");
        }
        assert_eq!(Cold::parse("4s:5"), Ok(Cold { length: Nanos::from_secs(4), times: 5.0 }));
        for text in ["4s", "4s:1", "4s:-2", "0s:5", "2h:5", "4s:NaN"] {
            assert!(Cold::parse(text).is_err(), "{text}");
        }
        let law = Contention { contention: 0.05, coherency: 0.002 };
        assert_eq!(Contention::parse("0.05:0.002"), Ok(law));
        assert!((law.slowdown(1.0) - 1.0).abs() < 1e-12);
        assert!((law.slowdown(11.0) - (1.0 + 0.5 + 0.22)).abs() < 1e-12);
        for text in ["0.05", "0.05:2", "a:b", "-1:0"] {
            assert!(Contention::parse(text).is_err(), "{text}");
        }
        let late = Late { share: 0.01, after: Nanos::from_secs(2) };
        assert_eq!(Late::parse("1%:2s"), Ok(late));
        for text in ["1%", "0:2s", "1%:0s", "1%:2h"] {
            assert!(Late::parse(text).is_err(), "{text}");
        }
    }
}
