//! The wall clock: used only to date results, never to measure.

/// Returns the number of seconds since 1970-01-01 UTC.
pub fn unix_seconds() -> f64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0.0, |span| span.as_secs_f64())
}

/// Returns how many seconds local time is ahead of UTC now; 0 if unknown, and for a command in
/// another program's process. Must be called before other threads start: only one thread may read
/// the C library's time zone.
pub fn utc_offset_s() -> i32 {
    if !host::invocation::is_process() {
        return 0;
    }
    time::UtcOffset::current_local_offset().map_or(0, time::UtcOffset::whole_seconds)
}
