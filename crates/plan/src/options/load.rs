//! Loads, and what ends a run.

use super::field::field;
use super::grammar::*;
use super::{SETTING, Setting, least, most};

const END: Setting =
    Setting { heading: "End of the run", page: "measure-a-server", late: true, ..SETTING };
const YEARS_100: f64 = units::DURATION_MAX.0 as f64 / 1e9;

#[rustfmt::skip] // a row is read as a row
pub(super) static ENDS: &[Setting] = &[
    Setting { name: "duration", short: Some('d'), value: "TIME", common: true, field: field!(off stop.duration, DURATION),
        bounds: &[least(1e-9, "is 0: nothing would fall due; give a time such as 10s"), most(YEARS_100, "is longer than 100 years")],
        help: "Duration of the measured part [default: 10s]", ..END },
    Setting { name: "requests", short: Some('n'), value: "COUNT", common: true, field: field!(off stop.requests, COUNT_64),
        bounds: &[least(1.0, "is 0: nothing would be sent; give 1 or more")],
        help: "Number of calls (or sessions); with -d, whichever is reached first", ..END },
    Setting { name: "bytes-max", value: "SIZE", field: field!(off stop.bytes, LENGTH),
        bounds: &[least(1.0, "is 0: the run would end before it began; give a size such as 1G")],
        help: "Stop after receiving this many bytes", ..END },
    Setting { field: field!(at stop.at_once, SWITCH), page: "plans",
        help: "Calls under way at the end of the duration are given up", ..END },
    Setting { name: "warmup", value: "TIME", common: true, field: field!(at stop.warm_up as "stop.warmup", DURATION),
        bounds: &[most(YEARS_100, "is longer than 100 years")],
        help: "Load before the measured part, reported separately", ..END },
    Setting { name: "abort-if", value: "RULE", field: field!(off stop.abort_if, ABORT_RULE),
        help: "Stop early when a rule is met: 'failures>50% for 5s'", ..END },
];
