//! The command line, read as Perl's Getopt::Std reads it.

use crate::Ending;
use crate::getopt::{Getopt, OptionStep};
use units::Nanos;
use url::Url;

const LETTERS: &str = "l:t:c:d:Pprx";
const COPIES_MAX: u32 = 10_000;
const TIMES_MAX: u32 = 1_000_000;
const LENGTH_MAX: u32 = 64 << 20;
/// Seconds.
const DELAY_MAX: f64 = 86_400.0;

/// Where accesses go.
#[derive(Clone, Debug)]
pub(super) enum AccessTarget {
    One(Url),
    /// Addresses drawn at random from a file of them: an option of ours.
    List(String),
}

/// What was asked for.
#[derive(Clone, Debug)]
pub(super) struct Options {
    pub(super) place: AccessTarget,
    /// Random data is shorter than this; 0: there is none.
    pub(super) length: u32,
    pub(super) times: u32,
    pub(super) copies: u32,
    /// The longest delay before an access.
    pub(super) delay: Nanos,
    pub(super) post: bool,
    pub(super) in_path: bool,
    pub(super) raw: bool,
}

pub(super) fn parse(args: &[String]) -> Result<Options, Ending> {
    let (list, args) = take_list(args)?;
    let mut letters = Getopt::new(&args, LETTERS);
    let (mut length, mut times, mut copies, mut delay) = (0, 1, 1, 0.0);
    let (mut post, mut in_path, mut raw) = (false, false, false);
    loop {
        match letters.step() {
            OptionStep::Option('l', value) => length = whole('l', value, 0, LENGTH_MAX)?,
            OptionStep::Option('t', value) => times = whole('t', value, 1, TIMES_MAX)?,
            OptionStep::Option('c', value) => copies = whole('c', value, 1, COPIES_MAX)?,
            OptionStep::Option('d', value) => delay = seconds(value)?,
            OptionStep::Option('P', _) => post = true,
            OptionStep::Option('p', _) => in_path = true,
            OptionStep::Option('r', _) => raw = true,
            // the tool has it and does nothing with it
            OptionStep::Option(..) => {}
            OptionStep::Unknown(letter) => {
                return Err(usage(&format!("Unknown option: {letter}\n")));
            }
            OptionStep::NoValue(letter) => {
                return Err(usage(&format!("Option {letter} needs a value\n")));
            }
            OptionStep::End => break,
        }
    }
    let place = place(list, &args[letters.at().min(args.len())..])?;
    let delay = Nanos::from_secs_f64(delay);
    // the path takes the data, or the body does
    let post = post && !in_path;
    Ok(Options { place, length, times, copies, delay, post, in_path, raw })
}

/// `--urls FILE` out of a command line, and the rest of it.
fn take_list(args: &[String]) -> Result<(Option<String>, Vec<String>), Ending> {
    let (mut list, mut rest) = (None, Vec::with_capacity(args.len()));
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        if arg == "--" {
            rest.push(arg.clone());
            rest.extend(args.by_ref().cloned());
        } else if arg == "--urls" {
            let file = args.next().ok_or_else(|| usage("Option --urls needs a value\n"))?;
            list = Some(file.clone());
        } else if let Some(file) = arg.strip_prefix("--urls=") {
            list = Some(file.to_owned());
        } else {
            rest.push(arg.clone());
        }
    }
    Ok((list, rest))
}

fn place(list: Option<String>, operands: &[String]) -> Result<AccessTarget, Ending> {
    match (list, operands) {
        (Some(list), []) => Ok(AccessTarget::List(list)),
        (None, [typed]) => {
            let url = Url::parse(typed).ok().filter(|url| url.scheme() == "http" && url.has_host());
            url.map(AccessTarget::One)
                .ok_or_else(|| usage(&format!("{typed} is not an http:// URL\n")))
        }
        (Some(_), _) => Err(usage("give --urls FILE or a URL, not both\n")),
        (None, _) => Err(usage("")),
    }
}

fn whole(letter: char, text: &str, least: u32, most: u32) -> Result<u32, Ending> {
    let number = text.parse::<u32>().ok().filter(|number| (least..=most).contains(number));
    number.ok_or_else(|| {
        usage(&format!("-{letter} {text}: give a whole number from {least} to {most}\n"))
    })
}

fn seconds(text: &str) -> Result<f64, Ending> {
    let number = text.parse::<f64>().ok().filter(|number| (0.0..=DELAY_MAX).contains(number));
    number.ok_or_else(|| usage(&format!("-d {text}: give seconds from 0 to {DELAY_MAX}\n")))
}

fn usage(complaint: &str) -> Ending {
    let text = "\
Usage: torture.pl [options] URL
       torture.pl [options] --urls FILE
    -l N   longest random data [0]
    -t N   times to run the request, per copy [1]
    -c N   copies at once [1]
    -d F   longest delay before a request, in seconds [0]
    -P     send the data as the body of a POST
    -p     add the data to the path instead of the query
    -r     send raw bytes, not escaped ones
    --urls FILE  visit the URLs of a list at random; - is standard input
";
    Ending::error(format!("{complaint}{text}"), 255)
}
