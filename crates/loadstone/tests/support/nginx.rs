//! A private nginx that serves one page, with its own configuration and port, in a temporary
//! folder.

use super::free_port;
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Time limit until it listens.
const START_MAX: Duration = Duration::from_secs(20);

/// An ordinary user's PATH on Debian lacks the first folders.
const FOLDERS: [&str; 3] = ["/usr/sbin", "/usr/local/sbin", "/usr/bin"];

/// Returns whether the nginx of this folder has bound its ports: it then writes its pid file. A
/// reachable port proves less, because a server of another test may have taken it, and nginx
/// retries for seconds.
pub(crate) fn is_listening(folder: &Path) -> bool {
    std::fs::read_to_string(folder.join("pid")).is_ok_and(|number| number.ends_with('\n'))
}

/// Path of the program.
#[track_caller]
pub(crate) fn program() -> String {
    let found = FOLDERS.iter().map(|folder| format!("{folder}/nginx"));
    let mut found = found.filter(|path| Path::new(path).exists());
    found.next().unwrap_or_else(|| {
        panic!("nginx is missing; `cargo xtask test` installs it (Debian: nginx-light)")
    })
}

pub(crate) struct Nginx {
    child: Child,
    /// Folder of its configuration, page and log; deleted with the server.
    folder: TempDir,
    port: u16,
}

impl Nginx {
    /// Starts a server of `page` at `/page.html`, with unlimited calls per connection.
    #[track_caller]
    pub(crate) fn start(page: &str) -> Nginx {
        // a port may be taken between choosing and using it: then another is chosen
        (0..5).find_map(|_| Nginx::try_start(page, "", "")).expect("nginx starts within five tries")
    }

    /// Starts a proxy that forwards every request to this port on persistent connections.
    #[track_caller]
    pub(crate) fn proxy_to_port(origin: u16) -> Nginx {
        Nginx::proxy(origin, "")
    }

    /// Starts a proxy with prior-knowledge HTTP/2 only.
    #[track_caller]
    pub(crate) fn http2_in_front_of(origin: u16) -> Nginx {
        Nginx::proxy(origin, " http2")
    }

    /// Starts a server with TLS 1.3 and early data; `/late` answers early requests with 425.
    /// `files`: the certificate and its key.
    #[track_caller]
    pub(crate) fn with_early_data(protocol: &str, files: [&str; 2]) -> Nginx {
        let [cert, key] = files;
        let rules = format!(
            "ssl_certificate {cert}; ssl_certificate_key {key}; ssl_protocols TLSv1.3; \
             ssl_early_data on; ssl_session_cache shared:sessions:1m; location / {{ return 200; }} \
             location /late {{ if ($ssl_early_data) {{ return 425; }} return 200; }}"
        );
        let started = (0..5).find_map(|_| Nginx::try_start("", &format!(" ssl{protocol}"), &rules));
        started.expect("nginx starts within five tries")
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    #[track_caller]
    fn proxy(origin: u16, protocol: &str) -> Nginx {
        let rules = format!(
            "location / {{ proxy_pass http://127.0.0.1:{origin}; proxy_http_version 1.1; \
             proxy_set_header Connection \"\"; }}"
        );
        let started = (0..5).find_map(|_| Nginx::try_start("", protocol, &rules));
        started.expect("nginx starts within five tries")
    }

    fn try_start(page: &str, protocol: &str, rules: &str) -> Option<Nginx> {
        let folder = tempfile::tempdir().unwrap();
        let port = free_port();
        std::fs::write(folder.path().join("page.html"), page).unwrap();
        let listen = format!("{port}{protocol}");
        std::fs::write(folder.path().join("nginx.conf"), configuration(&folder, &listen, rules))
            .unwrap();
        let mut command = Command::new(program());
        command.arg("-p").arg(folder.path()).args(["-c", "nginx.conf", "-e", "error.log"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut nginx = Nginx { child: command.spawn().unwrap(), folder, port };
        let deadline = Instant::now() + START_MAX;
        while !is_listening(nginx.folder.path()) {
            if nginx.child.try_wait().unwrap().is_some() || Instant::now() > deadline {
                return None;
            }
            std::thread::yield_now();
        }
        Some(nginx)
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/page.html", self.port)
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn configuration(folder: &TempDir, listen: &str, rules: &str) -> String {
    let root = folder.path().display();
    let mut temporary = String::new();
    for name in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"] {
        writeln!(temporary, "    {name}_temp_path {root}/{name};").unwrap();
    }
    format!(
        "daemon off; master_process off; pid {root}/pid; error_log {root}/error.log;\n\
         events {{ worker_connections 512; }}\n\
         http {{\n{temporary}    access_log off; keepalive_requests 100000000;\n\
         \x20   server {{ listen 127.0.0.1:{listen}; root {root}; {rules} }}\n}}\n"
    )
}
