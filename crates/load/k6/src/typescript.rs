//! TypeScript: refused for now with what to do instead.

/// The text as JavaScript.
///
/// # Errors
/// TypeScript is not read.
pub(crate) fn strip(_text: &str) -> Result<String, String> {
    Err(" is TypeScript, which is not read; compile it to JavaScript first: esbuild --format=esm \
         --external:k6* FILE"
        .to_owned())
}
