//! Messages of a method between JSON and bytes.

use super::PREFIX_BYTES;
use std::fmt::Debug;

/// Converts the messages of one method. The descriptors belong to a higher layer.
pub trait MessageCodec: Debug + Send + Sync {
    /// Returns the body of a request, from a message as JSON or a list of them; `None` for an empty
    /// message.
    ///
    /// # Errors
    /// Fails for text that is not JSON, or does not fit the message; the error names the place.
    fn request_body(&self, json: Option<&str>) -> Result<Vec<u8>, String>;

    /// Returns the body of a response as JSON: its message, or the list of messages of a server
    /// stream.
    ///
    /// # Errors
    /// Fails if the body is not such a message.
    fn response_json(&self, body: &[u8]) -> Result<String, String>;
}

/// Splits a body into messages. `None` if a message is truncated or compressed.
pub fn messages(mut body: &[u8]) -> Option<Vec<&[u8]>> {
    let mut all = Vec::new();
    while !body.is_empty() {
        let (prefix, rest) = body.split_at_checked(PREFIX_BYTES)?;
        let [0, length @ ..] = <[u8; PREFIX_BYTES]>::try_from(prefix).ok()? else { return None };
        let (message, rest) =
            rest.split_at_checked(usize::try_from(u32::from_be_bytes(length)).ok()?)?;
        all.push(message);
        body = rest;
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grpc::{gzipped, prefixed};

    #[test]
    fn a_body_is_split_into_its_messages() {
        let body = [prefixed(b""), prefixed(b"ab")].concat();
        assert_eq!(messages(&body), Some(vec![&b""[..], &b"ab"[..]]));
        assert_eq!(messages(b""), Some(Vec::new()));
        for cut in 1..body.len() {
            assert_eq!(messages(&body[..cut]).is_some(), cut == 5, "{cut}");
        }
        assert_eq!(messages(&gzipped(b"a")), None);
        assert_eq!(messages(&[0, 255, 255, 255, 255, 1]), None);
    }
}
