//! Builds a release from two binaries, one that uses the system's libraries (so that wrk's scripts
//! can load C modules) and a static one (which runs anywhere): a tarball of each with its
//! documents, a .deb and an .rpm of the first, an OCI image of the second, the debug information of
//! both, and checksums. The same sources give the same bytes.

mod deb;
mod elf;
mod oci;
mod pack;
mod rpm;
#[cfg(test)]
mod tests;

use crate::shell;
use anyhow::{Context, bail};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::process::Command;

#[derive(Debug, Default, clap::Args)]
pub(crate) struct Options {
    /// Pack this binary, which uses the system's libraries, instead of building it
    #[arg(long, value_name = "FILE")]
    dynamic: Option<PathBuf>,
    /// Pack this static binary instead of building it
    #[arg(long = "static", value_name = "FILE")]
    fixed: Option<PathBuf>,
    /// Where to put everything
    #[arg(long, value_name = "FOLDER", default_value = "dist")]
    into: PathBuf,
}

/// Naming the target keeps `crt-static` away from build scripts and procedural macros, which are
/// shared libraries of the host.
const TARGET: &str = "x86_64-unknown-linux-gnu";
const SHELLS: [(&str, &str); 3] =
    [("bash", "loadstone.bash"), ("zsh", "_loadstone"), ("fish", "loadstone.fish")];
const DOCUMENTS: [&str; 4] = ["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"];
/// Maximum size of the installed program in bytes.
const SIZE_MAX: u64 = 34_000_000;
const SUMMARY: &str = "loads, measures and torture-tests web servers";
const DESCRIPTION: [&str; 2] = [
    "Puts a load on a web server, measures response times from the instant each",
    "request was due, and reports whether each result can be trusted.",
];

/// Content of every package.
struct Release {
    version: String,
    /// Modification time of every file, in seconds since 1970.
    date: String,
    /// Output folder of packages.
    dist: PathBuf,
    /// Staging folder of trees before packing.
    stage: PathBuf,
}

/// Runs `cargo xtask dist`: fills `dist/`.
///
/// # Errors
/// Fails if a tool is missing, the build fails, the static binary is not static, a binary is too
/// large, or a file cannot be written.
pub(crate) fn run(root: &Path, options: &Options) -> anyhow::Result<()> {
    for (tool, package) in
        [("dpkg-deb", "dpkg"), ("tar", "tar"), ("objcopy", "binutils"), ("rpmbuild", "rpm")]
    {
        shell::need(tool, &format!("apt-get install {package}"))?;
    }
    let given = |file: &Option<PathBuf>, fixed: bool| match file {
        Some(file) => Ok(file.clone()),
        None => build(root, fixed),
    };
    let dynamic = given(&options.dynamic, false)?;
    let fixed = given(&options.fixed, true)?;
    let dist = root.join(&options.into);
    pack_all(root, &dynamic, &fixed, &dist)
}

fn pack_all(root: &Path, dynamic: &Path, fixed: &Path, dist: &Path) -> anyhow::Result<()> {
    hold_linkage(dynamic, true)?;
    hold_linkage(fixed, false)?;
    clear(dist)?;
    let stage = tempfile::tempdir().context("a folder to lay packages out in")?;
    let release = Release {
        version: shell::version(root)?,
        date: commit_date(root),
        dist: dist.to_owned(),
        stage: stage.path().to_owned(),
    };
    let mut files = Vec::new();
    let plain = release.tarballs(root, dynamic, TARGET, &mut files)?;
    let anywhere = release.tarballs(root, fixed, &format!("{TARGET}-static"), &mut files)?;
    files.push(deb::pack(&release, &plain)?);
    files.push(rpm::pack(&release, &plain)?);
    files.push(oci::pack(&release, &anywhere)?);
    let sums = files.iter().map(|file| checksum_line(file)).collect::<anyhow::Result<String>>()?;
    std::fs::write(dist.join("SHA256SUMS"), &sums).context("writing SHA256SUMS")?;
    print!("{sums}");
    Ok(())
}

/// Empties the folder if this command has filled it before: `--into` may name another.
fn clear(dist: &Path) -> anyhow::Result<()> {
    let filled = dist.read_dir().is_ok_and(|mut files| files.next().is_some());
    if filled && !dist.join("SHA256SUMS").is_file() {
        bail!("{} is not empty and has no SHA256SUMS: name another folder", dist.display());
    }
    if filled {
        std::fs::remove_dir_all(dist).with_context(|| format!("clearing {}", dist.display()))?;
    }
    std::fs::create_dir_all(dist).with_context(|| format!("making {}", dist.display()))
}

fn build(root: &Path, fixed: bool) -> anyhow::Result<PathBuf> {
    let mut cargo = shell::cargo();
    let linkage = if fixed { "+crt-static" } else { "-crt-static" };
    let here = root.display();
    let flags = format!("-C target-feature={linkage} --remap-path-prefix={here}=/loadstone");
    // names and lines are split off afterwards; separate folders, because otherwise each build
    // would rebuild the other's dependencies
    let folder =
        shell::target_folder(root).join(if fixed { "packages-static" } else { "packages" });
    cargo.current_dir(root).env("RUSTFLAGS", flags).env("CARGO_TARGET_DIR", &folder);
    cargo.env("CARGO_PROFILE_DIST_STRIP", "none");
    cargo.env("CARGO_PROFILE_DIST_DEBUG", "line-tables-only");
    cargo.args(["build", "--profile", shell::DIST, "--locked", "--package", "loadstone"]);
    cargo.args(["--target", TARGET]);
    shell::run(&mut cargo)?;
    Ok(folder.join(TARGET).join(shell::DIST).join("loadstone"))
}

/// Checks that the binary is linked as its packages claim.
fn hold_linkage(binary: &Path, dynamic: bool) -> anyhow::Result<()> {
    let bytes = std::fs::read(binary).with_context(|| format!("reading {}", binary.display()))?;
    let found = elf::asks_for_loader(&bytes)
        .with_context(|| format!("{} is not a 64-bit ELF file", binary.display()))?;
    match (dynamic, found) {
        (true, false) => bail!("{} is static; give it as --static", binary.display()),
        (false, true) => {
            bail!("{} is not static: it names a dynamic loader", binary.display())
        }
        _ => Ok(()),
    }
}

impl Release {
    /// Packs the tarball of a binary and that of its debug information; returns the folder of the
    /// first.
    fn tarballs(
        &self,
        root: &Path,
        binary: &Path,
        target: &str,
        files: &mut Vec<PathBuf>,
    ) -> anyhow::Result<PathBuf> {
        let name = format!("loadstone-{}-{target}", self.version);
        let folder = self.stage.join("tar").join(&name);
        std::fs::create_dir_all(&folder)?;
        let (stripped, debug) = elf::split(binary, &folder)?;
        let size = std::fs::metadata(&stripped)?.len();
        if size > SIZE_MAX {
            bail!("{target}: the stripped binary has {size} bytes; at most {SIZE_MAX}");
        }
        let beside = self.stage.join("debug").join(&name);
        std::fs::create_dir_all(&beside)?;
        std::fs::rename(debug, beside.join("loadstone.debug"))?;
        fill(root, &folder)?;
        files.push(self.tar_gz(&folder, &format!("{name}.tar.gz"))?);
        files.push(self.tar_gz(&beside, &format!("{name}-debug.tar.gz"))?);
        Ok(folder)
    }

    fn tar_gz(&self, folder: &Path, name: &str) -> anyhow::Result<PathBuf> {
        let file = self.dist.join(name);
        let parent = folder.parent().context("a folder in the stage has a parent")?;
        let entry = folder.file_name().context("a folder in the stage has a name")?;
        let plain = self.stage.join("plain.tar");
        pack::tar(parent, &[entry], &plain, &self.date)?;
        pack::gzip(&plain, &file)?;
        Ok(file)
    }
}

/// Documents, man page and completions, which the binary prints itself.
fn fill(root: &Path, folder: &Path) -> anyhow::Result<()> {
    let binary = folder.join("loadstone");
    for document in DOCUMENTS {
        std::fs::copy(root.join(document), folder.join(document))
            .with_context(|| format!("copying {document}"))?;
    }
    let man = shell::output(Command::new(&binary).arg("man"))?;
    std::fs::write(folder.join("loadstone.1"), man)?;
    std::fs::create_dir_all(folder.join("completions"))?;
    for (shell_name, file) in SHELLS {
        let text = shell::output(Command::new(&binary).args(["completions", shell_name]))?;
        std::fs::write(folder.join("completions").join(file), text)?;
    }
    Ok(())
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn checksum_line(file: &Path) -> anyhow::Result<String> {
    let bytes = std::fs::read(file).with_context(|| format!("reading {}", file.display()))?;
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    Ok(format!("{}  {name}\n", sha256(&bytes)))
}

/// Returns seconds since 1970 of the last commit, so that packing twice gives the same bytes; 0
/// outside a repository. `SOURCE_DATE_EPOCH` has precedence.
fn commit_date(root: &Path) -> String {
    if let Ok(date) = std::env::var("SOURCE_DATE_EPOCH") {
        return date;
    }
    let mut git = Command::new("git");
    git.current_dir(root).args(["log", "-1", "--format=%ct"]);
    shell::output(&mut git).map_or_else(|_| "0".to_owned(), |date| date.trim().to_owned())
}
