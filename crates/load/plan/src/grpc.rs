//! Calls of gRPC: what is sent, how its bytes are found, and which status is expected.

use crate::{HttpVersion, Plan, Streaming};
use protocol::grpc::CONTENT_TYPE;
pub use protocol::grpc::Code as GrpcCode;

/// gRPC settings of a plan. The method is the path of the URL, `/package.Service/Method`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GrpcPlan {
    /// The request as JSON; a list of several messages for a client stream. `None`: an empty message, or
    /// the request's body as it is.
    pub message: Option<Vec<u8>>,
    /// A FileDescriptorSet that describes the method; `None`: the server is asked by reflection.
    pub descriptors: Option<Vec<u8>>,
    /// Status codes that are as expected; empty: OK.
    pub status: Vec<u8>,
}

impl GrpcPlan {
    /// Returns whether a call with this status succeeded.
    pub fn expects(&self, code: GrpcCode) -> bool {
        match self.status.as_slice() {
            [] => code == GrpcCode::Ok,
            expected => expected.contains(&code.number()),
        }
    }
}

/// The URL over which calls to a `grpc://` or `grpcs://` URL go; `None`: it is another one.
pub fn http_url(text: &str) -> Option<String> {
    let (scheme, rest) = text.trim().split_once("://")?;
    match scheme.to_ascii_lowercase().as_str() {
        "grpc" => Some(format!("http://{rest}")),
        "grpcs" => Some(format!("https://{rest}")),
        _ => None,
    }
}

/// Fields of every request of gRPC.
const FIELDS: [(&str, &str); 2] = [("content-type", CONTENT_TYPE), ("te", "trailers")];

impl Plan {
    /// The calls are of gRPC.
    pub fn is_grpc(&self) -> bool {
        self.measure.stream == Some(Streaming::Grpc)
    }

    /// Makes the calls to the plan's URLs calls of gRPC: POST over HTTP/2, with the fields that the
    /// protocol demands.
    pub fn use_grpc(&mut self) {
        self.measure.stream = Some(Streaming::Grpc);
        self.request.version = HttpVersion::Http2;
        self.request.method = "POST".to_owned();
        for (name, value) in FIELDS {
            if !self.request.headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name)) {
                self.request.headers.push((name.to_owned(), value.to_owned()));
            }
        }
    }
}
