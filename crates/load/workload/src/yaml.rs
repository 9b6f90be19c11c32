//! Parses YAML from users' files with a limit on nesting: the time of the library's parser grows
//! with the square of the depth of brackets.

use serde::de::DeserializeOwned;

/// Maximum depth of brackets.
const DEPTH_MAX: usize = 128;

/// Parses the first document of a YAML text.
///
/// # Errors
/// Fails if the text is not YAML, does not match `T`, or nests too deeply. The error contains the
/// position.
pub fn parse<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    // JSON is YAML too, and its parser limits the depth without counting brackets in texts
    if text.trim_start().starts_with(['{', '['])
        && let Ok(found) = serde_json::from_str(text)
    {
        return Ok(found);
    }
    match too_deep(text) {
        Some(line) => Err(format!("line {line}: brackets nest more than {DEPTH_MAX} deep")),
        None => serde_yaml_ng::from_str(text).map_err(|error| error.to_string()),
    }
}

/// Returns the line at which brackets nest too deeply. Brackets in quoted text count as well.
/// Therefore valid YAML (not JSON) with more than [`DEPTH_MAX`] unclosed brackets is rejected.
fn too_deep(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > DEPTH_MAX {
            return Some(1 + text.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn deep_brackets_are_refused_with_their_line() {
        let nested = |depth: usize| format!("a:\n  {}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(parse::<Value>(&nested(100)).is_ok());
        let error = parse::<Value>(&nested(129));
        assert_eq!(error, Err("line 2: brackets nest more than 128 deep".to_owned()));
        let quoted = format!("{{\"a\": \"{}\"}}", "[".repeat(300));
        assert!(parse::<Value>(&quoted).is_ok(), "these brackets are text");
        // closed brackets do not add up
        assert!(parse::<Value>(&format!("a: [{}1]", "[1], ".repeat(300))).is_ok());
    }
}
