//! The random numbers of a link: a separate stream per stage, so that changing a delay does not
//! change which packets are lost, and a fixed number of draws per packet, used or not.

use units::{Purpose, Seed, Stream};

/// The direction of a link, from the perspective of the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Client to server.
    Up,
    /// Server to client.
    Down,
}

impl Direction {
    pub const BOTH: [Direction; 2] = [Direction::Up, Direction::Down];

    /// Returns `up` or `down`.
    pub fn id(self) -> &'static str {
        match self {
            Direction::Up => "up",
            Direction::Down => "down",
        }
    }
}

/// The purpose of a random stream of a link.
#[derive(Clone, Copy)]
enum DrawPurpose {
    Loss,
    Duplicate,
    Corrupt,
    Delay,
    Ahead,
    Outage,
}

/// Number of random streams reserved for each link and direction: at least one per [`DrawPurpose`].
const STAGES: u64 = 8;

/// All random numbers of one packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Draw {
    /// Numbers for the state transition of the loss model, and for the loss itself.
    pub(crate) loss: [f64; 2],
    pub(crate) duplicate: f64,
    pub(crate) corrupt: f64,
    /// Number that selects the bit.
    pub(crate) bit: u64,
    /// Delay of the packet and of its copy.
    pub(crate) delay: [f64; 2],
    pub(crate) ahead: f64,
}

/// Random streams of one link in one direction.
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

    /// Returns the random numbers of the next packet.
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

/// Returns the random stream of a link's outages, which advances per outage and not per packet.
pub(crate) fn outages(seed: Seed, link: u64, direction: Direction) -> Stream {
    stream(seed, link, direction, DrawPurpose::Outage)
}

fn stream(seed: Seed, link: u64, direction: Direction, stage: DrawPurpose) -> Stream {
    let index = (link.wrapping_mul(2) + direction as u64).wrapping_mul(STAGES) + stage as u64;
    seed.stream(Purpose::Paths, index)
}
