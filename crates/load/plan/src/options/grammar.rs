//! The grammars of values: text to value and back, in one place for options and the plan file.

use super::field::{KeyValue, Shape};
use crate::check::node::pick;
use crate::fold::{self, Fold};
use crate::names::{ADDRESSES, FAMILIES, GAPS, HTTP_VERSIONS, ORDERS, TLS_VERSIONS, name_of};
use crate::options::Scalar;
use crate::secrets::{MASK, is_secret_header, mask_named};
use crate::{
    AbortRule, AddressFamily, AddressOrder, AnswerField, BodyRule, Gaps, HttpVersion, MaskRule,
    MessageAnswer, Migrate, Order, Priority, ResolveRule, Secrets, SourcePrefix, StackChoice,
    Streaming, TcpTraits, Think, TlsVersions, Verify, Visit, rules, verify,
};
use std::net::IpAddr;
use std::path::PathBuf;
use units::{Nanos, ParseError, Rate, RateSpan, quoted};
use wan::TraceSource;

/// Textual form of a type's values.
pub(crate) struct Grammar<T: 'static> {
    pub(super) shape: Shape,
    /// Parses a value as typed; files of traces are found by their names.
    pub(super) read: fn(&str, &dyn TraceSource) -> Result<T, ParseError>,
    /// Builds a list from the items in the file.
    pub(super) items: fn(&[Scalar]) -> Result<T, ParseError>,
    pub(super) show: fn(&T, Secrets) -> KeyValue,
}

const fn one<T>(
    read: fn(&str, &dyn TraceSource) -> Result<T, ParseError>,
    show: fn(&T, Secrets) -> KeyValue,
) -> Grammar<T> {
    let items = |_: &[Scalar]| unreachable!("a value and no list");
    Grammar { shape: Shape::One, read, items, show }
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

/// Parses the items of a list, each as typed.
pub(super) fn each<T>(
    items: &[Scalar],
    read: impl Fn(&str) -> Result<T, ParseError>,
) -> Result<Vec<T>, ParseError> {
    let one = |item: &Scalar| {
        let text = item.typed().ok_or_else(|| ParseError("it cannot be false".to_owned()))?;
        read(&text)
    };
    items.iter().map(one).collect()
}

fn texts<T>(values: &[T], show: impl Fn(&T) -> String) -> KeyValue {
    KeyValue::List(values.iter().map(|value| Scalar::Text(show(value))).collect())
}

/// Returns a count that fits into `T`.
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
    ..one(|text, _| pick(text, &[("true", true), ("false", false)]), |on, _| KeyValue::Switch(*on))
};
pub(super) const COUNT: Grammar<u32> = one(|text, _| whole(text), |it, _| number((*it).into()));
pub(super) const COUNT_16: Grammar<u16> = one(|text, _| whole(text), |it, _| number((*it).into()));
pub(super) const COUNT_64: Grammar<u64> = one(|text, _| whole(text), |it, _| number(*it));
/// A size in bytes.
pub(super) const SIZE: Grammar<u32> = one(|text, _| small_size(text), |it, _| number((*it).into()));
pub(super) const DURATION: Grammar<Nanos> =
    one(|text, _| units::parse_duration(text), |span, _| text(rules::show_span(*span)));
pub(super) const PATH: Grammar<PathBuf> =
    one(|text, _| Ok(text.into()), |path, _| text(path.to_string_lossy()));
pub(super) const PROXY: Grammar<url::Url> = one(|text, _| crate::parse_proxy(text), show_proxy);
pub(super) const HTTP_URL: Grammar<url::Url> =
    one(|text, _| crate::urls::parse_service_url(text), show_service_url);
pub(super) const CLIENT_LOGIN: Grammar<crate::ClientLogin> = one(
    |text, _| pick(text, &crate::token::CLIENT_LOGINS),
    |it, _| text(name_of(&crate::token::CLIENT_LOGINS, it)),
);
pub(super) const FAMILY: Grammar<AddressFamily> =
    one(|text, _| pick(text, &FAMILIES), |it, _| text(name_of(&FAMILIES, it)));
pub(super) const ADDRESS_ORDER: Grammar<AddressOrder> =
    one(|text, _| pick(text, &ADDRESSES), |it, _| text(name_of(&ADDRESSES, it)));
/// One emulated path for all clients.
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
/// Hosts separated by commas, as written in URLs.
pub(super) const HOSTS: Grammar<Vec<String>> = list(
    |text, _| text.split(',').map(|host| rules::parse_host(host.trim())).collect(),
    |items| each(items, rules::parse_host),
    |all, _| texts(all, String::clone),
);
pub(super) const ADDRESS_LIST: Grammar<Vec<IpAddr>> = list(
    |text, _| rules::parse_bind(text),
    |items| match each(items, |text| Ok(text.to_owned()))? {
        none if none.is_empty() => Ok(Vec::new()),
        some => rules::parse_bind(&some.join(",")),
    },
    |all, _| texts(all, ToString::to_string),
);

pub(super) const ANSWER: Grammar<MessageAnswer> =
    one(|text, _| crate::websocket::parse_answer(text), |it, _| text(it.text()));
/// Protocol on top of WebSocket.
pub(super) const PRESET: Grammar<&'static crate::SocketPreset> =
    one(|text, _| crate::preset::parse_preset(text), |it, _| text(it.name.to_owned()));
pub(super) const MASKS: Grammar<MaskRule> = one(
    |text, _| pick(text, &crate::websocket::MASK_RULES),
    |it, _| text(name_of(&crate::websocket::MASK_RULES, it)),
);
/// Names separated by commas; `none` is the empty list.
pub(super) const NAMES: Grammar<Vec<String>> = list(
    |text, _| match text {
        "none" => Ok(Vec::new()),
        names => Ok(names.split(',').map(|name| name.trim().to_owned()).collect()),
    },
    |items| each(items, |text| Ok(text.to_owned())),
    |all, _| texts(all, String::clone),
);
/// Core numbers: a list in the file, numbers and ranges on the command line.
pub(super) const CORES: Grammar<Vec<u32>> = list(
    |text, _| rules::parse_cpus(text),
    |items| each(items, whole),
    |all, _| KeyValue::List(all.iter().map(|core| Scalar::whole((*core).into())).collect()),
);
/// Quantiles from 0 to 1 in the file, percentiles on the command line.
pub(super) const QUANTILES: Grammar<Vec<f64>> = list(
    |text, _| rules::parse_percentiles(text),
    |items| each(items, parse_number),
    |all, _| KeyValue::List(all.iter().copied().map(Scalar::Number).collect()),
);
pub(super) const OBJECTIVES: Grammar<Vec<stats::Objective>> = list(
    |text, _| stats::parse_objectives(text),
    |items| Ok(each(items, stats::parse_objectives)?.concat()),
    |all, _| texts(all, |objective| objective.text.clone()),
);
pub(super) const FOLDS: Grammar<Vec<Fold>> = list(
    |text, _| fold::parse_fold(text).map(|fold| vec![fold]),
    |items| each(items, fold::parse_fold),
    |all, _| texts(all, |fold| fold.text.clone()),
);
pub(super) const STATUSES: Grammar<Vec<(u16, u16)>> = list(
    |text, _| rules::parse_statuses(text),
    |items| Ok(each(items, rules::parse_statuses)?.concat()),
    |all, _| KeyValue::List(all.iter().map(show_statuses).collect()),
);
pub(super) const GRPC_STATUSES: Grammar<Vec<u8>> = list(
    |text, _| protocol::grpc::expected_codes(text),
    |items| Ok(each(items, protocol::grpc::expected_codes)?.concat()),
    |all, _| {
        let name =
            |number: &u8| protocol::grpc::Code::from_number(u32::from(*number)).name().to_owned();
        texts(all, name)
    },
);
pub(super) const ANSWER_FIELD: Grammar<AnswerField> =
    one(|text, _| AnswerField::parse(text), |field, _| text(field.text()));
/// A length in bytes that may exceed 4 GiB.
pub(super) const LENGTH: Grammar<u64> = one(|text, _| units::parse_size(text), |it, _| number(*it));
pub(super) const BODY_RULE: Grammar<BodyRule> =
    one(|text, _| rules::parse_body_rule(text), |rule, _| text(rules::show_body_rule(rule)));
pub(super) const THINK_TIME: Grammar<Think> =
    one(|text, _| rules::parse_think(text), |it, _| text(rules::show_think(*it)));
pub(super) const LAW: Grammar<Gaps> = Grammar {
    shape: Shape::Text,
    ..one(|text, _| pick(text, &GAPS), |it, _| text(name_of(&GAPS, it)))
};
pub(super) const VISITS: Grammar<Vec<Visit>> = list(
    |text, _| rules::parse_visit(text).map(|visit| vec![visit]),
    |items| each(items, rules::parse_visit),
    |all, _| texts(all, rules::show_visit),
);
pub(super) const PER_SECOND: Grammar<Rate> =
    one(|text, _| units::parse_rate(text), |it, _| show_rate(*it));
pub(super) const RATE_SPAN: Grammar<RateSpan> =
    one(|text, _| units::parse_rate_span(text), |span, _| show_rate(span.from));
pub(super) const ABORT_RULE: Grammar<AbortRule> =
    one(|text, _| rules::parse_abort_rule(text), |rule, _| text(&rule.text));
pub(super) const VERIFY: Grammar<Verify> =
    one(|text, _| verify::parse_verify(text), |how, _| text(verify::show_verify(how)));
pub(super) const TEXT: Grammar<String> = one(|text, _| Ok(text.to_owned()), |it, _| text(it));
pub(super) const TLS_VERSION: Grammar<TlsVersions> =
    one(|text, _| pick(text, &TLS_VERSIONS), |it, _| text(name_of(&TLS_VERSIONS, it)));
pub(super) const STACK: Grammar<StackChoice> =
    one(|text, _| crate::stack::parse_stack(text), |it, _| text(it.to_string()));
pub(super) const SOURCES: Grammar<SourcePrefix> =
    one(|text, _| rules::parse_sources(text), |prefix, _| text(prefix.to_string()));
pub(super) const TCP_TRAITS: Grammar<TcpTraits> =
    one(|text, _| crate::tcp::parse_traits(text), |it, _| text(it.to_string()));
pub(super) const STREAMING: Grammar<Streaming> =
    one(|text, _| crate::parse_streaming(text), |form, _| text(form.id()));
pub(super) const ORDER: Grammar<Order> =
    one(|text, _| pick(text, &ORDERS), |it, _| text(name_of(&ORDERS, it)));
pub(super) const METHOD: Grammar<String> =
    Grammar { shape: Shape::Text, ..one(|text, _| rules::parse_method(text), |it, _| text(it)) };
pub(super) const WORDS: Grammar<String> = Grammar { shape: Shape::Text, ..TEXT };
pub(super) const VERSION: Grammar<HttpVersion> =
    one(|text, _| pick(text, &HTTP_VERSIONS), |it, _| text(name_of(&HTTP_VERSIONS, it)));
pub(super) const URGENCY: Grammar<Priority> =
    one(|text, _| text.parse(), |it, _| text(it.to_string()));
pub(super) const HEADERS: Grammar<Vec<(String, String)>> = list(
    |text, _| rules::parse_header(text).map(|field| vec![field]),
    |items| each(items, rules::parse_header),
    |all, secrets| texts(all, |field| show_header(field, secrets)),
);
pub(super) const NUMBER: Grammar<f64> = one(|text, _| parse_number(text), |it, _| exact(*it));
/// Bits per second.
pub(super) const BIT_RATE: Grammar<f64> =
    one(|text, _| rules::parse_bits(text), |it, _| exact(*it));
/// From 0 to 1, or in percent.
pub(super) const SHARE: Grammar<f64> = one(|text, _| units::parse_share(text), |it, _| exact(*it));
/// A whole number that may be negative, bounded by its row.
pub(super) const PRIORITY: Grammar<i32> = one(
    |text, _| {
        let why = || format!("{} is not a whole number from -20 to 19", quoted(text));
        text.parse().map_err(|_| ParseError(why()))
    },
    |nice, _| KeyValue::One(Scalar::Whole((*nice).into())),
);

/// Prints `name: value`, or the mask if the value is a secret.
pub(crate) fn show_header((name, value): &(String, String), secrets: Secrets) -> String {
    let masked = secrets == Secrets::Masked && is_secret_header(name);
    format!("{name}: {}", if masked { MASK } else { value })
}

fn show_rate(rate: Rate) -> KeyValue {
    text(format!("{}/s", rate.0))
}

pub(super) fn show_instants(at: &[Nanos]) -> KeyValue {
    texts(at, |span| rules::show_span(*span))
}

fn show_statuses(&(from, to): &(u16, u16)) -> Scalar {
    if from == to { Scalar::whole(from.into()) } else { Scalar::Text(format!("{from}-{to}")) }
}

fn exact(number: f64) -> KeyValue {
    KeyValue::One(Scalar::Number(number))
}

fn parse_number(text: &str) -> Result<f64, ParseError> {
    text.parse().map_err(|_| ParseError(format!("{} is not a number", quoted(text))))
}

/// Masks a key in the query, which may be a secret.
fn show_service_url(url: &url::Url, secrets: Secrets) -> KeyValue {
    match secrets {
        Secrets::Shown => text(url.as_str()),
        Secrets::Masked => text(mask_named(url.as_str(), MASK)),
    }
}

fn show_proxy(proxy: &url::Url, secrets: Secrets) -> KeyValue {
    let mut shown = proxy.clone();
    if secrets == Secrets::Masked && proxy.password().is_some() {
        let masked = shown.set_password(Some(MASK));
        masked.expect("a URL that has a password can have another one");
    }
    text(shown.as_str())
}
