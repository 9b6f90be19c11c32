//! TOML → plan. Every message names the table and the key.

use super::VERSION;
use super::keys::{Keys, PlanTraces, REQUEST, TOP};
use super::scenarios::read_scenarios;
use super::shape::*;
use crate::options::Scalar;
use crate::options::field::read_content;
use crate::options::grammar::whole;
use crate::options::{Inputs, KeyValue};
use crate::secrets::{MASK, is_secret_header};
use crate::*;
use units::{ParseError, quoted};

/// Parses a plan file. Absent keys have `run`'s defaults; `files` reads referenced files.
///
/// # Errors
/// Fails for invalid TOML, an unknown key, an invalid value, a masked secret, an unreadable file.
/// [`validate`] checks whether the parts fit together.
pub fn from_toml(text: &str, files: &dyn FileSource) -> Result<Plan, ParseError> {
    let plan = read(text, files)?;
    match masked_key(&plan) {
        None => Ok(plan),
        Some(("feeder", name)) => Err(ParseError(format!(
            "the plan's feeder {name}: its rows were masked when the plan was printed; put its file \
             back in place, or give the rows as text"
        ))),
        Some((table, key)) => {
            let why = "its secret was masked when the plan was printed; insert it before the run";
            Err(Table(table).fault(&key, why))
        }
    }
}

/// Parses a plan with masked secrets, to show it and never to run it: the masks are kept as values.
///
/// # Errors
/// Fails like [`from_toml`], but masks are permitted.
pub fn from_masked_toml(text: &str) -> Result<Plan, ParseError> {
    read(text, &NoFiles)
}

/// Returns the first key that [`to_toml`] masked.
fn masked_key(plan: &Plan) -> Option<(&'static str, String)> {
    let masked = |text: &str| text.contains(MASK);
    let request = &plan.request;
    let header = |(name, value): &(String, String)| is_secret_header(name) && masked(value);
    let content = |bytes: &Option<Vec<u8>>| {
        bytes.as_ref().is_some_and(|bytes| masked(&String::from_utf8_lossy(bytes)))
    };
    let own = |target: &TargetPlan| target.headers.iter().any(header);
    if let Some(row) = plan.targets.iter().position(own) {
        return Some(("[targets]", format!("headers of target {}", row + 1)));
    }
    if let Some(row) = plan.targets.iter().position(|target| masked(target.url.as_str())) {
        return Some(("[targets]", format!("URL of target {}", row + 1)));
    }
    if let Some(row) = plan.targets.iter().position(|target| content(&target.raw)) {
        return Some(("[targets]", format!("raw of target {}", row + 1)));
    }
    if let Some(row) = plan.targets.iter().position(|target| content(&target.body)) {
        return Some(("[targets]", format!("body of target {}", row + 1)));
    }
    let proxy = plan.connection.proxy.as_ref().and_then(url::Url::password);
    let in_request = |key: &str| Some(("request", key.to_owned()));
    if let Some(feeder) = plan.journeys.as_ref().and_then(journey::masked_feeder) {
        return Some(("feeder", quoted(&feeder.name)));
    }
    if plan.journeys.as_ref().is_some_and(journey::is_masked) {
        return Some(("journey", "somewhere".to_owned()));
    }
    match &request.auth {
        _ if request.headers.iter().any(header) => in_request("headers"),
        _ if content(&request.body) => in_request("body"),
        _ if content(&plan.grpc.message) => Some(("grpc", "message".to_owned())),
        _ if content(&plan.websocket.message) => Some(("websocket", "message".to_owned())),
        Some(Auth::Basic { password, .. }) if masked(password) => in_request("user"),
        Some(Auth::Bearer(token)) if masked(token) => in_request("bearer"),
        Some(Auth::Digest { password, .. }) if masked(password) => in_request("digest"),
        Some(Auth::AwsSigV4 { secret, .. }) if masked(secret) => in_request("user"),
        _ if masked(&plan.token.client_secret) => Some(("token", "client_secret".to_owned())),
        _ if proxy.is_some_and(masked) => Some(("connection", "proxy".to_owned())),
        _ if plan.tls.key.as_deref() == Some(MASK.as_bytes()) => Some(("tls", "key".to_owned())),
        _ => None,
    }
}

/// Use of the tables of journeys.
struct Uses {
    journeys: bool,
    /// Variables or feeders belong to the message of a gRPC call without a journey.
    message_values: bool,
}

fn uses_of(file: &PlanFile) -> Uses {
    let is_grpc_url = file.url.as_deref().is_some_and(|url| http_url(url).is_some());
    let has_steps = [&file.setup, &file.journey, &file.teardown].into_iter().any(Option::is_some);
    let has_values = file.vars.is_some() || file.feeder.is_some();
    let message_values = !has_steps && has_values && is_grpc_url;
    Uses { journeys: has_steps || (has_values && !message_values), message_values }
}

fn read(text: &str, files: &dyn FileSource) -> Result<Plan, ParseError> {
    if text.len() > FILE_BYTES_MAX {
        return Err(ParseError("the plan is longer than 1 GiB".to_owned()));
    }
    let file: PlanFile = toml::from_str(text).map_err(|error| match is_check_plan(text) {
        true => ParseError("this is a check plan: run it with loadstone check".to_owned()),
        false => ParseError(format!("the plan is invalid: {}", error.to_string().trim_end())),
    })?;
    check_version(file.version)?;
    let Uses { journeys, message_values } = uses_of(&file);
    if journeys && (file.targets.is_some() || file.urls_file.is_some() || file.script.is_some()) {
        let why = "a plan with journeys has only url: drop targets, urls_file and script";
        return Err(ParseError(why.to_owned()));
    }
    // the server that is measured; the setup may only log in elsewhere
    let mut steps = [&file.journey, &file.setup].into_iter().flatten();
    let url = file.url.or_else(|| steps.find_map(|steps| origin_of(first_url(steps)?)));
    let grpc = url.as_deref().and_then(http_url);
    let (is_grpc, url) = (grpc.is_some(), grpc.or(url));
    let (targets, login) = read_targets(file.targets, url, file.urls_file, files)?;
    let mut plan = PlanDraft::new(Plan::for_targets(targets));
    if is_grpc && journeys {
        // its steps are gRPC calls or requests, each over HTTP/2
        plan.request.version = HttpVersion::Http2;
    } else if is_grpc {
        plan.use_grpc();
    }
    if journeys {
        let base = plan.targets.first().map(|target| target.url.clone());
        let base = base.ok_or_else(|| Table("").fault("url", "journeys need one"))?;
        let read = journey::read(text, &base, files)?;
        plan.targets = journey::targets(&read).into();
        plan.journeys = Some(read);
        // a user has cookies by default
        plan.request.cookies = true;
    }
    plan.sequence = file.sequence.unwrap_or_default();
    plan.not_imported = file.not_imported.unwrap_or_default();
    let connection = file.connection.unwrap_or_default();
    let traces = PlanTraces::read(connection.texts("traces"), files)?;
    let inputs = Inputs { files, traces: &traces };
    let top = [("seed", file.seed), ("order", file.order.map(Scalar::Text))];
    Keys::<TOP>::new(top).read(&mut plan, inputs)?;
    read_request(file.request.unwrap_or_default(), &mut plan, login, inputs)?;
    file.token.unwrap_or_default().read(&mut plan, inputs)?;
    read_sources(file.script, file.specweb99, &mut plan, files)?;
    connection.read(&mut plan, inputs)?;
    file.http2.unwrap_or_default().read(&mut plan, inputs)?;
    file.grpc.unwrap_or_default().read(&mut plan, inputs)?;
    file.websocket.unwrap_or_default().read(&mut plan, inputs)?;
    file.tls.unwrap_or_default().read(&mut plan, inputs)?;
    file.timeouts.unwrap_or_default().read(&mut plan, inputs)?;
    file.expect.unwrap_or_default().read(&mut plan, inputs)?;
    file.measure.unwrap_or_default().read(&mut plan, inputs)?;
    file.driver.unwrap_or_default().read(&mut plan, inputs)?;
    if file.load.is_some() && file.scenario.is_some() {
        let why = "each scenario has its own load: drop [load], or turn it into a scenario";
        return Err(Table("").fault("load", why));
    }
    file.load.unwrap_or_default().read(&mut plan, inputs)?;
    let stop = file.stop.unwrap_or_default();
    let timed = stop.has("duration");
    stop.read(&mut plan, inputs)?;
    read_scenarios(file.scenario.unwrap_or_default(), &mut plan, timed, inputs)?;
    if message_values || plan.has_message_template() {
        insert_values(&mut plan, [("vars", file.vars), ("feeder", file.feeder)], files)?;
    }
    plan.settle_websocket();
    Ok(plan.settle())
}

/// Inserts values into the message of a gRPC call without a journey.
fn insert_values(
    plan: &mut Plan,
    tables: [(&str, Option<toml::Value>); 2],
    files: &dyn FileSource,
) -> Result<(), ParseError> {
    let tables = tables.into_iter().filter_map(|(key, table)| Some((key.to_owned(), table?)));
    if !plan.has_message_template() {
        return Err(ParseError(
            "the plan has vars or a feeder, no [[journey]] that uses them, and no {{…}} in its \
             message"
                .to_owned(),
        ));
    }
    plan.insert_into_message(tables.collect(), files)
        .map_err(|why| Table("grpc").fault("message", why))
}

fn is_check_plan(text: &str) -> bool {
    let table = toml::from_str::<toml::Table>(text).unwrap_or_default();
    table.contains_key("step") || table.contains_key("check")
}

fn check_version(version: Option<i64>) -> Result<(), ParseError> {
    match version {
        Some(VERSION) => Ok(()),
        None => Err(ParseError("the plan must begin with `version = 1`".to_owned())),
        Some(other) => Err(ParseError(format!(
            "the plan has version {other}; this loadstone reads version {VERSION}"
        ))),
    }
}

/// A table with its name, for messages.
#[derive(Clone, Copy)]
pub(super) struct Table(pub(super) &'static str);

impl Table {
    pub(super) fn fault(self, key: &str, why: impl std::fmt::Display) -> ParseError {
        match self.0 {
            "" => ParseError(format!("the plan's {key}: {why}")),
            table => ParseError(format!("the plan's [{table}] {key}: {why}")),
        }
    }

    /// Sets a value that every plan has.
    pub(super) fn set<T>(
        self,
        key: &str,
        given: Option<Scalar>,
        slot: &mut T,
        read: impl Fn(&str) -> Result<T, ParseError>,
    ) -> Result<(), ParseError> {
        let Some(given) = given else { return Ok(()) };
        let typed = given.typed().ok_or_else(|| self.fault(key, "it cannot be false"))?;
        *slot = read(&typed).map_err(|error| self.fault(key, error))?;
        Ok(())
    }

    /// Sets a value that may be `false` for none.
    pub(super) fn set_or_off<T>(
        self,
        key: &str,
        given: Option<Scalar>,
        slot: &mut Option<T>,
        read: impl Fn(&str) -> Result<T, ParseError>,
    ) -> Result<(), ParseError> {
        let Some(given) = given else { return Ok(()) };
        let read = |typed: String| read(&typed).map_err(|error| self.fault(key, error));
        *slot = given.typed().map(read).transpose()?;
        Ok(())
    }

    /// Reads bytes given as text, as base64 or by a file's name; at most one of the three keys is
    /// present.
    fn set_content(
        self,
        key: &str,
        given: (Option<Scalar>, Option<String>, Option<String>),
        slot: &mut Option<Vec<u8>>,
        files: &dyn FileSource,
    ) -> Result<(), ParseError> {
        let (text, code, path) = given;
        let others = [("_base64", code), ("_file", path)];
        let others = others.map(|(ending, text)| (ending, text.map(Scalar::Text)));
        let given = [("", text)].into_iter().chain(others);
        let mut given = given.filter_map(|(ending, value)| Some((ending, value?)));
        let Some((ending, value)) = given.next() else { return Ok(()) };
        if given.next().is_some() {
            return Err(self.fault(key, duplicate_error(key)));
        }
        let inputs = Inputs { files, traces: &wan::NoTraces };
        read_content(slot, ending, KeyValue::One(value), inputs)
            .map_err(|error| self.fault(&format!("{key}{ending}"), error))
    }
}

/// Returns the error for content given in several places.
pub(super) fn duplicate_error(key: &str) -> String {
    format!("give it once, not also as {key}_base64 or {key}_file")
}

fn read_script(table: ScriptTable, files: &dyn FileSource) -> Result<ScriptPlan, ParseError> {
    let place = Table("script");
    let name = table.name.or_else(|| table.text_file.clone());
    let mut text = None;
    place.set_content(
        "text",
        (table.text, table.text_base64, table.text_file),
        &mut text,
        files,
    )?;
    let why = "it is missing; give it here or as text_file";
    let text = text.ok_or_else(|| place.fault("text", why))?;
    let name = name.unwrap_or_else(|| "script".to_owned());
    Ok(ScriptPlan { name, text, args: table.args.unwrap_or_default(), files: Vec::new() })
}

/// Returns the URL of the first step that is a request or a gRPC call.
fn first_url(steps: &toml::Value) -> Option<&str> {
    match steps {
        toml::Value::Array(all) => all.iter().find_map(first_url),
        toml::Value::Table(step) => {
            let url = step.get("url").or_else(|| step.get("grpc"));
            url.map_or_else(|| first_url(step.get("step")?), toml::Value::as_str)
        }
        _ => None,
    }
}

/// Returns the origin of a whole URL: the base of journeys whose plan has none.
fn origin_of(url: &str) -> Option<String> {
    let http = http_url(url);
    let is_grpc = http.is_some();
    let url = url::Url::parse(http.as_deref().unwrap_or(url)).ok()?;
    let url = Some(url).filter(|url| ["http", "https"].contains(&url.scheme()))?;
    let origin = url.origin().ascii_serialization();
    // the scheme of gRPC chooses HTTP/2
    Some(if is_grpc { origin.replacen("http", "grpc", 1) } else { origin })
}

type Targets = (Vec<TargetPlan>, Option<Auth>);

fn read_targets(
    targets: Option<Vec<TargetTable>>,
    url: Option<String>,
    urls_file: Option<String>,
    files: &dyn FileSource,
) -> Result<Targets, ParseError> {
    let top = Table("");
    match (targets, url, urls_file) {
        (Some(targets), None, None) => {
            let read = |(index, target)| read_target(index, target, files);
            let targets = targets.into_iter().enumerate().map(read).collect::<Result<_, _>>()?;
            Ok((targets, None))
        }
        (Some(_), ..) => Err(top.fault("targets", "give either them, or url and urls_file")),
        (None, Some(url), None) => {
            let Location { url, auth } =
                parse_target_url(&url).map_err(|error| top.fault("url", error))?;
            Ok((vec![TargetPlan::new(url)], auth))
        }
        (None, base, Some(path)) => {
            let base = base.map(|base| parse_url(&base)).transpose();
            let base = base.map_err(|error| top.fault("url", error))?;
            let list = files.read(&path).map_err(|why| top.fault("urls_file", why))?;
            let list = String::from_utf8(list)
                .map_err(|_| top.fault("urls_file", format!("{} is not UTF-8", quoted(&path))))?;
            let targets = parse_url_list(&list, base.as_ref().map(|base| &base.url))
                .map_err(|error| top.fault("urls_file", error))?;
            Ok((targets, base.and_then(|base| base.auth)))
        }
        (None, None, None) => Err(ParseError(
            "the plan has no URL: give `url = \"http://…\"`, urls_file, or [[targets]]".to_owned(),
        )),
    }
}

fn read_target(
    index: usize,
    target: TargetTable,
    files: &dyn FileSource,
) -> Result<TargetPlan, ParseError> {
    let table = Table("[targets]");
    let at = |error: ParseError| ParseError(format!("target {}: {error}", index + 1));
    let text = target.url.ok_or_else(|| at(table.fault("url", "it is missing")))?;
    let Location { url, auth } =
        parse_target_url(&text).map_err(|error| at(table.fault("url", error)))?;
    if auth.is_some() {
        let why = "it contains a login; give `user = \"name:password\"` in [request] instead";
        return Err(at(table.fault("url", why)));
    }
    let mut plan = TargetPlan::new(url);
    table
        .set_or_off("name", target.name, &mut plan.name, |name| Ok(name.to_owned()))
        .map_err(at)?;
    table.set("weight", target.weight, &mut plan.weight, urls::parse_weight).map_err(at)?;
    table.set_or_off("method", target.method, &mut plan.method, rules::parse_method).map_err(at)?;
    plan.headers = read_headers(table, target.headers).map_err(at)?;
    let body = (target.body, target.body_base64, target.body_file);
    table.set_content("body", body, &mut plan.body, files).map_err(at)?;
    let raw = (target.raw, target.raw_base64, target.raw_file);
    table.set_content("raw", raw, &mut plan.raw, files).map_err(at)?;
    Ok(plan)
}

fn read_headers(
    table: Table,
    lines: Option<Vec<String>>,
) -> Result<Vec<(String, String)>, ParseError> {
    let lines = lines.unwrap_or_default().into_iter();
    let read = |line: String| rules::parse_header(&line);
    lines.map(read).collect::<Result<_, _>>().map_err(|error| table.fault("headers", error))
}

/// Reads the request. A login may be given in one place, including the URL.
fn read_request(
    request: Keys<REQUEST>,
    plan: &mut Plan,
    login: Option<Auth>,
    inputs: Inputs<'_>,
) -> Result<(), ParseError> {
    let keys = ["user", "bearer", "digest"].into_iter().filter(|key| request.is_set(key));
    if keys.count() + usize::from(login.is_some()) > 1 {
        let why = "give one login only: here, as bearer or in the url";
        return Err(Table("request").fault("user", why));
    }
    let has_method = request.has("method");
    request.read(plan, inputs)?;
    plan.request.auth = plan.request.auth.take().or(login);
    if !has_method {
        plan.post_bodies();
    }
    Ok(())
}

/// Reads the source of requests that replaces targets.
fn read_sources(
    script: Option<ScriptTable>,
    specweb99: Option<Specweb99Table>,
    plan: &mut Plan,
    files: &dyn FileSource,
) -> Result<(), ParseError> {
    plan.script = script.map(|table| read_script(table, files)).transpose()?;
    plan.specweb99 = specweb99.map(read_specweb99).transpose()?;
    Ok(())
}

fn read_specweb99(file: Specweb99Table) -> Result<Specweb99Plan, ParseError> {
    let table = Table("specweb99");
    let (mut directories, mut files_seed): (u64, u64) = (0, 1);
    table.set("directories", file.directories, &mut directories, whole)?;
    table.set("files_seed", file.files_seed, &mut files_seed, whole)?;
    Ok(Specweb99Plan { directories: u32::try_from(directories).unwrap_or(u32::MAX), files_seed })
}

const FILE_BYTES_MAX: usize = 1 << 30;
