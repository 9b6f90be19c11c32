//! The file of `--debug`: a line of JSON for each step, in the format of ghz's logger.

use super::go::{json_text, rfc3339};
use super::messages::{CallContent, Recipe, Workers};
use super::options::Options;
use super::report::unix_ns;
use crate::Date;
use grpc::GrpcMethod;
use protocol::grpc::messages;
use sample::CallRecord;
use std::collections::BTreeMap;
use std::sync::Arc;
use units::Nanos;

/// Writes the lines of a run.
#[derive(Debug)]
pub(super) struct DebugLog {
    method: GrpcMethod,
    /// Bodies of the targets; unused if there is a recipe.
    bodies: Vec<Vec<u8>>,
    headers: Vec<(String, String)>,
    recipe: Option<Arc<Recipe>>,
    /// True once the first line is written.
    begun: bool,
}

/// A value of a line, as JSON.
type LogField<'a> = (&'a str, String);

impl DebugLog {
    pub(super) fn new(method: GrpcMethod, content: &CallContent) -> DebugLog {
        DebugLog {
            method,
            bodies: content.bodies.clone(),
            headers: content.headers.clone(),
            recipe: content.recipe.clone(),
            begun: false,
        }
    }

    /// Returns whether the first line has yet to be written.
    pub(super) fn is_new(&self) -> bool {
        !self.begun
    }

    /// Returns the first line.
    pub(super) fn start(&mut self, config: &str, date: &Date) -> String {
        self.begun = true;
        line(date, date.at, "Start Run", &[("config", config.to_owned())])
    }

    /// Returns the lines about a call that ended with this status; `error` is empty for OK.
    pub(super) fn call(
        &self,
        (call, status, error): (&CallRecord, &str, &str),
        options: &Options,
        date: &Date,
    ) -> String {
        let sample = &call.sample;
        let begun = if sample.issued.is_zero() { sample.intended } else { sample.issued };
        let (body, headers) = match &self.recipe {
            Some(recipe) => recipe
                .request(sample.index, sample.intended)
                .map_or_else(|_| Default::default(), |made| (made.body, made.headers)),
            None => {
                let body = self.bodies.get(sample.target as usize).cloned();
                (body.unwrap_or_default(), self.headers.clone())
            }
        };
        let error = if error.is_empty() { "null".to_owned() } else { json_text(error) };
        let same = [
            ("workerID", json_text(&Workers::of(options).id(sample.index))),
            ("call type", json_text(self.kind())),
            ("call", json_text(&format!("{}.{}", self.method.service(), self.method.name()))),
            ("input", self.input(&body)),
            ("metadata", metadata(&headers)),
        ];
        let at = |at: Nanos| json_text(&rfc3339(unix_ns(date, at), date.utc_offset_s));
        let stats = format!(
            "{{\"Client\":true,\"BeginTime\":{},\"EndTime\":{}}}",
            at(begun),
            at(sample.done)
        );
        let seconds = (sample.done - begun).as_secs_f64().to_string();
        let stats = [
            ("statsID", (sample.index % options.connections.max(1)).to_string()),
            ("code", json_text(status)),
            ("error", error.clone()),
            ("duration", seconds),
            ("stats", stats),
        ];
        let received =
            [&same[..], &[("responseBytes", sample.body_bytes.to_string()), ("error", error)]]
                .concat();
        line(date, begun, "Making request", &same)
            + &line(date, sample.done, "Received RPC Stats", &stats)
            + &line(date, sample.done, "Received response", &received)
    }

    /// Returns the lines about the end of the run.
    pub(super) fn end(at: Nanos, output: &str, date: &Date) -> String {
        let path = if output.is_empty() { "stdout" } else { output };
        let plain = ["Waiting for report", "Finalizing report", "Closing client connections"];
        let mut out: String = plain.iter().map(|text| line(date, at, text, &[])).collect();
        out += &line(date, at, "Run finished", &[]);
        let text = format!("Printing report to {path}");
        out + &line(date, at, &text, &[("path", json_text(path))])
    }

    fn kind(&self) -> &'static str {
        match (self.method.is_client_streaming(), self.method.is_server_streaming()) {
            (true, true) => "bidi",
            (true, false) => "client-streaming",
            (false, true) => "server-streaming",
            (false, false) => "unary",
        }
    }

    /// Returns the messages of a request as JSON.
    fn input(&self, body: &[u8]) -> String {
        let messages = messages(body).unwrap_or_default();
        let texts = messages
            .iter()
            .map(|message| self.method.request_json(message).unwrap_or_else(|_| "null".to_owned()));
        format!("[{}]", texts.collect::<Vec<_>>().join(","))
    }
}

/// Returns the fields as an object with lists of values.
fn metadata(headers: &[(String, String)]) -> String {
    let mut lists: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (name, value) in headers {
        lists.entry(name).or_default().push(json_text(value));
    }
    let entries =
        lists.iter().map(|(name, values)| format!("{}:[{}]", json_text(name), values.join(",")));
    format!("{{{}}}", entries.collect::<Vec<_>>().join(","))
}

fn line(date: &Date, at: Nanos, message: &str, entries: &[LogField<'_>]) -> String {
    let time = rfc3339(unix_ns(date, at), date.utc_offset_s);
    let mut out = format!(
        "{{\"level\":\"debug\",\"time\":{},\"message\":{}",
        json_text(&time),
        json_text(message)
    );
    for (name, value) in entries {
        put!(out, ",{}:{value}", json_text(name));
    }
    out + "}\n"
}
