//! The splittable seeded generator: one master seed, split by purpose and by index, so that the
//! timing of a run never changes the bytes sent and one stream never affects another.

/// The master seed of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seed(pub u64);

/// Purpose of a random stream. Streams of different purposes are independent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    Arrivals,
    Targets,
    Think,
    Site,
    Bootstrap,
    Simulation,
    Torture,
    Steps,
    Files,
    Sequence,
    Paths,
    Journeys,
    Feeders,
    Columns,
    Scenarios,
    Logins,
    Scripts,
    Advertising,
    Operations,
    Sockets,
}

impl Seed {
    /// Returns the stream for one purpose and one index (a user, a call, a repeat).
    pub fn stream(self, purpose: Purpose, index: u64) -> Stream {
        let salted = mix(self.0 ^ mix(purpose as u64 + 1));
        Stream { state: mix(salted ^ mix(index.wrapping_mul(GOLDEN).wrapping_add(1))) }
    }
}

/// Stream of random numbers: SplitMix64 (Steele, Lea, Flood, OOPSLA 2014), which passes BigCrush;
/// each state is one addition away from the next.
#[derive(Clone, Debug)]
pub struct Stream {
    state: u64,
}

impl Stream {
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN);
        mix(self.state)
    }

    /// Returns a uniform number in [0, 1), with 53 random bits.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Returns a uniform number in 0..`bound` (0 if `bound` is 0), by the multiply-shift reduction.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// Returns a uniform number in [low, high).
    pub fn uniform(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// Returns an exponential number with the given mean, by inversion: −mean·ln(1−u).
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.unit()).ln()
    }
}

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests;
