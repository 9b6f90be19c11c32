//! The built-in site over HTTP/3.

use super::tls::Pki;
use super::{Site, keep, measured};

/// The built-in site over QUIC, by quinn and h3, with a test certificate.
pub(crate) struct QuicSite {
    pub(crate) site: Site,
    pub(crate) ca: String,
    _folder: tempfile::TempDir,
}

impl QuicSite {
    pub(crate) fn start() -> QuicSite {
        QuicSite::with(&[])
    }

    /// Starts the site with further options.
    pub(crate) fn with(options: &[(&str, &str)]) -> QuicSite {
        let (pki, folder) = (Pki::new(), tempfile::tempdir().unwrap());
        let keep = |name: &str, text: &str| keep(folder.path(), name, text);
        let (cert, key) = (keep("cert", &pki.server.cert), keep("key", &pki.server.key));
        let http3 = format!("{cert},{key}");
        let site = Site::start(&[&[("http3", &*http3)][..], options].concat());
        QuicSite { site, ca: keep("ca", &pki.ca), _folder: folder }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        self.site.url(path).replacen("http:", "https:", 1)
    }

    pub(crate) fn measured(&self, args: &[&str]) -> serde_json::Value {
        measured(&[&["--http", "3", "--ca", &self.ca], args].concat(), &[0, 4])
    }
}
