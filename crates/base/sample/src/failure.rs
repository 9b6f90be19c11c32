//! Failure classes: a superset of httperf's eight, each with one party to blame.

/// The party to blame for a failure; decides the column in which it is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Blame {
    /// The server misbehaved or refused.
    Server,
    /// A host or device between client and server.
    Path,
    /// Our own machine or program.
    Driver,
    /// The plan requested something impossible, or set the limit that was reached.
    Plan,
}

impl Blame {
    pub const ALL: [Blame; 4] = [Blame::Server, Blame::Path, Blame::Driver, Blame::Plan];

    pub fn id(self) -> &'static str {
        match self {
            Blame::Server => "server",
            Blame::Path => "path",
            Blame::Driver => "driver",
            Blame::Plan => "plan",
        }
    }
}

macro_rules! classes {
    ($($name:ident, $id:literal, $blame:ident, $text:literal;)*) => {
        /// Reason why a call failed, timed out, or was dropped.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum FailureClass { $(#[doc = $text] $name,)* }

        impl FailureClass {
            pub const ALL: &[FailureClass] = &[$(FailureClass::$name,)*];
            pub const COUNT: usize = Self::ALL.len();

            /// Returns a stable name for reports and JSON.
            pub fn id(self) -> &'static str {
                match self { $(FailureClass::$name => $id,)* }
            }

            pub fn blame(self) -> Blame {
                match self { $(FailureClass::$name => Blame::$blame,)* }
            }

            /// Returns one sentence of explanation for the user.
            pub fn explain(self) -> &'static str {
                match self { $(FailureClass::$name => $text,)* }
            }
        }
    };
}

classes! {
    ClientTimeout, "client-timo", Server, "no complete response within --timeout";
    ConnectTimeout, "connect-timo", Path, "no connection within the connect timeout";
    FirstByteTimeout, "first-byte-timo", Server, "no first byte of a response within its timeout";
    ProgressTimeout, "progress-timo", Server, "no byte was transferred for longer than the progress timeout";
    KeepaliveTimeout, "keepalive-timo", Server, "a keepalive ping was not acknowledged in time";
    QueueTimeout, "queue-timo", Plan, "waited its whole timeout for a connection (see --connections-max)";
    SocketTimeout, "socket-timo", Path, "the kernel timed the connection out (ETIMEDOUT)";
    Refused, "connrefused", Server, "connection refused";
    Reset, "connreset", Server, "connection reset by the server";
    Unreachable, "unreachable", Path, "host or network unreachable";
    FdUnavailable, "fd-unavail", Driver, "this process is out of file descriptors (EMFILE)";
    AddressUnavailable, "addrunavail", Driver, "no local port left (EADDRNOTAVAIL)";
    FileTableFull, "ftab-full", Driver, "the system's file table is full (ENFILE)";
    OtherIo, "other", Path, "another operating system error";
    ClosedEarly, "closed-early", Server, "the server closed the connection before any byte of the response";
    Truncated, "truncated", Server, "the connection ended in the middle of a response";
    NotHttp, "not-http", Server, "the response is not HTTP";
    BadFraming, "bad-framing", Server, "the response's head, length or chunks break HTTP's rules, or its head is above the limit (64 KiB unless --head-max is given, 256 fields)";
    Protocol, "protocol", Server, "the response is not in the requested protocol, or violates it";
    StreamReset, "stream-reset", Server, "the server reset the stream";
    StreamRefused, "stream-refused", Server, "the server refused the stream at every attempt";
    Unasked, "unasked", Server, "bytes arrived without a request";
    Status, "status", Server, "the response had an unexpected status";
    GrpcStatus, "grpc-status", Server, "the call ended with an unexpected gRPC status";
    StreamFailed, "stream-failed", Server, "the stream reported an error, or ended without its end mark";
    Length, "length", Server, "the body did not have the expected length";
    Body, "body", Server, "the body differs from the expected one";
    Differs, "differs", Server, "the body does not match the target (--verify)";
    OtherTarget, "other-target", Server, "the body belongs to another target (--verify)";
    Expectation, "expectation", Server, "a field or the time of the response was not as expected";
    Capture, "capture", Server, "the response lacks a value that the step captures";
    Script, "script", Plan, "the journey's script failed on the response";
    Encoding, "encoding", Server, "the content could not be decoded";
    Redirects, "redirects", Server, "too many redirects, or one without a usable target";
    Tls, "tls", Server, "the TLS handshake or record layer failed";
    Certificate, "certificate", Server, "the server's certificate was not accepted";
    Proxy, "proxy", Path, "the proxy refused the request";
    ConnectionLimit, "connections-max", Plan, "dropped: no connection free and --queue-max reached";
    UpgradeRefused, "ws-refused", Server, "the server did not accept the upgrade to WebSocket";
    UpgradeInvalid, "ws-handshake", Server, "the server's response to the upgrade to WebSocket breaks RFC 6455 section 4";
    MessageProtocol, "ws-protocol", Server, "the server broke the rules of WebSocket (RFC 6455) or a limit on its messages";
    SocketClosed, "ws-closed", Server, "the server closed the WebSocket before the answer to a message";
    WorkloadEnd, "workload", Plan, "the content of the request could not be built";
    SendQueue, "send-queue", Server, "more than 16 MiB of the stream's messages waited for the \
        server to accept them";
}

impl FailureClass {
    /// Returns a short text for people: `connection refused`.
    pub fn short_form(self) -> &'static str {
        use FailureClass as Class;
        match self {
            Class::ClientTimeout => "timeout",
            Class::ConnectTimeout => "connect timeout",
            Class::FirstByteTimeout => "first-byte timeout",
            Class::ProgressTimeout => "progress timeout",
            Class::KeepaliveTimeout => "keepalive timeout",
            Class::QueueTimeout => "timeout in the queue",
            Class::SocketTimeout => "kernel timeout",
            Class::Refused => "connection refused",
            Class::Reset => "connection reset",
            Class::Unreachable => "host unreachable",
            Class::FdUnavailable => "no file descriptor",
            Class::AddressUnavailable => "no local port",
            Class::FileTableFull => "file table full",
            Class::OtherIo => "system error",
            Class::ClosedEarly => "closed before the response",
            Class::Truncated => "response cut off",
            Class::NotHttp => "not HTTP",
            Class::BadFraming => "malformed response",
            Class::Protocol => "protocol error",
            Class::StreamReset => "stream reset",
            Class::StreamRefused => "stream refused",
            Class::Unasked => "unrequested bytes",
            Class::Status => "unexpected status",
            Class::GrpcStatus => "unexpected gRPC status",
            Class::StreamFailed => "stream failed",
            Class::Length => "unexpected length",
            Class::Body => "unexpected body",
            Class::Differs => "body differs",
            Class::OtherTarget => "body of another target",
            Class::Expectation => "unexpected field or time",
            Class::Capture => "value to capture missing",
            Class::Script => "script error",
            Class::Encoding => "content not decodable",
            Class::Redirects => "redirect error",
            Class::Tls => "TLS error",
            Class::Certificate => "certificate error",
            Class::Proxy => "refused by the proxy",
            Class::ConnectionLimit => "dropped: no free connection",
            Class::UpgradeRefused => "upgrade refused",
            Class::UpgradeInvalid => "invalid WebSocket handshake",
            Class::MessageProtocol => "WebSocket violation",
            Class::SocketClosed => "WebSocket closed by the server",
            Class::WorkloadEnd => "request could not be built",
            Class::SendQueue => "send queue full",
        }
    }

    /// Returns whether a complete response arrived and the class describes what is wrong with it;
    /// calls of the other classes ended without a complete response.
    pub fn has_complete_response(self) -> bool {
        use FailureClass::{
            Body, Capture, Differs, Encoding, Expectation, GrpcStatus, Length, OtherTarget,
            Redirects, Script, Status, StreamFailed,
        };
        matches!(
            self,
            Status
                | GrpcStatus
                | StreamFailed
                | Length
                | Body
                | Differs
                | OtherTarget
                | Expectation
                | Capture
                | Script
                | Encoding
                | Redirects
        )
    }
}
