//! Histograms on their way to blobs and back. A blob is the HdrHistogram V2 encoding (uncompressed;
//! nanoseconds), which the readers of every language know; recordings of zero are counted beside it.

use record::run::HistogramRecord;
use stats::Hist;
use std::collections::BTreeMap;

/// Where the histograms of a tree are put while it is made, each under its path in the tree.
#[derive(Debug, Default)]
pub(crate) struct Shelf {
    path: String,
    /// As counts by value: a few hundred bytes where the histogram has 188 KiB, so that it can be handed
    /// to the thread that writes.
    pub(crate) hists: BTreeMap<String, HistogramRecord>,
}

impl Shelf {
    /// Where in the tree what is packed now stands.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// Keeps a histogram under the path of the tree.
    pub(crate) fn keep(&mut self, hist: &Hist) {
        self.hists.insert(self.path.clone(), HistogramRecord::of(hist));
    }

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
