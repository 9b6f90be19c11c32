//! nghttp2's own server, serving a temporary folder.

use super::free_port;
use super::tls::Pki;
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Time limit until it listens.
const START_MAX: Duration = Duration::from_secs(20);

pub(crate) struct Nghttpd {
    child: Child,
    _folder: TempDir,
    port: u16,
    secure: bool,
}

impl Nghttpd {
    /// Pages of 6 and 3,000 bytes: `/` and `/long`.
    #[track_caller]
    pub(crate) fn start(secure: bool, options: &[&str]) -> Nghttpd {
        // a port may be taken between choosing and using it: then another is chosen
        let start = |_| Nghttpd::try_start(secure, options);
        (0..5).find_map(start).expect("nghttpd starts within five tries (Debian: nghttp2-server)")
    }

    fn try_start(secure: bool, options: &[&str]) -> Option<Nghttpd> {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("index.html"), "hello\n").unwrap();
        std::fs::write(path("long"), vec![b'x'; 3_000]).unwrap();
        let port = free_port();
        let mut command = Command::new("nghttpd");
        command.arg("-d").arg(folder.path()).args(options).arg(port.to_string());
        if secure {
            let pki = Pki::new();
            std::fs::write(path("key"), pki.server.key).unwrap();
            std::fs::write(path("cert"), pki.server.cert).unwrap();
            command.arg(path("key")).arg(path("cert"));
        } else {
            command.arg("--no-tls");
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut server = Nghttpd { child: command.spawn().ok()?, _folder: folder, port, secure };
        let deadline = Instant::now() + START_MAX;
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if server.child.try_wait().unwrap().is_some() || Instant::now() > deadline {
                return None;
            }
            std::thread::yield_now();
        }
        Some(server)
    }

    pub(crate) fn url(&self, path: &str) -> String {
        let scheme = if self.secure { "https" } else { "http" };
        format!("{scheme}://127.0.0.1:{}{path}", self.port)
    }
}

impl Drop for Nghttpd {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
