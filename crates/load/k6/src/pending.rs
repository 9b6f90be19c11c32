//! Calls that a script has in flight at once: requests of `http.batch` and of promises.

use crate::context::Context;
use crate::grpc::GrpcCall;
use crate::http::{Headers, Hop, HttpCall, HttpReply, SeenResponse};
use crate::socket;
use crate::vu::VuCall;
use rquickjs::function::Constructor;
use rquickjs::prelude::Func;
use rquickjs::{Array, Ctx, Exception, Object, Result};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use units::Nanos;

/// Request with its redirects.
#[derive(Debug)]
pub(crate) struct RequestChain {
    pub(crate) ask: HttpCall,
    /// Next request; `None` if its URL cannot be used.
    pub(crate) hop: Option<Hop>,
    /// Group in which the request began.
    pub(crate) group: String,
    /// Maximum number of redirects, and those followed.
    pub(crate) most: u32,
    pub(crate) hops: u32,
    /// True if it has answered a challenge from the server.
    pub(crate) challenged: bool,
    /// Error and code of a request that the options do not allow.
    pub(crate) refusal: Option<(String, u32)>,
    /// Fields of the last request.
    pub(crate) sent: Arc<Headers>,
    /// Method and URL before the first redirect.
    pub(crate) first: Option<[String; 2]>,
}

/// Finished request.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) ask: HttpCall,
    pub(crate) seen: SeenResponse,
    pub(crate) hop: Hop,
    pub(crate) sent: Arc<Headers>,
    /// Method and URL of the request, if it was redirected.
    pub(crate) first: Option<[String; 2]>,
}

/// Call of a promise. The script identifies it by its key, the lane of its first request.
#[derive(Debug)]
pub(crate) enum PendingWork {
    /// HTTP request; after a redirect it has another lane than at first.
    Http {
        key: u32,
        work: Box<RequestChain>,
    },
    /// Action on a WebSocket.
    Socket {
        socket: u32,
        opens: bool,
    },
    Grpc(Box<GrpcCall>),
}

pub(crate) fn install<'js>(native: &Object<'js>, context: &Rc<Context>) -> Result<()> {
    let c = context.clone();
    native.set("simultaneous", Func::from(move || c.has_simultaneous_calls()))?;
    let c = context.clone();
    native.set(
        "httpBegin",
        Func::from(move |ctx: Ctx<'js>, made: Object<'js>| -> Result<u32> {
            let work = RequestChain::new(&c, HttpCall::new(&made, &c)?);
            let work = work.map_err(|why| Exception::throw_message(&ctx, &why))?;
            let key = c.new_lane();
            send_or_end(&c, key, key, Box::new(work));
            Ok(key)
        }),
    )?;
    let c = context.clone();
    native.set(
        "nextEnded",
        Func::from(move |response: Constructor<'js>, ms: f64| next_ended(&response, &c, ms)),
    )
}

/// Begins the next request of the work in a lane; a request that is not sent ends at once.
fn send_or_end(context: &Context, lane: u32, key: u32, mut work: Box<RequestChain>) {
    match work.wire(context) {
        Some(wire) => context.push_call(lane, VuCall::Http(Box::new(wire))),
        None => context.keep_early_reply(lane, HttpReply::default()),
    }
    context.pending.borrow_mut().insert(lane, PendingWork::Http { key, work });
}

fn interrupted(ctx: &Ctx<'_>) -> rquickjs::Error {
    Exception::throw_message(ctx, "interrupted")
}

/// Waits until the call of a promise ends. Returns its key, its result, and true if the result is
/// only a part. `None` if no call ends in time; -1 waits without a limit.
fn next_ended<'js>(
    response: &Constructor<'js>,
    context: &Context,
    ms: f64,
) -> Result<Option<Array<'js>>> {
    let ctx = response.ctx();
    let limit = (ms >= 0.0).then(|| Nanos::from_secs_f64((ms / 1e3).min(86_400.0)));
    let until = limit.map(|limit| context.now() + limit);
    loop {
        let ended = match context.take_early() {
            Some(ended) => Some(ended),
            None => {
                let left = until.map(|until| until - context.now());
                context.wait_for_any(left).map_err(|()| interrupted(ctx))?
            }
        };
        let Some((lane, reply)) = ended else { return Ok(None) };
        let result = Array::new(ctx.clone())?;
        if reply.is_part {
            context.release_part(&reply.body);
            let mut pending = context.pending.borrow_mut();
            let Some(PendingWork::Grpc(call)) = pending.get_mut(&lane) else { continue };
            let Some(part) = crate::grpc::part(ctx, context, (lane, call), &reply)? else {
                continue;
            };
            result.set(0, lane)?;
            result.set(1, part)?;
            result.set(2, true)?;
            return Ok(Some(result));
        }
        let pending = context.pending.borrow_mut().remove(&lane);
        match pending {
            None => continue,
            Some(PendingWork::Http { key, mut work }) => match work.take(context, reply) {
                Some(done) => {
                    result.set(0, key)?;
                    result.set(1, done.object(response)?)?;
                }
                None => {
                    let lane = context.new_lane();
                    send_or_end(context, lane, key, work);
                    continue;
                }
            },
            Some(PendingWork::Grpc(mut call)) => {
                result.set(0, lane)?;
                result.set(1, crate::grpc::ended(ctx, context, &mut call, &reply)?)?;
            }
            Some(PendingWork::Socket { socket, opens }) => {
                result.set(0, lane)?;
                match opens {
                    true => result.set(1, socket::opened(ctx, context, socket, &reply)?)?,
                    false => result.set(1, socket::heard(ctx, context, socket, &reply)?)?,
                }
            }
        }
        return Ok(Some(result));
    }
}

/// Request of a batch.
struct QueuedRequest {
    place: usize,
    host: String,
    work: RequestChain,
}

/// Makes the requests of `http.batch` within the limits of the options on parallel requests: in
/// total, and to one host.
pub(crate) fn batch(
    ctx: &Ctx<'_>,
    context: &Context,
    asks: Vec<HttpCall>,
) -> Result<Vec<Finished>> {
    let options = context.program.options();
    let limits = options.map_or((20, 6), |it| (it.batch, it.batch_per_host));
    let mut waiting = VecDeque::new();
    for (place, ask) in asks.into_iter().enumerate() {
        let work = RequestChain::new(context, ask);
        let work = work.map_err(|why| Exception::throw_message(ctx, &why))?;
        waiting.push_back(QueuedRequest { place, host: work.host(), work });
    }
    let mut done = BTreeMap::new();
    let mut active: BTreeMap<u32, QueuedRequest> = BTreeMap::new();
    loop {
        while let Some(part) = next_part(&mut waiting, &active, limits) {
            begin_next_request(context, part, &mut active, &mut done);
        }
        if active.is_empty() && waiting.is_empty() {
            return Ok(done.into_values().collect());
        }
        let ended = context.wait_for_any(None).map_err(|()| interrupted(ctx))?;
        let Some((lane, reply)) = ended else { continue };
        match active.remove(&lane) {
            Some(mut part) => match part.work.take(context, reply) {
                Some(finished) => drop(done.insert(part.place, finished)),
                None => begin_next_request(context, part, &mut active, &mut done),
            },
            None => context.keep_early_reply(lane, reply),
        }
    }
}

/// Removes and returns the next request that may begin.
fn next_part(
    waiting: &mut VecDeque<QueuedRequest>,
    active: &BTreeMap<u32, QueuedRequest>,
    (most, per_host): (usize, usize),
) -> Option<QueuedRequest> {
    let free = most.saturating_sub(active.len());
    let count_at = |host: &str| active.values().filter(|part| part.host == host).count();
    let place = waiting.iter().take(free).position(|part| count_at(&part.host) < per_host)?;
    waiting.remove(place)
}

/// Begins the next request of a part.
fn begin_next_request(
    context: &Context,
    mut part: QueuedRequest,
    active: &mut BTreeMap<u32, QueuedRequest>,
    done: &mut BTreeMap<usize, Finished>,
) {
    loop {
        if let Some(wire) = part.work.wire(context) {
            let lane = context.begin(VuCall::Http(Box::new(wire)));
            active.insert(lane, part);
            return;
        }
        if let Some(finished) = part.work.take(context, HttpReply::default()) {
            done.insert(part.place, finished);
            return;
        }
    }
}
