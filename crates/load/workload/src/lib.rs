//! Requests to send: targets and their order, think times, users with their cookies. Stateless
//! choices are functions of the seed and an index, so that timing never changes content. Layer 2:
//! pure; knows messages, not connections.
#![forbid(unsafe_code)]

mod actor;
pub mod fileset;
mod guide;
mod html_tree;
mod jar;
mod links;
mod maker;
pub mod schedule;
mod script;
mod selector;
mod socket;
mod targets;
mod think;
pub mod yaml;

pub use actor::{ActedCall, Actor, ActorAction, ActorTurn, CallResponse, IterationStart};
pub use guide::{
    AddressRules, CallEnd, GrpcTls, GrpcTlsRules, Guide, GuideCall, Guides, Step, WholeResponse,
};
pub use jar::Jar;
pub use links::{LINKS_MAX, Link, Use, links};
pub use maker::{MadeRequest, RequestMaker, RequestMakers};
pub use script::{Script, ScriptError, Wants};
pub use selector::Selector;
pub use socket::{
    AwaitedMessages, MessageFilter, SOCKET_KEY_MARK, SocketAction, SocketCall, opcode,
};
pub use targets::{Order, RequestUrl, Stripped, Targets, Template, with_target};
pub use think::Think;
