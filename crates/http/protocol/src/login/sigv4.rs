//! AWS Signature Version 4, and its relatives at other providers: the request's method, path,
//! query, some fields and the hash of its content, signed with a key derived from the secret, the
//! day, the region and the service ("Signing AWS API requests", AWS IAM user guide).

use hmac::{Hmac, KeyInit, Mac};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use time::OffsetDateTime;
use time::format_description::FormatItem;
use time::macros::format_description;
use units::hex;

/// Scope of the signature, as in curl's option of the same name:
/// `provider[:prefix[:region[:service]]]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignatureScope {
    /// Lowercase provider, which selects the algorithm: `aws` means AWS4-HMAC-SHA256.
    pub provider: String,
    /// Lowercase prefix of the field names: `amz` results in `x-amz-date`.
    pub prefix: String,
    /// Region; by default taken from the host's name, `service.region.provider.…`.
    pub region: Option<String>,
    pub service: Option<String>,
}

impl SignatureScope {
    /// # Errors
    /// Fails for an invalid scope; the message shows a valid one.
    pub fn parse(text: &str) -> Result<SignatureScope, String> {
        let parts: Vec<&str> = text.split(':').collect();
        let word = |part: &&str| {
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
            !part.is_empty() && part.bytes().all(plain)
        };
        if parts.len() > 4 || !parts.iter().all(word) {
            return Err("write provider[:prefix[:region[:service]]], such as \
                        aws:amz:eu-central-1:s3"
                .to_owned());
        }
        let part = |at: usize| parts.get(at).map(|part| (*part).to_owned());
        let provider = parts[0].to_ascii_lowercase();
        // as curl: a single provider also names the fields
        let prefix = part(1).map_or_else(|| provider.clone(), |it| it.to_ascii_lowercase());
        Ok(SignatureScope { provider, prefix, region: part(2), service: part(3) })
    }

    /// Returns service and region from the host's name, if the scope omits them.
    fn at(&self, host: &str) -> (String, String) {
        let name = host.split(':').next().unwrap_or_default();
        let mut labels = name.split('.');
        let (service, region) = (labels.next().unwrap_or_default(), labels.next());
        let service = self.service.clone().unwrap_or_else(|| service.to_owned());
        let region = self.region.clone().or_else(|| region.map(str::to_owned));
        (service, region.unwrap_or_default())
    }
}

impl std::fmt::Display for SignatureScope {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.provider, self.prefix)?;
        for part in [&self.region, &self.service].into_iter().flatten() {
            write!(f, ":{part}")?;
        }
        Ok(())
    }
}

/// The signer's credentials.
#[derive(Clone, Copy, Debug)]
pub struct Signer<'a> {
    pub key: &'a str,
    pub secret: &'a str,
    pub scope: &'a SignatureScope,
}

/// The content to sign.
#[derive(Clone, Copy, Debug)]
pub struct ToSign<'a> {
    pub method: &'a str,
    /// Path and query as they are sent.
    pub target: &'a str,
    pub host: &'a str,
    /// All fields except the host's. The content type and the provider's fields are signed.
    pub fields: &'a [(&'a str, &'a str)],
    pub body: &'a [u8],
}

/// 20150830T123600Z
const INSTANT: &[FormatItem<'_>] =
    format_description!("[year][month][day]T[hour][minute][second]Z");

/// Letters, digits and -._~ are not encoded (RFC 3986 section 2.3).
const IN_PATH: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

impl Signer<'_> {
    /// Returns the additional fields of the request, the signature last. `unix_s`: now.
    pub fn fields(&self, request: &ToSign<'_>, unix_s: u64) -> Vec<(String, String)> {
        let SignatureScope { provider, prefix, .. } = &self.scope;
        let (service, region) = self.scope.at(request.host);
        let instant = instant(unix_s);
        let day = &instant[..8];
        let content = hex(Sha256::digest(request.body));
        let mut own = vec![(format!("x-{prefix}-date"), instant.clone())];
        if service == "s3" {
            own.push((format!("x-{prefix}-content-sha256"), content.clone()));
        }
        let mut signed: Vec<(String, Cow<'_, str>)> = vec![("host".into(), request.host.into())];
        let of_provider = format!("x-{prefix}-");
        for (name, value) in request.fields {
            let name = name.to_ascii_lowercase();
            if name == "content-type" || name.starts_with(&of_provider) {
                signed.push((name, (*value).into()));
            }
        }
        signed.extend(own.iter().map(|(name, value)| (name.clone(), value.as_str().into())));
        signed.sort_by(|a, b| a.0.cmp(&b.0));
        let lines: String = signed
            .iter()
            .map(|(name, value)| format!("{name}:{}\n", collapse_spaces(value)))
            .collect();
        let names: Vec<&str> = signed.iter().map(|(name, _)| name.as_str()).collect();
        let names = names.join(";");
        let (path, query) = request.target.split_once('?').unwrap_or((request.target, ""));
        let canonical = format!(
            "{}\n{}\n{}\n{lines}\n{names}\n{content}",
            request.method,
            path_of(path, service == "s3"),
            query_of(query)
        );
        let algorithm = format!("{}4-HMAC-SHA256", provider.to_ascii_uppercase());
        let end = format!("{provider}4_request");
        let scope = format!("{day}/{region}/{service}/{end}");
        let hash = hex(Sha256::digest(canonical.as_bytes()));
        let text = format!("{algorithm}\n{instant}\n{scope}\n{hash}");
        let first = format!("{}4{}", provider.to_ascii_uppercase(), self.secret);
        let key = [day, &region, &service, &end]
            .iter()
            .fold(first.into_bytes(), |key, part| hmac(&key, part.as_bytes()));
        let signature = hex(hmac(&key, text.as_bytes()));
        let credential = format!("{}/{scope}", self.key);
        own.push((
            "Authorization".to_owned(),
            format!(
                "{algorithm} Credential={credential}, SignedHeaders={names}, Signature={signature}"
            ),
        ));
        own
    }
}

fn instant(unix_s: u64) -> String {
    let at = i64::try_from(unix_s).ok().and_then(|s| OffsetDateTime::from_unix_timestamp(s).ok());
    let at = at.unwrap_or(OffsetDateTime::UNIX_EPOCH);
    at.format(INSTANT).expect("every part of the format exists in an instant")
}

fn hmac(key: &[u8], text: &[u8]) -> Vec<u8> {
    let mac = Hmac::<Sha256>::new_from_slice(key);
    let mut mac = mac.expect("HMAC takes a key of any length");
    mac.update(text);
    mac.finalize().into_bytes().to_vec()
}

/// Folds consecutive spaces, and removes those at the ends.
fn collapse_spaces(value: &str) -> String {
    value.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the path as sent, encoded once more and without empty segments; for S3 unchanged.
fn path_of(path: &str, s3: bool) -> String {
    let path = if path.is_empty() { "/" } else { path };
    if s3 {
        return path.to_owned();
    }
    let mut whole = String::new();
    for char in path.chars() {
        if !(char == '/' && whole.ends_with('/')) {
            whole.push(char);
        }
    }
    utf8_percent_encode(&whole, IN_PATH).to_string()
}

/// Returns the pairs in the order of names and values, as they are sent: a `+`, a `%7E` or an
/// escape in lower case is signed as such, as botocore does. Each has a sign of equality.
fn query_of(query: &str) -> String {
    if query.is_empty() {
        return String::new();
    }
    let mut pairs: Vec<(&str, &str)> =
        query.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, ""))).collect();
    pairs.sort_unstable();
    let pairs: Vec<String> = pairs.iter().map(|(name, value)| format!("{name}={value}")).collect();
    pairs.join("&")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2015-08-30T12:36:00Z, of AWS's public test suite.
    const AT: u64 = 1_440_938_160;
    const HOST: &str = "example.amazonaws.com";

    fn sign(scope: &str, request: &ToSign<'_>) -> Vec<(String, String)> {
        let scope = &SignatureScope::parse(scope).unwrap();
        let secret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
        Signer { key: "AKIDEXAMPLE", secret, scope }.fields(request, AT)
    }

    fn signed(method: &str, target: &str, fields: &[(&str, &str)], body: &str) -> String {
        let request = ToSign { method, target, host: HOST, fields, body: body.as_bytes() };
        let made = sign("aws:amz:us-east-1:service", &request);
        assert_eq!(made[0], ("x-amz-date".to_owned(), "20150830T123600Z".to_owned()));
        let (name, value) = made.last().unwrap();
        assert_eq!(name, "Authorization");
        value.strip_prefix("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders=").unwrap().to_owned()
    }

    /// The results of botocore 1.43, `SigV4Auth._canonical_query_string_url`.
    #[test]
    fn a_query_is_signed_as_it_is_sent() {
        for (sent, signed) in [
            ("", ""),
            ("b=%e2%82%ac&a=%FF", "a=%FF&b=%e2%82%ac"),
            ("a=b+c", "a=b+c"),
            ("a=%7Ex&a=%2f&a=~", "a=%2f&a=%7Ex&a=~"),
            ("c&b=&a=1=2", "a=1=2&b=&c="),
            ("b=1&&a=2", "=&a=2&b=1"),
            ("a-b=1&a=2", "a=2&a-b=1"),
        ] {
            assert_eq!(query_of(sent), signed, "{sent}");
        }
    }

    /// Cases of the suite, by their names.
    #[test]
    fn signatures_are_those_of_the_public_test_suite() {
        let plain = |signature: &str| format!("host;x-amz-date, Signature={signature}");
        // get-vanilla
        let found = signed("GET", "/", &[("User-Agent", "x")], "");
        let wanted = "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31";
        assert_eq!(found, plain(wanted));
        // get-slash, get-slashes: a path that consists only of slashes is one slash
        assert_eq!(signed("GET", "//", &[], ""), plain(wanted));
        // get-vanilla-query-order-key-case
        let found = signed("GET", "/?Param2=value2&Param1=value1", &[], "");
        let wanted = "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500";
        assert_eq!(found, plain(wanted));
        // get-vanilla-empty-query-key
        let found = signed("GET", "/?Param1=value1", &[], "");
        let wanted = "a67d582fa61cc504c4bae71f336f98b97f1ea3c7a6bfe1b6e45aec72011b9aeb";
        assert_eq!(found, plain(wanted));
        // post-vanilla
        let found = signed("POST", "/", &[], "");
        let wanted = "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b";
        assert_eq!(found, plain(wanted));
        // post-x-www-form-urlencoded
        let form = [("Content-Type", "application/x-www-form-urlencoded")];
        let found = signed("POST", "/", &form, "Param1=value1");
        let wanted = "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a";
        assert_eq!(found, format!("content-type;host;x-amz-date, Signature={wanted}"));
    }

    /// The example of the user guide, whose service and region are partly in the host's name.
    #[test]
    fn the_guides_example_has_its_signature() {
        let form = [("content-type", "application/x-www-form-urlencoded; charset=utf-8")];
        let request = ToSign {
            method: "GET",
            target: "/?Action=ListUsers&Version=2010-05-08",
            host: "iam.amazonaws.com",
            fields: &form,
            body: b"",
        };
        let made = sign("aws:amz:us-east-1:iam", &request);
        let wanted = "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7";
        assert!(made[1].1.ends_with(wanted), "{made:?}");
    }

    /// S3 has the hash of the content in a field, and its paths as they are sent.
    #[test]
    fn s3_differs() {
        let request =
            ToSign { method: "GET", target: "/a%20b//c", host: HOST, fields: &[], body: b"" };
        let made = sign("aws:amz:us-east-1:s3", &request);
        assert_eq!(made[1].0, "x-amz-content-sha256");
        assert!(made[1].1.starts_with("e3b0c44298fc1c14"), "{made:?}");
        assert!(made[2].1.contains("SignedHeaders=host;x-amz-content-sha256;x-amz-date"));
        assert_eq!(path_of("/a%20b//c", true), "/a%20b//c");
        assert_eq!(path_of("/a%20b//c", false), "/a%2520b/c");
    }

    #[test]
    fn scopes_are_those_of_curl() {
        let scope = SignatureScope::parse("aws").unwrap();
        let at = scope.at("dynamodb.eu-west-1.amazonaws.com:443");
        assert_eq!(at, ("dynamodb".to_owned(), "eu-west-1".to_owned()));
        assert_eq!(scope.prefix, "aws");
        let full = SignatureScope::parse("AWS:amz:us-east-2:es").unwrap();
        assert_eq!(full.to_string(), "aws:amz:us-east-2:es");
        assert_eq!(full.at("h"), ("es".to_owned(), "us-east-2".to_owned()));
        for wrong in ["", "aws:", "aws:amz:r:s:more", "a/b"] {
            assert!(
                SignatureScope::parse(wrong).unwrap_err().contains("aws:amz:eu-central-1:s3"),
                "{wrong}"
            );
        }
    }
}
