//! A request, coded once: without a dynamic table its bytes are the same on every connection.

use crate::http3::frame::{self, DATA, HEADERS};
use crate::http3::qpack;
use std::sync::Arc;

/// One request as sent on a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coded {
    /// The field section of the request, including its prefix.
    section: Vec<u8>,
    body: Option<Arc<[u8]>>,
    /// Bytes of names and values, uncoded.
    plain: u64,
    /// The request is HEAD, whose response's length describes content that is not sent.
    pub(crate) headless: bool,
}

impl Coded {
    /// Encodes fields, pseudo-fields first, and a body.
    pub fn new<'a>(
        fields: impl Iterator<Item = (&'a [u8], &'a [u8])>,
        body: Option<Arc<[u8]>>,
    ) -> Coded {
        let mut coded = Coded { section: qpack::PREFIX.to_vec(), body, plain: 0, headless: false };
        for (name, value) in fields {
            qpack::put_field(&mut coded.section, name, value);
            coded.plain += (name.len() + value.len()) as u64;
            coded.headless |= name == b":method" && value == b"HEAD";
        }
        coded
    }

    /// Appends its frames to `out`, with the value of an additional Cookie field; returns the bytes
    /// of its fields before and after encoding.
    pub(crate) fn put(&self, cookie: Option<&str>, out: &mut Vec<u8>) -> (u64, u64) {
        let mut more = Vec::new();
        if let Some(cookie) = cookie {
            qpack::put_field(&mut more, b"cookie", cookie.as_bytes());
        }
        let length = (self.section.len() + more.len()) as u64;
        frame::put_head(out, HEADERS, length);
        out.extend_from_slice(&self.section);
        out.extend_from_slice(&more);
        if let Some(body) = &self.body {
            frame::put_head(out, DATA, body.len() as u64);
            out.extend_from_slice(body);
        }
        (self.plain + cookie.map_or(0, |cookie| cookie.len() as u64 + 6), length)
    }

    /// Returns the maximum number of its bytes on a stream, without a cookie.
    pub(crate) fn room(&self) -> usize {
        self.section.len() + self.body.as_ref().map_or(0, |body| body.len()) + 32
    }
}
