//! Histograms on their way to blobs and back. A blob is the HdrHistogram V2 encoding (uncompressed;
//! nanoseconds), which the readers of every language know; recordings of zero are counted beside it.

use crate::tree::{Damage, Pack};
use hdrhistogram::serialization::{Deserializer, Serializer, V2Serializer};
use serde_json::Value;
use stats::Hist;
use std::collections::BTreeMap;
use units::Nanos;

/// A histogram as its counts by value: a few hundred bytes where the histogram has 188 KiB, so that
/// it can be handed to the thread that writes.
#[derive(Debug)]
pub(crate) struct Counted(Vec<(Nanos, u64)>);

/// Where the histograms of a tree are put while it is made, each under its path in the tree.
#[derive(Debug, Default)]
pub(crate) struct Shelf {
    path: String,
    pub(crate) hists: Vec<(String, Counted)>,
}

impl Shelf {
    pub(crate) fn within<T>(&mut self, name: &str, make: impl FnOnce(&mut Shelf) -> T) -> T {
        let length = self.path.len();
        if length > 0 {
            self.path.push('.');
        }
        self.path.push_str(name);
        let made = make(self);
        self.path.truncate(length);
        made
    }
}

/// The histograms of a stored tree by their paths.
#[derive(Debug, Default)]
pub(crate) struct StoredHists(pub(crate) BTreeMap<String, Hist>);

/// In the tree stands the path; nothing, when nothing was recorded.
impl Pack for Hist {
    fn pack(&self, shelf: &mut Shelf) -> Value {
        if self.is_empty() {
            return Value::Null;
        }
        let path = shelf.path.clone();
        shelf.hists.push((path.clone(), Counted(self.buckets())));
        Value::String(path)
    }

    fn unpack(value: &Value, found: &mut StoredHists) -> Result<Self, Damage> {
        match value {
            Value::Null => Ok(Hist::new()),
            Value::String(path) => {
                found.0.remove(path).ok_or_else(|| Damage::new("its histogram is missing"))
            }
            _ => Err(Damage::new("not the name of a histogram")),
        }
    }

    fn absent() -> Option<Self> {
        Some(Hist::new())
    }
}

impl Counted {
    /// Recordings of zero, and the blob of the others.
    pub(crate) fn encode(self) -> (u64, Option<Vec<u8>>) {
        let hist = Hist::from_buckets(self.0);
        let (zeros, above) = hist.parts();
        let blob = above.map(|above| {
            let mut blob = Vec::new();
            let written = V2Serializer::new().serialize(above, &mut blob);
            written.expect("counts fit 63 bits, and memory takes them");
            blob
        });
        (zeros, blob)
    }
}

/// Bytes of the V2 encoding before the counts: cookie, length, offset, digits, bounds, ratio.
const HEADER_BYTES: usize = 40;
/// Counts that a histogram of ours has at most.
const COUNTS_MAX: u64 = 1 << 16;

/// A histogram from what [`Counted::encode`] made of it.
pub(crate) fn decode(zeros: u64, blob: Option<&[u8]>) -> Result<Hist, Damage> {
    let above = match blob {
        None => None,
        Some(blob) => {
            check(blob)?;
            let read = Deserializer::new().deserialize(&mut &blob[..]);
            Some(read.map_err(|error| Damage::new(format!("a histogram: {error}")))?)
        }
    };
    Hist::from_parts(zeros, above).map_err(Damage)
}

/// That the bytes say how many they are, and that neither their runs of empty counts nor their sum
/// leave the bounds: the library trusts them with both.
fn check(blob: &[u8]) -> Result<(), Damage> {
    let bad = || Damage::new("a histogram that is no V2 encoding");
    let length = blob.get(4..8).ok_or_else(bad)?;
    let counts = blob.get(HEADER_BYTES..).ok_or_else(bad)?;
    if length != (counts.len() as u32).to_be_bytes() {
        return Err(bad());
    }
    let (mut at, mut index, mut sum) = (0, 0_u64, 0_u64);
    while at < counts.len() {
        let (mut number, mut shift) = (0_u64, 0);
        loop {
            let byte = *counts.get(at).ok_or_else(bad)?;
            at += 1;
            // the ninth byte has no mark of a next one
            let whole = shift == 56;
            let bits = if whole { byte } else { byte & 0x7f };
            number |= u64::from(bits) << shift;
            shift += 7;
            if whole || byte & 0x80 == 0 {
                break;
            }
        }
        let run = number & 1 == 1;
        let magnitude = (number >> 1) + u64::from(run);
        index += if run { magnitude.min(COUNTS_MAX + 1) } else { 1 };
        sum = sum.checked_add(if run { 0 } else { magnitude }).ok_or_else(bad)?;
        if index > COUNTS_MAX {
            return Err(bad());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hist() -> impl Strategy<Value = Hist> {
        let value = prop_oneof![Just(0_u64), 1..2_000_u64, 0..5_000_000_000_000_u64];
        prop::collection::vec((value, 1..100_000_u64), 0..60).prop_map(|pairs| {
            Hist::from_buckets(pairs.into_iter().map(|(value, count)| (Nanos(value), count)))
        })
    }

    proptest! {
        #[test]
        fn a_histogram_comes_back_from_its_blob(hist in hist()) {
            let (zeros, blob) = Counted(hist.buckets()).encode();
            let again = decode(zeros, blob.as_deref()).unwrap();
            prop_assert_eq!(again.buckets(), hist.buckets());
            prop_assert_eq!(again.summary(), hist.summary());
        }

        #[test]
        fn any_bytes_are_a_histogram_or_refused(
            hist in hist(),
            at in 0_usize..400,
            bytes in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            decode(0, Some(&bytes)).ok();
            let (_, Some(mut blob)) = Counted(hist.buckets()).encode() else { return Ok(()) };
            let at = at % blob.len();
            for (old, new) in blob[at..].iter_mut().zip(bytes) {
                *old = new;
            }
            if let Ok(hist) = decode(0, Some(&blob)) {
                hist.summary();
            }
        }
    }
}
