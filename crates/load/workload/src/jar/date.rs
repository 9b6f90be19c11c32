//! Dates of cookies (RFC 6265 section 5.1.1): a date is any text that contains a time, a day, a
//! month and a year. Servers write dates in many ways, and browsers accept all of them.

use time::{Date, Month, OffsetDateTime, PrimitiveDateTime, Time};

/// Parses the instant in the text, or `None` if it is not a date.
pub(super) fn parse(text: &[u8]) -> Option<OffsetDateTime> {
    let (mut time, mut day, mut month, mut year) = (None, None, None, None);
    for token in text.split(|byte| is_delimiter(*byte)).filter(|token| !token.is_empty()) {
        if time.is_none()
            && let Some(found) = time_of(token)
        {
            time = Some(found);
        } else if day.is_none()
            && let Some((found, _)) = number(token, 1, 2)
        {
            day = Some(found);
        } else if month.is_none()
            && let Some(found) = month_of(token)
        {
            month = Some(found);
        } else if year.is_none()
            && let Some((found, _)) = number(token, 2, 4)
        {
            year = Some(found);
        }
    }
    let year = match year? {
        year @ 70..=99 => year + 1900,
        year @ 0..=69 => year + 2000,
        year => year,
    };
    let (hour, minute, second) = time?;
    let date = Date::from_calendar_date(i32::from(year), month?, u8::try_from(day?).ok()?).ok()?;
    let time = Time::from_hms(hour, minute, second).ok()?;
    (year >= 1601).then(|| PrimitiveDateTime::new(date, time).assume_utc())
}

fn is_delimiter(byte: u8) -> bool {
    matches!(byte, b'\t' | 0x20..=0x2f | 0x3b..=0x40 | 0x5b..=0x60 | 0x7b..=0x7e)
}

/// Splits off the number at the start of a token, of `least` to `most` digits; the rest does not
/// begin with another digit.
fn number(token: &[u8], least: usize, most: usize) -> Option<(u16, &[u8])> {
    let count = token.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, rest) = token.split_at(count);
    let value = digits
        .iter()
        .fold(0u16, |sum, digit| sum.wrapping_mul(10).wrapping_add((digit - b'0').into()));
    (least..=most).contains(&count).then_some((value, rest))
}

/// Parses `8:05:59`, and ignores anything after it.
fn time_of(token: &[u8]) -> Option<(u8, u8, u8)> {
    let (hour, rest) = number(token, 1, 2)?;
    let (minute, rest) = number(rest.strip_prefix(b":")?, 1, 2)?;
    let (second, _) = number(rest.strip_prefix(b":")?, 1, 2)?;
    Some((hour as u8, minute as u8, second as u8))
}

/// Finds a month by its first three letters.
fn month_of(token: &[u8]) -> Option<Month> {
    let start = token.get(..3)?;
    let names: [&[u8]; 12] = [
        b"jan", b"feb", b"mar", b"apr", b"may", b"jun", b"jul", b"aug", b"sep", b"oct", b"nov",
        b"dec",
    ];
    let place = names.iter().position(|name| start.eq_ignore_ascii_case(name))?;
    Month::try_from(place as u8 + 1).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(text: &str) -> Option<i64> {
        parse(text.as_bytes()).map(OffsetDateTime::unix_timestamp)
    }

    #[test]
    fn a_date_is_read_however_it_is_written() {
        for text in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
            "sun, 6 november 1994 8:49:37 utc",
            "Sun, 06 Nov 1994 08:49:37 -0000",
            "Sun, 06 Nov 1994 08:49:37",
            "1994 Nov 6 08:49:37x",
            "6th Nov 1994 8:49:37.5",
            "08:49:37 06 Nov 94",
        ] {
            assert_eq!(seconds(text), Some(784_111_777), "{text}");
        }
        assert_eq!(seconds("Thu, 1 Jan 70 0:0:0"), Some(0));
        assert_eq!(seconds("1 Jan 69 0:0:0"), Some(3_124_224_000));
        assert_eq!(seconds("31 Dec 1969 23:59:59"), Some(-1));
    }

    #[test]
    fn an_incomplete_or_out_of_range_date_is_invalid() {
        for text in [
            "",
            "Sun, 06 Nov 1994",
            "Nov 1994 08:49:37",
            "06 1994 08:49:37",
            "06 Nov 08:49:37",
            "006 Nov 08:49:37",
            "30 Feb 2024 00:00:00",
            "32 Jan 2024 00:00:00",
            "0 Jan 2024 00:00:00",
            "1 Jan 1600 00:00:00",
            "1 Jan 2024 24:00:00",
            "1 Jan 2024 00:60:00",
            "1 Jan 2024 00:00:60",
            "1 Jan 19945 08:49:37",
        ] {
            assert_eq!(seconds(text), None, "{text}");
        }
    }
}
