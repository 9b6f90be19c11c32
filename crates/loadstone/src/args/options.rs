//! The table of options as clap's arguments, and what was given of them.

use super::netpath::Traces;
use super::{Disk, UsageError, parse};
use clap::builder::{PossibleValuesParser, ValueParser};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, ValueHint};
use plan::options::{Inputs, Setting};
use plan::{FileSource, Plan};

/// Options of the table that were given, with their values as they were typed: each value has been
/// found to be one that its option takes.
#[derive(Clone, Debug, Default)]
pub(super) struct GivenOptions(Vec<(&'static str, String)>);

impl GivenOptions {
    pub(super) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(known, _)| *known == name)
    }

    /// The values of an option, as they were typed.
    pub(super) fn texts<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(known, _)| *known == name).map(|(_, text)| text.as_str())
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, text)| text.as_str())
    }

    /// The value of an option that counts something.
    pub(super) fn count<T: TryFrom<u64>>(&self, name: &str) -> Option<T> {
        parse::count(self.text(name)?).ok()
    }

    /// The options of these names that were given.
    pub(super) fn first_of(&self, names: &[&'static str]) -> Option<&'static str> {
        names.iter().copied().find(|name| self.has(name))
    }

    /// Gives an option that was not given.
    pub(super) fn or(&mut self, name: &'static str, text: &str) {
        if !self.has(name) {
            self.0.push((name, text.to_owned()));
        }
    }

    /// Gives an option in place of what was given of it.
    pub(super) fn put(&mut self, name: &'static str, text: &str) {
        self.leave_out(&[name]);
        self.0.push((name, text.to_owned()));
    }

    pub(super) fn leave_out(&mut self, names: &[&str]) {
        self.0.retain(|(known, _)| !names.contains(known));
    }

    /// Puts all of them into the plan.
    ///
    /// # Errors
    /// A file that cannot be read, with the option that names it.
    pub(super) fn apply(&self, plan: &mut Plan, files: &dyn FileSource) -> Result<(), UsageError> {
        let inputs = Inputs { files, traces: &Traces };
        // named without a value one changes the output alone
        let silent = |name| plan::options::named(name).is_some_and(|row| row.omitted == Some(""));
        let typed = self.0.iter().filter(|(name, text)| !(text.is_empty() && silent(name)));
        let typed: Vec<_> = typed.cloned().collect();
        plan::options::put_typed(plan, &typed, inputs)
            .map_err(|(name, why)| UsageError::new(format!("--{name}: {why}")))
    }
}

fn options() -> impl Iterator<Item = &'static Setting> {
    plan::options::all().filter(|row| !row.name.is_empty())
}

/// The argument of a row.
fn argument(row: &'static Setting) -> Arg {
    let arg = Arg::new(row.name)
        .long(row.name)
        .help(row.help)
        .help_heading(row.heading)
        .hide_short_help(!row.common)
        .conflicts_with_all(row.without)
        .requires_all(row.needs)
        .short(row.short);
    let arg = match row.more {
        "" => arg,
        more => arg.long_help(format!("{}\n\n{more}", row.help)),
    };
    if row.value.is_empty() {
        return arg.action(ArgAction::SetTrue);
    }
    let arg = match row.omitted {
        Some(value) => arg.num_args(0..=1).require_equals(true).default_missing_value(value),
        None => arg,
    };
    arg.value_name(row.value)
        .allow_negative_numbers(
            row.bounds.iter().any(|bound| bound.least.is_finite() && bound.least < 0.0),
        )
        .action(if row.is_repeated() { ArgAction::Append } else { ArgAction::Set })
        .value_hint(if row.is_file { ValueHint::AnyPath } else { ValueHint::Unknown })
        .hide_possible_values(row.value.contains('|'))
        .value_parser(parser(row))
}

/// Takes the values of an option, as texts that its grammar knows.
fn parser(row: &'static Setting) -> ValueParser {
    if !row.choices.is_empty() {
        return PossibleValuesParser::new(row.choices).into();
    }
    // of several versions `compare` makes a run each
    if row.name == "http" {
        return ValueParser::from(|text: &str| parse::versions(text).map(|_| text.to_owned()));
    }
    let check = |text: &str| {
        if text.is_empty() && row.omitted == Some("") {
            return Ok(String::new());
        }
        let inputs = Inputs { files: &Disk, traces: &Traces };
        row.check(text, inputs).map(|()| text.to_owned())
    };
    ValueParser::from(check)
}

impl Args for GivenOptions {
    fn augment_args(command: Command) -> Command {
        options().fold(command, |command, row| command.arg(argument(row)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        GivenOptions::augment_args(command)
    }
}

impl FromArgMatches for GivenOptions {
    fn from_arg_matches(matches: &ArgMatches) -> Result<GivenOptions, clap::Error> {
        let mut given = Vec::new();
        for row in options() {
            if row.value.is_empty() {
                given.extend(matches.get_flag(row.name).then(|| (row.name, row.means.to_owned())));
            } else {
                let texts = matches.get_many::<String>(row.name).into_iter().flatten();
                given.extend(texts.map(|text| (row.name, text.clone())));
            }
        }
        Ok(GivenOptions(given))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = GivenOptions::from_arg_matches(matches)?;
        Ok(())
    }
}
