//! One worker's part of a script, for the engine.

use crate::state::sentence;
use crate::thread::WorkerState;
use conduit::Peer;
use mlua::{LuaString, Value};
use protocol::http1::fields;
use protocol::http1::response::Asked;
use std::borrow::Cow;
use std::sync::Arc;
use units::Nanos;
use workload::{Script, ScriptError, Wants};

/// A script's wait is shortened to an hour.
const PAUSE_MAX_MS: f64 = 3_600_000.0;

#[derive(Debug)]
pub(crate) struct ScriptPart {
    shared: Arc<WorkerState>,
    wants: Wants,
    /// The request of a script without the function `request`: the same each time.
    fixed: Option<Vec<u8>>,
}

impl ScriptPart {
    pub(crate) fn new(
        shared: Arc<WorkerState>,
        wants: Wants,
        fixed: Option<Vec<u8>>,
    ) -> ScriptPart {
        ScriptPart { shared, wants, fixed }
    }
}

impl Script for ScriptPart {
    fn wants(&self) -> Wants {
        self.wants
    }

    fn pause(&mut self) -> Result<Nanos, ScriptError> {
        let value: Value = self.shared.state().delay.call(()).map_err(script_error)?;
        let millis = number(&value).clamp(0.0, PAUSE_MAX_MS);
        Ok(Nanos::from_millis(millis as u64))
    }

    fn request(&mut self, out: &mut Vec<u8>) -> Result<Asked, ScriptError> {
        let from = out.len();
        match &self.fixed {
            Some(text) => out.extend_from_slice(text),
            None => {
                let state = self.shared.state();
                let text: Option<LuaString> = state.request.call(()).map_err(script_error)?;
                let Some(text) = text else {
                    return Err(ScriptError("request() returned nothing to send".into()));
                };
                out.extend_from_slice(&text.as_bytes());
            }
        }
        if out.len() == from {
            return Err(ScriptError("request() returned nothing to send".into()));
        }
        Ok(if out[from..].starts_with(b"HEAD ") { Asked::Head } else { Asked::Ordinary })
    }

    fn response(&mut self, status: u16, head: &[u8], body: &[u8]) -> Result<(), ScriptError> {
        let state = self.shared.state();
        let call = || {
            let lua = &state.lua;
            let headers = lua.create_table()?;
            for (name, value) in fields::fields(head) {
                let value = lua.create_string(unfolded(value).as_ref())?;
                headers.raw_set(lua.create_string(name)?, value)?;
            }
            state.response.call::<()>((status, headers, lua.create_string(body)?))
        };
        call().map_err(script_error)
    }

    fn peer(&mut self) -> Option<Peer> {
        self.shared.control.peer().map(Peer::Tcp)
    }

    fn stopped(&self) -> bool {
        self.shared.control.stopped()
    }
}

/// Returns a folded value as wrk's parser passes it: without line ends, but with spaces.
fn unfolded(value: &[u8]) -> Cow<'_, [u8]> {
    if !value.contains(&b'\n') {
        return Cow::Borrowed(value);
    }
    Cow::Owned(value.iter().copied().filter(|byte| !b"\r\n".contains(byte)).collect())
}

fn script_error(error: mlua::Error) -> ScriptError {
    ScriptError(sentence(&error))
}

/// Converts like C Lua's `tonumber`; a value that is not a number becomes 0.
fn number(value: &Value) -> f64 {
    let text = || value.as_string().and_then(|text| text.to_str().ok()?.trim().parse().ok());
    let whole = value.as_i64().map(|number| number as f64);
    let number = value.as_f64().or(whole).or_else(text).unwrap_or(0.0);
    if number.is_nan() { 0.0 } else { number }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folded_value_loses_its_line_ends_alone() {
        assert_eq!(*unfolded(b"b\r\n  c\r\n\td"), *b"b  c\td");
        assert_eq!(*unfolded(b"b c"), *b"b c");
    }
}
