//! Faults on demand, as plain values: kinds, syntax, and mutual exclusions.

use crate::weakness::Weaknesses;
use units::{Nanos, Stream, parse_duration, parse_size, quoted};

/// Duration, fixed or random.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TimeLaw {
    Fixed(Nanos),
    /// Uniform between two values.
    Uniform {
        low: Nanos,
        high: Nanos,
    },
    /// Exponential with this mean.
    Exponential {
        mean: Nanos,
    },
}

/// Everything freezes for `length` at `period`, 2·`period` … after the first request that follows a
/// second without any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stall {
    pub length: Nanos,
    /// Period, longer than `length`.
    pub period: Nanos,
}

/// The declared length against the body that is sent; they differ by 5 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WrongLength {
    /// Declares less than it sends: the rest looks like the head of another response.
    Short,
    /// Declares more than it sends and keeps the connection open: the client waits.
    Long,
}

/// Fault in every response; one at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misbehaviour {
    WrongLength(WrongLength),
    /// Sends seeded random bytes that are not HTTP, then closes the connection.
    Garbage,
    /// Reads requests and sends nothing.
    NeverAnswer,
    /// Closes the connection once the request is read.
    CloseEarly,
    /// Sends each response twice.
    Twice,
    /// Closes the connection halfway through the body, or through the head if there is no body.
    Truncate,
}

/// All faults; [`Faults::default`] has none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Faults {
    /// Time from a request's arrival to its response; requests do not wait for each other.
    pub delay: Option<TimeLaw>,
    /// Service time of a server that processes one request at a time, in order of arrival.
    pub service: Option<TimeLaw>,
    /// True if `delay` and `drip` occupy the server too, so that requests wait for each other.
    pub one_at_a_time: bool,
    pub stall: Option<Stall>,
    /// 0..=1: this share of the responses is a 500.
    pub error_share: f64,
    /// 0..=1: this share of the requests is answered by a reset connection.
    pub reset_share: f64,
    /// Maximum number of open connections; any more are accepted and closed at once.
    pub connection_cap: Option<u64>,
    /// Responses per connection, of which the last announces the close.
    pub close_after: Option<u64>,
    /// Bodies are sent at this many bytes per second.
    pub drip: Option<u64>,
    pub misbehaviour: Option<Misbehaviour>,
    /// Number of requests after which the listener and all connections are closed, as when a
    /// process dies.
    pub die_after: Option<u64>,
    pub weak: Weaknesses,
}

/// The longest delay, service or mean that is accepted.
pub(crate) const TIME_MAX: Nanos = Nanos::from_secs(3_600);

impl TimeLaw {
    /// Parses `10ms`, `5ms..20ms`, `exp:10ms`.
    ///
    /// # Errors
    /// Fails for an invalid duration, one above an hour, or a range whose end is before its start.
    pub fn parse(text: &str) -> Result<TimeLaw, String> {
        let time = |text: &str| {
            let time = parse_duration(text).map_err(|error| error.to_string())?;
            if time > TIME_MAX {
                return Err(format!("{} is longer than the limit of one hour", quoted(text)));
            }
            Ok(time)
        };
        if let Some(mean) = text.strip_prefix("exp:") {
            return Ok(TimeLaw::Exponential { mean: time(mean)? });
        }
        let Some((low, high)) = text.split_once("..") else {
            return Ok(TimeLaw::Fixed(time(text)?));
        };
        let (low, high) = (time(low)?, time(high)?);
        if high < low {
            return Err("the second time of a range must not be below the first".to_owned());
        }
        Ok(TimeLaw::Uniform { low, high })
    }

    pub(crate) fn sample(self, stream: &mut Stream) -> Nanos {
        match self {
            TimeLaw::Fixed(time) => time,
            TimeLaw::Uniform { low, high } => {
                Nanos::from_secs_f64(stream.uniform(low.as_secs_f64(), high.as_secs_f64()))
            }
            TimeLaw::Exponential { mean } => {
                Nanos::from_secs_f64(stream.exponential(mean.as_secs_f64()))
            }
        }
    }
}

impl Stall {
    /// Parses `500ms/2s`: this long, this often.
    ///
    /// # Errors
    /// Fails for anything but two durations, a zero, or a stall that does not end before the next.
    pub fn parse(text: &str) -> Result<Stall, String> {
        let (length, period) = text
            .split_once('/')
            .ok_or_else(|| "write how long and how often, like 500ms/2s".to_owned())?;
        let length = parse_duration(length).map_err(|error| error.to_string())?;
        let period = parse_duration(period).map_err(|error| error.to_string())?;
        if length.is_zero() || length >= period || period > TIME_MAX {
            return Err("the stall must be above 0, shorter than its period, and the period at \
                        most an hour"
                .to_owned());
        }
        Ok(Stall { length, period })
    }
}

impl Faults {
    /// Returns whether every fault concerns single requests: their time, status or reset, not the
    /// bytes of responses or the number of connections and requests.
    pub(crate) fn affect_only_timing(&self) -> bool {
        let whole = self.drip.is_none() && self.misbehaviour.is_none() && !self.weak.nagle;
        let endless = self.close_after.is_none() && self.die_after.is_none();
        let uncounted = self.connection_cap.is_none() && self.weak.bandwidth.is_none();
        whole && endless && uncounted && self.stall.is_none()
    }

    /// Returns whether anything is faulty or slow.
    pub fn any(&self) -> bool {
        *self != Faults::default()
    }

    /// Returns a contradiction between options, as a message for the user.
    pub(crate) fn conflict(&self) -> Option<&'static str> {
        let silent = self.misbehaviour == Some(Misbehaviour::NeverAnswer);
        let bodiless = silent || self.misbehaviour == Some(Misbehaviour::CloseEarly);
        let timed = self.delay.is_some() || self.service.is_some() || self.drip.is_some();
        if let Some(why) = self.weak_conflict(silent || bodiless) {
            return Some(why);
        }
        if silent && (timed || self.one_at_a_time || self.close_after.is_some()) {
            return Some(
                "--never-answer sends nothing: leave out --delay, --service, --one-at-a-time, \
                 --drip and --close-after",
            );
        }
        if bodiless && (self.drip.is_some() || self.error_share > 0.0) {
            return Some(
                "--close-early and --never-answer send no body: leave out --drip and --error-share",
            );
        }
        if self.misbehaviour == Some(Misbehaviour::Garbage) && self.error_share > 0.0 {
            return Some("--garbage has no status: leave out --error-share");
        }
        if self.one_at_a_time && !timed {
            return Some(
                "--one-at-a-time needs --delay, --service or --drip: without one no response takes \
                 any time",
            );
        }
        None
    }
}

impl Faults {
    /// Returns the message for a weakness without the option that it needs.
    fn weak_conflict(&self, bodiless: bool) -> Option<&'static str> {
        let weak = &self.weak;
        let works = self.delay.is_some() || self.service.is_some();
        let slows = weak.cold.is_some() || weak.contention.is_some();
        if weak.workers.is_some() && (self.service.is_none() || self.one_at_a_time) {
            return Some(
                "--workers shares the work of --service: give --service, without --one-at-a-time",
            );
        }
        if slows && !works {
            return Some("--cold and --contention make work longer: give --delay or --service");
        }
        if weak.other_delay.is_some() && (self.delay.is_none() || self.service.is_some()) {
            return Some(
                "--other-delay is the --delay of every other connection: give both, and leave out \
                 --service",
            );
        }
        if weak.bandwidth.is_some() && (self.drip.is_some() || self.one_at_a_time) {
            return Some(
                "--bandwidth is one rate for all bodies: leave out --drip and --one-at-a-time",
            );
        }
        let misbehaves = self.misbehaviour.is_some();
        if misbehaves
            && (weak.nagle
                || weak.bandwidth.is_some()
                || weak.rate_limit.is_some()
                || weak.late.is_some())
        {
            return Some(match bodiless {
                true => {
                    "--close-early and --never-answer send nothing that could be late or limited"
                }
                false => {
                    "a response that goes wrong is not limited, split or late as well: start a second site"
                }
            });
        }
        None
    }

    /// Returns the number of bytes per second of a body, by any limit.
    pub(crate) fn body_rate(&self) -> Option<u64> {
        self.drip.or(self.weak.bandwidth)
    }
}

/// Parses a share above 0: `1%` or `0.01`.
pub(crate) fn parse_share(text: &str) -> Result<f64, String> {
    match units::parse_share(text) {
        Ok(share) if share > 0.0 => Ok(share),
        Ok(_) => Err("it must be above zero; write one like 1% or 0.01".to_owned()),
        Err(error) => Err(error.0),
    }
}

/// Parses bytes per second: `100B/s`, `64k/s`.
pub(crate) fn parse_drip(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let Some(size) = text.strip_suffix("/s") else {
        return Err(format!("{} has no unit: write one like 100B/s or 64k/s", quoted(text)));
    };
    match parse_size(size) {
        Ok(0) => Err("it must be above zero; --never-answer sends nothing at all".to_owned()),
        Ok(bytes) => Ok(bytes),
        Err(error) => Err(format!("{error} per second, like 100B/s")),
    }
}

#[cfg(test)]
mod tests;
