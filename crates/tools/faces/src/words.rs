//! Small functions that C programs share: numbers from text, the system's error messages, dates.

use sample::FailureClass;

/// Parses like `atoi`: white space, a sign, digits; the rest is ignored, and 0 without digits.
/// Beyond 32 bits the low ones are kept, as in glibc on 64-bit machines.
pub fn atoi(text: &str) -> i32 {
    let text = text.trim_start_matches([' ', '\t', '\n', '\x0b', '\x0c', '\r']);
    let (negative, digits) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let mut number = 0i64;
    for digit in digits.bytes().take_while(u8::is_ascii_digit) {
        number = number.saturating_mul(10).saturating_add(i64::from(digit - b'0'));
    }
    (if negative { -number } else { number }) as i32
}

/// Returns the system's number and message for a failure of a system call; `None` for all others.
pub fn system_error(class: FailureClass) -> Option<(i32, &'static str)> {
    Some(match class {
        FailureClass::Refused => (111, "Connection refused"),
        FailureClass::Reset => (104, "Connection reset by peer"),
        FailureClass::SocketTimeout => (110, "Connection timed out"),
        FailureClass::Unreachable => (113, "No route to host"),
        FailureClass::FdUnavailable => (24, "Too many open files"),
        FailureClass::FileTableFull => (23, "Too many open files in system"),
        FailureClass::AddressUnavailable => (99, "Cannot assign requested address"),
        FailureClass::OtherIo => (5, "Input/output error"),
        _ => return None,
    })
}

/// Returns `getaddrinfo`'s number (as a positive one) for its message; 2, an unknown name, for
/// others.
pub fn resolver_error(text: &str) -> (i32, &'static str) {
    const KNOWN: [(i32, &str); 6] = [
        (2, "Name or service not known"),
        (3, "Temporary failure in name resolution"),
        (4, "Non-recoverable failure in name resolution"),
        (5, "No address associated with hostname"),
        (8, "Servname not supported for ai_socktype"),
        (11, "System error"),
    ];
    KNOWN.iter().find(|(_, known)| text.contains(known)).copied().unwrap_or(KNOWN[0])
}

/// A second of the calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    pub year: i64,
    /// Month, 1 to 12.
    pub month: i64,
    pub day: i64,
    /// `Sat`.
    pub weekday: &'static str,
    pub hour: i64,
    pub minute: i64,
    pub second: i64,
}

/// Returns the local time. `unix_s` counts from 1970 in UTC; `offset_s` is added for local time.
/// Days are counted as in the proleptic Gregorian calendar (Howard Hinnant, "chrono-compatible
/// low-level date algorithms").
pub fn moment(unix_s: i64, offset_s: i32) -> Moment {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    let local = unix_s + i64::from(offset_s);
    let (days, second) = (local.div_euclid(86_400), local.rem_euclid(86_400));
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12;
    let year = year_of_era + era * 400 + i64::from(month < 2);
    Moment {
        year,
        month: month + 1,
        day,
        weekday: DAYS[days.rem_euclid(7) as usize],
        hour: second / 3_600,
        minute: second / 60 % 60,
        second: second % 60,
    }
}

/// Formats `Sat Nov 21 19:52:23 2026`: `ctime` without its line feed; see [`moment`].
pub fn ctime(unix_s: i64, offset_s: i32) -> String {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let Moment { year, month, day, weekday, hour, minute, second } = moment(unix_s, offset_s);
    let month = MONTHS[(month - 1) as usize];
    format!("{weekday} {month} {day:2} {hour:02}:{minute:02}:{second:02} {year}")
}

/// Renders shell commands that write a plan to a file and run it.
pub fn plan_script(file: &str, plan: &plan::Plan) -> String {
    let text = plan::to_toml(plan, plan::Secrets::Shown);
    let mut end = "END".to_owned();
    while text.lines().any(|line| line == end) {
        end.push('_');
    }
    format!("cat > {file} <<'{end}'\n{text}{end}\nloadstone run {file}\n")
}

/// Quotes a word for a shell if necessary.
pub fn shell_quoted(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"%+,-./:=@_".contains(&byte);
    if !word.is_empty() && word.bytes().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Returns the exit status that the parent sees for a number passed to `exit`.
pub(crate) fn exit_code(number: i32) -> u8 {
    (number & 0xff) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_a_shell() {
        let quoted = ["http://h:80/a", "", "a b", "it's", "a?b&c"].map(shell_quoted);
        assert_eq!(quoted, ["http://h:80/a", "''", "'a b'", r"'it'\''s'", "'a?b&c'"]);
    }

    #[test]
    fn numbers_out_of_text_as_c_has_them() {
        let cases = [
            ("12", 12),
            (" \t-3x", -3),
            ("x", 0),
            ("", 0),
            ("+7", 7),
            ("10x", 10),
            ("1e9", 1),
            ("4294967297", 1),
            ("2147483648", i32::MIN),
        ];
        for (text, number) in cases {
            assert_eq!(atoi(text), number, "{text:?}");
        }
    }

    #[test]
    fn dates_are_printed_like_ctime() {
        for (unix_s, offset_s, text) in [
            (0, 0, "Thu Jan  1 00:00:00 1970"),
            (951_782_400, 0, "Tue Feb 29 00:00:00 2000"),
            (1_795_290_743, 3_600, "Sat Nov 21 20:52:23 2026"),
            (4_107_542_400, 0, "Mon Mar  1 00:00:00 2100"),
            (-1, 0, "Wed Dec 31 23:59:59 1969"),
        ] {
            assert_eq!(ctime(unix_s, offset_s), text);
        }
    }
}
