//! Packet lengths and batch sizes: the number of buffers for the kernel, and whether to use a ring
//! at all.

/// Number of packet bytes that stay in the L2 cache of a core while they wait.
const CACHED: usize = 256 * 1_024;
/// Minimum number of buffers: with fewer, the kernel would be called again after each packet.
const LEAST: usize = 4;
/// The maximum packet length: assumed before the first packet arrives.
const LONGEST: usize = 64 * 1_024;

/// The kernel fills its buffers in turn. With long packets, which are up to 64 KiB, few buffers are
/// refilled before they leave the cache; with short packets many fit, and one system call takes
/// them all.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Depth {
    /// Mean packet length of the last packets, bytes.
    mean: usize,
    most: usize,
}

impl Depth {
    pub(crate) fn new(most: usize) -> Depth {
        Depth { mean: LONGEST, most }
    }

    /// Notes that this many packets arrived together.
    pub(crate) fn note(&mut self, packets: usize, bytes: usize) {
        if let Some(mean) = bytes.checked_div(packets) {
            self.mean = (self.mean + mean) / 2;
        }
    }

    /// Returns how many buffers to give to the kernel.
    pub(crate) fn wanted(&self) -> usize {
        (CACHED / self.mean.max(1)).clamp(LEAST, self.most)
    }
}

/// Packets count as long from this mean on, in bytes, until it falls below [`SHORT`]: responses of
/// 10 KB do not.
const LONG: usize = 16 * 1_024;
const SHORT: usize = 4 * 1_024;
/// Approximate number of packets in the mean: those of a response and its acknowledgments.
const REMEMBERED: usize = 16;

/// Lengths of packets: long in bulk transfers, where a host passes up to 64 KiB in one packet.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lengths {
    mean: usize,
    long: bool,
}

impl Lengths {
    /// Notes that this many packets arrived, with this many bytes in total.
    pub(crate) fn note(&mut self, (packets, bytes): (usize, usize)) {
        let Some(mean) = bytes.checked_div(packets) else { return };
        let weight = packets.min(REMEMBERED);
        self.mean = (self.mean * (REMEMBERED - weight) + mean * weight) / REMEMBERED;
        self.long = self.mean >= if self.long { SHORT } else { LONG };
    }

    pub(crate) fn are_long(&self) -> bool {
        self.long
    }
}

/// Mean number of packets per turn at which a ring that is used only where it pays starts, and at
/// which it pauses again.
const MANY: usize = 128;
const FEW: usize = 64;
/// Approximate number of turns in the mean.
const TURNS: usize = 16;

/// Mean number of packets that arrive together: large with thousands of connections.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Crowds {
    /// [`TURNS`] times the mean, so that a mean of few packets is not lost to rounding.
    sum: usize,
    many: bool,
}

impl Crowds {
    /// Notes that this many packets arrived together in a turn; 0: there was no turn.
    pub(crate) fn note(&mut self, packets: usize) {
        if packets > 0 {
            self.sum = self.sum - self.sum / TURNS + packets;
            self.many = self.sum / TURNS >= if self.many { FEW } else { MANY };
        }
    }

    pub(crate) fn are_many(&self) -> bool {
        self.many
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_packets_of_the_other_kind_change_nothing() {
        let mut lengths = Lengths::default();
        let mut long = |came: &[(usize, usize)]| {
            came.iter().for_each(|one| lengths.note(*one));
            lengths.are_long()
        };
        assert!(!long(&[(64, 12_800), (0, 0), (2, 131_072)]), "two of 64 KiB among short ones");
        assert!(long(&[(4, 262_144)]));
        assert!(long(&[(1, 66), (1, 66), (1, 300), (1, 66)]), "acknowledgements between");
        assert!(!long(&[(1, 200); 48]));
        assert!(!long(&[(8, 80_000)]), "responses of 10 KB");
    }

    #[test]
    fn the_ring_is_used_while_many_packets_arrive_together() {
        let mut crowds = Crowds::default();
        let mut many = |turns: &[usize]| {
            turns.iter().for_each(|packets| crowds.note(*packets));
            crowds.are_many()
        };
        assert!(!many(&[0; 100]));
        assert!(!many(&[64; 100]), "64 connections");
        assert!(!many(&[256, 256, 256]), "a few large turns");
        assert!(many(&[256; 16]));
        assert!(many(&[96; 100]), "nor does it rest at once");
        assert!(many(&[0; 100]), "turns without packets tell nothing");
        assert!(!many(&[1; 40]));
    }

    #[test]
    fn short_packets_get_all_buffers_and_long_ones_a_few() {
        let mut depth = Depth::new(256);
        let mut seen = vec![depth.wanted()];
        for (packets, bytes) in [(4, 800), (0, 0), (4, 800), (8, 1_600), (20, 4_000), (9, 1_800)] {
            depth.note(packets, bytes);
            seen.push(depth.wanted());
        }
        assert_eq!(seen, [4, 7, 7, 15, 31, 61, 116]);
        for _ in 0..12 {
            depth.note(100, 20_000);
        }
        assert_eq!(depth.wanted(), 256);
        depth.note(2, 131_072);
        depth.note(3, 180_000);
        depth.note(3, 190_000);
        assert_eq!(depth.wanted(), 4);
    }
}
