//! The command line, as parsed by Perl's Getopt::Std.

use crate::Ending;
use crate::getopt::{Getopt, OptionStep};
use units::Nanos;
use url::Url;

const LETTERS: &str = "l:t:c:d:Pprx";
const COPIES_MAX: u32 = 10_000;
const TIMES_MAX: u32 = 1_000_000;
const LENGTH_MAX: u32 = 64 << 20;
/// Maximum delay, in seconds.
const DELAY_MAX: f64 = 86_400.0;

/// Targets of accesses.
#[derive(Clone, Debug)]
pub(super) enum AccessTarget {
    One(Url),
    /// Returned for anything but an `http://` URL; no connection is made.
    Nowhere,
    /// Addresses drawn at random from a file: an additional option.
    List(String),
}

/// Parsed options.
#[derive(Clone, Debug)]
pub(super) struct Options {
    pub(super) place: AccessTarget,
    /// Upper limit for the length of random data; 0 for no data.
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
            OptionStep::Option('l', value) => {
                length = whole('l', perl_number(value).ceil(), LENGTH_MAX)?
            }
            // 0 is false in Perl, so the default applies
            OptionStep::Option('t', value) => {
                times = whole('t', perl_number(value).trunc(), TIMES_MAX)?.max(1);
            }
            // Perl counts copies up to the number (rounded up), and repetitions in a list
            // (truncated)
            OptionStep::Option('c', value) => {
                copies = whole('c', perl_number(value).ceil(), COPIES_MAX)?.max(1);
            }
            OptionStep::Option('d', value) => delay = seconds(perl_number(value))?,
            OptionStep::Option('P', _) => post = true,
            OptionStep::Option('p', _) => in_path = true,
            OptionStep::Option('r', _) => raw = true,
            // the tool has the option and ignores it
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
    // the path takes the data, or the body does; without data there is nothing to post
    let post = post && !in_path && length > 0;
    Ok(Options { place, length, times, copies, delay, post, in_path, raw })
}

/// Extracts `--urls FILE` from a command line; returns the rest.
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

/// Uses the first operand as the URL, and ignores the others.
fn place(list: Option<String>, operands: &[String]) -> Result<AccessTarget, Ending> {
    match (list, operands) {
        (Some(list), []) => Ok(AccessTarget::List(list)),
        (None, [typed, ..]) => {
            let url = Url::parse(typed).ok().filter(|url| url.scheme() == "http" && url.has_host());
            Ok(url.map_or(AccessTarget::Nowhere, AccessTarget::One))
        }
        (Some(_), _) => Err(usage("give --urls FILE or a URL, not both\n")),
        (None, []) => Err(usage("")),
    }
}

/// Returns the number at the start of a text, as Perl parses it; 0 without one.
fn perl_number(text: &str) -> f64 {
    let text = text.trim_start();
    let is_digit = |at: usize| text.as_bytes().get(at).is_some_and(u8::is_ascii_digit);
    let digits_from = |at: usize| (at..).take_while(|at| is_digit(*at)).count();
    let sign = usize::from(text.starts_with(['+', '-']));
    let mut end = sign + digits_from(sign);
    if text[end..].starts_with('.') {
        end += 1 + digits_from(end + 1);
    }
    if text[end..].starts_with(['e', 'E']) {
        let after = end + 1;
        let signed = after + usize::from(text[after..].starts_with(['+', '-']));
        if is_digit(signed) {
            end = signed + digits_from(signed);
        }
    }
    text[..end].parse().unwrap_or(0.0)
}

fn whole(letter: char, number: f64, most: u32) -> Result<u32, Ending> {
    if !(0.0..=f64::from(most)).contains(&number) {
        return Err(usage(&format!("-{letter} {number}: give a number from 0 to {most}\n")));
    }
    Ok(number as u32)
}

fn seconds(number: f64) -> Result<f64, Ending> {
    if !(0.0..=DELAY_MAX).contains(&number) {
        return Err(usage(&format!("-d {number}: give seconds from 0 to {DELAY_MAX}\n")));
    }
    Ok(number)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Options {
        let args: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        parse(&args).unwrap()
    }

    #[test]
    fn numbers_are_read_as_perl_reads_them() {
        let texts = ["2.7", "1e1", "x", "", "-3", " 4x", ".5", "1e", "1.e2", "+2", "-", "."];
        let numbers = [2.7, 10.0, 0.0, 0.0, -3.0, 4.0, 0.5, 1.0, 100.0, 2.0, 0.0, 0.0];
        for (text, number) in texts.into_iter().zip(numbers) {
            assert!((perl_number(text) - number).abs() < 1e-12, "{text}: {}", perl_number(text));
        }
    }

    #[test]
    fn zero_counts_as_one_and_fractional_copies_round_up() {
        let counts = |text: &str| {
            let read = line(text);
            (read.times, read.copies, read.length)
        };
        assert_eq!(counts("-t 0 -c 0 -l x http://h/"), (1, 1, 0));
        assert_eq!(counts("-t 2.7 -c 2.5 http://h/"), (2, 3, 0));
        assert_eq!(counts("-t 1e1 http://h/ further words"), (10, 1, 0));
        assert!(parse(&["-t".to_owned(), "-1".to_owned(), "http://h/".to_owned()]).is_err());
    }

    #[test]
    fn nothing_to_post_is_a_get() {
        assert!(!line("-P http://h/").post);
        assert!(line("-P -l 9 http://h/").post);
    }

    #[test]
    fn other_urls_than_http_are_ignored() {
        for text in ["https://h/", "h:80", "h"] {
            assert!(matches!(line(text).place, AccessTarget::Nowhere), "{text}");
        }
    }
}
