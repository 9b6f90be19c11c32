//! `--print-request` and `--print-reply`: every request and reply, line by line.

use super::options::{Options, Print};
use plan::Plan;
use protocol::http1::response::{Asked, HeadCache, ResponseReader};
use sample::CallRecord;
use std::fmt::Display;

/// Requests by row, and which of their parts to print.
#[derive(Debug)]
pub(super) struct Printer {
    request: Option<Print>,
    reply: Option<Print>,
    rows: Vec<PrintedCall>,
}

#[derive(Debug)]
struct PrintedCall {
    head: Vec<u8>,
    contents: Vec<u8>,
    asked: Asked,
}

impl Printer {
    pub(super) fn new(options: &Options, plan: &Plan) -> Printer {
        let (request, reply) = (options.print_request, options.print_reply);
        let rows = if request.or(reply).is_some() { rows(plan) } else { Vec::new() };
        Printer { request, reply, rows }
    }

    pub(super) fn wants_responses(&self) -> bool {
        self.reply.is_some()
    }

    /// Adds a finished call's lines.
    pub(super) fn print(&self, record: &CallRecord, out: &mut String) {
        let sample = &record.sample;
        let Some(row) = self.rows.get(sample.target as usize) else { return };
        let id = sample.index;
        if let Some(print) = self.request.filter(|_| !sample.sent.is_zero()) {
            if print.header {
                lines(out, &format!("SH{id}:"), &row.head);
            }
            if print.body {
                // a last line without its end is not printed
                let end = row.contents.iter().rposition(|byte| *byte == b'\n');
                let whole = &row.contents[..end.map_or(0, |at| at + 1)];
                lines(out, &format!("SB{id}:"), whole);
            }
            let (head, contents) = (row.head.len(), row.contents.len());
            *out += &format!("SS{id}: header {head} content {contents}\n");
        }
        if let Some(print) = self.reply.filter(|_| sample.status != 0) {
            let (head, body) = split_response(&record.response, row.asked);
            if print.header {
                lines(out, &format!("RH{id}:"), &head);
            }
            for piece in body.iter().filter(|_| print.body) {
                lines(out, &format!("RB{id}:"), piece);
            }
            *out += &format!(
                "RS{id}: header {} content {} footer {}\n",
                sample.head_bytes, sample.body_bytes, sample.trailer_bytes
            );
        }
    }
}

fn rows(plan: &Plan) -> Vec<PrintedCall> {
    let row = |target: &plan::TargetPlan| {
        let raw = target.raw.as_deref().unwrap_or_default();
        let end = raw.windows(4).position(|four| four == b"\r\n\r\n");
        let (head, contents) = raw.split_at(end.map_or(raw.len(), |at| at + 4));
        let method = target.method.as_deref().unwrap_or(&plan.request.method);
        let asked = if method == "HEAD" { Asked::Head } else { Asked::Ordinary };
        PrintedCall { head: head.to_vec(), contents: contents.to_vec(), asked }
    };
    plan.targets.iter().map(row).collect()
}

/// Returns the head of a response and its body, chunk by chunk, up to the kept length of the
/// response.
fn split_response(response: &[u8], asked: Asked) -> (Vec<u8>, Vec<&[u8]>) {
    let mut reader = ResponseReader::new(true);
    let mut cache = HeadCache::new();
    reader.start(asked);
    let (mut at, mut body) = (0, Vec::new());
    while at < response.len() {
        let Ok(advance) = reader.advance(&mut cache, &response[at..]) else { break };
        body.push(&response[at + advance.body.start..at + advance.body.end]);
        at += advance.consumed;
        if advance.done || advance.consumed == 0 {
            break;
        }
    }
    (reader.head().to_vec(), body)
}

/// Prefixes each line; the last one may lack its line end.
fn lines(out: &mut String, prefix: &str, bytes: &[u8]) {
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    if bytes.is_empty() {
        return;
    }
    for line in bytes.split(|byte| *byte == b'\n') {
        *out += &format!("{prefix}{}\n", String::from_utf8_lossy(line));
    }
}

/// Formats `200=5, 404=1`.
pub(super) fn statuses<S: Display, N: Display>(
    seen: impl Iterator<Item = (S, N)>,
    between: &str,
) -> String {
    let seen: Vec<String> = seen.map(|(status, count)| format!("{status}={count}")).collect();
    seen.join(between)
}
