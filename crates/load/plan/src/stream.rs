//! Responses that are streams of events: their delimiters, and the calls concerned.

use crate::Plan;
use units::{ParseError, quoted};

/// Delimiter of the events of a streamed response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Streaming {
    /// Server-Sent Events (WHATWG HTML section 9.2).
    Sse,
    /// One event per line, as in JSON lines.
    Lines,
    /// Length-prefixed gRPC messages, followed by the status.
    Grpc,
    /// Server-Sent Events of a language model; only events with content count.
    Model(ModelApi),
}

/// Interface of a server of language models.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelApi {
    /// Chat completions, completions and responses of OpenAI.
    OpenAi,
    /// Messages of Anthropic.
    Anthropic,
}

impl Streaming {
    /// Returns whether the events are those of a language model.
    pub fn is_token_stream(self) -> bool {
        matches!(self, Streaming::Model(_))
    }

    /// Returns the name as typed and printed.
    pub fn id(self) -> &'static str {
        match self {
            Streaming::Sse => "sse",
            Streaming::Lines => "lines",
            Streaming::Grpc => "grpc",
            Streaming::Model(ModelApi::OpenAi) => "openai",
            Streaming::Model(ModelApi::Anthropic) => "anthropic",
        }
    }
}

/// Setting of a step for its response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StepStream {
    /// Uses the plan's setting.
    #[default]
    AsPlan,
    No,
    Yes(Streaming),
}

/// Parses `sse`, `lines`, `grpc`, `openai` or `anthropic`.
///
/// # Errors
/// Fails for anything else; the message names all formats.
pub fn parse_streaming(text: &str) -> Result<Streaming, ParseError> {
    match text {
        "sse" => Ok(Streaming::Sse),
        "lines" => Ok(Streaming::Lines),
        "grpc" => Ok(Streaming::Grpc),
        "openai" => Ok(Streaming::Model(ModelApi::OpenAi)),
        "anthropic" => Ok(Streaming::Model(ModelApi::Anthropic)),
        _ => Err(ParseError(format!(
            "{} is not a stream of events: write sse (Server-Sent Events), lines (a line for each), \
             openai or anthropic (tokens of a language model)",
            quoted(text)
        ))),
    }
}

impl Plan {
    /// Returns the event format of each target's response, by row; empty if there are no streams.
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
