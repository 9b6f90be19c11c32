//! A binary's requirements on the machine, and its debug information.

use crate::shell;
use anyhow::{Context, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns whether an ELF file has a PT_INTERP program header, which names the dynamic loader.
/// `None` unless it is a little-endian 64-bit ELF file.
pub(super) fn asks_for_loader(elf: &[u8]) -> Option<bool> {
    const INTERP: u32 = 3;
    if !elf.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let short = |at: usize| Some(u16::from_le_bytes(elf.get(at..at + 2)?.try_into().ok()?));
    let offset = u64::from_le_bytes(elf.get(32..40)?.try_into().ok()?);
    let size = usize::from(short(54)?);
    let count = usize::from(short(56)?);
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

/// Copies `binary` to `folder/loadstone` without its symbols, and the removed parts to
/// `folder/loadstone.debug`, which a debugger finds by the link in the first. The dynamic symbols
/// stay, because Lua's C modules look them up.
///
/// # Errors
/// Fails if binutils is missing or fails.
pub(super) fn split(binary: &Path, folder: &Path) -> anyhow::Result<(PathBuf, PathBuf)> {
    let objcopy = shell::need("objcopy", "apt-get install binutils")?;
    let stripped = folder.join("loadstone");
    let debug = folder.join("loadstone.debug");
    let mut keep = Command::new(&objcopy);
    shell::run(keep.arg("--only-keep-debug").arg(binary).arg(&debug))?;
    let mut strip = Command::new(&objcopy);
    shell::run(strip.arg("--strip-all").arg(binary).arg(&stripped))?;
    // objcopy records the name as given, and a debugger looks for it next to the program
    let mut link = Command::new(&objcopy);
    link.current_dir(folder).args(["--add-gnu-debuglink=loadstone.debug", "loadstone"]);
    shell::run(&mut link)?;
    Ok((stripped, debug))
}

/// Returns the dependencies of a Debian package of the binary: the libraries that it names, with
/// the newest version of glibc's symbols that it uses.
///
/// # Errors
/// Fails if it names a library that is not part of a plain system.
pub(super) fn depends(binary: &Path) -> anyhow::Result<String> {
    let objdump = shell::need("objdump", "apt-get install binutils")?;
    depends_in(&shell::output(Command::new(objdump).arg("-p").arg(binary))?)
}

fn depends_in(headers: &str) -> anyhow::Result<String> {
    let mut gcc = false;
    for line in headers.lines() {
        let Some(library) = line.trim().strip_prefix("NEEDED").map(str::trim) else { continue };
        match library {
            "libgcc_s.so.1" => gcc = true,
            "libc.so.6"
            | "libm.so.6"
            | "libpthread.so.0"
            | "libdl.so.2"
            | "librt.so.1"
            | "ld-linux-x86-64.so.2" => {}
            other => bail!("the binary needs {other}, which no known package contains"),
        }
    }
    let version = |word: &str| -> Option<(u32, u32)> {
        let mut parts = word.strip_prefix("GLIBC_")?.split('.').map(|part| part.parse().ok());
        Some((parts.next()??, parts.next()??))
    };
    let newest = headers.split_whitespace().filter_map(version).max();
    let (major, minor) = newest.context("the binary names no version of glibc")?;
    let gcc = if gcc { ", libgcc-s1" } else { "" };
    Ok(format!("libc6 (>= {major}.{minor}){gcc}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns an ELF file with one program header of the given kind.
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
    fn the_newest_used_glibc_is_the_dependency() {
        let headers = "  NEEDED               libgcc_s.so.1\n  NEEDED               libc.so.6\n\
            Version References:\n  required from libc.so.6:\n\
            0x06969189 0x00 13 GLIBC_2.9\n    0x069691b4 0x00 08 GLIBC_2.34\n\
            0x0d696912 0x00 11 GLIBC_2.2.5\n";
        assert_eq!(depends_in(headers).unwrap(), "libc6 (>= 2.34), libgcc-s1");
        let other = format!("  NEEDED  libfoo.so.1\n{headers}");
        assert!(depends_in(&other).unwrap_err().to_string().contains("libfoo.so.1"));
    }
}
