//! k6/http: native functions for requests, batches of them, and cookie jars.

use crate::call::{HttpReply, VuAnswer, VuCall, VuRequest};
use crate::context::{Context, PendingCall};
use crate::request::{Finished, HttpCall, RequestChain, pairs};
use crate::response;
use rquickjs::function::Constructor;
use rquickjs::prelude::Func;
use rquickjs::{Array, Ctx, Exception, Object, Result, Value};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use url::Url;
use workload::Jar;

pub(crate) fn install<'js>(native: &Object<'js>, context: &Rc<Context>) -> Result<()> {
    let c = context.clone();
    native.set(
        "http",
        Func::from(
            move |response: Constructor<'js>,
                  method: rquickjs::String<'js>,
                  url: rquickjs::String<'js>,
                  body: Value<'js>,
                  tags: Option<Vec<String>>,
                  more: Option<Array<'js>>|
                  -> Result<Object<'js>> {
                let ask = HttpCall::from_parts((method, url, body, tags, more), &c)?;
                perform(response.ctx(), &c, ask)?.object(&response)
            },
        ),
    )?;
    let c = context.clone();
    native.set(
        "batch",
        Func::from(
            move |ctx: Ctx<'js>,
                  response: Constructor<'js>,
                  all: Vec<Object<'js>>|
                  -> Result<Array<'js>> {
                let asks: Result<Vec<HttpCall>> =
                    all.iter().map(|made| HttpCall::new(made, &c)).collect();
                let answers = Array::new(ctx.clone())?;
                let all = match c.has_simultaneous_calls() {
                    true => batch(&ctx, &c, asks?)?,
                    false => {
                        let each = asks?.into_iter().map(|ask| perform(&ctx, &c, ask));
                        each.collect::<Result<Vec<Finished>>>()?
                    }
                };
                for (place, done) in all.into_iter().enumerate() {
                    answers.set(place, done.object(&response)?)?;
                }
                Ok(answers)
            },
        ),
    )?;
    let c = context.clone();
    native.set(
        "httpBegin",
        Func::from(move |ctx: Ctx<'js>, made: Object<'js>| -> Result<u32> {
            let chain = RequestChain::new(&c, HttpCall::new(&made, &c)?);
            let chain = chain.map_err(|why| Exception::throw_message(&ctx, &why))?;
            let key = c.new_lane();
            Box::new(PendingRequest { key, chain }).send_or_end(&c, key);
            Ok(key)
        }),
    )?;
    response::install(native)?;
    jars(native, context)
}

/// Provides the cookie jars by number; 0 is the user's default jar.
fn jars<'js>(native: &Object<'js>, context: &Rc<Context>) -> Result<()> {
    let c = context.clone();
    native.set(
        "jarNew",
        Func::from(move || {
            let mut jars = c.jars.borrow_mut();
            jars.push(Jar::new());
            (jars.len() - 1) as u32
        }),
    )?;
    let c = context.clone();
    native.set(
        "jarSet",
        Func::from(
            move |ctx: Ctx<'js>,
                  jar: u32,
                  url: String,
                  name: String,
                  value: String,
                  options: Object<'js>|
                  -> Result<bool> {
                let url = parse(&ctx, &url)?;
                let mut text = format!("{name}={value}");
                for (key, field) in [("domain", "Domain"), ("path", "Path"), ("expires", "Expires")]
                {
                    if let Some(value) = options.get::<_, Option<String>>(key)? {
                        text.push_str(&format!("; {field}={value}"));
                    }
                }
                if let Some(age) = options.get::<_, Option<f64>>("max_age")? {
                    text.push_str(&format!("; Max-Age={}", age as i64));
                }
                if options.get::<_, Option<bool>>("secure")?.unwrap_or(false) {
                    text.push_str("; Secure");
                }
                if let Some(jar) = c.jars.borrow_mut().get_mut(jar as usize) {
                    jar.absorb(&url, text.as_bytes());
                }
                Ok(true)
            },
        ),
    )?;
    jar_contents(native, context)
}

/// Provides the functions that read and empty jars.
fn jar_contents<'js>(native: &Object<'js>, context: &Rc<Context>) -> Result<()> {
    let c = context.clone();
    native.set(
        "jarGet",
        Func::from(move |ctx: Ctx<'js>, jar: u32, url: String| -> Result<Vec<String>> {
            let url = parse(&ctx, &url)?;
            Ok(pairs(c.jars.borrow().get(jar as usize).and_then(|jar| jar.header(&url))))
        }),
    )?;
    let c = context.clone();
    native.set(
        "jarClear",
        Func::from(move |ctx: Ctx<'js>, jar: u32, url: String| -> Result<()> {
            let url = parse(&ctx, &url)?;
            if let Some(jar) = c.jars.borrow_mut().get_mut(jar as usize) {
                for pair in pairs(jar.header(&url)).chunks_exact(2) {
                    jar.absorb(&url, format!("{}=; Max-Age=0", pair[0]).as_bytes());
                }
            }
            Ok(())
        }),
    )?;
    let c = context.clone();
    native.set(
        "jarDelete",
        Func::from(move |ctx: Ctx<'js>, jar: u32, url: String, name: String| -> Result<()> {
            let url = parse(&ctx, &url)?;
            if let Some(jar) = c.jars.borrow_mut().get_mut(jar as usize) {
                jar.absorb(&url, format!("{name}=; Max-Age=0").as_bytes());
            }
            Ok(())
        }),
    )
}

fn parse(ctx: &Ctx<'_>, text: &str) -> Result<Url> {
    Url::parse(text).map_err(|why| Exception::throw_message(ctx, &format!("\"{text}\": {why}")))
}

/// Makes the request and follows its redirects.
fn perform(ctx: &Ctx<'_>, context: &Context, ask: HttpCall) -> Result<Finished> {
    let mut work =
        RequestChain::new(context, ask).map_err(|why| Exception::throw_message(ctx, &why))?;
    loop {
        let reply = match work.wire(context) {
            Some(wire) => match context.exchange(VuRequest::Http(Box::new(wire))) {
                Some(VuAnswer::Http(reply)) => *reply,
                _ => return Err(interrupted(ctx)),
            },
            None => HttpReply::default(),
        };
        if let Some(done) = work.take(context, reply) {
            return Ok(done);
        }
    }
}

/// Request of a promise. After a redirect it has another lane than at first.
#[derive(Debug)]
struct PendingRequest {
    key: u32,
    chain: RequestChain,
}

impl PendingRequest {
    /// Begins the next request of the chain in a lane; a request that is not sent ends at once.
    fn send_or_end(mut self: Box<Self>, context: &Context, lane: u32) {
        match self.chain.wire(context) {
            Some(wire) => context.push_call(lane, VuCall::Http(Box::new(wire))),
            None => context.keep_early_reply(lane, HttpReply::default()),
        }
        context.add_pending(lane, self);
    }
}

impl PendingCall for PendingRequest {
    fn end<'js>(
        mut self: Box<Self>,
        response: &Constructor<'js>,
        context: &Context,
        _: u32,
        reply: HttpReply,
    ) -> Result<Option<(u32, Value<'js>)>> {
        match self.chain.take(context, reply) {
            Some(done) => Ok(Some((self.key, done.object(response)?.into_value()))),
            None => {
                let lane = context.new_lane();
                self.send_or_end(context, lane);
                Ok(None)
            }
        }
    }
}

fn interrupted(ctx: &Ctx<'_>) -> rquickjs::Error {
    Exception::throw_message(ctx, "interrupted")
}

/// Request of a batch.
struct QueuedRequest {
    place: usize,
    host: String,
    work: RequestChain,
}

/// Makes the requests of `http.batch` within the limits of the options on parallel requests: in
/// total, and to one host.
fn batch(ctx: &Ctx<'_>, context: &Context, asks: Vec<HttpCall>) -> Result<Vec<Finished>> {
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
