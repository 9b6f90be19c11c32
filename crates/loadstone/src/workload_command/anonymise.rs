//! `loadstone workload anonymise`: removes personal data from a log, line by line.

use super::access_log::{LINE_MAX, cannot_read, open};
use crate::exit::{Code, Failure};
use crate::files::{self, GrowingFile};
use anyhow::Context;
use args::{AnonymiseArgs, Sink};
use import::access_log::{Anonymised, Anonymiser, HashedPaths};
use record::words::counted;
use std::fs::File;
use std::io::{BufRead, BufWriter, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use units::{quoted, show};

/// Minimum size of a key in bytes: a shorter one could be guessed.
const KEY_MIN: usize = 16;
const KEY_MAX: u64 = 4096;
/// Maximum number of readable path segments that are listed.
const SHOWN_MAX: usize = 20;

pub(super) fn anonymise(args: &AnonymiseArgs) -> Result<Code, Failure> {
    if let Sink::File(path) = &args.output {
        let log = (Path::new(&args.log), "the log itself");
        let key = args.key_file.as_deref().map(|key| (key, "the key"));
        for (read, what) in std::iter::once(log).chain(key) {
            if is_same_file(path, read) {
                return Err(Failure::usage(format!(
                    "--output {} is {what}, which would be lost: name another file",
                    quoted(&path.to_string_lossy())
                )));
            }
        }
        files::check_writable(path).map_err(|error| Failure::not_written(&error))?;
    }
    let key = key(args)?;
    let mut input = open(&args.log)?;
    let mut anonymiser = Anonymiser::new(key, args.hashed_paths());
    let growing = match &args.output {
        Sink::File(path) => {
            Some(GrowingFile::create(path).map_err(|error| Failure::not_written(&error))?)
        }
        Sink::Stdout => None,
    };
    let mut out: Box<dyn Write + '_> = match &growing {
        Some(growing) => Box::new(growing.file()),
        None => Box::new(session::console::stdout()),
    };
    let written = stream(args, &mut *input, &mut anonymiser, &mut BufWriter::new(&mut out))?;
    drop(out);
    let what =
        args.output.file().map_or("standard output".to_owned(), |path| path.display().to_string());
    written
        .with_context(|| format!("cannot write {what}"))
        .map_err(|error| Failure::not_written(&error))?;
    let done = anonymiser.finish();
    if done.lines == 0 {
        return Err(Failure::usage(format!(
            "{} has no request{}",
            args.log,
            describe_omissions(&done)
        )));
    }
    growing.map_or(Ok(()), GrowingFile::keep).map_err(|error| Failure::not_written(&error))?;
    if !args.quiet {
        crate::print_message(&summary(&done, args));
    }
    Ok(Code::Done)
}

/// Returns whether both exist and are the same file, under any names.
fn is_same_file(one: &Path, other: &Path) -> bool {
    let place = |path: &Path| std::fs::metadata(path).ok().map(|known| (known.dev(), known.ino()));
    place(one).is_some_and(|known| place(other) == Some(known))
}

/// Processes line by line, so that a log may have any length.
fn stream(
    args: &AnonymiseArgs,
    input: &mut dyn BufRead,
    anonymiser: &mut Anonymiser,
    out: &mut dyn Write,
) -> Result<std::io::Result<()>, Failure> {
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = (&mut *input).take(LINE_MAX).read_until(b'\n', &mut line);
        if read.map_err(|error| cannot_read(&args.log, &error))? == 0 {
            return Ok(out.flush());
        }
        let text = String::from_utf8_lossy(&line);
        if let Some(made) = anonymiser.line(text.trim_end_matches(['\r', '\n']))
            && let Err(error) = writeln!(out, "{made}")
        {
            return Ok(Err(error));
        }
        if crate::signals::received_signal() != 0 {
            return Err(Failure { code: Code::Interrupted, text: "interrupted".to_owned() });
        }
    }
}

/// Reads the key from the file, or makes a random key that is not kept.
fn key(args: &AnonymiseArgs) -> Result<Vec<u8>, Failure> {
    let (path, most) = match &args.key_file {
        Some(path) => (path.as_path(), KEY_MAX),
        None => (Path::new("/dev/urandom"), 32),
    };
    let mut key = Vec::new();
    let read = File::open(path).and_then(|file| file.take(most).read_to_end(&mut key));
    read.with_context(|| format!("cannot read the key {}", path.display()))
        .map_err(|error| Failure::usage(format!("{error:#}")))?;
    if key.len() < KEY_MIN {
        let path = quoted(&path.to_string_lossy());
        return Err(Failure::usage(format!(
            "--key-file {path} holds {}; a key that cannot be guessed has {KEY_MIN} or more (head \
             -c 32 /dev/urandom)",
            counted(key.len() as u64, "byte")
        )));
    }
    Ok(key)
}

fn describe_omissions(done: &Anonymised) -> String {
    done.first_broken.as_ref().map_or_else(String::new, |(line, why)| {
        let lines = counted(done.broken, "line");
        let no = if done.broken == 1 { "is not a request" } else { "are not requests" };
        format!("; {lines} {no} and left out (the first is line {line}: {})", why.0)
    })
}

/// Describes the kept and removed parts.
fn summary(done: &Anonymised, args: &AnonymiseArgs) -> String {
    let mut text = format!(
        "{}: times, methods, statuses, sizes and the order are kept\nhashed: clients, {}, {}; user \
         names, referers and user agents are left out{}",
        counted(done.lines, "line"),
        counted(done.query_values, "query value"),
        counted(done.path_parts, "path segment"),
        describe_omissions(done)
    );
    if args.hashed_paths() == HashedPaths::Ids && done.kept_parts > 0 {
        let shown: Vec<&str> = done.words.iter().take(SHOWN_MAX).map(String::as_str).collect();
        let more = done.words.len().saturating_sub(shown.len());
        let more = match more {
            0 => String::new(),
            _ if done.words.len() == import::access_log::WORDS_MAX => " and many more".to_owned(),
            more => format!(" and {} more", show::count(more as u64)),
        };
        text.push_str(&format!(
            "\nkept as words, {} times: {}{more}; check whether one of them names a person: \
             --paths all hashes them too",
            show::count(done.kept_parts),
            shown.join(", ")
        ));
    }
    text
}
