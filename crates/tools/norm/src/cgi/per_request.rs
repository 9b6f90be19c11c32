//! Static pages with a process for every request, as in servers before processes were kept:
//! torture.pl's second server.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use hyper::body::Bytes;
use hyper::header::{CONTENT_LENGTH, HeaderValue};
use hyper::http::StatusCode;

use super::output::{OutputRules, carry};
use super::process::{CgiProcess, Input};
use super::{CgiFailure, CgiLimits, Complain, Places};
use crate::exchange::{Content, Piece, Reply};

/// Sends the content of responses through a process started for each response.
#[derive(Clone)]
pub(crate) struct PerRequest {
    /// Copies standard input to standard output: `cat`.
    pub(crate) program: PathBuf,
    pub(crate) limits: CgiLimits,
    pub(crate) places: Arc<Places>,
    pub(crate) complain: Complain,
}

impl std::fmt::Debug for PerRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PerRequest").field("program", &self.program).finish_non_exhaustive()
    }
}

impl PerRequest {
    pub(crate) fn new(places: Arc<Places>, limits: CgiLimits, complain: Complain) -> PerRequest {
        PerRequest { program: "/bin/cat".into(), limits, places, complain }
    }

    /// Returns the response with its content copied by a process; an empty response starts a
    /// process too. Streamed content stays unchanged.
    pub(crate) async fn copy_through_process(&self, reply: Reply) -> Reply {
        match self.run(reply).await {
            Ok(reply) => reply,
            Err(failure) => {
                (self.complain)(&format!("process per request: {failure}"));
                failure.reply()
            }
        }
    }

    async fn run(&self, mut reply: Reply) -> Result<Reply, CgiFailure> {
        let pieces = match reply.content {
            Content::Empty => Vec::new(),
            Content::Bytes(bytes) => vec![Piece::Bytes(bytes)],
            Content::Pieces(pieces) => pieces,
            Content::Stream(_) | Content::Elsewhere(_) => return Ok(reply),
        };
        let length = pieces.iter().map(Piece::len).sum();
        let place = self.places.take(self.limits.time).await.ok_or(CgiFailure::Busy)?;
        let mut command = Command::new(&self.program);
        command.env_clear();
        let complain = self.complain.clone();
        let started = CgiProcess::start(command, Input::Pieces(pieces), place, complain).await;
        let process = started.map_err(CgiFailure::Start)?;
        let bodiless = length == 0;
        if !bodiless && reply.status != StatusCode::NOT_MODIFIED {
            reply.headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
        }
        let course = OutputRules {
            // the length is known: no other limit is needed
            limits: CgiLimits { output: length, ..self.limits },
            length: Some(length),
            bodiless,
            complain: self.complain.clone(),
            name: self.program.display().to_string(),
        };
        let content = carry(process, Bytes::new(), course);
        reply.content = if bodiless { Content::Empty } else { content };
        Ok(reply)
    }
}
