use super::*;

#[test]
fn names_determine_the_media_type() {
    let table = [
        ("index.html", "text/html; charset=utf-8"),
        ("page.HTM", "text/html; charset=utf-8"),
        ("a.css", "text/css; charset=utf-8"),
        ("a.js", "text/javascript; charset=utf-8"),
        ("a.txt", "text/plain; charset=utf-8"),
        ("a.md", "text/markdown; charset=utf-8"),
        ("README", "text/plain; charset=utf-8"),
        ("sub/Makefile", "text/plain; charset=utf-8"),
        ("a.json", "application/json"),
        ("a.svg", "image/svg+xml"),
        ("a.png", "image/png"),
        ("a.jpg", "image/jpeg"),
        ("a.gif", "image/gif"),
        ("a.webp", "image/webp"),
        ("a.ico", "image/x-icon"),
        ("a.pdf", "application/pdf"),
        ("a.wasm", "application/wasm"),
        ("a.woff2", "font/woff2"),
        ("a.mp4", "video/mp4"),
        ("a.tar.gz", "application/gzip"),
        ("a.zip", "application/zip"),
        ("a.xml", "text/xml; charset=utf-8"),
        ("noextension", "application/octet-stream"),
        ("a.whatisthis", "application/octet-stream"),
        (".hidden", "application/octet-stream"),
        ("", "application/octet-stream"),
    ];
    for (name, expected) in table {
        assert_eq!(media_type(Path::new(name)), expected, "{name}");
    }
}

#[test]
fn names_determine_the_icon() {
    let table = [
        ("README", Icon::Text),
        ("page.html", Icon::Text),
        ("data.json", Icon::Text),
        ("run.sh", Icon::Text),
        ("photo.jpeg", Icon::Image),
        ("drawing.svg", Icon::Image),
        ("a.tar", Icon::Archive),
        ("a.tgz", Icon::Archive),
        ("a.gz", Icon::Archive),
        ("a.bz2", Icon::Archive),
        ("a.xz", Icon::Archive),
        ("a.zip", Icon::Archive),
        ("a.7z", Icon::Archive),
        ("a.deb", Icon::Archive),
        ("a.bin", Icon::Unknown),
        ("core", Icon::Unknown),
    ];
    for (name, expected) in table {
        assert_eq!(Icon::for_file(Path::new(name)), expected, "{name}");
    }
}

#[test]
fn every_icon_has_a_file() {
    for (icon, file, words) in ICONS {
        assert_eq!(icon.icon(), (*file, *words));
        assert!(file.ends_with(".svg"));
    }
}
