//! Plan → TOML.

use super::VERSION;
use super::keys::{Keys, TOP};
use super::scenarios::scenario_table;
use super::shape::*;
use crate::options::KeyValue;
use crate::options::Scalar;
use crate::options::field::{ContentMask, show_content};
use crate::options::grammar::show_header;
use crate::rules::show_span;
use crate::secrets::{MASK, Secrets, is_secret_header, mask_content, mask_named};
use crate::*;
use units::Nanos;

/// Returns the plan as a file that [`from_toml`] reads back: every field by name.
pub fn to_toml(plan: &Plan, secrets: Secrets) -> String {
    let journeys = match secrets {
        Secrets::Shown => journey::shown,
        Secrets::Masked => journey::masked,
    };
    written(plan, secrets, plan.journeys.as_ref().map(journeys))
}

/// Returns a text that identifies a plan without its secrets: it is the same for the plan as read,
/// and for the plan that [`from_toml`] makes from it elsewhere, where the files of its feeders are
/// missing.
pub fn identity(plan: &Plan) -> String {
    let journeys = plan.journeys.as_ref().map(journey::masked_without_files);
    written(plan, Secrets::Masked, journeys)
}

/// Returns a plan as a file, with the tables of `journeys`.
fn written(plan: &Plan, secrets: Secrets, journeys: Option<toml::Table>) -> String {
    let names_http2 = plan.request.version.has_streams() || plan.http2 != Http2Plan::default();
    let names_websocket = plan.is_websocket() || plan.websocket != Default::default();
    let part = |key: &str| journeys.as_ref().and_then(|all| all.get(key).cloned());
    let top = Keys::<TOP>::show(plan, secrets);
    let file = PlanFile {
        version: Some(VERSION),
        seed: top.one("seed"),
        order: top.one("order").and_then(|order| order.typed()),
        sequence: Some(plan.sequence.clone()),
        not_imported: Some(plan.not_imported.clone()).filter(|all| !all.is_empty()),
        url: plan.journeys.as_ref().map(|journeys| journeys.base.as_str().to_owned()),
        urls_file: None,
        request: Some(Keys::show(plan, secrets)),
        token: (plan.token != TokenPlan::default()).then(|| Keys::show(plan, secrets)),
        script: plan.script.as_ref().map(script_table),
        specweb99: plan.specweb99.map(|it| Specweb99Table {
            directories: Some(Scalar::whole(u64::from(it.directories))),
            files_seed: Some(Scalar::whole(it.files_seed)),
        }),
        connection: Some(Keys::show(plan, secrets)),
        http2: names_http2.then(|| Keys::show(plan, secrets)),
        grpc: plan.has_grpc().then(|| Keys::show(plan, secrets)),
        websocket: names_websocket.then(|| Keys::show(plan, secrets)),
        tls: Some(Keys::show(plan, secrets)),
        load: plan.scenarios.is_empty().then(|| Keys::show(plan, secrets)),
        scenario: Some(plan.scenarios.iter().map(|one| scenario_table(plan, one)).collect())
            .filter(|all: &Vec<ScenarioTable>| !all.is_empty()),
        stop: Some(Keys::show(plan, secrets)),
        timeouts: Some(Keys::show(plan, secrets)),
        expect: Some(Keys::show(plan, secrets)),
        measure: Some(Keys::show(plan, secrets)),
        driver: Some(Keys::show(plan, secrets)),
        targets: journeys
            .is_none()
            .then(|| plan.targets.iter().map(|target| target_table(target, secrets)).collect()),
        vars: part("vars"),
        feeder: part("feeder"),
        setup: part("setup"),
        journey: part("journey"),
        teardown: part("teardown"),
    };
    let text = toml::to_string(&file).expect("the tables hold nothing that TOML cannot hold");
    let mut lines = "# A plan for loadstone: `loadstone run FILE.toml` runs it.\n".to_owned();
    if text.contains(MASK) {
        lines.push_str("# Secrets are masked: insert them before running it.\n");
    }
    lines + &text
}

/// Maximum length of a plan that is shortened; longer plans are lists of requests.
const BRIEF_BYTES_MAX: usize = 1 << 20;

/// Returns a printed plan without default values: a plan file for the same run. `None` if the text
/// is not a plan, or too long.
pub fn to_brief_toml(toml: &str) -> Option<String> {
    if toml.len() > BRIEF_BYTES_MAX {
        return None;
    }
    let whole: toml::Table = toml::from_str(toml).ok()?;
    let defaults = to_toml(&Plan::for_targets(Vec::new()), Secrets::Masked);
    let mut brief = differing(&whole, &toml::from_str(&defaults).ok()?);
    // the file begins with its version
    brief.remove("version");
    if let Some(toml::Value::Array(targets)) = brief.get_mut("targets") {
        shorten_targets(targets);
    }
    let brief = toml::to_string(&brief).ok()?;
    let comments: String =
        toml.split_inclusive('\n').take_while(|it| it.starts_with('#')).collect();
    let brief = format!("{comments}version = {VERSION}\n{brief}");
    // a few defaults depend on other keys, such as the cookies of journeys
    let again = |text: &str| Some(to_toml(&from_masked_toml(text).ok()?, Secrets::Masked));
    let same = again(&brief)? == again(toml)?;
    Some(if same { brief } else { toml.to_owned() })
}

/// Removes from each target the keys that a URL implies.
fn shorten_targets(targets: &mut [toml::Value]) {
    let usual = url::Url::parse("http://localhost/").ok().map(TargetPlan::new);
    let usual = usual.map(|target| target_table(&target, Secrets::Masked));
    let Some(mut usual) = usual.and_then(|table| toml::Table::try_from(table).ok()) else { return };
    usual.remove("url");
    for target in targets.iter_mut().filter_map(toml::Value::as_table_mut) {
        *target = differing(target, &usual);
    }
}

/// Returns the entries of a table that differ from `defaults`.
fn differing(table: &toml::Table, defaults: &toml::Table) -> toml::Table {
    let mut kept = toml::Table::new();
    for (key, value) in table {
        let known = defaults.get(key);
        match (value, known) {
            (value, Some(known)) if value == known => {}
            (toml::Value::Table(inner), Some(toml::Value::Table(known))) => {
                let inner = differing(inner, known);
                if !inner.is_empty() {
                    kept.insert(key.clone(), toml::Value::Table(inner));
                }
            }
            (value, _) => {
                kept.insert(key.clone(), value.clone());
            }
        }
    }
    kept
}

fn target_table(target: &TargetPlan, secrets: Secrets) -> TargetTable {
    let mask = ContentMask::Values.unless_shown(secrets);
    let (body, body_base64) = content(target.body.as_deref(), mask);
    let masked = target.raw.as_ref().filter(|_| secrets == Secrets::Masked);
    let masked = masked.map(|raw| mask_raw(raw));
    let raw = masked.as_deref().or(target.raw.as_deref());
    let (raw, raw_base64) = content(raw, ContentMask::Nothing);
    let headers =
        target.headers.iter().map(|field| show_header(field, secrets)).collect::<Vec<_>>();
    TargetTable {
        url: Some(match secrets {
            Secrets::Shown => target.url.as_str().to_owned(),
            Secrets::Masked => mask_named(target.url.as_str(), MASK),
        }),
        name: target.name.as_deref().map(Scalar::text),
        weight: Some(Scalar::Number(target.weight)),
        method: Scalar::or_off(target.method.as_deref(), Scalar::text),
        headers: Some(headers).filter(|headers| !headers.is_empty()),
        body,
        body_base64,
        body_file: None,
        raw,
        raw_base64,
        raw_file: None,
    }
}

/// Returns a request as bytes, with masked values in its target, in secret fields of its head, and
/// in its body.
fn mask_raw(raw: &[u8]) -> Vec<u8> {
    let mut masked = Vec::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
        let (line, after) = rest.split_at(end + 1);
        if matches!(line, b"\r\n" | b"\n") {
            break;
        }
        let name = line.split(|byte| *byte == b':').next().unwrap_or_default();
        let secret = name.len() < line.len();
        if secret && std::str::from_utf8(name).is_ok_and(|name| is_secret_header(name.trim())) {
            let end: &[u8] = if line.ends_with(b"\r\n") { b"\r\n" } else { b"\n" };
            masked.extend([name, b": ", MASK.as_bytes(), end].concat());
        } else {
            masked.extend(mask_content(line, MASK));
        }
        rest = after;
    }
    masked.extend(mask_content(rest, MASK));
    masked
}

fn script_table(script: &ScriptPlan) -> ScriptTable {
    let (text, text_base64) = content(Some(&script.text), ContentMask::Nothing);
    ScriptTable {
        name: Some(script.name.clone()),
        text,
        text_base64,
        text_file: None,
        args: Some(script.args.clone()),
    }
}

pub(super) fn span(span: Nanos) -> Scalar {
    Scalar::Text(show_span(span))
}

/// Returns content as text, or, if it is not text, as base64 for a separate key.
fn content(bytes: Option<&[u8]>, mask: ContentMask) -> (Option<Scalar>, Option<String>) {
    match show_content(bytes, mask) {
        ("", KeyValue::One(text)) => (Some(text), None),
        (_, KeyValue::One(Scalar::Text(code))) => (None, Some(code)),
        _ => (None, None),
    }
}
