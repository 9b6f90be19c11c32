//! SPECweb99's file set and the static part of its requests: 36 files in each directory, the
//! directory by Zipf's law, the class by 35, 50, 14 and 1 %, the file by fixed weights.

use crate::{File, FileSet};
use units::{Seed, Stream};

const CLASSES: usize = 4;
const FILES_PER_CLASS: usize = 9;
/// Bytes of the files of class 0; the other classes have 1 to 9 KiB, 10 KiB, 100 KiB.
const CLASS_0: [u64; FILES_PER_CLASS] = [102, 204, 307, 409, 512, 614, 716, 819, 921];
/// Shares of the classes, in percent.
const CLASS_SHARES: [f64; CLASSES] = [35.0, 50.0, 14.0, 1.0];
/// Shares of the files of a class, in percent as published: they add up to 99.9.
const FILE_SHARES: [f64; FILES_PER_CLASS] = [3.9, 5.9, 8.8, 17.7, 35.3, 11.8, 7.1, 5.0, 4.4];
/// Requests on a connection that is kept alive: as many as from one of these to the other.
const CALLS: (u64, u64) = (5, 15);
/// Connections that carry one request, as a share of all.
const SINGLE_SHARE: f64 = 0.3;

/// Directories for so many simultaneous connections: 25 + (400,000/122,000 · connections)/5,
/// truncated. From the benchmark's white paper by way of memory: a default, not a law.
pub fn directories(connections: u64) -> u64 {
    25 + (400_000.0 / 122_000.0 * connections as f64 / 5.0) as u64
}

/// Bytes of file `file` (0 to 8) of class `class` (0 to 3).
pub fn size(class: usize, file: usize) -> u64 {
    match class {
        0 => CLASS_0[file],
        _ => 1024 * 10_u64.pow(class as u32 - 1) * (file as u64 + 1),
    }
}

pub(crate) fn set(directories: u64, seed: Seed) -> FileSet {
    let files = (0..directories).flat_map(|directory| {
        (0..CLASSES).flat_map(move |class| {
            (0..FILES_PER_CLASS).map(move |file| File {
                path: format!("file_set/dir{directory:05}/class{class}_{file}"),
                size: size(class, file),
            })
        })
    });
    FileSet::new(seed, files.collect())
}

/// Of requests, 0..=1.
pub(crate) fn class_shares() -> [f64; CLASSES] {
    CLASS_SHARES.map(|share| share / 100.0)
}

/// Of the requests of a class, 0..=1.
pub(crate) fn file_shares() -> [f64; FILES_PER_CLASS] {
    let sum: f64 = FILE_SHARES.iter().sum();
    FILE_SHARES.map(|share| share / sum)
}

/// Draws files of a set by their rows.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    /// Running sums of 1/rank.
    directories: Vec<f64>,
}

impl Choice {
    pub(crate) fn new(directories: u64) -> Choice {
        let mut sum = 0.0;
        let weights = (1..=directories).map(|rank| {
            sum += 1.0 / rank as f64;
            sum
        });
        Choice { directories: weights.collect() }
    }

    pub(crate) fn row(&self, stream: &mut Stream) -> usize {
        let total = self.directories.last().copied().unwrap_or(0.0);
        let point = stream.unit() * total;
        let directory = self.directories.partition_point(|sum| *sum <= point);
        let directory = directory.min(self.directories.len() - 1);
        let class = crate::sequence::by_weight(&CLASS_SHARES, stream);
        let file = crate::sequence::by_weight(&FILE_SHARES, stream);
        (directory * CLASSES + class) * FILES_PER_CLASS + file
    }
}

/// Requests that the next connection carries: 1 with 30 %, otherwise 5 to 15, each as likely.
pub(crate) fn calls(stream: &mut Stream) -> u64 {
    if stream.unit() < SINGLE_SHARE { 1 } else { CALLS.0 + stream.below(CALLS.1 - CALLS.0 + 1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// P1 of the reference values.
    #[test]
    fn a_directory_has_the_published_files() {
        let set = set(2, Seed(1));
        assert_eq!(set.files().len(), 72);
        assert_eq!(set.bytes(), 2 * 5_119_484);
        assert_eq!(set.find("file_set/dir00001/class2_8").unwrap().size, 92_160);
        let found = [100, 500, 1000, 3000].map(directories);
        assert_eq!(found, [90, 352, 680, 1992]);
        let mean = |class: usize| {
            let sizes = FILE_SHARES.iter().enumerate();
            let sum: f64 = sizes.map(|(file, share)| share * size(class, file) as f64).sum();
            sum / FILE_SHARES.iter().sum::<f64>()
        };
        let whole: f64 = (0..4).map(|class| CLASS_SHARES[class] / 100.0 * mean(class)).sum();
        assert!((whole - 14_726.0).abs() < 1.0, "{whole}");
    }
}
