//! Files of a run directory other than transcripts: `run.json` and the lines of `cases.jsonl`.

use super::{Report, send, words};
use crate::page::text::layout::Page;
use crate::words::timestamp;
use campaign::TestTarget;
use record::torture::{CaseRecord, TortureRecord};
use serde::Serialize;
use torture::case::Case;
use torture::record::Execution;
use torture::record::{Transcript, digest};
use torture::result::ExchangeResult;
use units::Nanos;

/// The version of `run.json`.
const SCHEMA: &str = "loadstone.torture-run/1";

/// Returns `run.json`, the options and the result of a run, with a final line feed. It is written
/// at the start and again at the end: `end` is null until then.
pub fn run_file(
    id: &str,
    arguments: &[String],
    target: &TestTarget,
    cases: &[Case],
    report: &Report,
    end: Option<&RunEnd>,
) -> String {
    let file = RunFile {
        schema: SCHEMA,
        id,
        loadstone: env!("CARGO_PKG_VERSION"),
        arguments,
        target: &report.target,
        addresses: report.addresses.iter().map(ToString::to_string).collect(),
        class: report.class.id(),
        seed: report.seed,
        path: &target.values.path,
        host: &target.values.host,
        post: &target.values.post,
        fields: &target.fields,
        machine: Machine {
            kernel: &report.environment.kernel,
            cpu: &report.environment.cpu_model,
            cores: report.environment.cores,
        },
        cases: cases.iter().map(|case| CaseId { id: &case.id, version: case.version }).collect(),
        started: timestamp(report.started_unix_s),
        started_unix_s: report.started_unix_s,
        end,
    };
    let mut text =
        serde_json::to_string_pretty(&file).expect("strings, numbers and lists always serialize");
    text.push('\n');
    text
}

/// End of a run.
#[derive(Clone, Debug, Serialize)]
pub struct RunEnd {
    pub elapsed_s: f64,
    /// Number of conversations.
    pub executions: u64,
    /// Number of findings.
    pub findings: u64,
    /// The outcome of each case, with the effect on the background load.
    pub outcomes: Vec<CaseOutcome>,
    /// Folders below `failures`.
    pub failures: Vec<String>,
    pub interrupted: bool,
    pub ended_early: Option<String>,
}

/// Outcome of a case.
#[derive(Clone, Debug, Serialize)]
pub struct CaseOutcome {
    pub case: String,
    pub outcome: &'static str,
    /// Reason why it does not count.
    pub waived: Option<String>,
}

impl RunEnd {
    /// Returns the end of this run: `executions` conversations, failures in these folders.
    pub fn new(record: &TortureRecord, executions: u64, failures: Vec<String>) -> RunEnd {
        let outcome = |case: &CaseRecord| CaseOutcome {
            case: case.id.clone(),
            outcome: case.outcome.id(),
            waived: case.waived.clone(),
        };
        RunEnd {
            elapsed_s: record.elapsed_s,
            executions,
            findings: record.findings,
            outcomes: record.cases.iter().map(outcome).collect(),
            failures,
            interrupted: record.interrupted,
            ended_early: record.ended_early.clone(),
        }
    }
}

#[derive(Serialize)]
struct RunFile<'a> {
    schema: &'static str,
    id: &'a str,
    loadstone: &'static str,
    arguments: &'a [String],
    target: &'a str,
    addresses: Vec<String>,
    class: &'static str,
    seed: u64,
    path: &'a str,
    host: &'a str,
    post: &'a str,
    fields: &'a str,
    machine: Machine<'a>,
    cases: Vec<CaseId<'a>>,
    started: String,
    started_unix_s: f64,
    end: Option<&'a RunEnd>,
}

#[derive(Serialize)]
struct Machine<'a> {
    kernel: &'a str,
    cpu: &'a str,
    cores: u32,
}

#[derive(Serialize)]
struct CaseId<'a> {
    id: &'a str,
    version: u32,
}

#[derive(Serialize)]
struct ExecutionLine<'a> {
    execution: u64,
    case: &'a str,
    version: u32,
    name: &'a str,
    attempt: u32,
    outcome: &'static str,
    seen: &'a str,
    why: &'a str,
    began_s: f64,
    elapsed_s: f64,
    sent_bytes: u64,
    sent_sha256: String,
    received_bytes: u64,
}

/// Returns a line of `cases.jsonl`: execution `number` of the run, which began at `zero` on the
/// run's clock. Times are in seconds.
pub fn execution_line(number: u64, execution: &Execution<'_>, zero: Nanos) -> String {
    let (case, talk, judgement) = (execution.case, execution.talk, execution.judgement);
    let line = ExecutionLine {
        execution: number,
        case: &case.id,
        version: case.version,
        name: execution.name,
        attempt: execution.attempt,
        outcome: judgement.outcome.id(),
        seen: &judgement.seen,
        why: &judgement.why,
        began_s: (talk.start - zero).as_secs_f64(),
        elapsed_s: talk.over.as_secs_f64(),
        sent_bytes: talk.sent,
        sent_sha256: digest(&torture::record::sent(&execution.script.steps)),
        received_bytes: talk.received,
    };
    let mut text = serde_json::to_string(&line).expect("strings and numbers always serialize");
    text.push('\n');
    text
}

/// Maximum number of bytes shown in the text of a failure.
const SHOWN_MAX: usize = 1_000;

/// Returns the text in the folder of a failure, for people.
pub fn failure_text(kept: &Transcript, exchange: &ExchangeResult) -> String {
    let mut page = Page::default();
    let judgement = &exchange.judgement;
    let head = format!("{} {}: {}", kept.case, kept.name, judgement.outcome.id());
    page.wrapped("", &words::safe(&head));
    page.blank();
    page.wrapped("target    ", &words::safe(&kept.target));
    page.wrapped("sent      ", &send::escape_bytes(&kept.bytes(), SHOWN_MAX));
    page.wrapped("received ", &words::safe(&kept.judgement.seen));
    page.wrapped("expected  ", &words::safe(&kept.judgement.expected));
    page.wrapped("why       ", &words::safe(&kept.judgement.why));
    page.wrapped("failed in ", &format!("{} of {} tries", exchange.failed, exchange.tries));
    page.blank();
    for (file, text) in FILES {
        page.wrapped(&format!("{file:<11} "), text);
    }
    page.blank();
    page.wrapped(
        "",
        "To send it again and judge it: loadstone torture replay and the path of this folder.",
    );
    page.finish()
}

/// Files in the folder of a failure.
const FILES: [(&str, &str); 7] = [
    ("bytes.bin", "the bytes that were sent, without pauses"),
    ("wire.lsw", "the conversation as text: what was sent and received, and when"),
    ("case.toml", "the case: the conforming outcomes and the specification"),
    ("repro.sh", "a script that sends them with nc or openssl, if possible"),
    ("repro.pcap", "the conversation in synthetic packets, for Wireshark"),
    ("shrunk.bin", "the fewest bytes that fail in the same way, if searched for"),
    ("shrunk.lsw", "the conversation with these bytes"),
];
