//! Cases as data: what is sent, which outcomes conform, and the specification.

mod family;
mod read;

pub use family::{
    ByteCount, Escalation, Family, FloodKind, FrameFlood, GrowthRounds, HangRepeats, KneeSearch,
    MixedRequests, Mutation, NumberLimit, OddClients, OverloadHeld, OverloadMixed, OverloadRestart,
    OverloadSoak, OverloadSpike, OverloadStarve, OverloadStorm, PageRequests, Parameter,
    PressBurst, PressEnds, PressHeld, PressHonest, PressKeepAlive, PressRate, PressResets,
    PressedState, RequestOrder, RequestSplits, SamePort, SegmentOverlap, SegmentState,
    SegmentsHeld, SingleBytes, SizeAndNumberLimit, SizeLimit, SlowDripped, SlowHeld, SlowRead,
    TlsAgain, TlsHandshakes, TlsWait,
};
pub use read::{read_case, read_own};

use crate::fuzz::FuzzPlace;
use crate::judge::{Class, Risk};
use dialogue::packets::PacketStep;
use dialogue::talk::Awaited;
use std::sync::Arc;
use units::Nanos;

/// One case of the catalog.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// `S-07`: group and number.
    pub id: String,
    /// Incremented when sent bytes or accepted outcomes change; results of different versions are
    /// not compared.
    pub version: u32,
    pub title: String,
    pub level: RequirementLevel,
    /// Consequence of a violation beyond the exchange itself.
    pub risk: Option<Risk>,
    /// The specification: `RFC 9112 section 5.1`.
    pub reference: String,
    /// Possible fault.
    pub why: String,
    /// Known behavior of servers.
    pub servers: String,
    /// The server and the date on which it was found; empty for constructed cases.
    pub found: String,
    pub needs: Vec<Need>,
    /// The HTTP versions in which it runs, as options name them, or gRPC.
    pub protocol: Vec<&'static str>,
    /// The component that is tested.
    pub answers: Answers,
    /// A stress case, which runs only on request.
    pub press: bool,
    /// Conversations, each judged; empty for random data and code.
    pub exchanges: Vec<Exchange>,
    pub fuzz: Option<Fuzz>,
    pub family: Option<Family>,
    /// The text of the case file.
    pub text: Arc<str>,
}

/// HTTP versions, as options name them.
const VERSIONS: [&str; 3] = [HTTP1, "2", "3"];
const HTTP1: &str = "1.1";

/// Returns the HTTP version of the cases of a group that name none, or gRPC.
fn usual_version(group: char) -> &'static str {
    match group {
        GRPC => GRPC_VERSION,
        HTTP2 => "2",
        HTTP3 => "3",
        _ => HTTP1,
    }
}

/// The group of HTTP/2 cases; others use HTTP/1.1 unless they name versions.
pub const HTTP2: char = 'H';
/// The group of HTTP/3 cases.
pub const HTTP3: char = 'Q';

/// The group of gRPC cases, which run on a target that is called over gRPC.
pub const GRPC: char = 'G';
/// The protocol of that group, in place of an HTTP version.
pub const GRPC_VERSION: &str = "gRPC";

/// The group of WebSocket cases, and its other name for `--only`.
pub const SOCKETS: char = 'U';
pub const SOCKETS_NAME: &str = "WS";

/// The group of cases that send raw TCP segments without sockets.
pub const PACKETS: char = 'P';

/// The group of regressions found on real servers, and the group of the user's cases.
pub const FOUND: char = 'K';
pub const OWN: char = 'X';

/// The component responsible for the result of a case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Answers {
    /// The server's program.
    #[default]
    Server,
    /// The TCP stack below it.
    Kernel,
}

impl Answers {
    pub const ALL: [Answers; 2] = [Answers::Server, Answers::Kernel];

    pub fn id(self) -> &'static str {
        match self {
            Answers::Server => "server",
            Answers::Kernel => "kernel",
        }
    }

    /// Returns the component as a noun phrase.
    pub fn text(self) -> &'static str {
        match self {
            Answers::Server => "the server's program",
            Answers::Kernel => "the TCP of the server's kernel",
        }
    }
}

/// Random data, judged by effects that no request may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fuzz {
    pub place: FuzzPlace,
    /// Executions.
    pub count: u64,
    /// Exclusive upper bound of random bytes per execution.
    pub length: u64,
}

impl Case {
    /// Returns the letter before the number.
    pub fn group(&self) -> char {
        self.id.chars().next().unwrap_or('?')
    }

    /// Returns the preconditions of the case and of its exchanges.
    pub fn all_needs(&self) -> impl Iterator<Item = Need> + '_ {
        let own = self.exchanges.iter().flat_map(|exchange| &exchange.needs);
        self.needs.iter().chain(own).copied()
    }

    /// Returns whether a case, or one of its exchanges, has one of these preconditions.
    pub fn any_needs(cases: &[Case], needs: &[Need]) -> bool {
        cases.iter().flat_map(Case::all_needs).any(|need| needs.contains(&need))
    }

    /// Returns the first HTTP version of the case, as options name it, or gRPC.
    pub fn version_spoken(&self) -> &'static str {
        self.protocol.first().copied().unwrap_or(HTTP1)
    }

    /// Returns whether the case runs in this HTTP version, or with gRPC.
    pub fn runs_in(&self, version: &str) -> bool {
        self.protocol.contains(&version)
    }
}

/// Requirement level of the specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RequirementLevel {
    /// An outcome in neither list of an exchange is a failure.
    Must,
    /// A deviation is an advisory.
    Should,
    /// A deviation is an advisory: the specification allows several behaviors.
    May,
    /// No specification: an opinion on robustness, with its reason.
    Opinion,
}

impl RequirementLevel {
    pub fn id(self) -> &'static str {
        match self {
            RequirementLevel::Must => "MUST",
            RequirementLevel::Should => "SHOULD",
            RequirementLevel::May => "MAY",
            RequirementLevel::Opinion => "opinion",
        }
    }
}

/// A precondition of a case; without it the case is skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// A page that accepts bodies, named by the user.
    Post,
    /// A page that reads the body before it responds.
    Reading,
    /// A page that reads chunked content to its end before it responds.
    Chunked,
    /// A list of pages, named by the user.
    Pages,
    /// The probed page supports ranges with 206.
    Ranges,
    /// The probed page has a validator: ETag or Last-Modified.
    Validators,
    /// The probed page has an ETag; it has a Last-Modified.
    Etag,
    Modified,
    /// The URL uses TLS.
    Tls,
    /// An expensive page, named by the user.
    Expensive,
    /// A command that restarts the server.
    Restart,
    /// Commands that withdraw and restore a resource.
    Starve,
    /// A duration for the soak, which may be long.
    Soak,
    /// A network device for raw TCP segments.
    Device,
    /// The server allows a dynamic QPACK table.
    Table,
    /// A file that the server must not serve, named by the user.
    Outside,
    /// The server issues tickets that allow early data (0-RTT); it accepts early data.
    EarlyTicket,
    EarlyData,
    /// The server speaks WebSocket.
    Socket,
    /// A WebSocket that compresses its messages on request.
    SocketDeflate,
    /// The gRPC service for health checks.
    Health,
}

impl Need {
    pub const ALL: [Need; 21] = [
        Need::Post,
        Need::Reading,
        Need::Chunked,
        Need::Pages,
        Need::Ranges,
        Need::Validators,
        Need::Etag,
        Need::Modified,
        Need::Tls,
        Need::Expensive,
        Need::Restart,
        Need::Starve,
        Need::Soak,
        Need::Device,
        Need::Table,
        Need::Outside,
        Need::EarlyTicket,
        Need::EarlyData,
        Need::Socket,
        Need::SocketDeflate,
        Need::Health,
    ];

    pub fn id(self) -> &'static str {
        match self {
            Need::Post => "post",
            Need::Reading => "reading",
            Need::Chunked => "chunked",
            Need::Pages => "pages",
            Need::Ranges => "ranges",
            Need::Validators => "validators",
            Need::Etag => "etag",
            Need::Modified => "last-modified",
            Need::Tls => "tls",
            Need::Expensive => "expensive",
            Need::Restart => "restart",
            Need::Starve => "starve",
            Need::Soak => "soak",
            Need::Device => "device",
            Need::Table => "qpack-table",
            Need::Outside => "outside",
            Need::EarlyTicket => "early-ticket",
            Need::EarlyData => "early-data",
            Need::Socket => "websocket",
            Need::SocketDeflate => "websocket-deflate",
            Need::Health => "grpc-health",
        }
    }

    /// Returns the reason for skipping a case.
    pub fn missing(self) -> &'static str {
        match self {
            Need::Post => "no page that accepts request bodies is given (--post PATH)",
            Need::Reading => "the --post page responds before it has read the body",
            Need::Chunked => {
                "the --post page does not read chunked content before it responds (B-15)"
            }
            Need::Pages => "no list of pages is given (--pages FILE)",
            Need::Ranges => "the probed page does not support ranges",
            Need::Validators => "the probed page has neither ETag nor Last-Modified",
            Need::Etag => "the probed page has no ETag",
            Need::Modified => "the probed page has no Last-Modified",
            Need::Tls => "the URL does not use TLS (https://…)",
            Need::Expensive => "no expensive page is given (--expensive PATH)",
            Need::Restart => "no restart command is given (--restart-command CMD)",
            Need::Soak => "no duration is given (--soak SPAN)",
            Need::Table => "the server allows no dynamic table (SETTINGS_QPACK_MAX_TABLE_CAPACITY)",
            Need::Outside => "no file that must not be served is given (--outside FILE)",
            Need::EarlyTicket => "the server issues no ticket that allows early data (0-RTT)",
            Need::EarlyData => "the server does not accept early data (0-RTT)",
            Need::Socket => {
                "neither the probed page nor /ws speaks WebSocket (--ws-path PATH names another)"
            }
            Need::Health => "the server has no health checks (grpc.health.v1.Health)",
            Need::SocketDeflate => "the WebSocket does not compress messages (permessage-deflate)",
            Need::Device => "no network device is available to send TCP segments",
            Need::Starve => {
                "no commands that withdraw and restore a resource are given (--starve-command \
                CMD, --relieve-command CMD)"
            }
        }
    }
}

/// One conversation of a case, on its own connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// Unique within the case.
    pub name: String,
    pub steps: Vec<ScriptStep>,
    /// The request methods, in order; the last one applies to all further requests.
    pub methods: Vec<String>,
    /// Time limit of the whole conversation.
    pub deadline: Nanos,
    /// Minimum number of attempts: more than one for a race, which a single one may not show.
    pub attempts: u32,
    /// Conforming outcomes; also allowed outcomes; outcomes that yield an advisory.
    pub accept: Vec<Class>,
    pub also: Vec<Class>,
    pub advise: Vec<Class>,
    /// If none of these matches, the result is inconclusive.
    pub unlearned: Vec<Class>,
    /// Afterwards, a valid request on the same connection must get one correct response if the
    /// connection is still open.
    pub in_step: bool,
    /// Preconditions in addition to those of the case; without them it is not sent.
    pub needs: Vec<Need>,
    /// For HTTP/2: sends preface and SETTINGS first and acknowledges those of the server.
    pub opening: bool,
}

impl Exchange {
    /// Returns whether the exchange begins with the handshake of a WebSocket, so that what follows
    /// is content of a stream over HTTP/2.
    pub fn opens_socket(&self) -> bool {
        matches!(self.steps.first(), Some(ScriptStep::Send(text)) if text.starts_with("{upgrade"))
    }

    /// Returns whether the exchange sends raw TCP segments.
    pub fn is_raw(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, ScriptStep::Packet(_)))
    }
}

/// One step of a conversation. Bytes are still [text](dialogue::text) with placeholders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScriptStep {
    /// One write.
    Send(String),
    Pause(Nanos),
    /// Waits for this before sending more.
    Await(Awaited),
    /// One byte of urgent data, which most servers never read.
    Urgent,
    /// Sends FIN; responses are still read.
    HalfClose,
    /// Sends RST.
    Reset,
    /// Sends FIN and stops reading.
    Close,
    /// Leaves received data in the kernel; resumes reading.
    StopReading,
    Read,
    /// A step of a conversation of raw TCP segments.
    Packet(PacketStep),
}
