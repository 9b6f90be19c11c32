use super::*;
use crate::files::place::{self, FoundPath, Links};

fn opened(root: &std::path::Path, name: &str) -> Opened {
    match place::find(root, name, Links::Inside) {
        Ok(FoundPath::File(opened)) => opened,
        other => panic!("{name}: {other:?}"),
    }
}

fn set_modified(path: &std::path::Path, seconds: i64) {
    let offset = Duration::from_secs(seconds.unsigned_abs());
    let at = if seconds < 0 { UNIX_EPOCH - offset } else { UNIX_EPOCH + offset };
    File::options().write(true).open(path).unwrap().set_modified(at).unwrap();
}

#[test]
fn a_date_invalid_in_http_is_omitted() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("a");
    std::fs::write(&path, "a").unwrap();
    let describe = |seconds: i64, now: u64| {
        set_modified(&path, seconds);
        let face = Face::at(&opened(root.path(), "a"), UNIX_EPOCH + Duration::from_secs(now));
        let value = face.headers.get(header::LAST_MODIFIED);
        value.map(|value| value.to_str().unwrap().to_owned())
    };
    let date = "Sun, 06 Nov 1994 08:49:37 GMT";
    assert_eq!(describe(784_111_777, 1_000_000_000).as_deref(), Some(date));
    // a file from the future was modified just now
    assert_eq!(describe(2_000_000_000, 784_111_777).as_deref(), Some(date));
    assert_eq!(describe(0, 0).as_deref(), Some("Thu, 01 Jan 1970 00:00:00 GMT"));
    assert_eq!(describe(-1, 1_000_000_000), None);
    assert_eq!(
        describe(10_000_000_000, DATES_END + 5).as_deref().map(|date| &date[12..16]),
        Some("2286")
    );
}

#[test]
fn states_differ_after_any_change() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("a");
    std::fs::write(&path, "a").unwrap();
    let later = SystemTime::now() + Duration::from_secs(60);
    let face = || Face::at(&opened(root.path(), "a"), later);
    let first = face();
    assert!(first.settled && first.is_same_state(&face()));
    std::fs::write(&path, "bb").unwrap();
    let second = face();
    assert!(!first.is_same_state(&second) && first.etag != second.etag);
    set_modified(&path, 784_111_777);
    let third = face();
    assert!(!second.is_same_state(&third) && second.etag != third.etag);
}

#[test]
fn the_stamp_of_a_file_written_just_now_is_not_trusted() {
    let root = tempfile::tempdir().unwrap();
    std::fs::write(root.path().join("a"), "a").unwrap();
    let opened = opened(root.path(), "a");
    let written = UNIX_EPOCH + Duration::from_secs(opened.facts.ctime().unsigned_abs());
    let face = |age: u64| Face::at(&opened, written + Duration::from_secs(age));
    assert!(!face(0).is_same_state(&face(60)));
    assert!(!face(1).is_same_state(&face(60)));
    assert!(face(2).is_same_state(&face(60)));
}

#[test]
fn a_shrinking_file_sends_its_remaining_bytes() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("a");
    std::fs::write(&path, "0123456789").unwrap();
    let file = File::open(&path).unwrap();
    assert_eq!(&read(&file, 10).unwrap()[..], b"0123456789");
    assert_eq!(&read(&file, 4).unwrap()[..], b"0123");
    std::fs::write(&path, "012").unwrap();
    assert_eq!(&read(&file, 10).unwrap()[..], b"012");
}

#[test]
fn no_two_boundaries_are_equal() {
    assert_ne!(boundary(), boundary());
}
