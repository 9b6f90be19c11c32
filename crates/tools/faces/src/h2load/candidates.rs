//! "Did you mean": the options most similar to one that h2load does not know.

use crate::longopt::Long;

/// Maximum distance of a suggestion.
const DISTANCE_MAX: usize = 6;
/// Minimum number of letters for comparing the end of an option's name.
const SUFFIX_MIN: usize = 3;

/// Returns the suggestion after the error about `word`; may be empty.
pub(super) fn proposal(word: &str, options: &[Long]) -> String {
    let typed = word.trim_start_matches('-');
    let typed = typed.split('=').next().unwrap_or_default().to_ascii_lowercase();
    if typed.is_empty() {
        return String::new();
    }
    let mut prefixes = 0;
    let mut found: Vec<(usize, &str)> = Vec::new();
    for name in options.iter().filter(|option| option.short_forms).map(|option| option.name) {
        if name == typed {
            return String::new();
        }
        if name.starts_with(&typed) {
            prefixes += 1;
            found.push((0, name));
        } else if typed.len() >= SUFFIX_MIN && name.ends_with(&typed) {
            found.push((0, name));
        } else {
            found.push((distance(typed.as_bytes(), name.as_bytes()), name));
        }
    }
    found.sort_unstable();
    let Some(&(nearest, _)) = found.first() else { return String::new() };
    if prefixes == 1 || nearest > DISTANCE_MAX {
        return String::new();
    }
    // those of equal distance are sorted by name only in the program
    let mut out = "\nDid you mean:\n".to_owned();
    for (_, name) in found.iter().take_while(|(at, _)| *at == nearest) {
        putln!(out, "\t--{name}");
    }
    out
}

/// Returns the Damerau-Levenshtein distance with the costs of git's suggestions: a swap is free, a
/// changed letter costs 2, an added one 1, a removed one 3.
fn distance(a: &[u8], b: &[u8]) -> usize {
    const OTHER: usize = 2;
    const MORE: usize = 1;
    const LESS: usize = 3;
    let mut before: Vec<usize> = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let other = if a[i - 1] == b[j - 1] { 0 } else { OTHER };
            row[j] = last[j - 1] + other;
            let swapped = i >= 2 && j >= 2 && a[i - 2] == b[j - 1] && a[i - 1] == b[j - 2];
            if swapped && a[i - 1] != b[j - 1] {
                row[j] = row[j].min(before[j - 2]);
            }
            row[j] = row[j].min(last[j] + LESS).min(row[j - 1] + MORE);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}
