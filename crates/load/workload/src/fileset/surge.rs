//! SURGE (Barford & Crovella, SIGMETRICS 1998), in the grouped form of its version 1.2: pages,
//! files embedded in them, and separate files ("loners"), each with its own size law.

use crate::fileset::{File, FileSet, Law};
use units::{Purpose, Seed, Stream};

/// Purpose of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// A page with embedded files.
    Base,
    Embedded,
    Loner,
}

/// Shares of the groups in the published sample of 5,000 files: 1,500, 1,900 and 1,600.
const BASE_SHARE: f64 = 0.30;
const EMBEDDED_SHARE: f64 = 0.38;
/// Start of the tail of page sizes, in bytes.
const TAIL_START: f64 = 10.0 * 1024.0;
/// End of every tail, in bytes: the model has no limit, but a disk has. One file in 10,000 of the
/// pages' tail would be larger.
const SIZE_MAX: f64 = 100.0 * 1024.0 * 1024.0;
/// Maximum number of files of an object; larger objects are drawn again.
const OBJECT_FILES_MAX: f64 = 150.0;
/// Maximum OFF time in seconds; longer ones are cut.
const OFF_MAX: f64 = 1_800.0;

impl Group {
    pub const ALL: [Group; 3] = [Group::Base, Group::Embedded, Group::Loner];

    /// Returns the group's share of all files, 0..=1.
    pub fn share(self) -> f64 {
        match self {
            Group::Base => BASE_SHARE,
            Group::Embedded => EMBEDDED_SHARE,
            Group::Loner => 1.0 - BASE_SHARE - EMBEDDED_SHARE,
        }
    }

    /// Returns the size law, in bytes. The law of the loners is a fit of two lognormal laws to the
    /// published sample; the others are the generator's constants.
    pub fn sizes(self) -> Law {
        let lognormal = |m, s| Law::Lognormal { m, s }.up_to(SIZE_MAX);
        match self {
            Group::Base => Law::Mix(vec![
                (0.93, Law::Lognormal { m: 7.63, s: 1.001 }.up_to(TAIL_START)),
                (0.07, Law::Pareto { k: TAIL_START, a: 1.0 }.up_to(SIZE_MAX)),
            ]),
            Group::Embedded => lognormal(8.215, 1.46),
            Group::Loner => {
                Law::Mix(vec![(0.657, lognormal(7.110, 1.139)), (0.343, lognormal(11.122, 1.144))])
            }
        }
    }
}

/// Returns the law of requested sizes in the paper of 1998, in bytes: Pareto, k = 1000, a = 1.
pub fn request_sizes() -> Law {
    Law::Pareto { k: 1000.0, a: 1.0 }
}

/// Returns the law of the number of files in an object, including the page: Pareto, k = 2, a =
/// 1.245, truncated at 150 and to an integer.
pub fn object_files() -> Law {
    Law::Pareto { k: 2.0, a: 1.245 }.up_to(OBJECT_FILES_MAX)
}

/// Returns the law of stack distances before they are scaled to the number of objects.
pub fn stack_distances() -> Law {
    Law::Lognormal { m: 1.5, s: 0.8 }
}

/// Returns the law of the time between two objects of a user, in seconds: Pareto, k = 1, a = 1.4,
/// up to half an hour.
pub fn off_times() -> Law {
    Law::Pareto { k: 1.0, a: 1.4 }.up_to(OFF_MAX)
}

/// The files in ascending order of their sizes, with their groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    /// Sizes in bytes, ascending; the file's name is its row: `0.txt`, `1.txt`, …
    pub sizes: Vec<u64>,
    pub groups: Vec<Group>,
}

impl Files {
    /// Creates `count` files, 10 or more.
    pub fn new(count: usize, seed: Seed) -> Files {
        let mut drawn: Vec<(u64, Group)> = Vec::with_capacity(count);
        let counts = group_counts(count);
        for ((group, count), stream) in Group::ALL.into_iter().zip(counts).zip(0..) {
            let law = group.sizes();
            let mut stream: Stream = seed.stream(Purpose::Files, stream);
            drawn.extend((0..count).map(|_| (size_of(law.draw(&mut stream)), group)));
        }
        drawn.sort_by_key(|(size, _)| *size);
        let (sizes, groups) = drawn.into_iter().unzip();
        Files { sizes, groups }
    }

    /// Returns the rows of a group, ascending by size.
    pub fn rows_of(&self, group: Group) -> Vec<usize> {
        (0..self.groups.len()).filter(|row| self.groups[*row] == group).collect()
    }

    pub(crate) fn set(&self, seed: Seed) -> FileSet {
        let named = self.sizes.iter().enumerate();
        let files = named.map(|(row, size)| File { path: format!("{row}.txt"), size: *size });
        FileSet::new(seed, files.collect())
    }
}

/// Rounds a size; a file has at least one byte.
fn size_of(drawn: f64) -> u64 {
    (drawn.round() as u64).max(1)
}

fn group_counts(count: usize) -> [usize; 3] {
    let share = |share: f64| (count as f64 * share).round() as usize;
    let (base, embedded) = (share(BASE_SHARE), share(EMBEDDED_SHARE));
    [base, embedded, count - base - embedded]
}
