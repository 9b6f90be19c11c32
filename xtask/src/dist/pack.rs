//! Archives whose bytes depend only on their contents and one date.

use crate::shell;
use anyhow::Context;
use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};

/// Destination of a tarball file in a package's tree.
pub(super) type Places<'a> = [(&'a str, &'a str)];

/// Lays out a tree and returns its size in bytes.
///
/// # Errors
/// Fails if a file cannot be copied.
pub(super) fn lay_out(from: &Path, places: &Places<'_>, tree: &Path) -> anyhow::Result<u64> {
    let mut size = 0;
    for (source, target) in places {
        let target = tree.join(target);
        let folder = target.parent().context("a path in the package has a folder")?;
        std::fs::create_dir_all(folder)?;
        size += std::fs::copy(from.join(source), &target)
            .with_context(|| format!("copying {source}"))?;
    }
    Ok(size)
}

/// Writes a tar of these entries of a folder: sorted, owned by root, all of one date.
///
/// # Errors
/// Fails if tar fails.
pub(super) fn tar<S: AsRef<OsStr>>(
    folder: &Path,
    entries: &[S],
    file: &Path,
    date: &str,
) -> anyhow::Result<()> {
    let mut tar = Command::new("tar");
    tar.args(["--create", "--format=ustar", "--sort=name", "--file"]).arg(file);
    tar.args(["--owner=0", "--group=0", "--numeric-owner"]);
    tar.args(["--mode=u+rwX,go+rX,go-w", &format!("--mtime=@{date}")]);
    shell::run(tar.arg("--directory").arg(folder).args(entries))
}

/// Compresses `from` into `to`; -n omits name and time in the file.
///
/// # Errors
/// Fails if gzip fails, or the file cannot be written.
pub(super) fn gzip(from: &Path, to: &Path) -> anyhow::Result<()> {
    let out = std::fs::File::create(to).with_context(|| format!("writing {}", to.display()))?;
    let mut gzip = Command::new("gzip");
    shell::run(gzip.args(["-9", "-n", "--stdout"]).arg(from).stdout(Stdio::from(out)))
}
