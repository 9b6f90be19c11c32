//! WebBench's static mix: eight classes of files and 2 % of requests for missing files.
//!
//! The sizes and shares of seven classes are published; of the last, "fractional", only that it is
//! large and 1 % of the requests. Its size, and equal numbers of files in each class, follow from
//! the published sum: 6,010 files of 60 MB.

use crate::fileset::{File, FileSet};
use units::Seed;

struct Class {
    folder: &'static str,
    ending: &'static str,
    /// Size in bytes.
    size: u64,
}

const fn class(folder: &'static str, ending: &'static str, size: u64) -> Class {
    Class { folder, ending, size }
}

const CLASSES: [Class; 8] = [
    class("gif223", "gif", 223),
    class("gif735", "gif", 735),
    class("gif1522", "gif", 1_522),
    class("gif2895", "gif", 2_895),
    class("html6040", "html", 6_040),
    class("html11426", "html", 11_426),
    class("html22132", "html", 22_132),
    class("large", "bin", LARGE),
];
/// Size of a large file: 60,000,000 bytes over 6,010/8 files of each class, minus the 44,973 of the
/// other seven.
const LARGE: u64 = 34_894;

/// Shares of the classes and, last, of requests for missing files, in percent.
pub(crate) const SHARES: [f64; 9] = [20.0, 8.0, 12.0, 20.0, 14.0, 16.0, 7.0, 1.0, 2.0];

/// Number of files of the standard suite.
pub const FILES: u64 = 6_010;

pub(crate) fn set(count: u64, seed: Seed) -> FileSet {
    let files = CLASSES.iter().enumerate().flat_map(|(row, class)| {
        (0..in_class(count, row)).map(|index| File {
            path: format!("{}/{index}.{}", class.folder, class.ending),
            size: class.size,
        })
    });
    FileSet::new(seed, files.collect())
}

/// Returns the number of files of a class; the first classes have the remainder of the division by
/// eight. The ninth class has the missing files.
fn in_class(count: u64, class: usize) -> u64 {
    if class >= CLASSES.len() {
        return 0;
    }
    count / CLASSES.len() as u64 + u64::from((class as u64) < count % CLASSES.len() as u64)
}

/// Returns the rows of a class in a set of `count` files; none for missing files.
pub(crate) fn rows_of(count: u64, class: usize) -> std::ops::Range<u64> {
    let start: u64 = (0..class).map(|before| in_class(count, before)).sum();
    start..start + in_class(count, class)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_set_has_the_published_size() {
        let set = set(FILES, Seed(1));
        assert_eq!(set.files().len() as u64, FILES);
        assert!((set.bytes() as f64 / 60e6 - 1.0).abs() < 0.001, "{}", set.bytes());
        for (row, class) in CLASSES.iter().enumerate() {
            let rows = rows_of(FILES, row);
            let inside = &set.files()[rows.start as usize..rows.end as usize];
            assert!(inside.iter().all(|file| file.size == class.size));
        }
    }

    /// The seven published classes account for 5,088 bytes a request.
    #[test]
    fn the_mean_is_the_published_one() {
        let sum: f64 = (0..7).map(|row| SHARES[row] / 100.0 * CLASSES[row].size as f64).sum();
        assert!((sum - 5_088.0).abs() < 1.0, "{sum}");
        assert!((SHARES.iter().sum::<f64>() - 100.0).abs() < 1e-9);
    }
}
