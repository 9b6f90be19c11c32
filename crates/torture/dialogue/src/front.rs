//! Recognizes third-party machines in front of the server, if they identify themselves in a
//! response.

use crate::replies::Response;

/// Response fields that only the machines of one provider add.
const FIELDS: [(&str, &str); 12] = [
    ("cf-ray", "Cloudflare"),
    ("x-amz-cf-id", "Amazon CloudFront"),
    ("x-amz-cf-pop", "Amazon CloudFront"),
    ("x-fastly-request-id", "Fastly"),
    ("fastly-debug-digest", "Fastly"),
    ("akamai-grn", "Akamai"),
    ("x-akamai-request-id", "Akamai"),
    ("x-azure-ref", "Azure Front Door"),
    ("x-vercel-id", "Vercel"),
    ("x-nf-request-id", "Netlify"),
    ("x-github-request-id", "GitHub Pages"),
    ("x-sucuri-id", "Sucuri"),
];
/// Prefixes of the Server field.
const SERVERS: [(&str, &str); 5] = [
    ("cloudflare", "Cloudflare"),
    ("cloudfront", "Amazon CloudFront"),
    ("akamaighost", "Akamai"),
    ("netlify", "Netlify"),
    ("vercel", "Vercel"),
];

/// Returns the provider whose machines responded. This is a heuristic: no match proves nothing.
pub fn front(response: &Response) -> Option<&'static str> {
    let by_field = FIELDS.iter().find(|(name, _)| response.has_field(name));
    let named = |(name, _): &&(&str, &str)| {
        response.field("server").any(|server| server.to_ascii_lowercase().starts_with(name))
    };
    by_field.or_else(|| SERVERS.iter().find(named)).map(|(_, provider)| *provider)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replies::Replies;

    fn seen(fields: &str) -> Option<&'static str> {
        let mut replies = Replies::new(&["GET".to_owned()]);
        let text = format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: 0\r\n\r\n");
        replies.take(text.as_bytes());
        front(&replies.responses[0])
    }

    #[test]
    fn providers_are_recognized_by_their_fields() {
        assert_eq!(seen("CF-RAY: 8f00-FRA\r\n"), Some("Cloudflare"));
        assert_eq!(seen("Server: AkamaiGHost\r\n"), Some("Akamai"));
        assert_eq!(seen("X-Amz-Cf-Id: x\r\n"), Some("Amazon CloudFront"));
        assert_eq!(seen("Server: nginx\r\nVia: 1.1 varnish\r\n"), None);
    }
}
