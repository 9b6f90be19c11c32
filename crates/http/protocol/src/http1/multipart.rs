//! `multipart/form-data` (RFC 7578), as browsers write it (WHATWG HTML, "multipart form data").

/// Field of a form.
#[derive(Clone, Copy, Debug)]
pub struct FormPart<'a> {
    pub field: &'a str,
    /// Name and media type, when it is a file.
    pub file: Option<(&'a str, &'a str)>,
    pub content: &'a [u8],
}

/// Returns the Content-Type and the body of a multipart form.
pub fn form_data(parts: &[FormPart<'_>]) -> (String, Vec<u8>) {
    let boundary = boundary(parts);
    let mut body = Vec::new();
    for part in parts {
        let mut head = format!(
            "--{boundary}\r\nContent-Disposition: form-data; name=\"{}\"",
            escaped(part.field)
        );
        if let Some((name, media_type)) = part.file {
            // a line end in the type would start another field
            let media_type = media_type.replace(['\r', '\n'], " ");
            head.push_str(&format!(
                "; filename=\"{}\"\r\nContent-Type: {media_type}",
                escaped(name)
            ));
        }
        body.extend_from_slice(head.as_bytes());
        body.extend_from_slice(b"\r\n\r\n");
        body.extend_from_slice(part.content);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    (format!("multipart/form-data; boundary={boundary}"), body)
}

/// Returns a boundary that occurs in no content (RFC 2046 §5.1.1), deterministic for the same
/// parts.
fn boundary(parts: &[FormPart<'_>]) -> String {
    let taken = |text: &str| {
        let finder = memchr::memmem::Finder::new(text.as_bytes());
        parts.iter().any(|part| finder.find(part.content).is_some())
    };
    let mut number = 0_u64;
    loop {
        let text = format!("----loadstone-form-{number}");
        if !taken(&text) {
            return text;
        }
        number += 1;
    }
}

fn escaped(name: &str) -> String {
    name.replace('"', "%22").replace('\r', "%0D").replace('\n', "%0A")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_and_files_are_encoded() {
        let parts = [
            FormPart { field: "who", file: None, content: b"fred" },
            FormPart {
                field: "f\"ile",
                file: Some(("a\nb.txt", "text/plain")),
                content: b"1\n2\n",
            },
        ];
        let (kind, body) = form_data(&parts);
        assert_eq!(kind, "multipart/form-data; boundary=----loadstone-form-0");
        let expected = "------loadstone-form-0\r\n\
             Content-Disposition: form-data; name=\"who\"\r\n\r\nfred\r\n\
             ------loadstone-form-0\r\n\
             Content-Disposition: form-data; name=\"f%22ile\"; filename=\"a%0Ab.txt\"\r\n\
             Content-Type: text/plain\r\n\r\n1\n2\n\r\n\
             ------loadstone-form-0--\r\n";
        assert_eq!(String::from_utf8(body).unwrap(), expected);
    }

    #[test]
    fn the_boundary_is_in_no_content() {
        let content = b"----loadstone-form-0 and ----loadstone-form-1";
        let (kind, _) = form_data(&[FormPart { field: "a", file: None, content }]);
        assert!(kind.ends_with("----loadstone-form-2"), "{kind}");
    }
}
