//! Priorities of requests after RFC 9218: the urgency of a request, and whether partial responses
//! are useful.

use std::fmt;
use std::str::FromStr;
use units::{ParseError, quoted};

/// The largest urgency value, which is the lowest priority (RFC 9218 section 4.1).
const URGENCY_MAX: u8 = 7;
/// Default of a request without a priority.
const URGENCY_DEFAULT: u8 = 3;

/// The value of a `priority` field. Its text is a dictionary of RFC 8941: `u=1, i`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Priority {
    /// Urgency from 0 (first) to 7 (last).
    pub urgency: u8,
    /// Parts of the response may be interleaved with other responses of the same urgency.
    pub incremental: bool,
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "u={}", self.urgency)?;
        if self.incremental { f.write_str(", i") } else { Ok(()) }
    }
}

impl FromStr for Priority {
    type Err = ParseError;

    /// Parses `u=0` to `u=7`, `i`, or both separated by a comma; omitted parts have the standard's
    /// default.
    fn from_str(text: &str) -> Result<Priority, ParseError> {
        let bad = |why: String| {
            ParseError(format!(
                "{} is not a priority: {why}; write u=0 (first) to u=7 (last), i, or both, as in \
                 'u=1, i' (RFC 9218)",
                quoted(text)
            ))
        };
        let (mut urgency, mut incremental) = (None, None);
        for part in text.split(',').map(|part| part.trim_matches([' ', '\t'])) {
            let twice = match part.split_once('=') {
                Some(("u", digits)) => {
                    let value = digits.parse().ok().filter(|value| *value <= URGENCY_MAX);
                    let value = value.filter(|_| digits.len() == 1);
                    let value = value.ok_or_else(|| {
                        bad(format!("{} is not an urgency from 0 to 7", quoted(digits)))
                    })?;
                    urgency.replace(value).is_some()
                }
                Some(("i", "?1")) => incremental.replace(true).is_some(),
                Some(("i", "?0")) => incremental.replace(false).is_some(),
                None if part == "i" => incremental.replace(true).is_some(),
                _ => return Err(bad(format!("{} is not part of a priority", quoted(part)))),
            };
            if twice {
                return Err(bad(format!("{} appears twice", quoted(part))));
            }
        }
        Ok(Priority {
            urgency: urgency.unwrap_or(URGENCY_DEFAULT),
            incremental: incremental.unwrap_or(false),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_priority_is_read_and_written_in_one_form() {
        for (text, shown) in [
            ("u=1, i", "u=1, i"),
            ("i,u=0", "u=0, i"),
            ("i", "u=3, i"),
            ("u=7", "u=7"),
            (" u=5 , i=?0 ", "u=5"),
            ("i=?1", "u=3, i"),
        ] {
            let read: Priority = text.parse().unwrap();
            assert_eq!(read.to_string(), shown, "{text}");
            assert_eq!(read.to_string().parse(), Ok(read), "{text}");
        }
    }

    #[test]
    fn an_invalid_priority_is_reported() {
        for (text, reported) in [
            ("", "\"\" is not part of a priority"),
            ("u=8", "\"8\" is not an urgency from 0 to 7"),
            ("u=", "\"\" is not an urgency"),
            ("u=01", "\"01\" is not an urgency"),
            ("u=+1", "\"+1\" is not an urgency"),
            ("u=-1", "\"-1\" is not an urgency"),
            ("u=1,", "\"\" is not part of a priority"),
            ("u=1, u=2", "\"u=2\" appears twice"),
            ("i, i=?0", "\"i=?0\" appears twice"),
            ("high", "\"high\" is not part of a priority"),
            ("u=1\r\nx: y", "is not an urgency"),
        ] {
            let why = text.parse::<Priority>().unwrap_err();
            assert!(why.0.contains(reported) && why.0.contains("write u=0"), "{text:?}: {}", why.0);
        }
    }
}
