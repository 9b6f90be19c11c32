//! A loaded instance of a script.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;
use std::sync::Weak;
use std::time::Instant;

use hyper::body::Bytes;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::http::StatusCode;
use mlua::{Error, Function, HookTriggers, Lua, LuaOptions, StdLib, Table, Value, VmState};

use super::{InterpreterLimits, InterpreterSettings};
use crate::cgi::{Complain, is_ours};
use crate::exchange::{Ask, Content, Entity, Reply};

/// Instructions between two clock checks.
const CLOCK_CHECK_INTERVAL: u32 = 10_000;
/// Maximum number of fields in a response.
const FIELDS_MAX: usize = 100;
/// Characters of a line that a script prints to the log.
const LINE_MAX: usize = 1_000;
/// Functions of the base library that access files, other code or the collector's limits; and
/// `xpcall`, whose handler would run without a clock check after a timeout.
const BARRED: [&str; 7] =
    ["dofile", "loadfile", "load", "loadstring", "collectgarbage", "newproxy", "xpcall"];

/// A Lua state with the script's `answer`.
pub(super) struct Engine {
    lua: Lua,
    answer: Function,
    watch: Rc<Watch>,
    limits: InterpreterLimits,
}

/// Limits that end a running script.
#[derive(Debug, Default)]
struct Watch {
    deadline: Cell<Option<Instant>>,
    /// Kept alive by the task that waits for the response.
    asker: RefCell<Option<Weak<()>>>,
}

impl Watch {
    fn begin(&self, limits: &InterpreterLimits, asker: Option<Weak<()>>) {
        self.deadline.set(Instant::now().checked_add(limits.time));
        self.asker.replace(asker);
    }

    fn is_over(&self) -> bool {
        let late = self.deadline.get().is_some_and(|deadline| Instant::now() > deadline);
        late || self.asker.borrow().as_ref().is_some_and(|asker| asker.strong_count() == 0)
    }
}

/// Reason why the script has no response.
#[derive(Debug)]
pub(super) enum ScriptFailure {
    /// An error of the script, with its line.
    Script(String),
    Slow,
    Memory,
    TooLong,
    /// The spooled body cannot be read.
    Body(std::io::Error),
    Busy(&'static str),
}

impl Engine {
    /// Runs the script once, so that it defines its functions.
    ///
    /// # Errors
    /// Fails with a message that names file and line.
    pub(super) fn load(
        name: &str,
        source: &[u8],
        settings: &InterpreterSettings,
    ) -> Result<Engine, String> {
        let plain = |error: Error| {
            let text = first_line(&error);
            if text.starts_with(name) { text } else { format!("{name}: {text}") }
        };
        // no JIT library: compiled loops would not check the clock
        let libraries = StdLib::STRING | StdLib::TABLE | StdLib::MATH | StdLib::BIT;
        let lua = Lua::new_with(libraries, LuaOptions::default()).map_err(plain)?;
        lua.set_memory_limit(settings.limits.memory).map_err(plain)?;
        let watch = Rc::new(Watch::default());
        prepare(&lua, &settings.complain, Rc::clone(&watch)).map_err(plain)?;
        watch.begin(&settings.limits, None);
        // "@" marks the name as a file's; text only, since byte code can escape
        let chunk = lua.load(source).set_name(format!("@{name}"));
        chunk.set_mode(mlua::chunk::ChunkMode::Text).exec().map_err(plain)?;
        let answer: Value = lua.globals().get("answer").map_err(plain)?;
        let Value::Function(answer) = answer else {
            return Err(format!("{name} defines no function answer(request)"));
        };
        Ok(Engine { lua, answer, watch, limits: settings.limits })
    }

    /// Runs the script. It is stopped when `asker` is dropped.
    ///
    /// # Errors
    /// Fails if the script fails or exceeds its limits.
    pub(super) fn answer(&self, ask: &Ask, asker: Weak<()>) -> Result<Reply, ScriptFailure> {
        let body = match &ask.body {
            Entity::None => Bytes::new(),
            Entity::Memory(bytes) => bytes.clone(),
            Entity::Spooled(file) => std::fs::read(&file.path).map_err(ScriptFailure::Body)?.into(),
        };
        let failed = |error: Error| match error {
            _ if self.watch.is_over() => ScriptFailure::Slow,
            error if is_memory(&error) => ScriptFailure::Memory,
            error => ScriptFailure::Script(first_line(&error)),
        };
        self.watch.begin(&self.limits, Some(asker));
        let request = self.request(ask, &body).map_err(failed)?;
        let (status, fields, body) = self.answer.call(request).map_err(failed)?;
        reply(&status, fields, &body).map_err(ScriptFailure::Script)
    }

    fn request(&self, ask: &Ask, body: &[u8]) -> mlua::Result<Table> {
        let request = self.lua.create_table()?;
        request.set("method", ask.method.as_str())?;
        request.set("path", ask.path.as_str())?;
        request.set("path_info", ask.rest.as_str())?;
        request.set("query", ask.query.as_deref())?;
        request.set("peer", ask.peer.ip().to_canonical().to_string())?;
        request.set("user", ask.user.as_deref())?;
        request.set("body", self.lua.create_string(body)?)?;
        let headers = self.lua.create_table()?;
        for name in ask.headers.keys() {
            let values = ask.headers.get_all(name).iter().map(|value| value.as_bytes());
            let value = values.collect::<Vec<_>>().join(b", ".as_slice());
            headers.set(name.as_str(), self.lua.create_string(value)?)?;
        }
        request.set("headers", headers)?;
        Ok(request)
    }
}

/// Removes functions that a script must not have, redirects `print` to the log, and installs the
/// clock check.
fn prepare(lua: &Lua, complain: &Complain, watch: Rc<Watch>) -> mlua::Result<()> {
    let globals = lua.globals();
    for name in BARRED {
        globals.set(name, Value::Nil)?;
    }
    globals.get::<Table>("string")?.set("dump", Value::Nil)?;
    let complain = complain.clone();
    let print = lua.create_function(move |lua, values: mlua::Variadic<Value>| {
        let texts = values.iter().map(|value| lua.coerce_string(value.clone()));
        let texts = texts.map(|text| Ok(text?.map(|text| text.to_string_lossy())));
        let texts: Vec<String> = texts
            .map(|text: mlua::Result<_>| Ok(text?.unwrap_or_else(|| "?".into())))
            .collect::<mlua::Result<_>>()?;
        let line = texts.join(" ");
        let line = line.chars().filter(|c| !c.is_control()).take(LINE_MAX);
        complain(&format!("interpreter: {}", line.collect::<String>()));
        Ok(())
    })?;
    globals.set("print", print)?;
    let late = || Err(Error::runtime("took longer than its time limit"));
    lua.set_global_hook(
        HookTriggers::new().every_nth_instruction(CLOCK_CHECK_INTERVAL),
        move |lua, _| {
            if !watch.is_over() {
                return Ok(VmState::Continue);
            }
            // a script that catches this error gets it again at the next instruction
            let always = HookTriggers::new().every_nth_instruction(1);
            lua.set_global_hook(always, move |_, _| late())?;
            late()
        },
    )
}

/// # Errors
/// Fails with the error in the values that the script returned.
fn reply(status: &Value, fields: Value, body: &Value) -> Result<Reply, String> {
    let code = match status {
        Value::Integer(code) => u16::try_from(*code).ok(),
        Value::Number(code) if code.fract() == 0.0 && (0.0..1e4).contains(code) => {
            Some(*code as u16)
        }
        _ => None,
    };
    let code = code.filter(|code| (200..600).contains(code));
    let status = code.and_then(|code| StatusCode::from_u16(code).ok());
    let status = status.ok_or("answer() returned no status from 200 to 599 as its first value")?;
    let headers = match fields {
        Value::Nil => HeaderMap::new(),
        Value::Table(table) => headers(&table)?,
        _ => return Err("answer() returned no table of fields as its second value".to_owned()),
    };
    let body = match body {
        Value::Nil => Bytes::new(),
        other => text(other).ok_or("answer() returned no string as its third value")?,
    };
    let content = if body.is_empty() { Content::Empty } else { Content::Bytes(body) };
    Ok(Reply { status, headers, content })
}

fn headers(table: &Table) -> Result<HeaderMap, String> {
    let mut found = Vec::new();
    for pair in table.pairs::<Value, Value>() {
        let (name, value) = pair.map_err(|error| first_line(&error))?;
        if found.len() == FIELDS_MAX {
            return Err(format!("answer() returned more than {FIELDS_MAX} fields"));
        }
        let name = text(&name).unwrap_or_default();
        let value = text(&value).unwrap_or_default();
        let shown = String::from_utf8_lossy(&name).into_owned();
        let wrong = || format!("answer() returned {shown:?}, which is not a field");
        let name = HeaderName::from_bytes(&name).map_err(|_| wrong())?;
        let value = HeaderValue::from_bytes(value.trim_ascii()).map_err(|_| wrong())?;
        found.push((name, value));
    }
    // a table has no order; a response needs one
    found.sort_by(|one, other| one.0.as_str().cmp(other.0.as_str()));
    let kept = found.into_iter().filter(|(name, _)| !is_ours(name));
    Ok(kept.collect())
}

/// Returns a string or number as text; `None` for other values.
fn text(value: &Value) -> Option<Bytes> {
    match value {
        Value::String(text) => Some(Bytes::copy_from_slice(&text.as_bytes())),
        Value::Integer(number) => Some(number.to_string().into()),
        Value::Number(number) => Some(number.to_string().into()),
        _ => None,
    }
}

/// Returns an error without its kind and its call stack.
fn first_line(error: &Error) -> String {
    let text = match error {
        Error::CallbackError { cause, .. } => return first_line(cause),
        Error::SyntaxError { message, .. } => message.clone(),
        Error::RuntimeError(message) | Error::MemoryError(message) => message.clone(),
        other => other.to_string(),
    };
    text.lines().next().unwrap_or_default().to_owned()
}

fn is_memory(error: &Error) -> bool {
    match error {
        Error::MemoryError(_) => true,
        Error::CallbackError { cause, .. } => is_memory(cause),
        _ => false,
    }
}

impl ScriptFailure {
    /// Returns whether a limit was hit somewhere in the script, so that its state must not be
    /// reused.
    pub(super) fn taints_state(&self) -> bool {
        matches!(self, ScriptFailure::Slow | ScriptFailure::Memory)
    }

    pub(super) fn reply(&self) -> Reply {
        let (status, text) = match self {
            ScriptFailure::Script(_) | ScriptFailure::Memory | ScriptFailure::Body(_) => {
                (StatusCode::INTERNAL_SERVER_ERROR, "The script failed.")
            }
            ScriptFailure::Slow => (StatusCode::INTERNAL_SERVER_ERROR, "The script took too long."),
            ScriptFailure::TooLong => {
                (StatusCode::PAYLOAD_TOO_LARGE, "The script does not accept a body this long.")
            }
            ScriptFailure::Busy(_) => {
                (StatusCode::SERVICE_UNAVAILABLE, "The script is busy. Try again in a moment.")
            }
        };
        Reply::text(status, format!("{text}\n"))
    }
}

impl fmt::Display for ScriptFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ScriptFailure::Script(why) => f.write_str(why),
            ScriptFailure::Slow => f.write_str("took longer than its time limit"),
            ScriptFailure::Memory => f.write_str("took more memory than its limit"),
            ScriptFailure::TooLong => f.write_str("the request's body is longer than its limit"),
            ScriptFailure::Body(error) => write!(f, "cannot read the request's body: {error}"),
            ScriptFailure::Busy(why) => f.write_str(why),
        }
    }
}
