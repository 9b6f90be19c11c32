//! The server's reflection service: requests, and the descriptors in its responses
//! (`grpc/reflection/v1/reflection.proto`; `v1alpha` has the same messages).

use crate::schema::split;
use crate::{Schema, SchemaError};
use prost::Message;
use prost_types::FileDescriptorProto;
use protocol::grpc::{messages, prefixed};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// Paths of the service, newest first.
pub const PATHS: [&str; 2] = [
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
];

/// Maximum number of requests for the descriptors of one service.
pub const QUESTIONS_MAX: usize = 100;
/// Maximum number of files that a server may send; more are refused.
const FILES_MAX: usize = 10_000;

/// Subset of the message fields that is used here.
#[derive(Clone, PartialEq, Message)]
struct Question {
    #[prost(oneof = "question::QuestionKind", tags = "3, 4, 7")]
    kind: Option<question::QuestionKind>,
}

mod question {
    #[derive(Clone, PartialEq, prost::Oneof)]
    pub(super) enum QuestionKind {
        #[prost(string, tag = "3")]
        FileByFilename(String),
        #[prost(string, tag = "4")]
        FileContainingSymbol(String),
        #[prost(string, tag = "7")]
        ListServices(String),
    }
}

#[derive(Clone, PartialEq, Message)]
struct ReflectionAnswer {
    #[prost(message, optional, tag = "4")]
    files: Option<FileAnswer>,
    #[prost(message, optional, tag = "6")]
    services: Option<ServiceAnswer>,
    #[prost(message, optional, tag = "7")]
    error: Option<ErrorAnswer>,
}

#[derive(Clone, PartialEq, Message)]
struct FileAnswer {
    #[prost(bytes = "vec", repeated, tag = "1")]
    descriptors: Vec<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
struct ServiceAnswer {
    #[prost(message, repeated, tag = "1")]
    services: Vec<ServiceName>,
}

#[derive(Clone, PartialEq, Message)]
struct ServiceName {
    #[prost(string, tag = "1")]
    name: String,
}

#[derive(Clone, PartialEq, Message)]
struct ErrorAnswer {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
}

/// Returns the body of a request for the list of services.
pub fn list_request() -> Vec<u8> {
    let kind = Some(question::QuestionKind::ListServices(String::new()));
    prefixed(&Question { kind }.encode_to_vec())
}

/// Returns the names of the services in the response to [`list_request`], without those of gRPC
/// itself.
///
/// # Errors
/// Fails for a body that is not such a response.
pub fn services(body: &[u8]) -> Result<Vec<String>, SchemaError> {
    let mut names = Vec::new();
    for message in reflected(body)? {
        let answer = ReflectionAnswer::decode(&*message)
            .map_err(|why| SchemaError(format!("the server's reflection is malformed: {why}")))?;
        names.extend(answer.services.unwrap_or_default().services.into_iter().map(|it| it.name));
    }
    names.retain(|name| !name.starts_with("grpc.reflection."));
    names.truncate(FILES_MAX);
    Ok(names)
}

/// Asks a server for the descriptors of one service, a body at a time: [`Inquiry::question`] is
/// sent, [`Inquiry::process`] takes the response, until there are no more questions.
#[derive(Clone, Debug)]
pub struct Inquiry {
    service: String,
    files: Vec<FileDescriptorProto>,
    wanted: BTreeSet<String>,
    begun: bool,
    /// The server does not know the service: its list of services is requested.
    lists: bool,
}

impl Inquiry {
    /// Starts an inquiry about the service in a path.
    ///
    /// # Errors
    /// Fails if the path is not of the form `/package.Service/Method`.
    pub fn for_service(path: &str) -> Result<Inquiry, SchemaError> {
        let (service, _) = split(path)?;
        Ok(Inquiry {
            service: service.to_owned(),
            files: Vec::new(),
            wanted: BTreeSet::new(),
            begun: false,
            lists: false,
        })
    }

    /// Returns the body of the next request, or `None` if all descriptors have been received.
    pub fn question(&self) -> Option<Vec<u8>> {
        use question::QuestionKind;
        let kinds: Vec<QuestionKind> = match (self.lists, self.begun) {
            (true, _) => vec![QuestionKind::ListServices(String::new())],
            (false, false) => vec![QuestionKind::FileContainingSymbol(self.service.clone())],
            (false, true) => {
                self.wanted.iter().cloned().map(QuestionKind::FileByFilename).collect()
            }
        };
        let body = |kind| prefixed(&Question { kind: Some(kind) }.encode_to_vec());
        (!kinds.is_empty()).then(|| kinds.into_iter().flat_map(body).collect())
    }

    /// Processes the body of a response.
    ///
    /// # Errors
    /// Fails if the body is not such a response, or the server does not know the service; then the
    /// error lists the services that it knows.
    pub fn process(&mut self, body: &[u8]) -> Result<(), SchemaError> {
        let asked = std::mem::take(&mut self.wanted);
        for message in reflected(body)? {
            let answer = ReflectionAnswer::decode(&*message).map_err(|why| {
                SchemaError(format!("the server's reflection is malformed: {why}"))
            })?;
            if let Some(services) = answer.services {
                return Err(self.unknown(services));
            }
            if let Some(fault) = answer.error {
                if !self.begun {
                    self.lists = true;
                    return Ok(());
                }
                let text = format!("the server's reflection failed: {}", fault.message);
                return Err(SchemaError(text));
            }
            for bytes in answer.files.unwrap_or_default().descriptors {
                self.take(&bytes)?;
            }
        }
        if self.files.is_empty() || asked.iter().any(|name| !self.has(name)) {
            return Err(SchemaError("the server's reflection sent no descriptor".to_owned()));
        }
        self.begun = true;
        let imports = self.files.iter().flat_map(|file| &file.dependency);
        self.wanted = imports.filter(|name| !self.has(name)).cloned().collect();
        Ok(())
    }

    fn has(&self, name: &str) -> bool {
        self.files.iter().any(|file| file.name() == name)
    }

    fn take(&mut self, bytes: &[u8]) -> Result<(), SchemaError> {
        let file = FileDescriptorProto::decode(bytes)
            .map_err(|why| SchemaError(format!("the server's reflection is malformed: {why}")))?;
        if self.files.len() >= FILES_MAX {
            return Err(SchemaError("the server's reflection sends more than 10,000 files".into()));
        }
        if !self.has(file.name()) {
            self.files.push(file);
        }
        Ok(())
    }

    fn unknown(&self, services: ServiceAnswer) -> SchemaError {
        let names: Vec<String> = services.services.into_iter().map(|it| it.name).collect();
        SchemaError(format!(
            "the server has no service {}; it has {}",
            units::quoted(&self.service),
            if names.is_empty() { "none".to_owned() } else { names.join(", ") }
        ))
    }

    /// Returns the result of the inquiry.
    ///
    /// # Errors
    /// Fails if the descriptors contradict each other.
    pub fn schema(self) -> Result<Schema, SchemaError> {
        Schema::from_files(self.files)
    }
}

/// Builds the response body to `body`, for a server that has the services of `schema`: the
/// descriptors of all its files, or its services.
///
/// # Errors
/// Fails if the body is not such a request.
pub fn answer(body: &[u8], schema: &Schema) -> Result<Vec<u8>, SchemaError> {
    let mut out = Vec::new();
    for message in reflected(body)? {
        let question = Question::decode(&*message)
            .map_err(|why| SchemaError(format!("the request is malformed: {why}")))?;
        let files = || {
            let descriptors = schema.files().map(Message::encode_to_vec).collect();
            ReflectionAnswer {
                files: Some(FileAnswer { descriptors }),
                ..ReflectionAnswer::default()
            }
        };
        let answer = match question.kind {
            Some(question::QuestionKind::ListServices(_)) => {
                let services = schema.services().map(|name| ServiceName { name }).collect();
                ReflectionAnswer {
                    services: Some(ServiceAnswer { services }),
                    ..ReflectionAnswer::default()
                }
            }
            Some(question::QuestionKind::FileContainingSymbol(name))
                if schema.has_symbol(&name) =>
            {
                files()
            }
            Some(question::QuestionKind::FileByFilename(name))
                if schema.files().any(|file| file.name() == name) =>
            {
                files()
            }
            _ => {
                let error = ErrorAnswer { code: 5, message: "not found".to_owned() };
                ReflectionAnswer { error: Some(error), ..ReflectionAnswer::default() }
            }
        };
        out.extend(prefixed(&answer.encode_to_vec()));
    }
    Ok(out)
}

/// Splits a body into its messages.
fn reflected(body: &[u8]) -> Result<Vec<Cow<'_, [u8]>>, SchemaError> {
    let torn = "the server's reflection response is cut off or does not decompress";
    messages(body).ok_or_else(|| SchemaError(torn.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use prost_reflect::DescriptorPool;

    fn files() -> Vec<FileDescriptorProto> {
        let read = |name: &str| {
            match name {
            "a.proto" => Some(
                "syntax = \"proto3\"; package p; import \"b.proto\"; service S { rpc M(B) returns (B); }"
                    .to_owned(),
            ),
            "b.proto" => Some("syntax = \"proto3\"; package p; message B {}".to_owned()),
            _ => None,
        }
        };
        let set = Schema::compile("a.proto", &read).unwrap().to_set();
        let pool = DescriptorPool::decode(set.as_slice()).unwrap();
        pool.file_descriptor_protos().cloned().collect()
    }

    fn sent(names: &[&str]) -> Vec<u8> {
        let files = files();
        let descriptors = files.iter().filter(|file| names.contains(&file.name()));
        let descriptors = descriptors.map(Message::encode_to_vec).collect();
        let files = Some(FileAnswer { descriptors });
        prefixed(&ReflectionAnswer { files, ..ReflectionAnswer::default() }.encode_to_vec())
    }

    #[test]
    fn imports_are_requested_until_complete() {
        let mut inquiry = Inquiry::for_service("/p.S/M").unwrap();
        // 22 03 "p.S": field 4, file_containing_symbol
        assert_eq!(inquiry.question().unwrap(), prefixed(b"\x22\x03p.S"));
        inquiry.process(&sent(&["a.proto"])).unwrap();
        assert_eq!(inquiry.question().unwrap(), prefixed(b"\x1a\x07b.proto"));
        inquiry.process(&sent(&["b.proto"])).unwrap();
        assert_eq!(inquiry.question(), None);
        assert!(inquiry.schema().unwrap().method("/p.S/M").is_ok());
    }

    #[test]
    fn a_server_may_send_all_files_at_once() {
        let mut inquiry = Inquiry::for_service("/p.S/M").unwrap();
        inquiry.process(&sent(&["a.proto", "b.proto"])).unwrap();
        assert_eq!(inquiry.question(), None);
    }

    #[test]
    fn an_unknown_service_lists_those_of_the_server() {
        let mut inquiry = Inquiry::for_service("/p.T/M").unwrap();
        let error = Some(ErrorAnswer { code: 5, message: "not found".to_owned() });
        inquiry
            .process(&prefixed(
                &ReflectionAnswer { error, ..ReflectionAnswer::default() }.encode_to_vec(),
            ))
            .unwrap();
        assert_eq!(inquiry.question().unwrap(), prefixed(b"\x3a\x00"));
        let services = vec![ServiceName { name: "p.S".to_owned() }];
        let services = Some(ServiceAnswer { services });
        let body =
            prefixed(&ReflectionAnswer { services, ..ReflectionAnswer::default() }.encode_to_vec());
        let why = inquiry.process(&body).unwrap_err();
        assert_eq!(why.0, "the server has no service \"p.T\"; it has p.S");
    }

    #[test]
    fn our_server_describes_itself_to_our_client() {
        let schema = Schema::from_files(files()).unwrap();
        let mut inquiry = Inquiry::for_service("/p.S/M").unwrap();
        while let Some(question) = inquiry.question() {
            inquiry.process(&answer(&question, &schema).unwrap()).unwrap();
        }
        assert!(inquiry.schema().unwrap().method("/p.S/M").is_ok());
        let mut inquiry = Inquiry::for_service("/p.Q/M").unwrap();
        inquiry.process(&answer(&inquiry.question().unwrap(), &schema).unwrap()).unwrap();
        let list = answer(&list_request(), &schema).unwrap();
        assert_eq!(list, answer(&inquiry.question().unwrap(), &schema).unwrap());
        assert_eq!(services(&list).unwrap(), ["p.S"]);
        assert!(inquiry.process(&list).unwrap_err().0.ends_with("it has p.S"));
        assert!(answer(b"\0\0\0\0\x01\xff", &schema).is_err());
    }

    #[test]
    fn malformed_responses_are_refused() {
        for body in [&b""[..], b"\0\0\0\0", b"\0\0\0\0\x05abc", b"\0\0\0\0\x01\xff", b"\0\0\0\0\0"]
        {
            let mut inquiry = Inquiry::for_service("/p.S/M").unwrap();
            assert!(inquiry.process(body).is_err(), "{body:?}");
        }
        // a server that sends a file other than the requested one causes no endless loop
        let mut inquiry = Inquiry::for_service("/p.S/M").unwrap();
        inquiry.process(&sent(&["a.proto"])).unwrap();
        assert!(inquiry.process(&sent(&["a.proto"])).is_err());
    }
}
