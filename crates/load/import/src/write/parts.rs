//! Steps, blocks and journeys as TOML.

use super::{comment, put};
use crate::draft::*;
use crate::names::Names;
use crate::place::PlanServer;
use crate::text::Text;
use crate::toml_text::{inline, key, list, one_line, text, texts};
use units::Nanos;
use url::Url;

/// Maximum length of an inline table; a longer table gets its own section.
const INLINE_MAX: usize = 90;

pub(super) fn parts(
    draft: &PlanDraft,
    server: &PlanServer,
    base: Option<&Url>,
    names: &mut Names,
) -> String {
    let mut writer = PartWriter { out: String::new(), server, names };
    writer.write_once_steps("setup", &draft.setup);
    for journey in &draft.journeys {
        writer.journey(journey);
    }
    writer.write_once_steps("teardown", &draft.teardown);
    for target in &draft.targets {
        writer.target(target, base);
    }
    writer.out
}

struct PartWriter<'a> {
    out: String,
    server: &'a PlanServer,
    names: &'a mut Names,
}

impl PartWriter<'_> {
    fn write_once_steps(&mut self, table: &str, steps: &[DraftStep]) {
        self.names.without_user = true;
        for step in steps {
            self.step(step, table);
        }
        self.names.without_user = false;
    }

    fn journey(&mut self, journey: &DraftJourney) {
        put!(self.out, "\n[[journey]]\nname = {}\n", text(&journey.name));
        if let Some(weight) = journey.weight {
            put!(self.out, "weight = {}\n", super::number(weight));
        }
        if let Some(think) = &journey.think {
            put!(self.out, "think = {}\n", text(think));
        }
        if journey.ends_on_failure {
            self.out.push_str("failure = \"end\"\n");
        }
        let mark = self.names.mark();
        self.pieces(&journey.parts, "journey");
        self.names.restore(mark);
    }

    fn pieces(&mut self, pieces: &[DraftPiece], path: &str) {
        for piece in pieces {
            let path = format!("{path}.step");
            match piece {
                DraftPiece::Step(step) => self.step(step, &path),
                DraftPiece::Block(block) => self.block(block, &path),
            }
        }
    }

    fn block(&mut self, block: &DraftBlock, path: &str) {
        put!(self.out, "\n[[{path}]]\nname = {}\n", text(&block.name));
        self.guard(&block.guard, 0);
        // the value that ends the loop may be captured inside it
        let at = self.out.len();
        self.pieces(&block.parts, path);
        let mut until = String::new();
        std::mem::swap(&mut self.out, &mut until);
        self.until(&block.guard, 0);
        std::mem::swap(&mut self.out, &mut until);
        self.out.insert_str(at, &until);
    }

    /// Writes `[[path]]` for a step; for `setup` and `teardown`, without the keys for users.
    fn step(&mut self, step: &DraftStep, path: &str) {
        self.out.push('\n');
        for line in &step.comments {
            comment(&mut self.out, line, "");
        }
        put!(self.out, "[[{path}]]\nname = {}\n", text(&step.name));
        let line = step.line;
        let url = self.server.relative(&step.url, self.names);
        let url = self.names.render(&url, line);
        put!(self.out, "url = {}\n", text(&url));
        let has_body = !matches!(step.body, Body::None);
        let usual = if has_body { "POST" } else { "GET" };
        if step.method != usual {
            put!(self.out, "method = {}\n", text(&step.method));
        }
        self.guard(&step.guard, line);
        if step.once && path.starts_with("journey") {
            self.out.push_str("once = true\n");
        }
        if let Some(user) = &step.user {
            let mut user = self.names.render(user, line);
            if !user.contains(':') && !user.contains("{{") {
                // the value of a variable without a password
                user.push(':');
            }
            put!(self.out, "user = {}\n", text(&user));
        }
        if let Some(think) = step.think.as_ref().filter(|_| path.starts_with("journey")) {
            put!(self.out, "think = {}\n", text(think));
        }
        let mut tables: Vec<(String, Vec<(String, String)>)> = Vec::new();
        let headers = self.pairs(&step.headers, line);
        self.body(&step.body, line, &mut tables);
        tables.insert(0, ("headers".to_owned(), headers));
        tables.push(("expect".to_owned(), self.checks(&step.expect, line)));
        if path.starts_with("journey") {
            tables.push(("check".to_owned(), self.checks(&step.check, line)));
        }
        let captures = self.captures(step);
        self.until(&step.guard, line);
        tables.push(("capture".to_owned(), captures));
        self.tables(path, tables);
    }

    /// Writes one of the requests that are sent in turn.
    fn target(&mut self, step: &DraftStep, base: Option<&Url>) {
        let url = step.url.settled().unwrap_or_default();
        let own = crate::place::split_origin(&url);
        let is_first = own.as_ref().map(|(origin, _)| origin.origin())
            == self.server.origin.as_ref().map(Url::origin);
        let url = match (base, &own) {
            (Some(base), Some((_, end))) if is_first => {
                format!("{}{}", base.as_str().trim_end_matches('/'), &url[*end..])
            }
            (base, None) => {
                let base = base.map_or(crate::place::NO_SERVER, Url::as_str);
                format!("{}{url}", base.trim_end_matches('/'))
            }
            _ => url,
        };
        put!(self.out, "\n[[targets]]\nurl = {}\n", text(&url));
        let usual = if matches!(step.body, Body::None) { "GET" } else { "POST" };
        if step.method != usual {
            put!(self.out, "method = {}\n", text(&step.method));
        }
        if !step.headers.is_empty() {
            let header = |(name, value): &(String, Text)| {
                one_line(&format!("{name}: {}", value.settled().unwrap_or_default()))
            };
            put!(self.out, "headers = {}\n", list(step.headers.iter().map(header)));
        }
        match &step.body {
            Body::Text(body) => {
                put!(self.out, "body = {}\n", text(&body.settled().unwrap_or_default()))
            }
            Body::File(file) => put!(self.out, "body_file = {}\n", text(file)),
            _ => {}
        }
    }

    /// Writes small tables inline; large ones follow all keys.
    fn tables(&mut self, path: &str, tables: Vec<(String, Vec<(String, String)>)>) {
        let mut large = Vec::new();
        for (name, rows) in tables.into_iter().filter(|(_, rows)| !rows.is_empty()) {
            let short = inline(&rows);
            if name.len() + short.len() <= INLINE_MAX && !short.contains('\n') {
                put!(self.out, "{name} = {short}\n");
            } else {
                large.push((name, rows));
            }
        }
        for (name, rows) in large {
            put!(self.out, "[{path}.{name}]\n");
            for (name, value) in rows {
                put!(self.out, "{name} = {value}\n");
            }
        }
    }

    fn pairs(&mut self, pairs: &[(String, Text)], line: usize) -> Vec<(String, String)> {
        let pair =
            |(name, value): &(String, Text)| (key(name), one_line(&self.names.render(value, line)));
        pairs.iter().map(pair).collect()
    }

    fn body(
        &mut self,
        body: &Body,
        line: usize,
        tables: &mut Vec<(String, Vec<(String, String)>)>,
    ) {
        match body {
            Body::None => {}
            Body::Text(body) => {
                let body = self.names.render(body, line);
                put!(self.out, "body = {}\n", text(&body));
            }
            Body::File(file) => put!(self.out, "body-file = {}\n", text(file)),
            Body::Form(fields) => {
                let fields = self.pairs(fields, line);
                match fields.is_empty() {
                    true => self.out.push_str("body = \"\"\n"),
                    false => tables.push(("form".to_owned(), fields)),
                }
            }
            Body::Multipart(fields, files) => {
                let upload = |file: &FormUpload| {
                    let mut rows = vec![
                        ("field".to_owned(), one_line(&file.field)),
                        ("file".to_owned(), one_line(&file.file)),
                    ];
                    rows.extend(
                        file.media_type.as_ref().map(|it| ("type".to_owned(), one_line(it))),
                    );
                    inline(&rows)
                };
                put!(self.out, "upload = {}\n", list(files.iter().map(upload)));
                let fields = self.pairs(fields, line);
                tables.push(("form".to_owned(), fields));
            }
        }
    }

    fn guard(&mut self, guard: &DraftGuard, line: usize) {
        let when = self.conditions(&guard.when, line);
        if !when.is_empty() {
            put!(self.out, "when = {}\n", inline(&when));
        }
        if let Some(chance) = guard.chance {
            let share = (chance * 100.0).clamp(0.000_1, 100.0);
            put!(self.out, "chance = \"{}%\"\n", super::number(share));
        }
        match guard.repeat {
            Some((low, high)) if low == high => put!(self.out, "repeat = {low}\n"),
            Some((low, high)) => put!(self.out, "repeat = \"{low}..{high}\"\n"),
            None => {}
        }
    }

    fn until(&mut self, guard: &DraftGuard, line: usize) {
        let until = self.conditions(&guard.until, line);
        if !until.is_empty() {
            put!(self.out, "until = {}\n", inline(&until));
        }
    }

    fn conditions(
        &mut self,
        conditions: &[(String, DraftRule)],
        line: usize,
    ) -> Vec<(String, String)> {
        let mut rows: Vec<(String, String)> = Vec::new();
        for (name, rule) in conditions {
            let Some(place) = self.names.single(name, line) else {
                let why = "its value combines several variables, which a condition cannot name";
                self.names.left_out.add(line, format!("condition on {name}"), why);
                continue;
            };
            let rule = self.rule(rule, line);
            let name = key(&place);
            if rows.iter().all(|(known, _)| *known != name) {
                rows.push((name, rule));
            }
        }
        rows
    }

    fn rule(&mut self, rule: &DraftRule, line: usize) -> String {
        match rule {
            DraftRule::Present => "true".to_owned(),
            DraftRule::Absent => "false".to_owned(),
            DraftRule::Exact(value) => one_line(&self.names.render(value, line)),
            DraftRule::OneOf(values) => {
                let values: Vec<String> =
                    values.iter().map(|value| one_line(&self.names.render(value, line))).collect();
                list(values.into_iter())
            }
            DraftRule::Contains(value) => {
                inline(&[("contains".to_owned(), one_line(&self.names.render(value, line)))])
            }
            DraftRule::Regex(value) => {
                inline(&[("regex".to_owned(), one_line(&self.names.render(value, line)))])
            }
        }
    }

    fn checks(&mut self, checks: &Checks, line: usize) -> Vec<(String, String)> {
        let mut rows = Vec::new();
        match &checks.status[..] {
            [] => {}
            [one] if one.parse::<u16>().is_ok() => rows.push(("status".to_owned(), one.clone())),
            many => rows.push(("status".to_owned(), texts(many))),
        }
        if !checks.headers.is_empty() {
            let headers: Vec<(String, String)> = checks
                .headers
                .iter()
                .map(|(name, rule)| (key(name), self.rule(rule, line)))
                .collect();
            rows.push(("headers".to_owned(), inline(&headers)));
        }
        let body = self.content(checks, line);
        if !body.is_empty() {
            rows.push(("body".to_owned(), inline(&body)));
        }
        if let Some(time) = checks.at_most {
            rows.push(("at-most".to_owned(), text(&super::span(time.max(Nanos(1_000))))));
        }
        rows
    }

    fn content(&mut self, checks: &Checks, line: usize) -> Vec<(String, String)> {
        let mut rows = Vec::new();
        if let Some(exact) = &checks.exact {
            rows.push(("exact".to_owned(), one_line(&self.names.render(exact, line))));
        }
        for (name, values) in
            [("contains", &checks.contains), ("lacks", &checks.lacks), ("regex", &checks.regex)]
        {
            if !values.is_empty() {
                let values: Vec<String> =
                    values.iter().map(|it| self.names.render(it, line)).collect();
                let values = list(values.iter().map(|value| one_line(value)));
                rows.push((name.to_owned(), values));
            }
        }
        rows.extend(checks.length.map(|length| ("length".to_owned(), length.to_string())));
        if checks.graphql {
            rows.push(("graphql".to_owned(), "true".to_owned()));
        }
        if !checks.json.is_empty() {
            let row = |(place, rule): &(String, JsonRule)| {
                let rule = match rule {
                    JsonRule::Text(value) => one_line(&self.names.render(value, line)),
                    JsonRule::Raw(value) => value.clone(),
                };
                (key(place), rule)
            };
            let json: Vec<(String, String)> = checks.json.iter().map(row).collect();
            rows.push(("json".to_owned(), inline(&json)));
        }
        rows
    }

    fn captures(&mut self, step: &DraftStep) -> Vec<(String, String)> {
        let mut rows = Vec::new();
        for capture in &step.captures {
            let mut pairs = Vec::new();
            match &capture.from {
                CaptureFrom::Status => pairs.push(("status", "true".to_owned())),
                CaptureFrom::Body => {}
                CaptureFrom::Header(name) => pairs.push(("header", one_line(name))),
                CaptureFrom::Cookie(name) => pairs.push(("cookie", one_line(name))),
                CaptureFrom::Json(place) => pairs.push(("json", one_line(place))),
                CaptureFrom::Css(css, attribute) => {
                    pairs.push(("css", one_line(css)));
                    pairs.extend(attribute.as_ref().map(|it| ("attribute", one_line(it))));
                }
            }
            if let Some(regex) = &capture.regex {
                pairs.push(("regex", one_line(&self.names.render(regex, step.line))));
            }
            pairs.extend(capture.take.map(|take| ("take", one_line(take))));
            if capture.user || step.once {
                pairs.push(("scope", one_line("user")));
            }
            if capture.optional {
                pairs.push(("optional", "true".to_owned()));
            }
            let pairs: Vec<(String, String)> =
                pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
            let name = self.names.capture(&capture.name);
            rows.push((key(&name), inline(&pairs)));
        }
        rows
    }
}
