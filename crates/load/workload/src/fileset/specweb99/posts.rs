//! The POSTs: sent data, the server's records, and the comparison of the two.

use crate::fileset::specweb99_files::{DIRECTORY_MAX, FileName};
use sample::PostFacts;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Maximum number of records of a log: a log is fetched as one body of up to 64 MiB.
pub const POSTS_MAX: usize = 480_000;
/// Size of a record, and of the line before all records, with their line ends.
const RECORD: usize = 139;
const COUNT: usize = 11;

/// POST as sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PostForm {
    /// The file in the response.
    pub name: FileName,
    pub client: u32,
    /// User in the cookie.
    pub user: u32,
}

impl PostForm {
    /// Returns the content of the request. `root`: the path before the set's folder, such as
    /// `/specweb99`; empty at the server's root.
    pub fn body(&self, root: &str) -> String {
        let PostForm { name: FileName { directory, class, file }, client, .. } = self;
        format!("urlroot={root}&dir={directory:05}&class={class}&num={file}&client={client}")
    }

    /// Parses the content of a request and the user of its cookie; also returns the root.
    pub fn parse(body: &str, user: u32) -> Option<(PostForm, &str)> {
        let value = |name: &str| {
            let mut pairs = body.split('&').filter_map(|pair| pair.split_once('='));
            pairs.find(|(known, _)| *known == name).map(|(_, value)| value)
        };
        let number = |name| value(name)?.parse::<u32>().ok();
        let directory = number("dir").filter(|directory| *directory <= DIRECTORY_MAX)?;
        let path = format!("file_set/dir{directory:05}/class{}_{}", value("class")?, value("num")?);
        let name = FileName::parse(&path)?;
        Some((PostForm { name, client: number("client")?, user }, value("urlroot")?))
    }
}

/// The server's log.
#[derive(Clone, Debug, Default)]
pub struct PostLog {
    records: Vec<(PostForm, u64)>,
}

impl PostLog {
    /// Adds a record, at a time in seconds since 1970. Returns false if the log is full.
    pub fn push(&mut self, post: PostForm, unix_s: u64) -> bool {
        let room = self.records.len() < POSTS_MAX;
        if room {
            self.records.push((post, unix_s));
        }
        room
    }

    pub fn clear(&mut self) {
        self.records.clear();
    }

    /// Returns the log as text: the number of records, then each in columns of fixed width.
    /// `process`: PID of the process that wrote them.
    pub fn text(&self, process: u32) -> String {
        let mut text = String::with_capacity(COUNT + self.records.len() * RECORD);
        writeln!(text, "{:10}", self.records.len()).expect("writing to a String cannot fail");
        for (number, (post, unix_s)) in (1..).zip(&self.records) {
            let PostForm { name, client, user } = post;
            let FileName { directory, class, file } = name;
            writeln!(
                text,
                "{number:10} {unix_s:10} {process:10} {directory:5} {class:2} {file:2} {client:10} \
                 {:<60} {process:10} {user:10}",
                format!("/{name}")
            )
            .expect("writing to a String cannot fail");
        }
        text
    }
}

/// Reads a log as [`PostLog::text`] writes it.
///
/// # Errors
/// Fails if the text is not a log, with a sentence that names the line.
pub fn read_log(text: &str) -> Result<Vec<PostForm>, String> {
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default().trim();
    let count: usize =
        first.parse().map_err(|_| format!("line 1 is the number of records, not {first:?}"))?;
    let record = |(row, line): (usize, &str)| {
        let number = row + 1;
        let wrong = |what: &str| format!("record {number}: {what}");
        let mut columns = line.split_whitespace();
        let mut next = |what: &str| columns.next().ok_or_else(|| wrong(&format!("no {what}")));
        let number_text = next("number")?;
        if number_text.parse() != Ok(number) {
            return Err(wrong(&format!("its number is {number_text:?}")));
        }
        next("time")?;
        next("process")?;
        let [directory, class, file, client] =
            [next("directory")?, next("class")?, next("file")?, next("client")?];
        let path = next("path")?;
        next("process")?;
        let user = next("cookie")?;
        let directory: u32 =
            directory.parse().map_err(|_| wrong("its directory is not a number"))?;
        let name = FileName::parse(&format!("file_set/dir{directory:05}/class{class}_{file}"));
        let name = name.ok_or_else(|| wrong("there is no such file"))?;
        if !path.ends_with(&format!("/{name}")) {
            return Err(wrong(&format!("its file is {name}, and its path {path:?}")));
        }
        let client = client.parse().map_err(|_| wrong("its client is not a number"))?;
        let user = user.parse().map_err(|_| wrong("its cookie is not a number"))?;
        Ok(PostForm { name, client, user })
    };
    let records: Vec<PostForm> = lines.enumerate().map(record).collect::<Result<_, String>>()?;
    if records.len() != count {
        return Err(format!("line 1 announces {count} records, but there are {}", records.len()));
    }
    Ok(records)
}

/// A sent POST, and a flag for a response that confirmed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentPost {
    pub post: PostForm,
    pub answered: bool,
}

/// Compares the sent POSTs with the records, in any order.
pub fn compare(sent: &[SentPost], records: &[PostForm]) -> PostFacts {
    // per POST: how often answered, not answered, recorded
    let mut counts: BTreeMap<PostForm, [u64; 3]> = BTreeMap::new();
    for sent in sent {
        counts.entry(sent.post).or_default()[usize::from(!sent.answered)] += 1;
    }
    for record in records {
        counts.entry(*record).or_default()[2] += 1;
    }
    let mut found = PostFacts::default();
    for [answered, unanswered, recorded] in counts.into_values() {
        found.answered += answered;
        found.unanswered += unanswered;
        found.recorded += recorded;
        found.missing += answered.saturating_sub(recorded);
        found.unknown += recorded.saturating_sub(answered + unanswered);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn post(number: u32) -> PostForm {
        let name = FileName { directory: number, class: 2, file: 8 };
        PostForm { name, client: 10_003, user: 77 }
    }

    #[test]
    fn a_post_is_read_as_it_is_sent() {
        let body = post(1).body("/specweb99");
        assert_eq!(body, "urlroot=/specweb99&dir=00001&class=2&num=8&client=10003");
        assert_eq!(PostForm::parse(&body, 77), Some((post(1), "/specweb99")));
        for wrong in [
            "",
            "urlroot=&dir=1&class=2&num=8",
            "urlroot=&dir=1&class=4&num=8&client=1",
            "urlroot=&dir=100000&class=2&num=8&client=1",
            "dir=1&class=2&num=8&client=1",
        ] {
            assert_eq!(PostForm::parse(wrong, 1), None, "{wrong}");
        }
    }

    #[test]
    fn a_log_is_read_as_it_is_written() {
        let mut log = PostLog::default();
        assert_eq!(read_log(&log.text(1)), Ok(Vec::new()));
        assert!(log.push(post(1), 1_700_000_000) && log.push(post(99_999), 1_700_000_001));
        let text = log.text(4_194_304);
        let row = " 00002 1700000001    4194304 99999  2  8      10003 /file_set/dir99999/class2_8";
        assert!(
            text.lines().nth(2).unwrap().contains(&row[1..].replacen("00002", "2", 1)),
            "{text}"
        );
        assert_eq!(text.len(), COUNT + 2 * RECORD);
        assert_eq!(read_log(&text), Ok(vec![post(1), post(99_999)]));
        for (wrong, why) in [
            (text.replacen('2', "3", 1), "line 1 announces 3 records, but there are 2"),
            ("<html>".to_owned(), "line 1 is the number of records, not \"<html>\""),
            (
                text.replace("class2_8", "class2_7"),
                "record 1: its file is file_set/dir00001/class2_8",
            ),
            (text.replace("       2 170", "       9 170"), "record 2: its number is \"9\""),
            (format!("{}\n1 2 3", text.lines().next().unwrap()), "record 1: no directory"),
        ] {
            let error = read_log(&wrong).unwrap_err();
            assert!(error.starts_with(why), "{error}");
        }
        log.clear();
        assert_eq!(log.text(1).trim(), "0");
    }

    #[test]
    fn sent_posts_are_compared_with_the_log() {
        let sent = |number, answered| SentPost { post: post(number), answered };
        let all = [sent(1, true), sent(1, true), sent(2, true), sent(3, false)];
        for (records, missing, unknown) in [
            (vec![2, 1, 1], 0, 0),
            (vec![2, 1, 3, 1], 0, 0),
            (vec![2, 1], 1, 0),
            (vec![2, 1, 1, 1], 0, 1),
            (vec![1, 1, 3, 3, 9], 1, 2),
        ] {
            let posts: Vec<PostForm> = records.iter().map(|number| post(*number)).collect();
            let found = compare(&all, &posts);
            assert_eq!((found.missing, found.unknown), (missing, unknown), "{records:?}");
            assert_eq!((found.answered, found.unanswered), (3, 1));
            assert_eq!(found.recorded, posts.len() as u64);
            assert_eq!(found.agree(), missing + unknown == 0);
        }
    }
}
