//! The wall clock: only to date results, never to measure.

/// Seconds since 1970-01-01 UTC.
pub(crate) fn unix_seconds() -> f64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0.0, |span| span.as_secs_f64())
}
