//! Odd but harmless requests: the responses identify a server.

/// Harmless oddities: names, methods and [text](dialogue::text).
pub const ODDITIES: [(&str, &str, &str); 6] = [
    ("a missing page", "GET", r"GET /loadstone-nothing-here HTTP/1.1\r\nHost: {host}\r\n\r\n"),
    ("an unknown method", "LOADSTONE", r"LOADSTONE {path} HTTP/1.1\r\nHost: {host}\r\n\r\n"),
    ("a future version", "GET", r"GET {path} HTTP/1.9\r\nHost: {host}\r\n\r\n"),
    ("a line of junk", "GET", r"loadstone\r\n\r\n"),
    ("an invalid field", "GET", r"GET {path} HTTP/1.1\r\nHost: {host}\r\nloadstone\r\n\r\n"),
    ("HEAD", "HEAD", r"HEAD {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"),
];
