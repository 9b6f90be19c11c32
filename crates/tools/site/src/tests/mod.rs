//! Complete responses over loopback, read by a plain socket. No test waits for time to pass; where
//! time matters, a response must not arrive too early.

mod exact;
#[cfg(feature = "h3")]
mod http3;
mod pages;
mod range;
mod running;

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use crate::{Config, Site};

fn config(options: &[(&str, &str)]) -> Config {
    let mut config = Config::on_free_port();
    for (name, value) in options {
        config.parse_option(name, value).unwrap();
    }
    config
}

fn site(options: &[(&str, &str)]) -> Site {
    Site::start(config(options)).unwrap()
}

/// Time limit: a test that would hang fails instead.
const PATIENCE: Duration = Duration::from_secs(30);

struct Client(TcpStream);

impl Client {
    fn new(site: &Site) -> Client {
        let address = site.address().to_string();
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Client(stream)
    }

    fn send(&mut self, bytes: impl AsRef<[u8]>) -> &mut Client {
        self.0.write_all(bytes.as_ref()).unwrap();
        self
    }

    /// Returns everything up to the end of the connection, with variable parts masked and a reset
    /// shown.
    fn rest(&mut self) -> String {
        let mut bytes = Vec::new();
        let reset = self.0.read_to_end(&mut bytes).is_err();
        let text = masked(&bytes);
        if reset { text + "[reset]" } else { text }
    }

    /// Reads one response with a length, or without a body if `head_only`.
    fn response(&mut self, head_only: bool) -> String {
        let mut bytes = Vec::new();
        while !bytes.ends_with(b"\r\n\r\n") {
            bytes.push(self.byte());
        }
        let text = String::from_utf8(bytes.clone()).unwrap().to_lowercase();
        let declared = text.lines().find_map(|line| line.strip_prefix("content-length: "));
        let len = declared.map_or(0, |len| len.parse().unwrap());
        let mut body = vec![0; if head_only { 0 } else { len }];
        self.0.read_exact(&mut body).unwrap();
        bytes.extend(body);
        masked(&bytes)
    }

    fn byte(&mut self) -> u8 {
        let mut byte = [0];
        self.0.read_exact(&mut byte).unwrap();
        byte[0]
    }

    fn no_more(&mut self) -> &mut Client {
        self.0.shutdown(Shutdown::Write).unwrap();
        self
    }
}

/// Returns a request line with the fields that every request needs.
fn request(line: &str) -> String {
    format!("{line} HTTP/1.1\r\nHost: a\r\n\r\n")
}

/// Returns a request with `Connection: close`.
fn last(line: &str) -> String {
    format!("{line} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
}

/// Returns everything received for `bytes` on a new connection.
fn ask(site: &Site, bytes: impl AsRef<[u8]>) -> String {
    Client::new(site).send(bytes).rest()
}

/// Dates out, line ends as `\n`, the version out.
fn masked(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes).replace(crate::head::SERVER, "loadstone");
    let lines = text.split("\r\n").map(|line| match line.get(..6) {
        Some(name) if name.eq_ignore_ascii_case("date: ") => {
            httpdate::parse_http_date(&line[6..]).unwrap();
            format!("{name}*")
        }
        _ => line.to_owned(),
    });
    lines.collect::<Vec<String>>().join("\n")
}

/// Formats `len` bytes of the expected pattern.
fn pattern(len: usize) -> String {
    let line = std::str::from_utf8(crate::pattern::LINE).unwrap();
    line.repeat(len / 64 + 1)[..len].to_owned()
}
