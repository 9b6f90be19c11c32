//! Conversion of histograms to bytes and back: the HdrHistogram V2 encoding (uncompressed;
//! nanoseconds), which libraries in every language read. Zero values are counted separately.

use hdrhistogram::serialization::{Deserializer, Serializer, V2Serializer};
use stats::Hist;

/// Returns the number of recordings of zero, and the encoding of the others; `None` without others.
pub fn encode(hist: &Hist) -> (u64, Option<Vec<u8>>) {
    let (zeros, above) = hist.parts();
    let blob = above.map(|above| {
        let mut blob = Vec::new();
        let written = V2Serializer::new().serialize(&above, &mut blob);
        written.expect("counts fit 63 bits, and memory takes them");
        blob
    });
    (zeros, blob)
}

/// Size of the V2 encoding before the counts: cookie, length, offset, digits, bounds, ratio.
const HEADER_BYTES: usize = 40;
/// Maximum number of counts of our histograms.
const COUNTS_MAX: u64 = 1 << 16;

/// Decodes a histogram encoded by [`encode`].
///
/// # Errors
/// Fails if the bytes are not such an encoding, or the histogram has other bounds.
pub fn decode(zeros: u64, blob: Option<&[u8]>) -> Result<Hist, String> {
    let above = match blob {
        None => None,
        Some(blob) => {
            check(blob)?;
            let read = Deserializer::new().deserialize(&mut &blob[..]);
            Some(read.map_err(|error| format!("a histogram: {error}"))?)
        }
    };
    Hist::from_parts(zeros, above)
}

/// Checks that the bytes contain their declared length, and that neither their runs of empty counts
/// nor their sum exceed the bounds: the library trusts both.
fn check(blob: &[u8]) -> Result<(), String> {
    let bad = || "a histogram that is not a V2 encoding".to_owned();
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
    use units::Nanos;

    fn hist() -> impl Strategy<Value = Hist> {
        let value = prop_oneof![Just(0_u64), 1..2_000_u64, 0..5_000_000_000_000_u64];
        prop::collection::vec((value, 1..100_000_u64), 0..60).prop_map(|pairs| {
            Hist::from_buckets(pairs.into_iter().map(|(value, count)| (Nanos(value), count)))
        })
    }

    proptest! {
        #[test]
        fn a_histogram_is_restored_from_its_blob(hist in hist()) {
            let (zeros, blob) = encode(&hist);
            let again = decode(zeros, blob.as_deref()).unwrap();
            prop_assert_eq!(again.buckets(), hist.buckets());
            prop_assert_eq!(again.summary(), hist.summary());
        }

        #[test]
        fn arbitrary_bytes_are_a_histogram_or_refused(
            hist in hist(),
            at in 0_usize..400,
            bytes in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            decode(0, Some(&bytes)).ok();
            let (_, Some(mut blob)) = encode(&hist) else { return Ok(()) };
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
