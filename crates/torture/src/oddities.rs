//! Requests that are odd and do no harm: how a server takes them is a habit of its own.

/// Harmless oddities: their names, their methods and their [text](dialogue::text).
pub const ODDITIES: [(&str, &str, &str); 6] = [
    (
        "a page that is not there",
        "GET",
        r"GET /loadstone-nothing-here HTTP/1.1\r\nHost: {host}\r\n\r\n",
    ),
    (
        "a method that nobody knows",
        "LOADSTONE",
        r"LOADSTONE {path} HTTP/1.1\r\nHost: {host}\r\n\r\n",
    ),
    ("a version of the future", "GET", r"GET {path} HTTP/1.9\r\nHost: {host}\r\n\r\n"),
    ("a line of junk", "GET", r"loadstone\r\n\r\n"),
    ("a field that is none", "GET", r"GET {path} HTTP/1.1\r\nHost: {host}\r\nloadstone\r\n\r\n"),
    ("HEAD", "HEAD", r"HEAD {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"),
];
