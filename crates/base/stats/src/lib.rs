//! Counting and its verdict: mergeable histograms and snapshots, intervals, steady state, the
//! objective grammar, the verdict of a run on itself. Sees status numbers, never HTTP types.
//! Layer 2: pure; reads no clock.
#![forbid(unsafe_code)]

mod backends;
mod blocks;
mod cause;
pub mod compare;
mod counts;
pub mod curve;
pub mod diagnosis;
mod doubt;
mod endings;
mod failed_responses;
mod fields;
pub mod fit;
mod hist;
pub mod history;
mod instants;
pub mod interval;
mod journeys;
mod little;
pub mod lives;
mod messages;
mod numbers;
mod objective;
mod scenario;
pub mod sequential;
mod server_timings;
mod slices;
mod snapshot;
mod spread;
pub mod steady;
mod streams;
mod target_tally;
mod trials;
pub mod verdict;
mod verified;
pub mod webmark;

pub use backends::{BACKENDS_MAX, BACKENDS_OTHER, BackendTally, Backends, LoadFigure, LoadTally};
pub use blocks::{BLOCKS_MIN, Block, Blocks};
pub use cause::CauseId;
pub use counts::Counts;
pub use doubt::Doubt;
pub use endings::{ENDINGS_STATUSES_MAX, Endings};
pub use failed_responses::{FailedResponse, FailedResponses, SAMPLE_BYTES_MAX, SAMPLES_PER_KIND};
pub use hist::{Cumulative, Hist, Summary};
pub use instants::Instants;
pub use interval::{Estimate, samples_needed};
pub use journeys::{ABORTED_BY_SCRIPT, JourneyTally, Noted, TransactionTally, abort_source};
pub use little::Little;
pub use messages::{FanOutTally, MessageTally, ReconnectTally, SecondMessages};
pub use numbers::{NumberTally, parse_number, show_number};
pub use objective::{
    FigureInterval, Figures, METRIC_PREFIX, Metric, Objective, Op, Ruling, SURE, Subject,
    SubjectRows, Undecided, Unsure, parse_objectives, quantile_interval, rulings,
};
pub use scenario::ScenarioTally;
pub use server_timings::{ServerTimings, TIMING_NAMES_MAX};
pub use slices::{SLICES_MAX, TargetSlices};
pub use snapshot::{
    Connections, Measurement, Recorder, Second, Sessions, Snapshot, StatusTally, TARGET_ROWS_MAX,
};
pub use spread::{SPREAD_CLASSES, Spread};
pub use streams::{
    GRPC_MESSAGES_MAX, GrpcTally, SecondStreams, StepStreams, StreamEnd, StreamMarks, StreamTally,
    TokenTally, TokenUsage,
};
pub use target_tally::TargetTally;
pub use trials::Looks;
pub use verdict::{Cause, Evidence, State, Verdict, judge, offered, quantile_name};
pub use verified::{Verified, WRONG_BODIES_MAX};

#[cfg(test)]
mod snapshot_tests;
