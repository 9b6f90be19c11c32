//! A site built without HTTP/3 has no listener for it.

use std::net::SocketAddr;
use std::sync::Arc;

use super::Common;
use crate::SiteError;
use crate::config::{EarlyData, Http3};
use crate::counters::Counters;

/// QUIC listener; not supported in this build.
#[derive(Debug)]
pub(crate) enum QuicListener {}

impl QuicListener {
    pub(crate) fn bind(
        _address: SocketAddr,
        _wanted: &Http3,
        _early: Option<EarlyData>,
    ) -> Result<QuicListener, SiteError> {
        Err(SiteError::Conflict("this program was built without HTTP/3: leave out --http3".into()))
    }
}

pub(super) async fn serve_range(listener: QuicListener, _defects: &faulty::Defects) {
    match listener {}
}

pub(super) async fn accept(
    quic: Option<QuicListener>,
    _common: &Common,
    _counters: &Arc<Counters>,
) {
    match quic {
        Some(none) => match none {},
        None => std::future::pending().await,
    }
}
