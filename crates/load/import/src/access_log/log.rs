//! The lines of a log in time order, and the sessions that they form.

use crate::access_log::line::without_marks;
use crate::access_log::{Entry, LineError, parse_line};
use std::collections::HashMap;
use units::Nanos;

/// A distinct request of the log.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LoggedRequest {
    pub method: String,
    /// Path and query.
    pub target: String,
}

/// One line: its client, target and time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Time since the first line.
    pub at: Nanos,
    /// Number of the client, in the order of the clients' first requests.
    pub client: u32,
    /// Row of [`Log::asks`].
    pub ask: u32,
    /// Size of the sent body; 4 GiB and more count as one byte less than 4 GiB.
    pub bytes: u32,
    pub status: u16,
}

/// A client's requests without a pause longer than a bound: rows of [`Log::accesses`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientVisit {
    pub rows: Vec<u32>,
}

/// Parsed log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Log {
    pub asks: Vec<LoggedRequest>,
    /// Accesses in time order. If the log's clock counts whole seconds, the requests of one second
    /// are spread evenly over it.
    pub accesses: Vec<Access>,
    pub clients: u32,
    /// Some times have a fraction of a second.
    pub fine: bool,
    /// Number of invalid lines, and the first of them: its number, and the reason.
    pub broken: u64,
    pub first_broken: Option<(u64, LineError)>,
    /// Number of entries whose method was not selected.
    pub left_out: u64,
}

/// Maximum number of cells: three years of seconds.
const CELLS_MAX: u64 = 100_000_000;

/// Maximum number of entries.
pub(crate) const ENTRIES_MAX: usize = 10_000_000;

/// Reads a log line by line.
#[derive(Debug)]
pub struct LogReader {
    log: Log,
    clients: HashMap<String, u32>,
    asks: HashMap<LoggedRequest, u32>,
    /// Selected methods; empty for all.
    methods: Vec<String>,
    lines: u64,
}

impl LogReader {
    /// Creates the reader; `methods`: selected methods; empty: all.
    pub fn new(methods: Vec<String>) -> LogReader {
        let (log, clients, asks) = (Log::default(), HashMap::new(), HashMap::new());
        LogReader { log, clients, asks, methods, lines: 0 }
    }

    /// Processes the next line. Empty lines and comments (`#`) are ignored.
    ///
    /// # Errors
    /// Fails for more than ten million entries.
    pub fn line(&mut self, line: &str) -> Result<(), LineError> {
        self.lines += 1;
        let line = without_marks(line);
        if line.trim().is_empty() || line.starts_with('#') {
            return Ok(());
        }
        match parse_line(line) {
            Ok(entry) => self.take(entry),
            Err(error) => {
                self.log.broken += 1;
                self.log.first_broken.get_or_insert((self.lines, error));
                Ok(())
            }
        }
    }

    fn take(&mut self, entry: Entry) -> Result<(), LineError> {
        if !self.methods.is_empty() && !self.methods.contains(&entry.method) {
            self.log.left_out += 1;
            return Ok(());
        }
        if self.log.accesses.len() == ENTRIES_MAX {
            return Err(LineError(format!("more than {ENTRIES_MAX} requests; shorten the log")));
        }
        let clients = self.clients.len() as u32;
        let client = *self.clients.entry(entry.client).or_insert(clients);
        let ask = LoggedRequest { method: entry.method, target: entry.target };
        let asks = &mut self.log.asks;
        let ask = *self.asks.entry(ask).or_insert_with_key(|ask| {
            asks.push(ask.clone());
            asks.len() as u32 - 1
        });
        self.log.fine |= entry.fine;
        let Entry { at, status, bytes, .. } = entry;
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let rows = &mut self.log.accesses;
        if rows.len() == rows.capacity() {
            // doubling it would take twice the memory of the longest logs
            rows.reserve_exact(rows.len() / 4 + 1_024);
        }
        rows.push(Access { at, client, ask, status, bytes });
        Ok(())
    }

    pub fn finish(self) -> Log {
        let mut log = self.log;
        log.clients = self.clients.len() as u32;
        log.accesses.sort_by_key(|access| access.at);
        let start = log.accesses.first().map_or(Nanos::ZERO, |access| access.at);
        for access in &mut log.accesses {
            access.at = Nanos(access.at.0 - start.0);
        }
        if !log.fine {
            for second in log.accesses.chunk_by_mut(|a, b| a.at == b.at) {
                let count = second.len() as u64;
                for (row, access) in (0..).zip(second) {
                    access.at = access.at.saturating_add(Nanos(Nanos::SECOND.0 * row / count));
                }
            }
        }
        log
    }
}

impl Log {
    /// Returns the time from the first request to the last.
    pub fn span(&self) -> Nanos {
        self.accesses.last().map_or(Nanos::ZERO, |access| access.at)
    }

    /// Returns the number of requests in each whole cell of time. The last cell, in which the log
    /// may end, is omitted; if the log's clock counts whole seconds, so is the first, in which it
    /// may begin. Empty for more than a hundred million cells.
    pub fn cells(&self, cell: Nanos) -> Vec<u64> {
        let whole = self.span().0 / cell.0.max(1);
        if whole > CELLS_MAX {
            return Vec::new();
        }
        let mut counts = vec![0; whole as usize];
        for access in &self.accesses {
            if let Some(count) = counts.get_mut((access.at.0 / cell.0.max(1)) as usize) {
                *count += 1;
            }
        }
        let first = usize::from(!self.fine).min(counts.len());
        counts.split_off(first)
    }

    /// Returns each client's requests, split where it requested nothing for longer than `pause`;
    /// ordered by start time.
    pub fn visits(&self, pause: Nanos) -> Vec<ClientVisit> {
        let mut visits: Vec<ClientVisit> = Vec::new();
        let mut open: HashMap<u32, usize> = HashMap::new();
        for (row, access) in (0..).zip(&self.accesses) {
            let current = open.get(&access.client).copied().filter(|visit| {
                let last = visits[*visit].rows.last().map_or(0, |row| *row as usize);
                access.at.0 - self.accesses[last].at.0 <= pause.0
            });
            match current {
                Some(visit) => visits[visit].rows.push(row),
                None => {
                    open.insert(access.client, visits.len());
                    visits.push(ClientVisit { rows: vec![row] });
                }
            }
        }
        visits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &[(&str, &str, u32)], methods: &[&str]) -> Log {
        let mut reader = LogReader::new(methods.iter().map(|&method| method.to_owned()).collect());
        for (client, request, second) in lines {
            let (minute, second) = (second / 60, second % 60);
            let time = format!("10/Oct/2000:13:{minute:02}:{second:02} +0000");
            reader.line(&format!("{client} - - [{time}] \"{request} HTTP/1.1\" 200 5")).unwrap();
        }
        reader.finish()
    }

    #[test]
    fn the_requests_of_a_second_are_spread_over_it() {
        let log = read(&[("a", "GET /1", 5), ("a", "GET /2", 4), ("b", "GET /1", 5)], &[]);
        let at: Vec<u64> = log.accesses.iter().map(|access| access.at.0 / 1_000_000).collect();
        assert_eq!(at, [0, 1000, 1500]);
        assert_eq!((log.clients, log.asks.len(), log.span().0), (2, 2, 1_500_000_000));
        assert_eq!(log.accesses[1].ask, log.accesses[2].ask);
    }

    #[test]
    fn a_pause_ends_a_visit() {
        let log = read(
            &[("a", "GET /1", 0), ("b", "GET /1", 1), ("a", "GET /2", 30), ("a", "GET /3", 100)],
            &[],
        );
        let rows = |pause: u64| -> Vec<Vec<u32>> {
            log.visits(Nanos::from_secs(pause)).into_iter().map(|visit| visit.rows).collect()
        };
        assert_eq!(rows(60), [vec![0, 2], vec![1], vec![3]]);
        assert_eq!(rows(70), [vec![0, 2, 3], vec![1]]);
    }

    #[test]
    fn omitted_requests_are_counted() {
        let log = read(&[("a", "GET /1", 0), ("b", "POST /1", 1)], &["GET", "HEAD"]);
        assert_eq!((log.accesses.len(), log.left_out, log.clients), (1, 1, 1));
        let mut reader = LogReader::new(Vec::new());
        for line in ["# a comment", "", "rubbish", "rubbish, too"] {
            reader.line(line).unwrap();
        }
        let log = reader.finish();
        assert_eq!((log.broken, log.first_broken.as_ref().map(|(line, _)| *line)), (2, Some(3)));
        assert!(log.visits(Nanos::SECOND).is_empty());
    }
}
