//! External reasons to stop a run: a signal, the exit of the parent process, an unwritable audit
//! log, a withdrawn proof. Queried often, and therefore cheap.

use crate::audit::Audit;
use crate::sources::Internet;
use dialogue::governor::Stop;
use session::signals;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use torture::safety::permit::ProofMonitor;
use torture::safety::proof::{Claim, FoundProof};

/// Interval of checking the clock; the proof is checked every minute.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// Checks the proof on a separate thread, because a check may take seconds.
#[derive(Debug)]
pub struct ProofWatch {
    found: Arc<Mutex<Option<Stop>>>,
    /// Ends the thread when dropped.
    _over: Sender<()>,
}

impl ProofWatch {
    /// Starts the thread that reads the sources.
    /// `sources` are created on the thread that uses them.
    ///
    /// # Errors
    /// Fails if no thread is available.
    pub fn start(
        sources: impl FnOnce() -> Result<Internet, String> + Send + 'static,
        claim: Claim,
        proof: FoundProof,
    ) -> std::io::Result<ProofWatch> {
        let found = Arc::new(Mutex::new(None));
        let (tell, (over, is_over)) = (Arc::clone(&found), channel());
        let body = move || {
            if let Some(stop) = watch(sources, claim, proof, &is_over) {
                *tell.lock().unwrap_or_else(PoisonError::into_inner) = Some(stop);
            }
        };
        std::thread::Builder::new().name("proof".into()).spawn(body)?;
        Ok(ProofWatch { found, _over: over })
    }

    fn stop(&self) -> Option<Stop> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Checks until there is a reason to stop, or the receiver is dropped.
fn watch(
    sources: impl FnOnce() -> Result<Internet, String>,
    claim: Claim,
    proof: FoundProof,
    is_over: &Receiver<()>,
) -> Option<Stop> {
    let mut sources = match sources() {
        Ok(sources) => sources,
        Err(why) => return Some(Stop::Permission(format!("the proof is invalid: {why}"))),
    };
    let mut vigil = ProofMonitor::new(sources.now(), claim, proof);
    while is_over.recv_timeout(CHECK_INTERVAL) == Err(RecvTimeoutError::Timeout) {
        let now = sources.now();
        let stop = vigil.look(now, &mut sources);
        if stop.is_some() {
            return stop;
        }
    }
    None
}

/// Queries all external reasons in this order.
pub fn signs(
    audit: Option<Rc<RefCell<Audit>>>,
    watch: Option<ProofWatch>,
) -> Box<dyn FnMut() -> Option<Stop>> {
    let parent = rustix::process::getppid();
    Box::new(move || {
        if signals::received_signal() > 0 {
            return Some(Stop::Interrupted);
        }
        if rustix::process::getppid() != parent {
            let why = "the parent process has exited".to_owned();
            return Some(Stop::Permission(why));
        }
        let trouble = audit.as_ref().and_then(|audit| {
            // not queried while a line is being written
            audit.try_borrow().ok()?.trouble().map(str::to_owned)
        });
        if let Some(why) = trouble {
            return Some(Stop::Permission(format!("the audit log cannot be written: {why}")));
        }
        watch.as_ref().and_then(ProofWatch::stop)
    })
}
