//! The log file: a line per event, `2001 Sep 19 05:31:26 Info: …`, in UTC. A line is one write to a
//! file opened for appending, so lines of several threads or servers never mix.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

/// Severity of a line. The log contains lines of its configured level and above.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Debug,
    Info,
    Warn,
    Error,
}

impl Level {
    /// The names in a configuration, by rising importance.
    pub const NAMES: [(&'static str, Level); 4] = [
        ("Debug", Level::Debug),
        ("Info", Level::Info),
        ("Warn", Level::Warn),
        ("Error", Level::Error),
    ];

    /// Parses a level, ignoring case.
    pub fn parse(text: &str) -> Option<Level> {
        let found = Level::NAMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(text));
        found.map(|(_, level)| *level)
    }

    fn name(self) -> &'static str {
        Level::NAMES[self as usize].0
    }
}

#[derive(Debug)]
enum LogSink {
    File(File),
    Stderr,
}

/// Destination of lines.
#[derive(Debug)]
pub(crate) struct Log {
    level: Level,
    sink: LogSink,
    lost: AtomicU64,
}

/// Maximum length of a line in bytes; longer lines are truncated.
const LINE_MAX: usize = 4_096;

impl Log {
    pub(crate) fn to_stderr(level: Level) -> Log {
        Log { level, sink: LogSink::Stderr, lost: AtomicU64::new(0) }
    }

    /// Appends to the file, which is created if it does not exist.
    ///
    /// # Errors
    /// Fails if the file cannot be opened for writing.
    pub(crate) fn to_file(level: Level, path: &Path) -> std::io::Result<Log> {
        let file = File::options().create(true).append(true).open(path)?;
        Ok(Log { level, sink: LogSink::File(file), lost: AtomicU64::new(0) })
    }

    /// Returns whether lines of this level are logged: check before creating an expensive one.
    pub(crate) fn keeps(&self, level: Level) -> bool {
        level >= self.level
    }

    /// Writes a line, or several when the text holds several.
    pub(crate) fn write(&self, level: Level, text: &str) {
        if !self.keeps(level) || text.is_empty() {
            return;
        }
        let lines = render(SystemTime::now(), level, text);
        let written = match &self.sink {
            LogSink::File(file) => (&mut &*file).write_all(lines.as_bytes()),
            LogSink::Stderr => std::io::stderr().lock().write_all(lines.as_bytes()),
        };
        if written.is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn debug(&self, text: &str) {
        self.write(Level::Debug, text);
    }

    pub(crate) fn info(&self, text: &str) {
        self.write(Level::Info, text);
    }

    pub(crate) fn warn(&self, text: &str) {
        self.write(Level::Warn, text);
    }

    /// Returns the number of lines that could not be written, as to a full disk or a closed
    /// terminal.
    pub(crate) fn lines_lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

fn render(at: SystemTime, level: Level, text: &str) -> String {
    // `Sun, 06 Nov 1994 08:49:37 GMT`, whose parts are at fixed positions (RFC 9110 §5.6.7)
    let date = httpdate::fmt_http_date(at);
    let (day, month, year, time) = (&date[5..7], &date[8..11], &date[12..16], &date[17..25]);
    let mut lines = String::new();
    for line in text.lines() {
        let shown: String = line.chars().take(LINE_MAX).map(printable).collect();
        lines.push_str(&format!("{year} {month} {day} {time} {}: {shown}\n", level.name()));
    }
    lines
}

/// Replaces control characters, so that text of a peer or a script cannot control a terminal.
fn printable(c: char) -> char {
    if c.is_control() { '.' } else { c }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_line_looks_as_in_the_chapter_and_cannot_be_forged() {
        // 2001-09-19 05:31:26 UTC
        let at = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_877_486);
        assert_eq!(
            render(at, Level::Info, "New connection from 127.0.0.1:2525"),
            "2001 Sep 19 05:31:26 Info: New connection from 127.0.0.1:2525\n"
        );
        assert_eq!(
            render(at, Level::Debug, "a\u{1b}[1m\rb\nc"),
            "2001 Sep 19 05:31:26 Debug: a.[1m.b\n2001 Sep 19 05:31:26 Debug: c\n"
        );
    }

    #[test]
    fn a_line_below_the_level_is_left_out_and_files_grow() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("errors");
        for level in [Level::Info, Level::Warn] {
            let log = Log::to_file(level, &path).unwrap();
            log.debug("d");
            log.info("i");
            log.warn("w");
            assert_eq!(log.lines_lost(), 0);
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let ends: Vec<&str> = text.lines().map(|line| &line[21..]).collect();
        assert_eq!(ends, ["Info: i", "Warn: w", "Warn: w"]);
    }

    #[test]
    fn levels_have_names() {
        assert_eq!(Level::parse("warn"), Some(Level::Warn));
        assert_eq!(Level::parse("Debug"), Some(Level::Debug));
        assert_eq!(Level::parse("loud"), None);
    }
}
