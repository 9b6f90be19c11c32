//! TLS of gRPC connections whose guide has settings for their server.

use crate::servers;
use conduit::{TlsError, TlsFactory, TlsSession};
use plan::Plan;
use sample::FailureClass;
use std::collections::BTreeMap;
use std::sync::Arc;
use workload::{GrpcTls, GrpcTlsRules};

/// Factory that applies the rules of a guide to gRPC connections.
#[derive(Debug)]
pub(crate) struct RuledTls {
    /// Factory of all other connections.
    plain: net::tls::Factory,
    rules: Arc<dyn GrpcTlsRules>,
    settings: net::tls::Settings,
    /// Factories by the names of the servers.
    made: BTreeMap<String, (Arc<GrpcTls>, net::tls::Factory)>,
}

impl RuledTls {
    pub(crate) fn new(
        plan: &Plan,
        plain: net::tls::Factory,
        rules: Arc<dyn GrpcTlsRules>,
    ) -> RuledTls {
        let settings = servers::tls_settings(plan);
        RuledTls { plain, rules, settings, made: BTreeMap::new() }
    }

    fn grpc_factory(
        &mut self,
        server_name: &str,
        wanted: Arc<GrpcTls>,
    ) -> Result<&mut net::tls::Factory, TlsError> {
        let known = self.made.get(server_name).is_some_and(|(made, _)| Arc::ptr_eq(made, &wanted));
        if !known {
            let settings = settings_with(&self.settings, &wanted);
            let client = net::tls::Client::new(&settings).map_err(|error| TlsError {
                class: FailureClass::Tls,
                text: error.to_string(),
                fix_text: None,
            })?;
            self.made.insert(server_name.to_owned(), (wanted, client.factory()));
        }
        let (_, factory) = self.made.get_mut(server_name).expect("the factory was just made");
        Ok(factory)
    }
}

/// Returns the settings of the plan with the files of a server. Like k6, the client's certificate
/// of the plan is not used then.
fn settings_with(plan: &net::tls::Settings, wanted: &GrpcTls) -> net::tls::Settings {
    let (cert, key) = wanted.identity.clone().unzip();
    let mut settings = net::tls::Settings { cert, key, ..plan.clone() };
    if !wanted.authorities.is_empty() {
        (settings.ca, settings.system_ca_too) = (Some(wanted.authorities.clone()), true);
    }
    settings
}

impl TlsFactory for RuledTls {
    fn session(&mut self, server_name: &str) -> Result<Box<dyn TlsSession>, TlsError> {
        self.plain.session(server_name)
    }

    fn session_of(
        &mut self,
        server_name: &str,
        user: u64,
    ) -> Result<Box<dyn TlsSession>, TlsError> {
        self.plain.session_of(server_name, user)
    }

    fn session_offering(
        &mut self,
        server_name: &str,
        protocols: &[&str],
    ) -> Result<Box<dyn TlsSession>, TlsError> {
        match self.rules.settings(server_name).filter(|_| protocols == [http2::ALPN]) {
            Some(wanted) => {
                self.grpc_factory(server_name, wanted)?.session_offering(server_name, protocols)
            }
            None => self.plain.session_offering(server_name, protocols),
        }
    }

    fn exposed_keys(&mut self, server_name: &str) -> Result<Box<dyn TlsSession>, TlsError> {
        self.plain.exposed_keys(server_name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_a_server_replace_those_of_the_plan() {
        let plan = net::tls::Settings {
            insecure: true,
            cert: Some(b"cert".to_vec()),
            key: Some(b"key".to_vec()),
            ..net::tls::Settings::default()
        };
        let made = settings_with(&plan, &GrpcTls::default());
        assert!(made.insecure && made.cert.is_none() && made.key.is_none() && made.ca.is_none());
        let wanted =
            GrpcTls { authorities: b"ca".to_vec(), identity: Some((b"c".to_vec(), b"k".to_vec())) };
        let made = settings_with(&plan, &wanted);
        assert_eq!((made.cert, made.key), (Some(b"c".to_vec()), Some(b"k".to_vec())));
        assert_eq!((made.ca, made.system_ca_too), (Some(b"ca".to_vec()), true));
    }
}
