use crate::support::{Site, request, site, status, to_the_end};
use norm::Breaks;
use std::io::Write;

fn post(len: usize) -> Vec<u8> {
    let head = format!(
        "POST /sleep?0 HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: {len}\r\n\r\n"
    );
    [head.into_bytes(), vec![b'x'; len]].concat()
}

fn chunked(len: usize) -> Vec<u8> {
    let head =
        "POST /hw HTTP/1.1\r\nHost: h\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n";
    let chunk = format!("{len:x}\r\n{}\r\n0\r\n\r\n", "x".repeat(len));
    [head.as_bytes(), chunk.as_bytes()].concat()
}

/// Paths that the log names as temporary files.
fn allocated(log: &str) -> Vec<&str> {
    let path = |line: &'_ str| line.find("Debug: TmpFile allocate file ").map(|at| at + 29);
    log.lines().filter_map(|line| path(line).map(|at| &line[at..])).collect()
}

#[test]
fn a_long_body_is_spooled_and_removed_after_its_request() {
    for body in [post(1_001), post(99_000), chunked(5_000)] {
        let mut site = site(|_, _| {});
        assert_eq!(status(&site.send(&body)), 405);
        assert_eq!(site.spooled(), [""; 0]);
        let folder = site.folder.path().join("tmp");
        let log = site.log();
        let paths = allocated(&log);
        assert_eq!(paths.len(), 1, "{log}");
        assert!(paths[0].starts_with(folder.to_str().unwrap()), "{log}");
    }
}

#[test]
fn a_short_body_stays_in_memory() {
    let mut site = site(|_, _| {});
    assert_eq!(status(&site.send(&post(1_000))), 405);
    assert_eq!(allocated(&site.log()), [""; 0]);
}

#[test]
fn a_body_over_the_limit_is_413_however_it_is_framed() {
    let mut site = site(|_, _| {});
    assert_eq!(status(&site.send(&post(100_001))), 413);
    assert_eq!(status(&site.send(&chunked(100_001))), 413);
    assert_eq!(site.spooled(), [""; 0]);
    // the length alone is enough: nothing is written
    let log = site.log();
    assert!(allocated(&log).len() <= 1, "{log}");
}

#[test]
fn a_body_that_breaks_off_leaves_no_file() {
    let mut site = site(|_, _| {});
    let mut stream = site.connect();
    stream.write_all(&post(90_000)[..50_000]).unwrap();
    wait_for_a_file(&site);
    stream.shutdown(std::net::Shutdown::Both).unwrap();
    let log = site.log();
    assert_eq!(allocated(&log).len(), 1, "{log}");
    assert_eq!(site.spooled(), [""; 0]);
}

fn wait_for_a_file(site: &Site) {
    let begun = std::time::Instant::now();
    while site.spooled().is_empty() {
        assert!(begun.elapsed() < crate::support::LONG);
        std::thread::yield_now();
    }
}

#[test]
fn only_crash_leftovers_are_removed_at_the_next_start() {
    let mut site = site(|settings, _| {
        for name in [
            "loadstone-spool-4711-0",
            "loadstone-spool-1-99",
            "somebody-elses",
            "loadstone-spool-x",
        ] {
            std::fs::write(settings.tmp_dir.join(name), "left").expect("a new file");
        }
    });
    let mut left = site.spooled();
    left.sort();
    assert_eq!(left, ["loadstone-spool-x", "somebody-elses"]);
    let log = site.log();
    assert!(log.contains("Info: Removed 2 temporary files that a crash had left"), "{log}");
}

#[test]
fn a_second_server_leaves_the_files_of_a_living_one_alone() {
    let first = site(|_, _| {});
    let mut stream = first.connect();
    stream.write_all(&post(90_000)[..50_000]).unwrap();
    wait_for_a_file(&first);
    let tmp = first.folder.path().join("tmp");
    let second = site(|settings, _| settings.tmp_dir = tmp);
    assert_eq!(first.spooled().len(), 1);
    drop(second);
    stream.write_all(&post(90_000)[50_000..]).unwrap();
    assert_eq!(status(&to_the_end(&mut stream)), 405);
}

#[test]
fn the_switches_leave_the_file_and_hide_the_line() {
    let mut site =
        site(|settings, _| settings.breaks = Breaks::parse("spool-left,log-tmpfile").unwrap());
    assert_eq!(status(&site.send(&post(5_000))), 405);
    assert_eq!(
        status(
            &site.send(request("/gone").replace("h\r\n", "h\r\nConnection: close\r\n").as_bytes())
        ),
        404
    );
    let log = site.log();
    assert_eq!(site.spooled().len(), 1);
    assert_eq!(allocated(&log), [""; 0]);
}
