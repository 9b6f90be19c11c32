//! Conversion of histograms to blobs and back. A blob is the HdrHistogram V2 encoding
//! (uncompressed; nanoseconds), which libraries in every language read; zero values are counted
//! separately.

use record::run::HistogramRecord;
use stats::Hist;
use std::collections::BTreeMap;

/// Collects the histograms of a tree while it is built, each with its path in the tree.
#[derive(Debug, Default)]
pub(crate) struct HistogramTree {
    path: String,
    /// Histograms as counts by value: a few hundred bytes instead of 188 KiB, so that they can be
    /// passed to the writer thread.
    pub(crate) hists: BTreeMap<String, HistogramRecord>,
}

impl HistogramTree {
    /// Returns the path in the tree of the current value.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// Keeps a histogram under the path of the tree.
    pub(crate) fn keep(&mut self, hist: &Hist) {
        self.hists.insert(self.path.clone(), HistogramRecord::new(hist));
    }

    pub(crate) fn within<T>(
        &mut self,
        name: &str,
        make: impl FnOnce(&mut HistogramTree) -> T,
    ) -> T {
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
