//! The options of a run of `torture` as they were typed, for the line that repeats one of its
//! cases.

use super::TortureArgs;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};

/// Options that the command line of a repetition already sets: the case, the HTTP version, the page
/// for bodies and the seed.
const OF_THE_LINE: [&str; 4] = ["http", "only", "post", "seed"];

/// Options that select other cases, or limit the time of all.
const OF_ALL_CASES: [&str; 6] = ["budget", "dry-run", "escalate", "press", "quick", "segments"];

/// Options of the outputs.
const OF_OUTPUTS: [&str; 10] = [
    "expect",
    "fail-on",
    "html",
    "json",
    "junit",
    "out",
    "probes",
    "quiet",
    "report-only",
    "store",
];

/// Options whose values are not shown: commands of the user.
const HIDDEN: [&str; 3] = ["relieve-command", "restart-command", "starve-command"];

/// Replacement for a hidden value.
const MASK: &str = "***";

/// Typed options with their values, in the order of the help.
#[derive(Clone, Debug, Default)]
pub struct TypedOptions(Vec<(String, Option<String>)>);

impl TypedOptions {
    /// Returns whether an option was typed; its name is without dashes.
    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(typed, _)| typed == name)
    }

    /// Returns the options that a repetition of one case needs, in addition to those of its line.
    /// Commands and credentials are masked.
    pub fn of_cases(&self) -> Vec<String> {
        let left_out = [&OF_THE_LINE[..], &OF_ALL_CASES, &OF_OUTPUTS].concat();
        let kept = self.0.iter().filter(|(name, _)| !left_out.contains(&name.as_str()));
        kept.flat_map(|(name, value)| {
            let value = value.as_ref().map(|value| masked_value(name, value));
            std::iter::once(format!("--{name}")).chain(value)
        })
        .collect()
    }
}

/// Returns the value of an option, with secrets masked.
fn masked_value(name: &str, value: &str) -> String {
    if HIDDEN.contains(&name) {
        return MASK.to_owned();
    }
    match value.split_once(':') {
        Some((field, _)) if name == "header" && plan::is_secret_header(field.trim()) => {
            format!("{field}: {MASK}")
        }
        _ => value.to_owned(),
    }
}

impl FromArgMatches for TypedOptions {
    fn from_arg_matches(matches: &ArgMatches) -> Result<TypedOptions, clap::Error> {
        let command = TortureArgs::augment_args(Command::new("torture"));
        let is_typed = |arg: &&Arg| {
            matches.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine)
        };
        let mut typed = Vec::new();
        for arg in command.get_arguments().filter(is_typed) {
            let Some(name) = arg.get_long() else { continue };
            if !arg.get_action().takes_values() {
                typed.push((name.to_owned(), None));
                continue;
            }
            let values = matches.get_raw(arg.get_id().as_str()).into_iter().flatten();
            typed.extend(
                values.map(|value| (name.to_owned(), Some(value.to_string_lossy().into_owned()))),
            );
        }
        Ok(TypedOptions(typed))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = TypedOptions::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Adds no arguments: the options are those of [`TortureArgs`].
impl Args for TypedOptions {
    fn augment_args(command: Command) -> Command {
        command
    }

    fn augment_args_for_update(command: Command) -> Command {
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cli, Command as Subcommand};
    use clap::Parser;

    const URL: &str = "http://127.0.0.1:1/";

    fn parse_typed(words: &[String]) -> TypedOptions {
        let words = words.iter().map(String::as_str);
        let line = ["loadstone", "torture"].into_iter().chain(words).chain([URL]);
        match Cli::try_parse_from(line).unwrap_or_else(|error| panic!("{error}")).command {
            Subcommand::Torture(args) => args.typed,
            other => panic!("{other:?}"),
        }
    }

    /// Valid values by option; other options accept any number.
    const VALUES: [(&str, &str); 34] = [
        ("agent-suffix", "lab"),
        ("beside", "plan.toml"),
        ("beside-rate", "100/s"),
        ("big", "/big"),
        ("budget", "60s"),
        ("bytes-max", "1MiB/s"),
        ("case-max", "10s"),
        ("cases", "own.toml"),
        ("contact", "me@example.org"),
        ("duration", "10m"),
        ("expect", "waivers.toml"),
        ("expensive", "/report"),
        ("fail-on", "low"),
        ("front", "ranges.txt"),
        ("fuzz-time", "20s"),
        ("header", "X-Tenant: blue"),
        ("http", "1.1"),
        ("message-max", "1MiB"),
        ("only", "S-07"),
        ("outside", "/etc/hostname"),
        ("own", "10.0.0.1"),
        ("pages", "pages.txt"),
        ("path", "3g"),
        ("post", "/post"),
        ("rate-max", "20/s"),
        ("relieve-command", "true"),
        ("requests-max", "20/s"),
        ("restart-command", "true"),
        ("soak", "1h"),
        ("starve-command", "true"),
        ("store", "none"),
        ("sut", "none"),
        ("wait-max", "30s"),
        ("ws-path", "/chat"),
    ];

    /// Every option is either part of the line that repeats a case, or left out on purpose: a new
    /// one is carried without further code.
    #[test]
    fn every_option_is_repeated_or_left_out_on_purpose() {
        let command = TortureArgs::augment_args(Command::new("torture"));
        let left_out = [&OF_THE_LINE[..], &OF_ALL_CASES, &OF_OUTPUTS].concat();
        let mut missing: Vec<&str> = [&left_out[..], &HIDDEN].concat();
        for arg in command.get_arguments() {
            let Some(name) = arg.get_long() else { continue };
            missing.retain(|known| *known != name);
            let value = arg.get_action().takes_values().then(|| {
                let known = VALUES.iter().find(|(option, _)| *option == name);
                known.map_or("7", |(_, value)| *value).to_owned()
            });
            let mut words: Vec<String> = vec![format!("--{name}")];
            words.extend(value.clone());
            // each of these requires the other
            let other = match name {
                "relieve-command" => Some("starve-command"),
                "starve-command" => Some("relieve-command"),
                _ => None,
            };
            let whole: Vec<String> = match other {
                Some(other) => [&words[..], &[format!("--{other}"), "x".to_owned()]].concat(),
                None => words.clone(),
            };
            let typed = parse_typed(&whole);
            assert!(typed.has(name), "--{name}");
            let repeated = typed.of_cases();
            if left_out.contains(&name) {
                assert!(repeated.is_empty(), "--{name}: {repeated:?}");
                continue;
            }
            if HIDDEN.contains(&name) {
                words[1] = MASK.to_owned();
            }
            assert!(
                repeated.windows(words.len()).any(|some| some == words),
                "--{name}: {repeated:?}"
            );
        }
        assert!(missing.is_empty(), "no such option: {missing:?}");
    }

    #[test]
    fn credentials_are_masked_and_lists_are_repeated() {
        let words = ["--header", "Authorization: Bearer s3cret", "--own", "10.0.0.1,10.0.0.2"];
        let repeated = parse_typed(&words.map(str::to_owned)).of_cases();
        assert_eq!(
            repeated,
            ["--own", "10.0.0.1", "--own", "10.0.0.2", "--header", "Authorization: ***"]
        );
        assert_eq!(parse_typed(&[]).of_cases(), Vec::<String>::new());
    }
}
