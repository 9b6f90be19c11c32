//! Data between a connection and the node that answers.

use std::fs::File;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use hyper::body::Bytes;
use hyper::http::{HeaderMap, Method, StatusCode, Version};
use tokio::sync::mpsc;

/// Server name.
pub(crate) const SOFTWARE: &str = concat!("Loadstone/", env!("CARGO_PKG_VERSION"));

/// A request, complete with its body.
#[derive(Debug)]
pub(crate) struct Ask {
    pub(crate) method: Method,
    pub(crate) version: Version,
    /// Path after percent-decoding, without dot segments; begins with `/`. Never leads upwards.
    pub(crate) path: String,
    /// Part of `path` that names the node, and the rest (begins with `/` or is empty): CGI's
    /// SCRIPT_NAME and PATH_INFO.
    pub(crate) node_path: String,
    pub(crate) rest: String,
    /// Query as sent, undecoded.
    pub(crate) query: Option<String>,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Entity,
    pub(crate) peer: SocketAddr,
    pub(crate) local: SocketAddr,
    /// The authenticated user, if any.
    pub(crate) user: Option<String>,
}

/// A body that has been read completely.
#[derive(Debug)]
pub(crate) enum Entity {
    None,
    Memory(Bytes),
    /// Longer than the limit: in a file of the tmp directory, which is removed when this is
    /// dropped.
    Spooled(Spooled),
}

/// A file with the lifetime of the request.
#[derive(Debug)]
pub(crate) struct Spooled {
    pub(crate) path: PathBuf,
    pub(crate) len: u64,
    /// The lock shows other servers that the file is in use.
    _locked: Arc<File>,
    stays: bool,
}

impl Spooled {
    /// Returns an empty file that holds its lock.
    pub(crate) fn new(path: PathBuf, locked: Arc<File>) -> Spooled {
        Spooled { path, len: 0, _locked: locked, stays: false }
    }

    /// Leaves the file: a deliberate fault.
    pub(crate) fn keep_file(&mut self) {
        self.stays = true;
    }
}

impl Drop for Spooled {
    fn drop(&mut self) {
        if !self.stays {
            // gone already is as good
            std::fs::remove_file(&self.path).ok();
        }
    }
}

impl Entity {
    pub(crate) fn len(&self) -> u64 {
        match self {
            Entity::None => 0,
            Entity::Memory(bytes) => bytes.len() as u64,
            Entity::Spooled(file) => file.len,
        }
    }
}

/// A response. The connection adds Date, Server, framing and Server-Timing, and leaves the content
/// out for HEAD, 204 and 304.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) content: Content,
}

#[derive(Debug)]
pub(crate) enum Content {
    Empty,
    Bytes(Bytes),
    /// Pieces of files and bytes in sequence: ranges, multipart ranges.
    Pieces(Vec<Piece>),
    /// Content of the announced length, or of unknown length without Content-Length; ends when the
    /// sender is dropped, and is truncated by an error.
    Stream(mpsc::Receiver<std::io::Result<Bytes>>),
    /// The response to a GET of this path of the site, query included: CGI's local redirect (RFC
    /// 3875 §6.2.2). The rest of the reply is ignored.
    Elsewhere(String),
}

#[derive(Debug)]
pub(crate) enum Piece {
    Bytes(Bytes),
    File { file: File, start: u64, len: u64 },
}

impl Piece {
    pub(crate) fn len(&self) -> u64 {
        match self {
            Piece::Bytes(bytes) => bytes.len() as u64,
            Piece::File { len, .. } => *len,
        }
    }
}

impl Reply {
    /// Returns a short text in response to a request that cannot be fulfilled.
    pub(crate) fn text(status: StatusCode, text: impl Into<String>) -> Reply {
        let mut headers = HeaderMap::new();
        let plain = hyper::http::HeaderValue::from_static("text/plain; charset=utf-8");
        headers.insert(hyper::header::CONTENT_TYPE, plain);
        Reply { status, headers, content: Content::Bytes(Bytes::from(text.into())) }
    }
}
