//! The grammars of values: text to value and back, in one place for options and the plan file.

use super::access::{KeyValue, Shape};
use crate::file::{ADDRESSES, FAMILIES, MASK, Scalar, name_of};
use crate::{AddressFamily, AddressOrder, Migrate, ResolveRule, Secrets, rules};
use std::net::IpAddr;
use std::path::PathBuf;
use units::{Nanos, ParseError, quoted};
use wan::TraceSource;

/// How values of a type are written.
pub(crate) struct Grammar<T: 'static> {
    pub(super) shape: Shape,
    /// As it is typed; files of traces are found by their names.
    pub(super) read: fn(&str, &dyn TraceSource) -> Result<T, ParseError>,
    /// A list from the items that the file has of it.
    pub(super) items: fn(&[Scalar]) -> Result<T, ParseError>,
    pub(super) show: fn(&T, Secrets) -> KeyValue,
}

const fn one<T>(
    read: fn(&str, &dyn TraceSource) -> Result<T, ParseError>,
    show: fn(&T, Secrets) -> KeyValue,
) -> Grammar<T> {
    Grammar { shape: Shape::One, read, items: |_| unreachable!("a value and no list"), show }
}

const fn list<T>(
    read: fn(&str, &dyn TraceSource) -> Result<Vec<T>, ParseError>,
    items: fn(&[Scalar]) -> Result<Vec<T>, ParseError>,
    show: fn(&Vec<T>, Secrets) -> KeyValue,
) -> Grammar<Vec<T>> {
    Grammar { shape: Shape::List, read, items, show }
}

fn text(value: impl Into<String>) -> KeyValue {
    KeyValue::One(Scalar::text(value))
}

fn number(value: u64) -> KeyValue {
    KeyValue::One(Scalar::whole(value))
}

/// The items of a list, each as it is typed.
fn each<T>(
    items: &[Scalar],
    read: impl Fn(&str) -> Result<T, ParseError>,
) -> Result<Vec<T>, ParseError> {
    items.iter().map(|item| read(&item.typed().unwrap_or_default())).collect()
}

fn texts<T>(values: &[T], show: impl Fn(&T) -> String) -> KeyValue {
    KeyValue::List(values.iter().map(|value| Scalar::Text(show(value))).collect())
}

/// One of a few names.
pub(crate) fn pick<T: Copy>(names: &[(&str, T)], text: &str) -> Result<T, ParseError> {
    let found = names.iter().find(|(name, _)| *name == text);
    found.map(|(_, value)| *value).ok_or_else(|| {
        let known: Vec<&str> = names.iter().map(|(name, _)| *name).collect();
        ParseError(format!("{} is not one of {}", quoted(text), known.join(", ")))
    })
}

/// A count that fits into `T`.
pub(crate) fn whole<T: TryFrom<u64>>(text: &str) -> Result<T, ParseError> {
    let count = units::parse_count(text)?;
    let most = u64::MAX >> (64 - 8 * size_of::<T>());
    T::try_from(count).map_err(|_| ParseError(format!("{} is above {most}", quoted(text))))
}

fn small_size(text: &str) -> Result<u32, ParseError> {
    let size = units::parse_size(text)?;
    u32::try_from(size).map_err(|_| ParseError(format!("{} is above 4G", quoted(text))))
}

pub(super) const SWITCH: Grammar<bool> = Grammar {
    shape: Shape::Switch,
    ..one(|text, _| pick(&[("true", true), ("false", false)], text), |on, _| KeyValue::Switch(*on))
};
pub(super) const COUNT: Grammar<u32> = one(|text, _| whole(text), |it, _| number((*it).into()));
pub(super) const COUNT_16: Grammar<u16> = one(|text, _| whole(text), |it, _| number((*it).into()));
/// Bytes.
pub(super) const SIZE: Grammar<u32> = one(|text, _| small_size(text), |it, _| number((*it).into()));
pub(super) const DURATION: Grammar<Nanos> =
    one(|text, _| units::parse_duration(text), |span, _| text(rules::show_span(*span)));
pub(super) const PATH: Grammar<PathBuf> =
    one(|text, _| Ok(text.into()), |path, _| text(path.to_string_lossy()));
pub(super) const PROXY: Grammar<url::Url> = one(|text, _| crate::parse_proxy(text), show_proxy);
pub(super) const FAMILY: Grammar<AddressFamily> =
    one(|text, _| pick(&FAMILIES, text), |it, _| text(name_of(&FAMILIES, it)));
pub(super) const ADDRESS_ORDER: Grammar<AddressOrder> =
    one(|text, _| pick(&ADDRESSES, text), |it, _| text(name_of(&ADDRESSES, it)));
/// One emulated path for all.
pub(super) const LINK: Grammar<wan::PathSpec> = one(rules::parse_path, |path, _| text(&path.text));
pub(super) const CLIENTS: Grammar<wan::Population> =
    one(rules::parse_clients, |all, _| text(&all.text));
pub(super) const MIGRATION: Grammar<Migrate> =
    one(|text, _| rules::parse_migrate(text), |when, _| text(rules::show_migrate(*when)));
pub(super) const RESOLVE: Grammar<Vec<ResolveRule>> = list(
    |text, _| rules::parse_resolve(text).map(|rule| vec![rule]),
    |items| each(items, rules::parse_resolve),
    |all, _| texts(all, rules::show_resolve),
);
pub(super) const ADDRESS_LIST: Grammar<Vec<IpAddr>> = list(
    |text, _| rules::parse_bind(text),
    |items| match each(items, |text| Ok(text.to_owned()))? {
        none if none.is_empty() => Ok(Vec::new()),
        some => rules::parse_bind(&some.join(",")),
    },
    |all, _| texts(all, ToString::to_string),
);

fn show_proxy(proxy: &url::Url, secrets: Secrets) -> KeyValue {
    let mut shown = proxy.clone();
    if secrets == Secrets::Masked && proxy.password().is_some() {
        let masked = shown.set_password(Some(MASK));
        masked.expect("a URL that has a password can have another one");
    }
    text(shown.as_str())
}
