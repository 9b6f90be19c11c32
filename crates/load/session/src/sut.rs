//! `--sut`: the server's own resources, read each second by a separate thread during the run.

use crate::exit::Failure;
use conduit::Peer;
use engine::Endpoint;
use engine::exchange::{Caller as _, Message, Outgoing};
use host::sut::{SutReader, SutReading, WatchedServer};
use protocol::http1::response::Asked;
use sample::SutSeries;
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;
use units::Nanos;
use url::Url;

/// Maximum number of rows: more than a day of data.
const ROWS_MAX: usize = 100_000;
/// Interval between two readings.
const INTERVAL: Nanos = Nanos::SECOND;
/// Timeout of a node exporter.
const EXPORTER_MAX: Nanos = Nanos::from_secs(5);

/// Process to watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SutTarget {
    Process(u32),
    Exporter(Url),
}

impl std::fmt::Display for SutTarget {
    /// Formats the target as [`parse`] reads it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SutTarget::Process(pid) => pid.fmt(f),
            SutTarget::Exporter(url) => url.fmt(f),
        }
    }
}

/// Parses a process number, such as `71`, or the URL of an exporter, such as
/// `http://host:9100/metrics`.
///
/// # Errors
/// Fails for text that is neither a process number nor an http URL.
pub fn parse(text: &str) -> Result<SutTarget, String> {
    if let Ok(pid) = text.parse::<u32>() {
        return Ok(SutTarget::Process(pid));
    }
    match Url::parse(text) {
        Ok(url) if url.scheme() == "http" && url.host_str().is_some() => {
            let mut url = url;
            if url.path() == "/" {
                url.set_path("/metrics");
            }
            Ok(SutTarget::Exporter(url))
        }
        _ => Err("give the number of a process on this machine, or the http:// URL of a node \
                  exporter"
            .to_owned()),
    }
}

/// Source of the figures.
pub enum SutSource {
    Process(SutReader),
    Exporter(Box<crate::caller::Caller>, Url),
}

impl std::fmt::Debug for SutSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SutSource").finish_non_exhaustive()
    }
}

impl SutSource {
    /// # Errors
    /// Fails if there is no such process, or the URL does not answer.
    pub fn open(
        target: &SutTarget,
        addresses: &[SocketAddr],
    ) -> Result<(SutSource, SutSeries), String> {
        match target {
            SutTarget::Process(pid) => {
                let server = WatchedServer { pid: *pid, addresses: addresses.to_vec() };
                let reader = SutReader::new(server)?;
                let series = reader.series();
                Ok((SutSource::Process(reader), series))
            }
            SutTarget::Exporter(url) => {
                let caller =
                    crate::caller::Caller::new(EXPORTER_MAX, net::tls::Settings::default())?;
                let mut source = SutSource::Exporter(Box::new(caller), url.clone());
                let (_, cores, memory) = source.fetch()?;
                let series = SutSeries {
                    name: url.to_string(),
                    cores,
                    memory_max: memory,
                    ..SutSeries::default()
                };
                Ok((source, series))
            }
        }
    }

    /// # Errors
    /// Fails if the process has exited, or the exporter does not answer.
    pub fn read(&mut self) -> Result<SutReading, String> {
        match self {
            SutSource::Process(reader) => {
                reader.read().ok_or_else(|| "the process is gone".to_owned())
            }
            SutSource::Exporter(..) => self.fetch().map(|(reading, _, _)| reading),
        }
    }

    fn fetch(&mut self) -> Result<(SutReading, f64, u64), String> {
        let SutSource::Exporter(caller, url) = self else { return Err("no exporter".to_owned()) };
        let host = url.host_str().unwrap_or_default();
        let port = url.port().map_or(String::new(), |port| format!(":{port}"));
        let path = &url[url::Position::BeforePath..url::Position::AfterQuery];
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: {host}{port}\r\nAccept: text/plain\r\nConnection: close\r\n\r\n"
        );
        let outgoing = Outgoing {
            url: url.clone(),
            message: Message::Http1 { bytes: request.into_bytes(), asked: Asked::Ordinary },
            timeout: EXPORTER_MAX,
            negotiates: false,
        };
        let heard = caller.exchange(vec![outgoing]).into_iter().next();
        let heard = heard.ok_or_else(|| format!("{url} was not queried"))?;
        let response = heard.result.map_err(|trouble| format!("{url}: {}", trouble.text))?;
        let text = String::from_utf8_lossy(&response.body);
        let status = response.facts.status;
        host::sut::node_exporter(&text).ok_or_else(|| {
            format!(
                "{url} returned {status} without node_cpu_seconds_total: is it a node exporter?"
            )
        })
    }
}

/// Prepares to watch the resources of the server at these endpoints, if requested.
///
/// # Errors
/// Fails if there is no such process, or no exporter at the URL.
pub fn watch(
    target: Option<&SutTarget>,
    endpoints: &[Endpoint],
) -> anyhow::Result<Option<SutWatch>> {
    let Some(target) = target else { return Ok(None) };
    let peers = endpoints.iter().flat_map(|endpoint| &endpoint.peers);
    let addresses: Vec<SocketAddr> = peers.filter_map(Peer::address).collect();
    let watch = SutWatch::start(target, &addresses);
    watch.map(Some).map_err(|why| anyhow::anyhow!("--sut: {why}"))
}

/// Running watch.
#[derive(Debug)]
pub struct SutWatch {
    thread: JoinHandle<SutSeries>,
    begin: Sender<Nanos>,
    stop: Sender<()>,
}

impl SutWatch {
    /// Prepares the watch: nothing more is read before [`SutWatch::begin`].
    ///
    /// # Errors
    /// Fails if there is no such process, or the URL does not answer.
    pub fn start(target: &SutTarget, addresses: &[SocketAddr]) -> Result<SutWatch, String> {
        let (target, addresses) = (target.clone(), addresses.to_vec());
        let (stop, stopped) = channel::<()>();
        let (begin, begun) = channel();
        let (ready, opened) = channel();
        // a reactor stays on the thread that made it
        let body = move || match SutSource::open(&target, &addresses) {
            Ok((source, series)) => {
                // the receiver is gone only if the run has ended already
                ready.send(Ok(())).ok();
                match begun.recv() {
                    Ok(measure_from) => follow(source, series, &stopped, measure_from),
                    Err(_) => series,
                }
            }
            Err(why) => {
                ready.send(Err(why)).ok();
                SutSeries::default()
            }
        };
        let thread = std::thread::Builder::new().name("sut".into()).spawn(body);
        let thread = thread.map_err(|error| format!("cannot start a thread: {error}"))?;
        opened.recv().map_err(|_| "its thread panicked".to_owned())??;
        Ok(SutWatch { thread, begin, stop })
    }

    /// Starts reading: the measured phase begins at `measure_from` on the monotonic clock.
    pub fn begin(&self, measure_from: Nanos) {
        // a missing thread is reported by its series
        self.begin.send(measure_from).ok();
    }

    /// Returns the last row, and all rows. A last row shorter than a tenth of a second is dropped.
    pub fn end(self) -> SutSeries {
        drop((self.stop, self.begin));
        let gone =
            |_| SutSeries { trouble: "its thread panicked".to_owned(), ..SutSeries::default() };
        self.thread.join().unwrap_or_else(gone)
    }
}

/// Reads at whole seconds of the measured phase, until stopped or until reading fails.
fn follow(
    mut source: SutSource,
    mut series: SutSeries,
    stopped: &Receiver<()>,
    measure_from: Nanos,
) -> SutSeries {
    let mut before = (net::reactor::monotonic(), source.read());
    let mut next = measure_from;
    loop {
        while next <= before.0 {
            next += INTERVAL;
        }
        let wait = Duration::from_nanos((next - net::reactor::monotonic()).0);
        let ended = !matches!(stopped.recv_timeout(wait), Err(RecvTimeoutError::Timeout));
        let after = (net::reactor::monotonic(), source.read());
        note(&mut series, &before, &after, measure_from);
        if ended || after.1.is_err() {
            return series;
        }
        before = after;
    }
}

/// Adds a row for the time between two readings, or returns the error.
fn note(
    series: &mut SutSeries,
    before: &(Nanos, Result<SutReading, String>),
    after: &(Nanos, Result<SutReading, String>),
    measure_from: Nanos,
) {
    let span = after.0 - before.0;
    match (&before.1, &after.1) {
        (Ok(then), Ok(now)) if span >= Nanos(INTERVAL.0 / 10) && series.rows.len() < ROWS_MAX => {
            let at_s = after.0.as_secs_f64() - measure_from.as_secs_f64();
            series.rows.push(host::sut::row(then, now, span.as_secs_f64(), at_s));
        }
        (_, Err(why)) | (Err(why), _) => series.trouble.clone_from(why),
        _ => {}
    }
}

/// Reads once, so that a wrong number or URL is reported before the run.
///
/// # Errors
/// Fails with a usage error: the target that cannot be watched, and the reason.
pub fn check(target: Option<&SutTarget>) -> Result<(), Failure> {
    let Some(target) = target else { return Ok(()) };
    match SutSource::open(target, &[]) {
        Ok(_) => Ok(()),
        Err(why) => Err(Failure::usage(format!("--sut: {why}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_is_a_process_or_an_exporter() {
        assert_eq!(parse("71"), Ok(SutTarget::Process(71)));
        let url = "http://db:9100/metrics";
        assert_eq!(parse(url), Ok(SutTarget::Exporter(Url::parse(url).unwrap())));
        assert_eq!(parse("http://db:9100"), parse(url));
        for text in ["", "-1", "nginx", "https://db:9100", "ftp://db", "1.5"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
