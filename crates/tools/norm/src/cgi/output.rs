//! Forwards a process's output to the client.

use std::io;
use std::time::Duration;

use hyper::body::Bytes;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::process::CgiProcess;
use super::{CgiLimits, Complain};
use crate::exchange::Content;

/// Maximum number of buffered pieces; while the client does not read them, the process must wait.
const AHEAD: usize = 4;

/// Treatment of a process's output.
pub(super) struct OutputRules {
    pub(super) limits: CgiLimits,
    /// Exactly this many bytes, if known.
    pub(super) length: Option<u64>,
    /// True if the response has no content: the process may finish, and its output is discarded
    /// (§4.3.3).
    pub(super) bodiless: bool,
    pub(super) complain: Complain,
    /// Name in the log.
    pub(super) name: String,
}

/// Reason why a response ends early.
#[derive(Debug)]
enum Broken {
    /// The client has disconnected, so no error is sent.
    Gone,
    Off(String),
}

/// Returns the content of `rest` and the process's further output. It is empty, though of unknown
/// length, for a response without content: HEAD must not reveal the length.
pub(super) fn carry(process: CgiProcess, rest: Bytes, course: OutputRules) -> Content {
    let (sender, receiver) = mpsc::channel(AHEAD);
    let left = course.length.unwrap_or(course.limits.output).min(course.limits.output);
    let exact = course.length.is_some_and(|length| length <= course.limits.output);
    let sender = (!course.bodiless).then_some(sender);
    let mut flow = OutputMeter { left, exact, time: course.limits.time, sender };
    tokio::spawn(async move {
        let Err(Broken::Off(why)) = flow.run(process, rest).await else { return };
        (course.complain)(&format!("CGI {}: {why}", course.name));
        if let Some(sender) = flow.sender {
            // a client that reads no more is sent nothing
            timeout(flow.time, sender.send(Err(io::Error::other(why)))).await.ok();
        }
    });
    Content::Stream(receiver)
}

struct OutputMeter {
    /// Maximum remaining bytes.
    left: u64,
    /// True if exactly these bytes are required.
    exact: bool,
    time: Duration,
    /// To the client, while it is connected.
    sender: Option<mpsc::Sender<io::Result<Bytes>>>,
}

impl OutputMeter {
    async fn run(&mut self, mut process: CgiProcess, rest: Bytes) -> Result<(), Broken> {
        let mut piece = rest;
        let mut goes_on = true;
        while goes_on {
            self.pass(piece).await?;
            piece = self.next(&mut process).await?;
            goes_on = !piece.is_empty();
        }
        process.end(self.time).await.map_err(Broken::Off)?;
        if self.exact && self.left > 0 && self.sender.is_some() {
            let text = format!("{} bytes of its Content-Length are missing", self.left);
            return Err(Broken::Off(text));
        }
        Ok(())
    }

    /// Returns the next piece of output; empty at its end.
    async fn next(&self, process: &mut CgiProcess) -> Result<Bytes, Broken> {
        let gone = async {
            match &self.sender {
                Some(sender) => sender.closed().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = gone => Err(Broken::Gone),
            read = timeout(self.time, process.read()) => match read {
                Ok(Ok(piece)) => Ok(piece),
                Ok(Err(error)) => Err(Broken::Off(error.to_string())),
                Err(_) => Err(Broken::Off("silent for longer than the time limit; killed".into())),
            },
        }
    }

    async fn pass(&mut self, mut piece: Bytes) -> Result<(), Broken> {
        let fits = usize::try_from(self.left).unwrap_or(usize::MAX).min(piece.len());
        let over = piece.len() > fits;
        piece.truncate(fits);
        self.left -= fits as u64;
        if let Some(sender) = &self.sender
            && !piece.is_empty()
        {
            match timeout(self.time, sender.send(Ok(piece))).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => return Err(Broken::Gone),
                Err(_) => {
                    let text = "the client reads nothing for longer than the time limit; killed";
                    return Err(Broken::Off(text.to_owned()));
                }
            }
        }
        if self.exact && self.left == 0 {
            // the client has received everything; the process may still be running
            self.sender = None;
        }
        match (over, self.exact) {
            (false, _) => Ok(()),
            (true, true) => Err(Broken::Off("more output than its Content-Length".to_owned())),
            (true, false) => Err(Broken::Off("more output than the limit; killed".to_owned())),
        }
    }
}
