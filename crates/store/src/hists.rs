//! Histograms on their way to blobs and back. A blob is the HdrHistogram V2 encoding (uncompressed;
//! nanoseconds), which the readers of every language know; recordings of zero are counted beside it.

use crate::tree::{Damage, Pack};
use record::histogram;
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
        histogram::encode(&Hist::from_buckets(self.0))
    }
}

/// A histogram from what [`Counted::encode`] made of it.
pub(crate) fn decode(zeros: u64, blob: Option<&[u8]>) -> Result<Hist, Damage> {
    histogram::decode(zeros, blob).map_err(Damage)
}
