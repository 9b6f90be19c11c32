//! Work of the clients: how many requests each makes, and when.

use super::HTTP1;
use super::options::{Cleartext, NO_HTTP3, Options};
use super::uris::{AskedUri, read};
use crate::{Ending, Files};
use units::Nanos;

/// A command line that can be run.
#[derive(Debug)]
pub(super) struct Work {
    pub(super) options: Options,
    pub(super) asked: AskedUri,
    /// The body of each request.
    pub(super) body: Option<Vec<u8>>,
    /// Requests of each client, by its number; empty where only time ends it.
    pub(super) quotas: Vec<u64>,
}

/// Maximum number of clients.
const CLIENTS_MAX: u64 = 1_000_000;
/// Requests that a client may have outstanding.
const STREAMS_MAX: u64 = 10_000;
/// Maximum number of requests of one client; above it, only the time ends them.
const REQUESTS_MAX: u64 = u32::MAX as u64 - 1;

fn wrong<T>(text: impl std::fmt::Display) -> Result<T, Ending> {
    Err(Ending::error(format!("{text}\n"), 1))
}

/// # Errors
/// Fails for contradicting options, and files that cannot be read.
pub(super) fn plan_work(mut options: Options, files: &dyn Files) -> Result<Work, Ending> {
    if options.uris.is_empty() && options.input.is_none() {
        return wrong("no URI or input file given");
    }
    if options.clients == 0 {
        return wrong("-c: the number of clients must be strictly greater than 0.");
    }
    let asked = read(&options, files)?;
    options.complaints.push_str(&asked.complaints);
    if options.duration.is_zero() {
        // only timed runs have a warm-up
        options.warm_up = Nanos::ZERO;
    }
    if options.timing {
        clamp_to_script(&mut options, asked.paths.len() as u64);
    }
    check(&mut options, files).map_err(|ending| with_warnings(&options, ending))?;
    let body = body(&options, files).map_err(|ending| with_warnings(&options, ending))?;
    let quotas = if options.duration.is_zero() { quotas(&options) } else { Vec::new() };
    if quotas.iter().any(|quota| *quota > REQUESTS_MAX) {
        return wrong(format!("-n: a client makes {REQUESTS_MAX} requests at most; raise -c"));
    }
    // h2load's own rule: don't DoS our server
    if asked.base.host == "nghttp2.org" {
        return wrong("Using h2load against public server nghttp2.org should be prohibited.");
    }
    Ok(Work { options, asked, body, quotas })
}

fn with_warnings(options: &Options, ending: Ending) -> Ending {
    Ending { err: options.complaints.clone() + &ending.err, ..ending }
}

/// Applies a script: `-n` counts its lines, and each client makes that number of requests.
fn clamp_to_script(options: &mut Options, lines: u64) {
    if options.requests.is_some_and(|requests| requests > lines) {
        putln!(
            options.complaints,
            "-n: the number of requests must be less than or equal to the number of timing script \
             entries. Setting number of requests to {lines}"
        );
    }
    options.requests = Some(options.requests.unwrap_or(lines).min(lines));
}

fn check(options: &mut Options, files: &dyn Files) -> Result<(), Ending> {
    let timed = !options.duration.is_zero();
    let requests = options.requests.unwrap_or(1);
    if timed && options.rate.is_some() {
        return wrong("-r, -D: they are mutually exclusive.");
    }
    if options.timing && options.rps > 0.0 {
        return wrong("--timing-script-file, --rps: they are mutually exclusive.");
    }
    if requests == 0 && !timed {
        return wrong(
            "-n: the number of requests must be strictly greater than 0 if timing-based test is not \
             being run.",
        );
    }
    if options.streams == 0 {
        return wrong("-m: the max concurrent streams must be strictly greater than 0.");
    }
    if options.threads == 0 {
        return wrong("-t: the number of threads must be strictly greater than 0.");
    }
    if options.threads > files.cores() {
        options
            .complaints
            .push_str("-t: warning: the number of threads is greater than hardware cores.\n");
    }
    if !options.timing && requests < options.clients && !timed {
        return wrong(
            "-n, -c: the number of requests must be greater than or equal to the clients.",
        );
    }
    if options.clients < options.threads {
        return wrong(
            "-c, -t: the number of clients must be greater than or equal to the number of threads.",
        );
    }
    if options.rate.is_some_and(|rate| rate < options.threads) {
        return wrong(
            "-r, -t: the connection rate must be greater than or equal to the number of threads.",
        );
    }
    if options.rate.is_some_and(|rate| rate > options.clients) {
        return wrong(
            "-r, -c: the connection rate must be smaller than or equal to the number of clients.",
        );
    }
    check_ours(options)
}

/// Checks bounds of this program, and unsupported options.
fn check_ours(options: &Options) -> Result<(), Ending> {
    if options.clients > CLIENTS_MAX {
        return wrong(format!("-c: there are {CLIENTS_MAX} clients at most here"));
    }
    if options.streams > STREAMS_MAX {
        return wrong(format!(
            "-m: {STREAMS_MAX} requests of a client are outstanding at most here"
        ));
    }
    if !options.duration.is_zero() && options.timing {
        return wrong(
            "-D, --timing-script-file: a script ends with its last line; leave -D out, or give --rps",
        );
    }
    if options.rate.is_some() && options.period.is_zero() {
        return wrong("--rate-period: it is 0; give 1s or more, or leave -r out");
    }
    if options.alpn.iter().any(|name| name == "h3" || name.starts_with("h3-")) {
        return wrong(format!("--npn-list: {NO_HTTP3}"));
    }
    Ok(())
}

impl Work {
    /// Returns the protocols offered by ALPN, limited to what is supported here, in the order of
    /// the list. The drafts of HTTP/2 in h2load's own list have had no server for ten years.
    pub(super) fn offered(&self) -> Vec<String> {
        let list = if self.options.alpn.is_empty() {
            vec!["h2".to_owned(), HTTP1.to_owned()]
        } else {
            self.options.alpn.clone()
        };
        list.into_iter().filter(|name| name == "h2" || name == HTTP1).collect()
    }

    /// Returns whether HTTP/1.1 is used regardless of the server's choice, because no other
    /// protocol is offered.
    pub(super) fn begins_with_http1(&self) -> bool {
        match self.asked.base.secure {
            true => self.offered() == [HTTP1],
            false => self.options.cleartext == Cleartext::Http1,
        }
    }

    /// Returns the total number of requests; `None` if a time ends the run.
    pub(super) fn requests(&self) -> Option<u64> {
        (!self.quotas.is_empty()).then(|| self.quotas.iter().sum())
    }

    pub(super) fn is_timed(&self) -> bool {
        self.quotas.is_empty()
    }

    /// Returns the clients and requests of a thread.
    pub(super) fn share(&self, thread: u64) -> (u64, u64) {
        let threads = self.options.threads;
        let clients = part(self.options.clients, threads, thread);
        let own = self.quotas.iter().skip(thread as usize).step_by(threads as usize);
        (clients, own.sum())
    }

    /// Returns the start times of the clients, in order; empty: all at once.
    pub(super) fn starts(&self) -> Vec<Nanos> {
        let Some(rate) = self.options.rate else { return Vec::new() };
        let threads = self.options.threads;
        let mut starts = Vec::new();
        for thread in 0..threads {
            let each = part(rate, threads, thread).max(1);
            let clients = part(self.options.clients, threads, thread);
            starts.extend((0..clients).map(|client| self.options.period * (client / each)));
        }
        starts.sort_unstable();
        starts
    }
}

/// Returns the part `row` of `total`: parts differ by at most one.
fn part(total: u64, parts: u64, row: u64) -> u64 {
    total / parts + u64::from(row < total % parts)
}

/// Returns the number of requests of each client: those of a thread are divided among its clients.
/// Client `n` belongs to thread `n` modulo the number of threads.
fn quotas(options: &Options) -> Vec<u64> {
    let (requests, threads) = (options.requests.unwrap_or(1), options.threads);
    let quota = |client: u64| {
        let (thread, row) = (client % threads, client / threads);
        if options.timing {
            return requests;
        }
        let clients = part(options.clients, threads, thread);
        part(part(requests, threads, thread), clients, row)
    };
    (0..options.clients).map(quota).collect()
}

fn body(options: &Options, files: &dyn Files) -> Result<Option<Vec<u8>>, Ending> {
    const IS_A_FOLDER: i32 = 21;
    let Some(path) = &options.data else { return Ok(None) };
    match files.read(path) {
        Ok(bytes) if bytes.is_empty() => wrong(format!("-d: Could not mmap file {path}")),
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.number == IS_A_FOLDER => {
            wrong(format!("-d: Could not mmap file {path}"))
        }
        Err(_) => wrong(format!("-d: Could not open file {path}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(requests: u64, clients: u64, threads: u64) -> Options {
        Options { requests: Some(requests), clients, threads, ..Options::default() }
    }

    #[test]
    fn requests_are_shared_out_among_threads_and_then_clients() {
        assert_eq!(quotas(&options(10, 4, 1)), [3, 3, 2, 2]);
        // thread 0 has 5 requests for clients 0 and 2, thread 1 has 4 for client 1
        assert_eq!(quotas(&options(9, 3, 2)), [3, 4, 2]);
        let script = Options { timing: true, ..options(7, 2, 1) };
        assert_eq!(quotas(&script), [7, 7]);
    }

    #[test]
    fn clients_begin_by_period() {
        let mut options = options(9, 5, 2);
        options.rate = Some(3);
        let quotas = quotas(&options);
        let base = super::super::uris::base("http://h").unwrap();
        let asked = AskedUri { base, paths: Vec::new(), at: Vec::new(), complaints: String::new() };
        let work = Work { options, asked, body: None, quotas };
        let starts: Vec<u64> = work.starts().iter().map(|at| at.0 / 1_000_000_000).collect();
        // thread 0 begins two of its three clients a period, thread 1 one of two
        assert_eq!(starts, [0, 0, 0, 1, 1]);
        assert_eq!((work.share(0), work.share(1)), ((3, 5), (2, 4)));
    }
}
