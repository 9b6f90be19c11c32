//! The C library's `getopt_long`, limited to what wrk uses: options anywhere among the arguments,
//! and unique abbreviations of long options.

/// A long option and its letter.
pub(super) struct Long {
    pub(super) name: &'static str,
    pub(super) takes: bool,
    pub(super) letter: char,
}

/// Found options, in order; then other arguments.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) options: Vec<(char, String)>,
    /// Message about the first invalid option; arguments after it were not parsed.
    pub(super) refused: Option<String>,
    pub(super) rest: Vec<String>,
}

/// Parses options. `short`: letters, each followed by `:` if it takes a value. `program`: prefix of
/// the messages.
pub(super) fn getopt(program: &str, args: &[String], short: &str, long: &[Long]) -> Found {
    let mut found = Found::default();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let read = if arg == "--" {
            found.rest.extend(args.by_ref().cloned());
            Ok(())
        } else if let Some(name) = arg.strip_prefix("--") {
            long_option(name, long, &mut args, &mut found)
        } else if arg.len() > 1 && arg.starts_with('-') {
            short_options(&arg[1..], short, &mut args, &mut found)
        } else {
            found.rest.push(arg.clone());
            Ok(())
        };
        if let Err(text) = read {
            found.refused = Some(format!("{program}: {text}\n"));
            return found;
        }
    }
    found
}

type Args<'a> = std::slice::Iter<'a, String>;

fn short_options(
    cluster: &str,
    short: &str,
    args: &mut Args<'_>,
    found: &mut Found,
) -> Result<(), String> {
    for (at, letter) in cluster.char_indices() {
        let known = short.find(letter).filter(|_| letter != ':');
        let Some(place) = known else { return Err(format!("invalid option -- '{letter}'")) };
        if !short[place + letter.len_utf8()..].starts_with(':') {
            found.options.push((letter, String::new()));
            continue;
        }
        let joined = &cluster[at + letter.len_utf8()..];
        let value = if joined.is_empty() { args.next().cloned() } else { Some(joined.to_owned()) };
        let missing = || format!("option requires an argument -- '{letter}'");
        found.options.push((letter, value.ok_or_else(missing)?));
        return Ok(());
    }
    Ok(())
}

fn long_option(
    text: &str,
    long: &[Long],
    args: &mut Args<'_>,
    found: &mut Found,
) -> Result<(), String> {
    let (name, joined) = match text.split_once('=') {
        Some((name, value)) => (name, Some(value.to_owned())),
        None => (text, None),
    };
    let option = match long.iter().find(|option| option.name == name) {
        Some(exact) => exact,
        None => unique(name, long)?,
    };
    let value = match (option.takes, joined) {
        (false, Some(_)) => {
            return Err(format!("option '--{}' doesn't allow an argument", option.name));
        }
        (false, None) => String::new(),
        (true, Some(value)) => value,
        (true, None) => match args.next() {
            Some(value) => value.clone(),
            None => return Err(format!("option '--{}' requires an argument", option.name)),
        },
    };
    found.options.push((option.letter, value));
    Ok(())
}

fn unique<'a>(name: &str, long: &'a [Long]) -> Result<&'a Long, String> {
    let fitting: Vec<&Long> = long.iter().filter(|option| option.name.starts_with(name)).collect();
    match fitting.as_slice() {
        [] => Err(format!("unrecognized option '--{name}'")),
        [only] => Ok(only),
        several => {
            let list: Vec<String> = several.iter().map(|o| format!("'--{}'", o.name)).collect();
            Err(format!("option '--{name}' is ambiguous; possibilities: {}", list.join(" ")))
        }
    }
}
