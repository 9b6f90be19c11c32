//! The package for Debian and Ubuntu, by dpkg-deb.

use super::{DESCRIPTION, Release, SUMMARY, elf, pack};
use crate::shell;
use std::path::{Path, PathBuf};
use std::process::Command;

const PLACES: [(&str, &str); 9] = [
    ("loadstone", "usr/bin/loadstone"),
    ("loadstone.1", "usr/share/man/man1/loadstone.1"),
    ("README.md", "usr/share/doc/loadstone/README.md"),
    ("CHANGELOG.md", "usr/share/doc/loadstone/changelog"),
    ("LICENSE-MIT", "usr/share/doc/loadstone/LICENSE-MIT"),
    ("LICENSE-APACHE", "usr/share/doc/loadstone/LICENSE-APACHE"),
    ("completions/loadstone.bash", "usr/share/bash-completion/completions/loadstone"),
    ("completions/_loadstone", "usr/share/zsh/vendor-completions/_loadstone"),
    ("completions/loadstone.fish", "usr/share/fish/vendor_completions.d/loadstone.fish"),
];

const COPYRIGHT: &str = "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\
    Upstream-Name: loadstone\n\n\
    Files: *\n\
    Copyright: The Loadstone authors\n\
    License: Apache-2.0 or Expat\n\
    Comment: The texts are beside this file: LICENSE-APACHE and LICENSE-MIT.\n";

/// Packs the folder of the dynamic tarball.
///
/// # Errors
/// Fails if a tool fails, or the binary needs a library that we know no package for.
pub(super) fn pack(release: &Release, from: &Path) -> anyhow::Result<PathBuf> {
    let tree = release.stage.join("deb");
    let size = pack::lay_out(from, &PLACES, &tree)?;
    std::fs::write(tree.join("usr/share/doc/loadstone/copyright"), COPYRIGHT)?;
    for file in ["usr/share/man/man1/loadstone.1", "usr/share/doc/loadstone/changelog"] {
        shell::run(Command::new("gzip").arg("-9n").arg(tree.join(file)))?;
    }
    std::fs::create_dir_all(tree.join("DEBIAN"))?;
    let depends = elf::depends(&from.join("loadstone"))?;
    // a version with ~ sorts before the release, unlike one with a hyphen
    let version = release.version.replace('-', "~");
    std::fs::write(tree.join("DEBIAN/control"), control(&version, size, &depends))?;
    // a umask of the builder's must not show in the package
    shell::run(Command::new("chmod").args(["-R", "u+rwX,go+rX,go-w"]).arg(&tree))?;
    let file = release.dist.join(format!("loadstone_{version}_amd64.deb"));
    let mut build = Command::new("dpkg-deb");
    build.env("SOURCE_DATE_EPOCH", &release.date);
    // the default, zstd or xz, differs from one distribution to the next
    build.args(["-Zxz", "--root-owner-group", "--build"]);
    shell::run(build.arg(&tree).arg(&file))?;
    Ok(file)
}

fn control(version: &str, bytes: u64, depends: &str) -> String {
    let [first, second] = DESCRIPTION;
    format!(
        "Package: loadstone\n\
         Version: {version}\n\
         Architecture: amd64\n\
         Maintainer: The Loadstone authors <loadstone@localhost>\n\
         Section: web\n\
         Priority: optional\n\
         Depends: {depends}\n\
         Installed-Size: {}\n\
         Description: {SUMMARY}\n \
         {first}\n \
         {second}\n",
        bytes.div_ceil(1024)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_has_the_fields_dpkg_requires() {
        let control = control("1.2.3", 1025, "libc6 (>= 2.34)");
        let expected = ["Package: loadstone", "Version: 1.2.3", "Installed-Size: 2"];
        for line in expected.iter().chain(&["Depends: libc6 (>= 2.34)"]) {
            assert!(control.lines().any(|there| there == *line), "{control}");
        }
        assert!(control.ends_with('\n'));
        let long = control.lines().skip_while(|line| !line.starts_with("Description")).skip(1);
        assert!(long.clone().count() > 0 && long.clone().all(|line| line.starts_with(' ')));
    }
}
