//! Creates the response to a request from an open file or its bytes: complete, in parts, or 304.

use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hyper::body::Bytes;
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::http::StatusCode;

use super::conditional::{self, PreconditionResult, Validators};
use super::kind;
use super::place::Opened;
use super::range::{self, RangeRequest, Span};
use crate::breaks::{Break, Breaks};
use crate::exchange::{Ask, Content, Piece, Reply};

/// Header fields of a file's responses.
#[derive(Debug)]
pub(super) struct Face {
    state: FileVersion,
    len: u64,
    etag: String,
    /// Last modification in seconds since 1970.
    modified: Option<u64>,
    /// Content-Type, Accept-Ranges, ETag, Last-Modified.
    headers: HeaderMap,
    /// True if the file had not been written for a while when it was read: see [`SETTLING`].
    settled: bool,
}

/// Version of a file; different states of a file differ in at least one field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileVersion {
    device: u64,
    inode: u64,
    len: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

/// Age below which a file is read again each time: a file written twice within a tick of the file
/// system's clock looks the same after both writes.
const SETTLING: Duration = Duration::from_secs(1);

/// The first second that is no HTTP date: the year 10000.
const DATES_END: u64 = 253_402_300_800;

/// Source of the bytes.
#[derive(Debug)]
pub(super) enum ContentSource<'a> {
    Memory(&'a Bytes),
    File(File),
}

impl Face {
    pub(super) fn new(opened: &Opened) -> Face {
        Face::at(opened, SystemTime::now())
    }

    fn at(opened: &Opened, now: SystemTime) -> Face {
        let facts = &opened.facts;
        let state = FileVersion {
            device: facts.dev(),
            inode: facts.ino(),
            len: facts.len(),
            modified: (facts.mtime(), facts.mtime_nsec()),
            changed: (facts.ctime(), facts.ctime_nsec()),
        };
        let now = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        // never later than the response itself (RFC 9110 §8.8.2.1)
        let written = u64::try_from(facts.mtime()).ok().map(|written| written.min(now.as_secs()));
        let modified = written.filter(|written| *written < DATES_END);
        let (seconds, nanos) = state.modified;
        let etag = format!("\"{:x}-{:x}-{seconds:x}.{nanos:x}\"", state.inode, state.len);
        let age = now.as_secs().checked_sub(facts.ctime().try_into().unwrap_or(0));
        let settled = age.is_some_and(|age| age > SETTLING.as_secs());
        let headers = headers(opened, &etag, modified);
        Face { state, len: state.len, etag, modified, headers, settled }
    }

    /// Returns whether the earlier and the current content are the same.
    pub(super) fn is_same_state(&self, now: &Face) -> bool {
        self.settled && self.state == now.state
    }

    /// Sets the length to that of the bytes read: it may have changed since the file was examined.
    pub(super) fn of_len(mut self, len: u64) -> Face {
        self.len = len;
        self
    }

    /// Returns the response to GET or HEAD.
    pub(super) fn answer(&self, ask: &Ask, source: ContentSource<'_>, breaks: &Breaks) -> Reply {
        let now = Validators { etag: &self.etag, modified: self.modified };
        let ranges = match conditional::judge(&ask.method, &ask.headers, now) {
            PreconditionResult::Failed => return precondition_failed(),
            PreconditionResult::NotModified if !breaks.has(Break::NotModified) => {
                return self.unchanged();
            }
            PreconditionResult::NotModified => false,
            PreconditionResult::Go { ranges } => ranges && !breaks.has(Break::Ranges),
        };
        match self.requested_ranges(&ask.headers, ranges) {
            RangeRequest::Whole => self.whole(source, breaks),
            RangeRequest::Parts(parts) => self.parts(source, &parts, breaks),
            RangeRequest::Unsatisfiable => self.unsatisfiable(),
        }
    }

    fn requested_ranges(&self, headers: &HeaderMap, heeded: bool) -> RangeRequest {
        let mut fields = headers.get_all(header::RANGE).iter();
        match (fields.next().and_then(|field| field.to_str().ok()), fields.next()) {
            (Some(field), None) if heeded => range::requested_ranges(field, self.len),
            _ => RangeRequest::Whole,
        }
    }

    fn whole(&self, source: ContentSource<'_>, breaks: &Breaks) -> Reply {
        let content = match source {
            ContentSource::Memory(bytes) => Content::Bytes(bytes.clone()),
            ContentSource::File(file) => {
                Content::Pieces(vec![Piece::File { file, start: 0, len: self.len }])
            }
        };
        Reply { status: StatusCode::OK, headers: self.headers(breaks), content }
    }

    fn headers(&self, breaks: &Breaks) -> HeaderMap {
        let mut headers = self.headers.clone();
        if breaks.has(Break::Mime) {
            let octets = HeaderValue::from_static("application/octet-stream");
            headers.insert(header::CONTENT_TYPE, octets);
        }
        headers
    }

    /// Returns a 304 with the fields that a cache needs (RFC 9110 §15.4.5).
    fn unchanged(&self) -> Reply {
        let mut headers = HeaderMap::new();
        for name in [header::ETAG, header::LAST_MODIFIED] {
            if let Some(value) = self.headers.get(&name) {
                headers.insert(name, value.clone());
            }
        }
        Reply { status: StatusCode::NOT_MODIFIED, headers, content: Content::Empty }
    }

    fn unsatisfiable(&self) -> Reply {
        let text = format!("Range Not Satisfiable: there are {} bytes.\n", self.len);
        let mut reply = Reply::text(StatusCode::RANGE_NOT_SATISFIABLE, text);
        reply.headers.insert(header::CONTENT_RANGE, ascii(format!("bytes */{}", self.len)));
        reply
    }

    fn parts(&self, source: ContentSource<'_>, parts: &[Span], breaks: &Breaks) -> Reply {
        let mut headers = self.headers(breaks);
        let pieces = match parts {
            [part] => {
                headers.insert(header::CONTENT_RANGE, ascii(self.content_range(*part)));
                piece(&source, *part).map(|piece| vec![piece])
            }
            parts => {
                let boundary = boundary();
                let kind = headers.insert(
                    header::CONTENT_TYPE,
                    ascii(format!("multipart/byteranges; boundary={boundary}")),
                );
                self.multipart(&source, parts, &boundary, kind.as_ref())
            }
        };
        match pieces {
            Ok(pieces) => {
                let content = Content::Pieces(pieces);
                Reply { status: StatusCode::PARTIAL_CONTENT, headers, content }
            }
            Err(_) => {
                let text = "Service Unavailable: too many files are open.\n";
                Reply::text(StatusCode::SERVICE_UNAVAILABLE, text)
            }
        }
    }

    /// Returns a multipart body, in which each part has its own header (RFC 9110 §14.6).
    fn multipart(
        &self,
        source: &ContentSource<'_>,
        parts: &[Span],
        boundary: &str,
        kind: Option<&HeaderValue>,
    ) -> io::Result<Vec<Piece>> {
        let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or("application/octet-stream");
        let mut pieces = Vec::with_capacity(parts.len() * 2 + 1);
        for part in parts {
            let head = format!(
                "\r\n--{boundary}\r\nContent-Type: {kind}\r\nContent-Range: {}\r\n\r\n",
                self.content_range(*part)
            );
            pieces.push(Piece::Bytes(head.into()));
            pieces.push(piece(source, *part)?);
        }
        pieces.push(Piece::Bytes(format!("\r\n--{boundary}--\r\n").into()));
        Ok(pieces)
    }

    fn content_range(&self, part: Span) -> String {
        format!("bytes {}-{}/{}", part.start, part.last(), self.len)
    }
}

fn headers(opened: &Opened, etag: &str, modified: Option<u64>) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(8);
    headers.insert(header::CONTENT_TYPE, ascii(kind::media_type(&opened.below)));
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    headers.insert(header::ETAG, ascii(etag.to_owned()));
    if let Some(modified) = modified {
        let at = UNIX_EPOCH + Duration::from_secs(modified);
        headers.insert(header::LAST_MODIFIED, ascii(httpdate::fmt_http_date(at)));
    }
    headers
}

fn ascii(text: String) -> HeaderValue {
    HeaderValue::try_from(text).expect("letters, digits and signs that we chose")
}

fn piece(source: &ContentSource<'_>, part: Span) -> io::Result<Piece> {
    match source {
        ContentSource::Memory(bytes) => {
            let at = |offset: u64| usize::try_from(offset).expect("an offset in memory");
            Ok(Piece::Bytes(bytes.slice(at(part.start)..at(part.start + part.len))))
        }
        ContentSource::File(file) => {
            Ok(Piece::File { file: file.try_clone()?, start: part.start, len: part.len })
        }
    }
}

/// Returns an unpredictable boundary, so that no file can contain it on purpose.
fn boundary() -> String {
    let random = || RandomState::new().build_hasher().finish();
    format!("part-{:016x}{:016x}", random(), random())
}

fn precondition_failed() -> Reply {
    let text = "Precondition Failed: the file is not as the request expects.\n";
    Reply::text(StatusCode::PRECONDITION_FAILED, text)
}

/// Returns the bytes of a file that had `len` of them a moment ago: no more, and fewer if it
/// shrank.
pub(super) fn read(file: &File, len: u64) -> io::Result<Bytes> {
    let mut bytes = vec![0; usize::try_from(len).map_err(io::Error::other)?];
    let mut filled = 0;
    while filled < bytes.len() {
        match file.read_at(&mut bytes[filled..], filled as u64) {
            Ok(0) => break,
            Ok(more) => filled += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(filled);
    Ok(bytes.into())
}

#[cfg(test)]
mod tests;
