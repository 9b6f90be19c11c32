//! The rules, one file each, most specific first: of equally certain findings the earlier is
//! reported first.

mod accept_queue;
mod bandwidth;
mod churn;
mod client;
mod compression;
mod connection_cap;
mod cpu;
mod delayed_ack;
mod drift;
mod goaway;
mod header_table;
mod keep_alive;
mod mixed;
mod one_channel;
mod path_loss;
mod pool;
mod quantum;
mod rate_limit;
mod retransmission;
mod round_timeout;
mod serial;
mod sockets;
mod stall;
mod streams;
mod warm_up;
mod window;

use super::Rule;
pub(crate) use cpu::{COHERENCY_LOSS_MIN, RULE as CONTENTION};
pub(crate) use pool::RULE as POOL;
pub(crate) use quantum::ticking;
pub(crate) use serial::RULE as SERIAL;

/// All rules.
pub const RULES: &[&Rule] = &[
    &accept_queue::RULE,
    &path_loss::RULE,
    &retransmission::RULE,
    &delayed_ack::RULE,
    &connection_cap::RULE,
    &rate_limit::RULE,
    &stall::RULE,
    &one_channel::RULE,
    &streams::RULE,
    &window::RULE,
    &goaway::RULE,
    &keep_alive::RULE,
    &sockets::IDLE,
    &sockets::SERIAL,
    &churn::RECONNECTS,
    &churn::SLOW_CONSUMER,
    &compression::RULE,
    &round_timeout::RULE,
    &bandwidth::RULE,
    &mixed::RULE,
    &cpu::RULE,
    &serial::RULE,
    &pool::RULE,
    &quantum::RULE,
    &warm_up::RULE,
    &drift::RULE,
    &header_table::RULE,
    // it describes how the server was measured, not its limit
    &client::RULE,
];
