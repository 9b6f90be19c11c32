//! Days and minutes of a proof, UTC. The calendar is `time`'s; no clock is read.

use std::fmt;
use time::{Date, Month};

pub(super) const DAY_S: i64 = 86_400;

/// A day: `2026-12-31`, years 2000 to 9999.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Day(Date);

impl Day {
    pub(super) fn parse(text: &str) -> Result<Day, String> {
        let wrong = || format!("{} is not a date like 2026-12-31", units::quoted(text));
        let bytes = text.as_bytes();
        if bytes.len() != 10 || bytes[4] != b'-' || bytes[7] != b'-' {
            return Err(wrong());
        }
        let year = digits(&bytes[..4]).ok_or_else(wrong)?;
        let month = digits(&bytes[5..7]).and_then(|month| u8::try_from(month).ok());
        let month = month.and_then(|month| Month::try_from(month).ok()).ok_or_else(wrong)?;
        let day = digits(&bytes[8..]).and_then(|day| u8::try_from(day).ok()).ok_or_else(wrong)?;
        let date = Date::from_calendar_date(i32::from(year), month, day).map_err(|_| wrong())?;
        if date.year() < 2000 { Err(wrong()) } else { Ok(Day(date)) }
    }

    /// Returns the day of this second plus `days_after`, or `None` if out of range.
    pub fn from_unix_seconds(unix_seconds: i64, days_after: i64) -> Option<Day> {
        let days = unix_seconds.div_euclid(DAY_S).checked_add(days_after)?;
        let julian = days.checked_add(i64::from(EPOCH_JULIAN))?;
        let date = Date::from_julian_day(i32::try_from(julian).ok()?).ok()?;
        (2000..=9999).contains(&date.year()).then_some(Day(date))
    }

    /// Returns the days since 1970-01-01.
    pub(super) fn since_epoch(self) -> i64 {
        i64::from(self.0.to_julian_day() - EPOCH_JULIAN)
    }
}

/// The Julian day of 1970-01-01.
const EPOCH_JULIAN: i32 = 2_440_588;

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.0.year(), u8::from(self.0.month()), self.0.day())
    }
}

/// A minute: `2026-12-01T01:00Z`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Minute {
    day: Day,
    /// Within the day.
    minute: u16,
}

impl Minute {
    fn parse(text: &str) -> Result<Minute, String> {
        let wrong = || format!("{} is not a time like 2026-12-01T01:00Z", units::quoted(text));
        let (day, rest) = text.split_once('T').ok_or_else(wrong)?;
        let bytes = rest.as_bytes();
        if bytes.len() != 6 || bytes[2] != b':' || bytes[5] != b'Z' {
            return Err(wrong());
        }
        let hour = digits(&bytes[..2]).filter(|hour| *hour < 24).ok_or_else(wrong)?;
        let minute = digits(&bytes[3..5]).filter(|minute| *minute < 60).ok_or_else(wrong)?;
        Ok(Minute { day: Day::parse(day)?, minute: hour * 60 + minute })
    }

    /// Returns the seconds since 1970-01-01 UTC.
    pub fn unix_seconds(self) -> i64 {
        self.day.since_epoch() * DAY_S + i64::from(self.minute) * 60
    }
}

impl fmt::Display for Minute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}T{:02}:{:02}Z", self.day, self.minute / 60, self.minute % 60)
    }
}

/// Parses `from/until`, or `any`.
pub(super) fn window(text: &str) -> Result<Option<(Minute, Minute)>, String> {
    if text == "any" {
        return Ok(None);
    }
    let (from, until) = text
        .split_once('/')
        .ok_or("write any, or from/until as in 2026-12-01T01:00Z/2026-12-01T05:00Z")?;
    let (from, until) = (Minute::parse(from)?, Minute::parse(until)?);
    if from < until { Ok(Some((from, until))) } else { Err("it ends before it begins".to_owned()) }
}

fn digits(bytes: &[u8]) -> Option<u16> {
    let all = bytes.iter().all(u8::is_ascii_digit);
    let text = std::str::from_utf8(bytes).ok().filter(|_| all)?;
    text.parse().ok()
}
