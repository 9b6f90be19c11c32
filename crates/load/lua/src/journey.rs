//! Journeys by a script: each iteration of a user is a coroutine that yields requests.

use crate::state::{bounded, open, sentence};
use crate::{ScriptTrouble, json, socket};
use mlua::{Function, Lua, LuaString, Table, Value};
use protocol::http1::fields;
use std::collections::BTreeSet;
use units::{Nanos, Purpose, Seed};
use url::Url;
use workload::{ActedCall, Actor, ActorAction, ActorTurn, CallResponse, IterationStart};

/// A sleep is shortened to a day.
const SLEEP_MAX_S: f64 = 86_400.0;

/// Arguments of a journey's script.
#[derive(Clone, Debug)]
pub struct JourneySpec {
    /// Name of the file, for messages.
    pub name: String,
    pub text: Vec<u8>,
    /// Arguments from `args[1]` on; `args[0]` is the base.
    pub args: Vec<String>,
    pub steps: Vec<String>,
    /// Base of relative URLs.
    pub base: Url,
    /// Hosts that the script may call in addition to the base.
    pub servers: Vec<Url>,
    /// Variables, and values that the setup captured.
    pub given: Vec<(String, String)>,
    pub seed: u64,
    /// Redirects the script's output to standard error.
    pub aside: bool,
}

/// A script's description of its journey.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outline {
    pub steps: Vec<String>,
    pub servers: Vec<String>,
}

/// One worker's state of a journey's script.
#[derive(Debug)]
pub struct LuaActor {
    seed: Seed,
    begin: Function,
    resume: Function,
    refuse: Function,
    leave_off: Function,
    forget: Function,
    flush: Function,
    // last: fields that refer to it are dropped first
    lua: Lua,
}

// SAFETY: as for `LuaState`: every reference into the state is a field of this struct or inside the
// state itself; no reference escapes, and nothing in the state is bound to a thread.
unsafe impl Send for LuaActor {}

impl LuaActor {
    /// Loads the script and calls its `init`.
    ///
    /// # Errors
    /// Fails if the script is invalid, or has no function `journey`.
    pub fn new(spec: &JourneySpec) -> Result<LuaActor, ScriptTrouble> {
        LuaActor::make(spec).map_err(|error| crate::state::trouble(&error))
    }

    fn make(spec: &JourneySpec) -> mlua::Result<LuaActor> {
        let lua = open(spec.aside)?;
        let given = lua.create_table()?;
        for (name, value) in &spec.given {
            given.raw_set(name.as_str(), value.as_str())?;
        }
        let prelude = lua.load(include_str!("journey.lua")).set_name("=journey");
        let native = native(&lua, &spec.base, &spec.servers)?;
        let ways: Table = prelude.call((native, spec.steps.clone(), given))?;
        let chunk = lua.load(spec.text.as_slice()).set_name(format!("@{}", spec.name));
        bounded(&lua, || chunk.exec())?;
        if lua.globals().get::<Function>("journey").is_err() {
            let why = format!("{}: it has no function journey(user)", spec.name);
            return Err(mlua::Error::runtime(why));
        }
        if let Ok(init) = lua.globals().get::<Function>("init") {
            let args = lua.create_table()?;
            args.raw_set(0, spec.base.as_str())?;
            for (row, arg) in (1..).zip(&spec.args) {
                args.raw_set(row, arg.as_str())?;
            }
            bounded(&lua, || init.call::<()>(args))?;
        }
        Ok(LuaActor {
            seed: Seed(spec.seed),
            begin: ways.raw_get("begin")?,
            resume: ways.raw_get("resume")?,
            refuse: ways.raw_get("refuse")?,
            leave_off: ways.raw_get("leave_off")?,
            forget: ways.raw_get("forget")?,
            flush: ways.raw_get("flush")?,
            lua,
        })
    }

    fn begin_iteration(&self, begun: &IterationStart<'_>) -> mlua::Result<ActorTurn> {
        let values = self.lua.create_table()?;
        for (name, value) in begun.values {
            values.raw_set(name.as_str(), value.as_str())?;
        }
        // the numbers of a user, from its first iteration to its last
        let mut stream = self.seed.stream(Purpose::Scripts, begun.user);
        let mut word = || f64::from((stream.next_u64() >> 32) as u32);
        let (a, b, c) = (word(), word(), word());
        let (user, iteration) = (begun.user as f64, begun.iteration as f64);
        act(self.begin.call((user, iteration, values, a, b, c))?)
    }

    fn resumed(
        &self,
        user: u64,
        heard: Result<&CallResponse<'_>, &str>,
    ) -> mlua::Result<ActorTurn> {
        let user = user as f64;
        match heard {
            Ok(heard) => {
                let headers = headers(&self.lua, heard.head)?;
                let body = self.lua.create_string(heard.body)?;
                let seconds = heard.took.as_secs_f64();
                act(self.resume.call((user, heard.status, headers, body, seconds, heard.error))?)
            }
            Err(why) => act(self.refuse.call((user, why))?),
        }
    }
}

impl Drop for LuaActor {
    fn drop(&mut self) {
        // a script that has closed or replaced io has nothing to flush
        self.flush.call::<()>(()).ok();
    }
}

impl Actor for LuaActor {
    fn begin(&mut self, begun: &IterationStart<'_>) -> ActorTurn {
        self.begin_iteration(begun).unwrap_or_else(failure_turn)
    }

    fn resume(&mut self, user: u64, heard: Result<&CallResponse<'_>, &str>) -> ActorTurn {
        self.resumed(user, heard).unwrap_or_else(failure_turn)
    }

    fn end_early(&mut self, user: u64) {
        // the result belongs to an iteration that has ended
        self.leave_off.call::<()>(user as f64).ok();
    }

    fn forget(&mut self, user: u64) {
        // it only drops a table
        self.forget.call::<()>(user as f64).ok();
    }
}

/// Runs one turn of the program. Programs in Lua have no metrics.
fn turn(failure: Option<String>, checks: Vec<Option<String>>, action: ActorAction) -> ActorTurn {
    ActorTurn { failure, checks, values: Vec::new(), action }
}

/// Returns the turn that reports a failure outside the coroutine, such as exhausted memory.
fn failure_turn(error: mlua::Error) -> ActorTurn {
    turn(None, Vec::new(), ActorAction::Broke(sentence(&error)))
}

/// Returns fields by their names in lowercase; several of one name are joined (RFC 9110 section
/// 5.3).
fn headers(lua: &Lua, head: &[u8]) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    for (name, value) in fields::fields(head) {
        let name = lua.create_string(name.to_ascii_lowercase())?;
        let value = match table.raw_get::<Option<LuaString>>(&name)? {
            Some(before) => lua.create_string([&before.as_bytes()[..], b", ", value].concat())?,
            None => lua.create_string(value)?,
        };
        table.raw_set(name, value)?;
    }
    Ok(table)
}

/// Parses the action of a script from the prelude's values.
fn act(answer: Option<Table>) -> mlua::Result<ActorTurn> {
    let over = |wait| turn(None, Vec::new(), ActorAction::Over { wait });
    let Some(answer) = answer else { return Ok(over(Nanos::ZERO)) };
    let wait = nanos(answer.raw_get("wait")?);
    let failure: Option<LuaString> = answer.raw_get("failure")?;
    let mut checks = Vec::new();
    if let Some(found) = answer.raw_get::<Option<Table>>("checks")? {
        for value in found.sequence_values::<Value>() {
            checks.push(value?.as_string().map(|text| text.to_string_lossy()));
        }
    }
    let action = match (answer.raw_get::<Option<LuaString>>("why")?, answer.raw_get("request")?) {
        (Some(why), _) => ActorAction::Broke(why.to_string_lossy()),
        (None, Some(request)) => ActorAction::Call(Box::new(call(&request, wait)?)),
        (None, None) => ActorAction::Over { wait },
    };
    Ok(turn(failure.map(|text| text.to_string_lossy()), checks, action))
}

fn call(request: &Table, wait: Nanos) -> mlua::Result<ActedCall> {
    let url: LuaString = request.raw_get("url")?;
    let mut headers = Vec::new();
    let list: Table = request.raw_get("headers")?;
    let mut words = list.sequence_values::<LuaString>();
    while let (Some(name), Some(value)) = (words.next(), words.next()) {
        headers.push((name?.to_string_lossy(), value?.to_string_lossy()));
    }
    let body: Option<LuaString> = request.raw_get("body")?;
    let statuses: Option<Vec<u16>> = request.raw_get("statuses")?;
    Ok(ActedCall {
        wait,
        step: request.raw_get("step")?,
        method: request.raw_get::<LuaString>("method")?.to_string_lossy(),
        url: Url::parse(&url.to_string_lossy()).map_err(mlua::Error::external)?,
        headers,
        body: body.map(|body| body.as_bytes().to_vec()),
        statuses: statuses.unwrap_or_default(),
        socket: socket::call(&request.raw_get("socket")?)?,
    })
}

fn nanos(seconds: f64) -> Nanos {
    Nanos((seconds.clamp(0.0, SLEEP_MAX_S) * 1e9) as u64)
}

/// Installs host functions of a script. On failure they return nil and a reason: the prelude raises
/// the error, because it knows the script's line.
fn native(lua: &Lua, base: &Url, servers: &[Url]) -> mlua::Result<Table> {
    let native = lua.create_table()?;
    let allowed: BTreeSet<String> = servers.iter().chain([base]).map(server).collect();
    let base = base.clone();
    native.raw_set(
        "resolve",
        lua.create_function({
            let (base, allowed) = (base.clone(), allowed.clone());
            move |_, (from, text, query): (Option<String>, LuaString, Value)| {
                let from = from.and_then(|from| Url::parse(&from).ok());
                let from = from.as_ref().unwrap_or(&base);
                Ok(split(resolve(from, &text.to_string_lossy(), &query, &allowed)))
            }
        })?,
    )?;
    native.raw_set(
        "resolve_socket",
        lua.create_function(move |_, (text, query): (LuaString, Value)| {
            let text = socket::as_http(&text.to_string_lossy());
            Ok(split(resolve(&base, &text, &query, &allowed).map(|url| socket::as_ws(&url))))
        })?,
    )?;
    let decode = |lua: &Lua, text: LuaString| match serde_json::from_slice(&text.as_bytes()) {
        Ok(value) => Ok((json::to_lua(lua, &value)?, None)),
        Err(error) => Ok((Value::Nil, Some(error.to_string()))),
    };
    native.raw_set("decode", lua.create_function(decode)?)?;
    let encode = |_: &Lua, value: Value| Ok(split(json::from_lua(&value).map(|it| it.to_string())));
    native.raw_set("encode", lua.create_function(encode)?)?;
    let form = |_: &Lua, table: Value| Ok(split(pairs(&table).map(|all| urlencoded(&all))));
    native.raw_set("form", lua.create_function(form)?)?;
    Ok(native)
}

fn split<T>(result: Result<T, String>) -> (Option<T>, Option<String>) {
    match result {
        Ok(value) => (Some(value), None),
        Err(why) => (None, Some(why)),
    }
}

/// Returns scheme, host and port as text.
fn server(url: &Url) -> String {
    url.origin().ascii_serialization()
}

/// Resolves a URL from the script or from a server to an absolute one; refuses servers that are not
/// in `allowed`.
fn resolve(
    from: &Url,
    text: &str,
    query: &Value,
    allowed: &BTreeSet<String>,
) -> Result<String, String> {
    let mut url = from.join(text).map_err(|why| format!("\"{text}\" is not a URL: {why}"))?;
    let place = server(&url);
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(format!("\"{text}\" is not http:// or https://"));
    }
    if !allowed.contains(&place) {
        return Err(format!(
            "{place} is not a server of this run: name it in servers = {{ \"{place}\" }}"
        ));
    }
    if !query.is_nil() {
        let all = pairs(query).map_err(|why| format!("query: {why}"))?;
        url.query_pairs_mut().extend_pairs(all);
    }
    url.set_fragment(None);
    Ok(url.into())
}

/// Returns the names and values in the order of the names, so that the bytes are the same each
/// time.
fn pairs(table: &Value) -> Result<Vec<(String, String)>, String> {
    let Value::Table(table) = table else { return Err("it is a table of name = value".to_owned()) };
    let mut all = Vec::new();
    for pair in table.pairs::<Value, Value>() {
        let (name, value) = pair.map_err(|error| error.to_string())?;
        let Some(name) = name.as_string() else {
            return Err("it is a table of name = value".to_owned());
        };
        let text = match &value {
            Value::Boolean(flag) => flag.to_string(),
            value => value.to_string().map_err(|error| error.to_string())?,
        };
        all.push((name.to_string_lossy(), text));
    }
    all.sort();
    Ok(all)
}

fn urlencoded(all: &[(String, String)]) -> String {
    url::form_urlencoded::Serializer::new(String::new()).extend_pairs(all).finish()
}

/// Returns a text's description of its journey; `None` if it defines none and is a script with
/// wrk's interface.
///
/// # Errors
/// Fails if the text makes a journey, and is invalid.
pub fn outline(name: &str, text: &[u8]) -> Result<Option<Outline>, ScriptTrouble> {
    // no other code can define it in the text itself
    if !text.windows(7).any(|word| word == b"journey") {
        return Ok(None);
    }
    read_outline(name, text).map_err(|error| crate::state::trouble(&error))
}

fn read_outline(name: &str, text: &[u8]) -> mlua::Result<Option<Outline>> {
    let lua = open(false)?;
    lua.load(QUIET).set_name("=journey").exec()?;
    let chunk = lua.load(text).set_name(format!("@{name}"));
    let loaded = bounded(&lua, || chunk.exec());
    let made = lua.globals().get::<Function>("journey").is_ok();
    match loaded {
        Err(error) if made || defines(text) => return Err(error),
        _ if !made => return Ok(None),
        _ => {}
    }
    let list = |key: &str| -> mlua::Result<Vec<String>> {
        let why = || mlua::Error::runtime(format!("{name}: {key} is a list of strings"));
        match lua.globals().get::<Value>(key)? {
            Value::Nil => Ok(Vec::new()),
            Value::Table(table) => {
                let texts = table.sequence_values::<LuaString>();
                texts.map(|it| it.map(|it| it.to_string_lossy()).map_err(|_| why())).collect()
            }
            _ => Err(why()),
        }
    };
    let (mut steps, servers) = (list("steps")?, list("servers")?);
    if steps.is_empty() {
        steps.push("request".to_owned());
    }
    Ok(Some(Outline { steps, servers }))
}

/// Returns whether the text begins a function of that name, regardless of other errors.
fn defines(text: &[u8]) -> bool {
    let text = String::from_utf8_lossy(text);
    text.lines().any(|line| {
        let words = line.trim_start().strip_prefix("function").unwrap_or(line).trim_start();
        let rest = words.strip_prefix("journey").map(str::trim_start);
        rest.is_some_and(|rest| rest.starts_with(['(', '=']))
    })
}

/// Inspecting a script prints nothing, and a script with wrk's interface finds its table.
const QUIET: &str = "\
print = function() end
io.write = function() end
wrk = { headers = {} }";
