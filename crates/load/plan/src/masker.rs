//! Removes the secrets of a plan and of its calls from texts.
//!
//! The worker that received the bytes of a response masks them before they are stored, sent to
//! another machine or shown: only this worker knows the values that its users captured.

use crate::journey::JourneyPlan;
use crate::secrets::{PLAIN, is_secret_header, mask_named, named_values};
use crate::{Auth, Plan};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use toml::Value;
use url::Url;

/// Minimum length of a secret that is masked everywhere. Shorter secrets may occur in unrelated
/// words, and are masked only in their own places.
const SECRET_MIN: usize = 3;
/// Maximum number of secrets to look for; each form counts.
const SECRETS_MAX: usize = 4_000;
/// Maximum length of a text that is searched for values with secret names.
const TEXT_MAX: usize = 64 << 10;
/// Replacement for a secret in shown text.
const SHOWN: &str = "***";
/// Replaces secrets in texts.
#[derive(Clone, Debug, Default)]
pub struct Masker {
    /// Secrets with their lengths, the longest first: a secret may be part of another.
    found: BTreeSet<(Reverse<usize>, String)>,
}

impl Masker {
    /// Collects the secrets of a plan: logins, values of secret headers, queries, bodies and
    /// variables, of requests, targets, steps and proxies.
    pub fn new(plan: &Plan) -> Masker {
        let mut masker = Masker::default();
        match &plan.request.auth {
            Some(Auth::Basic { user, password } | Auth::Digest { user, password }) => {
                masker.add_login(user, password);
            }
            Some(Auth::Bearer(token)) => masker.add(token),
            Some(Auth::AwsSigV4 { secret, .. }) => masker.add(secret),
            None => {}
        }
        masker.add(&plan.token.client_secret);
        plan.token.url.iter().for_each(|url| masker.add_url(url));
        for (name, value) in &plan.request.headers {
            masker.add_header(name, value);
        }
        let bodies = [&plan.request.body, &plan.grpc.message, &plan.websocket.message];
        bodies.into_iter().flatten().for_each(|body| masker.add_body(body));
        plan.connection.proxy.iter().for_each(|proxy| masker.add_url(proxy));
        for target in plan.targets.iter() {
            if masker.found.len() >= SECRETS_MAX {
                break;
            }
            masker.add_url(&target.url);
            for (name, value) in &target.headers {
                masker.add_header(name, value);
            }
            target.body.iter().for_each(|body| masker.add_body(body));
            target.raw.iter().for_each(|raw| masker.add_request(raw));
        }
        if let Some(journeys) = &plan.journeys {
            find_secrets(journeys, &mut masker);
        }
        masker
    }

    /// Adds a secret in the forms in which a server may return it: unchanged, percent-encoded, and
    /// in strings of JSON and HTML.
    pub fn add(&mut self, secret: &str) {
        // a mask, or a value that is inserted later
        let known = secret.contains(SHOWN) || secret.contains("{{") || PLAIN.contains(&secret);
        if secret.len() < SECRET_MIN || known || self.found.len() >= SECRETS_MAX {
            return;
        }
        let json = serde_json::Value::from(secret).to_string();
        let json = json.trim_matches('"');
        let html = secret.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        let encoded = utf8_percent_encode(secret, NON_ALPHANUMERIC).to_string();
        let mut light = encoded.clone();
        for kept in ["-", ".", "_", "~"] {
            light = light.replace(&format!("%{:02X}", kept.as_bytes()[0]), kept);
        }
        let quoted = html.replace('"', "&quot;");
        let forms = [
            secret.to_owned(),
            json.to_owned(),
            json.replace('/', "\\/"),
            light.replace("%20", "+"),
            quoted.replace('\'', "&#39;"),
            quoted.replace('\'', "&#x27;"),
            quoted,
            html,
            light,
            encoded,
        ];
        self.found.extend(forms.map(|form| (Reverse(form.len()), form)));
    }

    /// Adds a value that a user captured or took from a feeder. Short numbers are not secrets.
    pub fn add_value(&mut self, value: &str) {
        if is_secret_value(value) {
            self.add(value);
        }
    }

    /// Adds a password, and the pair as the Basic scheme sends it.
    pub fn add_login(&mut self, user: &str, password: &str) {
        self.add(password);
        if !password.is_empty() && !password.contains("{{") {
            self.add(&BASE64.encode(format!("{user}:{password}")));
        }
    }

    /// Adds the value of a header with a login, and its parts: a token after its scheme, the
    /// password of a pair, the values of cookies.
    pub fn add_header(&mut self, name: &str, value: &str) {
        let value = value.trim();
        if !is_secret_header(name) {
            return self.add_named(value);
        }
        self.add(value);
        if name.eq_ignore_ascii_case("cookie") {
            let pairs = value.split(';').filter_map(|pair| pair.split_once('='));
            pairs.for_each(|(_, value)| self.add(value.trim()));
        } else if let Some((scheme, token)) = value.split_once(' ') {
            let token = token.trim();
            self.add(token);
            let pair = scheme.eq_ignore_ascii_case("basic").then(|| BASE64.decode(token).ok());
            let pair = pair.flatten().and_then(|pair| String::from_utf8(pair).ok());
            if let Some((_, password)) = pair.as_deref().and_then(|pair| pair.split_once(':')) {
                self.add(password);
            }
        }
    }

    /// Adds the password of a URL, and the values of its query with secret names.
    pub fn add_url(&mut self, url: &Url) {
        let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
        if let Some(password) = url.password() {
            self.add(password);
            self.add_login(&decoded(url.username()), &decoded(password));
        }
        for (_, value) in url.query_pairs().filter(|(name, _)| is_secret_header(name)) {
            self.add(&value);
        }
    }

    /// Adds the values with secret names in a body.
    pub(crate) fn add_body(&mut self, body: &[u8]) {
        // the limit may be within a character
        self.add_named(&String::from_utf8_lossy(&body[..body.len().min(TEXT_MAX)]));
    }

    /// Adds the values with secret names in JSON, a form or a query.
    pub fn add_named(&mut self, text: &str) {
        for range in named_values(text) {
            let value = &text[range];
            self.add(value);
            self.add(&percent_decode_str(&value.replace('+', " ")).decode_utf8_lossy());
        }
    }

    /// Adds the secrets of a request in the form of HTTP/1, as it is sent.
    pub fn add_request(&mut self, request: &[u8]) {
        let request = String::from_utf8_lossy(&request[..request.len().min(TEXT_MAX)]);
        let (head, body) = request.split_once("\r\n\r\n").unwrap_or((&request, ""));
        let mut lines = head.split("\r\n");
        self.add_named(lines.next().unwrap_or_default());
        for (name, value) in lines.filter_map(|line| line.split_once(':')) {
            self.add_header(name, value);
        }
        self.add_named(body);
    }

    /// Returns the secrets in all their forms, the longest first.
    pub fn secrets(&self) -> Vec<&str> {
        self.longest_first().collect()
    }

    fn longest_first(&self) -> impl Iterator<Item = &str> {
        self.found.iter().map(|(_, secret)| secret.as_str())
    }

    /// Returns the text without the secrets, and without values whose names indicate a secret.
    pub fn text(&self, text: &str) -> String {
        self.known(mask_named(text, SHOWN))
    }

    fn known(&self, mut text: String) -> String {
        for secret in self.longest_first() {
            if text.contains(secret) {
                text = text.replace(secret, SHOWN);
            }
        }
        text
    }

    /// Masks the beginning of a secret at the end of a truncated text.
    fn mask_cut_secret(&self, text: &mut String) {
        let cut = |secret: &str| {
            let mut parts = (SECRET_MIN..secret.len()).rev().filter_map(|end| secret.get(..end));
            parts.find(|part| text.ends_with(part)).map(str::len)
        };
        if let Some(length) = self.longest_first().filter_map(cut).max() {
            text.truncate(text.len() - length);
            text.push_str(SHOWN);
        }
    }

    /// Returns a line of a head without secrets. In a cookie only the value is a secret.
    pub fn field(&self, line: &str) -> String {
        let Some((name, value)) = line.split_once(':') else { return self.text(line) };
        if name.eq_ignore_ascii_case("set-cookie") {
            let (cookie, rest) = match value.find(';') {
                Some(at) => value.split_at(at),
                None => (value, ""),
            };
            return match cookie.split_once('=') {
                Some((cookie, _)) => format!("{name}:{cookie}={SHOWN}{rest}"),
                None => format!("{name}: {SHOWN}{rest}"),
            };
        }
        match is_secret_header(name) {
            true => format!("{name}: {SHOWN}"),
            false => self.text(line),
        }
    }

    /// Returns the start of a response in the form of HTTP/1, without secrets: chunks are joined,
    /// because a secret may be split between two, and encoded content is omitted.
    pub fn response(&self, start: &[u8]) -> Vec<u8> {
        // the first part is missing where the head arrived in pieces
        let whole = start.starts_with(b"HTTP/");
        let end = if whole { start.windows(4).position(|at| at == b"\r\n\r\n") } else { Some(0) };
        let (head, body) = match end {
            Some(0) => (&[][..], start),
            Some(end) => (&start[..end], &start[end + 4..]),
            None => (start, &[][..]),
        };
        let head = String::from_utf8_lossy(head);
        let lines: Vec<&str> = head.split("\r\n").filter(|line| !line.is_empty()).collect();
        let field = |wanted: &str| lines.iter().find_map(|line| value_of(line, wanted));
        let chunked = lines.first().is_some_and(|line| line.starts_with("HTTP/1"))
            && field("transfer-encoding").is_some_and(|value| value.contains("chunked"));
        let coded = field("content-encoding").is_some_and(|value| !value.contains("identity"));
        let body = match (coded, chunked) {
            (true, _) => Cow::Borrowed(&[][..]),
            (false, true) => unchunked(body),
            (false, false) => Cow::Borrowed(body),
        };
        let mut out: String = lines.iter().map(|line| self.field(line) + "\r\n").collect();
        if whole && end.is_some() {
            out.push_str("\r\n");
        }
        out.push_str(&self.text(&String::from_utf8_lossy(&body)));
        if start.len() >= stats::SAMPLE_BYTES_MAX {
            self.mask_cut_secret(&mut out);
        }
        out.into_bytes()
    }
}

impl Plan {
    /// Returns the texts that are masked in all output and storage, in all their forms.
    pub fn secrets(&self) -> Vec<String> {
        Masker::new(self).secrets().into_iter().map(str::to_owned).collect()
    }
}

/// Returns whether a value that a user captured or took from a feeder may be a secret. Short
/// numbers are not secrets.
fn is_secret_value(value: &str) -> bool {
    let is_short_number = value.len() < 6 && value.bytes().all(|byte| byte.is_ascii_digit());
    value.len() >= SECRET_MIN && !is_short_number && !PLAIN.contains(&value)
}

fn value_of(line: &str, wanted: &str) -> Option<String> {
    let (name, value) = line.split_once(':')?;
    name.eq_ignore_ascii_case(wanted).then(|| value.trim().to_ascii_lowercase())
}

/// Returns the content of the chunks received so far.
fn unchunked(mut coded: &[u8]) -> Cow<'_, [u8]> {
    let mut content = Vec::new();
    while let Some(end) = coded.windows(2).position(|at| at == b"\r\n") {
        let size = std::str::from_utf8(&coded[..end]).unwrap_or_default();
        let size = size.split(';').next().unwrap_or_default().trim();
        let Ok(size @ 1..) = usize::from_str_radix(size, 16) else { break };
        let rest = &coded[end + 2..];
        content.extend_from_slice(&rest[..size.min(rest.len())]);
        coded = rest.get(size.saturating_add(2)..).unwrap_or_default();
    }
    Cow::Owned(content)
}

/// Finds the secrets in the steps and feeders of journeys, and those in their URLs and bodies.
fn find_secrets(plan: &JourneyPlan, masker: &mut Masker) {
    plan.tables.iter().for_each(|(key, value)| find(key, value, masker));
}

fn find(key: &str, value: &Value, masker: &mut Masker) {
    /// Keys that describe responses.
    const OF_RESPONSES: [&str; 4] = ["capture", "expect", "check", "tags"];
    match value {
        Value::Table(_) if OF_RESPONSES.contains(&key) => {}
        Value::Table(table) => table.iter().for_each(|(key, value)| find(key, value, masker)),
        Value::Array(all) => all.iter().for_each(|one| find(key, one, masker)),
        Value::String(text) => match text.split_once(':') {
            Some((name, password)) if key == "user" => masker.add_login(name, password),
            _ if is_secret_header(key) => masker.add_header(key, text),
            _ if key.ends_with("base64") => {
                masker.add_body(&BASE64.decode(text).unwrap_or_default());
            }
            _ => {
                if let Ok(url) = Url::parse(text) {
                    masker.add_url(&url);
                }
                masker.add_named(text);
            }
        },
        Value::Integer(_) | Value::Float(_) if is_secret_header(key) => {
            masker.add(&value.to_string());
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn masked(secret: &str, text: &str) -> String {
        let mut masker = Masker::default();
        masker.add(secret);
        masker.text(text)
    }

    #[test]
    fn a_secret_is_found_in_the_forms_of_a_page() {
        for (secret, text) in [
            ("hunter22", "it was hunter22!"),
            ("a+b/c==", "it was a%2Bb%2Fc%3D%3D!"),
            ("a+b/c==", "it was a+b\\/c==!"),
            ("a\"b&c", "it was a\\\"b&c!"),
            ("a\"b&c", "it was a&quot;b&amp;c!"),
            ("it's <1>", "it was it&#39;s &lt;1&gt;!"),
            ("two words", "it was two+words!"),
            ("two words", "it was two%20words!"),
        ] {
            assert_eq!(masked(secret, text), "it was ***!", "{secret} in {text}");
        }
        assert_eq!(masked("hu", "hu is too short"), "hu is too short");
        assert_eq!(masked("true", "true is a word"), "true is a word");
    }

    #[test]
    fn values_with_secret_names_are_masked() {
        for (text, expected) in [
            (r#"{"token": "a\"b", "n": 1}"#, r#"{"token": "***", "n": 1}"#),
            (r#"{"pin_token":12345678}"#, r#"{"pin_token":***}"#),
            (r#"{"token": true, "n": "x"}"#, r#"{"token": true, "n": "x"}"#),
            (r#""{\"api_key\":\"abc\",\"n\":1}""#, r#""{\"api_key\":\"***\",\"n\":1}""#),
            ("a=1&password=x%20y&b=2", "a=1&password=***&b=2"),
            ("GET /cb?token=abc HTTP/1.1", "GET /cb?token=*** HTTP/1.1"),
            ("<p>Authorization: Bearer abc</p>", "<p>Authorization: ***</p>"),
            ("Cookie: sid=a; b=c\nHost: h", "Cookie: ***\nHost: h"),
            ("at 12:30 x=y", "at 12:30 x=y"),
            ("token=", "token="),
            ("at http://session-api:8080/a?token=x1y", "at http://session-api:8080/a?token=***"),
            ("Host: auth:80\r\nauth: 80", "Host: auth:80\r\nauth: ***"),
            (r#"{"max_tokens": 128, "n": 1280}"#, r#"{"max_tokens": 128, "n": 1280}"#),
            (r#"{"access_tokens": "a1b2c3"}"#, r#"{"access_tokens": "***"}"#),
            ("password:12345\nX-Api-Key:1234", "password:***\nX-Api-Key:***"),
            ("é=ü: token:", "é=ü: token:"),
        ] {
            assert_eq!(Masker::default().text(text), expected);
        }
    }

    #[test]
    fn fields_keep_their_names() {
        for (line, expected) in [
            ("Set-Cookie: sid=abc; Path=/", "Set-Cookie: sid=***; Path=/"),
            ("Set-Cookie: s3cr3t", "Set-Cookie: ***"),
            ("set-cookie: s3cr3t; HttpOnly", "set-cookie: ***; HttpOnly"),
            ("X-Api-Key: k", "X-Api-Key: ***"),
            ("x-auth: k", "x-auth: ***"),
            ("Location: /cb?access_token=abc&x=1", "Location: /cb?access_token=***&x=1"),
            ("Author: me", "Author: me"),
            ("HTTP/1.1 200 OK", "HTTP/1.1 200 OK"),
        ] {
            assert_eq!(Masker::default().field(line), expected);
        }
    }

    #[test]
    fn a_body_that_is_cut_within_a_character_shows_its_secrets() {
        let mut masker = Masker::default();
        let body = format!(r#"{{"password": "b0dy", "texts": "{}"}}"#, "é".repeat(TEXT_MAX));
        assert!(!body.is_char_boundary(TEXT_MAX));
        masker.add_body(body.as_bytes());
        assert!(masker.secrets().contains(&"b0dy"));
    }

    #[test]
    fn a_request_shows_its_secrets() {
        let mut masker = Masker::default();
        masker.add_request(
            b"POST /a?api_key=quer1 HTTP/1.1\r\nAuthorization: Basic YW5uOmh1bnRlcjIy\r\n\
              Cookie: sid=c00kie; x=y\r\n\r\nuser=ann&password=f0rm",
        );
        for secret in ["quer1", "YW5uOmh1bnRlcjIy", "hunter22", "c00kie", "f0rm"] {
            assert!(masker.secrets().contains(&secret), "{secret}: {:?}", masker.secrets());
        }
        assert!(!masker.secrets().contains(&"ann"));
    }

    /// Every place of a plan that can contain a secret.
    #[test]
    fn a_plan_has_its_secrets_everywhere() {
        let text = r#"
            version = 1
            url = "http://h/"
            [request]
            user = "ann:basic-secret"
            headers = ["X-Api-Key: header-secret", "X: plain-value"]
            [connection]
            proxy = "http://me:proxy-secret@p:3128"
            [vars]
            token = "vars-secret"
            [[setup]]
            name = "first"
            url = "/setup"
            headers = { Cookie = "sid=setup-secret" }
            [[journey]]
            name = "j"
            [[journey.step]]
            name = "s"
            url = "/x?access_token=query-secret"
            user = "ann:step-secret"
            headers = { Authorization = "Bearer step-token", X = "{{token}}" }
            form = { password = "form-secret", name = "plain-name" }
            [[journey.step]]
            name = "t"
            url = "/y"
            json = { "client_secret" = "json-secret", deep = { passwd = "deep-secret" } }
            [[journey.step]]
            name = "u"
            url = "/z"
            body = '{"token": "body-secret"}'
        "#;
        let plan = crate::from_toml(text, &crate::NoFiles).unwrap();
        let secrets = plan.secrets();
        for secret in [
            "basic-secret",
            "header-secret",
            "proxy-secret",
            "vars-secret",
            "setup-secret",
            "query-secret",
            "step-secret",
            "step-token",
            "form-secret",
            "json-secret",
            "deep-secret",
            "body-secret",
        ] {
            assert!(secrets.iter().any(|found| found == secret), "{secret}: {secrets:?}");
        }
        assert!(!secrets.iter().any(|found| found.contains("plain")), "{secrets:?}");
        let mut plan = Plan::for_url("http://h/?sid=query-secret".parse().unwrap());
        let target = &mut plan.targets[0];
        target.headers = vec![("X-Token".to_owned(), "target-secret".to_owned())];
        target.body = Some(b"a=1&password=target-body".to_vec());
        let secrets = plan.secrets();
        for secret in ["query-secret", "target-secret", "target-body"] {
            assert!(secrets.iter().any(|found| found == secret), "{secret}: {secrets:?}");
        }
    }

    #[test]
    fn a_response_is_masked_as_a_whole() {
        let mut masker = Masker::default();
        masker.add("hunter22");
        let shown = |start: &str| String::from_utf8(masker.response(start.as_bytes())).unwrap();
        let head = "HTTP/1.1 500 Oops\r\nTransfer-Encoding: chunked\r\n\r\n";
        assert_eq!(shown(&format!("{head}5\r\nahunt\r\n4\r\ner22")), format!("{head}a***"));
        assert_eq!(
            shown("HTTP/2 503\r\ncontent-encoding: gzip\r\n\r\n\u{1f}hunter22"),
            "HTTP/2 503\r\ncontent-encoding: gzip\r\n\r\n"
        );
        assert_eq!(shown("half a hunter22 body"), "half a *** body");
        // a secret that was cut at the end of the sample
        let filled = "x".repeat(stats::SAMPLE_BYTES_MAX - 6) + "hunter";
        assert!(shown(&filled).ends_with("x***"));
        assert_eq!(masker.response(b"\xff\xfe"), "\u{fffd}\u{fffd}".as_bytes());
    }
}
