//! Repeated outages of a link: a tunnel, a handover between cells, an obstacle.

use units::{Nanos, Stream};

/// Times at which a link is up and down. It starts up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    /// Time for which it is up, and down.
    pub there: Nanos,
    pub away: Nanos,
    /// True if both times are drawn from exponential distributions with these means.
    pub random: bool,
    /// Packets that arrive during an outage are lost instead of waiting.
    pub loses: bool,
}

/// Outage state of one link. Its time arguments never decrease.
#[derive(Clone, Debug)]
pub(crate) struct OutageState {
    stream: Stream,
    there: bool,
    until: Nanos,
}

/// Minimum random time, so that a mean of nanoseconds cannot stall the program.
const SPAN_MIN: Nanos = Nanos::from_micros(100);

impl OutageState {
    pub(crate) fn new(outage: &Outage, mut stream: Stream, origin: Nanos) -> OutageState {
        let until = origin + span(outage, true, &mut stream);
        OutageState { stream, there: true, until }
    }

    /// Returns the first time from `at` on at which the link is up.
    pub(crate) fn present(&mut self, outage: &Outage, at: Nanos) -> Nanos {
        while self.until <= at {
            self.there = !self.there;
            self.until += span(outage, self.there, &mut self.stream);
        }
        if self.there { at } else { self.until }
    }
}

fn span(outage: &Outage, there: bool, stream: &mut Stream) -> Nanos {
    let mean = if there { outage.there } else { outage.away };
    let span = match outage.random {
        true => Nanos(stream.exponential(mean.0 as f64).round() as u64),
        false => mean,
    };
    span.max(SPAN_MIN)
}
