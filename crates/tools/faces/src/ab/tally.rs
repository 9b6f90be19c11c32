//! Counts like ab, call by call.

use super::odd::OddResponse;
use super::options::{Method, Options};
use crate::words::exit_code;
use crate::{FaceOutput, words};
use sample::{CallRecord, FailureClass, Outcome, Sample};
use units::Nanos;

/// More connects than this that fail at once end the run.
const CONNECT_FAILURES_MAX: u64 = 11;

/// Complete request; times in µs.
#[derive(Clone, Copy, Debug)]
pub(super) struct TimedRequest {
    /// Start on the clock of samples.
    pub(super) start: Nanos,
    pub(super) connect: i64,
    pub(super) total: i64,
    pub(super) wait: i64,
}

/// Reason for ending the run early.
#[derive(Debug)]
pub(super) struct Abort {
    pub(super) text: String,
    pub(super) code: u8,
}

/// Requests and failures so far, for the final report of ab.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) entries: Vec<TimedRequest>,
    /// Body bytes of the first complete request.
    pub(super) length: Option<u64>,
    pub(super) connect_failures: u64,
    pub(super) receive_failures: u64,
    pub(super) length_failures: u64,
    pub(super) not_2xx: u64,
    pub(super) kept_alive: u64,
    pub(super) read: u64,
    pub(super) body_read: u64,
    pub(super) sent: u64,
    /// The first word of the first response's Server field.
    pub(super) server: String,
    answered: bool,
    /// Instant at which `-t` expires, on the clock of samples; ab checks it on events.
    pub(super) limit: Option<Nanos>,
    /// End of the first request beyond the limit, which is the last one that counts.
    pub(super) over: Option<Nanos>,
    /// Requests between two lines of progress; 0: no progress.
    pub(super) heartbeat: usize,
    pub(super) abort: Option<Abort>,
}

impl Tally {
    pub(super) fn new(options: &Options) -> Tally {
        let requests = options.requests.unsigned_abs() as usize;
        let heartbeat =
            if options.progress && requests > 150 { (requests / 10).max(100) } else { 0 };
        Tally { heartbeat, ..Tally::default() }
    }

    pub(super) fn failures(&self) -> u64 {
        self.connect_failures + self.receive_failures + self.length_failures
    }

    pub(super) fn take(&mut self, options: &Options, call: &CallRecord, output: &mut FaceOutput) {
        let given_up = matches!(call.outcome, Outcome::Abandoned | Outcome::Dropped);
        if given_up || self.abort.is_some() || self.over.is_some() {
            return;
        }
        let sample = &call.sample;
        if call.outcome == Outcome::TimedOut {
            let text = "apr_pollset_poll: The timeout specified has expired (70007)\n";
            self.abort = Some(Abort { text: text.into(), code: exit_code(70_007) });
            return;
        }
        self.over = self.limit.filter(|limit| sample.done >= *limit).map(|_| sample.done);
        if let Some((number, sentence)) = sample.class.and_then(words::system_error) {
            return self.system_failure(options, call, number, sentence, output);
        }
        let untied = [FailureClass::Tls, FailureClass::Certificate, FailureClass::Proxy];
        if sample.class.is_some_and(|class| untied.contains(&class)) {
            output.err.push_str("SSL handshake failed (1).\n");
            self.connect_failures += 1;
            return self.complete(sample, output);
        }
        self.response(options, call, output);
    }

    /// Records that a system call failed while connecting or reading.
    fn system_failure(
        &mut self,
        options: &Options,
        call: &CallRecord,
        number: i32,
        sentence: &str,
        output: &mut FaceOutput,
    ) {
        let sample = &call.sample;
        let local =
            matches!(sample.class, Some(FailureClass::FdUnavailable | FailureClass::FileTableFull));
        let at_once = matches!(
            sample.class,
            Some(FailureClass::AddressUnavailable | FailureClass::Unreachable)
        );
        if local {
            self.end(format!("socket: {sentence} ({number})\n"), number);
        } else if at_once {
            self.connect_failures += 1;
            if self.connect_failures > CONNECT_FAILURES_MAX {
                let text = format!(
                    "\nTest aborted after 10 failures\n\napr_socket_connect(): {sentence} \
                     ({number})\n"
                );
                self.end(text, number);
            }
        } else if !options.receive_errors_ok {
            self.end(format!("apr_socket_recv: {sentence} ({number})\n"), number);
        } else {
            let stood = !sample.sent.is_zero();
            let failures =
                if stood { &mut self.receive_failures } else { &mut self.connect_failures };
            *failures += 1;
            if options.verbosity >= 1 {
                output.err.push_str(&format!("apr_socket_recv: {sentence} ({number})\n"));
            }
            let odd = OddResponse::new(call);
            self.learn_server(call, odd.as_ref());
            self.transferred(options, call, odd.as_ref());
            self.complete(sample, output);
        }
    }

    fn end(&mut self, text: String, number: i32) {
        self.abort = Some(Abort { text, code: exit_code(number) });
    }

    /// Records a received response, complete or not.
    fn response(&mut self, options: &Options, call: &CallRecord, output: &mut FaceOutput) {
        let sample = &call.sample;
        let odd = OddResponse::new(call);
        if !call.response.is_empty() {
            self.learn_server(call, odd.as_ref());
            print_call(options, call, odd.as_ref(), output);
        }
        let bytes = match &odd {
            Some(seen) => seen.body_bytes,
            None if options.method == Method::Head => 0,
            None => sample.body_bytes,
        };
        let expected = *self.length.get_or_insert(bytes);
        if bytes != expected && !options.any_length {
            self.length_failures += 1;
        }
        if sample.persistent && options.keep_alive {
            self.kept_alive += 1;
        }
        self.transferred(options, call, odd.as_ref());
        self.complete(sample, output);
    }

    /// Counts received bytes, including those of a truncated response.
    fn transferred(&mut self, options: &Options, call: &CallRecord, odd: Option<&OddResponse>) {
        let sample = &call.sample;
        let not_2xx = match odd {
            Some(seen) => !seen.is_2xx(),
            None => sample.status > 0 && !(200..300).contains(&sample.status),
        };
        self.not_2xx += u64::from(not_2xx);
        self.read += sample.bytes_received;
        self.body_read += odd.map_or(sample.body_bytes, |seen| seen.body_bytes);
        if options.body.is_some() {
            self.sent += sample.bytes_sent;
        }
    }

    fn complete(&mut self, sample: &Sample, output: &mut FaceOutput) {
        let micros = |span: Nanos| (span.0 / 1_000) as i64;
        let set_up = sample.connect.unwrap_or_default() + sample.tls.unwrap_or_default();
        let asked = sample.written.max(sample.sent);
        let waited =
            if sample.first_byte.is_zero() { Nanos::ZERO } else { sample.first_byte - asked };
        self.entries.push(TimedRequest {
            start: sample.issued,
            connect: micros(set_up),
            total: micros(sample.done - sample.issued),
            wait: micros(waited),
        });
        let done = self.entries.len();
        if self.heartbeat > 0 && done.is_multiple_of(self.heartbeat) {
            output.err.push_str(&format!("Completed {done} requests\n"));
        }
    }

    /// Takes the server's name from the first received head. Like ab, which examines everything
    /// read by then, this includes data after an interim response.
    fn learn_server(&mut self, call: &CallRecord, odd: Option<&OddResponse>) {
        let no_head = odd.is_some_and(|seen| seen.status.is_none());
        if self.answered || call.response.is_empty() || no_head {
            return;
        }
        self.answered = true;
        let head = call.response.split(|byte| *byte == 0).next().unwrap_or_default();
        let at = head.windows(7).position(|part| part.eq_ignore_ascii_case(b"Server:"));
        let value = at.and_then(|at| head.get(at + 8..)).unwrap_or_default();
        let word = value.iter().take_while(|byte| **byte > 32);
        self.server = word.map(|byte| char::from(*byte)).collect();
    }
}

/// Prints a response and its status, for `-v`.
fn print_call(
    options: &Options,
    call: &CallRecord,
    odd: Option<&OddResponse>,
    output: &mut FaceOutput,
) {
    if options.verbosity < 2 {
        return;
    }
    let shown = call.response.split(|byte| *byte == 0).next().unwrap_or_default();
    output.out.push_str(&format!("LOG: header received:\n{}\n", String::from_utf8_lossy(shown)));
    let status = match odd {
        // no end of a head, no status
        Some(OddResponse { status: None, .. }) => return,
        Some(OddResponse { status: Some(status), .. }) => status.clone(),
        None => format!("{:03}", call.sample.status),
    };
    if !status.starts_with('2') {
        output.out.push_str(&format!("WARNING: Response code not 2xx ({status})\n"));
    } else if options.verbosity >= 3 {
        output.out.push_str(&format!("LOG: Response code = {status}\n"));
    }
}
