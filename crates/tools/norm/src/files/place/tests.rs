use super::*;
use proptest::prelude::*;
use std::io::Read;
use std::os::unix::fs::symlink;
use std::sync::LazyLock;
use tempfile::TempDir;

/// Creates `root/` with files that contain "inside", and a sibling `outside/` with files that
/// contain "outside".
fn tree() -> TempDir {
    let tree = tempfile::tempdir().unwrap();
    let at = |path: &str| tree.path().join(path);
    std::fs::create_dir_all(at("root/a/b")).unwrap();
    std::fs::create_dir_all(at("outside/a")).unwrap();
    for file in ["a.txt", "a/b.txt", "a/b/c.txt", "a\\b", "%2e%2e", "..."] {
        std::fs::write(at("root").join(file), "inside").unwrap();
    }
    for file in ["a.txt", "a/b.txt", "secret"] {
        std::fs::write(at("outside").join(file), "outside").unwrap();
    }
    std::fs::write(at("root/.site.toml"), "configuration").unwrap();
    std::fs::write(at("root/a/.htaccess"), "configuration").unwrap();
    let links = [
        ("a", "in-dir"),
        ("a/b.txt", "in-file"),
        ("../outside", "out-dir"),
        ("../outside/secret", "out-file"),
        ("../root/a", "round"),
        (".site.toml", "mask"),
        ("nowhere", "dangling"),
        ("loop", "loop"),
        ("/dev/zero", "device"),
        ("/proc/self/root", "magic"),
    ];
    for (to, name) in links {
        symlink(to, at("root").join(name)).unwrap();
    }
    symlink(at("root/a/b"), at("root/absolute")).unwrap();
    tree
}

fn resolved(root: &Path, path: &str, links: Links) -> String {
    match find(root, path, links) {
        Ok(FoundPath::File(mut opened)) => {
            let mut text = String::new();
            opened.file.read_to_string(&mut text).unwrap();
            format!("{text} {}", opened.below.display())
        }
        Ok(FoundPath::Folder(folder)) => format!("folder {}", folder.below.display()),
        Err(missed) => format!("{missed:?}"),
    }
}

#[test]
fn paths_resolve_only_below_the_root() {
    let tree = tree();
    let root = tree.path().join("root");
    let long = "x".repeat(300);
    let deep = "/x".repeat(3_000);
    let table = [
        ("/a.txt", "inside a.txt"),
        ("/a/b.txt", "inside a/b.txt"),
        ("//a///b.txt", "inside a/b.txt"),
        ("/./a/./b.txt", "inside a/b.txt"),
        ("/", "folder "),
        ("", "folder "),
        ("/a", "folder a"),
        ("/a/", "folder a"),
        ("/a.txt/", "Missing"),
        ("/a.txt/b", "Missing"),
        ("/nothing", "Missing"),
        // upwards
        ("/..", "Missing"),
        ("/../root/a.txt", "Missing"),
        ("/a/../a.txt", "Missing"),
        ("/../outside/secret", "Missing"),
        // letters like any other: decoding was done before, and once
        ("/...", "inside ..."),
        ("/%2e%2e", "inside %2e%2e"),
        ("/%2e%2e/outside/secret", "Missing"),
        ("/a\\b", "inside a\\b"),
        ("/..\\outside\\secret", "Missing"),
        ("/a.txt\0.html", "Missing"),
        (long.as_str(), "Missing"),
        (deep.as_str(), "Missing"),
        // links that stay inside, and their targets
        ("/in-dir/b.txt", "inside a/b.txt"),
        ("/in-file", "inside a/b.txt"),
        ("/in-dir", "folder a"),
        ("/round/b/c.txt", "inside a/b/c.txt"),
        ("/absolute/c.txt", "inside a/b/c.txt"),
        // links that do not, or lead nowhere
        ("/out-file", "Missing"),
        ("/out-dir", "Missing"),
        ("/out-dir/a.txt", "Missing"),
        ("/magic", "Missing"),
        ("/magic/etc/passwd", "Missing"),
        ("/device", "Missing"),
        ("/dangling", "Missing"),
        ("/loop", "Missing"),
        // a configuration file, by its name and by another
        ("/.site.toml", "Missing"),
        ("/.site.toml~", "Missing"),
        ("/a/.htaccess", "Missing"),
        ("/mask", "Missing"),
    ];
    for (path, expected) in table {
        assert_eq!(resolved(&root, path, Links::Inside), expected, "{path}");
    }
}

#[test]
fn the_break_follows_links_out() {
    let tree = tree();
    let root = tree.path().join("root");
    assert_eq!(resolved(&root, "/out-file", Links::Anywhere), "outside out-file");
    assert_eq!(resolved(&root, "/out-dir/a.txt", Links::Anywhere), "outside out-dir/a.txt");
    assert_eq!(resolved(&root, "/../outside/secret", Links::Anywhere), "Missing");
    assert_eq!(resolved(&root, "/device", Links::Anywhere), "Odd");
    assert_eq!(resolved(&root, "/.site.toml", Links::Anywhere), "Missing");
}

#[test]
fn a_root_may_be_a_link_or_missing() {
    let tree = tree();
    let link = tree.path().join("link");
    symlink(tree.path().join("root"), &link).unwrap();
    assert_eq!(resolved(&link, "/a.txt", Links::Inside), "inside a.txt");
    assert_eq!(resolved(&tree.path().join("gone"), "/a.txt", Links::Inside), "Missing");
}

#[test]
fn a_directory_that_becomes_a_link_leads_nowhere() {
    let tree = tree();
    let root = tree.path().join("root");
    // what find resolved a moment ago is a link by the time of the opening
    let opened = open_below(&root, Path::new("out-dir/secret"), OFlags::empty());
    assert!(matches!(opened, Err(Missed::Missing)), "{opened:?}");
    let opened = open_below(&root, Path::new("in-dir/b.txt"), OFlags::empty());
    assert!(matches!(opened, Err(Missed::Missing)), "{opened:?}");
}

#[test]
fn odd_files_are_examined_but_not_opened() {
    let tree = tree();
    let root = tree.path().join("root");
    let fifo = root.join("fifo");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, Mode::RWXU).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(root.join("socket")).unwrap();
    for name in ["/fifo", "/socket"] {
        assert_eq!(resolved(&root, name, Links::Inside), "Odd", "{name}");
    }
    // a writer waiting for a reader must not be woken by our check
    let flags = OFlags::WRONLY | OFlags::NONBLOCK;
    let writer = rustix::fs::open(&fifo, flags, Mode::empty());
    assert_eq!(writer.err(), Some(Errno::NXIO), "nobody reads");
}

static TREE: LazyLock<TempDir> = LazyLock::new(tree);

proptest! {
    #[test]
    fn no_path_leads_out(
        steps in prop::collection::vec(
            prop::sample::select(vec![
                "..", ".", "", "a", "b", "a.txt", "b.txt", "c.txt", "in-dir", "out-dir", "out-file",
                "round", "absolute", "outside", "root", "secret", "mask", ".site.toml", "loop",
                "magic", "proc", "self", "\\", "..\\", "%2e%2e", "%2f", "...", "\0", "dangling",
            ]),
            0..8,
        ),
        slash in any::<bool>(),
    ) {
        let path = format!("/{}{}", steps.join("/"), if slash { "/" } else { "" });
        let root = TREE.path().join("root");
        let shown = resolved(&root, &path, Links::Inside);
        prop_assert!(!shown.contains("outside") && !shown.contains("configuration"), "{}", shown);
        if let Ok(FoundPath::Folder(folder)) = find(&root, &path, Links::Inside) {
            prop_assert!(folder.real.starts_with(root.canonicalize().unwrap()));
        }
    }

    #[test]
    fn no_text_panics(path in any::<String>()) {
        let found = find(&TREE.path().join("root"), &path, Links::Inside);
        prop_assert!(!matches!(found, Err(Missed::Failed(_))), "{:?}", found);
    }
}
