//! Command lines without a command: `loadstone URL` runs `run`, `loadstone help run` is `loadstone run --help`.

use super::Cli;
use clap::CommandFactory;
use std::ffi::{OsStr, OsString};

/// Adds the omitted command to the words; `argv[0]` is the program.
pub fn with_command(mut argv: Vec<OsString>) -> Vec<OsString> {
    let Some(first) = argv.get(1) else { return argv };
    if first == "help" {
        argv.remove(1);
        argv.push("--help".into());
    } else if !is_misspelt(first) && !is_command(first) && argv[1..].iter().any(|word| is_url(word))
    {
        argv.insert(1, "run".into());
    }
    argv
}

fn is_command(word: &OsStr) -> bool {
    Cli::command().get_subcommands().any(|command| word == command.get_name())
}

/// Returns whether the word has only letters and hyphens, like a command.
fn is_misspelt(word: &OsStr) -> bool {
    let text = word.to_string_lossy();
    !text.is_empty()
        && text.chars().all(|c| c.is_ascii_alphabetic() || c == '-' && !text.starts_with('-'))
}

/// Returns whether the text is certainly a URL, such as `http://…`; a bare host may be a misspelled
/// command.
fn is_url(word: &OsStr) -> bool {
    let text = word.to_string_lossy();
    text.starts_with("http://") || text.starts_with("https://")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_omitted_command_is_inserted() {
        for (typed, meant) in [
            ("loadstone", "loadstone"),
            ("loadstone --help", "loadstone --help"),
            ("loadstone help", "loadstone --help"),
            ("loadstone help run", "loadstone run --help"),
            ("loadstone http://h/", "loadstone run http://h/"),
            ("loadstone -c 5 https://h/ -d 1s", "loadstone run -c 5 https://h/ -d 1s"),
            ("loadstone ramp http://h/", "loadstone ramp http://h/"),
            ("loadstone rum", "loadstone rum"),
            ("loadstone rnu http://h/", "loadstone rnu http://h/"),
            ("loadstone plan.toml http://h/", "loadstone run plan.toml http://h/"),
            ("loadstone --version", "loadstone --version"),
        ] {
            let words = |text: &str| text.split(' ').map(OsString::from).collect::<Vec<_>>();
            assert_eq!(with_command(words(typed)), words(meant), "{typed}");
        }
    }
}
