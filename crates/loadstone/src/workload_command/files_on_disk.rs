//! `loadstone workload files`: a file set, written out.

use crate::exit::{Code, Failure};
use anyhow::Context;
use args::FilesArgs;
use std::io::Write;
use std::path::Path;
use units::Seed;
use workload::fileset::{File, FileSet};

/// Size of the pieces in which data is generated and written, in bytes.
const PIECE: usize = 1 << 20;

pub(super) fn write(args: &FilesArgs) -> Result<Code, Failure> {
    let set = args.spec.set(Seed(args.seed));
    prepare(&args.out)?;
    let count = set.files().len() as u64;
    let bar = crate::progress::bar(args.quiet, Some(count), "{pos} of {len} files written");
    let mut piece = vec![0; PIECE];
    let mut written = 0;
    let mut done = Ok(());
    for file in set.files() {
        if crate::signals::received_signal() != 0 {
            break;
        }
        done = write_file(&args.out, &set, file, &mut piece);
        if done.is_err() {
            break;
        }
        written += 1;
        if let Some(bar) = &bar {
            bar.set_position(written);
        }
    }
    if let Some(bar) = &bar {
        bar.finish_and_clear();
    }
    let folder = args.out.display();
    if written < count {
        crate::print_message(&format!(
            "{folder} is incomplete: {} of {} files exist; remove it before the next attempt",
            units::show::count(written),
            units::show::count(count)
        ));
        return done.map(|()| Code::Interrupted).map_err(|error| Failure::not_written(&error));
    }
    if !args.quiet {
        let sum = units::show::bytes(set.bytes());
        crate::print_message(&format!("{} files, {sum}, in {folder}", units::show::count(count)));
    }
    Ok(Code::Done)
}

/// Creates the folder; an existing one must be empty.
fn prepare(folder: &Path) -> Result<(), Failure> {
    let entries = std::fs::create_dir_all(folder).and_then(|()| std::fs::read_dir(folder));
    let entries = entries.with_context(|| format!("cannot write to {}", folder.display()));
    if entries.map_err(|error| Failure::not_written(&error))?.next().is_some() {
        let text = format!("{} is not empty; give a new folder", folder.display());
        return Err(Failure::usage(text));
    }
    Ok(())
}

fn write_file(folder: &Path, set: &FileSet, file: &File, piece: &mut [u8]) -> anyhow::Result<()> {
    let path = folder.join(&file.path);
    let mut written = || -> std::io::Result<()> {
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        let mut out = std::fs::File::create(&path)?;
        let (content, mut at) = (set.content(file), 0);
        while at < file.size {
            let room = piece.len().min(usize::try_from(file.size - at).unwrap_or(usize::MAX));
            content.fill(at, &mut piece[..room]);
            out.write_all(&piece[..room])?;
            at += room as u64;
        }
        Ok(())
    };
    written().with_context(|| format!("cannot write {}", path.display()))
}
