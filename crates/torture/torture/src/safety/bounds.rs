//! Limits of a run: defaults by class of address, compiled-in maximums, and the maximums of a
//! proof. A requested limit cannot exceed the maximum.

use super::{Class, Proof};
use dialogue::governor::Bounds;
use units::{Nanos, show};

/// Limits of the command line; `None` means the default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    pub connections_max: Option<u64>,
    pub opens_max: Option<u64>,
    pub requests_max: Option<u64>,
    pub bytes_max: Option<u64>,
    pub message_max: Option<u64>,
    pub case_max: Option<Nanos>,
    pub run_max: Option<Nanos>,
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const fn minutes(count: u64) -> Nanos {
    Nanos::from_secs(count * 60)
}

/// Names of the limits, and the options that set them.
const NAMES: [(&str, &str); 7] = [
    ("open connections", "--connections-max"),
    ("new connections per second", "--rate-max"),
    ("requests per second", "--requests-max"),
    ("bytes per second", "--bytes-max"),
    ("bytes per message", "--message-max"),
    ("the time of a case", "--case-max"),
    ("the time of a run", "--duration"),
];

impl Class {
    /// Returns the defaults.
    pub fn usual(self) -> Bounds {
        match self {
            Class::Local => Bounds {
                connections_max: 256,
                opens_max: 200,
                requests_max: Some(500),
                bytes_max: Some(8 * MIB),
                message_max: 16 * MIB,
                case_max: Nanos::from_secs(180),
                run_max: None,
                lost_max: None,
            },
            Class::Private => Bounds {
                connections_max: 128,
                opens_max: 50,
                requests_max: Some(100),
                bytes_max: Some(2 * MIB),
                message_max: 4 * MIB,
                case_max: Nanos::from_secs(120),
                run_max: Some(minutes(60)),
                lost_max: Some(Nanos::from_secs(15)),
            },
            Class::Public | Class::Never => Bounds {
                connections_max: 32,
                opens_max: 5,
                requests_max: Some(10),
                bytes_max: Some(256 * KIB),
                message_max: MIB,
                case_max: Nanos::from_secs(75),
                run_max: Some(minutes(30)),
                lost_max: Some(LOST_PUBLIC_MAX),
            },
        }
    }

    /// Returns the maximums that no option can exceed. Raising one requires a different build.
    pub fn ceiling(self) -> Bounds {
        let usual = self.usual();
        match self {
            Class::Local => Bounds {
                connections_max: 20_000,
                opens_max: 20_000,
                requests_max: None,
                bytes_max: None,
                case_max: minutes(60),
                ..usual
            },
            Class::Private => Bounds {
                connections_max: 4_000,
                opens_max: 2_000,
                requests_max: Some(2_000),
                bytes_max: Some(64 * MIB),
                ..usual
            },
            Class::Public => Bounds {
                connections_max: 2_000,
                opens_max: 100,
                requests_max: Some(200),
                bytes_max: Some(4 * MIB),
                ..usual
            },
            Class::Never => Bounds {
                connections_max: 0,
                opens_max: 0,
                requests_max: Some(0),
                bytes_max: Some(0),
                message_max: 0,
                ..usual
            },
        }
    }
}

impl Asked {
    /// Returns the limits of a run: requested or default, but never more than a proof permits.
    ///
    /// # Errors
    /// Fails for a requested limit above its maximum, or of zero; the option is named.
    pub fn bounds(&self, class: Class, proof: Option<&Proof>) -> Result<Bounds, String> {
        let asked = self;
        let (usual, top) = (class.usual(), class.ceiling());
        let must = |at: usize, asked: Option<u64>, usual: u64, top: u64, shown: BoundPrinter| {
            pick(at, class, asked, Some(usual), Some(top), shown)
                .map(|found| found.unwrap_or(usual))
        };
        let may = |at: usize, asked: Option<u64>, usual: Option<u64>, top: Option<u64>, shown| {
            pick(at, class, asked, usual, top, shown)
        };
        let (count, bytes, span): (BoundPrinter, BoundPrinter, BoundPrinter) =
            (show::count, show::bytes, format_ns);
        let ns = |span: Option<Nanos>| span.map(|span| span.0);
        let mut bounds = Bounds {
            connections_max: must(
                0,
                asked.connections_max,
                usual.connections_max,
                top.connections_max,
                count,
            )?,
            opens_max: must(1, asked.opens_max, usual.opens_max, top.opens_max, count)?,
            requests_max: may(2, asked.requests_max, usual.requests_max, top.requests_max, count)?,
            bytes_max: may(3, asked.bytes_max, usual.bytes_max, top.bytes_max, bytes)?,
            message_max: must(4, asked.message_max, usual.message_max, top.message_max, bytes)?,
            case_max: Nanos(must(5, ns(asked.case_max), usual.case_max.0, top.case_max.0, span)?),
            run_max: may(6, ns(asked.run_max), ns(usual.run_max), ns(top.run_max), span)?
                .map(Nanos),
            lost_max: usual.lost_max,
        };
        if let Some(proof) = proof {
            bounds.connections_max = bounds.connections_max.min(proof.connections_max);
            bounds.opens_max = bounds.opens_max.min(proof.opens_max);
            bounds.bytes_max = bounds.bytes_max.map(|bytes| bytes.min(proof.bytes_max));
        }
        Ok(bounds)
    }
}

/// Returns name and value of each limit.
pub fn rows(bounds: &Bounds) -> Vec<(&'static str, String)> {
    let or_none = |text: Option<String>| text.unwrap_or_else(|| "no limit".to_owned());
    vec![
        (NAMES[0].0, show::count(bounds.connections_max)),
        (NAMES[1].0, show::count(bounds.opens_max)),
        (NAMES[2].0, or_none(bounds.requests_max.map(show::count))),
        (NAMES[3].0, or_none(bounds.bytes_max.map(show::bytes))),
        (NAMES[4].0, show::bytes(bounds.message_max)),
        (NAMES[5].0, show::duration(bounds.case_max)),
        (NAMES[6].0, or_none(bounds.run_max.map(show::duration))),
        ("probes without a response", or_none(bounds.lost_max.map(show::duration))),
    ]
}

/// On public targets, a run stops within three seconds of the first lost probe; the rest of that
/// time is for closing.
pub const LOST_PUBLIC_MAX: Nanos = Nanos::from_millis(2_500);

type BoundPrinter = fn(u64) -> String;

fn format_ns(ns: u64) -> String {
    show::duration(Nanos(ns))
}

fn pick(
    at: usize,
    class: Class,
    asked: Option<u64>,
    usual: Option<u64>,
    ceiling: Option<u64>,
    shown: BoundPrinter,
) -> Result<Option<u64>, String> {
    let (name, option) = NAMES[at];
    match (asked, ceiling) {
        (None, _) => Ok(usual),
        (Some(0), _) => Err(format!("{option} 0: a limit of 0 leaves nothing to do")),
        (Some(asked), Some(ceiling)) if asked > ceiling => Err(format!(
            "{option} {}: the maximum for {} targets is {} ({name})",
            shown(asked),
            class.id(),
            shown(ceiling)
        )),
        (Some(asked), _) => Ok(Some(asked)),
    }
}
