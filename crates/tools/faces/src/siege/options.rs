//! siege's command line.

use super::config::{Config, alert};
use super::{rc, show};
use crate::longopt::{Found, Long, Takes, read_all};
use crate::words::atoi;
use crate::{Ending, Files};

const SHORT: &str = "VhvqCDNFpgl::ibr:t:f:d:c:m:H:R:A:T:j";

const fn long(name: &'static str, takes: Takes) -> Long {
    Long { name, takes, short_forms: true }
}

const LONG: [Long; 24] = [
    long("version", Takes::Nothing),
    long("help", Takes::Nothing),
    long("verbose", Takes::Nothing),
    long("quiet", Takes::Nothing),
    long("config", Takes::Nothing),
    long("debug", Takes::Nothing),
    long("get", Takes::Nothing),
    long("print", Takes::Nothing),
    long("concurrent", Takes::Argument),
    long("no-parser", Takes::Nothing),
    long("no-follow", Takes::Nothing),
    long("internet", Takes::Nothing),
    long("benchmark", Takes::Nothing),
    long("reps", Takes::Argument),
    long("time", Takes::Argument),
    long("delay", Takes::Argument),
    long("log", Takes::Perhaps),
    long("file", Takes::Argument),
    long("rc", Takes::Argument),
    long("mark", Takes::Argument),
    long("header", Takes::Argument),
    long("user-agent", Takes::Argument),
    long("content-type", Takes::Argument),
    long("json-output", Takes::Nothing),
];

/// The short letter of each long option, in the order of [`LONG`].
const LETTERS: &str = "VhvqCDgpcNFibrtdlfRmHATj";

/// The emulated version, 4.1.7 or not, where the two differ: an additional option.
pub(super) const NEWER: &str = "--as-4.1.7";

/// Options of the file and of the command line combined, and text printed to standard error
/// meanwhile.
#[derive(Debug)]
pub(super) struct Options {
    pub(super) config: Config,
    pub(super) output: String,
}

/// Reads the configuration file, then the command line, as siege does.
pub(super) fn parse(
    program: &str,
    args: &[String],
    strict: bool,
    files: &dyn Files,
) -> Result<Options, Ending> {
    let newer = args.iter().take_while(|arg| *arg != "--").any(|arg| arg == NEWER);
    let args: Vec<String> = args.iter().filter(|arg| *arg != NEWER).cloned().collect();
    let found: Vec<Result<Found, String>> =
        read_all(&args, SHORT, &LONG).into_iter().map(|each| each.map(as_letter)).collect();
    // the command line is parsed twice, with its error messages: up to -R for the name of the file,
    // then from the start
    let is_rc = |each: &Result<Found, String>| matches!(each, Ok(Found::Short('R', _)));
    let named = found.iter().position(is_rc);
    let before = &found[..named.unwrap_or(found.len())];
    let complaint = |text: &String| format!("{program}: {text}\n");
    let mut output: String =
        before.iter().filter_map(|each| each.as_ref().err()).map(complaint).collect();
    let rc = named.and_then(|at| match &found[at] {
        Ok(Found::Short(_, value)) => value.clone(),
        _ => None,
    });
    let rc = rc.as_deref().filter(|name| !name.is_empty());
    let mut config = rc::load(rc, files).map_err(|ending| after(&output, ending))?;
    (config.newer, config.strict) = (newer, strict);
    if newer {
        config.user_agent = config.user_agent.replace("Siege/4.0.7", "Siege/4.1.7");
    }
    let mut show_config = false;
    for each in found {
        match each {
            Err(text) => output.push_str(&complaint(&text)),
            Ok(Found::Short('C', _)) => (show_config, config.get) = (true, false),
            Ok(Found::Short(letter, value)) => {
                apply(&mut config, letter, value.unwrap_or_default())
                    .map_err(|ending| after(&output, ending))?;
            }
            Ok(Found::Operand(url)) => config.url = Some(url),
            Ok(Found::Long(..)) => {}
        }
    }
    if config.get && config.url.is_none() {
        let text = "ERROR: -g/--get requires a commandline URL\n";
        return Err(Ending { out: text.into(), err: output, code: 1, ..Ending::default() });
    }
    output.push_str(&config.settle());
    if show_config {
        let ending = Ending { out: show::config(&config), err: output, ..Ending::default() };
        return Err(ending);
    }
    Ok(Options { config, output })
}

/// Returns the ending, with this output before its own.
fn after(output: &str, ending: Ending) -> Ending {
    Ending { err: format!("{output}{}", ending.err), ..ending }
}

fn as_letter(found: Found) -> Found {
    let Found::Long(name, value) = &found else { return found };
    let row = LONG.iter().position(|option| option.name == *name);
    match row.and_then(|row| LETTERS.chars().nth(row)) {
        Some(letter) => Found::Short(letter, value.clone()),
        None => found,
    }
}

fn apply(config: &mut Config, letter: char, value: String) -> Result<(), Ending> {
    match letter {
        'V' => return Err(Ending { err: show::version(config, true), ..Ending::default() }),
        'h' => return Err(show::help(config)),
        'D' => config.debug = true,
        'c' => config.users = atoi(&value),
        'i' => config.internet = true,
        'b' => config.benchmark = true,
        'd' => config.delay = rc::number(&value),
        'g' => config.get = true,
        'p' => {
            config.print = true;
            (config.users, config.reps) = (1, super::config::Reps::Pages(1));
        }
        'l' => {
            config.logging = true;
            if !value.is_empty() {
                config.logfile = value;
            }
        }
        'm' => {
            config.logging = true;
            config.mark = Some(value);
        }
        'q' => config.quiet = true,
        'v' => config.verbose = true,
        'r' => config.reps = rc::reps(&value),
        't' => config.seconds = rc::seconds(&value),
        'f' => config.file = value,
        'A' => config.user_agent = value,
        'T' => config.content_type = value,
        'N' => config.parser = false,
        'F' => config.follow = false,
        'H' => rc::add_header(config, &value)?,
        'j' => config.json = true,
        // the file has been read
        _ => {}
    }
    Ok(())
}

/// Prints that the file of URLs is missing, and the usage.
pub(super) fn no_file(config: &Config, path: &str, why: &str) -> Ending {
    let mut ending = show::help(config);
    let text = alert(&format!("unable to open file: {path}: {why}"));
    ending.err.insert_str(0, &text);
    ending
}
