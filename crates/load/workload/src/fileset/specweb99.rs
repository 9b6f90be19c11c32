//! SPECweb99's file set and its requests: 36 files in each directory, the directory by Zipf's law,
//! the class by 35, 50, 14 and 1 %, the file by fixed weights; 30 % of the requests are dynamic.

mod advertising;
mod operations;
mod pages;
mod posts;

pub use advertising::{Advertising, ShownAd, USERS, Visitor};
pub use operations::{Operation, SHARES};
pub use pages::{
    DYNAMIC_TYPE, DynamicQuery, FileOfPage, PageHead, file_of_page, page, page_of_file,
    substitute_ad,
};
pub use posts::{POSTS_MAX, PostForm, PostLog, SentPost, compare, read_log};

use crate::fileset::law::by_weight;
use crate::fileset::specweb99_files::{CLASSES, FILES_PER_CLASS, FileName, size};
use crate::fileset::{File, FileSet};
use units::{Seed, Stream};

/// Shares of the classes, in percent.
const CLASS_SHARES: [f64; CLASSES] = [35.0, 50.0, 14.0, 1.0];
/// Shares of the files of a class, in percent as published: they add up to 99.9.
const FILE_SHARES: [f64; FILES_PER_CLASS] = [3.9, 5.9, 8.8, 17.7, 35.3, 11.8, 7.1, 5.0, 4.4];
/// Requests per kept-alive connection: minimum and maximum.
const CALLS: (u64, u64) = (5, 15);
/// Share of connections with one request.
const SINGLE_SHARE: f64 = 0.3;

/// Returns the number of directories for this many simultaneous connections: 25 + (400,000/122,000
/// · connections)/5, truncated. From the benchmark's white paper, cited from memory: a default, not
/// a requirement.
pub fn directories(connections: u64) -> u64 {
    25 + (400_000.0 / 122_000.0 * connections as f64 / 5.0) as u64
}

pub(crate) fn set(directories: u64, seed: Seed) -> FileSet {
    let files = (0..directories).flat_map(|directory| {
        (0..CLASSES).flat_map(move |class| {
            (0..FILES_PER_CLASS).map(move |file| File {
                path: FileName {
                    directory: directory as u32,
                    class: class as u8,
                    file: file as u8,
                }
                .to_string(),
                size: size(class, file),
            })
        })
    });
    FileSet::new(seed, files.collect())
}

/// Returns the shares of the requests, 0..=1.
pub(crate) fn class_shares() -> [f64; CLASSES] {
    CLASS_SHARES.map(|share| share / 100.0)
}

/// Returns the shares of the requests of a class, 0..=1.
pub(crate) fn file_shares() -> [f64; FILES_PER_CLASS] {
    let sum: f64 = FILE_SHARES.iter().sum();
    FILE_SHARES.map(|share| share / sum)
}

/// Draws files of a set by their rows.
#[derive(Clone, Debug)]
pub struct Choice {
    /// Running sums of 1/rank.
    directories: Vec<f64>,
}

impl Choice {
    /// Creates the choice for a set of this many directories, at least one.
    pub fn new(directories: u64) -> Choice {
        let mut sum = 0.0;
        let weights = (1..=directories).map(|rank| {
            sum += 1.0 / rank as f64;
            sum
        });
        Choice { directories: weights.collect() }
    }

    /// Returns the next requested file.
    pub fn file(&self, stream: &mut Stream) -> FileName {
        FileName::from_row(self.row(stream))
    }

    pub(crate) fn row(&self, stream: &mut Stream) -> usize {
        let total = self.directories.last().copied().unwrap_or(0.0);
        let point = stream.unit() * total;
        let directory = self.directories.partition_point(|sum| *sum <= point);
        let directory = directory.min(self.directories.len() - 1);
        let class = by_weight(&CLASS_SHARES, stream);
        let file = by_weight(&FILE_SHARES, stream);
        (directory * CLASSES + class) * FILES_PER_CLASS + file
    }
}

/// Draws the number of requests on the next connection: 1 with 30 %, otherwise 5 to 15 with equal
/// probability.
pub fn calls(stream: &mut Stream) -> u64 {
    if stream.unit() < SINGLE_SHARE { 1 } else { CALLS.0 + stream.below(CALLS.1 - CALLS.0 + 1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_known_by_its_path() {
        let set = set(3, Seed(1));
        for (row, file) in set.files().iter().enumerate() {
            let name = FileName::parse(&file.path).unwrap();
            assert_eq!((name, name.size()), (FileName::from_row(row), file.size));
            assert_eq!(name.to_string(), file.path);
        }
        for wrong in [
            "file_set/dir1/class1_3",
            "file_set/dir00001/class4_0",
            "file_set/dir00001/class1_9",
            "file_set/dir0000+/class1_1",
            "/file_set/dir00001/class1_3",
            "file_set/dir00001/class1_33",
            "",
        ] {
            assert_eq!(FileName::parse(wrong), None, "{wrong}");
        }
    }

    /// P2 of the reference values, including its tails: the most requested files that serve 50, 90,
    /// 95 and 99 % of the requests, in MB, for sets of 1 to 4 GiB (Ruan & Pai, USENIX 2006).
    /// Computed from the laws themselves, without random draws.
    #[test]
    fn working_sets_are_the_published_ones() {
        for (gib, wanted) in [
            (1, [2.1, 39.5, 64.6, 138.3]),
            (2, [3.0, 72.9, 123.6, 262.8]),
            (3, [4.4, 101.8, 181.2, 385.7]),
            (4, [4.9, 131.8, 235.0, 505.0]),
        ] {
            let directories = (f64::from(gib) * (1_u64 << 30) as f64 / 5_119_484.0).round() as u32;
            let harmonic: f64 = (1..=directories).map(|rank| 1.0 / f64::from(rank)).sum();
            let (classes, files) = (class_shares(), file_shares());
            let mut all = Vec::new();
            for rank in 1..=directories {
                for row in 0..CLASSES * FILES_PER_CLASS {
                    let (class, file) = (row / FILES_PER_CLASS, row % FILES_PER_CLASS);
                    let share = classes[class] * files[file] / f64::from(rank) / harmonic;
                    all.push((share, size(class, file)));
                }
            }
            all.sort_by(|one, other| other.0.total_cmp(&one.0));
            let shares = [(0.5, 0.2), (0.9, 0.1), (0.95, 0.05), (0.99, 0.03)];
            for ((share, off), megabytes) in shares.into_iter().zip(wanted) {
                let (mut served, mut bytes) = (0.0, 0);
                for (part, size) in &all {
                    if served >= share {
                        break;
                    }
                    served += part;
                    bytes += size;
                }
                let found = bytes as f64 / 1e6;
                assert!((found / megabytes - 1.0).abs() < off, "{gib} GiB, {share}: {found}");
            }
        }
    }

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
