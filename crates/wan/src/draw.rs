//! The random numbers of a link: a stream for each stage, so that changing a delay does not change
//! which packets are lost, and a fixed number of draws for each packet, used or not.

use units::{Purpose, Seed, Stream};

/// Which way a link carries packets, seen from the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Client to server.
    Up,
    /// Server to client.
    Down,
}

impl Direction {
    pub const BOTH: [Direction; 2] = [Direction::Up, Direction::Down];

    /// `up`, `down`.
    pub fn id(self) -> &'static str {
        match self {
            Direction::Up => "up",
            Direction::Down => "down",
        }
    }
}

/// What a stream of a link is for.
#[derive(Clone, Copy)]
enum DrawPurpose {
    Loss,
    Duplicate,
    Corrupt,
    Delay,
    Ahead,
    Outage,
}

const STAGES: u64 = 8;

/// All that is drawn for one packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Draw {
    /// Transition of the loss model's state, and the loss itself.
    pub(crate) loss: [f64; 2],
    pub(crate) duplicate: f64,
    pub(crate) corrupt: f64,
    /// Which bit.
    pub(crate) bit: u64,
    /// Of the packet and of its copy.
    pub(crate) delay: [f64; 2],
    pub(crate) ahead: f64,
}

/// The streams of one link in one direction.
#[derive(Clone, Debug)]
pub(crate) struct Draws {
    loss: Stream,
    duplicate: Stream,
    corrupt: Stream,
    delay: Stream,
    ahead: Stream,
}

impl Draws {
    pub(crate) fn new(seed: Seed, link: u64, direction: Direction) -> Draws {
        let stream = |stage| stream(seed, link, direction, stage);
        Draws {
            loss: stream(DrawPurpose::Loss),
            duplicate: stream(DrawPurpose::Duplicate),
            corrupt: stream(DrawPurpose::Corrupt),
            delay: stream(DrawPurpose::Delay),
            ahead: stream(DrawPurpose::Ahead),
        }
    }

    /// The draws of the next packet.
    pub(crate) fn next(&mut self) -> Draw {
        Draw {
            loss: [self.loss.unit(), self.loss.unit()],
            duplicate: self.duplicate.unit(),
            corrupt: self.corrupt.unit(),
            bit: self.corrupt.next_u64(),
            delay: [self.delay.unit(), self.delay.unit()],
            ahead: self.ahead.unit(),
        }
    }
}

/// The stream of a link's outages, drawn from by the outage and not by the packet.
pub(crate) fn outages(seed: Seed, link: u64, direction: Direction) -> Stream {
    stream(seed, link, direction, DrawPurpose::Outage)
}

fn stream(seed: Seed, link: u64, direction: Direction, stage: DrawPurpose) -> Stream {
    let index = (link.wrapping_mul(2) + direction as u64).wrapping_mul(STAGES) + stage as u64;
    seed.stream(Purpose::Paths, index)
}
