//! What a release consists of: one static binary, a tarball of it with its documents, a .deb, and
//! the checksums of both. The same sources give the same bytes.

use crate::shell;
use anyhow::{Context, bail};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Naming the target keeps `crt-static` away from build scripts and procedural macros, which are
/// shared libraries of the host.
const TARGET: &str = "x86_64-unknown-linux-gnu";
const SHELLS: [(&str, &str); 3] =
    [("bash", "loadstone.bash"), ("zsh", "_loadstone"), ("fish", "loadstone.fish")];
const DOCUMENTS: [&str; 4] = ["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"];

/// `cargo xtask dist`: fills `dist/`.
///
/// # Errors
/// A tool is missing, the build fails, the binary is not static, or a file cannot be written.
pub(crate) fn run(root: &Path) -> anyhow::Result<()> {
    shell::need("dpkg-deb", "apt-get install dpkg")?;
    shell::need("tar", "apt-get install tar")?;
    let version = shell::version(root)?;
    let date = commit_date(root);
    let binary = build(root)?;
    let dist = root.join("dist");
    if dist.exists() {
        std::fs::remove_dir_all(&dist).context("clearing dist/")?;
    }
    let stage = dist.join("stage");
    let name = format!("loadstone-{version}-{TARGET}");
    let folder = stage.join(&name);
    fill(root, &binary, &folder)?;
    let tarball = pack_tar(&stage, &name, &dist, &date)?;
    let deb = pack_deb(&folder, &stage.join("deb"), &dist, &version, &date)?;
    std::fs::remove_dir_all(&stage).context("clearing dist/stage")?;
    let mut sums = String::new();
    for file in [&tarball, &deb] {
        sums.push_str(&checksum_line(file)?);
    }
    std::fs::write(dist.join("SHA256SUMS"), &sums).context("writing dist/SHA256SUMS")?;
    print!("{sums}");
    Ok(())
}

fn build(root: &Path) -> anyhow::Result<PathBuf> {
    let mut cargo = shell::cargo();
    cargo.current_dir(root).env("RUSTFLAGS", "-C target-feature=+crt-static");
    cargo.args(["build", "--release", "--locked", "--package", "loadstone", "--target", TARGET]);
    shell::run(&mut cargo)?;
    let binary = shell::target_folder(root).join(TARGET).join("release/loadstone");
    let bytes = std::fs::read(&binary).with_context(|| format!("reading {}", binary.display()))?;
    if asks_for_loader(&bytes).context("the binary is no 64-bit ELF file")? {
        bail!("{} is not static: it names a dynamic loader", binary.display());
    }
    Ok(binary)
}

/// Whether an ELF file has a PT_INTERP program header, which names the dynamic loader. `None` for
/// what is no little-endian 64-bit ELF file.
fn asks_for_loader(elf: &[u8]) -> Option<bool> {
    const INTERP: u32 = 3;
    if !elf.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let short = |at: usize| Some(u16::from_le_bytes(elf.get(at..at + 2)?.try_into().ok()?));
    let offset = u64::from_le_bytes(elf.get(32..40)?.try_into().ok()?);
    let (size, count) = (usize::from(short(54)?), usize::from(short(56)?));
    let first = usize::try_from(offset).ok()?;
    for index in 0..count {
        let at = first.checked_add(index * size)?;
        let kind = elf.get(at..at.checked_add(4)?)?;
        if u32::from_le_bytes(kind.try_into().ok()?) == INTERP {
            return Some(true);
        }
    }
    Some(false)
}

/// Binary, documents, man page and completions, which the binary prints itself.
fn fill(root: &Path, binary: &Path, folder: &Path) -> anyhow::Result<()> {
    let place = |name: &str| -> anyhow::Result<PathBuf> {
        let path = folder.join(name);
        let parent = path.parent().context("a path in the stage has a folder")?;
        std::fs::create_dir_all(parent)?;
        Ok(path)
    };
    std::fs::copy(binary, place("loadstone")?).context("copying the binary")?;
    for document in DOCUMENTS {
        std::fs::copy(root.join(document), place(document)?)
            .with_context(|| format!("copying {document}"))?;
    }
    let man = shell::output(Command::new(binary).arg("man"))?;
    std::fs::write(place("loadstone.1")?, man)?;
    for (shell_name, file) in SHELLS {
        let text = shell::output(Command::new(binary).args(["completions", shell_name]))?;
        std::fs::write(place(&format!("completions/{file}"))?, text)?;
    }
    Ok(())
}

fn pack_tar(stage: &Path, name: &str, dist: &Path, date: &str) -> anyhow::Result<PathBuf> {
    let file = dist.join(format!("{name}.tar.gz"));
    let mut tar = Command::new("tar");
    // -n leaves name and time out of the file
    tar.args(["--create", "--use-compress-program", "gzip -9n", "--file"]).arg(&file);
    tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner"]);
    tar.args(["--mode=u+rwX,go+rX,go-w", &format!("--mtime=@{date}")]);
    shell::run(tar.arg("--directory").arg(stage).arg(name))?;
    Ok(file)
}

fn pack_deb(
    from: &Path,
    stage: &Path,
    dist: &Path,
    version: &str,
    date: &str,
) -> anyhow::Result<PathBuf> {
    let documents = "usr/share/doc/loadstone";
    let places = [
        ("loadstone", "usr/bin/loadstone".to_owned()),
        ("loadstone.1", "usr/share/man/man1/loadstone.1".to_owned()),
        ("README.md", format!("{documents}/README.md")),
        ("CHANGELOG.md", format!("{documents}/changelog")),
        ("LICENSE-MIT", format!("{documents}/LICENSE-MIT")),
        ("LICENSE-APACHE", format!("{documents}/LICENSE-APACHE")),
        (
            "completions/loadstone.bash",
            "usr/share/bash-completion/completions/loadstone".to_owned(),
        ),
        ("completions/_loadstone", "usr/share/zsh/vendor-completions/_loadstone".to_owned()),
        (
            "completions/loadstone.fish",
            "usr/share/fish/vendor_completions.d/loadstone.fish".to_owned(),
        ),
    ];
    let mut size = 0;
    for (source, target) in &places {
        let target = stage.join(target);
        std::fs::create_dir_all(target.parent().context("a path in the package has a folder")?)?;
        size += std::fs::copy(from.join(source), &target)
            .with_context(|| format!("copying {source}"))?;
    }
    std::fs::write(stage.join(documents).join("copyright"), COPYRIGHT)?;
    for file in ["usr/share/man/man1/loadstone.1", &format!("{documents}/changelog")] {
        shell::run(Command::new("gzip").args(["-9n"]).arg(stage.join(file)))?;
    }
    std::fs::create_dir_all(stage.join("DEBIAN"))?;
    std::fs::write(stage.join("DEBIAN/control"), control(version, size))?;
    let file = dist.join(format!("loadstone_{version}_amd64.deb"));
    let mut build = Command::new("dpkg-deb");
    build.env("SOURCE_DATE_EPOCH", date);
    shell::run(build.args(["--root-owner-group", "--build"]).arg(stage).arg(&file))?;
    Ok(file)
}

/// The binary is static: it depends on no package.
fn control(version: &str, bytes: u64) -> String {
    format!(
        "Package: loadstone\n\
         Version: {version}\n\
         Architecture: amd64\n\
         Maintainer: The Loadstone authors <loadstone@localhost>\n\
         Section: web\n\
         Priority: optional\n\
         Installed-Size: {}\n\
         Description: loads, measures and torture-tests web servers\n \
         Puts a load on a web server, measures response times from the instant each\n \
         request was due, and says of every result whether it can be believed.\n",
        bytes.div_ceil(1024)
    )
}

const COPYRIGHT: &str = "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\
    Upstream-Name: loadstone\n\n\
    Files: *\n\
    Copyright: The Loadstone authors\n\
    License: Apache-2.0 or Expat\n\
    Comment: The texts are beside this file: LICENSE-APACHE and LICENSE-MIT.\n";

fn checksum_line(file: &Path) -> anyhow::Result<String> {
    let bytes = std::fs::read(file).with_context(|| format!("reading {}", file.display()))?;
    let sum: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    Ok(format!("{sum}  {name}\n"))
}

/// Seconds since 1970 of the last commit, so that packing twice gives the same bytes; 0 outside a
/// repository. `SOURCE_DATE_EPOCH` goes first.
fn commit_date(root: &Path) -> String {
    if let Ok(date) = std::env::var("SOURCE_DATE_EPOCH") {
        return date;
    }
    let mut git = Command::new("git");
    git.current_dir(root).args(["log", "-1", "--format=%ct"]);
    shell::output(&mut git).map_or_else(|_| "0".to_owned(), |date| date.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An ELF file of one program header of the given kind.
    fn elf(kind: u32) -> Vec<u8> {
        let mut file = vec![0; 64 + 56];
        file[..6].copy_from_slice(b"\x7fELF\x02\x01");
        file[32..40].copy_from_slice(&64u64.to_le_bytes());
        file[54..56].copy_from_slice(&56u16.to_le_bytes());
        file[56..58].copy_from_slice(&1u16.to_le_bytes());
        file[64..68].copy_from_slice(&kind.to_le_bytes());
        file
    }

    #[test]
    fn a_static_binary_names_no_loader() {
        assert_eq!(asks_for_loader(&elf(3)), Some(true));
        assert_eq!(asks_for_loader(&elf(1)), Some(false));
        assert_eq!(asks_for_loader(b"#!/bin/sh\n"), None);
        assert_eq!(asks_for_loader(&elf(3)[..66]), None, "cut off");
    }

    #[test]
    fn this_very_test_is_dynamic() {
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        assert_eq!(asks_for_loader(&own), Some(true));
    }

    #[test]
    fn control_says_what_dpkg_asks_for() {
        let control = control("1.2.3", 1025);
        for line in ["Package: loadstone", "Version: 1.2.3", "Installed-Size: 2"] {
            assert!(control.lines().any(|said| said == line), "{control}");
        }
        assert!(control.ends_with('\n'));
        let long = control.lines().skip_while(|line| !line.starts_with("Description")).skip(1);
        assert!(long.clone().count() > 0 && long.clone().all(|line| line.starts_with(' ')));
    }

    #[test]
    fn checksums_are_what_sha256sum_reads() {
        let file = tempfile::tempdir().unwrap();
        let path = file.path().join("abc");
        std::fs::write(&path, "abc").unwrap();
        let sum = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(checksum_line(&path).unwrap(), format!("{sum}  abc\n"));
    }
}
