//! h2load 1.52, of nghttp2: HTTP/2 and HTTP/1.1.

mod candidates;
mod native;
mod options;
mod setup;
mod tally;
mod text;
mod uris;
mod values;
mod work;

use crate::{
    Date, Ending, Extras, Face, FaceDecision, FaceOutput, Facts, Files, Interval, Job, Needs,
    Reading, RequestLog, StartTrouble, words,
};
use plan::{HttpVersion, Plan};
use record::run::RunRecord;
use sample::{CallRecord, Ends, FailureClass, Outcome, TlsFacts};
use tally::Tally;
use text::Traffic;
use units::Nanos;
use work::Work;

const HTTP1: &str = "http/1.1";

/// Reads h2load's command line.
pub fn read(program: &str, args: &[String], extras: Extras, files: &dyn Files) -> Reading {
    match prepare(program, args, extras, files) {
        Ok(job) => Reading::Run(Box::new(job)),
        Err(ending) => Reading::End(ending),
    }
}

fn prepare(
    program: &str,
    args: &[String],
    extras: Extras,
    files: &dyn Files,
) -> Result<Job, Ending> {
    let options = options::parse(program, args)?;
    let work = work::plan_work(options, files)?;
    let plan = setup::plan(&work)?;
    if extras.native {
        return Err(native::command(&work, &plan));
    }
    let options = &work.options;
    let needs = needs(&work, plan.request.version == HttpVersion::Http11);
    let log = options.log.as_ref().map(|path| RequestLog {
        path: path.clone(),
        complaint: format!("--log-file: Could not open file {path}\n"),
        code: 1,
        fresh: false,
    });
    let face = Box::new(H2load::new(work));
    Ok(Job { log, ..Job::new(plan, needs, extras, face) })
}

/// Returns the data that the face needs: Fields of HTTP/1.1 are counted individually, and `-v`
/// shows those of HTTP/2.
fn needs(work: &Work, http1: bool) -> Needs {
    let responses = if work.options.verbose || http1 { u64::MAX } else { 0 };
    Needs { calls: true, responses, ends: true, ..Needs::default() }
}

/// A run in progress.
#[derive(Debug)]
struct H2load {
    work: Work,
    tally: Tally,
    http1: bool,
    /// True if the server chose no protocol by ALPN, and connections ended for this reason.
    unnegotiated: bool,
    misled: bool,
    /// True if the protocol and the beginning of the main part have been printed.
    protocol_printed: bool,
    main_printed: bool,
    /// Steps of the first thread that have been printed.
    clients_printed: u64,
    progress_printed: u64,
    /// Text that waits until the protocol has been printed.
    held: String,
    /// Clients whose remaining requests were dropped because the server accepts no more.
    left: u64,
    /// Number of clients for which there was no descriptor.
    unopened: u64,
    start: Nanos,
    unix_s: f64,
    secured: Option<TlsFacts>,
}

impl H2load {
    fn new(work: Work) -> H2load {
        let main_printed = work.options.warm_up.is_zero();
        H2load {
            tally: Tally::new(&work),
            http1: work.begins_with_http1(),
            unnegotiated: false,
            misled: false,
            protocol_printed: false,
            main_printed,
            clients_printed: 0,
            progress_printed: 0,
            held: String::new(),
            left: 0,
            unopened: 0,
            start: Nanos::ZERO,
            unix_s: 0.0,
            secured: None,
            work,
        }
    }

    /// Prints the progress since the last call and the waiting text, once the protocol has been
    /// printed.
    fn print_progress(&mut self, output: &mut FaceOutput) {
        self.hold_progress();
        if self.protocol_printed {
            output.out += &std::mem::take(&mut self.held);
        }
    }

    fn hold_progress(&mut self) {
        if !self.work.is_timed() && self.work.options.rate.is_none() {
            let (_, all) = self.work.share(0);
            let now = self.tally.first_thread_done;
            self.held += &text::progress(self.progress_printed, now, all);
            self.progress_printed = now;
        }
    }

    fn report_protocol(&mut self, facts: Option<&TlsFacts>, output: &mut FaceOutput) {
        if std::mem::replace(&mut self.protocol_printed, true) {
            return;
        }
        if let Some(facts) = facts {
            // if only HTTP/1.1 is offered, there is no handshake beforehand
            self.unnegotiated |= self.http1 && facts.alpn.is_empty();
            output.out += &text::secured(facts);
            self.secured = Some(facts.clone());
        }
        let secure = self.work.asked.base.secure;
        let name = match (secure, self.http1) {
            (_, true) => HTTP1,
            (true, false) => "h2",
            (false, false) => "h2c",
        };
        let spoken = !self.unnegotiated || self.falls_back();
        if self.unnegotiated {
            output.out += &self.no_choice();
        }
        if spoken {
            putln!(output.out, "Application protocol: {name}");
        }
        if self.unnegotiated {
            for _ in 1..self.work.options.clients {
                output.out += &self.no_choice();
            }
        }
    }

    fn falls_back(&self) -> bool {
        self.work.offered().iter().any(|name| name == HTTP1)
    }

    /// Returns the message of each client if the server chose no protocol.
    fn no_choice(&self) -> String {
        let mut out = "No protocol negotiated. Fallback behaviour may be activated\n".to_owned();
        if self.falls_back() {
            out += "Server does not support NPN/ALPN. Falling back to HTTP/1.1.\n";
            return out;
        }
        out += "No supported protocol was negotiated. Supported protocols were:\n";
        for name in self.work.offered() {
            putln!(out, "{name}");
        }
        out
    }

    /// Renders a line of `--log-file`: the time sent, the status, and the duration.
    fn log(&self, call: &CallRecord, out: &mut String) {
        let sample = &call.sample;
        let closed = matches!(call.outcome, Outcome::Succeeded | Outcome::Failed);
        if self.work.options.log.is_none() || !closed || sample.sent.is_zero() {
            return;
        }
        if sample.done < self.tally.from {
            return;
        }
        let ahead = (sample.sent.0 as f64 - self.tally.from.0 as f64) / 1e9;
        let start = ((self.unix_s + ahead) * 1e6).round() as i64;
        let took = (sample.done - sample.sent).0 / 1_000;
        let status = if sample.status == 0 { -1 } else { i32::from(sample.status) };
        putln!(out, "{start}\t{status}\t{took}");
    }

    /// Prints the fields of a response, for `-v`.
    fn show(&mut self, call: &CallRecord) {
        if !self.work.options.verbose || call.response.is_empty() {
            return;
        }
        let out = &mut self.held;
        let text = String::from_utf8_lossy(&call.response);
        if self.http1 {
            out.push_str(&text);
            return;
        }
        let mut lines = text.lines();
        let mut first = lines.next().unwrap_or_default().split(' ').skip(1);
        let (status, id) = (first.next().unwrap_or_default(), first.next().unwrap_or_default());
        putln!(out, "[stream_id={id}] :status: {status}");
        for line in lines.filter(|line| !line.is_empty()) {
            putln!(out, "[stream_id={id}] {line}");
        }
    }

    fn quota(&self, user: u64) -> Option<u64> {
        self.work.quotas.get(usize::try_from(user).ok()?).copied()
    }

    fn notes(&self, report: &RunRecord) -> Vec<String> {
        let mut notes: Vec<String> = crate::client_note(report).into_iter().collect();
        if self.left > 0 {
            notes.push(format!(
                "{} of {} clients ended when the server took no further requests on their \
                 connection, as h2load's do; loadstone run --http 2 opens another connection",
                self.left, self.work.options.clients
            ));
        }
        notes
    }
}

impl Face for H2load {
    fn set_date(&mut self, date: &Date) {
        self.tally.from = date.at;
        self.start = Nanos(date.at.0.saturating_sub(self.work.options.warm_up.0));
        self.unix_s = date.unix_s;
    }

    fn negotiated(&mut self, chosen: Option<&str>, plan: &Plan) -> Option<(Plan, Needs)> {
        self.unnegotiated = chosen.is_none();
        if plan.request.version == HttpVersion::Http2 {
            return None;
        }
        let mut plan = plan.clone();
        if chosen.is_some() || self.falls_back() {
            self.http1 = true;
            setup::speak_http1(&self.work, &mut plan);
        } else {
            // no client uses it: each connection ends when the choice is missing
            plan.request.version = HttpVersion::Http2;
        }
        Some((plan, needs(&self.work, self.http1)))
    }

    fn begin(&mut self) -> FaceOutput {
        let mut err = self.work.options.complaints.clone();
        (0..self.unopened).for_each(|_| err += text::NOT_CONNECTED);
        FaceOutput { out: text::opening(&self.work), err, ..FaceOutput::default() }
    }

    fn interval(&mut self, interval: &Interval<'_>) -> FaceOutput {
        let mut output = FaceOutput::default();
        let connections = &interval.snapshot.connections;
        if interval.worker == 0 && self.work.options.rate.is_some() {
            let begun = self.clients_printed + connections.attempted;
            output.out += &text::clients_started(&self.work, self.clients_printed, begun);
            self.clients_printed = begun;
        }
        if connections.established > 0 {
            let facts = connections.tls.first_key_value().map(|(facts, _)| facts);
            self.report_protocol(facts, &mut output);
        }
        if !self.main_printed && interval.end >= self.tally.from {
            self.main_printed = true;
            output.out += &text::main_part(&self.work);
        }
        self.print_progress(&mut output);
        output
    }

    fn calls(&mut self, calls: &[CallRecord]) -> FaceOutput {
        let mut output = FaceOutput::default();
        for call in calls {
            self.tally.take(call, self.http1);
            self.log(call, &mut output.log);
            self.show(call);
            self.hold_progress();
        }
        self.print_progress(&mut output);
        output
    }

    fn ends(&mut self, ends: &Ends) -> FaceOutput {
        let mut output = FaceOutput::default();
        for record in &ends.connections {
            self.tally.end_connection(record);
            if self.work.options.unix.is_some()
                && record.class.is_some()
                && record.opened == record.closed
            {
                // a socket's name is not there: the attempt fails at once
                output.err += text::NOT_CONNECTED;
            }
            let missed = record.class == Some(FailureClass::Protocol);
            self.misled |= missed && self.unnegotiated && !self.falls_back();
        }
        for session in ends.sessions.iter().filter(|_| !self.http1) {
            let ended_in_order = ends
                .connections
                .iter()
                .any(|record| record.user == Some(session.index) && record.class.is_none());
            let quota = self.quota(session.index);
            let short = quota.is_none_or(|quota| u64::from(session.responses) < quota);
            let failed = session.failed && !self.tally.was_refused(session.index);
            if failed || !short || !ended_in_order {
                continue;
            }
            if let Some(sum) = self.tally.drop_remaining_requests(session.index, quota) {
                self.left += 1;
                putln!(output.out, "Process Request Failure:{sum}");
            }
        }
        let paced = self.work.options.rps > 0.0 || self.work.options.timing;
        if paced && self.tally.all_broken() {
            // no client will send anything anymore: its instants need not be waited for
            output.wish = FaceDecision::Abandon;
        }
        output
    }

    fn run_without_connections(&mut self, connections: u64) -> bool {
        self.unopened = connections;
        self.tally.unopened = connections;
        true
    }

    fn cannot_start(&mut self, trouble: &StartTrouble) -> Ending {
        let text = match trouble {
            StartTrouble::Name { text, .. } => {
                format!("getaddrinfo() failed: {}", words::resolver_error(text).1)
            }
            StartTrouble::Descriptors => {
                let clients = self.work.options.clients;
                format!("-c: there are not {clients} descriptors; raise the limit (ulimit -n)")
            }
            other => other.text().to_owned(),
        };
        Ending::error(format!("{}{text}\n", self.work.options.complaints), 1)
    }

    fn report(&mut self, report: &RunRecord, _facts: &Facts) -> Ending {
        let mut output = FaceOutput::default();
        if report.connections.established > 0 || self.misled {
            self.report_protocol(report.tls_facts().as_ref(), &mut output);
        }
        self.print_progress(&mut output);
        output.out += &std::mem::take(&mut self.held);
        let mut elapsed = Nanos(self.tally.ended.0.saturating_sub(self.start.0));
        let options = &self.work.options;
        if self.work.is_timed() {
            output.out += &text::end_of_main_part(&self.work);
            elapsed = elapsed.max(Nanos::from_secs_f64(report.elapsed_s));
        }
        let span = if self.work.is_timed() { options.duration } else { elapsed };
        let http2 = report.http2.as_ref();
        let fields = http2.map(|http2| &http2.fields);
        let traffic = match self.http1 {
            true => Traffic {
                total: self.tally.received,
                fields: self.tally.fields,
                plain_fields: self.tally.fields,
            },
            false => Traffic {
                total: self.tally.received + http2.map_or(0, |http2| http2.control_received),
                fields: fields.map_or(0, |fields| fields.received_coded),
                plain_fields: fields.map_or(0, |fields| fields.received),
            },
        };
        let figures = text::figures(&self.work, &self.tally, traffic, (elapsed, span));
        let notes = self.notes(report);
        Ending { out: output.out + &figures, notes, ..Ending::default() }
    }
}
