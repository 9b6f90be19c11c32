//! Bodies known by their length and hash, and bodies that differ from those of their targets.

use units::Nanos;

/// Length and hash of a body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BodyPrint {
    /// Length in bytes, decoded if that was requested; `None` if unknown in advance.
    pub length: Option<u64>,
    /// XXH3 of 128 bits with seed 0, as `xxh128sum` prints it.
    pub hash: u128,
}

impl BodyPrint {
    /// Returns whether a body with this fingerprint can be the body that the other describes.
    #[inline]
    pub fn fits(&self, other: &BodyPrint) -> bool {
        let lengths = match (self.length, other.length) {
            (Some(one), Some(other)) => one == other,
            _ => true,
        };
        lengths && self.hash == other.hash
    }
}

impl std::fmt::Display for BodyPrint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.length {
            Some(length) => write!(f, "{length} bytes, {:032x}", self.hash),
            None => write!(f, "{:032x}", self.hash),
        }
    }
}

/// A response whose body differs from its target's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct WrongBody {
    /// End of the call, from the start of the measured phase; zero before.
    pub at: Nanos,
    /// Row of the requested target.
    pub target: u32,
    /// The target that has this body.
    pub of: Option<u32>,
    pub expected: BodyPrint,
    pub got: BodyPrint,
}
