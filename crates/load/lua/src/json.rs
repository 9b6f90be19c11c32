//! JSON as Lua values, and back.

use mlua::{Lua, MetaMethod, UserData, UserDataMethods, UserDataRef, Value};
use serde_json::{Number, Value as Json};

/// Maximum nesting depth of tables; a table that contains itself is cut here too.
const DEPTH_MAX: u32 = 64;

/// Converts JSON to Lua. JSON's null is nil: its key is absent from an object, and it ends an array
/// for `#`.
pub(crate) fn to_lua(lua: &Lua, value: &Json) -> mlua::Result<Value> {
    Ok(match value {
        Json::Null => Value::Nil,
        Json::Bool(flag) => Value::Boolean(*flag),
        Json::Number(number) if exceeds_double_precision(number) => {
            Value::UserData(lua.create_userdata(WholeNumber(number.clone()))?)
        }
        Json::Number(number) => Value::Number(number.as_f64().unwrap_or(f64::NAN)),
        Json::String(text) => Value::String(lua.create_string(text)?),
        Json::Array(all) => {
            let table = lua.create_table_with_capacity(all.len(), 0)?;
            for (row, value) in (1..).zip(all) {
                table.raw_set(row, to_lua(lua, value)?)?;
            }
            Value::Table(table)
        }
        Json::Object(all) => {
            let table = lua.create_table_with_capacity(0, all.len())?;
            for (name, value) in all {
                table.raw_set(name.as_str(), to_lua(lua, value)?)?;
            }
            Value::Table(table)
        }
    })
}

/// Largest value up to which all whole numbers are exact as doubles.
const DOUBLES_MAX: u64 = 1 << 53;

fn exceeds_double_precision(number: &Number) -> bool {
    number.as_i128().is_some_and(|whole| whole.unsigned_abs() > u128::from(DOUBLES_MAX))
}

/// 64-bit integer that Lua's numbers, which are doubles, cannot represent. It keeps its digits as
/// text and in JSON. Two of them can be compared; arithmetic converts them to doubles.
#[derive(Debug)]
struct WholeNumber(Number);

impl UserData for WholeNumber {
    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        type Two = (UserDataRef<WholeNumber>, UserDataRef<WholeNumber>);
        methods.add_meta_method(MetaMethod::ToString, |_, this, ()| Ok(this.0.to_string()));
        methods.add_meta_function(MetaMethod::Concat, |lua, (left, right): (Value, Value)| {
            lua.create_string(format!("{}{}", left.to_string()?, right.to_string()?))
        });
        methods.add_meta_function(MetaMethod::Eq, |_, (left, right): Two| Ok(left.0 == right.0));
        methods.add_meta_function(MetaMethod::Lt, |_, (left, right): Two| {
            Ok(left.0.as_i128() < right.0.as_i128())
        });
        methods.add_meta_function(MetaMethod::Le, |_, (left, right): Two| {
            Ok(left.0.as_i128() <= right.0.as_i128())
        });
        for (operation, result) in [
            (MetaMethod::Add, (|a, b| a + b) as fn(f64, f64) -> f64),
            (MetaMethod::Sub, |a, b| a - b),
            (MetaMethod::Mul, |a, b| a * b),
            (MetaMethod::Div, |a, b| a / b),
        ] {
            methods.add_meta_function(operation, move |_, (left, right): (Value, Value)| {
                Ok(result(double(&left)?, double(&right)?))
            });
        }
    }
}

fn double(value: &Value) -> mlua::Result<f64> {
    let digits = value.to_string()?;
    let number = digits.parse::<f64>();
    number.map_err(|_| mlua::Error::runtime(format!("arithmetic with a {}", value.type_name())))
}

/// Converts Lua to JSON. A table with entries from 1 on is an array; an empty table is an object.
///
/// # Errors
/// Fails for a value that JSON cannot express.
pub(crate) fn from_lua(value: &Value) -> Result<Json, String> {
    within(value, DEPTH_MAX)
}

fn within(value: &Value, depth: u32) -> Result<Json, String> {
    match value {
        Value::Nil => Ok(Json::Null),
        Value::Boolean(flag) => Ok(Json::Bool(*flag)),
        Value::Integer(number) => Ok((*number).into()),
        Value::Number(number) => numbered(*number),
        Value::String(text) => Ok(Json::String(text.to_string_lossy())),
        Value::Table(_) if depth == 0 => Err("json: tables are nested too deeply".to_owned()),
        Value::Table(table) if table.raw_len() > 0 => {
            let all = table.sequence_values::<Value>();
            let one = |value: mlua::Result<Value>| {
                within(&value.map_err(|error| error.to_string())?, depth - 1)
            };
            all.map(one).collect::<Result<_, _>>().map(Json::Array)
        }
        Value::Table(table) => {
            let mut all = serde_json::Map::new();
            for pair in table.pairs::<Value, Value>() {
                let (name, value) = pair.map_err(|error| error.to_string())?;
                let Some(name) = name.as_string() else {
                    return Err("json: object keys must be strings".to_owned());
                };
                all.insert(name.to_string_lossy(), within(&value, depth - 1)?);
            }
            Ok(Json::Object(all))
        }
        Value::UserData(data) => match data.borrow::<WholeNumber>() {
            Ok(whole) => Ok(Json::Number(whole.0.clone())),
            Err(_) => Err("json: there is no userdata in JSON".to_owned()),
        },
        other => Err(format!("json: there is no {} in JSON", other.type_name())),
    }
}

fn numbered(number: f64) -> Result<Json, String> {
    // whole numbers are written without a fraction
    if number.fract() == 0.0 && number.abs() <= DOUBLES_MAX as f64 {
        return Ok((number as i64).into());
    }
    let found = Number::from_f64(number).map(Json::Number);
    found.ok_or_else(|| format!("json: {number} is not a JSON number"))
}
