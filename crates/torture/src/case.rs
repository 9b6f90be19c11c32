//! Cases as data: what is sent, what may come back, and which text says so.

mod family;
mod read;

pub use family::{
    ByteCount, Escalation, Family, FloodKind, FrameFlood, HangRepeats, KneeSearch, MixedRequests,
    Mutation, NumberLimit, OddClients, OverloadHeld, OverloadMixed, OverloadRestart, OverloadSoak,
    OverloadSpike, OverloadStarve, OverloadStorm, PageRequests, Parameter, PressBurst, PressEnds,
    PressHeld, PressHonest, PressKeepAlive, PressRate, PressResets, PressedState, RequestOrder,
    RequestSplits, SamePort, SegmentOverlap, SegmentState, SegmentsHeld, SingleBytes,
    SizeAndNumberLimit, SizeLimit, SlowDripped, SlowHeld, SlowRead, TlsAgain, TlsHandshakes,
    TlsWait,
};
pub use read::{read_case, read_own};

use crate::fuzz::FuzzPlace;
use crate::judge::{Class, Risk};
use dialogue::packets::PacketStep;
use dialogue::talk::Awaited;
use std::sync::Arc;
use units::Nanos;

/// One case of the catalogue.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// `S-07`: group and number.
    pub id: String,
    /// Raised when what is sent or accepted changes; results of different versions are not compared.
    pub version: u32,
    pub title: String,
    pub level: RequirementLevel,
    /// What follows where the rule is broken, beyond the exchange itself.
    pub risk: Option<Risk>,
    /// The text that it rests on: `RFC 9112 section 5.1`.
    pub reference: String,
    /// Why a server should care.
    pub why: String,
    /// What servers are known to do.
    pub servers: String,
    /// The server on which it was found, and the day; empty where nobody had to find it.
    pub found: String,
    pub needs: Vec<Need>,
    /// Who answers for what is tested.
    pub answers: Answers,
    /// It presses: it is done only when asked for.
    pub press: bool,
    /// Conversations, each judged; empty where the case is random data or code.
    pub exchanges: Vec<Exchange>,
    pub fuzz: Option<Fuzz>,
    pub family: Option<Family>,
    /// The text of its file.
    pub text: Arc<str>,
}

/// The group of cases that speak HTTP/2; all others speak HTTP/1.1.
pub const HTTP2: char = 'H';
/// Those that speak HTTP/3.
pub const HTTP3: char = 'Q';

/// The group of cases that are held segment by segment, past all sockets.
pub const PACKETS: char = 'P';

/// The group of what was found on real servers, and that of cases which users bring.
pub const FOUND: char = 'K';
pub const OWN: char = 'X';

/// Whose doing it is what a case sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Answers {
    /// The server's program.
    #[default]
    Server,
    /// The TCP below it.
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

    /// Whose doing it is, as a noun.
    pub fn text(self) -> &'static str {
        match self {
            Answers::Server => "the server's program",
            Answers::Kernel => "the TCP of the server's kernel",
        }
    }
}

/// Random data, judged by what no request may cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fuzz {
    pub place: FuzzPlace,
    /// Executions.
    pub count: u64,
    /// Random bytes of one execution: fewer than this.
    pub length: u64,
}

impl Case {
    /// The letter before the number.
    pub fn group(&self) -> char {
        self.id.chars().next().unwrap_or('?')
    }

    /// The version of HTTP that it speaks, as options name it.
    pub fn version_spoken(&self) -> &'static str {
        match self.group() {
            HTTP2 => "2",
            HTTP3 => "3",
            _ => "1.1",
        }
    }
}

/// How binding the text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RequirementLevel {
    /// What is in neither list of an exchange is a failure.
    Must,
    /// It is an advisory.
    Should,
    /// It is an advisory too: the text permits several things.
    May,
    /// No text; an opinion on robustness, with its reason.
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

/// What must be there for a case to say something; without it the case is skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// A page that takes bodies, named by the user.
    Post,
    /// That page does not answer before the body has come: what it was sent matters to it.
    Reading,
    /// A list of pages, named by the user.
    Pages,
    /// The probed page answers to ranges with 206.
    Ranges,
    /// The probed page has a validator: ETag or Last-Modified.
    Validators,
    /// It has an ETag; it has a Last-Modified.
    Etag,
    Modified,
    /// The server is spoken to over TLS.
    Tls,
    /// A page that costs the server much, named by the user.
    Expensive,
    /// A command that starts the server anew.
    Restart,
    /// Commands that take something from the server and give it back.
    Starve,
    /// A span for it, which may be long.
    Soak,
    /// A network device, for segments of our own making.
    Device,
    /// The server permits a dynamic table of QPACK.
    Table,
    /// It gives tickets that permit early data (0-RTT); it reads what is said early.
    EarlyTicket,
    EarlyData,
}

impl Need {
    pub const ALL: [Need; 16] = [
        Need::Post,
        Need::Reading,
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
        Need::EarlyTicket,
        Need::EarlyData,
    ];

    pub fn id(self) -> &'static str {
        match self {
            Need::Post => "post",
            Need::Reading => "reading",
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
            Need::EarlyTicket => "early-ticket",
            Need::EarlyData => "early-data",
        }
    }

    /// The reason for which a case is skipped.
    pub fn missing(self) -> &'static str {
        match self {
            Need::Post => "no page that takes bodies is named (--post PATH)",
            Need::Reading => "answered early: the page for bodies does not wait for them",
            Need::Pages => "no list of pages is given (--pages FILE)",
            Need::Ranges => "the probed page does not answer to ranges",
            Need::Validators => "the probed page has neither ETag nor Last-Modified",
            Need::Etag => "the probed page has no ETag",
            Need::Modified => "the probed page has no Last-Modified",
            Need::Tls => "the server is not spoken to over TLS (https://…)",
            Need::Expensive => "no page that costs the server much is named (--expensive PATH)",
            Need::Restart => "no command to restart the server was given (--restart-command CMD)",
            Need::Soak => "no span is given for it (--soak SPAN)",
            Need::Table => {
                "the server permits no dynamic table (SETTINGS_QPACK_MAX_TABLE_CAPACITY)"
            }
            Need::EarlyTicket => "the server gives no ticket that permits early data (0-RTT)",
            Need::EarlyData => "the server reads no early data (0-RTT)",
            Need::Device => "no network device for segments of our own is there",
            Need::Starve => {
                "no commands that starve the server and relieve it are given (--starve-command CMD, --relieve-command CMD)"
            }
        }
    }
}

/// One conversation of a case, on a connection of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// Tells it from the others of its case.
    pub name: String,
    pub steps: Vec<ScriptStep>,
    /// The methods that the server is taken to answer to, in order; the last stands for all further.
    pub methods: Vec<String>,
    /// Time for everything.
    pub deadline: Nanos,
    /// What is as it should be; what the text permits as well; what is worth a word.
    pub accept: Vec<Class>,
    pub also: Vec<Class>,
    pub advise: Vec<Class>,
    /// Where none of these holds: that nothing was learned.
    pub unlearned: Vec<Class>,
    /// Afterwards, a valid request on the same connection, if that is still open, gets one right
    /// response.
    pub in_step: bool,
    /// Of a case of HTTP/2: preface and SETTINGS go first, and those of the server are acknowledged.
    pub opening: bool,
}

impl Exchange {
    /// It is held segment by segment.
    pub fn is_raw(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, ScriptStep::Packet(_)))
    }
}

/// One step of a conversation. Bytes are still [text](dialogue::text): the run gives the values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScriptStep {
    /// One write.
    Send(String),
    Pause(Nanos),
    /// Nothing further is sent until this has come.
    Await(Awaited),
    /// One byte of urgent data, which most servers never see.
    Urgent,
    /// FIN from us; what comes back is still read.
    HalfClose,
    /// RST from us.
    Reset,
    /// FIN from us, and nothing is read any more.
    Close,
    /// What comes is left in the kernel; taken up again.
    StopReading,
    Read,
    /// Of a conversation that is held segment by segment.
    Packet(PacketStep),
}
