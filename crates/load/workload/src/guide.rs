//! Users whose next request depends on earlier responses: pages and their parts, redirects, logins,
//! caches. The engine knows only this interface; a higher layer implements it.

use crate::Template;
use sample::{FailureClass, Note, Outcome, Remark, Sample};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use units::Nanos;

/// Next action of a user.
#[derive(Clone, Debug)]
pub enum Step {
    Call(GuideCall),
    /// The unchanged target in this row of the plan, after a wait.
    Target {
        wait: Nanos,
        row: u32,
    },
    /// The user makes no call; the guide is queried again after the wait.
    Pause {
        wait: Nanos,
    },
    /// The user makes no call until one of its [simultaneous](Guide::makes_simultaneous_calls)
    /// calls has ended.
    Await,
    /// Adds to the body of the call in this lane, whose request was [kept
    /// open](http2::Request::keep_open); `ends`: nothing follows. Has no effect if the call has
    /// ended. The guide is queried again at once.
    Extend {
        lane: u32,
        bytes: Vec<u8>,
        ends: bool,
    },
    /// The call in this lane, whose request was kept open, is abandoned. The guide is queried
    /// again at once.
    Cancel {
        lane: u32,
    },
    /// The idle connections of a user with [simultaneous](Guide::makes_simultaneous_calls) calls
    /// are closed; the guide is queried again at once.
    Disconnect,
    /// The user makes no more calls.
    Leave,
}

/// A call requested by a guide.
#[derive(Clone, Debug)]
pub struct GuideCall {
    /// Time that the user waits before the call.
    pub wait: Nanos,
    /// Row of the target list under which the call is counted.
    pub row: u32,
    /// The request. Its URL determines the endpoint.
    pub template: Box<Template>,
}

/// Result of a user's call.
#[derive(Clone, Copy, Debug)]
pub struct CallEnd<'a> {
    pub sample: &'a Sample,
    pub outcome: Outcome,
    /// The response's head and body as received; empty without a complete response. Trailers follow
    /// the head of a user with simultaneous calls. The body is also empty unless the guide [keeps
    /// bodies](Guide::keeps_bodies), and is cut off at 16 MiB.
    pub head: &'a [u8],
    pub body: &'a [u8],
    /// Lane of the call's template.
    pub lane: u32,
}

/// A complete response, before its call is counted.
#[derive(Clone, Copy, Debug)]
pub struct WholeResponse<'a> {
    /// Row of the target list under which the call is counted.
    pub row: u32,
    pub status: u16,
    /// As in [`CallEnd`].
    pub head: &'a [u8],
    pub body: &'a [u8],
    /// Time from the first byte of the request to the end of the response.
    pub took: Nanos,
    pub now: Nanos,
}

/// Users of one worker, identified by their numbers across all workers.
pub trait Guide: std::fmt::Debug + Send {
    /// Returns whether the guide needs bodies; called once, before the run.
    fn keeps_bodies(&self) -> bool;

    /// Returns the failure of a response; `planned`: the failure by the plan's own expectations.
    fn judge(
        &mut self,
        _user: u64,
        _heard: &WholeResponse<'_>,
        planned: Option<FailureClass>,
    ) -> Option<FailureClass> {
        planned
    }

    /// Returns whether the guide is notified of each call's end, even if calls are not logged;
    /// called once.
    fn sees_every_response(&self) -> bool {
        false
    }

    /// Returns whether the run ends when all its users have left; called once.
    fn ends_with_its_users(&self) -> bool {
        false
    }

    /// Returns whether a user may have several calls in flight. The guide is then queried for the
    /// next step after each call that it starts, until it returns no call, and may be queried
    /// before a pause is over. Only for closed loads; called once.
    fn makes_simultaneous_calls(&self) -> bool {
        false
    }

    /// Passes the values that a user captured or was given to `add`: they may be secrets, and are
    /// masked in responses that are shown.
    fn secrets(&self, _user: u64, _add: &mut dyn FnMut(&str)) {}

    /// Reports the observations since the previous report.
    fn report(&mut self, _hear: &mut dyn FnMut(Remark)) {}

    /// Returns the user's next action. `now` is on the clock of samples.
    fn next(&mut self, user: u64, now: Nanos) -> Step;

    /// Notifies the guide that a call of the user has ended. The returned note is added to the
    /// record of the call.
    fn note_call_end(&mut self, user: u64, came: &CallEnd<'_>) -> Option<Note>;

    /// Receives the next part of the response's body, if the call's request was [kept
    /// open](http2::Request::keep_open). The end of the call has no body then.
    fn part(&mut self, _user: u64, _lane: u32, _body: &[u8]) {}

    /// Handles the end of the user's WebSocket with this number, for which these messages wait for
    /// a call: each begins with its [opcode](crate::opcode).
    fn socket_ended(&mut self, _user: u64, _socket: u32, _left: Vec<Vec<u8>>) {}

    /// Returns the TLS settings of gRPC connections, if servers can have their own; called once,
    /// before the run.
    fn grpc_tls(&self) -> Option<Arc<dyn GrpcTlsRules>> {
        None
    }

    /// Takes back the request of a call that has ended; another request may use its memory.
    fn take_back(&mut self, _template: Box<Template>) {}
}

/// Rules of a guide for the addresses of servers.
pub trait AddressRules: std::fmt::Debug + Send + Sync {
    /// Returns the address of a server whose name is not looked up.
    fn address(&self, host: &str, port: u16) -> Option<SocketAddr>;

    /// Returns whether a connection may be opened to this address.
    fn permits(&self, address: IpAddr) -> bool;

    /// Records that no address of this host is permitted.
    fn exclude(&self, host: &str);
}

/// TLS of the gRPC connections to one server, in place of the plan's. All files are PEM.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct GrpcTls {
    /// Certificates trusted in addition to the system's; empty for none.
    pub authorities: Vec<u8>,
    /// The client's certificate and its key.
    pub identity: Option<(Vec<u8>, Vec<u8>)>,
}

impl std::fmt::Debug for GrpcTls {
    /// Formats without file contents: one of them is a private key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GrpcTls")
            .field("authorities", &!self.authorities.is_empty())
            .field("identity", &self.identity.is_some())
            .finish()
    }
}

/// TLS of gRPC connections by the names of their servers.
pub trait GrpcTlsRules: std::fmt::Debug + Send + Sync {
    /// Returns the settings for a server; `None` means the plan's.
    fn settings(&self, server_name: &str) -> Option<Arc<GrpcTls>>;
}

/// Creates the guides of a run.
pub trait Guides: std::fmt::Debug {
    /// Creates the guide of the users of one worker.
    fn guide(&self) -> Box<dyn Guide>;

    /// Returns the rules for the addresses of the servers that the guides use; `None` means the
    /// plan's.
    fn address_rules(&self) -> Option<Arc<dyn AddressRules>> {
        None
    }
}
