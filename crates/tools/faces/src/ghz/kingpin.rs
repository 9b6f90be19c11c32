//! ghz's command line as parsed by its library (kingpin): long flags with `=` or a separate value,
//! short flags in groups, `--no-` for switches, one operand.

/// A flag.
#[derive(Clone, Copy, Debug)]
struct Flag {
    name: &'static str,
    /// Letter of the flag, if it has one.
    short: Option<char>,
    kind: FlagKind,
}

/// Kind of value that a flag takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FlagKind {
    Switch,
    Text,
    /// Whole number from 0.
    Count,
    /// A whole number.
    Number,
    /// Time in Go's format: `1m30s`.
    Time,
    /// Name of an output format.
    Format,
}

const fn flag(name: &'static str, short: Option<char>, kind: FlagKind) -> Flag {
    Flag { name, short, kind }
}

/// All flags except `-h` and `-v`.
const FLAGS: &[Flag] = &[
    flag("config", None, FlagKind::Text),
    flag("proto", None, FlagKind::Text),
    flag("protoset", None, FlagKind::Text),
    flag("call", None, FlagKind::Text),
    flag("import-paths", Some('i'), FlagKind::Text),
    flag("cacert", None, FlagKind::Text),
    flag("cert", None, FlagKind::Text),
    flag("key", None, FlagKind::Text),
    flag("cname", None, FlagKind::Text),
    flag("skipTLS", None, FlagKind::Switch),
    flag("insecure", None, FlagKind::Switch),
    flag("authority", None, FlagKind::Text),
    flag("async", None, FlagKind::Switch),
    flag("rps", Some('r'), FlagKind::Count),
    flag("load-schedule", None, FlagKind::Text),
    flag("load-start", None, FlagKind::Count),
    flag("load-step", None, FlagKind::Number),
    flag("load-end", None, FlagKind::Count),
    flag("load-step-duration", None, FlagKind::Time),
    flag("load-max-duration", None, FlagKind::Time),
    flag("concurrency", Some('c'), FlagKind::Count),
    flag("concurrency-schedule", None, FlagKind::Text),
    flag("concurrency-start", None, FlagKind::Count),
    flag("concurrency-end", None, FlagKind::Count),
    flag("concurrency-step", None, FlagKind::Number),
    flag("concurrency-step-duration", None, FlagKind::Time),
    flag("concurrency-max-duration", None, FlagKind::Time),
    flag("total", Some('n'), FlagKind::Count),
    flag("timeout", Some('t'), FlagKind::Time),
    flag("duration", Some('z'), FlagKind::Time),
    flag("max-duration", Some('x'), FlagKind::Time),
    flag("duration-stop", None, FlagKind::Text),
    flag("data", Some('d'), FlagKind::Text),
    flag("data-file", Some('D'), FlagKind::Text),
    flag("binary", Some('b'), FlagKind::Switch),
    flag("binary-file", Some('B'), FlagKind::Text),
    flag("metadata", Some('m'), FlagKind::Text),
    flag("metadata-file", Some('M'), FlagKind::Text),
    flag("stream-interval", None, FlagKind::Time),
    flag("stream-call-duration", None, FlagKind::Time),
    flag("stream-call-count", None, FlagKind::Count),
    flag("stream-dynamic-messages", None, FlagKind::Switch),
    flag("reflect-metadata", None, FlagKind::Text),
    flag("output", Some('o'), FlagKind::Text),
    flag("format", Some('O'), FlagKind::Format),
    flag("skipFirst", None, FlagKind::Count),
    flag("count-errors", None, FlagKind::Switch),
    flag("connections", None, FlagKind::Count),
    flag("connect-timeout", None, FlagKind::Time),
    flag("keepalive", None, FlagKind::Time),
    flag("name", None, FlagKind::Text),
    flag("tags", None, FlagKind::Text),
    flag("cpus", None, FlagKind::Count),
    flag("debug", None, FlagKind::Text),
    flag("enable-compression", Some('e'), FlagKind::Switch),
    flag("lb-strategy", None, FlagKind::Text),
    flag("max-recv-message-size", None, FlagKind::Text),
    flag("max-send-message-size", None, FlagKind::Text),
    flag("disable-template-functions", None, FlagKind::Switch),
    flag("disable-template-data", None, FlagKind::Switch),
];

/// Returns the kind of a flag, or `None` if there is no flag of this name.
pub(super) fn kind_of_flag(name: &str) -> Option<FlagKind> {
    FLAGS.iter().find(|flag| flag.name == name).map(|flag| flag.kind)
}

/// A command line as typed.
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
/// Fails with ghz's complaint without `ghz: error: ` and `, try --help`.
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

/// Parses a long flag. A switch takes no value: text after its `=` is an operand.
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
        FLAGS.iter().find(|flag| flag.name == plain && flag.kind == FlagKind::Switch)
    };
    match (known, negated()) {
        (Some(flag), _) if flag.kind == FlagKind::Switch => {
            Ok(((flag.name, "true".to_owned()), given))
        }
        (None, Some(flag)) => Ok(((flag.name, "false".to_owned()), given)),
        (Some(flag), _) => {
            let value = value_of(given, words).ok_or_else(|| no_value(&format!("--{name}")))?;
            Ok(((flag.name, value), None))
        }
        (None, None) => Err(format!("unknown long flag '--{name}'")),
    }
}

/// A short flag, or the reason why the program ends.
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
            (_, Some(flag)) if flag.kind == FlagKind::Switch => {
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

/// Returns the attached value, or the next word, which must not look like a flag.
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
