//! GNU's getopt_long as a pure function: short options in groups, unique abbreviations of long
//! options, operands anywhere, and `--` to end the options. The messages are those of the C
//! library.

/// Argument of an option: none, required or optional.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    Nothing,
    /// Argument after `=` or as the next word; for a short option, also directly after its letter.
    Argument,
    /// Argument only after `=`.
    Perhaps,
}

/// A long option.
#[derive(Clone, Copy, Debug)]
pub struct Long {
    pub name: &'static str,
    pub takes: Takes,
    /// True if it may be abbreviated; an option that the original lacks must not make others
    /// ambiguous.
    pub short_forms: bool,
}

/// Content of the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    Short(char, Option<String>),
    Long(&'static str, Option<String>),
    Operand(String),
}

/// Parses `args` (without the program's name) in order. `short` has the syntax of getopt: a colon
/// after a letter that takes an argument, two after a letter that takes one only directly after it.
/// An `Err` has the C library's message after `NAME: `; later arguments are not parsed.
pub fn read(args: &[String], short: &str, long: &[Long]) -> Vec<Result<Found, String>> {
    let mut found = read_all(args, short, long);
    if let Some(first) = found.iter().position(Result::is_err) {
        found.truncate(first + 1);
    }
    found
}

/// Like [`read`], for tools that continue after unknown options.
pub fn read_all(args: &[String], short: &str, long: &[Long]) -> Vec<Result<Found, String>> {
    let mut found = Vec::new();
    let mut rest = args.iter();
    while let Some(word) = rest.next() {
        if word == "--" {
            found.extend(rest.map(|word| Ok(Found::Operand(word.clone()))));
            break;
        }
        if let Some(text) = word.strip_prefix("--") {
            found.push(read_long(text, long, &mut rest));
        } else if word.len() > 1 && word.starts_with('-') {
            read_group(&word[1..], short, &mut rest, &mut found);
        } else {
            found.push(Ok(Found::Operand(word.clone())));
        }
    }
    found
}

fn read_long<'a>(
    text: &str,
    long: &[Long],
    rest: &mut impl Iterator<Item = &'a String>,
) -> Result<Found, String> {
    let (typed, given) = match text.split_once('=') {
        Some((name, value)) => (name, Some(value.to_owned())),
        None => (text, None),
    };
    let option = find_long(typed, long)?;
    let name = option.name;
    match (option.takes, given) {
        (Takes::Nothing, Some(_)) => Err(format!("option '--{name}' doesn't allow an argument")),
        (Takes::Argument, None) => match rest.next() {
            Some(value) => Ok(Found::Long(name, Some(value.clone()))),
            None => Err(format!("option '--{name}' requires an argument")),
        },
        (_, given) => Ok(Found::Long(name, given)),
    }
}

fn find_long<'a>(typed: &str, long: &'a [Long]) -> Result<&'a Long, String> {
    if let Some(exact) = long.iter().find(|option| option.name == typed) {
        return Ok(exact);
    }
    let fits = |option: &&Long| option.short_forms && option.name.starts_with(typed);
    let candidates: Vec<&Long> = long.iter().filter(fits).collect();
    match candidates.as_slice() {
        [] => Err(format!("unrecognized option '--{typed}'")),
        [one] => Ok(one),
        many => {
            let names: Vec<String> =
                many.iter().map(|option| format!(" '--{}'", option.name)).collect();
            let names = names.concat();
            Err(format!("option '--{typed}' is ambiguous; possibilities:{names}"))
        }
    }
}

fn read_group<'a>(
    letters: &str,
    short: &str,
    rest: &mut impl Iterator<Item = &'a String>,
    found: &mut Vec<Result<Found, String>>,
) {
    for (place, letter) in letters.char_indices() {
        let known = short.find(letter).filter(|_| letter != ':');
        let Some(known) = known else {
            found.push(Err(format!("invalid option -- '{letter}'")));
            continue;
        };
        let takes = &short[known + letter.len_utf8()..];
        if !takes.starts_with(':') {
            found.push(Ok(Found::Short(letter, None)));
            continue;
        }
        let behind = &letters[place + letter.len_utf8()..];
        if takes.starts_with("::") && behind.is_empty() {
            found.push(Ok(Found::Short(letter, None)));
            continue;
        }
        let value = if behind.is_empty() { rest.next().cloned() } else { Some(behind.to_owned()) };
        return found.push(match value {
            Some(value) => Ok(Found::Short(letter, Some(value))),
            None => Err(format!("option requires an argument -- '{letter}'")),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn option(name: &'static str, takes: Takes) -> Long {
        Long { name, takes, short_forms: true }
    }

    #[test]
    fn a_tool_may_continue_after_unknown_options() {
        let args = ["-xl", "a", "-lb", "--no", "-d"].map(str::to_owned);
        let found = read_all(&args, "d:l::", &[]);
        assert_eq!(found.iter().filter(|each| each.is_err()).count(), 3);
        let known: Vec<Found> = found.into_iter().flatten().collect();
        let short = |value: Option<&str>| Found::Short('l', value.map(str::to_owned));
        assert_eq!(known, [short(None), Found::Operand("a".into()), short(Some("b"))]);
    }

    fn run(args: &[&str]) -> String {
        let long = [
            option("num-calls", Takes::Argument),
            option("num-conns", Takes::Argument),
            option("hog", Takes::Nothing),
            option("print", Takes::Perhaps),
            Long { name: "hidden", takes: Takes::Nothing, short_forms: false },
        ];
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        let show = |found: Result<Found, String>| match found {
            Ok(Found::Short(letter, None)) => format!("-{letter}"),
            Ok(Found::Short(letter, Some(value))) => format!("-{letter}={value}"),
            Ok(Found::Long(name, None)) => format!("--{name}"),
            Ok(Found::Long(name, Some(value))) => format!("--{name}={value}"),
            Ok(Found::Operand(word)) => word,
            Err(text) => format!("! {text}"),
        };
        read(&args, "d:hv", &long).into_iter().map(show).collect::<Vec<_>>().join(" | ")
    }

    #[test]
    fn words_are_read_as_the_c_library_reads_them() {
        for (args, wanted) in [
            (&["-vh", "-d3", "-d", "4"][..], "-v | -h | -d=3 | -d=4"),
            (&["--num-ca", "7", "--num-co=8"], "--num-calls=7 | --num-conns=8"),
            (&["a", "--ho", "-", "--", "--hog"], "a | --hog | - | --hog"),
            (&["--print", "--print=x", "--hidden"], "--print | --print=x | --hidden"),
        ] {
            assert_eq!(run(args), wanted);
        }
    }

    #[test]
    fn a_refusal_ends_the_parsing() {
        for (args, wanted) in [
            (&["-v", "-x", "-h"][..], "-v | ! invalid option -- 'x'"),
            (&["-d"], "! option requires an argument -- 'd'"),
            (&["--bogus=1", "-v"], "! unrecognized option '--bogus'"),
            (&["--num-conns"], "! option '--num-conns' requires an argument"),
            (&["--hog=1"], "! option '--hog' doesn't allow an argument"),
            (
                &["--num-c", "1"],
                "! option '--num-c' is ambiguous; possibilities: '--num-calls' '--num-conns'",
            ),
            (&["--hid"], "! unrecognized option '--hid'"),
        ] {
            assert_eq!(run(args), wanted);
        }
    }
}
