//! TLS of gRPC connections by server, from the parameters of `connect`.

use crate::pem;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use workload::{GrpcTls, GrpcTlsRules};

/// Maximum number of servers with gRPC over TLS.
const SERVERS_MAX: usize = 1_000;

/// TLS settings of the servers to which scripts connect; `None` for those of the test.
#[derive(Debug, Default)]
pub(crate) struct GrpcTlsTable(Mutex<BTreeMap<String, Option<Arc<GrpcTls>>>>);

/// Parameter `tls` of `connect`.
#[derive(Clone, Debug, Default)]
pub(crate) struct TlsParameter {
    pub(crate) authorities: Vec<String>,
    pub(crate) cert: String,
    pub(crate) key: String,
    pub(crate) password: String,
}

impl TlsParameter {
    /// Returns the settings, with the key decrypted.
    ///
    /// # Errors
    /// Fails with k6's text if a file is not PEM, or the password is wrong.
    fn settings(self) -> Result<GrpcTls, String> {
        let mut made = GrpcTls::default();
        for (index, text) in self.authorities.iter().enumerate() {
            if !pem::has_certificate(text) {
                return Err(format!("failed to append ca certificate [{index}] from PEM"));
            }
            made.authorities.extend_from_slice(text.as_bytes());
            made.authorities.push(b'\n');
        }
        let key = match self.password.is_empty() {
            true => self.key,
            false => pem::decrypted_key(&self.key, &self.password)?,
        };
        if self.cert.is_empty() || key.is_empty() {
            return Ok(made);
        }
        for (what, is_found) in
            [("certificate", pem::has_certificate(&self.cert)), ("key", pem::has_private_key(&key))]
        {
            if !is_found {
                return Err(format!(
                    "failed to append certificate from PEM: the {what} is not PEM, or is encrypted"
                ));
            }
        }
        made.identity = Some((self.cert.into_bytes(), key.into_bytes()));
        Ok(made)
    }
}

impl GrpcTlsTable {
    fn servers(&self) -> MutexGuard<'_, BTreeMap<String, Option<Arc<GrpcTls>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the settings of a server, which all connections to it share.
    ///
    /// # Errors
    /// Fails if files cannot be used, or an earlier connection to the server had other settings.
    pub(crate) fn add(&self, host: &str, given: Option<TlsParameter>) -> Result<(), String> {
        let wanted = given.map(TlsParameter::settings).transpose()?;
        let mut servers = self.servers();
        let name = server_name(host);
        match servers.get(&name) {
            Some(known) if known.as_deref() == wanted.as_ref() => return Ok(()),
            Some(_) => {
                return Err(format!(
                    "all connections to {name} share their TLS settings; pass the same \"tls\" to \
                     each connect(), or use another name for the server"
                ));
            }
            None if servers.len() >= SERVERS_MAX => {
                return Err(format!(
                    "a test can use gRPC over TLS with at most {SERVERS_MAX} servers"
                ));
            }
            None => servers.insert(name, wanted.map(Arc::new)),
        };
        Ok(())
    }
}

impl GrpcTlsRules for GrpcTlsTable {
    fn settings(&self, server: &str) -> Option<Arc<GrpcTls>> {
        self.servers().get(&server_name(server))?.clone()
    }
}

/// Returns a host name as key: an IPv6 address has brackets in a URL only.
fn server_name(host: &str) -> String {
    host.trim_matches(['[', ']']).to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CERT: &str = "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n";
    const KEY: &str = "-----BEGIN PRIVATE KEY-----\nMAA=\n-----END PRIVATE KEY-----\n";

    fn parameter(authority: &str, cert: &str, key: &str) -> Option<TlsParameter> {
        let authorities = Some(authority.to_owned()).filter(|it| !it.is_empty());
        Some(TlsParameter {
            authorities: authorities.into_iter().collect(),
            cert: cert.to_owned(),
            key: key.to_owned(),
            password: String::new(),
        })
    }

    #[test]
    fn connections_to_a_server_share_their_settings() {
        let table = GrpcTlsTable::default();
        table.add("[::1]", parameter(CERT, CERT, KEY)).unwrap();
        table.add("[::1]", parameter(CERT, CERT, KEY)).unwrap();
        let found = table.settings("::1").unwrap();
        assert!(!found.authorities.is_empty() && found.identity.is_some());
        assert!(table.add("[::1]", None).unwrap_err().contains("share their TLS settings"));
        table.add("Plain.example", None).unwrap();
        assert!(table.settings("plain.example").is_none());
        assert!(table.settings("other.example").is_none());
    }

    #[test]
    fn files_that_are_not_pem_are_refused() {
        let table = GrpcTlsTable::default();
        for (given, why) in [
            (parameter("x", "", ""), "failed to append ca certificate [0] from PEM"),
            (parameter("", "x", KEY), "the certificate is not PEM"),
            (parameter("", CERT, "x"), "the key is not PEM"),
        ] {
            let found = table.add("h", given).unwrap_err();
            assert!(found.contains(why), "{found}");
        }
        // as in k6, a certificate without its key is not used
        table.add("h", parameter("", CERT, "")).unwrap();
        assert!(table.settings("h").unwrap().identity.is_none());
    }
}
