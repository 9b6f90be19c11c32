//! Conversion between a row's text and its field of the plan.

use super::Inputs;
use super::grammar::Grammar;
use crate::options::Scalar;
use crate::secrets::{MASK, mask_content};
use crate::{Plan, Secrets};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use std::borrow::Cow;
use std::collections::BTreeMap;
use units::ParseError;

/// The value of a key in the plan file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum KeyValue {
    /// Item of a list as text, as typed.
    One(Scalar),
    Switch(bool),
    List(Vec<Scalar>),
    /// The traces of emulated paths, by name.
    Texts(BTreeMap<String, String>),
}

/// Form of a value in the file, checked before its grammar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    One,
    /// A text between quotation marks, with any contents.
    Text,
    Switch,
    List,
    Texts,
}

/// A field of the plan as the table sees it, independent of its type. The macros below make it.
#[derive(Clone, Copy)]
pub(crate) struct PlanField {
    /// `connection.reconnect_pause`.
    pub(crate) key: &'static str,
    pub(crate) shape: Shape,
    /// Suffixes of the key, one at a time: `_file` if the value is in a file.
    pub(crate) endings: &'static [&'static str],
    /// The suffix of the key that the option sets.
    pub(crate) typed: &'static str,
    /// Each use of the option adds to the list.
    pub(crate) adds: bool,
    /// Checks whether the option accepts the typed text; only `read` opens a file that it names.
    pub(crate) check: fn(&str, Inputs<'_>) -> Result<(), ParseError>,
    /// Reads the value under the key with a suffix.
    pub(crate) read: fn(&mut Plan, &str, KeyValue, Inputs<'_>) -> Result<(), ParseError>,
    /// Returns the printed value, and its suffix.
    pub(crate) show: fn(&Plan, Secrets) -> (&'static str, KeyValue),
}

/// Field of an option that is not part of a plan, such as the source of a plan.
pub(super) const NO_FIELD: PlanField = PlanField {
    key: "",
    shape: Shape::One,
    endings: &[""],
    typed: "",
    adds: false,
    check: |_, _| Ok(()),
    read: |_, _, _, _| Ok(()),
    show: |_, _| ("", KeyValue::One(Scalar::Off)),
};

/// A value that always exists (`at`), a value that can be `false` in the file (`off`), or a list to
/// which each option adds (`add`): `field!(off connection.calls, COUNT)`, and `as
/// "connection.reset"` if the key and the field have different names.
macro_rules! field {
    ($kind:ident $table:ident $(.$field:ident)*, $grammar:expr) => {
        field!($kind $table $(.$field)* as concat!(stringify!($table $(.$field)*)), $grammar)
    };
    ($kind:ident $table:ident $(.$field:ident)* as $key:expr, $grammar:expr) => {
        $crate::options::field::PlanField {
            key: $key,
            shape: $grammar.shape,
            endings: &[""],
            typed: "",
            adds: matches!(stringify!($kind).as_bytes(), b"add"),
            check: |text, inputs| ($grammar.read)(text, inputs.traces).map(drop),
            read: |plan, _, value, inputs| {
                $crate::options::field::$kind::read(&$grammar, &mut plan.$table $(.$field)*, value, inputs)
            },
            show: |plan, secrets| {
                ("", $crate::options::field::$kind::show(&$grammar, &plan.$table $(.$field)*, secrets))
            },
        }
    };
}

/// Defines a field of bytes, given in the file as text, as base64 or by a file's name; the option
/// accepts one of these.
macro_rules! content {
    ($table:ident.$field:ident, typed: $typed:expr, $mask:ident) => {
        $crate::options::field::PlanField {
            key: concat!(stringify!($table), ".", stringify!($field)),
            endings: &["", "_base64", "_file"],
            typed: $typed,
            read: |plan, ending, value, inputs| {
                $crate::options::field::read_content(&mut plan.$table.$field, ending, value, inputs)
            },
            show: |plan, secrets| {
                let mask = $crate::options::field::ContentMask::$mask;
                let mask = mask.unless_shown(secrets);
                $crate::options::field::show_content(plan.$table.$field.as_deref(), mask)
            },
            ..$crate::options::field::NO_FIELD
        }
    };
}

pub(super) use {content, field};

impl<T> Grammar<T> {
    /// Returns a value; `None` for `false`.
    fn take(&self, value: KeyValue, inputs: Inputs<'_>) -> Result<Option<T>, ParseError> {
        let text = match value {
            KeyValue::List(items) => return (self.items)(&items).map(Some),
            KeyValue::Switch(on) => Some(on.to_string()),
            KeyValue::One(value) => value.typed(),
            KeyValue::Texts(_) => None,
        };
        text.map(|text| (self.read)(&text, inputs.traces)).transpose()
    }
}

/// A value that is always present.
pub(super) mod at {
    use super::*;

    pub(crate) fn read<T>(
        grammar: &Grammar<T>,
        slot: &mut T,
        value: KeyValue,
        inputs: Inputs<'_>,
    ) -> Result<(), ParseError> {
        let read = grammar.take(value, inputs)?;
        *slot = read.ok_or_else(|| ParseError("it cannot be false".to_owned()))?;
        Ok(())
    }

    pub(crate) fn show<T>(grammar: &Grammar<T>, value: &T, secrets: Secrets) -> KeyValue {
        (grammar.show)(value, secrets)
    }
}

/// A value that may be missing.
pub(super) mod off {
    use super::*;

    pub(crate) fn read<T>(
        grammar: &Grammar<T>,
        slot: &mut Option<T>,
        value: KeyValue,
        inputs: Inputs<'_>,
    ) -> Result<(), ParseError> {
        *slot = grammar.take(value, inputs)?;
        Ok(())
    }

    pub(crate) fn show<T>(grammar: &Grammar<T>, value: &Option<T>, secrets: Secrets) -> KeyValue {
        value.as_ref().map_or(KeyValue::One(Scalar::Off), |value| (grammar.show)(value, secrets))
    }
}

/// Accessors of a list that grows with each use of its option.
pub(super) mod add {
    pub(crate) use super::at::show;
    use super::*;

    pub(crate) fn read<T>(
        grammar: &Grammar<Vec<T>>,
        slot: &mut Vec<T>,
        value: KeyValue,
        inputs: Inputs<'_>,
    ) -> Result<(), ParseError> {
        slot.extend(grammar.take(value, inputs)?.into_iter().flatten());
        Ok(())
    }
}

pub(crate) fn read_content(
    slot: &mut Option<Vec<u8>>,
    ending: &str,
    value: KeyValue,
    inputs: Inputs<'_>,
) -> Result<(), ParseError> {
    let KeyValue::One(value) = value else { return Ok(()) };
    *slot = match (ending, value.typed()) {
        ("_base64", Some(code)) => {
            let bytes = BASE64.decode(code.trim());
            Some(bytes.map_err(|_| ParseError("it is not base64".to_owned()))?)
        }
        ("_file", Some(path)) => Some(inputs.files.read(&path).map_err(ParseError)?),
        (_, text) => text.map(String::into_bytes),
    };
    Ok(())
}

/// Parts that are masked in shown content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ContentMask {
    Nothing,
    /// Values whose names indicate a secret.
    Values,
    Whole,
}

impl ContentMask {
    pub(crate) fn unless_shown(self, secrets: Secrets) -> ContentMask {
        if secrets == Secrets::Shown { ContentMask::Nothing } else { self }
    }
}

/// Returns text under the key itself, and other bytes as base64 under a separate key.
pub(crate) fn show_content(bytes: Option<&[u8]>, mask: ContentMask) -> (&'static str, KeyValue) {
    let Some(bytes) = bytes else { return ("", KeyValue::One(Scalar::Off)) };
    let shown = match mask {
        ContentMask::Nothing => Cow::Borrowed(bytes),
        ContentMask::Values => Cow::Owned(mask_content(bytes, MASK)),
        ContentMask::Whole => Cow::Borrowed(MASK.as_bytes()),
    };
    match std::str::from_utf8(&shown) {
        Ok(text) => ("", KeyValue::One(Scalar::text(text))),
        Err(_) => ("_base64", KeyValue::One(Scalar::Text(BASE64.encode(&shown)))),
    }
}
