//! Responses that hyper declines to write.

use tokio::io::{AsyncWrite, AsyncWriteExt};

use super::body::Pieces;
use super::socket::SocketVisit;
use crate::head::{BodyFraming, ResponseHead};
use crate::pattern;

/// A response written by hand. Only to a request without a body, and under HTTP/1.1.
#[derive(Clone, Debug)]
pub(super) struct RawResponse {
    pub(super) kind: RawKind,
    /// True for HEAD, whose response has no body.
    pub(super) head_only: bool,
    /// True if the connection continues after the response.
    pub(super) keep: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RawKind {
    /// A body that ends with the connection (RFC 9112 §6.3, rule 8).
    Close { len: u64 },
    /// Chunked body with a trailer. hyper sends one only to clients that send `TE: trailers`;
    /// without that, a trailer may be sent if, as here, it may be ignored (RFC 9110 §6.5.1).
    Trailer { len: u64, pieces: u64 },
    /// The connection is a WebSocket from here on.
    Socket(Box<SocketVisit>),
    /// Interim head, followed by a plain response; none after 101.
    Interim { code: u16 },
}

const PLAIN: &str = "Content-Type: text/plain\r\n";
const AFTER_INTERIM: &str = "after an interim response\n";

impl RawResponse {
    pub(super) fn status(&self) -> u16 {
        match self.kind {
            RawKind::Interim { code: 101 } | RawKind::Socket(_) => 101,
            _ => 200,
        }
    }

    pub(super) async fn write(
        &self,
        stream: &mut (impl AsyncWrite + Unpin),
        date: &str,
    ) -> std::io::Result<()> {
        let connection = (!self.keep).then_some("close");
        let head = |framing, extra| {
            ResponseHead { status: 200, date, framing, connection, extra }.render()
        };
        match self.kind {
            RawKind::Socket(ref visit) => stream.write_all(&visit.response()).await?,
            RawKind::Close { len } => {
                stream.write_all(&head(BodyFraming::Unsaid, PLAIN)).await?;
                let mut position = if self.head_only { len } else { 0 };
                while position < len {
                    let slice = pattern::slice(position, len - position);
                    stream.write_all(slice).await?;
                    position += slice.len() as u64;
                }
            }
            RawKind::Trailer { len, pieces } => {
                let extra = format!("{PLAIN}Trailer: X-Body-Length\r\n");
                stream.write_all(&head(BodyFraming::Chunked, &extra)).await?;
                if self.head_only {
                    return Ok(());
                }
                for piece in Pieces::new(len, pieces) {
                    let size = format!("{:x}\r\n", piece.len());
                    let chunk = [size.as_bytes(), &piece, b"\r\n"].concat();
                    stream.write_all(&chunk).await?;
                }
                let end = format!("0\r\nX-Body-Length: {len}\r\n\r\n");
                stream.write_all(end.as_bytes()).await?;
            }
            RawKind::Interim { code: 101 } => {
                let line = "HTTP/1.1 101 Switching Protocols\r\n";
                let text = format!("{line}Connection: upgrade\r\nUpgrade: none\r\n\r\n");
                stream.write_all(text.as_bytes()).await?;
            }
            RawKind::Interim { code } => {
                let reason = crate::head::reason(code);
                let mut bytes = format!("HTTP/1.1 {code} {reason}\r\n\r\n").into_bytes();
                let framing = BodyFraming::Length(AFTER_INTERIM.len() as u64);
                bytes.extend(head(framing, PLAIN));
                if !self.head_only {
                    bytes.extend_from_slice(AFTER_INTERIM.as_bytes());
                }
                stream.write_all(&bytes).await?;
            }
        }
        Ok(())
    }
}
