//! Values of options that are not part of a plan, or that may be repeated only for `compare`.

use plan::{HttpVersion, Location};
use std::convert::Infallible;
use units::ParseError;
use url::Url;

/// Versions of HTTP separated by commas, for `compare`.
pub(super) fn versions(text: &str) -> Result<Vec<HttpVersion>, ParseError> {
    let one = |name: &str| {
        let known = VERSIONS.iter().find(|(known, _)| *known == name);
        known.map(|(_, version)| *version).ok_or_else(|| {
            let names: Vec<&str> = VERSIONS.iter().map(|(name, _)| *name).collect();
            ParseError(format!(
                "{} is not a version of HTTP that is supported here: give {}",
                units::quoted(name),
                names.join(", ")
            ))
        })
    };
    text.split(',').map(|name| one(name.trim())).collect()
}

/// Returns the name of a version, as [`versions`] parses it.
pub(super) fn name_of(version: HttpVersion) -> &'static str {
    VERSIONS.iter().find(|(_, known)| *known == version).map_or("", |(name, _)| name)
}

/// Values of `--http`.
pub(super) const VERSIONS: [(&str, HttpVersion); 5] = [
    ("1.0", HttpVersion::Http10),
    ("1.1", HttpVersion::Http11),
    ("2", HttpVersion::Http2),
    ("3", HttpVersion::Http3),
    ("auto", HttpVersion::Auto),
];

/// Parses a count that fits into `T`.
pub(super) fn count<T: TryFrom<u64>>(text: &str) -> Result<T, ParseError> {
    let count = units::parse_count(text)?;
    let most = u64::MAX >> (64 - 8 * size_of::<T>());
    T::try_from(count).map_err(|_| ParseError(format!("{} is above {most}", units::quoted(text))))
}

/// Parses a URL without a login; `instead`: the option for a login.
pub(super) fn bare_url(text: &str, instead: &str) -> Result<Url, String> {
    let Location { url, auth } = plan::parse_url(text).map_err(|error| error.0)?;
    match auth {
        None => Ok(url),
        Some(_) => Err(format!("the login in it is not sent; {instead}")),
    }
}

pub(super) fn sink(text: &str) -> Result<super::Sink, Infallible> {
    Ok(if text == "-" { super::Sink::Stdout } else { super::Sink::File(text.into()) })
}
