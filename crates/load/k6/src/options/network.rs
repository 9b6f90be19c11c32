//! Options of connections: TLS, names, addresses.

use super::{OptionsReader, plain};
use crate::addresses::{self, AddressOptions};
use serde_json::Value;
use std::net::IpAddr;

/// Cipher suites that are available, by their names in k6.
const CIPHERS: [&str; 9] = [
    "TLS_AES_128_GCM_SHA256",
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
];

/// Versions of TLS by their names in k6, oldest first.
const VERSIONS: [&str; 5] = ["ssl3.0", "tls1.0", "tls1.1", "tls1.2", "tls1.3"];
/// Position of the oldest version that is available.
const OLDEST: usize = 3;

/// Parts of requests and responses that are logged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HttpDebug {
    #[default]
    Nothing,
    Heads,
    /// Heads and bodies.
    Full,
}

/// Options of TLS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsOptions {
    pub versions: OfferedVersions,
    /// Empty means all that are available.
    pub ciphers: Vec<String>,
    /// Certificate of the client and its key, in PEM.
    pub identity: Option<(String, String)>,
}

/// Versions of TLS that are offered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OfferedVersions {
    #[default]
    Both,
    /// Only TLS 1.2.
    V12,
    /// Only TLS 1.3.
    V13,
}

/// Options of name look-ups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DnsOptions {
    pub family: PreferredFamily,
    /// All connections go to the first address.
    pub first: bool,
}

/// Addresses that are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PreferredFamily {
    #[default]
    Any,
    V4,
    V6,
}

impl OptionsReader<'_> {
    fn refuse(&mut self, key: &str, why: &str) {
        self.findings.errors.push(format!("option \"{key}\": {why}"));
    }

    fn warn(&mut self, key: &str, why: &str) {
        self.findings.warnings.push(format!("option \"{key}\": {why}"));
    }

    pub(super) fn user_agent(&mut self) -> String {
        let given = self.text("userAgent");
        let agent = given.unwrap_or_else(|| format!("Grafana k6/{}", crate::VERSION));
        if agent.bytes().any(|byte| byte < b' ' || byte == 127) {
            self.refuse("userAgent", "it has a control character, such as a line break");
        }
        agent
    }

    pub(super) fn addresses(&mut self) -> AddressOptions {
        let hosts = self.pairs("hosts");
        let blacklist = self.strings("blacklistIPs").unwrap_or_default();
        AddressOptions::read(&hosts, &blacklist).unwrap_or_else(|(key, why)| {
            self.refuse(key, &why);
            AddressOptions::default()
        })
    }

    pub(super) fn local_addresses(&mut self) -> Vec<IpAddr> {
        let Some(text) = self.text("localIPs") else { return Vec::new() };
        addresses::local_addresses(&text).unwrap_or_else(|why| {
            self.refuse("localIPs", &why);
            Vec::new()
        })
    }

    /// Reads httpDebug. `true` corresponds to the flag `--http-debug` without a value.
    pub(super) fn http_debug(&mut self) -> HttpDebug {
        match self.map.get("httpDebug") {
            None | Some(Value::Bool(false)) => HttpDebug::Nothing,
            Some(Value::Bool(true)) => HttpDebug::Heads,
            Some(value) => match value.as_str() {
                Some("") => HttpDebug::Nothing,
                Some("full") => HttpDebug::Full,
                Some("headers" | "true") => HttpDebug::Heads,
                _ => {
                    self.wrong("httpDebug", "\"full\" or \"headers\"", value);
                    HttpDebug::Nothing
                }
            },
        }
    }

    pub(super) fn dns(&mut self) -> DnsOptions {
        let mut made = DnsOptions::default();
        let Some(value) = self.map.get("dns") else { return made };
        let parts: Vec<(String, String)> = match value {
            Value::Object(parts) => {
                let given = parts.iter().filter(|(_, value)| !value.is_null());
                given.map(|(name, value)| (name.clone(), plain(value))).collect()
            }
            Value::Null => return made,
            // the form of the flag: ttl=1m,select=first
            value => {
                let text = plain(value);
                let parts = text.split(',').filter(|part| !part.is_empty());
                let pairs = parts.map(|part| part.split_once('=').unwrap_or((part, "")));
                pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
            }
        };
        for (name, value) in parts {
            match (name.as_str(), value.as_str()) {
                ("ttl", "inf" | "") => {}
                ("ttl", _) => {
                    self.warn("dns", "names are looked up once per test, regardless of the ttl")
                }
                ("select", "first") => made.first = true,
                ("select", "random" | "roundRobin") => {}
                ("policy", "onlyIPv4") => made.family = PreferredFamily::V4,
                ("policy", "onlyIPv6") => made.family = PreferredFamily::V6,
                ("policy", "any" | "preferIPv4" | "preferIPv6") => {}
                ("select", _) => self.refuse("dns", "select must be first, random or roundRobin"),
                ("policy", _) => {
                    let why = "policy must be any, preferIPv4, preferIPv6, onlyIPv4 or onlyIPv6";
                    self.refuse("dns", why);
                }
                _ => self.refuse("dns", &format!("{name} is not one of ttl, select and policy")),
            }
        }
        made
    }

    pub(super) fn tls(&mut self) -> TlsOptions {
        let mut made = TlsOptions::default();
        self.tls_versions(&mut made);
        for name in self.strings("tlsCipherSuites").unwrap_or_default() {
            match name.as_str() {
                known if CIPHERS.contains(&known) => made.ciphers.push(name),
                "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305"
                | "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305" => {
                    made.ciphers.push(name + "_SHA256");
                }
                _ => self
                    .warn("tlsCipherSuites", &format!("{name} is not available and not offered")),
            }
        }
        let given = self.map.get("tlsCipherSuites").and_then(Value::as_array);
        if made.ciphers.is_empty() && given.is_some_and(|list| !list.is_empty()) {
            let why =
                format!("none of them is available; use one or more of {}", CIPHERS.join(", "));
            self.refuse("tlsCipherSuites", &why);
        }
        made.identity = self.tls_identity();
        made
    }

    fn tls_versions(&mut self, made: &mut TlsOptions) {
        let Some(value) = self.map.get("tlsVersion") else { return };
        let (low, high) = match value {
            Value::Object(ends) => (ends.get("min"), ends.get("max")),
            one => (Some(one), Some(one)),
        };
        let place = |end: Option<&Value>, default: usize| match end.and_then(Value::as_str) {
            None | Some("") => Some(default),
            Some(name) => VERSIONS.iter().position(|known| *known == name),
        };
        let (Some(low), Some(high)) = (place(low, 0), place(high, VERSIONS.len() - 1)) else {
            self.wrong("tlsVersion", "a version like \"tls1.2\", or {min, max} of them", value);
            return;
        };
        if high < OLDEST || low > high {
            self.refuse("tlsVersion", "only TLS 1.2 and 1.3 are available; allow one of them");
        } else if low < OLDEST && matches!(value, Value::Object(ends) if ends.contains_key("min")) {
            self.warn("tlsVersion", "versions below TLS 1.2 are not offered");
        }
        made.versions = match (low > OLDEST, high > OLDEST) {
            (true, _) => OfferedVersions::V13,
            (_, false) => OfferedVersions::V12,
            (false, true) => OfferedVersions::Both,
        };
    }

    fn tls_identity(&mut self) -> Option<(String, String)> {
        let value = self.map.get("tlsAuth")?;
        let list = value.as_array().map(Vec::as_slice).unwrap_or_default();
        let text = |name: &str| list.first()?.get(name)?.as_str().filter(|it| !it.is_empty());
        match (list.len(), text("cert"), text("key"), text("password")) {
            (0, ..) if value.is_array() => None,
            (1, Some(cert), Some(key), None) => Some((cert.to_owned(), key.to_owned())),
            (1, Some(cert), Some(key), Some(password)) => {
                match crate::pem::decrypted_key(key, password) {
                    Ok(key) => Some((cert.to_owned(), key)),
                    Err(why) => {
                        self.refuse("tlsAuth", &why);
                        None
                    }
                }
            }
            (1 | 0, ..) => {
                let why = "write [{ cert: open('cert.pem'), key: open('key.pem') }]";
                self.refuse("tlsAuth", why);
                None
            }
            _ => {
                let why = "one certificate per test is available; run a test for each of them";
                self.refuse("tlsAuth", why);
                None
            }
        }
    }
}
