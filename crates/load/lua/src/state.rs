//! One Lua state: the libraries, the table `wrk`, the script on top.

use crate::director::{Program, ScriptTrouble, Site};
use mlua::{Error, Function, HookTriggers, Lua, Table, VmState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Maximum number of instructions that a script may take to load, and again for `setup` or `init`:
/// seconds of work.
const START_MAX: u64 = 1_000_000_000;

/// Instructions between two checks of the instruction limit.
const STRIDE: u32 = 1_000_000;

/// Redirects a script's output to standard error, if it may not use standard output.
const ASIDE: &str = "\
io.output(io.stderr)
print = function(...)
  local parts = { ... }
  for at = 1, select('#', ...) do parts[at] = tostring(parts[at]) end
  io.write(table.concat(parts, '\\t'), '\\n')
end";

/// Debian's paths of Lua modules: LuaJIT as built here searches only `/usr/local`. The folder of C
/// modules is named after the machine, in GCC's notation.
const FOLDERS: &str = "\
package.path = package.path .. ';/usr/share/lua/5.1/?.lua;/usr/share/lua/5.1/?/init.lua'
local machine = ({ x64 = 'x86_64', arm64 = 'aarch64', x86 = 'i386' })[require('jit').arch]
if machine then
  package.cpath = package.cpath .. ';/usr/lib/' .. machine .. '-linux-gnu/lua/5.1/?.so'
end
package.cpath = package.cpath .. ';/usr/lib/lua/5.1/?.so'";

/// A Lua state with the entry points of its script.
#[derive(Debug)]
pub(crate) struct LuaState {
    pub(crate) request: Function,
    pub(crate) response: Function,
    pub(crate) delay: Function,
    flush: Function,
    /// Constructors of the objects that scripts receive.
    pub(crate) thread: Function,
    pub(crate) spread: Function,
    pub(crate) wrk: Table,
    // last: fields that refer to it are dropped first
    pub(crate) lua: Lua,
}

// SAFETY: every reference into the state is a field of this struct or inside the state itself; no
// reference escapes. So all of it moves between threads at once, and nothing in it is bound to a
// thread: the Lua library is used without thread-local storage.
unsafe impl Send for LuaState {}

impl LuaState {
    /// Creates a state with `wrk` for this destination, and no script in it yet.
    pub(crate) fn new(site: &Site) -> mlua::Result<LuaState> {
        let lua = open(site.aside)?;
        let wrk = lua.create_table()?;
        wrk.raw_set("scheme", site.scheme.as_str())?;
        wrk.raw_set("host", site.host.as_str())?;
        wrk.raw_set("port", site.port.as_deref())?;
        wrk.raw_set("path", site.path.as_str())?;
        let headers = lua.create_table()?;
        for (name, value) in &site.headers {
            headers.raw_set(name.as_str(), value.as_str())?;
        }
        wrk.raw_set("headers", headers)?;
        lua.globals().raw_set("wrk", &wrk)?;
        let prelude = lua.load(include_str!("prelude.lua")).set_name("=wrk");
        let ways: Table = prelude.call(crate::address::native(&lua)?)?;
        if let Some(method) = &site.method {
            wrk.raw_set("method", method.as_str())?;
        }
        if let Some(body) = &site.body {
            wrk.raw_set("body", lua.create_string(body)?)?;
        }
        Ok(LuaState {
            request: ways.raw_get("request")?,
            response: ways.raw_get("response")?,
            delay: ways.raw_get("delay")?,
            flush: ways.raw_get("flush")?,
            thread: ways.raw_get("thread")?,
            spread: ways.raw_get("spread")?,
            wrk,
            lua,
        })
    }

    /// Runs the script's text. An error is the message to print: wrk continues without the script.
    pub(crate) fn load(&self, program: &Program) -> Result<(), String> {
        let text = match &program.text {
            Ok(text) => text,
            Err(why) => return Err(why.clone()),
        };
        let chunk = self.lua.load(text.as_slice()).set_name(format!("@{}", program.name));
        bounded(&self.lua, || chunk.exec()).map_err(|error| sentence(&error))
    }

    /// Calls `wrk.NAME` with these arguments; limited to the instructions that a script may take to
    /// start.
    pub(crate) fn start<A: mlua::IntoLuaMulti>(
        &self,
        name: &str,
        args: A,
    ) -> Result<(), ScriptTrouble> {
        let called = bounded(&self.lua, || self.wrk.get::<Function>(name)?.call::<()>(args));
        called.map_err(|error| trouble(&error))
    }

    /// Returns whether the script has a global function of that name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.lua.globals().get::<Function>(name).is_ok()
    }

    /// Flushes the script's output before the program prints.
    pub(crate) fn flush(&self) {
        // a script that has closed or replaced io has nothing to flush
        self.flush.call::<()>(()).ok();
    }
}

/// Creates a state with all libraries and no script. `aside`: output is printed to standard error.
pub(crate) fn open(aside: bool) -> mlua::Result<Lua> {
    // SAFETY: all libraries are opened, `ffi` and `debug` among them, because wrk's scripts have
    // them; such a script is trusted like any program that the user starts.
    let lua = unsafe { Lua::unsafe_new() };
    lua.load(FOLDERS).set_name("=wrk").exec()?;
    if aside {
        lua.load(ASIDE).set_name("=wrk").exec()?;
    }
    Ok(lua)
}

/// Uses the interpreter, so that instructions are counted, and ends code that takes too many of
/// them.
pub(crate) fn bounded<R>(lua: &Lua, run: impl FnOnce() -> mlua::Result<R>) -> mlua::Result<R> {
    let taken = Arc::new(AtomicU64::new(0));
    let count = move |_: &Lua, at: &mlua::debug::Debug<'_>| {
        let taken = taken.fetch_add(u64::from(STRIDE), Ordering::Relaxed);
        if taken < START_MAX {
            return Ok(VmState::Continue);
        }
        let file = at.source().short_src.map(|name| name.into_owned()).unwrap_or_default();
        let line = at.current_line().unwrap_or(0);
        let why = "the script does not finish loading";
        Err(Error::runtime(format!("{file}:{line}: {why}")))
    };
    let switch = |way: &str| lua.load(way).set_name("=wrk").exec();
    switch("require('jit').off()")?;
    let triggers = HookTriggers::new().every_nth_instruction(STRIDE);
    lua.set_hook(triggers, count)?;
    let done = run();
    lua.remove_hook();
    switch("require('jit').on()")?;
    done
}

/// Extracts one of our errors that passed through Lua.
pub(crate) fn failure(trouble: ScriptTrouble) -> Error {
    Error::external(trouble)
}

/// Returns the message of an error, raised by the script or by this program.
pub(crate) fn trouble(error: &Error) -> ScriptTrouble {
    match error.downcast_ref::<ScriptTrouble>() {
        Some(ours) => ours.clone(),
        None => ScriptTrouble::Script(sentence(error)),
    }
}

/// Formats an error as Lua prints it, in one line: the script's name, the line, the message.
pub(crate) fn sentence(error: &Error) -> String {
    let (text, place) = match error {
        Error::SyntaxError { message, .. } => (message.clone(), None),
        Error::RuntimeError(message) | Error::MemoryError(message) => (message.clone(), None),
        Error::CallbackError { cause, traceback } => (sentence(cause), place(traceback)),
        other => (other.to_string(), None),
    };
    let first = text.split("\nstack traceback:").next().unwrap_or_default();
    let line = first.trim_end().replace('\n', " ");
    match place {
        Some(place) => format!("{place} {line}"),
        None => line,
    }
}

/// Returns `FILE:LINE:` of the innermost Lua line in a traceback.
fn place(traceback: &str) -> Option<&str> {
    let line = traceback
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty() && !line.starts_with("[C]") && *line != "stack traceback:")?;
    let end = line.find(": in ")?;
    Some(&line[..=end])
}
