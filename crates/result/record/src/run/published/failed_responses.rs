//! Samples of failed responses: the bytes sent by the server, as the workers masked them.

use super::rows::row_labels;
use crate::finished::RunReport;
use crate::ids;
use sample::FailureClass;
#[cfg(any(test, feature = "schema"))]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::FailedResponse;
use units::show::safe;

/// Characters of a line of the head, and of the body.
const LINE_MAX: usize = 300;
const BODY_MAX: usize = 600;

/// The start of a response whose call failed. Text of the server: untrusted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct FailedResponseRecord {
    /// Time of the response, from the start of the measured phase.
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub at_s: f64,
    /// Name of the step, or URL.
    pub target: String,
    #[serde(with = "ids::failure_class")]
    #[cfg_attr(
        any(test, feature = "schema"),
        schemars(schema_with = "ids::failure_class::schema")
    )]
    pub class: FailureClass,
    #[cfg_attr(any(test, feature = "schema"), schemars(range(max = 999)))]
    pub status: u16,
    /// Status line and fields, secrets masked; long lines are cut.
    pub head: Vec<String>,
    /// The first bytes of the body, secrets masked; null if it is empty, encoded or unknown.
    pub body: Option<String>,
    /// Bytes of the body that were received.
    pub length: u64,
}

/// Returns the samples of a run, the earliest first.
pub(super) fn all(report: &RunReport) -> Vec<FailedResponseRecord> {
    let total = &report.measurement.total;
    if total.failed_responses.is_empty() {
        return Vec::new();
    }
    let plan = &report.plan;
    let rows = plan.row_count().max(1);
    let labels = row_labels(plan, rows);
    let mut all = Vec::new();
    for ((class, status), samples) in &total.failed_responses.kinds {
        for sample in samples {
            let row = plan.row_of(sample.target as usize) as usize;
            let (head, body) = head_and_body(sample);
            all.push(FailedResponseRecord {
                at_s: sample.at.as_secs_f64(),
                target: labels.get(row).or(labels.last()).cloned().unwrap_or_default(),
                class: *class,
                status: *status,
                head,
                body,
                length: sample.length,
            });
        }
    }
    all.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
    all
}

/// Returns the lines of the head, and the body, if there is one.
fn head_and_body(sample: &FailedResponse) -> (Vec<String>, Option<String>) {
    let start = String::from_utf8_lossy(&sample.start);
    // the first part is missing where the head arrived in pieces
    let (head, body) = match start.split_once("\r\n\r\n") {
        Some(parts) if start.starts_with("HTTP/") => parts,
        None if start.starts_with("HTTP/") => (&*start, ""),
        _ => ("", &*start),
    };
    let lines = head.split("\r\n").filter(|line| !line.is_empty());
    let body = (!body.is_empty()).then(|| readable(body, BODY_MAX));
    (lines.map(|line| readable(line, LINE_MAX)).collect(), body)
}

/// Returns text that is safe to show, with its line ends and tabs.
fn readable(text: &str, chars_max: usize) -> String {
    let mut out = String::new();
    for (count, c) in text.chars().enumerate() {
        match c {
            _ if count >= chars_max => {
                out.push('…');
                break;
            }
            '\n' | '\t' => out.push(c),
            '\r' => {}
            c => out.push_str(&safe(c.encode_utf8(&mut [0; 4]))),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_head_is_split_and_control_characters_are_escaped() {
        let shown_of = |start: &str| {
            head_and_body(&FailedResponse { start: start.into(), ..FailedResponse::default() })
        };
        let (head, body) = shown_of("HTTP/1.1 500 Oops\r\nX: y\r\n\r\nab\x1b\r\ncd");
        assert_eq!(head, ["HTTP/1.1 500 Oops", "X: y"]);
        assert_eq!(body.as_deref(), Some("ab\\u{1b}\ncd"));
        assert_eq!(shown_of("HTTP/2 503\r\n\r\n"), (vec!["HTTP/2 503".to_owned()], None));
        assert_eq!(shown_of("half a body"), (Vec::new(), Some("half a body".to_owned())));
    }
}
