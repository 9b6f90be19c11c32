//! ghz's command line as its parser (kingpin) reads it: long flags with `=` or a separate value,
//! short flags in groups, `--no-` for switches, one operand.

/// A flag.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flag {
    pub(super) name: &'static str,
    /// Its letter, if it has one.
    pub(super) short: Option<char>,
    pub(super) kind: Kind,
}

/// Values that a flag takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Switch,
    Text,
    /// A whole number from 0.
    Count,
    /// A whole number.
    Number,
    /// As Go writes times: `1m30s`.
    Time,
    /// One of the output formats.
    Format,
}

const fn flag(name: &'static str, short: Option<char>, kind: Kind) -> Flag {
    Flag { name, short, kind }
}

/// All flags but `-h` and `-v`.
pub(super) const FLAGS: &[Flag] = &[
    flag("config", None, Kind::Text),
    flag("proto", None, Kind::Text),
    flag("protoset", None, Kind::Text),
    flag("call", None, Kind::Text),
    flag("import-paths", Some('i'), Kind::Text),
    flag("cacert", None, Kind::Text),
    flag("cert", None, Kind::Text),
    flag("key", None, Kind::Text),
    flag("cname", None, Kind::Text),
    flag("skipTLS", None, Kind::Switch),
    flag("insecure", None, Kind::Switch),
    flag("authority", None, Kind::Text),
    flag("async", None, Kind::Switch),
    flag("rps", Some('r'), Kind::Count),
    flag("load-schedule", None, Kind::Text),
    flag("load-start", None, Kind::Count),
    flag("load-step", None, Kind::Number),
    flag("load-end", None, Kind::Count),
    flag("load-step-duration", None, Kind::Time),
    flag("load-max-duration", None, Kind::Time),
    flag("concurrency", Some('c'), Kind::Count),
    flag("concurrency-schedule", None, Kind::Text),
    flag("concurrency-start", None, Kind::Count),
    flag("concurrency-end", None, Kind::Count),
    flag("concurrency-step", None, Kind::Number),
    flag("concurrency-step-duration", None, Kind::Time),
    flag("concurrency-max-duration", None, Kind::Time),
    flag("total", Some('n'), Kind::Count),
    flag("timeout", Some('t'), Kind::Time),
    flag("duration", Some('z'), Kind::Time),
    flag("max-duration", Some('x'), Kind::Time),
    flag("duration-stop", None, Kind::Text),
    flag("data", Some('d'), Kind::Text),
    flag("data-file", Some('D'), Kind::Text),
    flag("binary", Some('b'), Kind::Switch),
    flag("binary-file", Some('B'), Kind::Text),
    flag("metadata", Some('m'), Kind::Text),
    flag("metadata-file", Some('M'), Kind::Text),
    flag("stream-interval", None, Kind::Time),
    flag("stream-call-duration", None, Kind::Time),
    flag("stream-call-count", None, Kind::Count),
    flag("stream-dynamic-messages", None, Kind::Switch),
    flag("reflect-metadata", None, Kind::Text),
    flag("output", Some('o'), Kind::Text),
    flag("format", Some('O'), Kind::Format),
    flag("skipFirst", None, Kind::Count),
    flag("count-errors", None, Kind::Switch),
    flag("connections", None, Kind::Count),
    flag("connect-timeout", None, Kind::Time),
    flag("keepalive", None, Kind::Time),
    flag("name", None, Kind::Text),
    flag("tags", None, Kind::Text),
    flag("cpus", None, Kind::Count),
    flag("debug", None, Kind::Text),
    flag("enable-compression", Some('e'), Kind::Switch),
    flag("lb-strategy", None, Kind::Text),
    flag("max-recv-message-size", None, Kind::Text),
    flag("max-send-message-size", None, Kind::Text),
    flag("disable-template-functions", None, Kind::Switch),
    flag("disable-template-data", None, Kind::Switch),
];

/// A command line as it was typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CommandLine {
    Help,
    Version,
    /// Flags with their texts, in order (`true` and `false` for switches), and the operand.
    Given {
        flags: Vec<(&'static str, String)>,
        host: Option<String>,
    },
}

/// Splits the arguments into flags and their values.
///
/// # Errors
/// ghz's complaint without `ghz: error: ` and `, try --help`.
pub(super) fn split(args: &[String]) -> Result<CommandLine, String> {
    let mut words = args.iter();
    let mut flags: Vec<(&'static str, String)> = Vec::new();
    let mut host = None;
    let mut wanted = None;
    let mut operands_only = false;
    while let Some(word) = words.next() {
        if word == "--" && !operands_only {
            operands_only = true;
        } else if operands_only || !word.starts_with('-') || word == "-" {
            set_host(&mut host, word)?;
        } else if let Some(long) = word.strip_prefix("--") {
            match long {
                "help" | "help-long" | "help-man" => wanted = wanted.or(Some(CommandLine::Help)),
                "version" => wanted = wanted.or(Some(CommandLine::Version)),
                _ => {
                    let (flag, operand) = read_long(long, &mut words)?;
                    add(&mut flags, flag)?;
                    operand.map_or(Ok(()), |word| set_host(&mut host, &word))?;
                }
            }
        } else {
            for found in read_group(&word[1..], &mut words)? {
                match found {
                    Short::Asked(what) => wanted = wanted.or(Some(what)),
                    Short::Flag(name, value) => add(&mut flags, (name, value))?,
                }
            }
        }
    }
    Ok(wanted.unwrap_or(CommandLine::Given { flags, host }))
}

fn set_host(host: &mut Option<String>, word: &str) -> Result<(), String> {
    match host.replace(word.to_owned()) {
        None => Ok(()),
        Some(_) => Err(format!("unexpected {word}")),
    }
}

/// A flag with its text.
type Typed = (&'static str, String);

fn add(flags: &mut Vec<Typed>, (name, value): Typed) -> Result<(), String> {
    if flags.iter().any(|(known, _)| *known == name) {
        return Err(format!("flag '{name}' cannot be repeated"));
    }
    flags.push((name, value));
    Ok(())
}

/// A long flag. A switch takes no value: what follows its `=` is an operand.
fn read_long<'a>(
    text: &str,
    words: &mut (impl Iterator<Item = &'a String> + Clone),
) -> Result<(Typed, Option<String>), String> {
    let (name, given) = match text.split_once('=') {
        Some((name, value)) => (name, Some(value.to_owned())),
        None => (text, None),
    };
    let known = FLAGS.iter().find(|flag| flag.name == name);
    let negated = || {
        let plain = name.strip_prefix("no-")?;
        FLAGS.iter().find(|flag| flag.name == plain && flag.kind == Kind::Switch)
    };
    match (known, negated()) {
        (Some(flag), _) if flag.kind == Kind::Switch => Ok(((flag.name, "true".to_owned()), given)),
        (None, Some(flag)) => Ok(((flag.name, "false".to_owned()), given)),
        (Some(flag), _) => {
            let value = value_of(given, words).ok_or_else(|| no_value(&format!("--{name}")))?;
            Ok(((flag.name, value), None))
        }
        (None, None) => Err(format!("unknown long flag '--{name}'")),
    }
}

/// A short flag, or what ends the program.
enum Short {
    Asked(CommandLine),
    Flag(&'static str, String),
}

fn read_group<'a>(
    letters: &str,
    words: &mut (impl Iterator<Item = &'a String> + Clone),
) -> Result<Vec<Short>, String> {
    let mut found = Vec::new();
    for (place, letter) in letters.char_indices() {
        let rest = &letters[place + letter.len_utf8()..];
        match (letter, FLAGS.iter().find(|flag| flag.short == Some(letter))) {
            ('h', _) => found.push(Short::Asked(CommandLine::Help)),
            ('v', _) => found.push(Short::Asked(CommandLine::Version)),
            (_, None) => return Err(format!("unknown short flag '-{letter}'")),
            (_, Some(flag)) if flag.kind == Kind::Switch => {
                found.push(Short::Flag(flag.name, "true".to_owned()));
            }
            (_, Some(flag)) => {
                let given = (!rest.is_empty()).then(|| rest.to_owned());
                let value =
                    value_of(given, words).ok_or_else(|| no_value(&format!("-{letter}")))?;
                found.push(Short::Flag(flag.name, value));
                return Ok(found);
            }
        }
    }
    Ok(found)
}

/// A value that is given, or the next word, which may not look like a flag.
fn value_of<'a>(
    given: Option<String>,
    words: &mut (impl Iterator<Item = &'a String> + Clone),
) -> Option<String> {
    if given.is_some() {
        return given;
    }
    let next = words.clone().next().filter(|word| !word.starts_with('-') || *word == "-")?;
    words.next();
    Some(next.clone())
}

fn no_value(flag: &str) -> String {
    format!("expected argument for flag '{flag}'")
}
