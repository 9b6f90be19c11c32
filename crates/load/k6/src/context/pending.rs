//! Calls of promises that are in flight.

use super::Context;
use crate::call::HttpReply;
use rquickjs::function::Constructor;
use rquickjs::prelude::Func;
use rquickjs::{Array, Ctx, Exception, Object, Result, Value};
use std::fmt::Debug;
use std::rc::Rc;
use units::Nanos;

/// Call of a promise. The script identifies it by its key, the lane of its first request.
pub(crate) trait PendingCall: Debug {
    /// Processes a part of the reply; returns the script's value for it. `None` if the call has no
    /// parts.
    fn part<'js>(
        &mut self,
        _ctx: &Ctx<'js>,
        _context: &Context,
        _lane: u32,
        _reply: &HttpReply,
    ) -> Result<Option<Value<'js>>> {
        Ok(None)
    }

    /// Sends a message, or closes our side of the call without one. Has no effect on calls that
    /// are not streams.
    ///
    /// # Errors
    /// Fails if the message cannot be sent, with the reason.
    fn write(
        &mut self,
        _context: &Context,
        _lane: u32,
        _json: Option<&str>,
    ) -> std::result::Result<(), String> {
        Ok(())
    }

    /// Processes the end of the reply; returns the key of the call and its result. `None` if
    /// another request follows. `response`: the script's class of responses.
    fn end<'js>(
        self: Box<Self>,
        response: &Constructor<'js>,
        context: &Context,
        lane: u32,
        reply: HttpReply,
    ) -> Result<Option<(u32, Value<'js>)>>;
}

/// Installs the functions for promises.
pub(crate) fn install<'js>(native: &Object<'js>, context: &Rc<Context>) -> Result<()> {
    let c = context.clone();
    native.set("simultaneous", Func::from(move || c.has_simultaneous_calls()))?;
    let c = context.clone();
    native.set(
        "nextEnded",
        Func::from(move |response: Constructor<'js>, ms: f64| c.next_ended(&response, ms)),
    )
}

impl Context {
    pub(crate) fn add_pending(&self, lane: u32, call: Box<dyn PendingCall>) {
        self.pending.borrow_mut().insert(lane, call);
    }

    /// Writes to the call in this lane. Has no effect if it has ended.
    pub(crate) fn write(&self, lane: u32, json: Option<&str>) -> std::result::Result<(), String> {
        let mut pending = self.pending.borrow_mut();
        pending.get_mut(&lane).map_or(Ok(()), |call| call.write(self, lane, json))
    }

    /// Waits until the call of a promise ends. Returns its key, its result, and true if the result
    /// is only a part. `None` if no call ends in time; -1 waits without a limit.
    fn next_ended<'js>(&self, response: &Constructor<'js>, ms: f64) -> Result<Option<Array<'js>>> {
        let ctx = response.ctx();
        let limit = (ms >= 0.0).then(|| Nanos::from_secs_f64((ms / 1e3).min(86_400.0)));
        let until = limit.map(|limit| self.now() + limit);
        loop {
            let ended = match self.take_early() {
                Some(ended) => Some(ended),
                None => {
                    let left = until.map(|until| until - self.now());
                    let ended = self.wait_for_any(left);
                    ended.map_err(|()| Exception::throw_message(ctx, "interrupted"))?
                }
            };
            let Some((lane, reply)) = ended else { return Ok(None) };
            let result = Array::new(ctx.clone())?;
            if reply.is_part {
                self.release_part(&reply.body);
                let mut pending = self.pending.borrow_mut();
                let Some(call) = pending.get_mut(&lane) else { continue };
                let Some(part) = call.part(ctx, self, lane, &reply)? else { continue };
                result.set(0, lane)?;
                result.set(1, part)?;
                result.set(2, true)?;
                return Ok(Some(result));
            }
            let Some(call) = self.pending.borrow_mut().remove(&lane) else { continue };
            let Some((key, value)) = call.end(response, self, lane, reply)? else { continue };
            result.set(0, key)?;
            result.set(1, value)?;
            return Ok(Some(result));
        }
    }
}
