//! The client: settings are checked once, then each worker gets a factory.

use crate::tls::error::tls_error;
use crate::tls::open::OpenSession;
use crate::tls::session::ClientSession;
use crate::tls::tickets::Tickets;
use crate::tls::verify::{AcceptAny, OwnRoots, is_webpki_error};
use crate::tls::{FileRole, Settings, SetupError, Versions, names, pem, roots};
use conduit::{TlsError, TlsFactory, TlsSession};
use rustls::client::{Resumption, WantsClientCert, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::version::{TLS12, TLS13};
use rustls::{
    ClientConfig, ClientConnection, ConfigBuilder, SupportedProtocolVersion, WantsVerifier,
};
use rustls_pki_types::ServerName;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// TLS as configured by the plan. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Client {
    config: Arc<ClientConfig>,
    exposed_keys: Option<Arc<ClientConfig>>,
    resumption: bool,
}

impl Client {
    /// Checks the settings and reads the system's trust anchors, which takes some milliseconds
    /// once, unless any certificate is accepted or a CA is given.
    ///
    /// # Errors
    /// Fails for files, names or combinations that cannot be used; the text names the option.
    pub fn new(settings: &Settings) -> Result<Client, SetupError> {
        let exposed_keys = match settings.exposed_keys {
            true => {
                let older = Settings { versions: Versions::Tls12, ..settings.clone() };
                let mut config = config(&older)?;
                config.enable_secret_extraction = true;
                Some(Arc::new(config))
            }
            false => None,
        };
        let config = Arc::new(config(settings)?);
        Ok(Client { config, exposed_keys, resumption: settings.resumption })
    }

    /// Returns the configuration for callers with their own connections, without resumption.
    pub fn config(&self) -> Arc<ClientConfig> {
        self.config.clone()
    }

    /// Returns a factory for one worker, with its own ticket store if sessions are resumed.
    pub fn factory(&self) -> Factory {
        let exposed_keys = self.exposed_keys.clone();
        let resumption = self.resumption;
        let config = if resumption { remembering(&self.config) } else { self.config.clone() };
        Factory { config, exposed_keys, resumption, users: UserConfigs::default() }
    }
}

/// Creates the sessions of one worker.
#[derive(Debug)]
pub struct Factory {
    config: Arc<ClientConfig>,
    exposed_keys: Option<Arc<ClientConfig>>,
    resumption: bool,
    users: UserConfigs,
}

/// Returns the settings with a separate ticket store.
fn remembering(config: &ClientConfig) -> Arc<ClientConfig> {
    let mut config = config.clone();
    config.resumption = Resumption::store(Arc::new(Tickets::default()));
    Arc::new(config)
}

/// Maximum number of users whose sessions a worker remembers; the oldest is forgotten first.
const USERS_MAX: usize = 100_000;

/// Users with their own tickets.
#[derive(Debug, Default)]
struct UserConfigs {
    known: BTreeMap<u64, Arc<ClientConfig>>,
    /// In the order of occurrence.
    met: VecDeque<u64>,
}

impl UserConfigs {
    fn for_user(&mut self, user: u64, config: &ClientConfig) -> Arc<ClientConfig> {
        if let Some(known) = self.known.get(&user) {
            return known.clone();
        }
        if self.met.len() == USERS_MAX
            && let Some(first) = self.met.pop_front()
        {
            self.known.remove(&first);
        }
        let made = remembering(config);
        self.met.push_back(user);
        self.known.insert(user, made.clone());
        made
    }
}

impl Factory {
    fn config_of(&mut self, user: u64) -> Arc<ClientConfig> {
        if self.resumption { self.users.for_user(user, &self.config) } else { self.config.clone() }
    }

    /// Returns handshakes like [`Factory::quic`], for a user with its own tickets.
    #[cfg(feature = "quic")]
    pub fn quic_of(&mut self, user: u64) -> quic::Handshakes {
        quic::session::handshakes(self.config_of(user), QUIC_WORDS)
    }

    /// Returns handshakes for QUIC, with the same settings and the same store of tickets.
    #[cfg(feature = "quic")]
    pub fn quic(&self) -> quic::Handshakes {
        quic::session::handshakes(self.config.clone(), QUIC_WORDS)
    }

    /// Returns the settings for crafted connections, which handle resumption themselves.
    #[cfg(feature = "quic")]
    pub fn quic_by_hand(&self) -> quic::session::HandSessions {
        quic::session::HandSessions::new(&self.config, QUIC_WORDS)
    }
}

#[cfg(feature = "quic")]
const QUIC_WORDS: quic::session::SessionWords = quic::session::SessionWords {
    name: |typed| parse_name(typed).ok(),
    facts: crate::tls::session::facts_of_state,
    why: |error| crate::tls::error::session_error(error).text,
};

impl TlsFactory for Factory {
    fn session(&mut self, server_name: &str) -> Result<Box<dyn TlsSession>, TlsError> {
        Ok(Box::new(ClientSession::new(connection(&self.config, server_name)?)))
    }

    fn session_of(
        &mut self,
        server_name: &str,
        user: u64,
    ) -> Result<Box<dyn TlsSession>, TlsError> {
        let config = self.config_of(user);
        Ok(Box::new(ClientSession::new(connection(&config, server_name)?)))
    }

    fn session_offering(
        &mut self,
        server_name: &str,
        protocols: &[&str],
    ) -> Result<Box<dyn TlsSession>, TlsError> {
        let offered = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        let name = parse_name(server_name)?;
        let made = ClientConnection::new_with_alpn(self.config.clone(), name, offered);
        let made = made.map_err(|error| tls_error(error.to_string()))?;
        Ok(Box::new(ClientSession::new(made)))
    }

    fn exposed_keys(&mut self, server_name: &str) -> Result<Box<dyn TlsSession>, TlsError> {
        let config = self.exposed_keys.as_ref().ok_or_else(|| {
            tls_error("this client's sessions do not export their keys".to_owned())
        })?;
        Ok(Box::new(OpenSession::new(connection(config, server_name)?)))
    }
}

fn connection(config: &Arc<ClientConfig>, server_name: &str) -> Result<ClientConnection, TlsError> {
    ClientConnection::new(config.clone(), parse_name(server_name)?)
        .map_err(|error| tls_error(error.to_string()))
}

fn config(settings: &Settings) -> Result<ClientConfig, SetupError> {
    let (provider, versions) = offer(settings)?;
    let provider = Arc::new(provider);
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&versions)
        .map_err(library)?;
    let builder = with_verifier(builder, settings, provider)?;
    let mut config = with_identity(builder, settings)?;
    config.alpn_protocols = alpn(&settings.alpn)?;
    config.enable_sni = !settings.nameless;
    config.resumption = Resumption::disabled();
    // early data can be replayed by an attacker, so it is opt-in
    config.enable_early_data = settings.early_data;
    Ok(config)
}

/// Parses a DNS name or an address; an IPv6 address may keep the brackets that it has in a URL.
pub(crate) fn parse_name(typed: &str) -> Result<ServerName<'static>, TlsError> {
    let bare = typed.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(typed);
    ServerName::try_from(bare.to_owned()).map_err(|_| {
        let typed = units::quoted(typed);
        tls_error(format!("{typed} is neither a DNS name nor an address; see --server-name"))
    })
}

/// Looks up names, and keeps only those versions for which a suite and a group are left.
fn offer(
    settings: &Settings,
) -> Result<(CryptoProvider, Vec<&'static SupportedProtocolVersion>), SetupError> {
    let mut provider = aws_lc_rs::default_provider();
    if !settings.ciphers.is_empty() {
        provider.cipher_suites = names::ciphers(&settings.ciphers)?;
    }
    if !settings.groups.is_empty() {
        provider.kx_groups = names::groups(&settings.groups)?;
    }
    let mut versions: Vec<&'static SupportedProtocolVersion> = match settings.versions {
        Versions::Any => vec![&TLS13, &TLS12],
        Versions::Tls12 => vec![&TLS12],
        Versions::Tls13 => vec![&TLS13],
    };
    let nothing_left =
        |what| SetupError::NothingLeft { what, versions: version_names(settings.versions) };
    versions.retain(|kept| provider.cipher_suites.iter().any(|suite| suite.version() == *kept));
    if versions.is_empty() {
        return Err(nothing_left("ciphers"));
    }
    let groups = &provider.kx_groups;
    versions.retain(|kept| groups.iter().any(|group| group.usable_for_version(kept.version)));
    if versions.is_empty() {
        return Err(nothing_left("groups"));
    }
    Ok((provider, versions))
}

fn version_names(asked: Versions) -> &'static str {
    match asked {
        Versions::Any => "TLS 1.2 or 1.3",
        Versions::Tls12 => "TLS 1.2",
        Versions::Tls13 => "TLS 1.3",
    }
}

fn with_verifier(
    builder: ConfigBuilder<ClientConfig, WantsVerifier>,
    settings: &Settings,
    provider: Arc<CryptoProvider>,
) -> Result<ConfigBuilder<ClientConfig, WantsClientCert>, SetupError> {
    if settings.insecure {
        let any = Arc::new(AcceptAny::new(&provider));
        return Ok(builder.dangerous().with_custom_certificate_verifier(any));
    }
    let Some(text) = &settings.ca else {
        return Ok(builder.with_root_certificates(roots::system()?));
    };
    let (mut store, trusted) = roots::own(text)?;
    if settings.system_ca_too
        && let Ok(system) = roots::system()
    {
        store.extend(system.roots);
    }
    let webpki = WebPkiServerVerifier::builder_with_provider(Arc::new(store), provider)
        .build()
        .map_err(|error| SetupError::Library(error.to_string()))?;
    let own = Arc::new(OwnRoots::new(webpki, trusted));
    Ok(builder.dangerous().with_custom_certificate_verifier(own))
}

fn with_identity(
    builder: ConfigBuilder<ClientConfig, WantsClientCert>,
    settings: &Settings,
) -> Result<ClientConfig, SetupError> {
    let (chain, role, key) = match (&settings.cert, &settings.key) {
        (None, None) => return Ok(builder.with_no_client_auth()),
        (None, Some(_)) => return Err(SetupError::KeyAlone),
        (Some(cert), Some(key)) => (cert, FileRole::Key, key),
        (Some(both), None) => (both, FileRole::Cert, both),
    };
    let chain = pem::certificates(FileRole::Cert, chain)?;
    let key = pem::private_key(role, key)?;
    let unusable = |error| match error {
        rustls::Error::InconsistentKeys(_) => SetupError::KeyMismatch,
        rustls::Error::InvalidCertificate(_) => SetupError::File {
            role: FileRole::Cert,
            why: format!("has a certificate that cannot be used: {error}"),
        },
        other => SetupError::File { role, why: format!("has a key that cannot be used: {other}") },
    };
    let key = builder.crypto_provider().key_provider.load_private_key(key).map_err(unusable)?;
    let identity = CertifiedKey::new(chain, key);
    match identity.keys_match() {
        Ok(()) | Err(rustls::Error::InconsistentKeys(rustls::InconsistentKeys::Unknown)) => {}
        // X.509 v1, as `openssl x509 -req` makes it: the server decides whether it accepts that
        Err(error) if is_webpki_error(&error, &webpki::Error::UnsupportedCertVersion) => {}
        Err(error) => return Err(unusable(error)),
    }
    Ok(builder.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(identity))))
}

fn alpn(names: &[String]) -> Result<Vec<Vec<u8>>, SetupError> {
    let carry = |name: &String| match name.len() {
        1..=255 => Ok(name.clone().into_bytes()),
        _ => Err(SetupError::Alpn { name: name.clone() }),
    };
    names.iter().map(carry).collect()
}

fn library(error: rustls::Error) -> SetupError {
    SetupError::Library(error.to_string())
}
