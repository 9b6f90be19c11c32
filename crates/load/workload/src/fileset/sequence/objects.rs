//! Assigns embedded files to pages.

use crate::fileset::surge::{Files, Group, object_files};
use std::cmp::Reverse;
use std::collections::BTreeSet;
use units::Stream;

/// Files requested together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Object {
    /// Rows of the set, the page first.
    pub(super) files: Vec<u32>,
    /// Number of requests.
    pub(super) count: u64,
}

/// Turns each page and each standalone file into one object. The most popular page has the fewest
/// embedded files; each page takes the embedded files with the most remaining references, and uses
/// up as many of them as the page itself has. A file may end with more references than it was
/// given, or fewer.
pub(super) fn objects(files: &Files, counts: &[u64], stream: &mut Stream) -> Vec<Object> {
    let mut pages = files.rows_of(Group::Base);
    pages.sort_by_key(|row| (Reverse(counts[*row]), *row));
    let law = object_files();
    let mut embedded: Vec<usize> =
        pages.iter().map(|_| (law.draw(stream) as usize).max(2) - 1).collect();
    embedded.sort_unstable();
    let mut left: BTreeSet<(i64, u32)> = files
        .rows_of(Group::Embedded)
        .iter()
        .map(|row| (counts[*row] as i64, *row as u32))
        .collect();
    let mut objects = Vec::with_capacity(files.sizes.len());
    for (page, embedded) in pages.into_iter().zip(embedded) {
        let count = counts[page];
        let most: Vec<(i64, u32)> = left.iter().rev().take(embedded).copied().collect();
        let mut rows = vec![page as u32];
        for (references, row) in most {
            left.remove(&(references, row));
            left.insert((references - count as i64, row));
            rows.push(row);
        }
        objects.push(Object { files: rows, count });
    }
    let loners = files.rows_of(Group::Loner).into_iter();
    objects.extend(loners.map(|row| Object { files: vec![row as u32], count: counts[row] }));
    objects
}
