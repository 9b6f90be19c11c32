//! A link that is away for a while again and again: a tunnel, a hand-over between cells, a wall.

use units::{Nanos, Stream};

/// How a link comes and goes. It begins present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    /// How long it is there, and away.
    pub there: Nanos,
    pub away: Nanos,
    /// The two are drawn from exponential laws with these means, in place of being exact.
    pub random: bool,
    /// Packets that come while it is away are lost, in place of waiting.
    pub loses: bool,
}

/// Where one link's coming and going stands. Asked with instants that never fall.
#[derive(Clone, Debug)]
pub(crate) struct OutageState {
    stream: Stream,
    there: bool,
    until: Nanos,
}

/// Shortest span that is drawn, so that a mean of nanoseconds cannot hold the machine up.
const SPAN_MIN: Nanos = Nanos::from_micros(100);

impl OutageState {
    pub(crate) fn new(outage: &Outage, mut stream: Stream, origin: Nanos) -> OutageState {
        let until = origin + span(outage, true, &mut stream);
        OutageState { stream, there: true, until }
    }

    /// The first instant from `at` on at which the link is there.
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
