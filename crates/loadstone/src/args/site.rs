//! The options of `site`, taken from the list that the site itself keeps, so that none is missing
//! and none is left over.

use super::UsageError;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use site::{Config, OPTIONS};

/// Options of the site by name, in the order of the site's list; a switch has the empty value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SiteArgs {
    given: Vec<(&'static str, String)>,
}

impl SiteArgs {
    /// # Errors
    /// A value that the site does not understand, or two faults that exclude each other.
    pub(crate) fn into_config(self) -> Result<Config, UsageError> {
        let mut config = Config::default();
        for (name, value) in &self.given {
            config.parse_option(name, value).map_err(|error| UsageError::new(error.to_string()))?;
        }
        Ok(config)
    }
}

impl Args for SiteArgs {
    fn augment_args(command: Command) -> Command {
        let options = OPTIONS.iter().map(|option| {
            let arg = Arg::new(option.name).long(option.name).help(option.help);
            match option.value {
                Some(value) => arg.value_name(value).action(ArgAction::Set),
                None => arg.action(ArgAction::SetTrue),
            }
        });
        command.args(options).after_help(PAGES)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for SiteArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<SiteArgs, clap::Error> {
        let given = OPTIONS.iter().filter_map(|option| {
            let value = match option.value {
                Some(_) => matches.get_one::<String>(option.name)?.clone(),
                None => matches.get_flag(option.name).then(String::new)?,
            };
            Some((option.name, value))
        });
        Ok(SiteArgs { given: given.collect() })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = SiteArgs::from_arg_matches(matches)?;
        Ok(())
    }
}

const PAGES: &str = "\
The first line of output is the site's URL. Pages: / /hw /sleep?3 /bytes/N
/status/N /echo /chunked/N /close/N /cookie /gzip/N /auth /redirect/N";
