//! The part of a case file that names code and its parameters. Each family has its own type, so
//! that code sees exactly its parameters.

use serde::de::Error;
use serde::{Deserialize, Deserializer};
use units::{Nanos, parse_duration, parse_size};

/// A parameter as `explain` shows it.
#[derive(Clone, Debug, PartialEq)]
pub enum Parameter {
    /// A plain number, whose unit is in the name; sizes are in bytes.
    Number(f64),
    Span(Nanos),
    Text(String),
}

/// A number of bytes: `"1MiB"` or a number in a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ByteCount(pub u64);

/// A parameter type: how its value is parsed and shown.
trait ParameterValue: Sized {
    fn read(given: toml::Value) -> Result<Self, String>;

    fn shown(&self) -> Parameter;
}

impl ParameterValue for u64 {
    fn read(given: toml::Value) -> Result<u64, String> {
        let number = given.as_integer().and_then(|number| u64::try_from(number).ok());
        number.ok_or_else(|| format!("{given} is not a whole number of 0 or more"))
    }

    fn shown(&self) -> Parameter {
        Parameter::Number(*self as f64)
    }
}

impl ParameterValue for f64 {
    fn read(given: toml::Value) -> Result<f64, String> {
        let number = given.as_float().or_else(|| given.as_integer().map(|number| number as f64));
        let number = number.filter(|number| number.is_finite() && *number >= 0.0);
        number.ok_or_else(|| format!("{given} is not a number of 0 or more"))
    }

    fn shown(&self) -> Parameter {
        Parameter::Number(*self)
    }
}

impl ParameterValue for ByteCount {
    fn read(given: toml::Value) -> Result<ByteCount, String> {
        if let toml::Value::String(text) = &given {
            return parse_size(text).map(ByteCount).map_err(|error| error.to_string());
        }
        let number = u64::read(given.clone()).map(ByteCount);
        number.map_err(|_| format!("{given} is not a size, such as \"1MiB\""))
    }

    fn shown(&self) -> Parameter {
        Parameter::Number(self.0 as f64)
    }
}

impl ParameterValue for Nanos {
    fn read(given: toml::Value) -> Result<Nanos, String> {
        let text = given.as_str().ok_or_else(|| format!("{given} is not a span, such as \"60s\""));
        parse_duration(text?).map_err(|error| error.to_string())
    }

    fn shown(&self) -> Parameter {
        Parameter::Span(*self)
    }
}

/// Parses the value of a parameter, or returns the reason why it is invalid.
fn given<'de, T: ParameterValue, D: Deserializer<'de>>(file: D) -> Result<T, D::Error> {
    T::read(toml::Value::deserialize(file)?).map_err(D::Error::custom)
}

/// Defines an enum of keywords.
macro_rules! words {
    ($($(#[$doc:meta])* $name:ident { $($(#[$of:meta])* $word:literal => $variant:ident,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $($(#[$of])* $variant,)*
        }

        impl $name {
            /// Returns the keyword used in files.
            pub fn word(self) -> &'static str {
                match self {
                    $($name::$variant => $word,)*
                }
            }
        }

        impl ParameterValue for $name {
            fn read(given: toml::Value) -> Result<$name, String> {
                match given.as_str() {
                    $(Some($word) => Ok($name::$variant),)*
                    _ => Err(format!("{given} is not one of {}", [$($word),*].join(", "))),
                }
            }

            fn shown(&self) -> Parameter {
                Parameter::Text(self.word().to_owned())
            }
        }
    )*};
}

/// Defines an enum of keywords with a list of all.
macro_rules! listed_words {
    ($(#[$doc:meta])* $name:ident { $($(#[$of:meta])* $word:literal => $variant:ident,)* }) => {
        words! {
            $(#[$doc])*
            $name { $($(#[$of])* $word => $variant,)* }
        }

        impl $name {
            /// All variants.
            pub const ALL: &[$name] = &[$($name::$variant),*];
        }
    };
}

words! {
    /// State in which many connections are held.
    PressedState {
        "half-head" => HalfHead,
        "dripped-head" => DrippedHead,
        "dripped-body" => DrippedBody,
        /// An unread response.
        "unread" => Unread,
        "idle" => Idle,
    }
    /// A state that needs raw TCP segments.
    SegmentState {
        "half-open" => HalfOpen,
        "half-closed" => HalfClosed,
        "zero-window" => ZeroWindow,
    }
    /// Order in which the requests of a connection are sent.
    RequestOrder {
        "at once" => AtOnce,
        /// Each request after the previous response.
        "in turn" => InTurn,
    }
    /// Odd clients alongside the tested ones.
    OddClients {
        "nobody" => Nobody,
        /// Clients that disconnect in the middle.
        "aborted" => Aborted,
        /// Clients whose requests are refused.
        "refused" => Refused,
    }
}

listed_words! {
    /// Content of a flood: HTTP/2 frames first, then HTTP/3 frames and streams.
    FloodKind {
        "reset" => Reset,
        "made-reset" => MadeReset,
        "continuation" => Continuation,
        "empty-continuation" => EmptyContinuation,
        "ping" => Ping,
        "settings" => Settings,
        "settings-changed" => SettingsChanged,
        "empty-data" => EmptyData,
        "single-bytes" => SingleBytes,
        "priority" => Priority,
        "unknown" => Unknown,
        "window-of-one" => WindowOfOne,
        "window-of-zero" => WindowOfZero,
        "streams" => Streams,
        "hpack-bomb" => HpackBomb,
        "table-churn" => TableChurn,
        "idle-priorities" => IdlePriorities,
        "window-updates" => WindowUpdates,
        "reset-streams" => ResetStreams,
        "open-streams" => OpenStreams,
        "blocked-sections" => BlockedSections,
        "unknown-frames" => UnknownFrames,
        "push-limits" => PushLimits,
        "reserved-streams" => ReservedStreams,
        "empty-data-frames" => EmptyDataFrames,
        "table-capacities" => TableCapacities,
        "stream-cancellations" => StreamCancellations,
        "large-sections" => LargeSections,
        "path-challenges" => PathChallenges,
        "connection-ids" => ConnectionIds,
        "blocked-streams" => BlockedStreams,
        "bare-resets" => BareResets,
    }
}

impl FloodKind {
    /// Returns whether the flood is HTTP/3; the others are HTTP/2.
    pub fn is_over_quic(self) -> bool {
        match self {
            FloodKind::Reset
            | FloodKind::MadeReset
            | FloodKind::Continuation
            | FloodKind::EmptyContinuation
            | FloodKind::Ping
            | FloodKind::Settings
            | FloodKind::SettingsChanged
            | FloodKind::EmptyData
            | FloodKind::SingleBytes
            | FloodKind::Priority
            | FloodKind::Unknown
            | FloodKind::WindowOfOne
            | FloodKind::WindowOfZero
            | FloodKind::Streams
            | FloodKind::HpackBomb
            | FloodKind::TableChurn
            | FloodKind::IdlePriorities
            | FloodKind::WindowUpdates => false,
            FloodKind::ResetStreams
            | FloodKind::OpenStreams
            | FloodKind::BlockedSections
            | FloodKind::UnknownFrames
            | FloodKind::PushLimits
            | FloodKind::ReservedStreams
            | FloodKind::EmptyDataFrames
            | FloodKind::TableCapacities
            | FloodKind::StreamCancellations
            | FloodKind::LargeSections
            | FloodKind::PathChallenges
            | FloodKind::ConnectionIds
            | FloodKind::BlockedStreams
            | FloodKind::BareResets => true,
        }
    }
}

/// Defines the parameters that a case file passes to its code: every field, and nothing else.
macro_rules! parameters {
    ($($(#[$doc:meta])* $name:ident { $($(#[$of:meta])* $field:ident: $kind:ty,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            $($(#[$of])* #[serde(deserialize_with = "given")] pub $field: $kind,)*
        }

        impl $name {
            fn shown(&self) -> Vec<(&'static str, Parameter)> {
                vec![$((stringify!($field), self.$field.shown()),)*]
            }
        }
    )*};
}

parameters! {
    /// Requests sent byte by byte, short ones and long ones.
    SingleBytes {
        short: ByteCount,
        long: ByteCount,
        rounds: u64,
    }
    SamePort {
        connections: u64,
    }
    /// A request that is split at `splits` places, `together` at a time.
    RequestSplits {
        splits: u64,
        together: u64,
        /// Between the two parts.
        pause: Nanos,
    }
    /// Random data that grows; `length` and `gap` are those of the first level.
    Escalation {
        levels: u64,
        length: ByteCount,
        gap: Nanos,
        /// Duration of each level.
        hold: Nanos,
        /// Maximum number of outstanding requests.
        waiting: u64,
    }
    FrameFlood {
        kind: FloodKind,
        connections: u64,
        /// Per connection; per write; between writes.
        frames: u64,
        each: u64,
        pause: Nanos,
        hold: Nanos,
    }
    /// Requests that hung, the first `most` of them, each sent up to `times` times.
    HangRepeats {
        times: u64,
        most: u64,
        patience: Nanos,
    }
    SizeLimit {
        most: ByteCount,
    }
    NumberLimit {
        most: u64,
    }
    /// Limits on one large item and on a number of small ones.
    SizeAndNumberLimit {
        most: ByteCount,
        number: u64,
    }
    MixedRequests {
        connections: u64,
        /// Requests on each connection.
        depth: u64,
        rounds: u64,
        order: RequestOrder,
        beside: OddClients,
    }
    Mutation {
        /// Maximum number of kept specimens beyond the seeds.
        corpus: u64,
        number: u64,
        span: Nanos,
    }
    OverloadHeld {
        from: f64,
        ceiling: f64,
        step: Nanos,
        waiting: u64,
        hold: Nanos,
    }
    OverloadMixed {
        from: f64,
        ceiling: f64,
        step: Nanos,
        waiting: u64,
        hold: Nanos,
    }
    OverloadRestart {
        from: f64,
        ceiling: f64,
        step: Nanos,
        waiting: u64,
        watch: Nanos,
    }
    OverloadSoak {
        from: f64,
        ceiling: f64,
        step: Nanos,
        waiting: u64,
        window: Nanos,
        /// Odd requests per second.
        odd: f64,
    }
    OverloadSpike {
        from: f64,
        ceiling: f64,
        step: Nanos,
        waiting: u64,
        spike: Nanos,
    }
    OverloadStarve {
        from: f64,
        ceiling: f64,
        step: Nanos,
        waiting: u64,
        starve: Nanos,
    }
    OverloadStorm {
        storm: Nanos,
        connections: u64,
    }
    /// Random requests to each page of a list.
    PageRequests {
        each: u64,
        length: ByteCount,
        pages: u64,
    }
    PressBurst {
        connections: u64,
        within: Nanos,
        silence: Nanos,
    }
    PressEnds {
        connections: u64,
        within: Nanos,
        horizon: Nanos,
    }
    PressHeld {
        state: PressedState,
        connections: u64,
        hold: Nanos,
    }
    /// Clients that are slow but well-behaved.
    PressHonest {
        connections: u64,
        /// Per second, on each connection.
        rate: ByteCount,
        size: ByteCount,
    }
    PressKeepAlive {
        requests: u64,
    }
    /// New connections per second.
    PressRate {
        rate: u64,
        span: Nanos,
    }
    PressResets {
        connections: u64,
        rate: u64,
        rounds: u64,
    }
    SegmentsHeld {
        kind: SegmentState,
        connections: u64,
        hold: Nanos,
    }
    SegmentOverlap {
        rounds: u64,
    }
    /// Maximum time a state is held, and the time within which it should end.
    SlowHeld {
        horizon: Nanos,
        soon: Nanos,
    }
    SlowDripped {
        horizon: Nanos,
        soon: Nanos,
        /// Between two bytes.
        every: Nanos,
    }
    /// A response that is unread or read slowly.
    SlowRead {
        horizon: Nanos,
        soon: Nanos,
        /// Minimum size of the page.
        least: ByteCount,
        /// Receive buffer of the client's kernel.
        buffer: ByteCount,
    }
    TlsAgain {
        connections: u64,
        wait: Nanos,
    }
    /// Repetitions that confirm growth over the run.
    GrowthRounds {
        batches: u64,
        requests: u64,
    }
    TlsHandshakes {
        /// New ones per second.
        rate: f64,
        hold: Nanos,
    }
    TlsWait {
        wait: Nanos,
    }
}

/// Parameters of the search for the knee: first and last rate in requests per second, duration of
/// each rate, and maximum number of outstanding requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KneeSearch {
    pub from: f64,
    pub ceiling: f64,
    pub step: Nanos,
    pub waiting: u64,
}

macro_rules! knee_searches {
    ($($name:ident),*) => {$(
        impl $name {
            pub fn search(&self) -> KneeSearch {
                let $name { from, ceiling, step, waiting, .. } = *self;
                KneeSearch { from, ceiling, step, waiting }
            }
        }
    )*};
}

knee_searches!(
    OverloadHeld,
    OverloadMixed,
    OverloadRestart,
    OverloadSoak,
    OverloadSpike,
    OverloadStarve
);

macro_rules! families {
    (
        bare { $($bare_name:literal => $bare:ident,)* }
        $($name:literal => $variant:ident($with:ident),)*
    ) => {
        /// Code that runs a case, with its parameters.
        #[derive(Clone, Debug, PartialEq, Deserialize)]
        #[serde(tag = "run", content = "with", deny_unknown_fields)]
        pub enum Family {
            $(#[serde(rename = $bare_name)] $bare,)*
            $(#[serde(rename = $name)] $variant($with),)*
        }

        impl Family {
            /// Returns the parameters of the file in the order of their names.
            pub fn parameters(&self) -> Vec<(&'static str, Parameter)> {
                let mut shown = match self {
                    $(Family::$bare => Vec::new(),)*
                    $(Family::$variant(with) => with.shown(),)*
                };
                shown.sort_by_key(|(name, _)| *name);
                shown
            }
        }
    };
}

families! {
    bare {
        "limit.deadlines" => LimitDeadlines,
        "lint" => Lint,
    }
    "connection.bytes" => ConnectionBytes(SingleBytes),
    "connection.same-port" => ConnectionSamePort(SamePort),
    "connection.splits" => ConnectionSplits(RequestSplits),
    "escalate" => Escalate(Escalation),
    "frames" => Frames(FrameFlood),
    "growth" => Growth(GrowthRounds),
    "hang.gone" => HangGone(HangRepeats),
    "limit.body" => LimitBody(SizeLimit),
    "limit.chunks" => LimitChunks(SizeAndNumberLimit),
    "limit.declared" => LimitDeclared(SizeLimit),
    "limit.fields" => LimitFields(NumberLimit),
    "limit.head" => LimitHead(SizeLimit),
    "limit.method" => LimitMethod(SizeLimit),
    "limit.name" => LimitName(SizeLimit),
    "limit.pairs" => LimitPairs(NumberLimit),
    "limit.pipeline" => LimitPipeline(NumberLimit),
    "limit.ranges" => LimitRanges(NumberLimit),
    "limit.requests" => LimitRequests(NumberLimit),
    "limit.target" => LimitTarget(SizeLimit),
    "limit.trailers" => LimitTrailers(SizeAndNumberLimit),
    "limit.value" => LimitValue(SizeLimit),
    "mixed" => Mixed(MixedRequests),
    "mutate.bodies" => MutateBodies(Mutation),
    "overload.held" => OverloadHeld(OverloadHeld),
    "overload.mixed" => OverloadMixed(OverloadMixed),
    "overload.restart" => OverloadRestart(OverloadRestart),
    "overload.soak" => OverloadSoak(OverloadSoak),
    "overload.spike" => OverloadSpike(OverloadSpike),
    "overload.starve" => OverloadStarve(OverloadStarve),
    "overload.storm" => OverloadStorm(OverloadStorm),
    "pages" => Pages(PageRequests),
    "press.burst" => PressBurst(PressBurst),
    "press.ends" => PressEnds(PressEnds),
    "press.held" => PressHeld(PressHeld),
    "press.honest" => PressHonest(PressHonest),
    "press.keep-alive" => PressKeepAlive(PressKeepAlive),
    "press.rate" => PressRate(PressRate),
    "press.resets" => PressResets(PressResets),
    "segments.cuts" => SegmentsCuts(RequestSplits),
    "segments.held" => SegmentsHeld(SegmentsHeld),
    "segments.overlap" => SegmentsOverlap(SegmentOverlap),
    "slow.body" => SlowBody(SlowHeld),
    "slow.body-dripped" => SlowBodyDripped(SlowDripped),
    "slow.handshake" => SlowHandshake(SlowHeld),
    "slow.head" => SlowHead(SlowHeld),
    "slow.head-dripped" => SlowHeadDripped(SlowDripped),
    "slow.idle" => SlowIdle(SlowHeld),
    "slow.silent" => SlowSilent(SlowHeld),
    "slow.sipped" => SlowSipped(SlowRead),
    "slow.unread" => SlowUnread(SlowRead),
    "tls.again" => TlsAgain(TlsAgain),
    "tls.handshakes" => TlsHandshakes(TlsHandshakes),
    "tls.pieces" => TlsPieces(TlsWait),
    "tls.records" => TlsRecords(TlsWait),
    "tls.silent" => TlsSilent(SlowHeld),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::read_case;

    const HEAD: &str = r#"
id = "C-91"
version = 1
title = "states that are held"
level = "opinion"
ref = "none"
why = "they cost"
press = true

"#;

    fn read(family: &str) -> Result<Family, String> {
        read_case("C-91.toml", &format!("{HEAD}{family}")).map(|case| case.family.unwrap())
    }

    const FLOOD: &str = r#"[family]
run = "frames"

[family.with]
kind = "ping"
connections = 4
frames = 1000
each = 100
pause = "50ms"
hold = "3s"
"#;

    #[test]
    fn a_flood_kind_belongs_to_one_protocol() {
        let read = |id: &str, kind: &str| {
            let head = HEAD.replace("C-91", id);
            let family = FLOOD.replace("ping", kind);
            read_case("case.toml", &format!("{head}{family}"))
        };
        let of_both = FloodKind::ALL.iter().filter(|kind| {
            let [h2, h3] = ["H-91", "Q-91"].map(|id| read(id, kind.word()).is_ok());
            (h2, h3) == (!kind.is_over_quic(), kind.is_over_quic())
        });
        assert_eq!(of_both.count(), FloodKind::ALL.len());
        let error = read("Q-91", "ping").unwrap_err();
        assert!(error.contains("line 2: a flood of ping needs HTTP/2, which group Q"), "{error}");
        let error = read("H-91", "pong").unwrap_err();
        assert!(error.contains("line 14: \"pong\" is not one of reset, made-reset"), "{error}");
    }

    const HELD: &str = r#"[family]
run = "press.held"

[family.with]
state = "half-head"
connections = 256
hold = "4s"
"#;

    #[test]
    fn family_parameters_are_parsed_with_their_types() {
        let (state, connections) = (PressedState::HalfHead, 256);
        let held = PressHeld { state, connections, hold: Nanos::from_secs(4) };
        let family = read(HELD).unwrap();
        assert_eq!(family, Family::PressHeld(held));
        let shown = [
            ("connections", Parameter::Number(256.0)),
            ("hold", Parameter::Span(Nanos::from_secs(4))),
            ("state", Parameter::Text("half-head".to_owned())),
        ];
        assert_eq!(family.parameters(), shown);
        assert_eq!(read("[family]\nrun = \"lint\"\n"), Ok(Family::Lint));
        let most =
            |most: &str| read(&format!("[family]\nrun = \"limit.head\"\nwith.most = {most}\n"));
        let limit = Family::LimitHead(SizeLimit { most: ByteCount(1 << 20) });
        assert_eq!(most("\"1MiB\""), Ok(limit.clone()));
        assert_eq!(most("1048576"), Ok(limit));
    }

    #[test]
    fn invalid_parameters_are_reported_with_their_line() {
        let known = "expected one of `state`, `connections`, `hold`";
        for (old, new, part) in [
            ("press.held", "press.helt", "line 11: unknown variant `press.helt`, expected one of"),
            ("hold = ", "held = ", &format!("line 16: unknown field `held`, {known}")),
            ("hold = \"4s\"", "", "line 13: missing field `hold`"),
            ("\"4s\"", "4", "line 16: 4 is not a span, such as \"60s\""),
            ("\"4s\"", "\"4q\"", "line 16: \"4q\" is not a duration"),
            ("256", "-1", "line 15: -1 is not a whole number of 0 or more"),
            ("256", "2.5", "line 15: 2.5 is not a whole number of 0 or more"),
            (
                "half-head",
                "half-hat",
                "line 14: \"half-hat\" is not one of half-head, dripped-head",
            ),
            ("[family.with]", "[family.what]", "line 13: invalid value: string \"what\", expected"),
        ] {
            let error = read(&HELD.replace(old, new)).unwrap_err();
            assert!(error.contains(part), "{old} -> {new}: {error}");
        }
        let rate = "[family]\nrun = \"tls.handshakes\"\nwith = { rate = -1, hold = \"2s\" }\n";
        assert!(read(rate).unwrap_err().contains("line 12: -1 is not a number of 0 or more"));
        let size = "[family]\nrun = \"limit.head\"\nwith = { most = \"1 mile\" }\n";
        assert!(read(size).unwrap_err().contains("line 12: \"1 mile\" is not a size"));
        assert!(read("[family]\nrun = \"limit.head\"\n").unwrap_err().contains("`with`"));
    }
}
