//! The figures that ab prints, computed from the counts.

use super::ciphers;
use super::options::Options;
use super::setup::server_name;
use super::tally::{Tally, TimedRequest};
use super::times::TimesRow;
use crate::{Facts, words};
use record::run::RunRecord;
use units::Nanos;

/// Everything between the opening and the end, before it is laid out.
#[derive(Debug)]
pub(super) struct Results<'a> {
    pub(super) tally: &'a Tally,
    pub(super) seconds: f64,
    pub(super) secure: Option<Secure>,
    pub(super) server_name: Option<String>,
    /// All complete requests, sorted by total time.
    pub(super) sorted: Vec<TimedRequest>,
    pub(super) connect: TimesRow,
    pub(super) processing: TimesRow,
    pub(super) waiting: TimesRow,
    pub(super) total: TimesRow,
    /// True if a median differs from the one that ab prints.
    medians_differ: bool,
    /// True if the run continues after failed connections (`-r`).
    failed_on: bool,
    origin: Nanos,
    started_unix_s: f64,
    utc_offset_s: i32,
}

/// TLS parameters, by OpenSSL's names.
#[derive(Debug)]
pub(super) struct Secure {
    pub(super) version: String,
    pub(super) cipher: String,
    pub(super) key_bits: u32,
    pub(super) cipher_bits: u32,
    /// The key exchange: `X25519 253 bits`; empty when it is not known.
    pub(super) exchange: &'static str,
}

impl<'a> Results<'a> {
    pub(super) fn new(
        options: &Options,
        tally: &'a Tally,
        report: &RunRecord,
        facts: &Facts,
        strict: bool,
    ) -> Results<'a> {
        let mut sorted = tally.entries.clone();
        sorted.sort_by_key(|entry| entry.total);
        let columns: [fn(&TimedRequest) -> i64; 4] =
            [|e| e.connect, |e| e.total - e.connect, |e| e.wait, |e| e.total];
        let rows = |strict| {
            columns.map(|column| TimesRow::new(sorted.iter().map(column).collect(), strict))
        };
        let [connect, processing, waiting, total] = rows(strict);
        let medians = |rows: [TimesRow; 4]| rows.map(|row| super::times::round_ms(row.median));
        let medians_differ = !strict && medians(rows(false)) != medians(rows(true));
        let elapsed = tally.over.map(|end| end - facts.origin);
        let elapsed = elapsed.unwrap_or_else(|| Nanos::from_secs_f64(report.elapsed_s));
        Results {
            tally,
            // refusals may take no time on our clock; ab divides by what it reads
            seconds: micros(elapsed.max(MICROSECOND)),
            secure: secure(report),
            server_name: server_name(options).map(str::to_owned),
            sorted,
            connect,
            processing,
            waiting,
            total,
            medians_differ,
            failed_on: options.receive_errors_ok
                && tally.connect_failures + tally.receive_failures > 0,
            origin: facts.origin,
            started_unix_s: report.started_unix_s,
            utc_offset_s: facts.utc_offset_s,
        }
    }

    /// Returns the number of complete requests, good or bad.
    pub(super) fn done(&self) -> usize {
        self.sorted.len()
    }

    /// Returns the complete requests per second.
    pub(super) fn rate(&self) -> f64 {
        self.done() as f64 / self.seconds
    }

    /// Returns bytes per second in units of 1024 bytes.
    pub(super) fn transfer(&self, bytes: u64) -> f64 {
        bytes as f64 / 1024.0 / self.seconds
    }

    /// Returns when a request started, in whole seconds since 1970, and in `ctime` format.
    pub(super) fn date(&self, entry: &TimedRequest) -> (i64, String) {
        let since = entry.start.0 as f64 - self.origin.0 as f64;
        let unix_s = (self.started_unix_s + since / 1e9).floor() as i64;
        (unix_s, words::ctime(unix_s, self.utc_offset_s))
    }

    /// Returns our notes on these figures.
    pub(super) fn notes(&self, report: &RunRecord) -> Vec<String> {
        let mut notes = Vec::new();
        if self.medians_differ {
            notes.push(
                "the median is the middle one (of two: their mean); ab's own median, a neighboring \
                 value, is printed with --strict"
                    .to_owned(),
            );
        }
        if self.failed_on {
            notes.push(
                "a failed connection counts once: as Connect if it was not established, as Receive \
                 if it was lost; ab counts a refused one as Receive, and some of them again as \
                 Exceptions"
                    .to_owned(),
            );
        }
        notes.extend(crate::client_note(report));
        notes
    }
}

const MICROSECOND: Nanos = Nanos(1_000);

/// Rounds to the whole microseconds of ab's clock, in seconds.
fn micros(span: Nanos) -> f64 {
    (span.0 / 1_000) as f64 / 1e6
}

fn secure(report: &RunRecord) -> Option<Secure> {
    let facts = report.tls_facts()?;
    let (cipher, cipher_bits) = ciphers::openssl_name(&facts.cipher);
    let exchange = match facts.group.as_str() {
        "X25519" => "X25519 253 bits",
        "secp256r1" => "ECDH prime256v1 256 bits",
        "secp384r1" => "ECDH secp384r1 384 bits",
        _ => "",
    };
    Some(Secure {
        version: facts.version,
        cipher: cipher.to_owned(),
        key_bits: facts.key_bits,
        cipher_bits,
        exchange,
    })
}
