//! Forms given as options: `name=value`, and `name=@FILE` for an upload.

use crate::FileSource;
use protocol::http1::multipart::{FormPart, form_data};
use units::{ParseError, quoted};

/// Media type of an upload without a `;type=`.
const UPLOAD_TYPE: &str = "application/octet-stream";

/// Field as typed.
struct FormField<'a> {
    name: &'a str,
    value: &'a str,
    /// The value is the name of a file with its media type.
    media_type: Option<&'a str>,
}

fn parse(text: &str) -> Result<FormField<'_>, ParseError> {
    let Some((name, value)) = text.split_once('=').filter(|(name, _)| !name.is_empty()) else {
        let why = "is not a field of a form: write name=value, or name=@FILE for an upload";
        return Err(ParseError(format!("{} {why}", quoted(text))));
    };
    let Some(path) = value.strip_prefix('@') else {
        return Ok(FormField { name, value, media_type: None });
    };
    let (path, media_type) = path.split_once(";type=").unwrap_or((path, UPLOAD_TYPE));
    if path.is_empty() || media_type.trim().is_empty() {
        let why = "names no file, or no type: write name=@FILE or name=@FILE;type=image/png";
        return Err(ParseError(format!("{} {why}", quoted(text))));
    }
    Ok(FormField { name, value: path, media_type: Some(media_type) })
}

/// Checks one field as typed.
///
/// # Errors
/// Fails if the text has no name or no `=`.
pub fn check_form_field(text: &str) -> Result<(), ParseError> {
    parse(text).map(drop)
}

/// Returns Content-Type and body of a form: `multipart/form-data` with an upload, otherwise
/// `application/x-www-form-urlencoded`, as browsers send them.
///
/// # Errors
/// Fails if a field is malformed, or a file cannot be read.
pub fn form_body(fields: &[&str], files: &dyn FileSource) -> Result<(String, Vec<u8>), ParseError> {
    let fields: Vec<FormField<'_>> =
        fields.iter().map(|text| parse(text)).collect::<Result<_, _>>()?;
    if fields.iter().all(|field| field.media_type.is_none()) {
        let mut form = url::form_urlencoded::Serializer::new(String::new());
        form.extend_pairs(fields.iter().map(|field| (field.name, field.value)));
        let kind = "application/x-www-form-urlencoded".to_owned();
        return Ok((kind, form.finish().into_bytes()));
    }
    let content = |field: &FormField<'_>| match field.media_type {
        Some(_) => files.read(field.value).map_err(ParseError),
        None => Ok(field.value.as_bytes().to_vec()),
    };
    let contents: Vec<Vec<u8>> = fields.iter().map(content).collect::<Result<_, _>>()?;
    let parts = fields.iter().zip(&contents).map(|(field, content)| {
        let name = field.value.rsplit('/').next().unwrap_or(field.value);
        FormPart { field: field.name, file: field.media_type.map(|kind| (name, kind)), content }
    });
    Ok(form_data(&parts.collect::<Vec<_>>()))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct OneFile;

    impl FileSource for OneFile {
        fn read(&self, path: &str) -> Result<Vec<u8>, String> {
            if path == "pics/a.png" { Ok(b"PNG".to_vec()) } else { Err(format!("no {path}")) }
        }
    }

    #[test]
    fn a_form_without_files_is_urlencoded() {
        let (kind, body) = form_body(&["name=a b", "x=1=2", "e="], &OneFile).unwrap();
        assert_eq!(kind, "application/x-www-form-urlencoded");
        assert_eq!(String::from_utf8(body).unwrap(), "name=a+b&x=1%3D2&e=");
    }

    #[test]
    fn a_form_with_a_file_is_multipart() {
        let fields = ["name=ann", "pic=@pics/a.png;type=image/png"];
        let (kind, body) = form_body(&fields, &OneFile).unwrap();
        assert!(kind.starts_with("multipart/form-data; boundary="), "{kind}");
        let body = String::from_utf8(body).unwrap();
        for part in ["name=\"name\"\r\n\r\nann\r\n", "filename=\"a.png\"", "image/png\r\n\r\nPNG"] {
            assert!(body.contains(part), "{body}");
        }
    }

    #[test]
    fn malformed_fields_and_missing_files_are_refused() {
        for text in ["name", "=x", "a=@", "a=@f;type="] {
            assert!(check_form_field(text).is_err(), "{text}");
        }
        assert_eq!(form_body(&["a=@b"], &OneFile).unwrap_err().0, "no b");
    }
}
