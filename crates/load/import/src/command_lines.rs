//! Command lines of ab, siege, hey, vegeta, oha, wrk and bombardier.

mod tools;

use crate::ImportRequest;
use crate::detect::{TOOLS, first_lines};
use crate::draft::*;
use crate::place::tidy;
use crate::postman::file_body;
use crate::targets::{siege_line, siege_targets, vegeta_targets};
use crate::text::Text;
use tools::{CommandTool, Key, tool_named};
use units::Nanos;

/// Reads the first command of a text; further commands are listed.
pub(crate) fn read(text: &str, request: &ImportRequest<'_>) -> Result<PlanDraft, String> {
    let joined = text.replace("\\\r\n", " ").replace("\\\n", " ");
    let mut lines = first_lines(&joined);
    let line = lines.next().ok_or("it has no command")?;
    let commands: Vec<Vec<String>> = pipeline(line)?;
    let at = commands.iter().position(|words| tool_of(words).is_some());
    let at = at.ok_or("it has no command of ab, siege, hey, vegeta, oha, wrk or bombardier")?;
    let (tool, words) = tool_of(&commands[at]).expect("the position was derived from it");
    let mut command =
        ToolCommand { draft: PlanDraft::default(), request, tool, given: Given::default() };
    command.draft.settings.no_cookies = tool.name != "siege";
    for more in lines {
        command.draft.left_out.add(
            0,
            one_line(more),
            "only the first command is imported; import the others separately",
        );
    }
    let words = if tool.name == "vegeta" {
        words.strip_prefix(&["attack".to_owned()]).unwrap_or(words)
    } else {
        words
    };
    command.words(words);
    // targets of vegeta arrive through the pipe
    let piped = at.checked_sub(1).and_then(|before| commands.get(before));
    if let Some(words) =
        piped.filter(|words| words.first().is_some_and(|it| it == "echo" || it == "printf"))
    {
        let text: Vec<&str> = words
            .iter()
            .skip(1)
            .filter(|word| !["-e", "-n"].contains(&word.as_str()))
            .map(String::as_str)
            .collect();
        command.given.targets = Some(text.join(" ").replace("\\n", "\n"));
    } else if let Some([cat, file]) = piped.map(Vec::as_slice)
        && cat == "cat"
    {
        command.given.targets_file = Some(file.clone());
    }
    command.finish()
}

/// Returns the tool of a command and its arguments.
fn tool_of(words: &[String]) -> Option<(&'static CommandTool, &[String])> {
    let before = words
        .iter()
        .take_while(|word| ["$", "%", "time", "sudo", "exec"].contains(&word.as_str()))
        .count();
    let name = words.get(before)?.rsplit('/').next()?;
    let tool = TOOLS.contains(&name).then(|| tool_named(name))??;
    Some((tool, &words[before + 1..]))
}

/// Splits a pipeline into commands and words, with quotes and backslashes as in a shell.
fn pipeline(line: &str) -> Result<Vec<Vec<String>>, String> {
    let mut commands = vec![Vec::new()];
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut chars = line.chars();
    let end = |word: &mut Option<String>, commands: &mut Vec<Vec<String>>| {
        if let (Some(word), Some(last)) = (word.take(), commands.last_mut()) {
            last.push(word);
        }
    };
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(mark), c) if c == mark => quote = None,
            (Some('"') | None, '\\') => word.get_or_insert_default().extend(chars.next()),
            (Some(_), c) => word.get_or_insert_default().push(c),
            (None, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '|') => {
                end(&mut word, &mut commands);
                commands.push(Vec::new());
            }
            (None, ';' | '>' | '&') if word.is_none() => break,
            (None, c) if c.is_whitespace() => end(&mut word, &mut commands),
            (None, c) => word.get_or_insert_default().push(c),
        }
    }
    if quote.is_some() {
        return Err("a quotation mark is not closed".to_owned());
    }
    end(&mut word, &mut commands);
    Ok(commands)
}

/// Settings given by the words of a command.
#[derive(Debug, Default)]
struct Given {
    url: Option<String>,
    method: Option<String>,
    headers: Vec<(String, String)>,
    body: Option<Body>,
    login: Option<String>,
    users: Option<f64>,
    rate: Option<f64>,
    rate_per_user: Option<f64>,
    duration: Option<Nanos>,
    requests: Option<u64>,
    rounds: Option<u64>,
    keeps_alive: Option<bool>,
    pause: Option<String>,
    targets: Option<String>,
    targets_file: Option<String>,
}

struct ToolCommand<'a> {
    draft: PlanDraft,
    request: &'a ImportRequest<'a>,
    tool: &'static CommandTool,
    given: Given,
}

impl ToolCommand<'_> {
    fn words(&mut self, words: &[String]) {
        let mut words = words.iter();
        while let Some(word) = words.next() {
            if word == "--" {
                continue;
            }
            let Some(name) = word.strip_prefix('-').filter(|name| !name.is_empty()) else {
                self.given.url.get_or_insert_with(|| word.clone());
                continue;
            };
            let long = name.strip_prefix('-');
            let (bare, attached) = match long.unwrap_or(name).split_once('=') {
                Some((bare, value)) => (bare, Some(value.to_owned())),
                None => (long.unwrap_or(name), None),
            };
            if let Some((key, valued)) = self.tool.option(bare) {
                let value = if valued { attached.or_else(|| words.next().cloned()) } else { None };
                self.take(key, word, value.unwrap_or_default());
            } else if long.is_none() {
                self.letters(name, word, &mut words);
            } else {
                self.draft.left_out.add(
                    0,
                    format!("{} {word}", self.tool.name),
                    "this option is not known",
                );
            }
        }
    }

    /// Splits short options with attached values: `-c10`, `-kc 10`.
    fn letters(&mut self, name: &str, word: &str, words: &mut std::slice::Iter<'_, String>) {
        for (at, letter) in name.char_indices() {
            let rest = &name[at + letter.len_utf8()..];
            match self.tool.option(letter.encode_utf8(&mut [0; 4])) {
                Some((key, true)) => {
                    let value = if rest.is_empty() {
                        words.next().cloned().unwrap_or_default()
                    } else {
                        rest.to_owned()
                    };
                    return self.take(key, word, value.trim_start_matches('=').to_owned());
                }
                Some((key, false)) => self.take(key, word, String::new()),
                None => {
                    return self.draft.left_out.add(
                        0,
                        format!("{} {word}", self.tool.name),
                        "this option is not known",
                    );
                }
            }
        }
    }

    fn take(&mut self, key: Key, word: &str, value: String) {
        let number = || value.trim().parse::<f64>().ok().filter(|it| *it > 0.0 && *it < 1e12);
        let header = |name: &str, value: String| (name.to_owned(), value);
        let given = &mut self.given;
        let settings = &mut self.draft.settings;
        match key {
            Key::Users => given.users = number(),
            Key::Requests => given.requests = number().map(|it| it as u64),
            Key::Rounds => given.rounds = number().map(|it| it as u64),
            Key::Rate => given.rate = rate(&value),
            Key::RatePerUser => given.rate_per_user = number(),
            Key::Duration => given.duration = time(&value),
            Key::Method => given.method = Some(value.to_ascii_uppercase()),
            Key::Head => given.method = Some("HEAD".to_owned()),
            Key::Header => match value.split_once(':') {
                Some((name, value)) => {
                    given.headers.push(header(name.trim(), value.trim().to_owned()))
                }
                None => self.draft.left_out.add(0, format!("header {value}"), "it has no colon"),
            },
            Key::ContentType => given.headers.push(header("Content-Type", value)),
            Key::Accept => given.headers.push(header("Accept", value)),
            Key::UserAgent => given.headers.push(header("User-Agent", value)),
            Key::Cookie => given.headers.push(header("Cookie", value)),
            Key::Login => given.login = Some(value),
            Key::Body => given.body = Some(Body::Text(Text::plain(value))),
            Key::BodyFile | Key::PutFile => {
                if key == Key::PutFile {
                    given.method = Some("PUT".to_owned());
                }
                let body = file_body(&value, 0, self.request, &mut self.draft.left_out);
                self.given.body = Some(body);
            }
            Key::Timeout => settings.timeout = time(&value).or(settings.timeout),
            Key::KeepAlive => given.keeps_alive = Some(value != "false"),
            Key::NoKeepAlive => given.keeps_alive = Some(false),
            Key::Insecure => settings.insecure = true,
            Key::Http2 => settings.http = Some("2"),
            Key::Follow => settings.follow = number().map(|it| it.min(100.0) as u32),
            Key::NoFollow => settings.follow = None,
            Key::Pause => {
                given.pause = value
                    .trim()
                    .parse::<f64>()
                    .ok()
                    .filter(|it| *it > 0.0 && *it < 1e6)
                    .map(|it| it.to_string())
            }
            Key::TargetsFile => given.targets_file = Some(value),
            Key::Ignored => {}
            Key::Unknown(why) => {
                self.draft.left_out.add(0, format!("{} {word}", self.tool.name), why)
            }
        }
    }

    fn finish(mut self) -> Result<PlanDraft, String> {
        self.targets()?;
        let given = &self.given;
        for step in &mut self.draft.targets {
            step.method =
                given.method.clone().unwrap_or_else(|| match (&given.body, &step.method) {
                    (Some(_), method) if method == "GET" => "POST".to_owned(),
                    (_, method) => method.clone(),
                });
            if let Some(body) = &given.body {
                step.body = body.clone();
            }
            for (name, value) in &given.headers {
                step.set_header(name, Text::plain(value));
            }
            if let Some(login) = &given.login {
                step.user = Some(Text::plain(if login.contains(':') {
                    login.clone()
                } else {
                    format!("{login}:")
                }));
            }
        }
        self.draft.settings.close = !given.keeps_alive.unwrap_or(self.tool.keeps_alive);
        self.load();
        Ok(self.draft)
    }

    fn targets(&mut self) -> Result<(), String> {
        let read = |file: &String| {
            let (_, bytes) = self.request.read(file).map_err(|why| format!("{file}: {why}"))?;
            String::from_utf8(bytes).map_err(|_| format!("{file} is not UTF-8 text"))
        };
        let text = match (&self.given.targets, &self.given.targets_file) {
            (Some(text), _) => Some(text.clone()),
            (None, Some(file)) => Some(read(file)?),
            (None, None) => None,
        };
        match (text, self.given.url.clone()) {
            (Some(text), _) if self.tool.name == "siege" => {
                siege_targets(&text, self.request, &mut self.draft)
            }
            (Some(text), _) => vegeta_targets(&text, self.request, &mut self.draft)?,
            (None, Some(url)) if self.tool.name == "siege" => {
                siege_line(0, &url, self.request, &mut self.draft)
            }
            (None, Some(url)) => self.draft.targets.push(DraftStep {
                method: "GET".to_owned(),
                url: tidy(Text::plain(url)),
                ..DraftStep::default()
            }),
            (None, None) => return Err("it has no URL".to_owned()),
        }
        Ok(())
    }

    fn load(&mut self) {
        let given = &self.given;
        let users = given.users.unwrap_or(self.tool.users).clamp(1.0, 1e6);
        let rate = given.rate.or(given.rate_per_user.map(|each| each * users)).or(self.tool.rate);
        let requests =
            given.requests.or(given.rounds.map(|rounds| rounds.saturating_mul(users as u64)));
        let requests = requests
            .or(self.tool.requests)
            .filter(|_| given.duration.is_none() || given.requests.is_some());
        let duration = given.duration.or(self.tool.duration.filter(|_| requests.is_none()));
        let kind = rate.map_or(LoadKind::Users(users as u64), LoadKind::Rate);
        if let Some(pause) = &given.pause {
            // siege draws the pause between zero and this
            self.draft.think = Some(format!("0s..{pause}s"));
        }
        self.draft.loads.push(LoadPart {
            name: self.tool.name.to_owned(),
            journeys: Vec::new(),
            start: Nanos::ZERO,
            duration: duration.or(if requests.is_none() {
                Some(Nanos::from_secs(10))
            } else {
                None
            }),
            iterations: requests,
            kind,
        });
    }
}

/// Parses `30`, `30s`, `5M` or `100ms`; a number without a unit is in seconds.
fn time(text: &str) -> Option<Nanos> {
    let text = text.trim();
    if let Ok(seconds) = text.parse::<f64>() {
        return (seconds > 0.0 && seconds < 1e9)
            .then(|| Nanos((seconds * 1e3).round().max(1.0) as u64 * 1_000_000));
    }
    units::parse_duration(&text.to_lowercase()).ok().filter(|time| *time > Nanos::ZERO)
}

/// Parses `50`, `50/1s` or `3000/m`.
fn rate(text: &str) -> Option<f64> {
    let (count, per) = text.split_once('/').unwrap_or((text, "1s"));
    let count: f64 = count.trim().parse().ok()?;
    let per = if per.starts_with(|c: char| c.is_ascii_digit()) {
        per.to_owned()
    } else {
        format!("1{per}")
    };
    let per = time(&per)?.as_secs_f64();
    (count > 0.0 && count < 1e9).then(|| count / per)
}
