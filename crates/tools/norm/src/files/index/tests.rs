use super::*;
use std::os::unix::fs::symlink;

fn entry(name: &str, icon: Icon, len: Option<u64>) -> IndexRow {
    // Wed, 19 Sep 2001 05:31:26 UTC
    IndexRow { name: name.into(), icon, len, modified: Some(1_000_877_486) }
}

fn listing() -> Listing {
    let entries = vec![
        entry("empty", Icon::Folder, None),
        entry("README", Icon::Text, Some(1_234)),
        entry("a & <b>\"'.zip", Icon::Archive, Some(0)),
        entry("javascript:alert(1)", Icon::Unknown, Some(5_000_000)),
        IndexRow { name: "socket".into(), icon: Icon::Unknown, len: None, modified: None },
    ];
    Listing { entries, cut: false }
}

/// Returns the page's body, with a line break before each row, paragraph and table.
fn body(page: &str) -> String {
    let (_, body) = page.split_once("<body>").unwrap();
    body.replace("<tr>", "\n<tr>").replace("<p", "\n<p").replace("<table", "\n<table")
}

fn rendered(path: &str, listing: &Listing, breaks: &str) -> String {
    let breaks = if breaks.is_empty() { Breaks::default() } else { Breaks::parse(breaks).unwrap() };
    page(path, "/icons/", listing, &breaks)
}

#[test]
fn a_directory_is_a_page() {
    insta::assert_snapshot!(body(&rendered("/sub/", &listing(), "")));
}

#[test]
fn the_page_is_self_contained_and_responsive() {
    let page = rendered("/sub/", &listing(), "");
    assert!(page.contains("prefers-color-scheme: dark") && page.contains("max-width: 34rem"));
    assert!(page.contains(r#"<meta name="viewport""#));
    assert!(!page.contains("http://") && !page.contains("https://"));
}

#[test]
fn the_site_has_no_higher_level() {
    let up = "Up to higher level directory";
    assert!(rendered("/sub/", &listing(), "").contains(up));
    assert!(!rendered("/", &listing(), "").contains(up));
}

#[test]
fn empty_and_truncated_directories_are_marked() {
    let empty = Listing { entries: Vec::new(), cut: false };
    assert!(rendered("/e/", &empty, "").contains("This directory is empty."));
    assert!(!rendered("/e/", &listing(), "").contains("This directory is empty."));
    let cut = Listing { cut: true, ..listing() };
    assert!(rendered("/e/", &cut, "").contains("Only 5 of its entries are shown."));
}

#[test]
fn each_break_takes_its_part_away_and_no_other() {
    let parts = [
        ("index-parent", "Up to higher level directory"),
        ("index-sizes", "1.21 KiB"),
        ("index-dates", "2001-09-19 05:31"),
        ("index-icons", "folder.svg"),
    ];
    for (broken, _) in parts {
        let page = rendered("/sub/", &listing(), broken);
        for (name, part) in parts {
            assert_eq!(page.contains(part), name != broken, "{broken}: {part}");
        }
    }
    let empty = Listing { entries: Vec::new(), cut: false };
    assert!(!rendered("/sub/", &empty, "index-empty").contains("empty"));
}

#[test]
fn hostile_names_are_served_as_plain_names() {
    let entries =
        vec![entry("a\nb\u{1b}[1m", Icon::Unknown, None), entry("..", Icon::Folder, None)];
    let page = rendered("/<script>/", &Listing { entries, cut: false }, "");
    assert!(page.contains("Index of /&lt;script&gt;/"));
    assert!(page.contains("href=\"a%0Ab%1B%5B1m\"") && page.contains("a\u{fffd}b\u{fffd}[1m"));
}

#[test]
fn directories_are_first_and_configuration_is_hidden() {
    let tree = tempfile::tempdir().unwrap();
    let root = tree.path().join("root");
    std::fs::create_dir_all(root.join("Zoo")).unwrap();
    std::fs::create_dir_all(root.join("ant")).unwrap();
    for name in ["b.txt", "B.png", "a.zip", ".site.toml", ".htpasswd", ".hidden"] {
        std::fs::write(root.join(name), "12345").unwrap();
    }
    std::fs::write(tree.path().join("outside"), "outside").unwrap();
    let links = [("b.txt", "to-text"), ("ant", "to-ant"), ("../outside", "out"), ("none", "void")];
    for (to, name) in links {
        symlink(to, root.join(name)).unwrap();
    }
    let _socket = std::os::unix::net::UnixListener::bind(root.join("socket")).unwrap();
    let Ok(FoundPath::Folder(folder)) = place::find(&root, "/", Links::Inside) else {
        panic!("the root is a directory");
    };
    let listing = list(&root, &folder, Links::Inside, ENTRIES_MAX).unwrap();
    let line = |entry: &IndexRow| {
        let date = if entry.modified.is_some() { "dated" } else { "-" };
        format!("{} {:?} {:?} {date}", entry.name.to_string_lossy(), entry.icon, entry.len)
    };
    let lines: Vec<String> = listing.entries.iter().map(line).collect();
    assert_eq!(
        lines,
        [
            "ant Folder None dated",
            "to-ant Folder None dated",
            "Zoo Folder None dated",
            ".hidden Unknown Some(5) dated",
            "a.zip Archive Some(5) dated",
            "B.png Image Some(5) dated",
            "b.txt Text Some(5) dated",
            "out Unknown None -",
            "socket Unknown None dated",
            "to-text Unknown Some(5) dated",
            "void Unknown None -",
        ]
    );
}

#[test]
fn a_directory_of_too_many_entries_is_cut() {
    let root = tempfile::tempdir().unwrap();
    for k in 0..=5 {
        std::fs::File::create(root.path().join(k.to_string())).unwrap();
    }
    let Ok(FoundPath::Folder(folder)) = place::find(root.path(), "/", Links::Inside) else {
        panic!("the root is a directory");
    };
    let listing = list(root.path(), &folder, Links::Inside, 5).unwrap();
    assert!(listing.cut && listing.entries.len() == 5);
}

#[test]
fn dates_beyond_the_calendar_are_left_out() {
    assert_eq!(shown_time(-1).unwrap(), "1969-12-31 23:59");
    assert_eq!(shown_time(i64::MAX), None);
    assert_eq!(shown_time(i64::MIN), None);
}
