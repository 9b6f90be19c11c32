use super::*;
use crate::exchange::{Entity, Piece};
use hyper::header::{HeaderMap, HeaderName};
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;
use tempfile::TempDir;

/// A directory in its own tree: `htdocs`, `conf`, and `outside`.
struct Site {
    tree: TempDir,
    directory: Directory,
    complaints: Arc<Mutex<Vec<String>>>,
}

/// Makes every check a fresh one, so that a test need not wait.
const LOOK_ALWAYS: CacheBounds = CacheBounds {
    file_max: 1_000,
    bytes_max: 1 << 20,
    entries_max: 100,
    look_again: Duration::ZERO,
};

impl Site {
    fn new() -> Site {
        Site::with(LOOK_ALWAYS)
    }

    fn with(cache: CacheBounds) -> Site {
        let tree = tempfile::tempdir().unwrap();
        // readable for a user without privileges
        let open = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(tree.path(), open).unwrap();
        for folder in ["htdocs/sub/empty", "htdocs/plain", "conf", "outside"] {
            std::fs::create_dir_all(tree.path().join(folder)).unwrap();
        }
        let complaints = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&complaints);
        let directory = Directory::new(DirectorySettings {
            root: tree.path().join("htdocs"),
            server_root: tree.path().to_owned(),
            fancy: true,
            icons: "/icons".to_owned(),
            cache,
            complain: Arc::new(move |found| heard.lock().unwrap().push(found.to_owned())),
        });
        let site = Site { tree, directory, complaints };
        site.write("htdocs/index.html", "<h1>Welcome</h1>");
        site.write("htdocs/digits.txt", "0123456789");
        site.write("htdocs/plain/index.html", "plain");
        site.write("htdocs/sub/README", "read me");
        site.write("outside/secret.txt", "secret");
        site.write("htdocs/long.bin", &"0123456789".repeat(1_000));
        site
    }

    fn at(&self, path: &str) -> PathBuf {
        self.tree.path().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        std::fs::write(self.at(path), text).unwrap();
    }

    /// Protects a directory below `htdocs` as the chapter protects `/secure`.
    fn protect(&self, folder: &str) {
        self.write("conf/admin.pwd", "fred:rocks\nwilma:pebbles\n");
        let rule = "AuthType = 'Basic'\nAuthName = 'admin'\nAuthUserFile = 'conf/admin.pwd'\n\
                    AuthAllowUsers = 'fred'\n";
        std::fs::create_dir_all(self.at("htdocs").join(folder)).unwrap();
        self.write(&format!("htdocs/{folder}/.site.toml"), rule);
    }

    fn get(&self, path: &str) -> Got {
        self.ask("GET", path, &[], "")
    }

    fn get_with(&self, path: &str, headers: &[(&str, &str)]) -> Got {
        self.ask("GET", path, headers, "")
    }

    fn broken(&self, path: &str, breaks: &str) -> Got {
        self.ask("GET", path, &[], breaks)
    }

    fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], breaks: &str) -> Got {
        let breaks = Breaks::parse(breaks).unwrap_or_default();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let ask = ask(method, path, headers);
        Got::from(runtime.block_on(self.directory.answer(ask, &breaks)))
    }
}

fn ask(method: &str, target: &str, fields: &[(&str, &str)]) -> Ask {
    let (path, query) = match target.split_once('?') {
        Some((path, query)) => (path, Some(query.to_owned())),
        None => (target, None),
    };
    let mut headers = HeaderMap::new();
    for (name, value) in fields {
        let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
        headers.append(name, HeaderValue::from_str(value).unwrap());
    }
    Ask {
        method: Method::from_bytes(method.as_bytes()).unwrap(),
        version: hyper::Version::HTTP_11,
        path: path.to_owned(),
        node_path: String::new(),
        rest: path.to_owned(),
        query,
        headers,
        body: Entity::None,
        peer: ([127, 0, 0, 1], 1).into(),
        local: ([127, 0, 0, 1], 2).into(),
        user: None,
    }
}

/// A response with its content read.
#[derive(Debug)]
struct Got {
    status: u16,
    headers: HeaderMap,
    text: String,
    /// True for content from memory instead of an open file.
    from_memory: bool,
}

impl From<Reply> for Got {
    fn from(reply: Reply) -> Got {
        let mut bytes = Vec::new();
        let mut from_memory = true;
        match reply.content {
            Content::Empty => {}
            Content::Bytes(content) => bytes.extend_from_slice(&content),
            Content::Pieces(pieces) => {
                for piece in pieces {
                    match piece {
                        Piece::Bytes(piece) => bytes.extend_from_slice(&piece),
                        Piece::File { file, start, len } => {
                            from_memory = false;
                            let mut part = vec![0; usize::try_from(len).unwrap()];
                            file.read_exact_at(&mut part, start).unwrap();
                            bytes.extend_from_slice(&part);
                        }
                    }
                }
            }
            Content::Stream(_) | Content::Elsewhere(_) => panic!("files have a length"),
        }
        let text = String::from_utf8(bytes).unwrap();
        Got { status: reply.status.as_u16(), headers: reply.headers, text, from_memory }
    }
}

impl Got {
    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

/// Runs as a user without privileges: root reads everything.
fn as_unprivileged<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    use rustix::process::{Gid, Uid};
    std::thread::scope(|threads| {
        let thread = threads.spawn(|| {
            if rustix::process::geteuid().is_root() {
                rustix::thread::set_thread_groups(&[]).unwrap();
                rustix::thread::set_thread_gid(Gid::from_raw(65_534)).unwrap();
                rustix::thread::set_thread_uid(Uid::from_raw(65_534)).unwrap();
            }
            work()
        });
        thread.join().unwrap()
    })
}

#[test]
fn a_file_is_served_with_its_metadata() {
    let site = Site::new();
    let got = site.get("/digits.txt");
    assert_eq!((got.status, got.text.as_str()), (200, "0123456789"));
    assert_eq!(got.header("content-type"), "text/plain; charset=utf-8");
    assert_eq!(got.header("accept-ranges"), "bytes");
    assert!(got.header("etag").starts_with('"') && got.header("etag").ends_with('"'));
    assert!(got.header("last-modified").ends_with(" GMT"));
    assert!(got.from_memory);
    // HEAD has the same fields; the connection omits the content
    let head = site.ask("HEAD", "/digits.txt", &[], "");
    assert_eq!((head.status, &head.headers), (200, &got.headers));
    // a longer one is read from the file
    let long = site.get("/long.bin");
    assert_eq!((long.status, long.text.len(), long.from_memory), (200, 10_000, false));
    assert_eq!(
        site.broken("/digits.txt", "mime").header("content-type"),
        "application/octet-stream"
    );
}

#[test]
fn directories_have_a_slash_a_page_or_an_index() {
    let site = Site::new();
    assert_eq!(site.get("/").text, "<h1>Welcome</h1>");
    assert_eq!(site.get("/").header("content-type"), "text/html; charset=utf-8");
    assert_eq!(site.get("/plain/").text, "plain");
    let index = site.get("/sub/");
    assert_eq!(index.header("content-type"), "text/html; charset=utf-8");
    assert!(index.text.contains("Index of /sub/") && index.text.contains("href=\"README\""));
    assert!(site.get("/sub/empty/").text.contains("This directory is empty."));
    let to = |path: &str| {
        let got = site.get(path);
        assert_eq!(got.status, 301, "{path}");
        got.header("location").to_owned()
    };
    assert_eq!(to("/sub"), "/sub/");
    assert_eq!(to("/sub?a=b&c"), "/sub/?a=b&c");
    // never to another host
    assert_eq!(to("//sub"), "/sub/");
    std::fs::create_dir(site.at("htdocs/a b:c")).unwrap();
    assert_eq!(to("/a b:c"), "/a%20b%3Ac/");
    assert_eq!(site.broken("/sub", "slash").status, 200);
}

#[test]
fn a_directory_without_index_is_closed_unless_fancy() {
    let site = Site::new();
    let settings = DirectorySettings { fancy: false, ..site.directory.0.settings.clone() };
    let site = Site { directory: Directory::new(settings), ..site };
    assert_eq!(site.get("/sub/").status, 403);
    assert_eq!(site.get("/plain/").status, 200);
    assert_eq!(site.get("/sub").status, 301);
}

#[test]
fn other_methods_get_the_allowed_ones() {
    let site = Site::new();
    for method in ["POST", "PUT", "DELETE", "PATCH", "TRACE"] {
        let got = site.ask(method, "/digits.txt", &[], "");
        assert_eq!((got.status, got.header("allow")), (405, "GET, HEAD, OPTIONS"), "{method}");
    }
    let got = site.ask("OPTIONS", "/digits.txt", &[], "");
    assert_eq!(
        (got.status, got.header("allow"), got.text.as_str()),
        (204, "GET, HEAD, OPTIONS", "")
    );
}

#[test]
fn parts_are_equal_from_memory_and_file() {
    let site = Site::new();
    site.write("htdocs/long.txt", &"0123456789".repeat(1_000));
    for (path, len) in [("/digits.txt", 10), ("/long.txt", 10_000)] {
        let got = site.get_with(path, &[("range", "bytes=2-4")]);
        assert_eq!((got.status, got.text.as_str()), (206, "234"), "{path}");
        assert_eq!(got.header("content-range"), format!("bytes 2-4/{len}"));
        assert_eq!(got.header("content-type"), "text/plain; charset=utf-8");
        let got = site.get_with(path, &[("range", "bytes=-1")]);
        assert_eq!((got.status, got.text.as_str()), (206, "9"), "{path}");
        let got = site.get_with(path, &[("range", "bytes=20000-")]);
        assert_eq!(
            (got.status, got.header("content-range")),
            (416, format!("bytes */{len}").as_str())
        );
        // GET only, and one field only
        let got = site.ask("HEAD", path, &[("range", "bytes=2-4")], "");
        assert_eq!((got.status, got.header("content-range")), (200, ""));
        let got = site.get_with(path, &[("range", "bytes=0-1"), ("range", "bytes=2-3")]);
        assert_eq!(got.status, 200);
        let got = site.ask("GET", path, &[("range", "bytes=2-4")], "range");
        assert_eq!((got.status, got.text.len()), (200, len));
    }
}

#[test]
fn several_parts_are_multipart() {
    let site = Site::new();
    site.write("htdocs/long.txt", &"0123456789".repeat(1_000));
    for (path, len) in [("/digits.txt", 10), ("/long.txt", 10_000)] {
        let got = site.get_with(path, &[("range", "bytes=0-1,5-6")]);
        assert_eq!(got.status, 206);
        let kind = got.header("content-type");
        let boundary = kind.strip_prefix("multipart/byteranges; boundary=").unwrap();
        let kind = "Content-Type: text/plain; charset=utf-8";
        let expected = format!(
            "\r\n--{boundary}\r\n{kind}\r\nContent-Range: bytes 0-1/{len}\r\n\r\n01\
             \r\n--{boundary}\r\n{kind}\r\nContent-Range: bytes 5-6/{len}\r\n\r\n56\
             \r\n--{boundary}--\r\n"
        );
        assert_eq!(got.text, expected, "{path}");
        assert_eq!(got.header("content-range"), "");
    }
}

#[test]
fn a_client_with_a_current_copy_gets_304() {
    let site = Site::new();
    for path in ["/digits.txt", "/long.bin"] {
        let first = site.get(path);
        let (etag, date) = (first.header("etag"), first.header("last-modified"));
        for (name, value) in [("if-none-match", etag), ("if-modified-since", date)] {
            let got = site.get_with(path, &[(name, value)]);
            assert_eq!((got.status, got.text.as_str()), (304, ""), "{path} {name}");
            assert_eq!((got.header("etag"), got.header("last-modified")), (etag, date));
            let got = site.ask("GET", path, &[(name, value)], "not-modified");
            assert_eq!((got.status, &got.text), (200, &first.text), "{path} {name}");
        }
        assert_eq!(site.get_with(path, &[("if-match", "\"other\"")]).status, 412);
        let ranged =
            |etag: &str| site.get_with(path, &[("range", "bytes=0-0"), ("if-range", etag)]);
        assert_eq!(ranged(etag).status, 206);
        assert_eq!(ranged("\"other\"").status, 200);
    }
    // a change shows, in content and tag
    let old = site.get("/digits.txt");
    site.write("htdocs/digits.txt", "other");
    let got = site.get_with("/digits.txt", &[("if-none-match", old.header("etag"))]);
    assert_eq!((got.status, got.text.as_str()), (200, "other"));
}

#[test]
fn cached_files_are_served_unchecked_until_expiry() {
    let long = CacheBounds { look_again: Duration::from_secs(3_600), ..LOOK_ALWAYS };
    let site = Site::with(long);
    assert_eq!(site.get("/digits.txt").text, "0123456789");
    std::fs::remove_file(site.at("htdocs/digits.txt")).unwrap();
    assert_eq!(site.get("/digits.txt").text, "0123456789");
    // known under this path only
    assert_eq!(site.get("/digits.txt/").status, 404);
    let site = Site::new();
    assert_eq!(site.get("/digits.txt").text, "0123456789");
    std::fs::remove_file(site.at("htdocs/digits.txt")).unwrap();
    assert_eq!(site.get("/digits.txt").status, 404);
    // a file may become a directory, and a directory a file
    std::fs::create_dir(site.at("htdocs/digits.txt")).unwrap();
    assert_eq!(site.get("/digits.txt").status, 301);
    assert_eq!(site.get("/plain/").text, "plain");
    std::fs::remove_file(site.at("htdocs/plain/index.html")).unwrap();
    assert!(site.get("/plain/").text.contains("This directory is empty."));
}

#[test]
fn cached_files_are_access_controlled() {
    let long = CacheBounds { look_again: Duration::from_secs(3_600), ..LOOK_ALWAYS };
    let site = Site::with(long);
    site.protect("secure");
    site.write("htdocs/secure/index.html", "for fred");
    // fred:rocks, wilma:pebbles
    let (fred, wilma) = ("Basic ZnJlZDpyb2Nrcw==", "Basic d2lsbWE6cGViYmxlcw==");
    for _ in 0..2 {
        assert_eq!(site.get("/secure/").status, 401);
        let got = site.get_with("/secure/", &[("authorization", fred)]);
        assert_eq!((got.status, got.text.as_str()), (200, "for fred"));
        assert_eq!(site.get_with("/secure/", &[("authorization", wilma)]).status, 401);
        assert_eq!(site.get("/secure/nothing").status, 401);
        assert_eq!(site.get("/secure").status, 401);
    }
}

#[test]
fn a_link_bypasses_no_access_control() {
    let site = Site::new();
    site.protect("secure/deep");
    site.write("htdocs/secure/deep/page.html", "for fred");
    symlink("secure/deep/page.html", site.at("htdocs/page.html")).unwrap();
    symlink("secure/deep", site.at("htdocs/side")).unwrap();
    site.protect("fence");
    symlink("../digits.txt", site.at("htdocs/fence/digits.txt")).unwrap();
    for path in ["/page.html", "/side/page.html", "/side/", "/fence/digits.txt"] {
        assert_eq!(site.get(path).status, 401, "{path}");
        let fred = [("authorization", "Basic ZnJlZDpyb2Nrcw==")];
        assert_eq!(site.get_with(path, &fred).status, 200, "{path}");
    }
}

#[test]
fn nothing_outside_is_served_and_nothing_that_configures() {
    let site = Site::new();
    site.protect("secure");
    symlink("../outside/secret.txt", site.at("htdocs/out.txt")).unwrap();
    symlink("../outside", site.at("htdocs/out")).unwrap();
    let paths = ["/out.txt", "/out/", "/out", "/out/secret.txt", "/../outside/secret.txt"];
    for path in paths.into_iter().chain(["/secure/.site.toml", "/a\0b"]) {
        let got = site.get(path);
        assert!(got.status == 404 && !got.text.contains("secret"), "{path}: {got:?}");
    }
    assert_eq!(site.broken("/out.txt", "escape").text, "secret");
    assert!(site.broken("/out/", "escape").text.contains("secret.txt"));
    assert_eq!(site.broken("/../outside/secret.txt", "escape").status, 404);
}

#[test]
fn odd_files_are_not_found_and_block_no_request() {
    let site = Site::new();
    let fifo = site.at("htdocs/fifo");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RWXU).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(site.at("htdocs/socket")).unwrap();
    symlink("nowhere", site.at("htdocs/vanished")).unwrap();
    for path in ["/fifo", "/socket", "/vanished"] {
        let got = site.get(path);
        assert_eq!((got.status, got.text.as_str()), (404, "Not Found\n"), "{path}");
    }
    assert_eq!(site.broken("/fifo", "odd-500").status, 500);
    assert_eq!(site.broken("/socket", "odd-500").status, 500);
    assert_eq!(site.broken("/vanished", "odd-500").status, 404);
    // an unusual index page does not count as one
    std::fs::rename(&fifo, site.at("htdocs/sub/index.html")).unwrap();
    assert!(site.get("/sub/").text.contains("Index of /sub/"));
}

fn close(path: &Path) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o000)).unwrap();
}

#[test]
fn unreadable_files_are_denied() {
    let site = Site::new();
    site.write("htdocs/sub/private.txt", "private");
    std::fs::create_dir(site.at("htdocs/closed")).unwrap();
    site.write("htdocs/closed/a.txt", "closed");
    as_unprivileged(|| assert_eq!(site.get("/sub/private.txt").text, "private"));
    // not out of the memory either
    close(&site.at("htdocs/sub/private.txt"));
    close(&site.at("htdocs/closed"));
    as_unprivileged(|| {
        for path in ["/sub/private.txt", "/closed/", "/closed/a.txt", "/closed/none"] {
            let got = site.get(path);
            assert_eq!((got.status, got.text.as_str()), (403, "Access Denied\n"), "{path}");
        }
        assert_eq!(site.broken("/sub/private.txt", "unreadable-404").status, 404);
        assert!(site.get("/sub/").text.contains("private.txt"));
    });
}

#[test]
fn a_configuration_that_may_not_be_read_opens_nothing() {
    let site = Site::new();
    site.protect("secure");
    site.write("htdocs/secure/index.html", "for fred");
    close(&site.at("htdocs/secure/.site.toml"));
    as_unprivileged(|| assert_eq!(site.get("/secure/").status, 500));
    let complaints = site.complaints.lock().unwrap();
    assert!(complaints[0].contains("secure/.site.toml: Permission denied"), "{complaints:?}");
}

#[test]
fn many_paths_do_not_outgrow_the_cache() {
    let site = Site::new();
    for k in 0..150 {
        site.write(&format!("htdocs/sub/{k}.txt"), &k.to_string());
    }
    for k in (0..150).chain(0..150) {
        assert_eq!(site.get(&format!("/sub/{k}.txt")).text, k.to_string());
    }
}
