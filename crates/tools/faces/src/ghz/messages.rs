//! Requests of ghz: descriptors, messages, metadata, and data that differ between calls.

use super::functions::uuid;
use super::go::{json, quoted};
use super::options::{Options, go_json_error, kind_of, texts};
use super::template::{CallData, MethodFacts, Template};
use crate::{Date, Files, SystemError};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use grpc::{GrpcMethod, Schema};
use protocol::grpc::{gzipped, prefixed};
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use units::{Nanos, Purpose, Seed};
use workload::{MadeRequest, RequestMaker, RequestMakers};

/// Maximum number of messages that `--stream-call-count` makes from a request.
const MESSAGES_MAX: u64 = 100_000;

/// Data and metadata as given.
#[derive(Clone, Debug, Default)]
pub(super) struct GivenData {
    /// JSON text, or empty.
    text: String,
    binary: Option<Vec<u8>>,
    metadata: Map<String, Value>,
}

impl GivenData {
    /// Reads the files that the options name.
    ///
    /// # Errors
    /// Fails with ghz's sentence.
    pub(super) fn read(options: &Options, files: &dyn Files) -> Result<GivenData, String> {
        let read = |path: &str| files.read(path).map_err(|error| not_opened(path, &error));
        let mut given = GivenData { metadata: options.metadata.clone(), ..GivenData::default() };
        if !options.metadata_file.is_empty() {
            let bytes = read(&options.metadata_file)?;
            let text = String::from_utf8_lossy(&bytes);
            let value: Value =
                serde_json::from_str(&text).map_err(|why| go_json_error(&text, &why))?;
            given.metadata = texts(&value)?;
        }
        let bytes = match (options.data.as_str(), options.data_file.as_str()) {
            (Some("@"), _) => files.read_input().map_err(|error| error.text)?,
            (_, "") => json(&options.data).into_bytes(),
            (_, path) => read(path)?,
        };
        given.text = String::from_utf8_lossy(&bytes).trim_end().to_owned();
        if !options.binary.is_empty() {
            given.binary = Some(options.binary.clone());
        }
        if !options.binary_file.is_empty() {
            given.binary = Some(read(&options.binary_file)?);
        }
        Ok(given)
    }

    pub(super) fn is_binary(&self) -> bool {
        self.binary.is_some()
    }

    /// Returns the request as a report repeats it.
    pub(super) fn shown(&self) -> Value {
        match self.is_binary() {
            true => Value::Null,
            false => serde_json::from_str(&self.text).unwrap_or(Value::Null),
        }
    }

    /// Returns the metadata as a report repeats it.
    pub(super) fn shown_metadata(&self) -> Option<Value> {
        (!self.metadata.is_empty()).then(|| Value::Object(self.metadata.clone()))
    }

    /// Returns the texts of the messages.
    fn items(&self) -> Result<Vec<String>, String> {
        items_of(&self.text)
    }
}

/// Splits call data into the texts of its messages. The data are one message or a list of messages.
fn items_of(text: &str) -> Result<Vec<String>, String> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    if !text.starts_with('[') {
        return Ok(vec![text.to_owned()]);
    }
    let items: Vec<Value> = serde_json::from_str(text).map_err(|why| go_json_error(text, &why))?;
    match items.iter().find(|item| !item.is_object()) {
        Some(other) => Err(format!(
            "json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
            kind_of(other)
        )),
        None => Ok(items.iter().map(json).collect()),
    }
}

/// Returns Go's message about a file that cannot be opened.
pub(super) fn not_opened(path: &str, error: &SystemError) -> String {
    let mut letters = error.text.chars();
    let first = letters.next().map(|letter| letter.to_ascii_lowercase());
    format!("open {path}: {}{}", first.map(String::from).unwrap_or_default(), letters.as_str())
}

/// Returns the folders searched for imports, as ghz lists them.
pub(super) fn import_paths(options: &Options) -> Vec<String> {
    if options.proto.is_empty() {
        return Vec::new();
    }
    let folder = Path::new(&options.proto).parent().map(|it| it.to_string_lossy().into_owned());
    let folder = folder.filter(|folder| !folder.is_empty() && folder != ".");
    let own = folder.into_iter().chain([".".to_owned()]);
    own.chain(options.import_paths.iter().cloned()).collect()
}

/// Splits `pkg.Service.Method` or `pkg.Service/Method` into service and method.
///
/// # Errors
/// Fails with ghz's sentence.
pub(super) fn split_call(call: &str) -> Result<(&str, &str), String> {
    let plain = call.strip_prefix('.').unwrap_or(call);
    let parts = match plain.matches('/').count() {
        0 => plain.rsplit_once('.'),
        1 => plain.split_once('/'),
        _ => None,
    };
    parts.ok_or_else(|| {
        format!(
            "method name must be package.Service.Method or package.Service/Method: {}",
            quoted(plain)
        )
    })
}

/// Returns the method of a service, from the `.proto` file, the descriptor set, or `reflected`.
///
/// # Errors
/// Fails with ghz's sentence, or the compiler's.
pub(super) fn method(
    options: &Options,
    files: &dyn Files,
    (service, name): (&str, &str),
    reflected: impl FnOnce() -> Result<Vec<u8>, String>,
) -> Result<GrpcMethod, String> {
    let schema = match (options.proto.as_str(), options.protoset.as_str()) {
        ("", "") => Schema::from_set(&reflected()?).map_err(|why| why.0)?,
        ("", path) => {
            let bytes = files.read(path).map_err(|error| {
                let why = not_opened(path, &error);
                format!("could not load protoset file {}: {why}", quoted(path))
            })?;
            Schema::from_set(&bytes).map_err(|_| {
                format!(
                    "could not parse contents of protoset file {}: could not parse contents of \
                     protoset binary: proto: cannot parse invalid wire-format data",
                    quoted(path)
                )
            })?
        }
        (file, _) => compile(file, options, files)?,
    };
    if !schema.has_symbol(service) {
        return Err(format!("cannot find service {}", quoted(service)));
    }
    schema.method(&format!("/{service}/{name}")).map_err(|_| {
        format!("service {} does not include a method named {}", quoted(service), quoted(name))
    })
}

fn compile(file: &str, options: &Options, files: &dyn Files) -> Result<Schema, String> {
    files.read(file).map_err(|error| not_opened(file, &error))?;
    let folders: Vec<PathBuf> = import_paths(options).into_iter().map(PathBuf::from).collect();
    let read = |name: &str| {
        let named = [PathBuf::from(name)].into_iter();
        let mut paths = named.chain(folders.iter().map(|folder| folder.join(name)));
        paths.find_map(|path| {
            let bytes = files.read(&path.to_string_lossy()).ok()?;
            String::from_utf8(bytes).ok()
        })
    };
    Schema::compile(file, &read).map_err(|why| why.0)
}

/// Bodies and fields of the calls of a run.
#[derive(Debug)]
pub(super) struct CallContent {
    /// Bodies that are sent in turn; if empty, a [`Recipe`] makes the bodies.
    pub(super) bodies: Vec<Vec<u8>>,
    pub(super) headers: Vec<(String, String)>,
    pub(super) recipe: Option<Arc<Recipe>>,
    pub(super) notes: Vec<String>,
}

/// Makes requests whose call data differ.
#[derive(Debug)]
pub(super) struct Recipe {
    method: GrpcMethod,
    facts: MethodFacts,
    messages: RecipeMessages,
    metadata: Vec<(String, Template)>,
    limits: StreamLimits,
    /// Maximum number of bytes of a message.
    most: u64,
    /// True if each message of a stream has its own times and UUIDs.
    dynamic: bool,
    compressed: bool,
    workers: Workers,
    date: Date,
    seed: Seed,
}

/// Messages of a [`Recipe`].
#[derive(Debug)]
enum RecipeMessages {
    /// Messages with prefixes, equal in all calls.
    Fixed(Vec<Vec<u8>>),
    /// Templates that are used in turn by calls, or by the messages of a stream.
    Made(Vec<Template>),
    /// Template for all messages of a stream, executed once per call.
    Whole(Template),
}

/// Reason why a call has no request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RequestFault {
    /// Call data that do not fit; ghz reports them instead of its figures.
    Data(String),
    /// The message is longer than `most` bytes; ghz counts the call as failed.
    TooLong { length: u64, most: u64 },
}

impl RequestFault {
    pub(super) fn text(&self) -> String {
        match self {
            RequestFault::Data(text) => text.clone(),
            RequestFault::TooLong { length, most } => {
                format!("trying to send message larger than max ({length} vs. {most})")
            }
        }
    }
}

impl From<String> for RequestFault {
    fn from(text: String) -> RequestFault {
        RequestFault::Data(text)
    }
}

/// Checks the length of a message.
fn check_length(message: &[u8], most: u64) -> Result<(), RequestFault> {
    let length = message.len() as u64;
    if length > most { Err(RequestFault::TooLong { length, most }) } else { Ok(()) }
}

/// Returns the content of all calls.
///
/// # Errors
/// Fails for data or metadata that cannot be sent.
pub(super) fn content(
    given: &GivenData,
    method: GrpcMethod,
    options: &Options,
    date: Date,
) -> Result<CallContent, String> {
    let functions = !options.disable_template_functions;
    let parse = |text: &str| Template::parse(text, functions);
    let templated = !options.disable_template_data;
    let items = if given.is_binary() { Vec::new() } else { given.items()? };
    let mut whole = None;
    let mut metadata = Vec::new();
    if templated {
        whole = (!given.is_binary()).then(|| parse(&given.text)).transpose()?;
        for (name, value) in &given.metadata {
            let template = parse(value.as_str().unwrap_or_default())?;
            metadata.push((name.to_ascii_lowercase(), template));
        }
    }
    let (whole, unused) = match whole {
        Some(whole) if whole.has_actions() => (Some(whole), false),
        other => (None, other.is_some_and(|whole| whole.has_parts())),
    };
    let varied_fields = metadata.iter().any(|(_, value)| value.has_actions());
    if options.stream_dynamic_messages && method.is_client_streaming() && whole.is_none() {
        return Err("default message provider cannot be used with static data".to_owned());
    }
    let mut notes = Vec::new();
    if unused {
        notes.push(UNEXECUTED.to_owned());
    }
    if whole.is_some() || varied_fields {
        let once = method.is_client_streaming() && !options.stream_dynamic_messages;
        let messages = match whole {
            Some(whole) if once => RecipeMessages::Whole(whole),
            Some(_) => {
                let templates = items.iter().map(|item| parse(item));
                RecipeMessages::Made(templates.collect::<Result<Vec<_>, _>>()?)
            }
            None => RecipeMessages::Fixed(packed(given, &items, &method, options)?),
        };
        let recipe = Recipe {
            facts: facts(&method),
            method,
            messages,
            metadata,
            limits: StreamLimits::of(options),
            most: options.max_send.unwrap_or(u64::MAX),
            dynamic: options.stream_dynamic_messages,
            compressed: options.enable_compression,
            workers: Workers::of(options),
            date,
            seed: seed(date),
        };
        // the first call shows whether the data fit
        recipe.request(0, date.at).map_err(|why| why.text())?;
        let recipe = Some(Arc::new(recipe));
        return Ok(CallContent { bodies: Vec::new(), headers: Vec::new(), recipe, notes });
    }
    let packed = packed(given, &items, &method, options)?;
    let bodies = match method.is_client_streaming() {
        true => vec![stream_of(&packed, StreamLimits::of(options))],
        false => packed,
    };
    let headers = fixed_fields(given, &metadata, &facts(&method), date)?;
    Ok(CallContent { bodies, headers, recipe: None, notes })
}

/// Note about call data without an action outside of control structures.
const UNEXECUTED: &str = "the call data contain {{if}}, {{range}} or {{with}}, but no action \
                          outside of them, so they are sent unchanged, as ghz does; to \
                          execute them, add an action such as {{$x := 1}}";

/// Returns the metadata if it is the same in all calls. Like ghz, this executes a template without
/// an action outside of control structures once, and sends it unchanged if execution fails.
fn fixed_fields(
    given: &GivenData,
    templates: &[(String, Template)],
    method: &MethodFacts,
    date: Date,
) -> Result<Vec<(String, String)>, String> {
    let mut random = seed(date).stream(Purpose::Scripts, 0);
    let mut data = CallData {
        method,
        worker: String::new(),
        number: 0,
        unix_ns: seed(date).0,
        utc_offset_s: date.utc_offset_s,
        uuid: uuid(&mut random),
        random,
    };
    let mut fields = Vec::new();
    for (name, value) in &given.metadata {
        let text = value.as_str().unwrap_or_default();
        let template = templates.iter().find(|(known, _)| *known == name.to_ascii_lowercase());
        let executed = template.and_then(|(_, template)| template.execute(&mut data).ok());
        fields.push(field(name, executed.as_deref().unwrap_or(text))?);
    }
    Ok(fields)
}

/// Returns the seed of a run that began at this time: nanoseconds since 1970.
fn seed(date: Date) -> Seed {
    Seed((date.unix_s * 1e9) as u64)
}

/// Returns the messages with their prefixes, if they are equal in all calls.
fn packed(
    given: &GivenData,
    items: &[String],
    method: &GrpcMethod,
    options: &Options,
) -> Result<Vec<Vec<u8>>, String> {
    let messages = match &given.binary {
        Some(bytes) => binary_messages(bytes, method)?,
        None => items.iter().map(|item| encode(method, item)).collect::<Result<Vec<_>, _>>()?,
    };
    if messages.is_empty() && !method.is_client_streaming() {
        return Err("no data provided for request".to_owned());
    }
    let most = options.max_send.unwrap_or(u64::MAX);
    let checked = messages.iter().try_for_each(|message| check_length(message, most));
    checked.map_err(|why| why.text())?;
    Ok(messages.iter().map(|message| pack(message, options.enable_compression)).collect())
}

fn facts(method: &GrpcMethod) -> MethodFacts {
    let (service, name) = (method.service(), method.name());
    MethodFacts {
        full_name: format!("{service}.{name}"),
        name: name.to_owned(),
        service: service.rsplit('.').next().unwrap_or_default().to_owned(),
        input: method.input_name(),
        output: method.output_name(),
        client_streaming: method.is_client_streaming(),
        server_streaming: method.is_server_streaming(),
    }
}

fn pack(message: &[u8], compressed: bool) -> Vec<u8> {
    if compressed { gzipped(message) } else { prefixed(message) }
}

/// Names of the workers. The worker of a call follows from the number of the call.
#[derive(Clone, Debug)]
pub(super) struct Workers {
    count: u64,
    connections: u64,
    prefix: String,
}

impl Workers {
    pub(super) fn of(options: &Options) -> Workers {
        Workers {
            count: options.concurrency.max(1),
            connections: options.connections.max(1),
            prefix: match options.name.as_str() {
                "" => String::new(),
                name => format!("{name}:"),
            },
        }
    }

    /// Returns the name of the worker of a call.
    pub(super) fn id(&self, number: u64) -> String {
        let worker = number % self.count;
        format!("{}g{worker}c{}", self.prefix, worker % self.connections)
    }
}

/// Options that limit the messages of a client's stream.
#[derive(Clone, Copy, Debug)]
struct StreamLimits {
    count: u64,
    interval: Nanos,
    duration: Nanos,
}

impl StreamLimits {
    fn of(options: &Options) -> StreamLimits {
        StreamLimits {
            count: options.stream_call_count,
            interval: options.stream_interval,
            duration: options.stream_call_duration,
        }
    }

    /// Returns the number of messages of a stream. `length`: number of different messages.
    fn length(self, length: usize) -> u64 {
        let count = match self.count {
            0 => length as u64,
            count => count.min(MESSAGES_MAX),
        };
        // without an interval all messages are sent at once, within any duration
        if self.interval.is_zero() || self.duration.is_zero() {
            return count;
        }
        count.min(self.duration.0.div_ceil(self.interval.0))
    }
}

/// Returns the messages of a stream, one after the other in turn.
fn stream_of(messages: &[Vec<u8>], limits: StreamLimits) -> Vec<u8> {
    let count = limits.length(messages.len());
    messages.iter().cycle().take(count as usize).flatten().copied().collect()
}

fn encode(method: &GrpcMethod, text: &str) -> Result<Vec<u8>, String> {
    let text = if text == "null" { "{}" } else { text };
    method
        .message(text.as_bytes())
        .map_err(|why| format!("Error creating message from data. Data: '{text}' Error: {}", why.0))
}

/// Returns a metadata field; the value of a `-bin` name is base64.
fn field(name: &str, value: &str) -> Result<(String, String), String> {
    let name = name.to_ascii_lowercase();
    if !name.ends_with("-bin") {
        return Ok((name, value.to_owned()));
    }
    let bytes = STANDARD.decode(value).map_err(|why| {
        let at = match why {
            base64::DecodeError::InvalidByte(at, _)
            | base64::DecodeError::InvalidLastSymbol(at, _) => at,
            _ => value.len(),
        };
        format!("illegal base64 data at input byte {at}")
    })?;
    Ok((name, STANDARD_NO_PAD.encode(bytes)))
}

/// Splits messages with varint lengths, or returns a single message.
fn binary_messages(bytes: &[u8], method: &GrpcMethod) -> Result<Vec<Vec<u8>>, String> {
    let wrong = |why: String| format!("Error creating message from binary data: {why}");
    if let Some(all) = counted(bytes)
        && all.iter().all(|message| method.check(message).is_ok())
    {
        return Ok(all);
    }
    method.check(bytes).map_err(|why| wrong(why.0))?;
    Ok(vec![bytes.to_vec()])
}

fn counted(mut bytes: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let mut length = 0u64;
        let mut shift = 0;
        loop {
            let (first, rest) = bytes.split_first()?;
            bytes = rest;
            length |= u64::from(first & 0x7f).checked_shl(shift)?;
            shift += 7;
            if first & 0x80 == 0 {
                break;
            }
        }
        let length = usize::try_from(length).ok()?;
        all.push(bytes.get(..length)?.to_vec());
        bytes = &bytes[length..];
    }
    Some(all)
}

impl Recipe {
    /// Returns the request of a call.
    ///
    /// # Errors
    /// Fails for call data that do not fit the message, or a message that is too long.
    pub(super) fn request(&self, number: u64, now: Nanos) -> Result<MadeRequest, RequestFault> {
        let after = (now.0 as f64 - self.date.at.0 as f64).max(0.0) as u64;
        let mut random = self.seed.stream(Purpose::Scripts, number);
        let mut data = CallData {
            method: &self.facts,
            worker: self.workers.id(number),
            number,
            unix_ns: self.seed.0.saturating_add(after),
            utc_offset_s: self.date.utc_offset_s,
            uuid: uuid(&mut random),
            random,
        };
        let mut headers = Vec::new();
        for (name, value) in &self.metadata {
            headers.push(field(name, &value.execute(&mut data)?)?);
        }
        let body = match &self.messages {
            RecipeMessages::Fixed(messages) => {
                self.chosen(messages, number).into_iter().flatten().copied().collect()
            }
            RecipeMessages::Whole(template) => {
                let pack = |item: &String| -> Result<Vec<u8>, RequestFault> {
                    let message = encode(&self.method, item)?;
                    check_length(&message, self.most)?;
                    Ok(pack(&message, self.compressed))
                };
                let items = items_of(template.execute(&mut data)?.trim_end())?;
                let packed = items.iter().map(pack).collect::<Result<Vec<_>, _>>()?;
                stream_of(&packed, self.limits)
            }
            RecipeMessages::Made(templates) => {
                let mut body = Vec::new();
                for template in self.chosen(templates, number) {
                    let message = encode(&self.method, &template.execute(&mut data)?)?;
                    check_length(&message, self.most)?;
                    body.extend(pack(&message, self.compressed));
                    if self.dynamic {
                        data.uuid = uuid(&mut data.random);
                    }
                }
                body
            }
        };
        Ok(MadeRequest { headers, body })
    }

    /// Returns the messages of call `number`: the next one in turn, or those of a stream.
    fn chosen<'a, T>(&self, all: &'a [T], number: u64) -> Vec<&'a T> {
        let length = all.len() as u64;
        if self.facts.client_streaming {
            let count = self.limits.length(all.len());
            return all.iter().cycle().take(count as usize).collect();
        }
        all.get((number % length.max(1)) as usize).into_iter().collect()
    }
}

/// Makes the makers of one run.
#[derive(Debug)]
pub(super) struct GhzMakers(pub(super) Arc<Recipe>);

#[derive(Debug)]
struct GhzMaker(Arc<Recipe>);

impl RequestMakers for GhzMakers {
    fn maker(&self) -> Box<dyn RequestMaker> {
        Box::new(GhzMaker(self.0.clone()))
    }
}

impl RequestMaker for GhzMaker {
    // the call then fails, and the face makes its request again for the reason
    fn make(&mut self, index: u64, now: Nanos) -> Option<MadeRequest> {
        self.0.request(index, now).ok()
    }
}
