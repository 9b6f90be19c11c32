//! Calls of a journey's script on the user's WebSocket.

use mlua::{LuaString, Table, Value};
use std::sync::Arc;
use units::Nanos;
use workload::{AwaitedMessages, MessageFilter, SocketAction, SocketCall};

/// Maximum wait for messages: a day.
const WAIT_MAX_S: f64 = 86_400.0;

/// Returns the HTTP URL that corresponds to a WebSocket URL; other texts are unchanged.
pub(crate) fn as_http(text: &str) -> String {
    for (scheme, http) in [("ws://", "http://"), ("wss://", "https://")] {
        if let Some(rest) = text.strip_prefix(scheme) {
            return format!("{http}{rest}");
        }
    }
    text.to_owned()
}

/// Returns the WebSocket URL that corresponds to an HTTP URL.
pub(crate) fn as_ws(url: &str) -> String {
    url.replacen("http", "ws", 1)
}

/// Reads the call that the prelude has built; `None` if it is a request.
///
/// # Errors
/// Fails for a value that the prelude did not build.
pub(crate) fn call(value: &Value) -> mlua::Result<Option<Arc<SocketCall>>> {
    let Value::Table(table) = value else { return Ok(None) };
    let kind = table.raw_get::<LuaString>("kind")?.to_string_lossy();
    let awaited = || awaited(table);
    let action = match kind.as_str() {
        "connect" => SocketAction::Connect,
        "send" => SocketAction::Send {
            text: table.raw_get("text")?,
            answer: if table.raw_get("awaits")? { Some(awaited()?) } else { None },
        },
        "expect" => SocketAction::Expect(awaited()?),
        _ => SocketAction::Close { code: table.raw_get("code")? },
    };
    let timeout = table.raw_get::<Option<f64>>("timeout")?;
    let timeout = timeout.map(|seconds| Nanos((seconds.clamp(0.0, WAIT_MAX_S) * 1e9) as u64));
    Ok(Some(Arc::new(SocketCall { action, timeout, listens: false, socket: 0 })))
}

fn awaited(table: &Table) -> mlua::Result<AwaitedMessages> {
    let contains = table.raw_get::<Option<LuaString>>("contains")?;
    let contains = contains.map(|text| text.as_bytes().to_vec());
    let mut json = Vec::new();
    if let Some(rows) = table.raw_get::<Option<Table>>("json")? {
        for pair in rows.pairs::<LuaString, Value>() {
            let (pointer, value) = pair?;
            let value = crate::json::from_lua(&value).map_err(mlua::Error::runtime)?;
            json.push((pointer.to_string_lossy(), value));
        }
    }
    let filters = contains.is_some() || !json.is_empty();
    let filter = filters.then(|| Arc::new(ScriptFilter { contains, json }) as _);
    Ok(AwaitedMessages { filter, count: table.raw_get("count")? })
}

/// Messages that contain a text, or values at JSON pointers (RFC 6901).
#[derive(Debug)]
struct ScriptFilter {
    contains: Option<Vec<u8>>,
    json: Vec<(String, serde_json::Value)>,
}

impl MessageFilter for ScriptFilter {
    fn takes(&self, payload: &[u8]) -> bool {
        let has = |text: &Vec<u8>| {
            text.is_empty() || payload.windows(text.len()).any(|window| window == text)
        };
        if !self.contains.as_ref().is_none_or(has) {
            return false;
        }
        if self.json.is_empty() {
            return true;
        }
        let Ok(document) = serde_json::from_slice::<serde_json::Value>(payload) else {
            return false;
        };
        // numbers of Lua are doubles: 1 and 1.0 are the same
        let same = |wanted: &serde_json::Value, got: &serde_json::Value| {
            wanted == got || wanted.as_f64().is_some_and(|it| got.as_f64() == Some(it))
        };
        let met = |(pointer, wanted): &(String, serde_json::Value)| {
            document.pointer(pointer).is_some_and(|got| same(wanted, got))
        };
        self.json.iter().all(met)
    }
}
