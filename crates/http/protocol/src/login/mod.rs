//! Logins whose proof follows from the request: Digest (RFC 7616) and AWS Signature Version 4. A request
//! comes in, the fields that go with it come out.
//! Layer 2: pure; the time of a signature is handed in.

pub mod digest;
pub mod sigv4;
