//! Writes a draft as the text of a plan.

mod finish;
mod parts;

use crate::draft::{LeftOut, LoadKind, LoadPart, PlanDraft, TableRows};
use crate::names::{MILLIS, MadeFeeder, Names, SECONDS};
use crate::place::PlanServer;
use crate::text::Maker;
use crate::toml_text::{inline, key, list, one_line, text, texts};
use units::Nanos;
use url::Url;

pub(crate) use finish::{ImportCounts, is_step_header};

/// Finished plan.
#[derive(Debug)]
pub(crate) struct WrittenPlan {
    pub(crate) toml: String,
    pub(crate) left_out: Vec<LeftOut>,
    pub(crate) counts: ImportCounts,
}

/// Writes the plan.
///
/// # Errors
/// Fails if the file has no request.
pub(crate) fn write(
    mut draft: PlanDraft,
    head: &str,
    base: Option<&Url>,
) -> Result<WrittenPlan, String> {
    let counts = finish::finish(&mut draft);
    if counts.steps == 0 && draft.targets.is_empty() {
        return Err(format!(
            "it has no request that can be made{}",
            display_text(&draft.left_out.0)
        ));
    }
    finish::request_codings(&mut draft);
    draft.set_default_load();
    let mut names =
        Names::new(std::mem::take(&mut draft.vars), std::mem::take(&mut draft.made), &draft.tables);
    names.left_out = std::mem::take(&mut draft.left_out);
    finish::captures(&draft, &mut names);
    let server = PlanServer::new(&finish::urls(&draft), &names, base);
    if server.origin.is_none() && base.is_none() {
        let what =
            server.unknown.as_ref().map_or("server".to_owned(), |name| format!("variable {name}"));
        let why = format!(
            "it names no server, so {} is used; give the URL after the file",
            crate::place::NO_SERVER
        );
        names.left_out.add(0, what, why);
    }
    let body = parts::parts(&draft, &server, base, &mut names);
    let mut left_out = std::mem::take(&mut names.left_out).0;
    left_out.sort_by_key(|one| if one.line == 0 { usize::MAX } else { one.line });
    let mut out = String::new();
    put_head(&mut out, head, &draft, &left_out);
    put_top(&mut out, &draft, &server, &left_out);
    put_load(&mut out, &draft);
    put_names(&mut out, &draft, &names);
    out.push_str(&body);
    Ok(WrittenPlan { toml: out, left_out, counts })
}

fn display_text(left_out: &[LeftOut]) -> String {
    left_out.iter().take(5).map(|one| format!("; {one}")).collect()
}

/// Writes into a String, which cannot fail.
macro_rules! put {
    ($out:expr, $($arg:tt)*) => {
        std::fmt::Write::write_fmt(&mut $out, format_args!($($arg)*)).expect("a String accepts all text")
    };
}
pub(crate) use put;

/// Maximum width of comments.
const WIDTH: usize = 96;

fn put_head(out: &mut String, head: &str, draft: &PlanDraft, left_out: &[LeftOut]) {
    comment(out, head, "");
    comment(out, "Run it with: loadstone run FILE.toml; -c, --rate and -d override its load.", "");
    for note in &draft.notes {
        comment(out, note, "- ");
    }
    if !left_out.is_empty() {
        out.push_str("#\n");
        comment(out, "Not imported:", "");
        for one in left_out {
            comment(out, &one.to_string(), "- ");
        }
    }
}

/// Writes a comment, wrapped.
pub(crate) fn comment(out: &mut String, sentence: &str, bullet: &str) {
    let mut line = format!("# {bullet}");
    let mut empty = true;
    for word in sentence.split_whitespace() {
        if !empty && line.chars().count() + 1 + word.chars().count() > WIDTH {
            put!(*out, "{}\n", line.trim_end());
            line = format!("# {}", " ".repeat(bullet.len()));
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line.push_str(word);
        empty = false;
    }
    put!(*out, "{}\n", line.trim_end());
}

fn put_top(out: &mut String, draft: &PlanDraft, server: &PlanServer, left_out: &[LeftOut]) {
    out.push_str("version = 1\n");
    if draft.targets.is_empty() {
        put!(*out, "url = {}\n", text(server.base.as_str()));
    }
    if !left_out.is_empty() {
        out.push_str("not_imported = [\n");
        for one in left_out {
            put!(*out, "  {},\n", one_line(&one.to_string()));
        }
        out.push_str("]\n");
    }
    let settings = &draft.settings;
    let mut request = Vec::new();
    request.extend(settings.http.map(|http| format!("http = {}", text(http))));
    if !settings.headers.is_empty() {
        let rows = settings.headers.iter();
        let rows =
            rows.map(|(name, value)| format!("  {},\n", one_line(&format!("{name}: {value}"))));
        request.push(format!("headers = [\n{}]", rows.collect::<String>()));
    }
    request.extend(settings.follow.map(|most| format!("follow = {most}")));
    request.extend(settings.compressed.then(|| "compressed = true".to_owned()));
    // users of journeys keep cookies unless the plan disables them
    let no_cookies = settings.no_cookies && draft.targets.is_empty();
    request.extend(no_cookies.then(|| "cookies = false".to_owned()));
    let login = draft.targets.iter().find_map(|target| target.user.as_ref()?.settled());
    request.extend(login.map(|login| format!("user = {}", text(&login))));
    put_table(out, "request", &request);
    put_table(
        out,
        "tls",
        &settings.insecure.then(|| "insecure = true".to_owned()).into_iter().collect::<Vec<_>>(),
    );
    let mut limits = Vec::new();
    limits.extend(settings.timeout.map(|time| format!("call = {}", text(&span(time)))));
    limits.extend(settings.connect_timeout.map(|time| format!("connect = {}", text(&span(time)))));
    put_table(out, "timeouts", &limits);
    put_table(
        out,
        "connection",
        &settings.close.then(|| "calls = 1".to_owned()).into_iter().collect::<Vec<_>>(),
    );
    if !draft.slo.is_empty() {
        let rules = list(draft.slo.iter().map(|rule| one_line(rule)));
        put_table(out, "measure", &[format!("slo = {rules}")]);
    }
}

fn put_table(out: &mut String, name: &str, rows: &[String]) {
    if !rows.is_empty() {
        put!(*out, "\n[{name}]\n{}\n", rows.join("\n"));
    }
}

fn put_load(out: &mut String, draft: &PlanDraft) {
    let loads = &draft.loads[..];
    if let [one] = loads
        && one.start == Nanos::ZERO
        && one.journeys.is_empty()
    {
        let mut rows: Vec<String> =
            load_rows(one).iter().map(|(key, value)| format!("{key} = {value}")).collect();
        let closed = matches!(one.kind, LoadKind::Users(_) | LoadKind::Stages(_, false));
        rows.extend(
            draft.think.as_ref().filter(|_| closed).map(|think| format!("think = {}", text(think))),
        );
        put_table(out, "load", &rows);
        let mut stop = Vec::new();
        stop.extend(one.duration.map(|time| format!("duration = {}", text(&span(time)))));
        stop.extend(one.iterations.map(|count| format!("requests = {count}")));
        put_table(out, "stop", &stop);
        return;
    }
    for one in loads {
        put!(*out, "\n[[scenario]]\nname = {}\n", text(&one.name));
        if !one.journeys.is_empty() {
            put!(*out, "journeys = {}\n", list(one.journeys.iter().map(|name| one_line(name))));
        }
        if one.start > Nanos::ZERO {
            put!(*out, "start = {}\n", text(&span(one.start)));
        }
        if let Some(time) = one.duration {
            put!(*out, "duration = {}\n", text(&span(time)));
        }
        put!(*out, "load = {}\n", inline(&load_rows(one)));
    }
}

fn load_rows(load: &LoadPart) -> Vec<(String, String)> {
    let row = |name: &str, value: String| vec![(name.to_owned(), value)];
    match &load.kind {
        LoadKind::Users(users) => row("users", users.to_string()),
        LoadKind::Rate(rate) => row("rate", text(&format!("{}/s", number(*rate)))),
        LoadKind::Stages(stages, per_second) => {
            let unit = if *per_second { "/s" } else { "" };
            let level = |level: f64| match per_second {
                true => number(level),
                false => number(level.round()),
            };
            let mut before = None;
            let stage = |(over, from, to): &(Nanos, f64, f64)| {
                let (from, to) = (level(*from), level(*to));
                let flat = from == to || before.as_ref() == Some(&from);
                before = Some(to.clone());
                match flat {
                    true => format!("{}:{to}{unit}", span(*over)),
                    false => format!("{}:{from}{unit}..{to}{unit}", span(*over)),
                }
            };
            row("stages", text(&stages.iter().map(stage).collect::<Vec<_>>().join(", ")))
        }
    }
}

/// Formats a number with at most six decimals.
pub(crate) fn number(value: f64) -> String {
    let text = format!("{value:.6}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text.is_empty() || text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// Formats a time in the largest unit that gives a whole number.
pub(crate) fn span(time: Nanos) -> String {
    match time.0 {
        0 => "0s".to_owned(),
        ns if ns % 1_000_000_000 == 0 => format!("{}s", ns / 1_000_000_000),
        ns if ns % 1_000_000 == 0 => format!("{}ms", ns / 1_000_000),
        ns => format!("{}us", (ns / 1_000).max(1)),
    }
}

fn put_names(out: &mut String, draft: &PlanDraft, names: &Names) {
    if !names.used.is_empty() {
        out.push_str("\n[vars]\n");
        for (name, value) in &names.used {
            put!(*out, "{} = {}\n", key(name), text(value));
        }
    }
    for table in &draft.tables {
        put!(*out, "\n[[feeder]]\nname = {}\n", text(&table.name));
        match &table.rows {
            TableRows::File(file) => put!(*out, "file = {}\nformat = \"csv\"\n", text(file)),
            TableRows::Inline(rows) => put!(*out, "format = \"csv\"\ntext = {}\n", text(rows)),
        }
        put!(*out, "order = {}\n", text(table.order));
        if table.order != "random" {
            put!(*out, "used-up = {}\n", text(if table.stop { "stop" } else { "wrap" }));
        }
    }
    for feeder in &names.made {
        write_generated_feeder(out, feeder);
    }
}

fn write_generated_feeder(out: &mut String, feeder: &MadeFeeder) {
    put!(*out, "\n[[feeder]]\nname = {}\n", text(&feeder.name));
    let columns: Vec<(String, String)> =
        feeder.columns.iter().map(|(name, maker)| (key(name), law(maker))).collect();
    put!(*out, "generate = {}\n", inline(&columns));
    let order = if feeder.random { "random" } else { "sequential" };
    put!(*out, "order = \"{order}\"\n");
    if feeder.wraps {
        out.push_str("used-up = \"wrap\"\n");
    }
}

fn law(maker: &Maker) -> String {
    let length = |length: usize| length.clamp(1, 10_000);
    match maker {
        Maker::Uuid => text("uuid"),
        Maker::Hex(n) => text(&format!("hex:{}", length(*n))),
        Maker::Digits(n) => text(&format!("digits:{}", length(*n))),
        Maker::Letters(n) => text(&format!("letters:{}", length(*n))),
        Maker::Range(from, to) | Maker::Counter(from, to) => {
            text(&format!("{}..{}", from.min(to), from.max(to)))
        }
        Maker::OneOf(values) => match values.is_empty() {
            true => texts(&["".to_owned()]),
            false => list(values.iter().map(|value| one_line(value))),
        },
        Maker::Seconds => text(&format!("{}..{}", SECONDS.0, SECONDS.1)),
        Maker::Millis => text(&format!("{}..{}", MILLIS.0, MILLIS.1)),
        Maker::UserNumber | Maker::IterationNumber => text("0..0"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_times_and_comments_are_short() {
        assert_eq!([number(0.5), number(10.0), number(1.0 / 3.0)], ["0.5", "10", "0.333333"]);
        assert_eq!(
            [span(Nanos(1_500_000_000)), span(Nanos(0)), span(Nanos(1_000))],
            ["1500ms", "0s", "1us"]
        );
        let mut out = String::new();
        comment(&mut out, &"word ".repeat(30), "- ");
        assert!(out.lines().all(|line| line.len() <= WIDTH && line.starts_with("# ")), "{out}");
    }
}
