//! WebStone 2's standard list of five files and their weights.

use crate::fileset::{File, FileSet};
use units::Seed;

/// Path, bytes, weight of 1,000.
const FILES: [(&str, u64, u32); 5] = [
    ("file500.html", 500, 350),
    ("file5k.html", 5_125, 500),
    ("file50k.html", 51_250, 140),
    ("file500k.html", 512_500, 9),
    ("file5m.html", 5_248_000, 1),
];

pub(crate) fn weights() -> [f64; 5] {
    FILES.map(|(_, _, weight)| f64::from(weight))
}

pub(crate) fn set(seed: Seed) -> FileSet {
    let files = FILES.map(|(path, size, _)| File { path: path.to_owned(), size });
    FileSet::new(seed, files.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// T1 of the reference values: the mean of a request is 19,773 bytes.
    #[test]
    fn the_mean_is_the_published_one() {
        let sum: u64 = FILES.iter().map(|(_, size, weight)| size * u64::from(*weight)).sum();
        assert_eq!(sum / 1000, 19_773);
    }
}
