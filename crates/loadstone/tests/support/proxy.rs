//! A small forward proxy: absolute form for http, CONNECT for the rest (RFC 9110 §9.3.6).

use super::Scripted;
use super::http::{Request, read_request};
use std::io::{BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

pub(crate) struct Proxy {
    server: Scripted,
    seen: Arc<Mutex<Vec<Request>>>,
}

impl Proxy {
    /// Forwards everything to `to`, the address of the origin, regardless of the name.
    pub(crate) fn to(origin: String) -> Proxy {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let book = Arc::clone(&seen);
        let server = Scripted::start(move |stream, connection| {
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            while let Some(mut request) = read_request(&mut reader) {
                request.connection = connection;
                let line = request.line.clone();
                let method = request.method().to_owned();
                book.lock().unwrap_or_else(PoisonError::into_inner).push(request);
                if method == "CONNECT" {
                    tunnel(&stream, &origin);
                    return;
                }
                if forward(&stream, &origin, &line).is_err() {
                    return;
                }
            }
        });
        Proxy { server, seen }
    }

    pub(crate) fn authority(&self) -> String {
        self.server.address.to_string()
    }

    /// Returns the requests made to the proxy itself.
    pub(crate) fn seen(&self) -> Vec<Request> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Forwards one exchange on a separate connection, which closes after the response.
fn forward(mut client: &TcpStream, origin: &str, line: &str) -> std::io::Result<()> {
    let target = line.split(' ').nth(1).unwrap_or_default();
    let path = target.splitn(4, '/').nth(3).unwrap_or_default();
    let mut server = TcpStream::connect(origin)?;
    write!(server, "GET /{path} HTTP/1.1\r\nHost: origin\r\nConnection: close\r\n\r\n")?;
    let mut response = Vec::new();
    server.read_to_end(&mut response)?;
    // the connection to the client stays open: the response has a length
    let text = String::from_utf8_lossy(&response);
    let text = text.replace("connection: close\r\n", "").replace("Connection: close\r\n", "");
    client.write_all(text.as_bytes())
}

fn tunnel(mut client: &TcpStream, origin: &str) {
    let Ok(server) = TcpStream::connect(origin) else { return };
    if client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").is_err() {
        return;
    }
    let pump = |mut from: TcpStream, mut to: TcpStream| {
        std::io::copy(&mut from, &mut to).ok();
        to.shutdown(Shutdown::Write).ok();
    };
    let (from, to) = (server.try_clone().unwrap(), client.try_clone().unwrap());
    let back = thread::spawn(move || pump(from, to));
    pump(client.try_clone().unwrap(), server);
    back.join().ok();
}
