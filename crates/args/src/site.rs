//! The options of `site`. Those of the plain site are generated from its list, so none is missing
//! or obsolete; those of the norm site are defined here.

use super::UsageError;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use norm::tree::{CONFIGURATION, TemporaryTree};
use norm::{BREAKS, Breaks, Level, LogFile, NormSettings};
use site::{Config, Listen, OPTIONS, Sleeping};
use std::path::{Path, PathBuf};

/// Parsed options of `site`.
#[derive(Debug)]
pub enum SiteTask {
    /// Serve the plain site.
    Plain(Box<Config>),
    /// Serve the norm site.
    Norm(Box<NormTask>),
    /// Write the norm site's tree out.
    Init(PathBuf),
    /// Print the switches of the firing range.
    Switches,
}

/// A norm site that is ready to start.
#[derive(Debug)]
pub struct NormTask {
    pub settings: NormSettings,
    /// CPUs to run on; empty for all.
    pub cpus: Vec<u32>,
    /// Temporary folder with the served tree; deleted on drop.
    #[expect(dead_code, reason = "held until it is dropped")]
    tree: Option<TemporaryTree>,
}

/// Options of the plain site by name, in the order of its list (switches have an empty value), and
/// those of the norm site.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SiteArgs {
    given: Vec<(&'static str, String)>,
    norm: NormArgs,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct NormArgs {
    /// Folder of `--norm`, which selects the norm site.
    norm: Option<Option<PathBuf>>,
    init: Option<PathBuf>,
    timing: bool,
    breaks: Option<String>,
    log_level: Option<String>,
}

/// Options of both sites.
const SHARED: &[&str] =
    &["listen", "threads", "cpus", "log", "body-max", "connections-max", "sleep-parallel"];

impl SiteArgs {
    /// # Errors
    /// Fails for a value that cannot be parsed, options that exclude each other, an invalid
    /// configuration of the norm site.
    pub fn into_task(self) -> Result<SiteTask, UsageError> {
        let norm = &self.norm;
        if let Some(folder) = &norm.init {
            let alone = norm == &NormArgs { init: norm.init.clone(), ..NormArgs::default() };
            if !alone || !self.given.is_empty() {
                let text =
                    "--init writes a tree out and serves nothing: leave the other options out";
                return Err(UsageError::new(text));
            }
            return Ok(SiteTask::Init(folder.clone()));
        }
        if norm.norm.is_some() {
            return Ok(SiteTask::Norm(Box::new(self.into_norm()?)));
        }
        if self.given.iter().any(|(name, value)| *name == "range" && value == "list") {
            return Ok(SiteTask::Switches);
        }
        let only_norm = [
            ("--timing", norm.timing),
            ("--break", norm.breaks.is_some()),
            ("--log-level", norm.log_level.is_some()),
        ];
        if let Some((name, _)) = only_norm.iter().find(|(_, given)| *given) {
            return Err(UsageError::new(format!("{name} is for the norm site: add --norm")));
        }
        let mut config = Config::default();
        for (name, value) in &self.given {
            config.parse_option(name, value).map_err(|error| UsageError::new(error.to_string()))?;
        }
        Ok(SiteTask::Plain(Box::new(config)))
    }

    fn into_norm(self) -> Result<NormTask, UsageError> {
        let SiteArgs { given, norm } = self;
        if let Some((name, _)) = given.iter().find(|(name, _)| !SHARED.contains(name)) {
            let text = format!("--{name} is for the plain site: omit it or --norm");
            return Err(UsageError::new(text));
        }
        let wrong = |error: &dyn std::fmt::Display| UsageError::new(error.to_string());
        let (folder, tree) = match norm.norm.flatten() {
            Some(folder) => (folder, None),
            None => {
                let tree = TemporaryTree::new().map_err(|error| wrong(&error))?;
                (tree.folder().to_owned(), Some(tree))
            }
        };
        let settings =
            NormSettings::read(&configuration(&folder)?).map_err(|error| wrong(&error))?;
        let mut task = NormTask { settings, cpus: Vec::new(), tree };
        if let Some(names) = &norm.breaks {
            task.settings.breaks = Breaks::parse(names).map_err(|name| no_break(&name))?;
        }
        if norm.timing {
            task.settings.timing = true;
            task.settings.log_level = Level::Debug;
        }
        if let Some(level) = &norm.log_level {
            let level = Level::parse(level).ok_or_else(|| {
                let names = Level::NAMES.map(|(name, _)| name).join(", ");
                UsageError::new(format!("--log-level {}: one of {names}", units::quoted(level)))
            })?;
            task.settings.log_level = level;
        }
        let mut config = Config::default();
        for (name, value) in &given {
            match *name {
                "log" => task.settings.log_file = LogFile::File(PathBuf::from(value)),
                name => config.parse_option(name, value).map_err(|error| wrong(&error))?,
            }
            task.take(name, &config)?;
        }
        Ok(task)
    }
}

impl NormTask {
    /// Copies an option that the plain site has parsed.
    fn take(&mut self, name: &str, config: &Config) -> Result<(), UsageError> {
        let settings = &mut self.settings;
        match name {
            "listen" => match &config.listen {
                Listen::Tcp(address) => {
                    let (host, port) = address.rsplit_once(':').unwrap_or((address, ""));
                    settings.host = host.to_owned();
                    settings.port = port.parse().map_err(|_| no_port(address))?;
                }
                Listen::Unix(_) => {
                    let text = "the norm site identifies clients by address and port: give \
                                --listen ADDR:PORT";
                    return Err(UsageError::new(text));
                }
            },
            "threads" => settings.threads = within("threads", config.threads, norm::THREADS_MAX)?,
            "connections-max" => {
                let most = config.connections_max.and_then(|most| usize::try_from(most).ok());
                let most = most.unwrap_or(usize::MAX);
                settings.max_clients = within("connections-max", most, norm::CLIENTS_MAX)?;
            }
            "cpus" => self.cpus.clone_from(&config.cpus),
            "body-max" => settings.body_max = config.body_max,
            "sleep-parallel" => settings.sleep_parallel = config.sleeping == Sleeping::Parallel,
            _ => {}
        }
        Ok(())
    }
}

fn within(name: &str, value: usize, most: usize) -> Result<usize, UsageError> {
    if (1..=most).contains(&value) {
        return Ok(value);
    }
    Err(UsageError::new(format!("--{name} must be 1 to {most} with --norm")))
}

fn no_port(address: &str) -> UsageError {
    UsageError::new(format!("--listen {}: it has no port", units::quoted(address)))
}

/// Returns the configuration of a tree.
fn configuration(folder: &Path) -> Result<PathBuf, UsageError> {
    let file = folder.join(CONFIGURATION);
    if file.is_file() {
        return Ok(file);
    }
    let folder = folder.display();
    Err(UsageError::new(format!(
        "there is no {CONFIGURATION} in {folder}: write a tree with `loadstone site --init {folder}`"
    )))
}

fn no_break(name: &str) -> UsageError {
    let mut text = format!("--break {}: unknown name; use one of", units::quoted(name));
    for (_, name, what) in BREAKS {
        text.push_str(&format!("\n  {name:<16} {what}"));
    }
    UsageError::new(text)
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
        command.args(options).args(norm_options()).after_help(PAGES)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

/// Lists the options of the norm site alone.
fn norm_options() -> Vec<Arg> {
    const HEADING: &str = "The norm site";
    let options = vec![
        Arg::new("norm")
            .long("norm")
            .value_name("DIR")
            .num_args(0..=1)
            .value_parser(clap::value_parser!(PathBuf))
            .help("Serve the norm site: Swerve's test tree in DIR, or a temporary one"),
        Arg::new("init")
            .long("init")
            .value_name("DIR")
            .value_parser(clap::value_parser!(PathBuf))
            .help("Write the norm site's tree into DIR, to be changed and served"),
        Arg::new("timing")
            .long("timing")
            .action(ArgAction::SetTrue)
            .help("Fourteen timings in the log (Debug) and in Server-Timing fields"),
        Arg::new("log-level")
            .long("log-level")
            .value_name("LEVEL")
            .help("Debug, Info, Warn or Error, instead of the configuration's LogLevel"),
        Arg::new("break")
            .long("break")
            .value_name("NAME,…")
            .help("Misbehave on purpose; a wrong name lists all switches"),
    ];
    options.into_iter().map(|option| option.help_heading(HEADING)).collect()
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
        let path = |name| matches.get_one::<PathBuf>(name).cloned();
        let text = |name| matches.get_one::<String>(name).cloned();
        let norm = NormArgs {
            norm: matches.contains_id("norm").then(|| path("norm")),
            init: path("init"),
            timing: matches.get_flag("timing"),
            breaks: text("break"),
            log_level: text("log-level"),
        };
        Ok(SiteArgs { given: given.collect(), norm })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = SiteArgs::from_arg_matches(matches)?;
        Ok(())
    }
}

const PAGES: &str = "\
The first line of output is the site's URL. Pages of the plain site: / /hw
/sleep?3 /bytes/N /status/N /echo /chunked/N /close/N /events /cookie /gzip/N /auth
/redirect/N. Of the norm site: / /hw /sleep?3 /secure /sub /icons /tmp /cgi/env
/cgi/test-post /testform.html /cgi/form-handler /cgi/line-counter. With --norm
go --listen, --threads, --cpus, --body-max, --connections-max (MaxClients),
--log (its LogFile) and --sleep-parallel. Of the range: /page /post /big.";
