//! `thread` of a script's `setup`, and `wrk.thread` inside a thread.

use crate::address;
use crate::state::LuaState;
use crate::value::copy;
use mlua::{Function, Value};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// State of one worker, which `setup` and `done` access from theirs.
#[derive(Debug)]
pub(crate) struct WorkerState {
    state: Mutex<LuaState>,
    pub(crate) control: Arc<Control>,
}

/// Decisions of a script about its thread.
#[derive(Debug, Default)]
pub(crate) struct Control {
    stop: AtomicBool,
    peer: Mutex<Option<SocketAddr>>,
}

impl WorkerState {
    pub(crate) fn new(state: LuaState) -> WorkerState {
        WorkerState { state: Mutex::new(state), control: Arc::default() }
    }

    /// Locks the state; a panic of another thread leaves it usable.
    pub(crate) fn state(&self) -> MutexGuard<'_, LuaState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Control {
    pub(crate) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    pub(crate) fn peer(&self) -> Option<SocketAddr> {
        *self.peer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_peer(&self, peer: SocketAddr) {
        *self.peer.lock().unwrap_or_else(PoisonError::into_inner) = Some(peer);
    }

    fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// Returns the object of a thread for `setup`: its globals belong to another state.
pub(crate) fn handle(main: &LuaState, shared: &Arc<WorkerState>) -> mlua::Result<Value> {
    let lua = &main.lua;
    let (from, to) = (shared.clone(), shared.clone());
    let get = lua.create_function(move |lua, (_, name): (Value, Value)| {
        let state = from.state();
        let name = copy(&name, &state.lua)?;
        let found: Value = state.lua.globals().get(name)?;
        copy(&found, lua)
    })?;
    let set = lua.create_function(move |_, (_, name, value): (Value, Value, Value)| {
        let state = to.state();
        let name = copy(&name, &state.lua)?;
        state.lua.globals().set(name, copy(&value, &state.lua)?)
    })?;
    object(main, &shared.control, get, set)
}

/// Returns the object of a thread for its own script.
pub(crate) fn own(state: &LuaState, control: &Arc<Control>) -> mlua::Result<Value> {
    let lua = &state.lua;
    let get =
        lua.create_function(|lua, (_, name): (Value, Value)| lua.globals().get::<Value>(name))?;
    let set = lua.create_function(|lua, (_, name, value): (Value, Value, Value)| {
        lua.globals().set(name, value)
    })?;
    object(state, control, get, set)
}

fn object(
    state: &LuaState,
    control: &Arc<Control>,
    get: Function,
    set: Function,
) -> mlua::Result<Value> {
    let lua = &state.lua;
    let methods = lua.create_table()?;
    methods.raw_set("get", get)?;
    methods.raw_set("set", set)?;
    let (stopped, read, written) = (control.clone(), control.clone(), control.clone());
    let stop = lua.create_function(move |_, _: Value| {
        stopped.stop();
        Ok(())
    })?;
    methods.raw_set("stop", stop)?;
    let peer = lua.create_function(move |_, ()| Ok(read.peer().map(|peer| peer.to_string())))?;
    let set_peer = lua.create_function(move |_, text: String| {
        written.set_peer(address::parse(&text)?);
        Ok(())
    })?;
    state.thread.call((methods, peer, set_peer))
}
