//! The package for Fedora, RHEL and SUSE, by rpmbuild.

use super::{DESCRIPTION, Release, SUMMARY, pack};
use crate::shell;
use anyhow::Context;
use std::path::{Path, PathBuf};
use std::process::Command;

const PLACES: [(&str, &str); 9] = [
    ("loadstone", "usr/bin/loadstone"),
    ("loadstone.1", "usr/share/man/man1/loadstone.1"),
    ("README.md", "usr/share/doc/loadstone/README.md"),
    ("CHANGELOG.md", "usr/share/doc/loadstone/CHANGELOG.md"),
    ("LICENSE-MIT", "usr/share/licenses/loadstone/LICENSE-MIT"),
    ("LICENSE-APACHE", "usr/share/licenses/loadstone/LICENSE-APACHE"),
    ("completions/loadstone.bash", "usr/share/bash-completion/completions/loadstone"),
    ("completions/_loadstone", "usr/share/zsh/site-functions/_loadstone"),
    ("completions/loadstone.fish", "usr/share/fish/vendor_completions.d/loadstone.fish"),
];

/// Packs the folder of the dynamic tarball.
///
/// # Errors
/// Fails if rpmbuild fails.
pub(super) fn pack(release: &Release, from: &Path) -> anyhow::Result<PathBuf> {
    let top = release.stage.join("rpm");
    let tree = top.join("tree");
    pack::lay_out(from, &PLACES, &tree)?;
    shell::run(Command::new("chmod").args(["-R", "u+rwX,go+rX,go-w"]).arg(&tree))?;
    let mut dated = Command::new("find");
    dated.arg(&tree).args(["-exec", "touch", "--no-dereference", "--date"]);
    shell::run(dated.arg(format!("@{}", release.date)).args(["{}", "+"]))?;
    let version = release.version.replace('-', "~");
    let file = top.join("loadstone.spec");
    std::fs::write(&file, spec(&version, &tree))?;
    let mut build = Command::new("rpmbuild");
    build.env("SOURCE_DATE_EPOCH", &release.date).args(["-bb", "--quiet"]);
    for (name, value) in [
        // nothing from the build machine: no name, no clock, no folders, no second stripping
        ("_buildhost", "localhost"),
        ("use_source_date_epoch_as_buildtime", "1"),
        ("clamp_mtime_to_source_date_epoch", "1"),
        ("_build_id_links", "none"),
        ("__os_install_post", "%{nil}"),
        ("debug_package", "%{nil}"),
        ("_binary_payload", "w9.gzdio"),
        ("_rpmfilename", "%%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm"),
        ("_topdir", top.to_str().context("the stage's path is UTF-8")?),
        ("_rpmdir", release.dist.to_str().context("the path of dist/ is UTF-8")?),
        // without the user's rpm database
        ("_dbpath", top.join("db").to_str().context("the stage's path is UTF-8")?),
    ] {
        build.arg("--define").arg(format!("{name} {value}"));
    }
    shell::run(build.args(["--target", "x86_64-linux"]).arg(&file))?;
    Ok(release.dist.join(format!("loadstone-{version}-1.x86_64.rpm")))
}

/// Renders the spec. The files are named one by one: a list of folders would claim the system's
/// folders.
fn spec(version: &str, tree: &Path) -> String {
    let files: String = PLACES
        .iter()
        .map(|(_, place)| {
            let mode = if *place == "usr/bin/loadstone" { "0755" } else { "0644" };
            let kind = match place.split('/').nth(2) {
                Some("doc" | "man") if place.starts_with("usr/share") => "%doc ",
                Some("licenses") => "%license ",
                _ => "",
            };
            format!("%attr({mode}, root, root) {kind}/{place}\n")
        })
        .collect();
    let [first, second] = DESCRIPTION;
    format!(
        "Name: loadstone\nVersion: {version}\nRelease: 1\nSummary: {SUMMARY}\n\
         License: Apache-2.0 OR MIT\nGroup: Applications/Internet\nAutoProv: no\n\n\
         %description\n{first}\n{second}\n\n\
         %install\nmkdir -p %{{buildroot}}\ncp -a {}/. %{{buildroot}}/\n\n\
         %files\n%defattr(-, root, root)\n{files}",
        tree.display()
    )
}
