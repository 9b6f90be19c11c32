//! What stands in a file: a function of the seed, the file's path and the offset, so that any part
//! of any file can be made, and checked, without the file.

use units::{Purpose, Seed};

/// The content of one file: lines of 63 letters, digits, `+` and `/`, six random bits each, so that
/// no server, and no file system, can make it much shorter than three quarters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileContent {
    key: Seed,
}

/// A line with its end, in bytes.
const LINE: usize = 64;
const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
/// Letters that one random number gives.
const LETTERS_PER_NUMBER: usize = 8;

impl FileContent {
    /// `path`: as it stands in the set, without a slash in front.
    pub fn new(seed: Seed, path: &str) -> FileContent {
        // FNV-1a, 64 bits (draft-eastlake-fnv): paths that differ have contents that differ
        const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
        const PRIME: u64 = 0x0100_0000_01b3;
        let hash =
            path.bytes().fold(BASIS, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME));
        FileContent { key: Seed(seed.stream(Purpose::Files, hash).next_u64()) }
    }

    /// Writes the bytes from `offset` on, as many as there is room for.
    pub fn fill(self, offset: u64, room: &mut [u8]) {
        let mut written = 0;
        while written < room.len() {
            let at = offset + written as u64;
            let line = self.line(at / LINE as u64);
            let rest = &line[(at % LINE as u64) as usize..];
            let count = rest.len().min(room.len() - written);
            room[written..written + count].copy_from_slice(&rest[..count]);
            written += count;
        }
    }

    fn line(self, index: u64) -> [u8; LINE] {
        let mut numbers = self.key.stream(Purpose::Files, index);
        let mut line = [b'\n'; LINE];
        for letters in line.chunks_exact_mut(LETTERS_PER_NUMBER) {
            let mut number = numbers.next_u64();
            for letter in letters {
                *letter = LETTERS[(number % 64) as usize];
                number /= 64;
            }
        }
        line[LINE - 1] = b'\n';
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_part_is_the_part_of_the_whole() {
        let content = FileContent::new(Seed(1), "0.txt");
        let mut whole = vec![0; 1000];
        content.fill(0, &mut whole);
        for (from, len) in [(0, 1), (1, 62), (63, 2), (64, 64), (100, 900), (999, 1), (500, 0)] {
            let mut part = vec![0; len];
            content.fill(from as u64, &mut part);
            assert_eq!(part, whole[from..from + len], "{from}");
        }
        assert!(whole.iter().enumerate().all(|(i, byte)| (i % 64 == 63) == (*byte == b'\n')));
    }

    #[test]
    fn seeds_paths_and_lines_differ() {
        let line = |seed, path, offset| {
            let mut line = vec![0; 64];
            FileContent::new(Seed(seed), path).fill(offset, &mut line);
            line
        };
        let all =
            [line(1, "0.txt", 0), line(2, "0.txt", 0), line(1, "1.txt", 0), line(1, "0.txt", 64)];
        for (i, one) in all.iter().enumerate() {
            assert!(all[i + 1..].iter().all(|other| one != other));
        }
        const FIRST: &str = "8rTwbhI18kRK0B3HgEqqpS4yeAnKtZkivwpwvfPnEjtGSYMhgCluGbYOOmtz5p6\n";
        // the first line of a file of today: contents are part of what a seed means
        assert_eq!(String::from_utf8(all[0].clone()).unwrap(), FIRST);
    }
}
