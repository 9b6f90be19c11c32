//! Starts of failed responses: the first few of each kind, so that a report can show them at any
//! share of failures.

use sample::FailureClass;
use std::collections::BTreeMap;
use units::Nanos;

/// Maximum number of samples of one kind, and of kinds.
pub const SAMPLES_PER_KIND: usize = 3;
const KINDS_MAX: usize = 20;
/// Maximum number of bytes of a sample.
pub const SAMPLE_BYTES_MAX: usize = 2_048;

/// The start of a response whose call failed.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct FailedResponse {
    /// Time of the response, from the start of the measured window.
    pub at: Nanos,
    /// Row of the target list.
    pub target: u32,
    /// Head and start of the body, in the form of HTTP/1: untrusted. Masked by the worker, chunks
    /// joined, without coded content. About [`SAMPLE_BYTES_MAX`] at most.
    pub start: Vec<u8>,
    /// Bytes of the body, content coding not undone.
    pub length: u64,
}

/// The first failed responses of each failure class and status.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FailedResponses {
    pub kinds: BTreeMap<(FailureClass, u16), Vec<FailedResponse>>,
}

impl FailedResponses {
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    /// Returns whether another sample of this kind is kept.
    pub fn has_room(&self, class: FailureClass, status: u16) -> bool {
        match self.kinds.get(&(class, status)) {
            Some(kept) => kept.len() < SAMPLES_PER_KIND,
            None => self.kinds.len() < KINDS_MAX,
        }
    }

    pub fn add(&mut self, class: FailureClass, status: u16, sample: FailedResponse) {
        let kept = self.kinds.entry((class, status)).or_default();
        kept.push(sample);
        kept.sort();
        kept.truncate(SAMPLES_PER_KIND);
    }

    /// Adds another worker's samples; the earliest are kept.
    pub fn merge(&mut self, other: &FailedResponses) {
        for ((class, status), samples) in &other.kinds {
            for sample in samples {
                self.add(*class, *status, sample.clone());
            }
        }
        while self.kinds.len() > KINDS_MAX {
            let latest = self.kinds.iter().max_by_key(|(_, kept)| kept.first().map(|it| it.at));
            let Some(kind) = latest.map(|(kind, _)| *kind) else { return };
            self.kinds.remove(&kind);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> FailedResponse {
        FailedResponse { at: Nanos::from_millis(ms), ..FailedResponse::default() }
    }

    #[test]
    fn the_earliest_samples_of_each_kind_are_kept() {
        let (mut a, mut b) = (FailedResponses::default(), FailedResponses::default());
        for ms in [5, 9, 7] {
            a.add(FailureClass::Status, 500, at(ms));
        }
        assert!(!a.has_room(FailureClass::Status, 500) && a.has_room(FailureClass::Status, 404));
        b.add(FailureClass::Status, 500, at(6));
        b.add(FailureClass::Body, 200, at(1));
        let mut ba = b.clone();
        ba.merge(&a);
        a.merge(&b);
        assert_eq!(a, ba);
        let kept = a.kinds[&(FailureClass::Status, 500)].iter().map(|it| it.at.0 / 1_000_000);
        assert_eq!(kept.collect::<Vec<_>>(), [5, 6, 7]);
    }

    #[test]
    fn the_number_of_kinds_is_bounded() {
        let mut all = FailedResponses::default();
        for status in 400..450 {
            let mut one = FailedResponses::default();
            one.add(FailureClass::Status, status, at(u64::from(status)));
            all.merge(&one);
        }
        assert_eq!(all.kinds.len(), KINDS_MAX);
        assert_eq!(all.kinds.keys().next_back().map(|(_, status)| *status), Some(419));
    }
}
