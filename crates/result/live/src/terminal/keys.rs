//! The keyboard of the terminal, read without waiting longer than requested: a terminal may close,
//! or stop in the middle of a key, and the view must then end or continue.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, IsTerminal, stdin};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// More keys than a user presses between two reads; the rest is handled at the next read.
const READ_MAX: usize = 256;

/// Commands of the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyAction {
    Stop,
    Help,
    NoHelp,
    Redraw,
}

/// Source of keys: standard input if it is a terminal, otherwise the program's controlling
/// terminal.
#[derive(Debug)]
pub(crate) struct Keyboard(Option<File>);

impl Keyboard {
    /// # Errors
    /// Fails if there is no terminal.
    pub(crate) fn open() -> io::Result<Keyboard> {
        if stdin().is_terminal() {
            return Ok(Keyboard(None));
        }
        File::open("/dev/tty").map(|tty| Keyboard(Some(tty)))
    }

    fn with<T>(&self, act: impl FnOnce(BorrowedFd<'_>) -> T) -> T {
        match &self.0 {
            Some(tty) => act(tty.as_fd()),
            None => act(stdin().as_fd()),
        }
    }

    /// Returns the commands, after at most `span`.
    ///
    /// # Errors
    /// Fails if the terminal is closed.
    pub(crate) fn look(&self, span: Duration) -> io::Result<Vec<KeyAction>> {
        self.with(|tty| {
            let mut polled = [PollFd::new(&tty, PollFlags::IN)];
            let span = Timespec { tv_sec: 0, tv_nsec: span.subsec_nanos().into() };
            match poll(&mut polled, Some(&span)) {
                Ok(0) | Err(Errno::INTR) => return Ok(Vec::new()),
                Ok(_) => {}
                Err(error) => return Err(error.into()),
            }
            if polled[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let mut bytes = [0; READ_MAX];
            match rustix::io::read(tty, &mut bytes) {
                Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => Ok(parse_keys(&bytes[..count])),
                Err(Errno::INTR | Errno::AGAIN) => Ok(Vec::new()),
                Err(error) => Err(error.into()),
            }
        })
    }

    /// Returns the current columns and rows; `None` if the terminal does not report them.
    pub(crate) fn size(&self) -> Option<(u16, u16)> {
        let size = self.with(|tty| rustix::termios::tcgetwinsize(tty)).ok()?;
        Some((size.ws_col, size.ws_row))
    }
}

/// Returns the commands in the bytes of keys. In raw mode Ctrl-C is a key like any other.
pub(crate) fn parse_keys(mut bytes: &[u8]) -> Vec<KeyAction> {
    let mut all = Vec::new();
    while let Some((first, rest)) = bytes.split_first() {
        bytes = rest;
        match first {
            b'q' | b'Q' | 0x03 => all.push(KeyAction::Stop),
            b'?' | b'h' => all.push(KeyAction::Help),
            // a repeated key counts once
            0x0c if all.last() == Some(&KeyAction::Redraw) => {}
            0x0c => all.push(KeyAction::Redraw),
            0x1b => {
                let sequence = sequence(rest);
                bytes = &rest[sequence..];
                match &rest[..sequence] {
                    b"" => all.push(KeyAction::NoHelp),
                    // F1 of xterm, of the VT220 and of the Linux console
                    b"OP" | b"[11~" | b"[[A" => all.push(KeyAction::Help),
                    _ => {}
                }
            }
            _ => {}
        }
    }
    all
}

/// Returns how many bytes after an escape belong to the same key: 0 for the Esc key itself. The
/// forms are those of ECMA-48: `O` and one byte, or `[`, parameters and a final byte. Before any
/// other key it counts as Esc: two keys pressed quickly look like one with Alt.
fn sequence(rest: &[u8]) -> usize {
    match rest {
        [] | [0x1b, ..] => 0,
        [b'O', ..] | [b'[', b'[', ..] => rest.len().min(if rest[0] == b'O' { 2 } else { 3 }),
        [b'[', more @ ..] => {
            let last = more.iter().position(|byte| (0x40..=0x7e).contains(byte));
            last.map_or(rest.len(), |last| last + 2)
        }
        _ => 0,
    }
}
