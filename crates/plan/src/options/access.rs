//! How a row reaches its field of the plan: from text and to text.

use super::Inputs;
use super::grammar::Grammar;
use crate::file::Scalar;
use crate::{Plan, Secrets};
use std::collections::BTreeMap;
use units::ParseError;

/// The value of a key in the plan file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum KeyValue {
    One(Scalar),
    Switch(bool),
    List(Vec<Scalar>),
    /// The traces of emulated paths, by name.
    Texts(BTreeMap<String, String>),
}

/// What a value of the file has to look like, before its grammar is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    One,
    Switch,
    List,
    Texts,
}

/// A field of the plan as the table sees it, whatever its type.
pub(crate) trait Access: Sync {
    /// `connection.reconnect_pause`.
    fn key(&self) -> &'static str;

    fn shape(&self) -> Shape;

    /// What the key's name may end with, further keys for the same field: `_file`.
    fn endings(&self) -> &'static [&'static str] {
        &[""]
    }

    fn is_repeated(&self) -> bool {
        false
    }

    fn check(&self, _text: &str, _inputs: Inputs<'_>) -> Result<(), ParseError> {
        Ok(())
    }

    fn set(&self, _plan: &mut Plan, _text: &str, _inputs: Inputs<'_>) -> Result<(), ParseError> {
        Ok(())
    }

    /// Takes what the file has under each of the [`endings`](Access::endings).
    fn read(
        &self,
        _plan: &mut Plan,
        _given: Vec<Option<KeyValue>>,
        _inputs: Inputs<'_>,
    ) -> Result<(), ParseError> {
        Ok(())
    }

    /// What a printed plan has, and under which ending.
    fn show(&self, plan: &Plan, secrets: Secrets) -> (&'static str, KeyValue);

    /// Why the value is out of bounds, to stand behind the option's name.
    fn fault(&self, _plan: &Plan) -> Option<String> {
        None
    }

    fn bounds(&self) -> (Option<String>, Option<String>) {
        (None, None)
    }
}

/// Where a value stands in the plan. [`at!`](super::at), [`off!`](super::off) and
/// [`add!`](super::add) make one.
pub(crate) struct Place<T: 'static> {
    pub(super) key: &'static str,
    pub(super) get: fn(&Plan) -> Option<&T>,
    /// `None` is the file's `false`.
    pub(super) set: fn(&mut Plan, Option<T>),
    pub(super) can_be_off: bool,
    pub(super) adds: bool,
}

/// A value that is always there: `at!(connection.tries)`, or `at!(connection.prefer, "connection.family")`
/// where the key is called otherwise.
macro_rules! at {
    ($table:ident.$field:ident) => {
        at!($table.$field, concat!(stringify!($table), ".", stringify!($field)))
    };
    ($table:ident.$field:ident, $key:expr) => {
        $crate::options::access::Place {
            key: $key,
            get: |plan| Some(&plan.$table.$field),
            set: |plan, value| {
                if let Some(value) = value {
                    plan.$table.$field = value;
                }
            },
            can_be_off: false,
            adds: false,
        }
    };
}

/// An `Option`, whose `None` is `false` in the file.
macro_rules! off {
    ($table:ident.$field:ident) => {
        $crate::options::access::Place {
            key: concat!(stringify!($table), ".", stringify!($field)),
            get: |plan| plan.$table.$field.as_ref(),
            set: |plan, value| plan.$table.$field = value,
            can_be_off: true,
            adds: false,
        }
    };
}

/// A list to which each option that is given adds.
macro_rules! add {
    ($table:ident.$($field:ident).+, $key:expr) => {
        $crate::options::access::Place {
            key: $key,
            get: |plan| Some(&plan.$table.$($field).+),
            set: |plan, value| plan.$table.$($field).+.extend(value.into_iter().flatten()),
            can_be_off: false,
            adds: true,
        }
    };
}

pub(super) use {add, at, off};

/// A place, the grammar of what stands there, and its bounds.
pub(crate) struct Field<T: 'static> {
    place: Place<T>,
    grammar: Grammar<T>,
    limits: Option<Limits<T>>,
}

struct Limits<T> {
    least: Option<T>,
    most: Option<T>,
    /// What is said of a value below, and above; `{}` is the value.
    texts: [&'static str; 2],
    in_order: fn(&T, &T) -> bool,
}

impl<T: 'static> Grammar<T> {
    pub(super) const fn of(self, place: Place<T>) -> Field<T> {
        Field { place, grammar: self, limits: None }
    }
}

impl<T: Copy + PartialOrd + 'static> Field<T> {
    /// From `least` to `most`. `text` stands behind the option's name, and `{}` in it is the value.
    pub(super) const fn within(self, least: T, most: T, text: &'static str) -> Field<T> {
        self.limited(Some(least), Some(most), [text, text])
    }

    pub(super) const fn least(self, least: T, text: &'static str) -> Field<T> {
        self.limited(Some(least), None, [text, text])
    }

    pub(super) const fn most(self, most: T, text: &'static str) -> Field<T> {
        self.limited(None, Some(most), [text, text])
    }

    pub(super) const fn limited(
        self,
        least: Option<T>,
        most: Option<T>,
        texts: [&'static str; 2],
    ) -> Field<T> {
        Field { limits: Some(Limits { least, most, texts, in_order: T::le }), ..self }
    }
}

impl<T: Clone + Send + Sync + 'static> Field<T> {
    fn parse(&self, text: &str, inputs: Inputs<'_>) -> Result<T, ParseError> {
        (self.grammar.read)(text, inputs.traces)
    }

    fn typed(&self, value: &T) -> Option<String> {
        match (self.grammar.show)(value, Secrets::Masked) {
            KeyValue::One(value) => value.typed(),
            _ => None,
        }
    }
}

impl<T: Clone + Send + Sync + 'static> Access for Field<T> {
    fn key(&self) -> &'static str {
        self.place.key
    }

    fn shape(&self) -> Shape {
        self.grammar.shape
    }

    fn is_repeated(&self) -> bool {
        self.place.adds
    }

    fn check(&self, text: &str, inputs: Inputs<'_>) -> Result<(), ParseError> {
        self.parse(text, inputs).map(drop)
    }

    fn set(&self, plan: &mut Plan, text: &str, inputs: Inputs<'_>) -> Result<(), ParseError> {
        let value = self.parse(text, inputs)?;
        (self.place.set)(plan, Some(value));
        Ok(())
    }

    fn read(
        &self,
        plan: &mut Plan,
        given: Vec<Option<KeyValue>>,
        inputs: Inputs<'_>,
    ) -> Result<(), ParseError> {
        let value = match given.into_iter().next().flatten() {
            None => return Ok(()),
            Some(KeyValue::List(items)) => Some((self.grammar.items)(&items)?),
            Some(KeyValue::Switch(on)) => Some(self.parse(&on.to_string(), inputs)?),
            Some(KeyValue::One(value)) => match value.typed() {
                Some(text) => Some(self.parse(&text, inputs)?),
                None if self.place.can_be_off => None,
                None => return Err(ParseError("it cannot be false".to_owned())),
            },
            Some(KeyValue::Texts(_)) => return Ok(()),
        };
        (self.place.set)(plan, value);
        Ok(())
    }

    fn show(&self, plan: &Plan, secrets: Secrets) -> (&'static str, KeyValue) {
        let value = (self.place.get)(plan);
        ("", value.map_or(KeyValue::One(Scalar::Off), |value| (self.grammar.show)(value, secrets)))
    }

    fn fault(&self, plan: &Plan) -> Option<String> {
        let (limits, value) = (self.limits.as_ref()?, (self.place.get)(plan)?);
        let Limits { least, most, texts, in_order } = limits;
        let below = least.as_ref().is_some_and(|least| !in_order(least, value));
        let above = most.as_ref().is_some_and(|most| !in_order(value, most));
        let text = if below { texts[0] } else { texts[1] };
        (below || above).then(|| text.replace("{}", &self.typed(value).unwrap_or_default()))
    }

    fn bounds(&self) -> (Option<String>, Option<String>) {
        let shown = |bound: &Option<T>| bound.as_ref().and_then(|bound| self.typed(bound));
        self.limits.as_ref().map_or((None, None), |it| (shown(&it.least), shown(&it.most)))
    }
}

/// The row of no field, which the others are made from.
pub(super) const NO_FIELD: Field<bool> = super::grammar::SWITCH.of(Place {
    key: "none.none",
    get: |_| None,
    set: |_, _| (),
    can_be_off: true,
    adds: false,
});

/// `connection.traces`: follows from the paths that name traces, and is read before them.
pub(super) struct Traces;

pub(super) const TRACES: Traces = Traces;

/// The traces that the plan's paths name as files.
pub(super) fn traces(plan: &Plan) -> BTreeMap<String, String> {
    let path = plan.connection.path.iter().flat_map(|path| path.traces.clone());
    let clients = plan.connection.clients.iter().flat_map(wan::Population::traces);
    path.chain(clients).map(|(name, trace)| (name, trace.gaps())).collect()
}

impl Access for Traces {
    fn key(&self) -> &'static str {
        "connection.traces"
    }

    fn shape(&self) -> Shape {
        Shape::Texts
    }

    fn show(&self, plan: &Plan, _: Secrets) -> (&'static str, KeyValue) {
        ("", KeyValue::Texts(traces(plan)))
    }
}
