//! The local addresses of workers.

use std::net::IpAddr;

/// The local addresses of a worker.
#[derive(Clone, Debug)]
pub(crate) struct AddressPart {
    pub(crate) device: String,
    pub(crate) first: IpAddr,
    /// Number of addresses from the first on.
    pub(crate) addresses: u32,
}
