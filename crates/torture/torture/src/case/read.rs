//! Parses cases from TOML. Every message names the line.

use super::{
    Answers, Awaited, Case, Exchange, FOUND, Family, Fuzz, GRPC, HTTP2, HTTP3, Need, OWN,
    RequirementLevel, SOCKETS, ScriptStep, VERSIONS, usual_version,
};
use crate::fuzz::FuzzPlace;
use crate::judge::{Class, Risk};
use dialogue::packets::PacketStep;
use dialogue::text;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use units::{Nanos, parse_duration, quoted};

/// Maximum size of a case file in bytes.
const CASE_BYTES_MAX: usize = 1 << 20;
const EXCHANGES_MAX: usize = 200;
const STEPS_MAX: usize = 2_000;
/// Maximum number of executions of random data, and of bytes in one.
const COUNT_MAX: u64 = 1_000_000;
const LENGTH_MAX: u64 = 1 << 20;
/// Default time limit of an exchange.
const DEADLINE: Nanos = Nanos::from_secs(10);
const DEADLINE_MAX: Nanos = Nanos::from_secs(600);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CaseText {
    id: toml::Spanned<String>,
    version: u32,
    title: String,
    level: toml::Spanned<String>,
    risk: Option<toml::Spanned<String>>,
    #[serde(rename = "ref")]
    reference: String,
    why: String,
    #[serde(default)]
    servers: String,
    #[serde(default)]
    found: String,
    #[serde(default)]
    needs: Vec<toml::Spanned<String>>,
    #[serde(default)]
    http: Vec<toml::Spanned<String>>,
    answers: Option<toml::Spanned<String>>,
    #[serde(default)]
    press: bool,
    #[serde(default)]
    exchange: Vec<ExchangeText>,
    fuzz: Option<FuzzText>,
    family: Option<Family>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FuzzText {
    place: toml::Spanned<String>,
    count: toml::Spanned<u64>,
    #[serde(default)]
    length: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExchangeText {
    name: toml::Spanned<String>,
    send: Vec<toml::Spanned<StepText>>,
    #[serde(default)]
    methods: Vec<String>,
    deadline: Option<toml::Spanned<String>>,
    attempts: Option<toml::Spanned<u32>>,
    accept: Vec<toml::Spanned<String>>,
    #[serde(default)]
    also: Vec<toml::Spanned<String>>,
    #[serde(default)]
    advise: Vec<toml::Spanned<String>>,
    #[serde(default)]
    unlearned: Vec<toml::Spanned<String>>,
    #[serde(default)]
    needs: Vec<toml::Spanned<String>>,
    #[serde(default = "yes")]
    in_step: bool,
    #[serde(default = "yes")]
    opening: bool,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum StepText {
    Send(String),
    Pause { pause: String },
    Await { r#await: String },
    Then { then: String },
    Stream { stream: String },
    Open { open: StepFields },
    Segment { segment: StepFields },
    Expect { expect: String, within: Option<String> },
    Acks { acks: String },
    Window { window: toml::Value },
}

/// The fields of a step of raw TCP segments.
type StepFields = BTreeMap<String, toml::Value>;

fn yes() -> bool {
    true
}

/// Maximum of `attempts`.
const ATTEMPTS_MAX: u32 = 20;

/// Position in the file, and the error.
pub(super) struct CaseFault {
    pub(super) at: usize,
    pub(super) why: String,
}

/// Parses a case file. Messages call it `name`.
///
/// # Errors
/// Fails on invalid TOML, an unknown key or an invalid value, with one sentence that names file and
/// line.
pub fn read_case(name: &str, file: &str) -> Result<Case, String> {
    read_with(name, file, &|_| Ok(()))
}

/// Parses a case file of the user, which has exchanges only and an id of the users' group.
///
/// # Errors
/// Fails like [`read_case`], and on features reserved for the catalog.
pub fn read_own(name: &str, file: &str) -> Result<Case, String> {
    read_with(name, file, &|case| {
        if case.group() != OWN {
            return Err(format!(
                "{} is reserved for built-in cases; name your case {OWN}-01 to \
                {OWN}-999",
                case.id
            ));
        }
        if case.exchanges.is_empty() || case.press {
            let why = "your own case can have exchanges only; random data, code and stress are \
                reserved for built-in cases";
            return Err(why.to_owned());
        }
        Ok(())
    })
}

/// An additional rule for a case.
type CaseRule<'r> = &'r dyn Fn(&Case) -> Result<(), String>;

fn read_with(name: &str, file: &str, rule: CaseRule<'_>) -> Result<Case, String> {
    let fault = |at: usize, why: &str| {
        let line = file.get(..at).unwrap_or(file).matches('\n').count() + 1;
        format!("{name}: line {line}: {}", why.trim_end())
    };
    if file.len() > CASE_BYTES_MAX {
        return Err(format!("{name}: longer than 1 MiB"));
    }
    let read: CaseText = toml::from_str(file)
        .map_err(|error| fault(error.span().map_or(0, |span| span.start), error.message()))?;
    let at = read.id.span().start;
    let mut case = case(read).map_err(|wrong| fault(wrong.at, &wrong.why))?;
    rule(&case).map_err(|why| fault(at, &why))?;
    case.text = file.into();
    Ok(case)
}

fn case(read: CaseText) -> Result<Case, CaseFault> {
    let id_at = read.id.span().start;
    let at_id = |why: &str| CaseFault { at: id_at, why: why.to_owned() };
    let id = read.id.into_inner();
    if !is_id(&id) {
        return Err(at_id(&format!("{} is not an id: write one like S-07", quoted(&id))));
    }
    let parts = [!read.exchange.is_empty(), read.fuzz.is_some(), read.family.is_some()];
    if parts.iter().filter(|part| **part).count() != 1 || read.exchange.len() > EXCHANGES_MAX {
        let why = format!(
            "a case has 1 to {EXCHANGES_MAX} exchanges, or random data ([fuzz]), or code ([family])"
        );
        return Err(at_id(&why));
    }
    if id.starts_with(FOUND) && read.found.is_empty() {
        return Err(at_id("`found` is missing: the server's name and version, and the day"));
    }
    if let Some(why) = read.family.as_ref().and_then(|family| foreign_flood(&id, family)) {
        return Err(at_id(&why));
    }
    let level = level(&read.level)?;
    let risk = read.risk.as_ref().map(risk).transpose()?;
    let needs = read.needs.iter().map(need).collect::<Result<Vec<Need>, CaseFault>>()?;
    let answers = read.answers.as_ref().map(answers).transpose()?.unwrap_or_default();
    let protocol = protocol(&id, &read.http)?;
    let mut names = BTreeSet::new();
    let mut exchanges = Vec::new();
    for exchange in read.exchange {
        let (at, name) = (exchange.name.span().start, exchange.name.get_ref().clone());
        if !names.insert(name.clone()) {
            return Err(CaseFault { at, why: format!("{} appears twice", quoted(&name)) });
        }
        let made = self::exchange(exchange)?;
        if made.is_raw() && !needs.contains(&Need::Device) {
            let why = "it sends TCP segments; add needs = [\"device\"]".to_owned();
            return Err(CaseFault { at, why });
        }
        exchanges.push(made);
    }
    Ok(Case {
        id,
        version: read.version,
        title: read.title,
        level,
        risk,
        reference: read.reference,
        why: read.why,
        servers: read.servers,
        found: read.found,
        needs,
        protocol,
        answers,
        press: read.press,
        exchanges,
        fuzz: read.fuzz.as_ref().map(fuzz).transpose()?,
        family: read.family,
        text: "".into(),
    })
}

/// Returns why a flood does not fit the protocol of its case.
fn foreign_flood(id: &str, family: &Family) -> Option<String> {
    let Family::Frames(with) = family else { return None };
    let (version, group) = if with.kind.is_over_quic() { (3, HTTP3) } else { (2, HTTP2) };
    let fits = id.starts_with(group) || group == HTTP2 && id.starts_with(GRPC);
    (!fits).then(|| {
        let (kind, own) = (with.kind.word(), id.chars().next().unwrap_or('?'));
        format!(
            "a flood of {kind} needs HTTP/{version}, which group {own} does not use; use \
            group {group}"
        )
    })
}

fn risk(read: &toml::Spanned<String>) -> Result<Risk, CaseFault> {
    let name = read.get_ref();
    Risk::ALL.into_iter().find(|one| one.id() == name).ok_or_else(|| CaseFault {
        at: read.span().start,
        why: format!(
            "{} is not a risk; write one of {}",
            quoted(name),
            Risk::ALL.map(Risk::id).join(", ")
        ),
    })
}

fn fuzz(read: &FuzzText) -> Result<Fuzz, CaseFault> {
    let (at, name) = (read.place.span().start, read.place.get_ref());
    let names: Vec<&str> = FuzzPlace::ALL.iter().map(|(name, _)| *name).collect();
    let place = FuzzPlace::from_name(name).ok_or_else(|| CaseFault {
        at,
        why: format!(
            "{} is not a place for random data; write one of {}",
            quoted(name),
            names.join(", ")
        ),
    })?;
    let count = *read.count.get_ref();
    if count == 0 || count > COUNT_MAX {
        let why = format!("count is 1 to {COUNT_MAX}");
        return Err(CaseFault { at: read.count.span().start, why });
    }
    Ok(Fuzz { place, count, length: read.length.min(LENGTH_MAX) })
}

/// Returns whether this is a capital letter, a hyphen, and two or three digits.
fn is_id(id: &str) -> bool {
    let Some((group, number)) = id.split_once('-') else { return false };
    group.len() == 1
        && group.bytes().all(|byte| byte.is_ascii_uppercase())
        && (2..=3).contains(&number.len())
        && number.bytes().all(|byte| byte.is_ascii_digit())
}

fn level(text: &toml::Spanned<String>) -> Result<RequirementLevel, CaseFault> {
    let all = [
        RequirementLevel::Must,
        RequirementLevel::Should,
        RequirementLevel::May,
        RequirementLevel::Opinion,
    ];
    let found = all.into_iter().find(|level| level.id() == text.get_ref());
    found.ok_or_else(|| CaseFault {
        at: text.span().start,
        why: format!(
            "{} is not a level; write MUST, SHOULD, MAY or opinion",
            quoted(text.get_ref())
        ),
    })
}

fn need(text: &toml::Spanned<String>) -> Result<Need, CaseFault> {
    let found = Need::ALL.into_iter().find(|need| need.id() == text.get_ref());
    found.ok_or_else(|| {
        let all = Need::ALL.map(Need::id).join(", ");
        let why = format!("{} is not a need; write one of {all}", quoted(text.get_ref()));
        CaseFault { at: text.span().start, why }
    })
}

/// Returns the HTTP versions of a case. Only the exchanges of WebSocket exist in several.
fn protocol(id: &str, named: &[toml::Spanned<String>]) -> Result<Vec<&'static str>, CaseFault> {
    let group = id.chars().next().unwrap_or('?');
    let version = |text: &toml::Spanned<String>| {
        let (at, name) = (text.span().start, text.get_ref());
        if group != SOCKETS {
            let why = format!("only cases of group {SOCKETS} name HTTP versions; omit `http`");
            return Err(CaseFault { at, why });
        }
        VERSIONS.into_iter().find(|known| known == name).ok_or_else(|| {
            let why = format!("{} is not an HTTP version; write 1.1, 2 or 3", quoted(name));
            CaseFault { at, why }
        })
    };
    let all = named.iter().map(version).collect::<Result<Vec<&'static str>, CaseFault>>()?;
    Ok(if all.is_empty() { vec![usual_version(group)] } else { all })
}

fn answers(text: &toml::Spanned<String>) -> Result<Answers, CaseFault> {
    let found = Answers::ALL.into_iter().find(|one| one.id() == text.get_ref());
    found.ok_or_else(|| CaseFault {
        at: text.span().start,
        why: format!("{} is not a component; write server or kernel", quoted(text.get_ref())),
    })
}

fn exchange(read: ExchangeText) -> Result<Exchange, CaseFault> {
    let at = read.name.span().start;
    if read.send.is_empty() || read.send.len() > STEPS_MAX {
        return Err(CaseFault { at, why: format!("an exchange has 1 to {STEPS_MAX} steps") });
    }
    if read.accept.is_empty() {
        return Err(CaseFault {
            at,
            why: "`accept` is empty; name at least one conforming outcome".into(),
        });
    }
    let deadline = match &read.deadline {
        None => DEADLINE,
        Some(text) => duration(text.get_ref(), text.span().start)?,
    };
    let attempts = match &read.attempts {
        None => 1,
        Some(count) if (1..=ATTEMPTS_MAX).contains(count.get_ref()) => *count.get_ref(),
        Some(count) => {
            let why = format!("`attempts` is 1 to {ATTEMPTS_MAX}");
            return Err(CaseFault { at: count.span().start, why });
        }
    };
    let methods = match read.methods.is_empty() {
        true => vec!["GET".to_owned()],
        false => read.methods,
    };
    Ok(Exchange {
        name: read.name.into_inner(),
        steps: read.send.into_iter().map(step).collect::<Result<Vec<ScriptStep>, CaseFault>>()?,
        methods,
        deadline,
        attempts,
        accept: classes(&read.accept)?,
        also: classes(&read.also)?,
        advise: classes(&read.advise)?,
        unlearned: classes(&read.unlearned)?,
        needs: read.needs.iter().map(need).collect::<Result<Vec<Need>, CaseFault>>()?,
        in_step: read.in_step,
        opening: read.opening,
    })
}

fn classes(texts: &[toml::Spanned<String>]) -> Result<Vec<Class>, CaseFault> {
    let one = |text: &toml::Spanned<String>| {
        Class::parse(text.get_ref()).map_err(|why| CaseFault { at: text.span().start, why })
    };
    texts.iter().map(one).collect()
}

fn duration(text: &str, at: usize) -> Result<Nanos, CaseFault> {
    match parse_duration(text) {
        Ok(span) if span <= DEADLINE_MAX => Ok(span),
        Ok(_) => Err(CaseFault { at, why: format!("{} is more than 10m", quoted(text)) }),
        Err(error) => Err(CaseFault { at, why: error.to_string() }),
    }
}

fn step(read: toml::Spanned<StepText>) -> Result<ScriptStep, CaseFault> {
    let at = read.span().start;
    Ok(match read.into_inner() {
        StepText::Send(text) => {
            // with any values: those of the run are not known yet
            let made = text::bytes(&text, &text::Values::default());
            made.map_err(|why| CaseFault { at, why })?;
            ScriptStep::Send(text)
        }
        StepText::Pause { pause } => ScriptStep::Pause(duration(&pause, at)?),
        StepText::Await { r#await: what } => ScriptStep::Await(match what.as_str() {
            "interim" => Awaited::Interim,
            "answer" => Awaited::Response,
            "end" => Awaited::End,
            "settings" => Awaited::Settings,
            "socket-end" => Awaited::SocketEnd,
            _ => {
                let why = format!(
                    "{} cannot be awaited; write interim, answer, end, settings or socket-end",
                    quoted(&what)
                );
                return Err(CaseFault { at, why });
            }
        }),
        StepText::Stream { stream } => packet(at, "stream", &stream, &[])?,
        StepText::Open { open } => packet(at, "open", "", &fields(at, open)?)?,
        StepText::Segment { segment } => packet(at, "segment", "", &fields(at, segment)?)?,
        StepText::Expect { expect, within } => {
            let within = within.map(|within| ("within".to_owned(), within));
            packet(at, "expect", &expect, within.as_slice())?
        }
        StepText::Acks { acks } => packet(at, "acks", &acks, &[])?,
        StepText::Window { window } => packet(at, "window", &plain(at, window)?, &[])?,
        StepText::Then { then } => match then.as_str() {
            "urgent" => ScriptStep::Urgent,
            "half-close" => ScriptStep::HalfClose,
            "reset" => ScriptStep::Reset,
            "close" => ScriptStep::Close,
            "stop-reading" => ScriptStep::StopReading,
            "read" => ScriptStep::Read,
            _ => {
                let why = format!(
                    "{} is not a step; write urgent, half-close, reset, close, stop-reading or \
                    read",
                    quoted(&then)
                );
                return Err(CaseFault { at, why });
            }
        },
    })
}

fn packet(
    at: usize,
    name: &str,
    value: &str,
    fields: &[(String, String)],
) -> Result<ScriptStep, CaseFault> {
    let step = PacketStep::read(name, value, fields);
    step.map(ScriptStep::Packet).map_err(|why| CaseFault { at, why })
}

fn fields(at: usize, read: StepFields) -> Result<Vec<(String, String)>, CaseFault> {
    read.into_iter().map(|(name, value)| Ok((name, plain(at, value)?))).collect()
}

/// Converts a number or a text to text.
fn plain(at: usize, value: toml::Value) -> Result<String, CaseFault> {
    match value {
        toml::Value::String(text) => Ok(text),
        toml::Value::Integer(number) => Ok(number.to_string()),
        other => Err(CaseFault { at, why: format!("{other} is neither a number nor a text") }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RAW: &str = r#"
id = "X-09"
version = 1
title = "a request in two segments, the second first"
level = "MUST"
ref = "RFC 9293 section 3.10.7.4"
why = "segments arrive in any order"
needs = ["device"]
answers = "kernel"

[[exchange]]
name = "two"
send = [
    { stream = 'GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n' },
    { open = { mss = 536 } },
    { segment = { part = "10..", urgent = 3 } },
    { segment = { part = "..10", flags = "PA" } },
    { expect = "ack rst", within = "200ms" },
    { acks = "none" },
    { window = 0 },
]
accept = ["saw:ack plain"]
"#;

    #[test]
    fn a_segment_case_is_parsed() {
        let case = read_own("X-09.toml", RAW).unwrap();
        assert_eq!(case.answers, Answers::Kernel);
        let lines: Vec<String> = case.exchanges[0]
            .steps
            .iter()
            .map(|step| match step {
                ScriptStep::Packet(step) => step.to_string(),
                other => format!("{other:?}"),
            })
            .collect();
        assert_eq!(
            lines,
            [
                r"stream GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n",
                "open mss=536 window=65535",
                "segment urgent=3 part=10..",
                "segment flags=PA part=..10",
                "expect ack,rst within=200000000ns",
                "acks none",
                "window 0",
            ]
        );
        for (old, new, part) in [
            (r#"needs = ["device"]"#, "", "line 12: it sends TCP segments"),
            ("\"kernel\"", "\"moon\"", "line 9: \"moon\" is not a component"),
            ("mss = 536", "mss = true", "line 15: true is neither a number nor a text"),
            ("urgent = 3", "urgent = 70000", "line 16: \"70000\" is not a valid urgent pointer"),
            ("saw:ack", "saw:rain", "line 22: \"saw:rain\" is not a class"),
        ] {
            let error = read_case("X-09.toml", &RAW.replace(old, new)).unwrap_err();
            assert!(error.contains(part), "{old} -> {new}: {error}");
        }
    }

    const GOOD: &str = r#"
id = "S-07"
version = 1
title = "whitespace between field name and colon"
level = "MUST"
ref = "RFC 9112 section 5.1"
why = "two readers may disagree whether this is a field"

[[exchange]]
name = "space"
send = ['GET {path} HTTP/1.1\r\n', { pause = "1s" }, { await = "interim" }, { then = "half-close" }]
accept = ["400"]
"#;

    #[test]
    fn a_case_is_parsed() {
        let mut case = read_case("S-07.toml", GOOD).unwrap();
        assert_eq!(&*case.text, GOOD);
        case.text = "".into();
        insta::assert_debug_snapshot!(case);
    }

    #[test]
    fn websocket_cases_name_their_http_versions() {
        let own = GOOD.replace("S-07", "U-07");
        assert_eq!(read_case("U-07.toml", &own).unwrap().protocol, ["1.1"]);
        let named = own.replace("level", "http = [\"1.1\", \"2\"]\nlevel");
        let case = read_case("U-07.toml", &named).unwrap();
        assert!(case.runs_in("1.1") && case.runs_in("2") && !case.runs_in("3"));
        let error = read_case("U-07.toml", &named.replace("\"2\"", "\"4\"")).unwrap_err();
        assert!(error.contains("line 5: \"4\" is not an HTTP version"), "{error}");
    }

    #[test]
    fn user_cases_have_their_own_group_and_exchanges_only() {
        let own = GOOD.replace("S-07", "X-07");
        assert_eq!(read_own("X-07.toml", &own).unwrap().id, "X-07");
        let random = own.split("[[exchange]]").next().unwrap().to_owned();
        let random = random + "[fuzz]\nplace = \"query\"\ncount = 3";
        for (file, part) in [
            (GOOD.to_owned(), "line 2: S-07 is reserved for built-in cases; name your case X-01"),
            (random, "line 2: your own case can have exchanges only"),
            (own.replace("version = 1", "version = 1\npress = true"), "line 2: your own case"),
            (GOOD.replace("S-07", "K-07"), "line 2: `found` is missing"),
            (own.replace("MUST", "OUGHT"), "line 5: \"OUGHT\" is not a level"),
        ] {
            let error = read_own("own.toml", &file).unwrap_err();
            assert!(error.starts_with("own.toml: ") && error.contains(part), "{part}: {error}");
        }
    }

    #[test]
    fn errors_are_reported_with_their_line() {
        let table = [
            (r#""S-07""#, r#""7""#, "line 2: \"7\" is not an id"),
            (r#""MUST""#, r#""OUGHT""#, "line 5: \"OUGHT\" is not a level"),
            (
                r#"name = "space""#,
                r#"name = "space"
what = 1"#,
                "line 11: unknown field",
            ),
            (r#"["400"]"#, r#"["4000"]"#, "line 12: "),
            (r#"["400"]"#, "[]", "line 10: `accept` is empty"),
            ("{path}", "{nothing}", "line 11: \"nothing\" is not a macro"),
            (r#""1s""#, r#""1q""#, "line 11: "),
            (r#""1s""#, r#""1h""#, "line 11: \"1h\" is more than 10m"),
            ("half-close", "close-half", "line 11: \"close-half\" is not a step"),
            (r#"await = "interim""#, r#"await = "rain""#, "line 11: \"rain\" cannot be awaited"),
            ("version = 1", "version = 1 1", "line 3: "),
            ("level", "http = [\"2\"]\nlevel", "line 5: only cases of group U name HTTP versions"),
        ];
        for (old, new, part) in table {
            let error = read_case("S-07.toml", &GOOD.replace(old, new)).unwrap_err();
            assert!(error.contains(part), "{old} -> {new}: {error}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_file_panics(text in "(?s).{0,300}") {
            read_case("x", &text).ok();
        }
    }
}
