//! gRPC calls: the messages, the source of their descriptors, and the expected status.

use crate::check::Text;
use crate::{HttpVersion, ID_MARK, Plan, Streaming};
use protocol::grpc::{BodyForm, CONNECT_STREAM, MessageLimits, gzipped, messages};
pub use protocol::grpc::{Code as GrpcCode, Variant as GrpcVariant};
use units::{Nanos, ParseError, Rate, quoted};

/// gRPC settings of a plan. The method is the path of the URL, `/package.Service/Method`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GrpcPlan {
    /// Request as JSON; a list of messages for a client stream. `None` for an empty message, or for
    /// the request's body unchanged.
    pub message: Option<Vec<u8>>,
    /// FileDescriptorSet that describes the method; `None` if it is fetched by reflection.
    pub descriptors: Option<Vec<u8>>,
    /// Expected status codes; empty for OK.
    pub status: Vec<u8>,
    /// Protocol variant of the calls.
    pub variant: GrpcVariant,
    /// True if messages are compressed with gzip.
    pub compress: bool,
    /// Number of messages of a client stream, taken from `message` in turn; `None` for each message
    /// once.
    pub messages: Option<u32>,
    /// Messages of each client stream per second, on an absolute schedule; `None` for back to back.
    pub message_rate: Option<Rate>,
    /// Number of messages of a response after which the client ends the call; `None` to read it to
    /// its end.
    pub response_messages: Option<u32>,
    /// Maximum length of a message of a response, in bytes; a longer one fails the call.
    pub response_message_max: Option<u32>,
    /// True if message k of a response answers message k of its request.
    pub answers: bool,
    /// Field whose value an answer repeats from its message; `None` if they have the same order.
    pub correlate: Option<AnswerField>,
    /// Time without received data after which a connection with calls in flight is pinged; `None`
    /// for never.
    pub keepalive: Option<Nanos>,
    /// Name of the field, in the head or the trailers of responses, whose value names the back end.
    pub backend: Option<String>,
}

/// A field that a message of a bidirectional stream and its answer have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnswerField {
    /// Dotted path: the names of the enclosing fields, then its own.
    pub name: String,
    /// Field numbers in requests and in answers; `None` before the descriptors are known.
    pub places: Option<(Vec<u32>, Vec<u32>)>,
}

impl AnswerField {
    /// Parses `field:NAME`, or `field:NAME=1.2/3` with field numbers of requests and answers.
    ///
    /// # Errors
    /// Fails for any other text.
    pub fn parse(text: &str) -> Result<AnswerField, ParseError> {
        let wrong =
            || ParseError(format!("{} is not a rule; write order or field:NAME", quoted(text)));
        let rest = text.strip_prefix("field:").ok_or_else(wrong)?;
        let (name, places) = match rest.split_once('=') {
            None => (rest, None),
            Some((name, places)) => {
                let (request, answer) = places.split_once('/').ok_or_else(wrong)?;
                let path = |text: &str| {
                    text.split('.').map(str::parse).collect::<Result<Vec<u32>, _>>().ok()
                };
                let both = path(request).zip(path(answer));
                (name, Some(both.ok_or_else(wrong)?))
            }
        };
        if name.is_empty() || name.split('.').any(str::is_empty) {
            return Err(wrong());
        }
        Ok(AnswerField { name: name.to_owned(), places })
    }

    /// Formats it as [`AnswerField::parse`] reads it.
    pub fn text(&self) -> String {
        let path =
            |numbers: &[u32]| numbers.iter().map(u32::to_string).collect::<Vec<String>>().join(".");
        match &self.places {
            None => format!("field:{}", self.name),
            Some((request, answer)) => {
                format!("field:{}={}/{}", self.name, path(request), path(answer))
            }
        }
    }
}

/// A journey step that is a gRPC call. Its method is the URL of the step's request, and its
/// message, as JSON, is the body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GrpcStep {
    /// Expected status codes; empty for those of the plan.
    pub status: Vec<u8>,
}

/// Returns whether a call with this status succeeded, given a list of expected codes.
fn expects(status: &[u8], code: GrpcCode) -> bool {
    match status {
        [] => code == GrpcCode::Ok,
        expected => expected.contains(&code.number()),
    }
}

impl GrpcPlan {
    /// Returns whether the message differs between calls.
    pub fn message_differs(&self) -> bool {
        let message = self.message.as_deref().unwrap_or_default();
        message.windows(ID_MARK.len()).any(|part| part == ID_MARK.as_bytes())
    }

    /// Returns the message of call `id`, a number from 0.
    pub fn message_of(&self, id: u64) -> Option<Vec<u8>> {
        let message = self.message.as_ref()?;
        if !self.message_differs() {
            return Some(message.clone());
        }
        let text = String::from_utf8_lossy(message);
        Some(text.replace(ID_MARK, &id.to_string()).into_bytes())
    }

    /// Returns the limits at which the client ends a call.
    pub fn response_limits(&self) -> MessageLimits {
        MessageLimits {
            count: self.response_messages,
            length: self.response_message_max.map(u64::from),
        }
    }

    /// Returns whether a call with this status succeeded.
    pub fn expects(&self, code: GrpcCode) -> bool {
        expects(&self.status, code)
    }

    /// Returns a request's body in the plan's variant and coding, from messages with prefixes.
    /// `streams`: the method has a stream.
    pub fn encoded(&self, body: Vec<u8>, streams: bool) -> Vec<u8> {
        let body = match messages(&body) {
            Some(messages) if self.compress => {
                messages.iter().flat_map(|message| gzipped(message)).collect()
            }
            _ => body,
        };
        self.variant.body(body, streams)
    }
}

/// Fields of requests with compressed messages.
const GZIP_FIELDS: [(&str, &str); 2] =
    [("grpc-encoding", "gzip"), ("grpc-accept-encoding", "gzip,identity")];

/// Adds the fields for calls of a variant, except for those that a step sets.
pub(crate) fn add_fields(headers: &mut Vec<(String, Text)>, variant: GrpcVariant) {
    add_missing(headers, variant.fields());
}

fn add_missing(headers: &mut Vec<(String, Text)>, fields: &[(&str, &str)]) {
    for (field, value) in fields {
        if !headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(field)) {
            headers.push(((*field).to_owned(), Text::plain(*value)));
        }
    }
}

/// Returns the HTTP URL for calls to a `grpc://` or `grpcs://` URL; `None` for other URLs.
pub fn http_url(text: &str) -> Option<String> {
    let (scheme, rest) = text.trim().split_once("://")?;
    match scheme.to_ascii_lowercase().as_str() {
        "grpc" => Some(format!("http://{rest}")),
        "grpcs" => Some(format!("https://{rest}")),
        _ => None,
    }
}

impl Plan {
    /// Returns whether the calls are gRPC.
    pub fn is_grpc(&self) -> bool {
        self.measure.stream == Some(Streaming::Grpc)
    }

    /// Changes the protocol variant, and replaces the fields of the previous one.
    pub fn carry_grpc(&mut self, variant: GrpcVariant) {
        let before = std::mem::replace(&mut self.grpc.variant, variant);
        for field in before.fields() {
            self.request.headers.retain(|(name, value)| (&**name, &**value) != *field);
        }
        let Some(journeys) = &mut self.journeys else {
            for (name, value) in variant.fields() {
                self.request.add_missing_header(name, value);
            }
            return;
        };
        journeys.change_steps(&mut |step| {
            if step.grpc.is_some() {
                let headers = &mut step.ask.headers;
                let is_field = |(name, text): &(String, Text)| {
                    let fields = before.fields().iter();
                    fields
                        .clone()
                        .any(|(field, value)| name == field && *text == Text::plain(*value))
                };
                headers.retain(|field| !is_field(field));
                add_fields(headers, variant);
            }
        });
    }

    /// Compresses messages with gzip. In a plan with journeys the fields are those of its gRPC
    /// steps: its other steps are requests without messages.
    pub(crate) fn compress_grpc(&mut self) {
        self.grpc.compress = true;
        let Some(journeys) = &mut self.journeys else {
            for (name, value) in GZIP_FIELDS {
                self.request.add_missing_header(name, value);
            }
            return;
        };
        journeys.change_steps(&mut |step| {
            if step.grpc.is_some() {
                add_missing(&mut step.ask.headers, &GZIP_FIELDS);
            }
        });
    }

    /// Removes the fields of compressed messages from all requests.
    pub(crate) fn remove_compressed_fields(&mut self) {
        self.request.headers.retain(|(name, value)| !GZIP_FIELDS.contains(&(&**name, &**value)));
    }

    /// Sets the content type that Connect uses for methods with a stream: for all calls, or for the
    /// steps of these rows.
    pub fn stream_connect(&mut self, rows: &[u32]) {
        const UNARY: &str = "application/proto";
        for (name, value) in &mut self.request.headers {
            if name.eq_ignore_ascii_case("content-type") && value == UNARY {
                CONNECT_STREAM.clone_into(value);
            }
        }
        let Some(journeys) = &mut self.journeys else { return };
        journeys.change_steps(&mut |step| {
            if step.grpc.is_some() && rows.contains(&step.row) {
                for (name, text) in &mut step.ask.headers {
                    if name.eq_ignore_ascii_case("content-type") && *text == Text::plain(UNARY) {
                        *text = Text::plain(CONNECT_STREAM);
                    }
                }
            }
        });
    }

    /// Returns the form of the response bodies of each row.
    pub fn grpc_forms(&self) -> Vec<BodyForm> {
        let steps = self.journeys.as_ref().map_or_else(Vec::new, |journeys| journeys.steps());
        let headers = &self.request.headers;
        let kind = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-type"));
        let kind = kind.map_or("", |(_, value)| value);
        let of_row = |row: usize| {
            let fields = steps.get(row).map_or(&[][..], |step| &step.ask.headers);
            let own = fields.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-type"));
            let own = own.and_then(|(_, text)| text.settled());
            BodyForm::new(self.grpc.variant, own.as_deref().unwrap_or(kind))
        };
        (0..self.targets.len()).map(of_row).collect()
    }

    /// Returns whether calls are gRPC: all calls, or some steps of journeys.
    pub fn has_grpc(&self) -> bool {
        self.is_grpc() || !self.grpc_rows().is_empty()
    }

    /// Returns the rows of the steps that are gRPC calls.
    pub fn grpc_rows(&self) -> Vec<u32> {
        let steps = self.journeys.iter().flat_map(|journeys| journeys.steps());
        steps.filter(|step| step.grpc.is_some()).map(|step| step.row).collect()
    }

    /// Returns the expected codes of each target, by row; empty for those of the plan.
    pub fn grpc_expectations(&self) -> Vec<Vec<u8>> {
        let steps = self.journeys.iter().flat_map(|journeys| journeys.steps());
        steps.map(|step| step.grpc.as_ref().map_or_else(Vec::new, |it| it.status.clone())).collect()
    }

    /// Returns whether a call with this status may have succeeded.
    pub fn may_expect_grpc(&self, code: GrpcCode) -> bool {
        let in_step = |status: &Vec<u8>| !status.is_empty() && expects(status, code);
        let by_client = code == GrpcCode::Cancelled && self.grpc.response_messages.is_some();
        by_client || self.grpc.expects(code) || self.grpc_expectations().iter().any(in_step)
    }

    /// Returns whether a call to the target with this status succeeded; `rows`: the plan's
    /// [`Plan::grpc_expectations`].
    pub fn expects_grpc(&self, rows: &[Vec<u8>], target: u32, code: GrpcCode) -> bool {
        match rows.get(target as usize) {
            Some(status) if !status.is_empty() => expects(status, code),
            _ => self.grpc.expects(code),
        }
    }

    /// Turns the calls to the plan's URLs into gRPC calls: POST over HTTP/2, with the fields that
    /// the protocol requires.
    pub fn use_grpc(&mut self) {
        self.measure.stream = Some(Streaming::Grpc);
        self.request.version = HttpVersion::Http2;
        self.request.method = "POST".to_owned();
        for (name, value) in GrpcVariant::Grpc.fields() {
            self.request.add_missing_header(name, value);
        }
    }
}
