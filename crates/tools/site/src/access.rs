//! The access log: one line per response in the Common Log Format, for comparison with a client's
//! own counts.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use crate::SiteError;

/// Destination of the lines. Clones share the writer. Lines are buffered and flushed when the site
/// stops.
#[derive(Clone)]
pub struct AccessLog {
    writer: Arc<Mutex<dyn Write + Send>>,
    lost: Arc<AtomicU64>,
}

impl AccessLog {
    pub fn with_writer(writer: impl Write + Send + 'static) -> AccessLog {
        AccessLog {
            writer: Arc::new(Mutex::new(BufWriter::new(writer))),
            lost: Arc::new(AtomicU64::new(0)),
        }
    }

    /// Appends to the file at `path`, which is created if it does not exist.
    ///
    /// # Errors
    /// Fails if the file cannot be opened for writing.
    pub fn to_file(path: &Path) -> Result<AccessLog, SiteError> {
        File::options()
            .create(true)
            .append(true)
            .open(path)
            .map(AccessLog::with_writer)
            .map_err(|reason| SiteError::Log { path: path.to_owned(), reason })
    }

    pub(crate) fn line(&self, line: &AccessLine<'_>) {
        let text = line.render(SystemTime::now());
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        if writer.write_all(text.as_bytes()).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn flush(&self) {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        if writer.flush().is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn lines_lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

impl std::fmt::Debug for AccessLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AccessLog").field("lost", &self.lost).finish_non_exhaustive()
    }
}

/// Line about a response.
#[derive(Debug)]
pub(crate) struct AccessLine<'a> {
    pub(crate) peer: Option<SocketAddr>,
    pub(crate) request: &'a str,
    /// Status; `None` if the request got no HTTP response.
    pub(crate) status: Option<u16>,
    /// Length of the body; `None` if it is not known in advance.
    pub(crate) body_len: Option<u64>,
}

impl AccessLine<'_> {
    fn render(&self, at: SystemTime) -> String {
        let peer = self.peer.map_or_else(|| "-".to_owned(), |peer| peer.ip().to_string());
        let status = self.status.map_or_else(|| "-".to_owned(), |status| status.to_string());
        let len = self.body_len.map_or_else(|| "-".to_owned(), |len| len.to_string());
        // `Sun, 06 Nov 1994 08:49:37 GMT`, whose parts are at fixed positions (RFC 9110 §5.6.7)
        let date = httpdate::fmt_http_date(at);
        let (day, month, year, time) = (&date[5..7], &date[8..11], &date[12..16], &date[17..25]);
        let request: String = self.request.chars().map(printable).collect();
        format!("{peer} - - [{day}/{month}/{year}:{time} +0000] \"{request}\" {status} {len}\n")
    }
}

/// Replaces characters of a peer that could forge a line or end the quoted field.
fn printable(c: char) -> char {
    if c.is_ascii_graphic() && c != '"' && c != '\\' || c == ' ' { c } else { '.' }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_the_common_format_and_cannot_be_forged() {
        let line = AccessLine {
            peer: Some(([127, 0, 0, 1], 4711).into()),
            request: "GET /\"\n HTTP/1.1",
            status: Some(200),
            body_len: Some(11),
        };
        let at = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(784_111_777);
        assert_eq!(
            line.render(at),
            "127.0.0.1 - - [06/Nov/1994:08:49:37 +0000] \"GET /.. HTTP/1.1\" 200 11\n"
        );
        let silent = AccessLine { peer: None, request: "", status: None, body_len: None };
        assert_eq!(silent.render(at), "- - - [06/Nov/1994:08:49:37 +0000] \"\" - -\n");
    }
}
