//! A private Caddy that serves one page: a server in Go with net/http and, for HTTP/3, quic-go.

use super::free_port;
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Time limit until it listens.
const START_MAX: Duration = Duration::from_secs(20);

pub(crate) struct Caddy {
    child: Child,
    /// Folder of its configuration, page and state; deleted with the server.
    folder: TempDir,
    port: u16,
}

/// Path of its authority's certificate, relative to its folder, if it uses TLS.
const AUTHORITY: &str = "state/pki/authorities/local/root.crt";

impl Caddy {
    /// Starts a server of `page` at `/page.html`.
    #[track_caller]
    pub(crate) fn start(page: &str) -> Caddy {
        // a port may be taken between choosing and using it: then another is chosen
        let started = (0..5).find_map(|_| {
            Caddy::try_start(page, |root, port| {
                serde_json::json!({"http": {"servers": {"one": {
                    "listen": [format!("127.0.0.1:{port}")],
                    "automatic_https": {"disable": true},
                    "routes": [{"handle": [{"handler": "file_server", "root": root}]}],
                }}}})
            })
        });
        started.expect("caddy starts within five tries")
    }

    /// Starts a server with TLS by its own authority, and therefore HTTP/3. `/echo` returns a body,
    /// and `/moved` redirects to the page.
    #[track_caller]
    pub(crate) fn start_secure(page: &str) -> Caddy {
        let started = (0..5).find_map(|_| {
            let caddy = Caddy::try_start(page, |root, port| {
                serde_json::json!({
                    "http": {"https_port": port, "servers": {"one": {
                        "listen": [format!("127.0.0.1:{port}")],
                        "automatic_https": {"disable_redirects": true},
                        "routes": [{"match": [{"host": ["localhost"]}], "handle": [
                            {"handler": "subroute", "routes": [
                                {"match": [{"path": ["/echo"]}], "handle": [
                                    {"handler": "static_response", "body": "{http.request.body}"},
                                ]},
                                {"match": [{"path": ["/moved"]}], "handle": [
                                    {"handler": "static_response", "status_code": 302,
                                     "headers": {"Location": ["/page.html"]}},
                                ]},
                                {"handle": [{"handler": "file_server", "root": root}]},
                            ]},
                        ]}],
                    }}},
                    "tls": {"automation": {"policies": [
                        {"subjects": ["localhost"], "issuers": [{"module": "internal"}]},
                    ]}},
                    "pki": {"certificate_authorities": {"local": {"install_trust": false}}},
                })
            })?;
            let deadline = Instant::now() + START_MAX;
            while !caddy.folder.path().join(AUTHORITY).exists() {
                if Instant::now() > deadline {
                    return None;
                }
                std::thread::yield_now();
            }
            Some(caddy)
        });
        started.expect("caddy starts within five tries")
    }

    fn try_start(page: &str, apps: impl Fn(&Path, u16) -> serde_json::Value) -> Option<Caddy> {
        let folder = tempfile::tempdir().unwrap();
        let port = free_port();
        let root = folder.path();
        std::fs::write(root.join("page.html"), page).unwrap();
        let configuration = serde_json::json!({
            // its port is fixed, and unused here
            "admin": {"disabled": true},
            "storage": {"module": "file_system", "root": root.join("state")},
            "apps": apps(root, port),
        });
        let file = root.join("caddy.json");
        std::fs::write(&file, configuration.to_string()).unwrap();
        let mut command = Command::new("caddy");
        command.args(["run", "--config"]).arg(&file).env("HOME", root).current_dir(root);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().unwrap_or_else(|error| {
            panic!("caddy: {error}; `cargo xtask test` installs it (Debian: caddy)")
        });
        let mut caddy = Caddy { child, folder, port };
        let deadline = Instant::now() + START_MAX;
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if caddy.child.try_wait().unwrap().is_some() || Instant::now() > deadline {
                return None;
            }
            std::thread::yield_now();
        }
        Some(caddy)
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/page.html", self.port)
    }

    /// Returns the URL of a server started with TLS.
    pub(crate) fn secure_url(&self, path: &str) -> String {
        format!("https://localhost:{}{path}", self.port)
    }

    /// Returns the certificate of its authority.
    pub(crate) fn authority(&self) -> String {
        self.folder.path().join(AUTHORITY).display().to_string()
    }
}

impl Drop for Caddy {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
