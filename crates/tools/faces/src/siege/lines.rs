//! siege's line for each transaction.

use super::call_report::LoggedRequest;
use super::config::Config;
use crate::Date;
use crate::words::{Moment, moment};
use units::Nanos;

/// Measurements of a line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measured {
    pub(super) user: u64,
    pub(super) seconds: f64,
    pub(super) bytes: u64,
    pub(super) done: Nanos,
}

/// Returns the line, with its end.
pub(super) fn text(
    config: &Config,
    line: &LoggedRequest,
    measured: Measured,
    date: &Date,
) -> String {
    let LoggedRequest { protocol, code, cached, method, shown, row } = line;
    let Measured { user, seconds, bytes, done } = measured;
    let at = moment(unix_s(date, done), date.utc_offset_s);
    let stamp = if config.timestamp { stamp(&at) } else { String::new() };
    let body = if config.csv {
        let mark = config.mark.as_ref().map(|mark| format!("{mark},")).unwrap_or_default();
        let id = if config.display_id { format!("{user:4},") } else { String::new() };
        let time = day_and_time(&at);
        format!("{stamp}{mark}{id}{protocol},{code},{seconds:6.2},{bytes:7},{shown},{row},{time}")
    } else if config.display_id {
        format!(
            "{user:4}) {protocol} {code} {seconds:6.2} secs: {bytes:7} bytes ==> {method:<4} {shown}"
        )
    } else {
        let kept = if *cached { "(C)" } else { "   " };
        format!(
            "{stamp}{protocol} {code}{kept} {seconds:5.2} secs: {bytes:7} bytes ==> {method:<4} {shown}"
        )
    };
    if config.color {
        format!("\x1b[0;{}m{body}\x1b[0m\n", color(*code, *cached))
    } else {
        body + "\n"
    }
}

/// Returns the seconds since 1970 at an instant of the run.
pub(super) fn unix_s(date: &Date, at: Nanos) -> i64 {
    (date.unix_s + at.as_secs_f64() - date.at.as_secs_f64()) as i64
}

/// Formats `2026-11-22 02:22:09`.
pub(super) fn day_and_time(at: &Moment) -> String {
    let Moment { year, month, day, hour, minute, second, .. } = at;
    format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}")
}

fn stamp(at: &Moment) -> String {
    format!("[{}, {}] ", at.weekday, day_and_time(at))
}

/// Returns the color: green for cached responses; blue, cyan, magenta or red by status.
fn color(code: u16, cached: bool) -> u8 {
    match code {
        _ if cached => 32,
        150 | 200..=206 | 226 => 34,
        300..=307 => 36,
        400..=417 => 35,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(code: u16, cached: bool, method: &'static str, shown: &str) -> LoggedRequest {
        LoggedRequest {
            protocol: "HTTP/1.1".into(),
            code,
            cached,
            method,
            shown: shown.into(),
            row: 7,
        }
    }

    fn format_logged(config: &Config, line: &LoggedRequest) -> String {
        let measured = Measured { user: 3, seconds: 0.254, bytes: 159, done: Nanos::from_secs(2) };
        let date = Date { at: Nanos::from_secs(1), unix_s: 1_795_314_128.0, utc_offset_s: 0 };
        text(config, line, measured, &date)
    }

    #[test]
    fn each_line_has_the_shape_of_its_options() {
        let plain = Config { color: false, ..Config::default() };
        let got = line(200, false, "GET", "/path");
        let timed = Config { timestamp: true, ..plain.clone() };
        let csv = Config { csv: true, mark: Some("M".into()), ..timed.clone() };
        let known = Config { display_id: true, ..plain.clone() };
        let both = Config { display_id: true, ..csv.clone() };
        for (config, line, wanted) in [
            (&plain, &got, "HTTP/1.1 200     0.25 secs:     159 bytes ==> GET  /path\n"),
            (
                &plain,
                &line(200, true, "GET", "/p"),
                "HTTP/1.1 200(C)  0.25 secs:     159 bytes ==> GET  /p\n",
            ),
            (
                &plain,
                &line(404, false, "POST", "http://h/"),
                "HTTP/1.1 404     0.25 secs:     159 bytes ==> POST http://h/\n",
            ),
            (
                &timed,
                &got,
                "[Sun, 2026-11-22 02:22:09] HTTP/1.1 200     0.25 secs:     159 bytes ==> GET  /path\n",
            ),
            (&known, &got, "   3) HTTP/1.1 200   0.25 secs:     159 bytes ==> GET  /path\n"),
            (
                &csv,
                &got,
                "[Sun, 2026-11-22 02:22:09] M,HTTP/1.1,200,  0.25,    159,/path,7,2026-11-22 02:22:09\n",
            ),
            (
                &both,
                &got,
                "[Sun, 2026-11-22 02:22:09] M,   3,HTTP/1.1,200,  0.25,    159,/path,7,2026-11-22 02:22:09\n",
            ),
        ] {
            assert_eq!(format_logged(config, line), wanted);
        }
    }

    #[test]
    fn colors_distinguish_statuses() {
        let codes = [(200, 34), (302, 36), (404, 35), (503, 31), (308, 31)];
        for (code, number) in codes {
            let text = format_logged(&Config::default(), &line(code, false, "GET", "/"));
            assert!(text.starts_with(&format!("\x1b[0;{number}mHTTP")), "{text:?}");
            assert!(text.ends_with("\x1b[0m\n"), "{text:?}");
        }
        assert!(
            format_logged(&Config::default(), &line(200, true, "GET", "/"))
                .starts_with("\x1b[0;32m")
        );
    }
}
