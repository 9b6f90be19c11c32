//! Logins whose proof depends on the request: Digest (RFC 7616) and AWS Signature Version 4. A
//! request in, its additional fields out. Layer 2: pure; the time of a signature is an argument.

pub mod digest;
pub mod sigv4;
