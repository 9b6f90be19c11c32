//! A small HTTP server that records its requests and answers as the test configures. It reads a
//! request, answers, and reads the next; for another order use `Scripted`.

use super::Scripted;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex, PoisonError};

/// Received request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Request {
    /// Number of the connection, from 0; connection 0 is the plain first call.
    pub(crate) connection: usize,
    /// Address of the client.
    pub(crate) peer: String,
    /// Request line.
    pub(crate) line: String,
    /// Field lines of the head.
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    pub(crate) fn method(&self) -> &str {
        self.line.split(' ').next().unwrap_or_default()
    }

    pub(crate) fn target(&self) -> &str {
        self.line.split(' ').nth(1).unwrap_or_default()
    }

    /// Returns the value of a field; its name is case-insensitive.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let mut fields = self.fields.iter();
        fields.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

/// Reads one request; `None` at the end of the connection.
pub(crate) fn read_request(reader: &mut impl BufRead) -> Option<Request> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|&read| read > 0)?;
    let mut request = Request { line: line.trim_end().to_owned(), ..Request::default() };
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|&read| read > 0)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        request.fields.push((name.to_owned(), value.trim().to_owned()));
    }
    let length = request.field("content-length").map_or(0, |text| text.parse().unwrap());
    request.body = vec![0; length];
    reader.read_exact(&mut request.body).ok()?;
    Some(request)
}

/// Renders a response with a body of known length, on a connection that stays open.
pub(crate) fn response(status: u16, fields: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status} Text\r\n{fields}Content-Length: {length}\r\n\r\n{body}").into_bytes()
}

/// Recording server.
pub(crate) struct Recorder {
    server: Scripted,
    notes: Arc<Mutex<Vec<Request>>>,
}

impl Recorder {
    pub(crate) fn start(reply: impl Fn(&Request) -> Vec<u8> + Send + Sync + 'static) -> Recorder {
        Recorder::on("127.0.0.1:0", reply)
    }

    /// Starts a server that answers everything with 200 and `hello`.
    pub(crate) fn plain() -> Recorder {
        Recorder::start(|_| response(200, "", "hello"))
    }

    pub(crate) fn on(
        address: &str,
        reply: impl Fn(&Request) -> Vec<u8> + Send + Sync + 'static,
    ) -> Recorder {
        let notes = Arc::new(Mutex::new(Vec::new()));
        let book = Arc::clone(&notes);
        let server = Scripted::on(address, move |stream, connection| {
            converse(&stream, connection, &book, &reply);
        });
        Recorder { server, notes }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        self.server.url(path)
    }

    pub(crate) fn port(&self) -> u16 {
        self.server.address.port()
    }

    /// Returns all requests so far, in the order of their ends, including the plain first call.
    pub(crate) fn all(&self) -> Vec<Request> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the requests of the run, without the plain first call.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.all().into_iter().filter(|request| request.connection > 0).collect()
    }
}

fn converse(
    stream: &TcpStream,
    connection: usize,
    book: &Mutex<Vec<Request>>,
    reply: &dyn Fn(&Request) -> Vec<u8>,
) {
    let peer = stream.peer_addr().map(|peer| peer.ip().to_string()).unwrap_or_default();
    let mut reader = BufReader::new(stream);
    while let Some(mut request) = read_request(&mut reader) {
        (request.connection, request.peer) = (connection, peer.clone());
        let bytes = reply(&request);
        let close = request.field("connection").is_some_and(|value| value.contains("close"))
            || request.line.ends_with("HTTP/1.0") && request.field("connection").is_none();
        book.lock().unwrap_or_else(PoisonError::into_inner).push(request);
        let mut writer = stream;
        if writer.write_all(&bytes).is_err() || close {
            break;
        }
    }
}
