//! The run description: every field explicit, validated, versioned. User input becomes a [`Plan`];
//! the engine runs only plans. Layer 3: pure; files are read by the caller.
#![forbid(unsafe_code)]

pub mod check;
mod defaults;
mod draft;
mod file;
pub mod fold;
mod form;
mod grpc;
pub mod journey;
mod masker;
mod model;
mod model_request;
mod names;
pub mod options;
mod preset;
mod priority;
pub mod representative;
pub mod rules;
pub mod scenario;
mod secrets;
mod source;
pub mod specweb99;
mod stack;
pub mod stages;
mod stream;
mod targets;
mod tcp;
mod token;
mod urls;
mod validate;
pub mod verify;
mod websocket;

pub use draft::PlanDraft;
pub use file::{VERSION, from_masked_toml, from_toml, identity, to_brief_toml, to_toml};
pub use form::{check_form_field, form_body};
pub use grpc::{AnswerField, GrpcCode, GrpcPlan, GrpcStep, GrpcVariant, http_url};
pub use masker::Masker;
pub use model::*;
pub use model_request::{ModelRequest, parse_tokens};
pub use preset::SocketPreset;
pub use priority::Priority;
pub use secrets::{Secrets, is_secret_header};
pub use source::{FileSource, NoFiles};
pub use specweb99::Specweb99Plan;
pub use stack::{StackChoice, XdpChoice, XdpMode};
pub use stream::{ModelApi, StepStream, Streaming, parse_streaming};
pub use targets::PlanTargets;
pub use tcp::TcpTraits;
pub use token::{ClientLogin, TOKEN_USERS_MAX, TokenPlan};
pub use urls::{
    Location, parse_proxy, parse_target_url, parse_url, parse_url_list, parse_zoned_url,
};
pub use validate::{Problem, feeder_shortage, validate};
pub use websocket::{
    ID_MARK, MaskRule, MessageAnswer, ROOM_MARKS, WebSocketPlan, is_secure, is_websocket_url,
};
