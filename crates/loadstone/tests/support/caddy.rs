//! A private Caddy that serves one page: a server in Go, whose net/http answers.

use super::free_port;
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long it may take to listen.
const START_MAX: Duration = Duration::from_secs(20);

pub(crate) struct Caddy {
    child: Child,
    /// Its configuration, page and state; held for as long as it runs.
    _folder: TempDir,
    port: u16,
}

impl Caddy {
    /// `page` under `/page.html`.
    #[track_caller]
    pub(crate) fn start(page: &str) -> Caddy {
        // a port may be taken between its choice and its use: then another is chosen
        (0..5).find_map(|_| Caddy::try_start(page)).expect("caddy starts within five tries")
    }

    fn try_start(page: &str) -> Option<Caddy> {
        let folder = tempfile::tempdir().unwrap();
        let port = free_port();
        let root = folder.path();
        std::fs::write(root.join("page.html"), page).unwrap();
        let configuration = serde_json::json!({
            // its port is always the same, and nobody asks it anything here
            "admin": {"disabled": true},
            "apps": {"http": {"servers": {"one": {
                "listen": [format!("127.0.0.1:{port}")],
                "automatic_https": {"disable": true},
                "routes": [{"handle": [{"handler": "file_server", "root": root}]}],
            }}}},
        });
        let file = root.join("caddy.json");
        std::fs::write(&file, configuration.to_string()).unwrap();
        let mut command = Command::new("caddy");
        command.args(["run", "--config"]).arg(&file).env("HOME", root).current_dir(root);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().unwrap_or_else(|error| {
            panic!("caddy: {error}; `cargo xtask test` installs it (Debian: caddy)")
        });
        let mut caddy = Caddy { child, _folder: folder, port };
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
}

impl Drop for Caddy {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
