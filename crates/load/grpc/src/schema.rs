//! Descriptors, methods and messages.

use prost_reflect::prost::Message;
use prost_reflect::{
    DescriptorPool, DynamicMessage, MessageDescriptor, MethodDescriptor, SerializeOptions,
};
use prost_types::FileDescriptorProto;
use protocol::grpc::{MessageCodec, messages, prefixed};
use protox::file::{File, FileResolver, GoogleFileResolver};
use std::fmt;
use units::quoted;

/// Maximum size of a `.proto` file or descriptor set in bytes.
const SCHEMA_BYTES_MAX: usize = 64 << 20;
/// Maximum number of names listed by an error.
const NAMES_MAX: usize = 8;

/// Reason why there is no request: one sentence for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaError(pub String);

impl fmt::Display for SchemaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SchemaError {}

fn error(text: impl Into<String>) -> SchemaError {
    SchemaError(text.into())
}

/// Services and messages by their descriptors.
#[derive(Clone, Debug)]
pub struct Schema {
    pool: DescriptorPool,
}

impl Schema {
    /// Builds the schema from a serialized FileDescriptorSet that includes its imports.
    ///
    /// # Errors
    /// Fails if the bytes are invalid, or the set lacks an import.
    pub fn from_set(bytes: &[u8]) -> Result<Schema, SchemaError> {
        if bytes.len() > SCHEMA_BYTES_MAX {
            return Err(error("the descriptor set is above 64 MiB"));
        }
        DescriptorPool::decode(bytes).map(|pool| Schema { pool }).map_err(|why| {
            error(format!(
                "it is not a usable FileDescriptorSet ({why}); make one with protoc \
                 --descriptor_set_out=FILE --include_imports"
            ))
        })
    }

    /// Builds the schema from the files that the server's reflection sends, in any order.
    ///
    /// # Errors
    /// Fails if an import is missing, or the files contradict each other.
    pub fn from_files(files: Vec<FileDescriptorProto>) -> Result<Schema, SchemaError> {
        let mut pool = DescriptorPool::new();
        pool.add_file_descriptor_protos(files)
            .map_err(|why| error(format!("the server's descriptors cannot be used: {why}")))?;
        Ok(Schema { pool })
    }

    /// Builds the schema from the `.proto` file `name`. `read` returns the text of a file by the
    /// name under which it is imported.
    ///
    /// # Errors
    /// Fails with the first error of the file or of an imported one, with its place.
    pub fn compile(
        name: &str,
        read: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Schema, SchemaError> {
        // all files are read before, because the compiler keeps its resolver for longer than a
        // borrow
        let files = Gathered(gather(name, read)?);
        let mut compiler = protox::Compiler::with_file_resolver(files);
        compiler.include_imports(true);
        compiler.open_file(name).map_err(located)?;
        Ok(Schema { pool: compiler.descriptor_pool() })
    }

    /// Merges schemas that may share files.
    ///
    /// # Errors
    /// Fails if the files contradict each other.
    pub fn merged<'a>(all: impl Iterator<Item = &'a Schema>) -> Result<Schema, SchemaError> {
        let mut files: Vec<FileDescriptorProto> = Vec::new();
        for file in all.flat_map(Schema::files) {
            if files.iter().all(|known| known.name() != file.name()) {
                files.push(file.clone());
            }
        }
        Schema::from_files(files)
    }

    /// Returns the files that describe the schema.
    pub fn files(&self) -> impl Iterator<Item = &FileDescriptorProto> {
        self.pool.file_descriptor_protos()
    }

    /// Returns the full names of the services.
    pub fn services(&self) -> impl Iterator<Item = String> {
        self.pool.services().map(|service| service.full_name().to_owned())
    }

    /// Returns its methods.
    pub fn methods(&self) -> impl Iterator<Item = GrpcMethod> {
        let services: Vec<_> = self.pool.services().collect();
        let all = services.into_iter().flat_map(|service| service.methods().collect::<Vec<_>>());
        all.map(|descriptor| GrpcMethod { descriptor })
    }

    /// Returns whether a service, method, message or enum has this full name.
    pub fn has_symbol(&self, name: &str) -> bool {
        let method = name.rsplit_once('.').is_some_and(|(service, method)| {
            let service = self.pool.get_service_by_name(service);
            service.is_some_and(|it| it.methods().any(|known| known.name() == method))
        });
        method
            || self.pool.get_service_by_name(name).is_some()
            || self.pool.get_message_by_name(name).is_some()
            || self.pool.get_enum_by_name(name).is_some()
    }

    /// Returns the descriptors as a serialized FileDescriptorSet.
    pub fn to_set(&self) -> Vec<u8> {
        self.pool.encode_to_vec()
    }

    /// Returns the method in the path of a URL: `/package.Service/Method`.
    ///
    /// # Errors
    /// Fails if the service or method does not exist; the message lists those that do.
    pub fn method(&self, path: &str) -> Result<GrpcMethod, SchemaError> {
        let (service, method) = split(path)?;
        let Some(found) = self.pool.get_service_by_name(service) else {
            let known = self.pool.services().map(|service| service.full_name().to_owned());
            return Err(unknown("service", service, known.collect()));
        };
        let descriptor = found.methods().find(|known| known.name() == method);
        descriptor.map(|descriptor| GrpcMethod { descriptor }).ok_or_else(|| {
            let known = found.methods().map(|known| known.name().to_owned());
            unknown("method", method, known.collect())
        })
    }
}

/// Splits a path into service and method.
///
/// # Errors
/// Fails if the path is not of the form `/package.Service/Method`.
pub(crate) fn split(path: &str) -> Result<(&str, &str), SchemaError> {
    let trimmed = path.trim_start_matches('/');
    trimmed
        .split_once('/')
        .filter(|(service, method)| !service.is_empty() && !method.is_empty())
        .ok_or_else(|| {
            error(format!("{} names no method; write /package.Service/Method", quoted(path)))
        })
}

fn unknown(kind: &str, name: &str, mut known: Vec<String>) -> SchemaError {
    known.sort_by_key(|known| (distance(known, name), known.clone()));
    let more = known.len().saturating_sub(NAMES_MAX);
    known.truncate(NAMES_MAX);
    let list = match known.is_empty() {
        true => "none".to_owned(),
        false => known.join(", "),
    };
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    error(format!("there is no {kind} {}; known: {list}{rest}", quoted(name)))
}

/// Returns the number of letters to change to make one name from the other (Levenshtein), ignoring
/// case.
fn distance(a: &str, b: &str) -> usize {
    let letters = |text: &str| text.to_lowercase().chars().take(200).collect::<Vec<_>>();
    let (a, b) = (letters(a), letters(b));
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(row[j + 1] + 1);
        }
    }
    row[b.len()]
}

/// Files that were read and parsed before the compiler runs.
struct Gathered(Vec<(String, File)>);

impl FileResolver for Gathered {
    fn open_file(&self, name: &str) -> Result<File, protox::Error> {
        match self.0.iter().find(|(known, _)| known == name) {
            Some((_, file)) => Ok(file.clone()),
            None => GoogleFileResolver::new().open_file(name),
        }
    }
}

/// Reads a file and its imports, except for files of google.protobuf, which the compiler includes.
fn gather(
    name: &str,
    read: &dyn Fn(&str) -> Option<String>,
) -> Result<Vec<(String, File)>, SchemaError> {
    let mut files: Vec<(String, File)> = Vec::new();
    let mut waiting = vec![name.to_owned()];
    while let Some(name) = waiting.pop() {
        if files.iter().any(|(known, _)| *known == name) {
            continue;
        }
        let Some(text) = read(&name) else {
            GoogleFileResolver::new().open_file(&name).map_err(located)?;
            continue;
        };
        if text.len() > SCHEMA_BYTES_MAX {
            return Err(error(format!("{} is above 64 MiB", quoted(&name))));
        }
        let file = File::from_source(&name, &text).map_err(located)?;
        waiting.extend(file.file_descriptor_proto().dependency.iter().cloned());
        files.push((name, file));
    }
    Ok(files)
}

/// Formats a compiler error with file, line and column.
fn located(why: protox::Error) -> SchemaError {
    if why.is_file_not_found() {
        return error(format!("{why}; name its folder with --proto-path"));
    }
    // the long form of most errors begins with file, line and column
    let text = format!("{why:?}").lines().next().unwrap_or_default().to_owned();
    match why.file() {
        Some(file) if !text.contains(file) => error(format!("{file}: {text}")),
        _ => error(text),
    }
}

/// Method of a service.
#[derive(Clone, Debug)]
pub struct GrpcMethod {
    descriptor: MethodDescriptor,
}

/// Returns the numbers of the fields that `name` lists, in a message of this type.
fn field_place(message: &MessageDescriptor, name: &str) -> Result<Vec<u32>, SchemaError> {
    let mut place = Vec::new();
    let mut within = Some(message.clone());
    for part in name.split('.') {
        let known = within.take().and_then(|message| message.get_field_by_name(part));
        let Some(field) = known.filter(|field| !field.is_list() && !field.is_map()) else {
            return Err(error(format!(
                "{} has no single field {}",
                message.full_name(),
                quoted(name)
            )));
        };
        place.push(field.number());
        within = field.kind().as_message().cloned();
    }
    match within {
        None => Ok(place),
        Some(inner) => Err(error(format!(
            "{} is a message; name one of the fields of {}",
            quoted(name),
            inner.full_name()
        ))),
    }
}

impl GrpcMethod {
    /// Returns service and method as in `:path` of a request.
    pub fn path(&self) -> String {
        format!("/{}/{}", self.descriptor.parent_service().full_name(), self.descriptor.name())
    }

    /// Returns the full name of the service.
    pub fn service(&self) -> String {
        self.descriptor.parent_service().full_name().to_owned()
    }

    pub fn name(&self) -> &str {
        self.descriptor.name()
    }

    /// Returns the name of the request's message, without its package.
    pub fn input_name(&self) -> String {
        self.descriptor.input().name().to_owned()
    }

    /// Returns the name of the response's message, without its package.
    pub fn output_name(&self) -> String {
        self.descriptor.output().name().to_owned()
    }

    /// Checks the bytes of a request message.
    ///
    /// # Errors
    /// Fails if the bytes are not such a message.
    pub fn check(&self, message: &[u8]) -> Result<(), SchemaError> {
        let decoded = DynamicMessage::decode(self.descriptor.input(), message);
        decoded.map(drop).map_err(|why| error(why.to_string()))
    }

    /// Returns whether the client may send several messages.
    pub fn is_client_streaming(&self) -> bool {
        self.descriptor.is_client_streaming()
    }

    /// Returns whether the server may send several messages.
    pub fn is_server_streaming(&self) -> bool {
        self.descriptor.is_server_streaming()
    }

    /// Returns whether the client or the server may send several messages.
    pub fn has_stream(&self) -> bool {
        self.is_client_streaming() || self.is_server_streaming()
    }

    /// Returns the field numbers of a field of requests and of responses, outer fields first;
    /// `name`: names separated by dots.
    ///
    /// # Errors
    /// Fails if one of them has no such field, or its values cannot be compared.
    pub fn field_places(&self, name: &str) -> Result<(Vec<u32>, Vec<u32>), SchemaError> {
        let request = field_place(&self.descriptor.input(), name)?;
        Ok((request, field_place(&self.descriptor.output(), name)?))
    }

    /// Builds the body of a request from a JSON message, or from a list of them for a client
    /// stream; `None` for an empty message.
    ///
    /// # Errors
    /// Fails if the text is not JSON, or does not fit the message; the error names the place.
    pub fn request(&self, json: Option<&[u8]>) -> Result<Vec<u8>, SchemaError> {
        let Some(json) = json else { return Ok(prefixed(&[])) };
        let first = json.iter().find(|byte| !byte.is_ascii_whitespace());
        if first != Some(&b'[') {
            return Ok(prefixed(&self.message(json)?));
        }
        let items: Vec<serde_json::Value> =
            serde_json::from_slice(json).map_err(|why| error(format!("it is not JSON: {why}")))?;
        if items.len() != 1 && !self.is_client_streaming() {
            return Err(error(format!(
                "{} takes one message, and the list has {}",
                self.path(),
                items.len()
            )));
        }
        let mut body = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let message = self.message(item.to_string().as_bytes());
            let message = message.map_err(|why| error(format!("message {}: {why}", index + 1)))?;
            body.extend(prefixed(&message));
        }
        Ok(body)
    }

    /// Builds the bytes of one message of a request, from JSON.
    ///
    /// # Errors
    /// Fails like [`GrpcMethod::request`].
    pub fn message(&self, json: &[u8]) -> Result<Vec<u8>, SchemaError> {
        let input = self.descriptor.input();
        let name = input.full_name().to_owned();
        let mut reader = serde_json::Deserializer::from_slice(json);
        let mut track = serde_path_to_error::Track::new();
        let tracked = serde_path_to_error::Deserializer::new(&mut reader, &mut track);
        let message = DynamicMessage::deserialize(input, tracked);
        let message = message.map_err(|why| {
            let path = track.path().to_string();
            let place = if path == "." { String::new() } else { format!(" at {}", quoted(&path)) };
            error(format!("it does not fit {name}{place}: {why}"))
        })?;
        reader.end().map_err(|why| error(format!("it is not JSON: {why}")))?;
        Ok(message.encode_to_vec())
    }

    /// Converts a message of the response to JSON, with the field names of the `.proto` file.
    ///
    /// # Errors
    /// Fails if the bytes are not such a message.
    pub fn response_json(&self, message: &[u8]) -> Result<String, SchemaError> {
        self.json(message, &SerializeOptions::new().use_proto_field_name(true))
    }

    /// Returns a message of the response as JSON with all its fields, those with default values
    /// included, under their names in JSON.
    ///
    /// # Errors
    /// Fails if the bytes are not a valid message of the response type.
    pub fn whole_json(&self, message: &[u8]) -> Result<String, SchemaError> {
        self.json(message, &SerializeOptions::new().skip_default_fields(false))
    }

    fn json(&self, message: &[u8], options: &SerializeOptions) -> Result<String, SchemaError> {
        let decoded = DynamicMessage::decode(self.descriptor.output(), message)
            .map_err(|why| error(format!("the response does not decode: {why}")))?;
        json_of(&decoded, options)
    }

    /// Returns a request message as JSON, with the JSON names of its fields.
    ///
    /// # Errors
    /// Fails if the bytes are not a valid message of the request type.
    pub fn request_json(&self, message: &[u8]) -> Result<String, SchemaError> {
        let decoded = DynamicMessage::decode(self.descriptor.input(), message)
            .map_err(|why| error(format!("the request does not decode: {why}")))?;
        json_of(&decoded, &SerializeOptions::new())
    }
}

fn json_of(message: &DynamicMessage, options: &SerializeOptions) -> Result<String, SchemaError> {
    let mut out = Vec::new();
    let mut writer = serde_json::Serializer::new(&mut out);
    message
        .serialize_with_options(&mut writer, options)
        .map_err(|why| error(format!("the message is not JSON: {why}")))?;
    Ok(String::from_utf8_lossy(&out).into_owned())
}

impl MessageCodec for GrpcMethod {
    fn request_body(&self, json: Option<&str>) -> Result<Vec<u8>, String> {
        self.request(json.map(str::as_bytes)).map_err(|why| why.0)
    }

    fn response_json(&self, body: &[u8]) -> Result<String, String> {
        let all = messages(body)
            .ok_or("the response's messages are cut off, or do not decompress with gzip")?;
        let json = |message: &[u8]| GrpcMethod::response_json(self, message).map_err(|why| why.0);
        if !self.is_server_streaming() {
            return all.first().map_or(Ok(String::new()), |message| json(message));
        }
        let texts = all.iter().map(|message| json(message)).collect::<Result<Vec<_>, _>>()?;
        Ok(format!("[{}]", texts.join(",")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHOP: &str = r#"
        syntax = "proto3";
        package shop.v1;
        import "shop/item.proto";
        import "google/protobuf/timestamp.proto";
        service Cart {
            rpc Add(AddRequest) returns (AddReply);
            rpc Upload(stream AddRequest) returns (AddReply);
            rpc Watch(AddRequest) returns (stream AddReply);
        }
        message AddRequest { Item item = 1; uint32 count = 2; google.protobuf.Timestamp at = 3; }
        message AddReply { int64 total_cents = 1; }
    "#;
    const ITEM: &str =
        r#"syntax = "proto3"; package shop.v1; message Item { string name = 1; bytes tag = 2; }"#;

    fn read(name: &str) -> Option<String> {
        match name {
            "shop.proto" => Some(SHOP.to_owned()),
            "shop/item.proto" => Some(ITEM.to_owned()),
            "bad.proto" => Some("syntax = \"proto3\";\nmessage A { strin x = 1; }".to_owned()),
            "torn.proto" => Some("syntax = \"proto3\";\nmessage A {".to_owned()),
            "lonely.proto" => Some("syntax = \"proto3\"; import \"gone.proto\";".to_owned()),
            _ => None,
        }
    }

    fn shop() -> Schema {
        Schema::compile("shop.proto", &read).expect("the file compiles")
    }

    #[test]
    fn a_message_in_json_becomes_its_bytes() {
        let add = shop().method("/shop.v1.Cart/Add").unwrap();
        let body = add.request(Some(br#"{"item": {"name": "tea", "tag": "AQI="}, "count": 3}"#));
        let body = body.unwrap();
        let message = [0x0a, 0x09, 0x0a, 0x03, b't', b'e', b'a', 0x12, 0x02, 1, 2, 0x10, 3];
        assert_eq!(body, prefixed(&message));
        assert_eq!(add.request(None).unwrap(), [0; 5]);
        assert_eq!(add.request(Some(b"{}")).unwrap(), [0; 5]);
        // both spellings of a field, and well-known types in their JSON form
        for json in [r#"{"at": "2026-01-01T00:00:00Z"}"#, r#" [{"count": 1}] "#] {
            add.request(Some(json.as_bytes())).unwrap();
        }
        assert_eq!(add.response_json(&[8, 0x96, 1]).unwrap(), r#"{"total_cents":"150"}"#);
        assert_eq!(add.whole_json(&[]).unwrap(), r#"{"totalCents":"0"}"#);
        assert!(add.response_json(&[8]).is_err());
    }

    #[test]
    fn a_list_of_messages_is_for_streams_of_the_client() {
        let schema = shop();
        let upload = schema.method("/shop.v1.Cart/Upload").unwrap();
        assert!(upload.is_client_streaming() && !upload.is_server_streaming());
        let body = upload.request(Some(br#"[{"count": 1}, {"count": 2}]"#)).unwrap();
        assert_eq!(body, [prefixed(&[0x10, 1]), prefixed(&[0x10, 2])].concat());
        assert_eq!(upload.request(Some(b"[]")).unwrap(), b"");
        let watch = schema.method("/shop.v1.Cart/Watch").unwrap();
        assert!(watch.is_server_streaming());
        let why = watch.request(Some(br#"[{}, {}]"#)).unwrap_err();
        assert_eq!(why.0, "/shop.v1.Cart/Watch takes one message, and the list has 2");
        let why = upload.request(Some(br#"[{}, {"count": "many"}]"#)).unwrap_err();
        assert!(
            why.0.starts_with("message 2: it does not fit shop.v1.AddRequest at \"count\""),
            "{why}"
        );
    }

    #[test]
    fn json_that_does_not_fit_names_the_place() {
        let add = shop().method("/shop.v1.Cart/Add").unwrap();
        for (json, parts) in [
            (r#"{"item": {"nam": "x"}}"#, ["shop.v1.AddRequest at \"item\"", "nam"]),
            (r#"{"count": -1}"#, ["at \"count\"", "line 1"]),
            (r#"{"count": 1"#, ["EOF", "line 1"]),
            ("nonsense", ["shop.v1.AddRequest", "line 1"]),
            ("{} {}", ["it is not JSON", "trailing"]),
            ("", ["shop.v1.AddRequest", "EOF"]),
        ] {
            let why = add.request(Some(json.as_bytes())).unwrap_err().0;
            assert!(parts.iter().all(|part| why.contains(part)), "{json}: {why}");
        }
    }

    #[test]
    fn unknown_names_list_the_nearest() {
        let schema = shop();
        let why = schema.method("/shop.v1.Kart/Add").unwrap_err().0;
        assert_eq!(why, "there is no service \"shop.v1.Kart\"; known: shop.v1.Cart");
        let why = schema.method("/shop.v1.Cart/ad").unwrap_err().0;
        assert_eq!(why, "there is no method \"ad\"; known: Add, Upload, Watch");
        for path in ["/", "/shop.v1.Cart", "/shop.v1.Cart/", "//Add"] {
            assert!(
                schema.method(path).unwrap_err().0.contains("/package.Service/Method"),
                "{path}"
            );
        }
    }

    #[test]
    fn faults_of_proto_files_name_the_file() {
        for (file, part) in [
            ("bad.proto", "strin"),
            ("torn.proto", "torn.proto"),
            ("lonely.proto", "gone.proto"),
            ("none.proto", "none.proto"),
        ] {
            let why = Schema::compile(file, &read).unwrap_err().0;
            assert!(why.contains(part), "{file}: {why}");
        }
    }

    #[test]
    fn a_schema_survives_its_descriptor_set() {
        let set = shop().to_set();
        let again = Schema::from_set(&set).unwrap();
        assert!(again.method("/shop.v1.Cart/Add").is_ok());
        for cut in 0..set.len() {
            // no panic, even with missing fields
            let _schema = Schema::from_set(&set[..cut]);
        }
        assert!(Schema::from_set(b"\xff\xff").unwrap_err().0.contains("--include_imports"));
    }
}
