//! Request and response types of gRPC methods: descriptors from `.proto` files, descriptor sets or
//! the server's reflection, and messages between JSON and bytes. No I/O: files and responses are
//! arguments. The wire format is `protocol::grpc`.
#![forbid(unsafe_code)]

pub mod reflection;
mod schema;

pub use schema::{GrpcMethod, Schema, SchemaError};
