//! Copies values from one Lua state into another.

use mlua::{Lua, Table, Value};

/// Maximum nesting depth of tables; a table that contains itself is cut here too.
const DEPTH_MAX: u32 = 64;

/// Copies `value` into the state `to`.
///
/// # Errors
/// Fails for values other than nil, booleans, numbers, strings and tables of these.
pub(crate) fn copy(value: &Value, to: &Lua) -> mlua::Result<Value> {
    copy_within(value, to, DEPTH_MAX)
}

fn copy_within(value: &Value, to: &Lua, depth: u32) -> mlua::Result<Value> {
    match value {
        Value::Nil => Ok(Value::Nil),
        Value::Boolean(flag) => Ok(Value::Boolean(*flag)),
        Value::Integer(number) => Ok(Value::Integer(*number)),
        Value::Number(number) => Ok(Value::Number(*number)),
        Value::String(text) => to.create_string(text.as_bytes()).map(Value::String),
        Value::Table(table) if depth > 0 => copy_table(table, to, depth - 1).map(Value::Table),
        Value::Table(_) => Err(mlua::Error::runtime("cannot transfer a table nested this deep")),
        other => {
            let text = format!("cannot transfer '{}' to thread", other.type_name());
            Err(mlua::Error::runtime(text))
        }
    }
}

fn copy_table(table: &Table, to: &Lua, depth: u32) -> mlua::Result<Table> {
    let copied = to.create_table()?;
    for pair in table.pairs::<Value, Value>() {
        let (key, value) = pair?;
        copied.raw_set(copy_within(&key, to, depth)?, copy_within(&value, to, depth)?)?;
    }
    Ok(copied)
}
