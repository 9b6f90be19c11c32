//! The contract between load, counting and report: due calls, their outcomes, and the party to
//! blame for failures. Layer 1: plain data without behavior beyond names.
#![forbid(unsafe_code)]

mod body;
mod ends;
mod environment;
mod failure;
mod fleet;
mod held;
mod http2;
mod http3;
mod life;
mod load_report;
mod messages;
mod path;
mod posts;
mod remark;
mod stack;
mod sut;
mod tokens;

pub use body::{BodyPrint, WrongBody};
pub use ends::{ConnectionRecord, Ends, SessionRecord};
pub use environment::Environment;
pub use failure::{Blame, FailureClass};
pub use fleet::{
    AgentFacts, AgentNow, AgentState, BudgetFacts, FleetFacts, PartMove, RefusedFacts,
};
pub use held::HeldFacts;
pub use http2::{Http2Facts, VIOLATIONS_MAX, http2_code, http2_code_name};
pub use http3::{
    EarlyFacts, Http3Facts, MigrationFacts, QuicEnd, QuicFacts, http3_code, http3_code_name,
};
pub use life::{Death, Ending, Process, ServerState, together};
pub use load_report::LoadReport;
pub use messages::{FanOutEvent, SocketClose, SocketCounts, SocketTime};
pub use path::{PathDirection, PathFacts, PathKind};
pub use posts::PostFacts;
pub use remark::{Noticed, Remark};
pub use stack::{AddressConflict, StackFacts};
use std::any::Any;
use std::sync::Arc;
pub use sut::{Fullness, SutRow, SutSeries};
pub use tokens::TokenFacts;
use units::Nanos;

/// Unit of work that becomes due: the schedule computes index and instant, which are never read
/// from a clock. It exists even if no request is sent for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    pub index: u64,
    pub intended: Nanos,
}

/// Outcome of an arrival. Exactly one per arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Outcome {
    /// Complete response that met every expectation.
    Succeeded,
    /// The response was unacceptable or missing; the class has the reason.
    Failed,
    /// The call was not done within its limit; recorded at its full age.
    TimedOut,
    /// Due, but never issued: a limit of the plan or of this machine was reached. Has no time.
    Dropped,
    /// Issued, but the run was stopped first.
    Abandoned,
}

/// Record of one call, created when its outcome is known.
///
/// All instants are from the driver's monotonic clock; an instant that was not reached is zero.
#[derive(Clone, Debug, Default)]
pub struct Sample {
    pub index: u64,
    /// Row of the target list.
    pub target: u32,
    /// Number of the user or session of the call; `None` in a plain open load.
    pub user: Option<u64>,
    /// Due instant of the call.
    pub intended: Nanos,
    /// Instant at which the worker started on the call: lookup or connect or, on an idle
    /// connection, the write of the first request byte.
    pub issued: Nanos,
    /// Instant at which a connection became free for the call; `wait` = this − intended, `lag` =
    /// issued − this. Over HTTP/3 it may be later than `issued`, if an issued call waited for a
    /// stream; then there is no lag.
    pub admitted: Nanos,
    /// Instant at which the first request byte was written.
    pub sent: Nanos,
    /// Instant at which the last request byte was written; zero if the whole request was written at
    /// once.
    pub written: Nanos,
    /// Instant at which the first byte of the response was read.
    pub first_byte: Nanos,
    /// Instant at which the outcome was known.
    pub done: Nanos,
    /// Connect and handshake times, if this call opened the connection of its final response.
    /// Connections that it left at a redirect have these times only in the totals.
    pub connect: Option<Nanos>,
    pub tls: Option<Nanos>,
    /// Status code of the final response; 0 without one.
    pub status: u16,
    pub class: Option<FailureClass>,
    /// The response left its connection open for another call.
    pub persistent: bool,
    /// Bytes of this call passed to the transport (plaintext).
    pub bytes_sent: u64,
    /// Bytes of its responses, including heads and framing (plaintext).
    pub bytes_received: u64,
    /// Bytes of heads among them, and of trailers with the empty line that ends them (chunked
    /// responses only).
    pub head_bytes: u64,
    pub trailer_bytes: u64,
    /// Bytes of body as framed by HTTP, and after content decoding.
    pub body_bytes: u64,
    pub decoded_bytes: u64,
    /// Redirects followed within this call.
    pub redirects: u16,
}

/// A finished call as passed to the call log.
#[derive(Clone, Debug)]
pub struct CallRecord {
    pub sample: Sample,
    pub outcome: Outcome,
    /// The start of its response, head first; empty unless the run keeps responses.
    pub response: Vec<u8>,
    /// Note of the guide, if users are guided; otherwise the `protocol::grpc::Status` of a gRPC
    /// call that ended with an unexpected status.
    pub note: Option<Note>,
}

/// A value that the engine passes from the users' guide to the call log; only these two know its
/// type.
#[derive(Clone, Debug)]
pub struct Note(pub Arc<dyn Any + Send + Sync>);

/// TLS parameters negotiated for a connection.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TlsFacts {
    /// `TLSv1.3`.
    pub version: String,
    /// `TLS13_AES_128_GCM_SHA256`.
    pub cipher: String,
    /// `X25519MLKEM768`; empty when a resumed session did no exchange.
    pub group: String,
    pub resumed: bool,
    /// Bits of the key in the server's certificate; 0 when they are not known.
    pub key_bits: u32,
    /// Empty if no protocol was negotiated.
    pub alpn: String,
}

/// The kernel's facts of a TCP connection (TCP_INFO).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SocketFacts {
    /// Segments retransmitted over the connection's life.
    pub retransmits: u64,
    /// Smoothed round-trip time.
    pub rtt: Nanos,
}
