//! A script kept inside the server: LuaJIT, loaded once per thread of a small pool, so that a slow
//! response does not block connections.
//!
//! The script defines `answer(request)` and returns status, table of fields, body:
//!
//! ```lua
//! function answer(request)
//!     return 200, { ["Content-Type"] = "text/plain" }, "hello " .. (request.query or "world")
//! end
//! ```
//!
//! `request` has `method`, `path`, `path_info`, `query` (undecoded; nil without one), `headers`
//! (names in lower case), `body`, `peer` and `user`. Globals persist between requests of the same
//! thread, as in mod_perl. No files, no processes, no loading of code: the base library without
//! those, `string`, `table`, `math`, `bit` and `coroutine`; `print` writes to the site's log.
//!
//! Just-in-time compilation is off: compiled loops never check the time limit. Neither does a
//! single call of a library function: a slow pattern blocks its thread until it completes.

mod engine;

#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use hyper::header::{HeaderValue, RETRY_AFTER};
use tokio::sync::oneshot;

use crate::cgi::Complain;
use crate::exchange::{Ask, Reply};
use engine::{Engine, ScriptFailure};

/// Time after twice the time limit at which a request without a response is abandoned.
const STUCK_AFTER: Duration = Duration::from_secs(5);

/// Limits of a script, and the number of its copies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InterpreterLimits {
    /// Time limit for one response.
    pub(crate) time: Duration,
    /// Maximum memory of one copy of the script in bytes.
    pub(crate) memory: usize,
    /// Maximum request body passed to the script; longer ones get 413.
    pub(crate) body: u64,
    /// Number of copies of the script, at least one, each with a thread.
    pub(crate) threads: usize,
    /// Requests that wait for a thread; more are refused with 503.
    pub(crate) queue: usize,
}

impl Default for InterpreterLimits {
    fn default() -> InterpreterLimits {
        let time = Duration::from_secs(10);
        InterpreterLimits { time, memory: 64 << 20, body: 4 << 20, threads: 2, queue: 256 }
    }
}

#[derive(Clone)]
pub(crate) struct InterpreterSettings {
    pub(crate) script: PathBuf,
    pub(crate) limits: InterpreterLimits,
    pub(crate) complain: Complain,
}

/// A node whose response is the result of a script's function.
pub(crate) struct Interpreter {
    jobs: SyncSender<Job>,
    settings: InterpreterSettings,
}

impl std::fmt::Debug for Interpreter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let script = &self.settings.script;
        f.debug_struct("Interpreter").field("script", script).finish_non_exhaustive()
    }
}

struct Job {
    ask: Ask,
    /// Dropped when the reply is no longer wanted.
    asker: Weak<()>,
    reply: oneshot::Sender<Result<Reply, ScriptFailure>>,
}

impl Interpreter {
    /// Loads the script and starts the threads, which end with this.
    ///
    /// # Errors
    /// Fails if the file cannot be read, is not Lua, fails when loaded or defines no `answer`, with
    /// a message that names file and line, or if the system has no thread.
    pub(crate) fn new(settings: InterpreterSettings) -> Result<Interpreter, String> {
        let name = settings.script.display().to_string();
        let source = std::fs::read(&settings.script);
        let source = Arc::new(source.map_err(|error| format!("cannot read {name}: {error}"))?);
        // errors show here, not at the first request
        Engine::load(&name, &source, &settings)?;
        let (jobs, queue) = sync_channel(settings.limits.queue);
        let queue = Arc::new(Mutex::new(queue));
        for _ in 0..settings.limits.threads.max(1) {
            let (name, source, settings) = (name.clone(), Arc::clone(&source), settings.clone());
            let queue = Arc::clone(&queue);
            let label = name.clone();
            let thread = std::thread::Builder::new().name("interpreter".to_owned());
            let started = thread.spawn(move || work(&name, &source, &settings, &queue));
            started.map_err(|error| format!("no thread for {label}: {error}"))?;
        }
        Ok(Interpreter { jobs, settings })
    }

    /// Answers a request. Never fails: a script that cannot answer results in a status from 400 on
    /// and a line in the log.
    pub(crate) async fn answer(&self, ask: Ask) -> Reply {
        if ask.body.len() > self.settings.limits.body {
            return self.refuse(&ScriptFailure::TooLong);
        }
        let (reply, replied) = oneshot::channel();
        let here = Arc::new(());
        let job = Job { ask, asker: Arc::downgrade(&here), reply };
        if let Err(error) = self.jobs.try_send(job) {
            let why = match error {
                TrySendError::Full(_) => "too many requests are waiting for it",
                TrySendError::Disconnected(_) => "its threads have ended",
            };
            return self.refuse(&ScriptFailure::Busy(why));
        }
        // a thread that is stuck in a library function does not notice its limit
        let patience = self.settings.limits.time * 2 + STUCK_AFTER;
        match tokio::time::timeout(patience, replied).await {
            Ok(Ok(Ok(reply))) => reply,
            Ok(Ok(Err(failure))) => self.refuse(&failure),
            Ok(Err(_)) => self.refuse(&ScriptFailure::Busy("its thread has ended")),
            Err(_) => self.refuse(&ScriptFailure::Busy("all its threads are taken")),
        }
    }

    fn refuse(&self, failure: &ScriptFailure) -> Reply {
        let script = self.settings.script.display();
        (self.settings.complain)(&format!("interpreter {script}: {failure}"));
        let mut reply = failure.reply();
        if matches!(failure, ScriptFailure::Busy(_)) {
            reply.headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        reply
    }
}

/// Runs a thread of the pool, which answers requests until the interpreter is dropped.
fn work(name: &str, source: &[u8], settings: &InterpreterSettings, queue: &Mutex<Receiver<Job>>) {
    let mut engine = None;
    loop {
        let next = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Job { ask, asker, reply }) = next else { return };
        if reply.is_closed() {
            continue;
        }
        let loaded = match engine.take() {
            Some(engine) => Ok(engine),
            None => Engine::load(name, source, settings).map_err(ScriptFailure::Script),
        };
        let answered = loaded.and_then(|loaded: Engine| {
            let answered = loaded.answer(&ask, asker);
            engine =
                Some(loaded).filter(|_| !answered.as_ref().is_err_and(ScriptFailure::taints_state));
            answered
        });
        // the requester may have disconnected
        reply.send(answered).ok();
    }
}
