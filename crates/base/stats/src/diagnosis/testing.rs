//! Measurements for the tests of rules.

use crate::Measurement;
use sample::Http2Facts;
use units::Nanos;

/// Returns a connection that has had this many streams, ten at once.
pub(crate) fn http2_facts(streams: u64) -> Http2Facts {
    Http2Facts { streams, streams_peak: 10, streams_max: Some(100), ..Http2Facts::default() }
}

/// Returns a second in which as many calls succeeded as there were streams.
pub(crate) fn measured(facts: Http2Facts) -> Measurement {
    let mut measurement = Measurement { window: Nanos::SECOND, ..Measurement::default() };
    measurement.total.counts.due = facts.streams;
    measurement.total.counts.succeeded = facts.streams;
    measurement.total.connections.http2 = facts;
    measurement
}
