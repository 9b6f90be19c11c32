//! Lossless JSON trees: structs are objects, and histograms are stored separately under their path.
//! Unfinished results and the figures of lists are written as trees; an incomplete list of fields
//! does not compile.

use crate::hists::{HistogramTree, StoredHists};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::net::IpAddr;
use units::Nanos;

/// The stored value differs from the written one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Damage(pub(crate) String);

impl Damage {
    pub(crate) fn new(why: impl Into<String>) -> Damage {
        Damage(why.into())
    }

    fn within(self, name: &str) -> Damage {
        Damage(format!("{name}: {}", self.0))
    }
}

/// Conversion to a tree.
pub(crate) trait Pack {
    fn pack(&self, histogram_tree: &mut HistogramTree) -> Value;
}

/// Conversion from a tree.
pub(crate) trait Unpack: Sized {
    fn unpack(value: &Value, found: &mut StoredHists) -> Result<Self, Damage>;
}

/// Reads a field of a record.
pub(crate) fn field<T: Unpack>(
    map: &Map<String, Value>,
    name: &str,
    found: &mut StoredHists,
) -> Result<T, Damage> {
    let value = match map.get(name) {
        Some(value) => T::unpack(value, found),
        None => Err(Damage::new("it is missing")),
    };
    value.map_err(|damage| damage.within(name))
}

pub(crate) fn object(value: &Value) -> Result<&Map<String, Value>, Damage> {
    value.as_object().ok_or_else(|| Damage::new("not an object"))
}

fn array(value: &Value) -> Result<&Vec<Value>, Damage> {
    value.as_array().ok_or_else(|| Damage::new("not a list"))
}

/// Conversion of a struct to a tree and back; all of its fields must be named.
macro_rules! record {
    ($($name:ident { $($field:ident),* $(,)? })*) => {$(
        impl $crate::tree::Unpack for $name {
            fn unpack(
                value: &serde_json::Value,
                found: &mut $crate::hists::StoredHists,
            ) -> Result<Self, $crate::tree::Damage> {
                let map = $crate::tree::object(value)?;
                Ok($name { $($field: $crate::tree::field(map, stringify!($field), found)?),* })
            }
        }

        impl $crate::tree::Pack for $name {
            fn pack(&self, histogram_tree: &mut $crate::hists::HistogramTree) -> serde_json::Value {
                let $name { $($field),* } = self;
                let mut map = serde_json::Map::new();
                $(
                    let name = stringify!($field);
                    let value = histogram_tree.within(name, |histogram_tree| $field.pack(histogram_tree));
                    map.insert(name.to_owned(), value);
                )*
                serde_json::Value::Object(map)
            }
        }
    )*};
}

/// Conversion of an enum to its stable names and back; all of its values must be named.
macro_rules! named {
    ($($name:ident { $($value:ident = $id:expr),* $(,)? })*) => {$(
        impl $crate::tree::Unpack for $name {
            fn unpack(
                value: &serde_json::Value,
                _: &mut $crate::hists::StoredHists,
            ) -> Result<Self, $crate::tree::Damage> {
                let id = value.as_str().unwrap_or_default();
                [$(($id, $name::$value)),*]
                    .into_iter()
                    .find_map(|(known, value)| (known == id).then_some(value))
                    .ok_or_else(|| $crate::tree::Damage::new(format!("{value} is not a name here")))
            }
        }

        impl $crate::tree::Pack for $name {
            fn pack(&self, _: &mut $crate::hists::HistogramTree) -> serde_json::Value {
                let id: &str = match self {
                    $($name::$value => $id,)*
                };
                id.into()
            }
        }
    )*};
}

pub(crate) use {named, record};

macro_rules! whole {
    ($($number:ty),*) => {$(
        impl Pack for $number {
            fn pack(&self, _: &mut HistogramTree) -> Value {
                Value::from(*self)
            }
        }

        impl Unpack for $number {
            fn unpack(value: &Value, _: &mut StoredHists) -> Result<Self, Damage> {
                let whole = value.as_u64().map(i128::from).or(value.as_i64().map(i128::from));
                let fits = whole.and_then(|number| <$number>::try_from(number).ok());
                fits.ok_or_else(|| Damage::new(format!("{value} is out of range")))
            }

        }
    )*};
}

whole!(u8, u16, u32, u64, i64, usize);

impl Pack for u128 {
    fn pack(&self, _: &mut HistogramTree) -> Value {
        self.to_string().into()
    }
}

impl Unpack for u128 {
    fn unpack(value: &Value, _: &mut StoredHists) -> Result<Self, Damage> {
        let read = value.as_str().and_then(|text| text.parse().ok());
        read.ok_or_else(|| Damage::new("not a number as text"))
    }
}

/// JSON has neither NaN nor infinities, so these are texts.
impl Pack for f64 {
    fn pack(&self, _: &mut HistogramTree) -> Value {
        match serde_json::Number::from_f64(*self) {
            Some(number) => Value::Number(number),
            None => self.to_string().into(),
        }
    }
}

impl Unpack for f64 {
    fn unpack(value: &Value, _: &mut StoredHists) -> Result<Self, Damage> {
        let text = || value.as_str().and_then(|text| text.parse().ok());
        value.as_f64().or_else(text).ok_or_else(|| Damage::new(format!("{value} is not a number")))
    }
}

impl Pack for bool {
    fn pack(&self, _: &mut HistogramTree) -> Value {
        Value::Bool(*self)
    }
}

impl Unpack for bool {
    fn unpack(value: &Value, _: &mut StoredHists) -> Result<Self, Damage> {
        value.as_bool().ok_or_else(|| Damage::new("neither true nor false"))
    }
}

impl Pack for String {
    fn pack(&self, _: &mut HistogramTree) -> Value {
        Value::String(self.clone())
    }
}

impl Unpack for String {
    fn unpack(value: &Value, _: &mut StoredHists) -> Result<Self, Damage> {
        value.as_str().map(str::to_owned).ok_or_else(|| Damage::new("not a text"))
    }
}

impl Pack for Nanos {
    fn pack(&self, histogram_tree: &mut HistogramTree) -> Value {
        self.0.pack(histogram_tree)
    }
}

impl Unpack for Nanos {
    fn unpack(value: &Value, found: &mut StoredHists) -> Result<Self, Damage> {
        u64::unpack(value, found).map(Nanos)
    }
}

impl Unpack for IpAddr {
    fn unpack(value: &Value, _: &mut StoredHists) -> Result<Self, Damage> {
        let read = value.as_str().and_then(|text| text.parse().ok());
        read.ok_or_else(|| Damage::new("not an address"))
    }
}

/// Null means absent; a null value is stored in a list.
impl<T: Pack> Pack for Option<T> {
    fn pack(&self, histogram_tree: &mut HistogramTree) -> Value {
        match self.as_ref().map(|value| value.pack(histogram_tree)) {
            None => Value::Null,
            Some(Value::Null) => Value::Array(vec![Value::Null]),
            Some(packed) => packed,
        }
    }
}

impl<T: Unpack> Unpack for Option<T> {
    fn unpack(value: &Value, found: &mut StoredHists) -> Result<Self, Damage> {
        match value {
            Value::Null => Ok(None),
            Value::Array(list) if **list == [Value::Null] => {
                let inner = T::unpack(&Value::Null, found);
                inner.or_else(|_| T::unpack(value, found)).map(Some)
            }
            value => T::unpack(value, found).map(Some),
        }
    }
}

impl<T: Pack> Pack for Vec<T> {
    fn pack(&self, histogram_tree: &mut HistogramTree) -> Value {
        let one = |(index, value): (usize, &T)| {
            histogram_tree.within(&index.to_string(), |histogram_tree| value.pack(histogram_tree))
        };
        self.iter().enumerate().map(one).collect()
    }
}

impl<T: Unpack> Unpack for Vec<T> {
    fn unpack(value: &Value, found: &mut StoredHists) -> Result<Self, Damage> {
        let one = |(index, value): (usize, &Value)| {
            T::unpack(value, found).map_err(|damage| damage.within(&index.to_string()))
        };
        array(value)?.iter().enumerate().map(one).collect()
    }
}

impl<A: Pack, B: Pack> Pack for (A, B) {
    fn pack(&self, histogram_tree: &mut HistogramTree) -> Value {
        let first = histogram_tree.within("0", |histogram_tree| self.0.pack(histogram_tree));
        let second = histogram_tree.within("1", |histogram_tree| self.1.pack(histogram_tree));
        Value::Array(vec![first, second])
    }
}

impl<A: Unpack, B: Unpack> Unpack for (A, B) {
    fn unpack(value: &Value, found: &mut StoredHists) -> Result<Self, Damage> {
        match array(value)?.as_slice() {
            [first, second] => Ok((A::unpack(first, found)?, B::unpack(second, found)?)),
            _ => Err(Damage::new("not a pair")),
        }
    }
}

impl<T: Pack> Pack for [T; 2] {
    fn pack(&self, histogram_tree: &mut HistogramTree) -> Value {
        let one = |(index, value): (usize, &T)| {
            histogram_tree.within(&index.to_string(), |histogram_tree| value.pack(histogram_tree))
        };
        self.iter().enumerate().map(one).collect()
    }
}

impl<T: Unpack> Unpack for [T; 2] {
    fn unpack(value: &Value, found: &mut StoredHists) -> Result<Self, Damage> {
        let both: Vec<T> = Vec::unpack(value, found)?;
        both.try_into().map_err(|_| Damage::new("not two"))
    }
}

/// A list of pairs, because keys need not be texts.
impl<K: Pack + Ord, V: Pack> Pack for BTreeMap<K, V> {
    fn pack(&self, histogram_tree: &mut HistogramTree) -> Value {
        let pair = |(index, (key, value)): (usize, (&K, &V))| {
            histogram_tree.within(&index.to_string(), |histogram_tree| {
                Value::Array(vec![key.pack(histogram_tree), value.pack(histogram_tree)])
            })
        };
        self.iter().enumerate().map(pair).collect()
    }
}

impl<K: Unpack + Ord, V: Unpack> Unpack for BTreeMap<K, V> {
    fn unpack(value: &Value, found: &mut StoredHists) -> Result<Self, Damage> {
        let pairs: Vec<(K, V)> = Vec::unpack(value, found)?;
        Ok(pairs.into_iter().collect())
    }
}
