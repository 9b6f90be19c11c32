//! Rules for arbitrary bytes; the fuzz targets include this file.

use plan::{NoFiles, Secrets, from_toml, parse_url_list, to_toml};

/// Parses any text as a URL list: the result is targets with a weight above zero, or an error of
/// one line that is short enough to read.
pub(crate) fn url_list(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match parse_url_list(&text, None) {
        Ok(targets) => {
            assert!(!targets.is_empty(), "a list without a target is an error");
            for target in targets {
                assert!(target.weight > 0.0 && target.weight.is_finite());
                assert!(matches!(target.url.scheme(), "http" | "https"));
                assert!(target.url.host_str().is_some_and(|host| !host.is_empty()));
            }
        }
        Err(error) => readable(&error.0),
    }
}

/// Parses any text as a plan file: the result is an error, or a plan that is equal after printing
/// and parsing.
pub(crate) fn plan_file(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match from_toml(&text, &NoFiles) {
        Ok(read) => {
            let printed = to_toml(&read, Secrets::Shown);
            let again = from_toml(&printed, &NoFiles);
            assert_eq!(again.as_ref(), Ok(&read), "printed as\n{printed}");
        }
        Err(error) => readable(&error.0),
    }
}

fn readable(text: &str) {
    assert!(!text.trim().is_empty(), "an error says something");
    assert!(text.len() < 4_000, "{} bytes of error", text.len());
}
