//! Messages of a method between JSON and bytes.

use super::PREFIX_BYTES;
use std::borrow::Cow;
use std::fmt::Debug;
use std::io::Read as _;

/// Maximum number of bytes of the decompressed messages of a body.
const INFLATED_MAX: usize = 64 << 20;

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

/// Splits a body into messages, and decompresses those with flag 1 (gzip). `None` if a message is
/// truncated or does not decompress, or if the decompressed messages exceed 64 MiB together.
pub fn messages(mut body: &[u8]) -> Option<Vec<Cow<'_, [u8]>>> {
    let (mut all, mut room) = (Vec::new(), INFLATED_MAX);
    while !body.is_empty() {
        let (flag, message, rest) = split_frame(body)?;
        all.push(match flag {
            0 => Cow::Borrowed(message),
            1 => {
                let inflated = inflated(message, room)?;
                room -= inflated.len();
                Cow::Owned(inflated)
            }
            _ => return None,
        });
        body = rest;
    }
    Some(all)
}

/// Splits a body after its first frame: returns the flag and the content of the frame, and the
/// rest. `None` if the frame is truncated.
pub(super) fn split_frame(body: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let ([flag, length @ ..], rest) = body.split_first_chunk::<PREFIX_BYTES>()?;
    let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
    let (content, rest) = rest.split_at_checked(length)?;
    Some((*flag, content, rest))
}

/// Decompresses a message of at most `most` bytes.
fn inflated(message: &[u8], most: usize) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let mut decoder = flate2::read::GzDecoder::new(message).take(most as u64 + 1);
    decoder.read_to_end(&mut out).ok()?;
    (out.len() <= most).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grpc::{gzipped, prefixed};

    #[test]
    fn a_body_is_split_into_its_messages() {
        let body = [prefixed(b""), prefixed(b"ab")].concat();
        assert_eq!(messages(&body), Some(vec![b""[..].into(), b"ab"[..].into()]));
        assert_eq!(messages(b""), Some(Vec::new()));
        for cut in 1..body.len() {
            assert_eq!(messages(&body[..cut]).is_some(), cut == 5, "{cut}");
        }
        assert_eq!(messages(&gzipped(b"a")), Some(vec![b"a"[..].into()]));
        assert_eq!(messages(&[1, 0, 0, 0, 1, 9]), None, "not gzip");
        assert_eq!(messages(&[2, 0, 0, 0, 0]), None);
        assert_eq!(inflated(&gzipped(&[0; 100])[PREFIX_BYTES..], 99), None);
        assert_eq!(messages(&[0, 255, 255, 255, 255, 1]), None);
    }
}
