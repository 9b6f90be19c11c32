//! Options of other tools. Such an option gets a hint that names our option for the same purpose,
//! instead of one with a similar spelling.

mod table;

use super::Cli;
use clap::CommandFactory;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::ffi::OsString;
use table::Foreign;

/// Hint for a command line that another tool would accept; `None` for other errors. `argv`: all
/// words, the command in second place.
pub fn hint(error: &clap::Error, argv: &[OsString]) -> Option<String> {
    let words: Vec<String> =
        argv.iter().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let (command, words) = words.split_first()?;
    let words = words.split(|word| word == "--").next().unwrap_or_default();
    suggest_command(command, error)
        .or_else(|| one_hyphen(command, words))
        .or_else(|| unknown(command, error))
        .or_else(|| own_letter(command, error, words))
        .or_else(|| Some(separate_value(command, words).filter(|_| is_surplus_word(error))?.1))
        .or_else(|| several_urls(command, error))
}

/// Returns a hint for an unknown command: commands with a similar spelling.
fn suggest_command(typed: &str, error: &clap::Error) -> Option<String> {
    let word = error.get(ContextKind::InvalidSubcommand);
    let is_first = matches!(word, Some(ContextValue::String(word)) if word == typed);
    if error.kind() != ErrorKind::InvalidSubcommand || !is_first {
        return None;
    }
    let cli = Cli::command();
    let names = cli.get_subcommands().map(clap::Command::get_name);
    let near = names.map(|name| (edits(typed, name), name)).min().filter(|(far, _)| *far <= 2);
    let what = format!("{} is not a command", units::quoted(typed));
    Some(match near {
        Some((_, name)) => format!("{what}; did you mean {name}?"),
        None => format!("{what}; loadstone --help lists the commands"),
    })
}

/// Edit distance: letters to insert, delete, replace or swap with their neighbor.
fn edits(one: &str, other: &str) -> usize {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let mut rows: Vec<Vec<usize>> = vec![(0..=other.len()).collect()];
    for (i, a) in one.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, b) in other.iter().enumerate() {
            let mut least =
                (rows[i][j + 1] + 1).min(row[j] + 1).min(rows[i][j] + usize::from(a != b));
            if i > 0 && j > 0 && one[i - 1] == *b && *a == other[j - 1] {
                least = least.min(rows[i - 1][j - 1] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[one.len()][other.len()]
}

/// Returns a hint for a second URL where one is expected.
fn several_urls(command: &str, error: &clap::Error) -> Option<String> {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidArg) else { return None };
    if !is_surplus_word(error) || !takes(command, "--urls") {
        return None;
    }
    Some(format!(
        "{command} takes one URL, and {} is another one: to compare servers use loadstone compare URL \
         URL; to call several URLs in one run write them into a file, one a line, and give --urls FILE",
        units::quoted(word)
    ))
}

/// Returns a hint for the error `text`: a word was meant as an option's value.
pub fn value_hint(text: &str, argv: &[OsString]) -> Option<String> {
    let words: Vec<String> =
        argv.iter().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let (command, words) = words.split_first()?;
    let words = words.split(|word| word == "--").next().unwrap_or_default();
    let (word, hint) = separate_value(command, words)?;
    text.contains(&format!("{} is not a URL", units::quoted(&word))).then_some(hint)
}

/// Returns whether the error is about a surplus word that is not an option.
fn is_surplus_word(error: &clap::Error) -> bool {
    let word = error.get(ContextKind::InvalidArg);
    error.kind() == ErrorKind::UnknownArgument
        && matches!(word, Some(ContextValue::String(word)) if !word.starts_with('-'))
}

/// Returns the word after an option whose optional value requires an equals sign, with a hint. A
/// URL after such an option is positional.
fn separate_value(command: &str, words: &[String]) -> Option<(String, String)> {
    let cli = Cli::command();
    let options = cli.find_subcommand(command)?;
    let apart = |option: &str| {
        let long = option.strip_prefix("--")?;
        options
            .get_arguments()
            .find(|one| one.get_long() == Some(long) && one.is_require_equals_set())
    };
    let two = words.windows(2).find(|two| {
        !two[1].starts_with('-') && !two[1].contains("://") && apart(&two[0]).is_some()
    })?;
    let option = &two[0];
    let word = &two[1];
    let hint = format!("{option} takes its value after an equals sign: write {option}={word}");
    Some((word.clone(), hint))
}

/// Returns a hint for long options with one hyphen: `-duration=5s` parses as `-d uration=5s`, and
/// `-header` as `-h`.
fn one_hyphen(command: &str, words: &[String]) -> Option<String> {
    let mut typed = words.iter().map(|word| name_of(word));
    typed.find_map(|word| {
        let whole_word = word.len() > 2 && word.starts_with('-') && !word.starts_with("--");
        hint_text(
            command,
            word,
            table::all().find(|row| whole_word && row.options.contains(&word))?,
        )
    })
}

/// Returns a hint for an unknown option.
fn unknown(command: &str, error: &clap::Error) -> Option<String> {
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidArg) else { return None };
    let typed = name_of(typed);
    hint_text(command, typed, table::all().find(|row| row.options.contains(&typed))?)
}

/// Returns a hint for a letter that has another meaning here, if its value shows the intended
/// option.
fn own_letter(command: &str, error: &clap::Error, words: &[String]) -> Option<String> {
    if !takes(command, "--rate") {
        return None;
    }
    if let (ErrorKind::ValueValidation, Some(ContextValue::String(argument))) =
        (error.kind(), error.get(ContextKind::InvalidArg))
        && let Some(ContextValue::String(value)) = error.get(ContextKind::InvalidValue)
        && argument.starts_with("--duration")
        && words.iter().any(|word| word.starts_with("-d"))
        && !value.trim_start_matches('-').starts_with(|first: char| first.is_ascii_digit())
    {
        let body = "a body, as in curl, hey and oha, is --body TEXT or --body-file FILE";
        return Some(format!("-d is the duration here, such as -d 30s; {body}"));
    }
    let rate = words.windows(2).find(|two| two[0] == "-q" && two[1].parse::<f64>().is_ok())?;
    let (rate, whole) = (&rate[1], "a rate, as in hey (of each worker) and oha (of all)");
    Some(format!("-q is --quiet here; {whole}, is --rate {rate}/s (of all)"))
}

fn name_of(word: &str) -> &str {
    word.split('=').next().unwrap_or(word)
}

/// Returns the hint, if the command has the option that it names.
fn hint_text(command: &str, typed: &str, row: &Foreign) -> Option<String> {
    let measures = takes(command, "--rate");
    let mut named = row.ours.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'));
    let known = named.all(|word| word == "--" || !word.starts_with("--") || takes(command, word));
    let tools = row.tools;
    (measures && known).then(|| match row.ours.strip_prefix("nothing: ") {
        Some(why) => format!("{typed} is not needed: {why} ({typed} is an option of {tools})"),
        None => {
            let ours = row.ours;
            format!("{typed} is not an option here: use {ours} ({typed} is an option of {tools})")
        }
    })
}

/// Returns whether the command has the option.
fn takes(command: &str, option: &str) -> bool {
    let cli = Cli::command();
    let long = option.trim_start_matches('-');
    let found = cli.find_subcommand(command);
    found.is_some_and(|command| command.get_arguments().any(|one| one.get_long() == Some(long)))
}

#[cfg(test)]
mod tests;
