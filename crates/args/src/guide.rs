//! Checks the commands and options named in README.md and the guide with the parser: printed
//! commands must be accepted.

use super::{Cli, with_command};
use clap::error::ErrorKind;
use clap::{Command, CommandFactory, Parser};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Options of other programs that the pages use, and those of the faces.
const OTHERS: &[&str] = &[
    // docker, in the fix shown if there is no TUN device
    "--device",
    // of protoc and of k6
    "--descriptor_set_out",
    "--include_imports",
    "--summary-export",
    "--summary-mode",
    "--cap-add",
    "--locked",
    "--config-net",
    // podman's
    "--rm",
    "--network",
    "--release",
    "--pid",
    "--nofile",
    "--rm",
    "--network",
    "--help",
    "--version",
    "--native",
    "--strict",
    "--notes",
    "--as-4",
];

fn pages() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let guide = std::fs::read_dir(root.join("docs/guide")).expect("the guide is there");
    let mut paths: Vec<PathBuf> = guide.map(|entry| entry.expect("an entry").path()).collect();
    paths.push(root.join("README.md"));
    paths.sort();
    let page = |path: PathBuf| {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        (name.unwrap_or_default(), std::fs::read_to_string(&path).expect("a page"))
    };
    paths.into_iter().map(page).collect()
}

/// Returns the command lines of a page, each with whether the program must refuse it.
fn typed(page: &str) -> Vec<(String, bool)> {
    let refused: Vec<&str> = page
        .lines()
        .filter(|line| line.starts_with("<!-- output") && line.contains("exit 2:"))
        .filter_map(|line| line.trim_end_matches(" -->").split_once("exit 2: "))
        .map(|(_, command)| command)
        .collect();
    let mut lines = Vec::new();
    let mut fenced = false;
    for line in page.lines() {
        fenced ^= line.starts_with("```");
        let command = match fenced {
            true => line.strip_prefix("$ "),
            false => line.strip_prefix("    "),
        };
        if let Some(command) = command {
            lines.push((command.to_owned(), refused.contains(&command)));
        }
    }
    lines
}

/// Splits each command of a line into words, as a shell does; values of variables are invented.
fn commands(line: &str) -> Vec<Vec<String>> {
    let mut all = Vec::new();
    let mut words = Vec::new();
    let mut word = None::<String>;
    let mut quote = None;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None | Some('"'), '$') => {
                while chars.next_if(|c| c.is_alphanumeric() || "_{}%/*?!".contains(*c)).is_some() {}
                word.get_or_insert_default().push_str("http://h/");
            }
            (None, '#') if word.is_none() => break,
            (None, ' ') => words.extend(word.take()),
            // of a redirection: `2>&1`
            (None, '>') if word.as_ref().is_some_and(|word| word.parse::<u32>().is_ok()) => {
                word = None;
                all.push(std::mem::take(&mut words));
            }
            (None, '|' | ';' | '&' | '(' | ')' | '>' | '<') => {
                words.extend(word.take());
                all.push(std::mem::take(&mut words));
            }
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    all.push(words);
    all
}

/// Returns the words from the program's name on; `None` for other programs, or if part of the
/// command is omitted.
fn ours(mut words: Vec<String>) -> Option<Vec<OsString>> {
    let at = words.iter().position(|word| word == "loadstone")?;
    let words = words.split_off(at);
    let left_out = words.iter().any(|word| word.contains('…') || word == "...");
    let named = |word: String| if word == "URL" { "http://h/".to_owned() } else { word };
    (!left_out).then(|| words.into_iter().map(|word| named(word).into()).collect())
}

/// Returns whether it is a classic tool's command line, by the first word after the program's name.
fn starts_a_face(argv: &[OsString]) -> bool {
    argv.get(1)
        .and_then(|word| word.to_str())
        .is_some_and(|word| faces::Tool::from_name(word).is_some())
}

fn fault(argv: Vec<OsString>) -> Option<String> {
    if starts_a_face(&argv) {
        return None;
    }
    match Cli::try_parse_from(with_command(argv)) {
        Ok(_) => None,
        Err(error) => match error.kind() {
            ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => None,
            // a page may name a file of its reader
            _ => Some(error.to_string().lines().next().unwrap_or_default().to_owned()).filter(
                |text| !text.ends_with("cannot be read: No such file or directory (os error 2)"),
            ),
        },
    }
}

#[test]
fn every_command_of_the_guide_is_accepted() {
    let mut faults = Vec::new();
    let mut count = 0;
    for (name, page) in pages() {
        for (line, refused) in typed(&page).into_iter().filter(|(_, refused)| !refused) {
            assert!(!refused);
            for argv in commands(&line).into_iter().filter_map(ours) {
                count += 1;
                faults.extend(fault(argv).map(|why| format!("{name}: {line}\n  {why}")));
            }
        }
    }
    assert!(count > 100, "only {count} commands were found");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Collects the long options of a command and of its subcommands.
fn longs(command: &Command, into: &mut BTreeSet<String>) {
    let names = |one: &clap::Arg| {
        let aliases = one.get_all_aliases().unwrap_or_default();
        one.get_long().into_iter().chain(aliases).map(str::to_owned).collect::<Vec<_>>()
    };
    into.extend(command.get_arguments().flat_map(names).map(|name| format!("--{name}")));
    command.get_subcommands().for_each(|command| longs(command, into));
}

/// Returns the words of the form `--name` in a text.
fn options(text: &str) -> impl Iterator<Item = &str> {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let words = text.split(move |c: char| !(word(c) || c == '…'));
    words.filter(|one| one.starts_with("--") && one.len() > 2 && !one.ends_with(['-', '…']))
}

#[test]
fn every_option_of_the_guide_exists() {
    let cli = Cli::command();
    let mut known: BTreeSet<String> = OTHERS.iter().map(|&name| name.to_owned()).collect();
    longs(&cli, &mut known);
    let mut faults = Vec::new();
    for (name, page) in pages() {
        for line in page.lines().filter(|line| !line.contains("cargo xtask")) {
            // in another tool's page only the last column of a table has our options
            let text = match name.starts_with("coming-from-") {
                true if line.starts_with("| ") => line.trim_end_matches(" |").rsplit(" | ").next(),
                true => None,
                false => Some(line),
            };
            let unknown = options(text.unwrap_or_default()).filter(|one| !known.contains(*one));
            faults.extend(unknown.map(|one| format!("{name}: {one}: {line}")));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Checks that a page starts the built-in site before it calls it.
#[test]
fn every_page_starts_the_server_that_it_calls() {
    let mut faults = Vec::new();
    for (name, page) in pages() {
        let mut started = false;
        for (line, _) in typed(&page) {
            started |= line.contains("loadstone site");
            if !started && line.contains("loadstone") && line.contains("127.0.0.1:2020") {
                faults.push(format!("{name}: {line}"));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn a_line_is_split_like_in_a_shell() {
    let parted =
        commands("a 'b c' \"$URL\" | x; for f in d/*; do loadstone y ${f%/*} >z # not this");
    let words: Vec<String> = parted.iter().map(|words| words.join(",")).collect();
    assert_eq!(words, ["a,b c,http://h/", "x", "for,f,in,d/*", "do,loadstone,y,http://h/", "z"]);
    assert!(fault(["loadstone", "run", "--no-such", "h"].map(OsString::from).to_vec()).is_some());
    assert!(fault(["loadstone", "rum", "h"].map(OsString::from).to_vec()).is_some());
}
