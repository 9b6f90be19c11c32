//! A process with its group and its pipes, none of which outlive it.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::process::{ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hyper::body::Bytes;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio::sync::oneshot;
use tokio::task::{JoinSet, spawn_blocking};

use super::Complain;
use super::head::{self, CgiHead};
use super::places::ProcessSlot;
use crate::exchange::Piece;

/// Bytes read or written at a time.
pub(super) const PIECE_LEN: usize = 16 << 10;
/// Maximum number of bytes of standard error that a process may write to the log; the rest is read
/// and discarded.
const COMPLAINT_MAX: usize = 16 << 10;
/// Maximum length of a log line in bytes.
const LINE_MAX: usize = 1_000;

/// Standard input of a process.
#[derive(Debug)]
pub(super) enum Input {
    None,
    /// Through a pipe.
    Pieces(Vec<Piece>),
    /// From the file itself.
    File(File),
}

/// A running process. Dropping it kills its group; its place is free when it has been reaped.
#[derive(Debug)]
pub(super) struct CgiProcess {
    output: pipe::Receiver,
    ended: oneshot::Receiver<io::Result<ExitStatus>>,
    /// Standard input is written and standard error read concurrently; both end with the process.
    aside: JoinSet<()>,
    _kill: KillOnDrop,
}

impl CgiProcess {
    /// # Errors
    /// Fails if the program cannot be started: the system's error.
    pub(super) async fn start(
        mut command: Command,
        input: Input,
        place: ProcessSlot,
        complain: Complain,
    ) -> io::Result<CgiProcess> {
        let (stdin, pieces) = match input {
            Input::None => (Stdio::null(), None),
            Input::File(file) => (Stdio::from(file), None),
            Input::Pieces(pieces) => (Stdio::piped(), Some(pieces)),
        };
        command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let (tell, started) = oneshot::channel();
        let (end, ended) = oneshot::channel();
        // held while the process lives; a runtime that is dropped waits for it, so that every
        // process is reaped
        spawn_blocking(move || keep(command, place, tell, end));
        let gone = |_| io::Error::other("the server is stopping");
        let Started { stdin, stdout, stderr, kill } = started.await.map_err(gone)??;
        let mut aside = JoinSet::new();
        if let (Some(stdin), Some(pieces)) = (stdin, pieces) {
            let pipe = pipe::Sender::from_owned_fd(OwnedFd::from(stdin))?;
            aside.spawn(feed(pipe, pieces));
        }
        let errors = pipe::Receiver::from_owned_fd(OwnedFd::from(stderr))?;
        aside.spawn(listen(errors, complain));
        let output = pipe::Receiver::from_owned_fd(OwnedFd::from(stdout))?;
        Ok(CgiProcess { output, ended, aside, _kill: kill })
    }

    /// Returns the header of its response, and the bytes read after it.
    ///
    /// # Errors
    /// Fails with the error in the output.
    pub(super) async fn head(&mut self) -> Result<(CgiHead, Bytes), String> {
        let mut seen = Vec::new();
        loop {
            if let Some(end) = head::end(&seen) {
                let head = head::parse(&seen[..end])?;
                return Ok((head, Bytes::copy_from_slice(&seen[end..])));
            }
            if seen.len() > head::HEAD_MAX {
                return Err(format!("no end of the header within {} bytes", head::HEAD_MAX));
            }
            let piece = self.read().await.map_err(|error| error.to_string())?;
            if piece.is_empty() {
                let what = if seen.is_empty() { "without output" } else { "inside the header" };
                return Err(format!("it ended {what}"));
            }
            seen.extend_from_slice(&piece);
        }
    }

    /// Returns the next piece of standard output; empty at its end.
    pub(super) async fn read(&mut self) -> io::Result<Bytes> {
        let mut piece = Vec::with_capacity(PIECE_LEN);
        self.output.read_buf(&mut piece).await?;
        Ok(Bytes::from(piece))
    }

    /// Waits until the process is reaped and its standard error logged, killing it after
    /// `patience`.
    ///
    /// # Errors
    /// Fails if it did not exit on its own in time, or a signal ended it.
    pub(super) async fn end(mut self, patience: Duration) -> Result<(), String> {
        let end = tokio::time::timeout(patience, async {
            let status = (&mut self.ended).await;
            while self.aside.join_next().await.is_some() {}
            status
        });
        match end.await {
            Err(_) => Err("it closed its output and did not end".to_owned()),
            Ok(Ok(Ok(status))) if status.code().is_some() => Ok(()),
            Ok(Ok(Ok(status))) => Err(format!("it died: {status}")),
            Ok(Ok(Err(error))) => Err(format!("it cannot be waited for: {error}")),
            Ok(Err(_)) => Err("the thread that waited for it ended early".to_owned()),
        }
    }
}

/// Result of the starting thread.
struct Started {
    stdin: Option<ChildStdin>,
    stdout: ChildStdout,
    stderr: ChildStderr,
    kill: KillOnDrop,
}

/// Starts the process, waits for its end, reaps it. Blocks as long as it lives.
fn keep(
    mut command: Command,
    place: ProcessSlot,
    tell: oneshot::Sender<io::Result<Started>>,
    end: oneshot::Sender<io::Result<ExitStatus>>,
) {
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            drop(place);
            // the requester may have disconnected: then the result is dropped
            tell.send(Err(error)).ok();
            return;
        }
    };
    let pid = Pid::from_child(&child);
    let group = ProcessGroup::new(pid);
    let kill = KillOnDrop(Arc::clone(&group));
    place.hold(&group);
    let stdin = child.stdin.take();
    let stdout = child.stdout.take().expect("standard output was asked for as a pipe");
    let stderr = child.stderr.take().expect("standard error was asked for as a pipe");
    // if the requester has disconnected, this is returned and dropped, which kills the process
    tell.send(Ok(Started { stdin, stdout, stderr, kill })).ok();
    // unreaped, its number still identifies its group and no other
    let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    while matches!(rustix::process::waitid(WaitId::Pid(pid), ended), Err(Errno::INTR)) {}
    group.close();
    let status = child.wait();
    drop(place);
    end.send(status).ok();
}

/// A process group as long as its number is known to be its own.
#[derive(Debug)]
pub(super) struct ProcessGroup(Mutex<Option<Pid>>);

impl ProcessGroup {
    fn new(leader: Pid) -> Arc<ProcessGroup> {
        Arc::new(ProcessGroup(Mutex::new(Some(leader))))
    }

    pub(super) fn kill(&self) {
        if let Some(group) = *self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            // an empty group is equivalent
            rustix::process::kill_process_group(group, Signal::KILL).ok();
        }
    }

    /// Kills the rest of the group, for the last time.
    fn close(&self) {
        self.kill();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

#[derive(Debug)]
struct KillOnDrop(Arc<ProcessGroup>);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        self.0.kill();
    }
}

/// Writes a process's standard input. A process that does not read is within its rights (§4.2).
async fn feed(mut pipe: pipe::Sender, pieces: Vec<Piece>) {
    for piece in pieces {
        let fed = match piece {
            Piece::Bytes(bytes) => pipe.write_all(&bytes).await,
            Piece::File { file, start, len } => feed_file(&mut pipe, file, start, len).await,
        };
        if fed.is_err() {
            return;
        }
    }
}

async fn feed_file(pipe: &mut pipe::Sender, file: File, start: u64, len: u64) -> io::Result<()> {
    let file = Arc::new(file);
    let (mut at, end) = (start, start.saturating_add(len));
    while at < end {
        let (from, wanted) = (Arc::clone(&file), (end - at).min(PIECE_LEN as u64));
        let read = move || {
            let mut piece = vec![0; wanted as usize];
            from.read_at(&mut piece, at).map(|count| {
                piece.truncate(count);
                piece
            })
        };
        let piece = spawn_blocking(read).await.map_err(io::Error::other)??;
        if piece.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        at += piece.len() as u64;
        pipe.write_all(&piece).await?;
    }
    Ok(())
}

/// Logs a process's standard error, line by line, up to the limit.
async fn listen(mut pipe: pipe::Receiver, complain: Complain) {
    let mut heard: Vec<u8> = Vec::new();
    let mut total = 0;
    let mut piece = Vec::with_capacity(PIECE_LEN);
    loop {
        piece.clear();
        match pipe.read_buf(&mut piece).await {
            Ok(0) | Err(_) => break,
            Ok(count) => {
                let kept = count.min(COMPLAINT_MAX - total);
                total += kept;
                heard.extend_from_slice(&piece[..kept]);
            }
        }
        while let Some(end) = heard.iter().position(|byte| *byte == b'\n') {
            log_line(&complain, &heard[..end]);
            heard.drain(..=end);
        }
    }
    log_line(&complain, &heard);
}

fn log_line(complain: &Complain, line: &[u8]) {
    let line = String::from_utf8_lossy(&line[..line.len().min(LINE_MAX)]);
    // a script must not write lines of the log that look like ours
    let line: String = line.trim_end().chars().filter(|c| !c.is_control()).collect();
    if !line.is_empty() {
        complain(&format!("CGI: {line}"));
    }
}
