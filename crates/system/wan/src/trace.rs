//! Links with a varying rate, as a list of times at which they can carry a packet: the format of
//! mahimahi (Netravali et al., USENIX ATC 2015). A line is a whole millisecond; at each the link
//! carries [`OPPORTUNITY_BYTES`] bytes, and unused ones are lost. At the end the list repeats, with
//! the last line as its period.

use std::fmt::Write as _;
use std::sync::Arc;
use units::{Nanos, quoted};

/// Size of a delivery opportunity: a packet of 1,500 bytes and the header of mahimahi's own device.
pub const OPPORTUNITY_BYTES: u32 = 1_504;
/// Number of bytes that count in addition to each packet.
pub(crate) const TRACE_OVERHEAD: u32 = 4;
/// Maximum number of lines of a trace: one hour of a link of 12 Gbit/s, more than any recorded
/// trace.
pub const TRACE_LINES_MAX: usize = 4_000_000;

/// A list of delivery opportunities.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// Milliseconds from the start, never decreasing; the last is above 0.
    at_ms: Vec<u32>,
}

/// An error in a trace, for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceFault(pub String);

impl std::fmt::Display for TraceFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TraceFault {}

/// Access to the traces named in a path, without opening files.
pub trait TraceSource {
    /// # Errors
    /// Fails with one sentence that names the file and the error.
    fn trace(&self, file: &str) -> Result<Arc<Trace>, String>;
}

/// Source without traces.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoTraces;

impl TraceSource for NoTraces {
    fn trace(&self, file: &str) -> Result<Arc<Trace>, String> {
        Err(format!("the trace {} cannot be read: files are not available here", quoted(file)))
    }
}

/// Traces by their names in the text of a path.
impl TraceSource for Vec<(String, Arc<Trace>)> {
    fn trace(&self, file: &str) -> Result<Arc<Trace>, String> {
        let found = self.iter().find(|(name, _)| name == file);
        found.map_or_else(|| NoTraces.trace(file), |(_, trace)| Ok(trace.clone()))
    }
}

impl Trace {
    /// Reads the trace in a file.
    ///
    /// # Errors
    /// Fails with one sentence that names the file, and the line if applicable.
    pub fn parse_file(file: &str, bytes: &[u8]) -> Result<Arc<Trace>, String> {
        let wrong = |why: &dyn std::fmt::Display| format!("the trace {}: {why}", quoted(file));
        let text = std::str::from_utf8(bytes).map_err(|_| {
            let row = bytes.split(|byte| *byte == b'\n');
            let row = row.take_while(|line| std::str::from_utf8(line).is_ok()).count() + 1;
            wrong(&format!("line {row} is not text"))
        })?;
        Trace::parse(text).map(Arc::new).map_err(|fault| wrong(&fault))
    }

    /// Returns the trace as the intervals between its lines, `5 0*3 1*200`: repeated ones are
    /// written once. [`Trace::parse_gaps`] parses it.
    pub fn gaps(&self) -> String {
        let mut text = String::new();
        let mut before = 0;
        let gaps = self.at_ms.iter().map(|at| at - std::mem::replace(&mut before, *at));
        let gaps: Vec<u32> = gaps.collect();
        for same in gaps.chunk_by(|a, b| a == b) {
            let blank = if text.is_empty() { "" } else { " " };
            let written = match same.len() {
                1 => write!(text, "{blank}{}", same[0]),
                many => write!(text, "{blank}{}*{many}", same[0]),
            };
            written.expect("a String takes everything");
        }
        text
    }

    /// Parses the output of [`Trace::gaps`].
    ///
    /// # Errors
    /// Fails for a word that is not an interval, and for an invalid trace.
    pub fn parse_gaps(text: &str) -> Result<Trace, TraceFault> {
        let mut at_ms: Vec<u32> = Vec::new();
        for word in text.split_whitespace() {
            let wrong = || {
                TraceFault(format!(
                    "{} is not a span between two lines of a trace, such as 1 or 1*200 (milliseconds)",
                    quoted(word)
                ))
            };
            let (gap, times) = word.split_once('*').unwrap_or((word, "1"));
            let (gap, times): (u32, usize) =
                (gap.parse().map_err(|_| wrong())?, times.parse().map_err(|_| wrong())?);
            if times > TRACE_LINES_MAX - at_ms.len() {
                return Err(TraceFault(format!("it has more than {TRACE_LINES_MAX} lines")));
            }
            for _ in 0..times {
                let before = at_ms.last().copied().unwrap_or(0);
                at_ms.push(before.checked_add(gap).ok_or_else(wrong)?);
            }
        }
        Trace::from_lines(at_ms)
    }

    /// Parses mahimahi's format. Empty lines are ignored.
    ///
    /// # Errors
    /// Fails for a line that is not a whole number of milliseconds or is below the previous one,
    /// without lines, for a last line of 0, and for more than [`TRACE_LINES_MAX`] lines.
    pub fn parse(text: &str) -> Result<Trace, TraceFault> {
        let mut at_ms: Vec<u32> = Vec::new();
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        for (row, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() {
                continue;
            }
            let row = row + 1;
            let at = line.parse().map_err(|_| {
                let line = quoted(line);
                TraceFault(format!(
                    "line {row}: {line} is not a whole number of milliseconds below 2^32"
                ))
            })?;
            if at_ms.last().is_some_and(|before| *before > at) {
                return Err(TraceFault(format!(
                    "line {row}: {at} is below the line before; a trace goes forward in time"
                )));
            }
            if at_ms.len() == TRACE_LINES_MAX {
                return Err(TraceFault(format!("it has more than {TRACE_LINES_MAX} lines")));
            }
            at_ms.push(at);
        }
        Trace::from_lines(at_ms)
    }

    fn from_lines(at_ms: Vec<u32>) -> Result<Trace, TraceFault> {
        match at_ms.last() {
            None => Err(TraceFault("it has no line".to_owned())),
            Some(0) => Err(TraceFault("it ends at 0 ms; its last line is its period".to_owned())),
            Some(_) => Ok(Trace { at_ms }),
        }
    }

    /// Returns the mean rate in bits per second, of packets of 1,500 bytes.
    pub fn bits_per_second(&self) -> f64 {
        let bits = self.at_ms.len() as f64 * 8.0 * f64::from(OPPORTUNITY_BYTES - TRACE_OVERHEAD);
        bits / (f64::from(self.period_ms()) / 1e3)
    }

    fn period_ms(&self) -> u32 {
        self.at_ms.last().copied().unwrap_or(1)
    }

    /// Returns the time of opportunity number `index`, counted from 0 through all repetitions, from
    /// the start of the trace.
    pub(crate) fn at(&self, index: u64) -> Nanos {
        let rows = self.at_ms.len() as u64;
        let (round, row) = (index / rows, index % rows);
        let ms = u64::from(self.at_ms[row as usize])
            .saturating_add(round.saturating_mul(u64::from(self.period_ms())));
        Nanos::from_millis(ms)
    }

    /// Returns the first opportunity strictly after `at`: an opportunity at the exact instant of a
    /// packet's arrival is missed.
    pub(crate) fn after(&self, at: Nanos) -> u64 {
        let period = u64::from(self.period_ms()) * 1_000_000;
        let (mut round, within) = (at.0 / period, at.0 % period);
        // the last line of a repetition is time 0 of the next one
        if within == 0 && round > 0 {
            round -= 1;
        }
        let rows = self.at_ms.len() as u64;
        let start = round * period;
        let first =
            self.at_ms.partition_point(|ms| start + u64::from(*ms) * 1_000_000 <= at.0) as u64;
        let mut index = round * rows + first;
        while self.at(index) <= at {
            index += 1;
        }
        index
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_trace_is_reported() {
        let wrong = |text: &str| Trace::parse(text).expect_err("no trace").0;
        assert_eq!(wrong(""), "it has no line");
        assert_eq!(wrong("0\n0\n"), "it ends at 0 ms; its last line is its period");
        assert_eq!(
            wrong("1\n5\n4\n"),
            "line 3: 4 is below the line before; a trace goes forward in time"
        );
        assert_eq!(
            wrong("1\n\n1.5"),
            "line 3: \"1.5\" is not a whole number of milliseconds below 2^32"
        );
        assert_eq!(wrong("-1"), "line 1: \"-1\" is not a whole number of milliseconds below 2^32");
    }

    #[test]
    fn a_file_is_reported_with_its_line() {
        let wrong = |bytes: &[u8]| Trace::parse_file("up.txt", bytes).expect_err("no trace");
        assert_eq!(wrong(b"1\n2\n\xff\n"), "the trace \"up.txt\": line 3 is not text");
        assert_eq!(
            wrong(b"1\nx\n"),
            "the trace \"up.txt\": line 2: \"x\" is not a whole number of milliseconds below 2^32"
        );
        assert!(Trace::parse_file("up.txt", b"1\n").is_ok());
        let marked = Trace::parse_file("up.txt", b"\xef\xbb\xbf1\n");
        assert_eq!(marked, Trace::parse_file("up.txt", b"1\n"));
    }

    #[test]
    fn spans_are_short_and_read_back() {
        let read = |text: &str| Trace::parse(text).expect("a trace");
        for (lines, gaps) in [
            ("1\n", "1"),
            ("0\n0\n0\n5\n6\n7\n", "0*3 5 1*2"),
            ("4294967295\n4294967295", "4294967295 0"),
        ] {
            assert_eq!(read(lines).gaps(), gaps);
            assert_eq!(Trace::parse_gaps(gaps), Ok(read(lines)));
        }
        for wrong in ["", "0*4", "1*4000001", "4294967295 1", "-1", "1*", "1*x", "*"] {
            assert!(Trace::parse_gaps(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn one_line_of_1_ms_is_12_megabits() {
        let trace = Trace::parse("1\n").expect("a trace");
        assert!((trace.bits_per_second() - 12e6).abs() < 1.0);
        let instants: Vec<u64> = (0..4).map(|index| trace.at(index).0 / 1_000_000).collect();
        assert_eq!(instants, [1, 2, 3, 4]);
    }

    #[test]
    fn the_opportunity_after_an_instant_is_found_in_every_round() {
        let trace = Trace::parse("0\n3\n3\n7\n10\n").expect("a trace");
        for us in (0..45_000).step_by(250) {
            let at = Nanos::from_micros(us);
            let slow = (0..).find(|index| trace.at(*index) > at).expect("it goes on for ever");
            assert_eq!(trace.after(at), slow, "after {us} us");
        }
    }
}
