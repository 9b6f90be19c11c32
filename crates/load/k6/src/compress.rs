//! Compression of request bodies.

use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};
use std::io::Write as _;

/// # Errors
/// Fails if the coding is not available.
pub(crate) fn compress(coding: &str, data: &[u8]) -> Result<Vec<u8>, String> {
    let made = match coding {
        "gzip" => {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
            encoder.write_all(data).and_then(|()| encoder.finish())
        }
        "deflate" => {
            let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
            encoder.write_all(data).and_then(|()| encoder.finish())
        }
        other => {
            return Err(format!("compression \"{other}\" is not available; use gzip or deflate"));
        }
    };
    made.map_err(|why| why.to_string())
}
