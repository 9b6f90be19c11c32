use super::*;
use tempfile::TempDir;

const NOTES: &str = "### Added\n\n- A thing.\n\n### Fixed\n\n- Another.";

/// Creates a repository with its own package, everything committed.
fn repository() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let file = |name: &str, text: &str| std::fs::write(root.join(name), text).unwrap();
    file(
        MANIFEST,
        "[workspace]\nresolver = \"3\"\nmembers = [\"one\"]\n\n[workspace.package]\nversion = \"0.1.0\" # ours\n",
    );
    std::fs::create_dir_all(root.join("one/src")).unwrap();
    file(
        "one/Cargo.toml",
        "[package]\nname = \"one\"\nversion.workspace = true\nedition = \"2024\"\n",
    );
    file("one/src/lib.rs", "");
    let open = format!("# Changelog\n\n## [0.2.0] - unreleased\n\n{NOTES}\n");
    file(CHANGELOG, &format!("{open}\n## [0.1.0] - 2026-01-02\n\n- The first.\n"));
    shell::run(shell::cargo().current_dir(root).args(["generate-lockfile", "--offline"])).unwrap();
    for words in [
        &["init", "--quiet"][..],
        &["config", "user.name", "A"],
        &["config", "user.email", "a@example.org"],
        &["add", "."],
        &["commit", "--quiet", "--message", "Begin"],
    ] {
        git(root, words).unwrap();
    }
    folder
}

fn options(version: &str) -> Options {
    Options { version: version.into(), notes: false, date: Some("2026-11-23".into()) }
}

/// Returns the error of a command, after checking that the tree is unchanged.
fn refused(root: &Path, options: &Options) -> String {
    let (head, status) = (git(root, &["rev-parse", "HEAD"]), git(root, &["status", "--short"]));
    let why = format!("{:#}", run(root, options).unwrap_err());
    assert_eq!(git(root, &["rev-parse", "HEAD"]).unwrap(), head.unwrap(), "{why}");
    assert_eq!(git(root, &["status", "--short"]).unwrap(), status.unwrap(), "{why}");
    why
}

#[test]
fn a_release_is_one_commit_and_a_tag_with_its_notes() {
    let folder = repository();
    let root = folder.path();
    run(root, &options("0.2.0")).unwrap();
    assert_eq!(git(root, &["log", "--format=%s"]).unwrap(), "Release 0.2.0\nBegin\n");
    assert_eq!(git(root, &["status", "--porcelain"]).unwrap(), "");
    let found = git(root, &["tag", "--list", "--format=%(objecttype) %(contents)", "v0.2.0"]);
    assert_eq!(found.unwrap().trim(), format!("tag Release 0.2.0\n\n{NOTES}"));
    let read = |name: &str| std::fs::read_to_string(root.join(name)).unwrap();
    assert!(read(CHANGELOG).contains("\n## [0.2.0] - 2026-11-23\n\n### Added\n"));
    assert!(read(MANIFEST).ends_with("version = \"0.2.0\" # ours\n"), "{}", read(MANIFEST));
    assert!(read("Cargo.lock").contains("name = \"one\"\nversion = \"0.2.0\"\n"));
}

#[test]
fn an_invalid_release_is_refused_without_changes() {
    let folder = repository();
    let root = folder.path();
    for (version, found) in [
        ("v0.2.0", "\"v0.2.0\" is not a version: write it as 1.2.3"),
        ("0.02.0", "is not a version"),
        ("0.2", "is not a version"),
        ("0.2.0-", "is not a version"),
        ("0.3.0", "CHANGELOG.md has no heading `## [0.3.0] - unreleased`: write one"),
        ("0.1.0", "CHANGELOG.md: 0.1.0 was released on 2026-01-02"),
    ] {
        let why = refused(root, &options(version));
        assert!(why.contains(found), "{version}: {why}");
    }
    let day = Options { date: Some("23.11.2026".into()), ..options("0.2.0") };
    assert!(refused(root, &day).contains("\"23.11.2026\" is not a date"));
    git(root, &["tag", "v0.2.0"]).unwrap();
    assert!(refused(root, &options("0.2.0")).contains("the tag v0.2.0 exists already"));
    std::fs::write(root.join("one/src/lib.rs"), "//! Half done.\n").unwrap();
    let why = refused(root, &options("0.2.0"));
    assert!(why.contains("uncommitted changes:\n M one/src/lib.rs"), "{why}");
}

#[test]
fn a_commit_that_fails_leaves_the_tree_as_it_was() {
    let folder = repository();
    let root = folder.path();
    let hook = root.join(".git/hooks/pre-commit");
    std::fs::create_dir_all(hook.parent().unwrap()).unwrap();
    std::fs::write(&hook, "#!/bin/sh\nexit 1\n").unwrap();
    std::fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    assert!(refused(root, &options("0.2.0")).contains("git commit"));
}

#[test]
fn a_tag_that_fails_takes_its_commit_back() {
    let folder = repository();
    let root = folder.path();
    // git cannot have v0.2.0 as both a file and a folder
    git(root, &["tag", "v0.2.0/x"]).unwrap();
    assert!(refused(root, &options("0.2.0")).contains("git tag"));
}

#[test]
fn a_section_without_text_is_refused() {
    let text = "## [1.0.0] - unreleased\n\n\n## [0.9.0] - 2026-01-01\n- x\n";
    let why = format!("{:#}", Section::new(text, "1.0.0").unwrap_err());
    assert_eq!(why, "CHANGELOG.md: there is no entry below `## [1.0.0] - unreleased`");
    assert_eq!(Section::new(text, "0.9.0").unwrap().notes, "- x");
}

/// The changelog of the next release has notes.
#[test]
fn our_own_changelog_has_notes_of_the_version_in_the_manifest() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let changelog = std::fs::read_to_string(root.join(CHANGELOG)).unwrap();
    let section = Section::new(&changelog, &shell::version(root).unwrap()).unwrap();
    assert!(section.notes.starts_with("### "), "{}", section.notes.lines().next().unwrap());
}
