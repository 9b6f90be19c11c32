//! Instants of the calendar.

use time::OffsetDateTime;

/// Formats an instant as `2026-01-31 23:59:59 UTC`; `unix_s`: seconds since 1970-01-01 UTC.
pub fn timestamp(unix_s: f64) -> String {
    // values beyond the range saturate, and are not instants of the calendar
    let Ok(at) = OffsetDateTime::from_unix_timestamp(unix_s as i64) else {
        return format!("{unix_s} s after 1970-01-01 UTC");
    };
    let (year, month, day) = (at.year(), u8::from(at.month()), at.day());
    let (hour, minute, second) = (at.hour(), at.minute(), at.second());
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}
