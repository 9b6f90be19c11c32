//! Samples the memory of the server during a run, and estimates when its growth began.

use crate::World;
use std::collections::VecDeque;
use units::Nanos;

/// Minimum time between samples during a case, and maximum number of samples kept.
const SAMPLE_EVERY: Nanos = Nanos::from_millis(100);
const SAMPLES_MAX: usize = 512;
/// Minimum growth between two samples that is not noise.
pub(crate) const IDLE_GROWN: u64 = 2 << 20;

/// Memory of the server during the run.
#[derive(Debug, Default)]
pub(crate) struct MemoryWatch {
    /// Recent levels, by time.
    samples: VecDeque<(Nanos, u64)>,
    /// The case after which memory grows without further requests.
    pub(crate) grows_since: Option<String>,
}

impl MemoryWatch {
    /// Samples the memory after a conversation, unless the last sample is more recent than
    /// [`SAMPLE_EVERY`].
    pub(crate) fn sample(&mut self, world: &mut dyn World) {
        let now = world.now();
        if self.samples.back().is_some_and(|(at, _)| now < *at + SAMPLE_EVERY) {
            return;
        }
        let Some(memory) = world.server_memory() else { return };
        self.samples.push_back((now, memory));
        if self.samples.len() > SAMPLES_MAX {
            self.samples.pop_front();
        }
    }

    /// Returns whether memory is known to grow without further requests.
    pub(crate) fn is_growing(&self) -> bool {
        self.grows_since.is_some()
    }

    /// Returns the onset of growth at this rate (in bytes per second), and its age at the first
    /// sample above the level `before`. `now`: the current level.
    pub(crate) fn onset(&self, before: u64, rate: f64, now: (Nanos, u64)) -> (Nanos, Nanos) {
        let above = |level: u64| level > before.saturating_add(IDLE_GROWN);
        let grown = self.samples.iter().rev().take_while(|(_, level)| above(*level));
        let (at, level) = grown.last().copied().unwrap_or(now);
        let age = level.saturating_sub(before) as f64 / rate.max(1.0);
        let age = Nanos::from_secs_f64(age);
        (at - age, age)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dialogue::governor::{Governor, Stop};
    use dialogue::talk::{Carried, Director};
    use sample::ServerState;

    /// A world whose server is only asked for its memory.
    struct MemoryOnly {
        now: Nanos,
        carried: Carried,
        governor: Governor,
    }

    impl World for MemoryOnly {
        fn now(&mut self) -> Nanos {
            self.now
        }

        fn play(&mut self, _: &mut dyn Director) {}

        fn pause(&mut self, span: Nanos) {
            self.now += span;
        }

        fn carried(&mut self) -> &mut Carried {
            &mut self.carried
        }

        fn governor(&mut self) -> &mut Governor {
            &mut self.governor
        }

        fn server(&mut self) -> Option<ServerState> {
            panic!("the whole state takes long on a machine with many sockets");
        }

        fn server_memory(&mut self) -> Option<u64> {
            Some(self.now.0)
        }

        fn stopped(&self) -> Option<Stop> {
            None
        }
    }

    #[test]
    fn a_sample_reads_the_memory_only() {
        let governor = Governor::unbounded();
        let mut world = MemoryOnly { now: Nanos::ZERO, carried: Carried::default(), governor };
        let mut watch = MemoryWatch::default();
        for _ in 0..4 {
            watch.sample(&mut world);
            world.pause(Nanos::from_millis(50));
        }
        let every = SAMPLE_EVERY;
        assert_eq!(watch.samples, [(Nanos::ZERO, 0), (every, every.0)]);
    }

    #[test]
    fn growth_begins_before_the_first_raised_sample() {
        let at = Nanos::from_secs;
        let mut watch = MemoryWatch::default();
        // noise, then 100 MiB per second from the fifth second
        for (second, mebibytes) in [(1, 10), (2, 90), (3, 11), (6, 110), (7, 210), (8, 310)] {
            watch.samples.push_back((at(second), mebibytes << 20));
        }
        let rate = f64::from(100 << 20);
        let onset = watch.onset(10 << 20, rate, (at(9), 410 << 20));
        assert_eq!(onset, (at(5), at(1)));
        // no sample during the growth: the current level shows it
        let fresh = MemoryWatch::default();
        assert_eq!(fresh.onset(10 << 20, rate, (at(9), 210 << 20)).0, at(7));
        assert_eq!(fresh.onset(10 << 20, 0.0, (at(9), 210 << 20)).0, Nanos::ZERO);
    }
}
