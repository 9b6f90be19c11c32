//! Responses that are streams of events: their delimiters, and the calls concerned.

use crate::Plan;
use units::{ParseError, quoted};

/// Delimiter of the events of a streamed response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Streaming {
    /// Server-Sent Events (WHATWG HTML section 9.2).
    Sse,
    /// A line for each, as in JSON lines.
    Lines,
    /// Length-prefixed messages of gRPC, followed by the status.
    Grpc,
}

impl Streaming {
    /// As typed and printed.
    pub fn id(self) -> &'static str {
        match self {
            Streaming::Sse => "sse",
            Streaming::Lines => "lines",
            Streaming::Grpc => "grpc",
        }
    }
}

/// Setting of a step for its response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StepStream {
    /// The plan's setting.
    #[default]
    AsPlan,
    No,
    Yes(Streaming),
}

/// `sse`, `lines` or `grpc`.
///
/// # Errors
/// Anything else; the message names all.
pub fn parse_streaming(text: &str) -> Result<Streaming, ParseError> {
    match text {
        "sse" => Ok(Streaming::Sse),
        "lines" => Ok(Streaming::Lines),
        "grpc" => Ok(Streaming::Grpc),
        _ => Err(ParseError(format!(
            "{} is not a stream of events: write sse (Server-Sent Events) or lines (a line for each)",
            quoted(text)
        ))),
    }
}

impl Plan {
    /// Event format of each target's response, by row; empty if there are no streams.
    pub fn streams(&self) -> Vec<Option<Streaming>> {
        let steps = self.journeys.as_ref().map_or_else(Vec::new, |journeys| journeys.steps());
        let of_row = |row: usize| match steps.get(row).map(|step| step.stream) {
            None | Some(StepStream::AsPlan) => self.measure.stream,
            Some(StepStream::No) => None,
            Some(StepStream::Yes(form)) => Some(form),
        };
        let rows: Vec<_> = (0..self.targets.len()).map(of_row).collect();
        if rows.iter().any(Option::is_some) { rows } else { Vec::new() }
    }
}
