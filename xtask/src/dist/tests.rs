//! Packs a small program that prints what the packer needs from the real one, twice, and reads the
//! packages with the tools that install them. Without binutils, dpkg or rpm, the test prints that;
//! `cargo xtask test` installs them.

use super::*;

const PROGRAM: &str = r#"
    fn main() {
        let words: Vec<String> = std::env::args().skip(1).collect();
        println!("said {}", words.join(" "));
    }
"#;

fn program(folder: &Path, name: &str, linkage: &str) -> PathBuf {
    let source = folder.join("small.rs");
    std::fs::write(&source, PROGRAM).unwrap();
    let binary = folder.join(name);
    let mut rustc = Command::new("rustc");
    rustc.args(["--edition=2024", "-g", "--target", TARGET, "-C"]);
    rustc.arg(format!("target-feature={linkage}")).arg(source).arg("-o").arg(&binary);
    shell::run(&mut rustc).unwrap();
    binary
}

/// Creates a tree with the files that packages include; it is outside a repository, so its date is
/// 0.
fn tree(folder: &Path) -> PathBuf {
    let root = folder.join("root");
    std::fs::create_dir(&root).unwrap();
    for document in DOCUMENTS {
        std::fs::write(root.join(document), format!("{document}\n")).unwrap();
    }
    std::fs::write(root.join("Cargo.toml"), "[workspace.package]\nversion = \"1.2.3-rc1\"\n")
        .unwrap();
    root
}

fn output_of(program: &str, args: &[&str], file: &Path) -> String {
    shell::output(Command::new(program).args(args).arg(file)).unwrap()
}

#[test]
fn packages_are_whole_and_the_same_twice() {
    let folder = tempfile::tempdir().unwrap();
    let root = tree(folder.path());
    let dynamic = program(folder.path(), "dynamic", "-crt-static");
    let fixed = program(folder.path(), "static", "+crt-static");
    let (first, second) = (folder.path().join("first"), folder.path().join("second"));
    pack_all(&root, &dynamic, &fixed, &first).unwrap();
    pack_all(&root, &dynamic, &fixed, &second).unwrap();
    let sums = std::fs::read_to_string(first.join("SHA256SUMS")).unwrap();
    assert_eq!(sums, std::fs::read_to_string(second.join("SHA256SUMS")).unwrap());
    assert_eq!(sums.lines().count(), 7, "{sums}");
    let check = Command::new("sha256sum").args(["-c", "SHA256SUMS"]).current_dir(&first).output();
    assert!(check.unwrap().status.success());

    for file in [format!("{TARGET}.tar.gz"), format!("{TARGET}-static.tar.gz")] {
        let list = output_of("tar", &["-tzf"], &first.join(format!("loadstone-1.2.3-rc1-{file}")));
        for inside in ["/loadstone", "/loadstone.1", "/completions/_loadstone", "/LICENSE-MIT"] {
            assert!(list.lines().any(|line| line.ends_with(inside)), "{file}: {list}");
        }
    }
    let deb = first.join("loadstone_1.2.3~rc1_amd64.deb");
    let list = output_of("dpkg-deb", &["--contents"], &deb);
    let control = output_of("dpkg-deb", &["--field"], &deb);
    assert!(list.contains("./usr/share/man/man1/loadstone.1.gz"), "{list}");
    assert!(control.contains("Depends: libc6 (>= 2."), "{control}");
    let rpm = first.join("loadstone-1.2.3~rc1-1.x86_64.rpm");
    let list = output_of("rpm", &["-qpl"], &rpm);
    let needs = output_of("rpm", &["-qp", "--requires"], &rpm);
    for inside in ["/usr/bin/loadstone", "/usr/share/licenses/loadstone/LICENSE-MIT"] {
        assert!(list.lines().any(|line| line == inside), "{list}");
    }
    assert!(needs.contains("libc.so.6"), "{needs}");
    an_image_holds_together(&first.join("loadstone-1.2.3-rc1-oci.tar"), folder.path());
}

/// Every digest is that of the blob that it names, and the layer has the static program.
fn an_image_holds_together(image: &Path, folder: &Path) {
    let layout = folder.join("layout");
    std::fs::create_dir(&layout).unwrap();
    shell::run(Command::new("tar").arg("-xf").arg(image).arg("-C").arg(&layout)).unwrap();
    let read = |entry: &serde_json::Value| {
        let digest = entry["digest"].as_str().unwrap().strip_prefix("sha256:").unwrap();
        let bytes = std::fs::read(layout.join("blobs/sha256").join(digest)).unwrap();
        assert_eq!(sha256(&bytes), digest);
        assert_eq!(entry["size"], bytes.len());
        bytes
    };
    let json = |bytes: &[u8]| serde_json::from_slice::<serde_json::Value>(bytes).unwrap();
    let index = json(&std::fs::read(layout.join("index.json")).unwrap());
    let manifest = json(&read(&index["manifests"][0]));
    let config = json(&read(&manifest["config"]));
    let layer = folder.join("layer.tar.gz");
    std::fs::write(&layer, read(&manifest["layers"][0])).unwrap();
    let plain = Command::new("gzip").args(["-dc"]).arg(&layer).output().unwrap().stdout;
    assert_eq!(config["rootfs"]["diff_ids"][0], format!("sha256:{}", sha256(&plain)));
    assert_eq!(config["created"], "1970-01-01T00:00:00Z");
    let inside = folder.join("inside");
    std::fs::create_dir(&inside).unwrap();
    shell::run(Command::new("tar").arg("-xf").arg(&layer).arg("-C").arg(&inside)).unwrap();
    let binary = inside.join("usr/bin/loadstone");
    hold_linkage(&binary, false).unwrap();
    // as a container starts it: with nothing else below its root
    let root = inside.to_str().unwrap();
    let start = ["chroot", root, "/usr/bin/loadstone", "--version"];
    let allowed = output_of("id", &[], Path::new("-u")).trim() == "0";
    let words = if allowed { &start[..] } else { &["unshare", "--map-root-user"] };
    let mut container = Command::new(words[0]);
    container.args(&words[1..]).args(if allowed { &[] } else { &start[..] });
    assert_eq!(shell::output(&mut container).unwrap(), "said --version\n");
}

#[test]
fn the_debug_link_finds_the_stripped_symbols() {
    let folder = tempfile::tempdir().unwrap();
    let whole = program(folder.path(), "whole", "-crt-static");
    let (stripped, debug) = elf::split(&whole, folder.path()).unwrap();
    let headers = |file: &Path| output_of("objdump", &["-h"], file);
    assert!(headers(&stripped).contains(".gnu_debuglink"));
    assert!(!headers(&stripped).contains(".debug_line"));
    assert!(headers(&debug).contains(".debug_line"));
    let size = |file: &Path| std::fs::metadata(file).unwrap().len();
    assert!(size(&stripped) < size(&whole));
}

#[test]
fn a_binary_of_the_wrong_kind_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let dynamic = program(folder.path(), "dynamic", "-crt-static");
    let error = pack_all(folder.path(), &dynamic, &dynamic, folder.path()).unwrap_err();
    assert!(error.to_string().contains("is not static"), "{error}");
    assert!(dynamic.exists(), "nothing was cleared");
}

#[test]
fn a_folder_of_something_else_is_not_cleared() {
    let folder = tempfile::tempdir().unwrap();
    let mine = folder.path().join("mine");
    std::fs::write(&mine, "").unwrap();
    assert!(clear(folder.path()).unwrap_err().to_string().contains("not empty"));
    assert!(mine.exists());
}

#[test]
fn checksums_are_readable_by_sha256sum() {
    let file = tempfile::tempdir().unwrap();
    let path = file.path().join("abc");
    std::fs::write(&path, "abc").unwrap();
    let sum = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!(checksum_line(&path).unwrap(), format!("{sum}  abc\n"));
}
