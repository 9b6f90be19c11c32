//! The table of options as clap's arguments, and their parsed values.

use super::netpath::Traces;
use super::{Disk, UsageError, parse};
use clap::builder::{PossibleValuesParser, ValueParser};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, ValueHint};
use plan::options::{Inputs, Setting};
use plan::{FileSource, Plan};
use std::marker::PhantomData;
use units::ParseError;

/// Options of the table that were given, with the values as typed; the option's grammar has checked
/// each.
#[derive(Clone, Debug, Default)]
pub(super) struct GivenOptions(Vec<(&'static str, String)>);

impl GivenOptions {
    pub(super) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(known, _)| *known == name)
    }

    /// Returns the values of an option, as typed.
    pub(super) fn texts<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(known, _)| *known == name).map(|(_, text)| text.as_str())
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, text)| text.as_str())
    }

    /// Returns the value of a numeric option.
    pub(super) fn count<T: TryFrom<u64>>(&self, name: &str) -> Option<T> {
        parse::count(self.text(name)?).ok()
    }

    /// Returns the first given option of these names.
    pub(super) fn first_of(&self, names: &[&'static str]) -> Option<&'static str> {
        names.iter().copied().find(|name| self.has(name))
    }

    /// Sets an option if it was not given.
    pub(super) fn or(&mut self, name: &'static str, text: &str) {
        if !self.has(name) {
            self.0.push((name, text.to_owned()));
        }
    }

    /// Replaces the given values of an option.
    pub(super) fn put(&mut self, name: &'static str, text: &str) {
        self.leave_out(&[name]);
        self.0.push((name, text.to_owned()));
    }

    pub(super) fn leave_out(&mut self, names: &[&str]) {
        self.0.retain(|(known, _)| !names.contains(known));
    }

    /// Applies all of them to the plan.
    ///
    /// # Errors
    /// Fails for a file that cannot be read, with the option that names it.
    pub(super) fn apply(&self, plan: &mut Plan, files: &dyn FileSource) -> Result<(), UsageError> {
        let inputs = Inputs { files, traces: &Traces };
        // without a value some of them change only the output
        let silent = |name| plan::options::named(name).is_some_and(|row| row.omitted == Some(""));
        let typed = self.0.iter().filter(|(name, text)| !(text.is_empty() && silent(name)));
        let typed: Vec<_> = typed.cloned().collect();
        plan::options::put_typed(plan, &typed, inputs)
            .map_err(|(name, why)| UsageError::new(format!("--{name}: {why}")))?;
        self.apply_form(plan, files)
    }

    /// Builds the body from the fields of a form.
    fn apply_form(&self, plan: &mut Plan, files: &dyn FileSource) -> Result<(), UsageError> {
        let fields: Vec<&str> = self.texts("form").collect();
        if fields.is_empty() {
            return Ok(());
        }
        let is_kind = |name: &str| name.eq_ignore_ascii_case("content-type");
        if plan.request.headers.iter().any(|(name, _)| is_kind(name)) {
            return Err(UsageError::new(
                "--form writes the header Content-Type; drop yours, or give the body as --body",
            ));
        }
        let (kind, body) = plan::form_body(&fields, files)
            .map_err(|why| UsageError::new(format!("--form: {why}")))?;
        plan.request.body = Some(body);
        plan.request.headers.push(("Content-Type".to_owned(), kind));
        Ok(())
    }
}

fn options() -> impl Iterator<Item = &'static Setting> {
    plan::options::all().filter(|row| !row.name.is_empty())
}

/// Builds the clap argument of a row, for a command with all options.
fn argument(row: &'static Setting) -> Arg {
    let arg = bare_argument(row)
        .help_heading(row.heading)
        .hide_short_help(!row.common)
        .conflicts_with_all(row.without)
        .requires_all(row.needs);
    match row.more {
        "" => arg,
        more => arg.long_help(format!("{}\n\n{more}", row.help)),
    }
}

/// Value names of options that take a number, usually with a unit: `-5s` is a valid value for them.
const QUANTITIES: [&str; 7] = ["N", "COUNT", "TIME", "RATE", "SIZE", "SHARE", "BITRATE"];

/// Builds the argument without defaults that depend on other options.
fn bare_argument(row: &'static Setting) -> Arg {
    let arg = Arg::new(row.name).long(row.name).help(row.help).short(row.short);
    if row.value.is_empty() {
        return arg.action(ArgAction::SetTrue);
    }
    let arg = match row.omitted {
        Some(value) => arg.num_args(0..=1).require_equals(true).default_missing_value(value),
        None => arg,
    };
    arg.value_name(row.value)
        // the option's grammar explains the error in a negative value
        .allow_negative_numbers(true)
        .allow_hyphen_values(QUANTITIES.contains(&row.value))
        .action(if row.is_repeated() { ArgAction::Append } else { ArgAction::Set })
        .value_hint(if row.is_file { ValueHint::AnyPath } else { ValueHint::Unknown })
        .hide_possible_values(row.value.contains('|'))
        .value_parser(parser(row))
}

/// Returns the parser for the values of an option: it accepts the texts that the grammar accepts.
fn parser(row: &'static Setting) -> ValueParser {
    if !row.choices.is_empty() {
        return PossibleValuesParser::new(row.choices).into();
    }
    // for several versions `compare` makes a run each
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

/// Collects the given values of these rows.
fn collect_given(
    rows: impl Iterator<Item = &'static Setting>,
    matches: &ArgMatches,
) -> GivenOptions {
    let mut given = Vec::new();
    for row in rows {
        if row.value.is_empty() {
            given.extend(matches.get_flag(row.name).then(|| (row.name, row.means.to_owned())));
        } else {
            let texts = matches.get_many::<String>(row.name).into_iter().flatten();
            given.extend(texts.map(|text| (row.name, text.clone())));
        }
    }
    GivenOptions(given)
}

impl FromArgMatches for GivenOptions {
    fn from_arg_matches(matches: &ArgMatches) -> Result<GivenOptions, clap::Error> {
        Ok(collect_given(options(), matches))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = GivenOptions::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Checks whether a command accepts the typed value.
pub(crate) type Narrower = fn(&str) -> Result<(), ParseError>;

/// Row of a command that has only some of the options. Fields here override the row.
#[derive(Debug)]
pub struct SharedRow {
    pub name: &'static str,
    /// Help line, if the option has another meaning in this command.
    pub help: Option<&'static str>,
    /// Additional text of the long help.
    pub more: &'static str,
    /// Default, which help prints after the line.
    pub default: Option<&'static str>,
    /// Accepts fewer values than the row.
    pub narrower: Option<Narrower>,
    pub without: &'static [&'static str],
    pub heading: Option<&'static str>,
}

/// Row without overrides.
pub(crate) const SHARED: SharedRow = SharedRow {
    name: "",
    help: None,
    more: "",
    default: None,
    narrower: None,
    without: &[],
    heading: None,
};

impl SharedRow {
    fn row(&self) -> &'static Setting {
        plan::options::named(self.name)
            .expect("a row of the table: every command is built in tests")
    }

    fn argument(&self) -> Arg {
        let row = self.row();
        let help = self.help.unwrap_or(match self.default {
            // the default of a run differs
            Some(_) => row.help.split(" [default: ").next().unwrap_or_default(),
            None => row.help,
        });
        let arg = bare_argument(row).help(help).conflicts_with_all(self.without);
        let arg = match self.more {
            "" => arg,
            more => arg.long_help(format!("{help}\n\n{more}")),
        };
        let arg = match self.default {
            Some(text) => arg.default_value(text),
            None => arg,
        };
        let arg = match self.heading {
            Some(heading) => arg.help_heading(heading),
            None => arg,
        };
        match self.narrower {
            Some(check) => {
                arg.value_parser(move |text: &str| check(text).map(|()| text.to_owned()))
            }
            None => arg,
        }
    }
}

/// Rows of a command, in the order of its help.
pub trait SharedRows {
    const ROWS: &'static [SharedRow];
}

/// Given values of a command's rows.
pub struct SharedOptions<R> {
    given: GivenOptions,
    rows: PhantomData<R>,
}

impl<R> Clone for SharedOptions<R> {
    fn clone(&self) -> SharedOptions<R> {
        SharedOptions { given: self.given.clone(), rows: PhantomData }
    }
}

impl<R> std::fmt::Debug for SharedOptions<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.given.fmt(f)
    }
}

impl<R: SharedRows> SharedOptions<R> {
    pub fn has(&self, name: &str) -> bool {
        self.given.has(name)
    }

    /// Replaces the given values of an option.
    pub fn put(&mut self, name: &'static str, text: &str) {
        self.given.put(name, text);
    }

    /// Writes given values, or defaults, into a plan.
    ///
    /// # Errors
    /// Fails for a file that cannot be read, with the option that names it.
    pub fn apply(&self, plan: &mut Plan, files: &dyn FileSource) -> Result<(), UsageError> {
        self.given.apply(plan, files)
    }

    /// Builds the plan of these options.
    ///
    /// # Errors
    /// Fails like [`SharedOptions::apply`].
    pub fn planned(&self) -> Result<Plan, UsageError> {
        let mut plan = Plan::for_targets(Vec::new());
        self.apply(&mut plan, &Disk)?;
        Ok(plan)
    }

    /// Takes values from the plan of these options. No option names a file, so this cannot fail.
    pub fn value<T>(&self, take: impl FnOnce(Plan) -> T) -> T {
        take(self.planned().expect("values that their options took"))
    }
}

impl<R: SharedRows> Args for SharedOptions<R> {
    fn augment_args(command: Command) -> Command {
        R::ROWS.iter().fold(command, |command, row| command.arg(row.argument()))
    }

    fn augment_args_for_update(command: Command) -> Command {
        SharedOptions::<R>::augment_args(command)
    }
}

impl<R: SharedRows> FromArgMatches for SharedOptions<R> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<SharedOptions<R>, clap::Error> {
        let rows = R::ROWS.iter().map(SharedRow::row);
        Ok(SharedOptions { given: collect_given(rows, matches), rows: PhantomData })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = SharedOptions::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Returns the certificate settings of such a plan, for callers that use TLS directly.
pub fn trust(plan: &Plan) -> net::tls::Settings {
    net::tls::Settings {
        insecure: plan.tls.insecure,
        ca: plan.tls.ca.clone(),
        ..net::tls::Settings::default()
    }
}

/// Option of every command that uses TLS: accept any certificate.
#[derive(Debug)]
pub enum Insecure {}

impl SharedRows for Insecure {
    const ROWS: &'static [SharedRow] = &[SharedRow { name: "insecure", ..SHARED }];
}

impl SharedOptions<Insecure> {
    pub fn is_insecure(&self) -> bool {
        self.value(|plan| plan.tls.insecure)
    }
}
