//! Calls of gRPC: one service, `grpc.health.v1.Health`, correct except for the switches.

mod message;
mod metadata;

use super::super::{Defect, Defects};
use message::Checked;
use protocol::grpc::{Code, prefixed};
use protocol::hpack::Field;
use protocol::http1::coding;
use units::Nanos;

const CHECK: &[u8] = b"/grpc.health.v1.Health/Check";
const WATCH: &[u8] = b"/grpc.health.v1.Health/Watch";
const REFLECTION: &[u8] = b"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
const CHANNELZ: &[u8] = b"/grpc.channelz.v1.Channelz/GetServers";
/// SERVING of HealthCheckResponse.
const SERVING: [u8; 2] = [8, 1];
/// Bytes of a prefix.
const PREFIX: usize = 5;
/// Maximum size of a message, also after decompression, and of all fields of a call.
const MESSAGE_MAX: usize = 4 << 20;
const METADATA_MAX: usize = 16 << 10;
/// Maximum size of a decompressed message without a limit on it.
const INFLATED_MAX: u64 = 64 << 20;
/// Longest timeout in milliseconds of 31 bits.
const WRAP: Nanos = Nanos::from_secs((1 << 31) / 1_000);
/// Calls that a connection answers before it forgets one.
pub(super) const FORGOTTEN: u32 = 10;

/// End of a call.
#[derive(Debug)]
pub(super) enum CallEnd {
    /// An HTTP error without content.
    Http(u16),
    /// Fields of a response without content (Trailers-Only).
    Failed(Vec<(&'static str, String)>),
    /// A message and trailers.
    Reply(Vec<u8>, Vec<(&'static str, String)>),
    /// A message on a stream that stays open.
    Watched(Vec<u8>),
    /// The connection ends with this code.
    Connection(u32),
    /// The server crashes.
    Dead,
    /// No response.
    Nothing,
}

/// An open call.
#[derive(Debug)]
pub(super) struct Call {
    path: Vec<u8>,
    gzip: bool,
    known_encoding: bool,
    buffer: Vec<u8>,
    messages: usize,
    first: Vec<u8>,
    /// Its deadline.
    pub(super) ends_at: Option<Nanos>,
    /// The status that the client sent.
    claimed: Option<String>,
}

impl Call {
    /// Begins a call; `None` for requests of pages.
    pub(super) fn begin(
        at: Nanos,
        path: &[u8],
        method: &[u8],
        fields: &[Field],
        defects: &Defects,
    ) -> Option<Result<Call, CallEnd>> {
        let of = |name: &str| metadata::value(fields, name);
        let kind = of("content-type").unwrap_or_default();
        // no page has a dot in its path
        if !kind.starts_with(b"application/grpc") && !path.contains(&b'.') {
            return None;
        }
        Some(Call::checked(at, path, method, fields, defects))
    }

    fn checked(
        at: Nanos,
        path: &[u8],
        method: &[u8],
        fields: &[Field],
        defects: &Defects,
    ) -> Result<Call, CallEnd> {
        let has = |defect| defects.contains(&defect);
        let of = |name: &str| metadata::value(fields, name);
        let kind = of("content-type").unwrap_or_default();
        if !matches!(kind, b"application/grpc" | b"application/grpc+proto")
            && !has(Defect::CallsAnyType)
        {
            return Err(CallEnd::Http(415));
        }
        if method != b"POST" && !has(Defect::CallsAnyMethod) {
            return Err(CallEnd::Http(405));
        }
        if of(":authority").is_none() && has(Defect::CallsNeedAuthority) {
            return Err(CallEnd::Http(500));
        }
        if metadata::size(fields) > METADATA_MAX {
            return Err(match has(Defect::MetadataEndsConnections) {
                true => CallEnd::Connection(super::ENHANCE_YOUR_CALM),
                false => failed(Code::ResourceExhausted, "the metadata is too large", defects),
            });
        }
        if fields.iter().any(|(name, value)| name.ends_with(b"-bin") && !metadata::is_base64(value))
        {
            return Err(match has(Defect::BadBase64EndsConnections) {
                true => CallEnd::Connection(super::PROTOCOL_ERROR),
                false => failed(Code::Internal, "binary metadata is not base64", defects),
            });
        }
        let timeout = match of("grpc-timeout") {
            None => None,
            Some(value) => match metadata::timeout(value) {
                Some(span) if span > WRAP && has(Defect::WrapsTimeouts) => Some(Nanos::ZERO),
                Some(span) => Some(span),
                None => return Err(failed(Code::Internal, "grpc-timeout is malformed", defects)),
            },
        };
        if timeout.is_some_and(|span| span < Nanos(1_000)) {
            return Err(failed(Code::DeadlineExceeded, "the deadline has passed", defects));
        }
        if !is_method(path, defects) {
            let text = format!("there is no method {}", String::from_utf8_lossy(path));
            return Err(failed(Code::Unimplemented, &text, defects));
        }
        let encoding = of("grpc-encoding").unwrap_or(b"identity");
        let known_encoding = matches!(encoding, b"identity" | b"gzip");
        if !known_encoding && !has(Defect::CallsAnyEncoding) {
            return Err(failed(Code::Unimplemented, "the encoding is unknown", defects));
        }
        let claimed = of("grpc-status").map(|value| String::from_utf8_lossy(value).into_owned());
        Ok(Call {
            path: path.to_vec(),
            gzip: encoding == b"gzip",
            known_encoding,
            buffer: Vec::new(),
            messages: 0,
            first: Vec::new(),
            ends_at: timeout
                .filter(|_| !has(Defect::CallsWithoutDeadline))
                .map(|span| Nanos(at.0.saturating_add(span.0))),
            claimed: claimed.filter(|_| has(Defect::RepeatsStatus)),
        })
    }

    /// Takes content; returns the end of a call that fails early.
    pub(super) fn take(&mut self, content: &[u8], defects: &Defects) -> Option<CallEnd> {
        let has = |defect| defects.contains(&defect);
        let part = self.buffer.is_empty() && !content.is_empty() && content.len() < PREFIX;
        if part && has(Defect::NeedsWholePrefixes) {
            return Some(failed(Code::Internal, "the prefix is cut off", defects));
        }
        self.buffer.extend_from_slice(content);
        while let Some(([flag, length @ ..], _)) = self.buffer.split_first_chunk::<PREFIX>() {
            let (flag, length) = (*flag, u32::from_be_bytes(*length) as usize);
            if flag > 1 && !has(Defect::CallsAnyFlag) {
                return Some(failed(Code::Internal, "the flag of a message is unknown", defects));
            }
            if length > MESSAGE_MAX {
                return Some(match has(Defect::AllocatesMessages) {
                    true => CallEnd::Dead,
                    false => failed(Code::ResourceExhausted, "the message is too long", defects),
                });
            }
            let Some(message) = self.buffer.get(PREFIX..PREFIX + length) else { break };
            let message = match self.plain(flag, message, defects) {
                Ok(message) => message,
                Err(end) => return Some(end),
            };
            self.buffer.drain(..PREFIX + length);
            if self.messages == 0 {
                self.first = message;
            }
            self.messages += 1;
        }
        None
    }

    /// Returns a message without its compression.
    fn plain(&self, flag: u8, message: &[u8], defects: &Defects) -> Result<Vec<u8>, CallEnd> {
        let has = |defect| defects.contains(&defect);
        if flag == 0 {
            return Ok(message.to_vec());
        }
        if !self.known_encoding {
            return Ok(Vec::new());
        }
        if !self.gzip {
            return match has(Defect::CallsAnyFlag) {
                true => Ok(Vec::new()),
                false => Err(failed(Code::Internal, "a message has no encoding", defects)),
            };
        }
        let most = if has(Defect::InflatesCalls) { INFLATED_MAX } else { MESSAGE_MAX as u64 };
        let mut out = Vec::new();
        let Some(mut decoder) = coding::Decoder::with_output_max(b"gzip", most) else {
            return Ok(out);
        };
        match decoder.push(message, &mut out).and_then(|()| decoder.finish()) {
            Ok(()) => Ok(out),
            Err(coding::CodingError::TooLarge(_)) => {
                Err(failed(Code::ResourceExhausted, "the message is too long", defects))
            }
            Err(_) if has(Defect::SkipsBadGzip) => Ok(Vec::new()),
            Err(_) => Err(failed(Code::Internal, "a message cannot be decompressed", defects)),
        }
    }

    /// Ends the call with the end of its stream.
    pub(super) fn finish(&self, defects: &Defects) -> CallEnd {
        let has = |defect| defects.contains(&defect);
        if !self.buffer.is_empty() && !has(Defect::ServesCutMessages) {
            return failed(Code::Internal, "the message is cut off", defects);
        }
        if self.path == REFLECTION {
            return reply(&[], self);
        }
        if self.messages != 1 && !has(Defect::ServesAnyNumber) && !has(Defect::ServesCutMessages) {
            return failed(Code::Unimplemented, "one message is expected", defects);
        }
        let service = match message::service(&self.first, has(Defect::NestsWithoutEnd)) {
            Checked::Service(service) => service,
            Checked::TooDeep if has(Defect::NestsWithoutEnd) => return CallEnd::Dead,
            _ if has(Defect::ServesBadMessages) => Vec::new(),
            _ => return failed(Code::Internal, "the message is malformed", defects),
        };
        if self.path == WATCH {
            return CallEnd::Watched(prefixed(&SERVING));
        }
        match service.is_empty() || has(Defect::KnowsEveryService) {
            true => reply(&SERVING, self),
            false => failed(Code::NotFound, "the service is unknown", defects),
        }
    }

    /// Ends the call at its deadline.
    pub(super) fn late(defects: &Defects) -> CallEnd {
        failed(Code::DeadlineExceeded, "the deadline has passed", defects)
    }
}

fn is_method(path: &[u8], defects: &Defects) -> bool {
    let has = |defect| defects.contains(&defect);
    matches!(path, CHECK | WATCH)
        || path == REFLECTION && has(Defect::ReflectsToAll)
        || path == CHANNELZ && has(Defect::OpensChannelz)
        || has(Defect::ServesEveryMethod)
}

fn reply(message: &[u8], call: &Call) -> CallEnd {
    let mut trailers = vec![("grpc-status", "0".to_owned())];
    trailers.extend(call.claimed.iter().map(|claimed| ("grpc-status", claimed.clone())));
    CallEnd::Reply(prefixed(message), trailers)
}

fn failed(code: Code, message: &str, defects: &Defects) -> CallEnd {
    if defects.contains(&Defect::FailsWithoutStatus) {
        return CallEnd::Failed(Vec::new());
    }
    let coded = |byte: u8| match byte {
        b' '..=b'~' if byte != b'%' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    let coded: String = match defects.contains(&Defect::WritesRawMessages) {
        true => message.to_owned(),
        false => message.bytes().map(coded).collect(),
    };
    let mut fields = vec![("grpc-status", code.number().to_string()), ("grpc-message", coded)];
    if code == Code::Unimplemented {
        fields.push(("grpc-accept-encoding", "identity,gzip".to_owned()));
    }
    CallEnd::Failed(fields)
}
