//! Content of a file: a function of the seed, the file's path and the offset, so that any part of
//! any file can be computed, and checked, without the file.

use crate::fileset::specweb99_files::{ADS, FileName};
use units::{Purpose, Seed};

/// The content of one file: lines of 63 letters, digits, `+` and `/`, six random bits each, so that
/// no server, and no file system, can compress it much below three quarters. In files of
/// SPECweb99's classes 1 and 2, one line is the place of an advertisement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileContent {
    key: Seed,
    /// The line with the advertisement, and its line number.
    ad: Option<(u64, u32)>,
}

/// Text before and after the path of an advertisement's picture.
pub(crate) const AD_OPEN: &str = "<!WEB99CAD><IMG SRC=\"/";
pub(crate) const AD_CLOSE: &str = "\"><!/WEB99CAD>";

/// Length of a line with its end, in bytes.
const LINE: usize = 64;
const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
/// Number of letters from one random number.
const LETTERS_PER_NUMBER: usize = 8;

impl FileContent {
    /// Creates the content; `path`: within the set, without a leading slash.
    pub fn new(seed: Seed, path: &str) -> FileContent {
        // FNV-1a, 64 bits (draft-eastlake-fnv): different paths have different contents
        const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
        const PRIME: u64 = 0x0100_0000_01b3;
        let hash =
            path.bytes().fold(BASIS, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME));
        let key = Seed(seed.stream(Purpose::Files, hash).next_u64());
        let ad = FileName::parse(path).filter(|name| name.has_ad()).map(|name| {
            let mut stream = key.stream(Purpose::Advertising, 0);
            let line = stream.below(name.size() / LINE as u64);
            (line, stream.below(u64::from(ADS)) as u32)
        });
        FileContent { key, ad }
    }

    /// Returns the content with another advertisement, if it has one.
    pub fn with_ad(self, ad: u32) -> FileContent {
        FileContent { ad: self.ad.map(|(line, _)| (line, ad)), ..self }
    }

    /// Returns whether this is the whole file, of any length.
    pub fn is(self, file: &[u8]) -> bool {
        self.has(0, file)
    }

    /// Returns whether the first and the last line of this file are correct.
    pub fn has_valid_ends(self, file: &[u8]) -> bool {
        let end = file.len() - file.len() % LINE;
        let last = if end == file.len() { end.saturating_sub(LINE) } else { end };
        self.has(0, &file[..file.len().min(LINE)]) && self.has(last as u64, &file[last..])
    }

    fn has(self, offset: u64, bytes: &[u8]) -> bool {
        let mut made = [0; LINE * 16];
        (offset..).step_by(made.len()).zip(bytes.chunks(made.len())).all(|(at, part)| {
            let made = &mut made[..part.len()];
            self.fill(at, made);
            made == part
        })
    }

    /// Writes the bytes from `offset` on, as many as fit.
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
        if let Some((_, ad)) = self.ad.filter(|(at, _)| *at == index) {
            let place = format!("{AD_OPEN}{}{AD_CLOSE}", ad_picture(ad));
            line[..place.len()].copy_from_slice(place.as_bytes());
        }
        line
    }
}

/// Returns the file with the picture of an advertisement: `file_set/dirNNNNN/classX_Y`.
pub(crate) fn ad_picture(ad: u32) -> FileName {
    FileName::from_row(ad as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The line of the advertisement in files of classes 1 and 2; other files have none.
    #[test]
    fn a_file_of_specweb99_has_one_place_for_an_advertisement() {
        for (path, size, places) in [
            ("file_set/dir00001/class1_0", 1_024, 1),
            ("file_set/dir00001/class2_8", 92_160, 1),
            ("file_set/dir00001/class0_8", 921, 0),
            ("file_set/dir00001/class3_0", 102_400, 0),
            ("class1_0", 1_024, 0),
        ] {
            let text = |content: FileContent| {
                let mut bytes = vec![0; size];
                content.fill(0, &mut bytes);
                String::from_utf8(bytes).unwrap()
            };
            let content = FileContent::new(Seed(1), path);
            let (plain, other) = (text(content), text(content.with_ad(359)));
            assert_eq!(plain.matches(AD_OPEN).count(), places, "{path}");
            assert!(plain.lines().all(|line| line.len() <= 63), "{path}");
            let shown = "/file_set/dir00009/class3_8\"><!/WEB99CAD>";
            assert_eq!(other.contains(shown), places > 0, "{path}");
            assert_eq!(plain.lines().zip(other.lines()).filter(|(a, b)| a != b).count(), places);
        }
    }

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
    fn a_file_is_known_by_all_of_it_or_by_its_ends() {
        let content = FileContent::new(Seed(1), "0.txt");
        for len in [0, 1, 63, 64, 65, 128, 1_024, 1_025, 5_000] {
            let mut file = vec![0; len];
            content.fill(0, &mut file);
            assert!(content.is(&file) && content.has_valid_ends(&file), "{len}");
            for at in [0, len / 2, len.saturating_sub(1)] {
                let Some(byte) = file.get_mut(at) else { continue };
                *byte ^= 1;
                let at_an_end = at < 64 || at >= (len - 1) / 64 * 64;
                assert_eq!(
                    (content.is(&file), content.has_valid_ends(&file)),
                    (false, !at_an_end),
                    "{at}"
                );
                file[at] ^= 1;
            }
        }
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
        // the first line of a file depends on the seed only: contents are part of the meaning of a
        // seed
        assert_eq!(String::from_utf8(all[0].clone()).unwrap(), FIRST);
    }
}
