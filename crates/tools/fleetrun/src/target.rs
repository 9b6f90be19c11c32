//! The watch of a fleet's target: reads the counters of the target on its own machine while a fleet loads
//! it, and sends them to the fleet's run, like `--sut` on a single machine.

use crate::usage;
use fleet::protocol::PROTOCOL;
use fleet::protocol::message::{self, FromWatch, WatchHello};
use fleet::protocol::stamp::Stamped;
use fleet::protocol::watch::{FleetWatch, WatchAction};
use fleet::{Credentials, Incoming, NatsEndpoint, NatsLink, Role, SealKey, Subjects};
use host::sut::SutReading;
use sample::SutSeries;
use session::console::print_message;
use session::exit::{Code, Failure};
use session::signals;
use session::sut::{SutSource, SutTarget};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;
use units::Nanos;
use url::Url;

/// Maximum wait of the machine between calls.
const TURN: Nanos = Nanos::from_millis(20);

/// Source of a watch's readings, and the fleet that receives them. One of `pid`, `listen` and
/// `exporter` is present.
#[derive(Debug)]
pub struct WatchTask {
    pub endpoint: NatsEndpoint,
    /// File with the watch's credentials.
    pub creds: PathBuf,
    /// Longest wait for the server.
    pub wait: Nanos,
    pub pid: Option<u32>,
    /// Address that the target listens on.
    pub listen: Option<SocketAddr>,
    /// URL of a node exporter.
    pub exporter: Option<Url>,
}

/// Runs until the fleet is disbanded, or until it can no longer read.
///
/// # Errors
/// Fails without valid credentials, a server, or a target that can be read.
pub fn watch(task: &WatchTask) -> Result<Code, Failure> {
    let credentials = Credentials::read(&task.creds).map_err(usage)?;
    if credentials.role != Role::Watch {
        return Err(Failure::usage(format!(
            "{} is not for a watch: use watch.creds, as `fleet creds` makes it",
            task.creds.display()
        )));
    }
    let (target, addresses) = requested_target(task)?;
    let (source, series) = SutSource::open(&target, &addresses).map_err(Failure::usage)?;
    let (subjects, id) = (Subjects::new(&credentials.fleet), credentials.id());
    let (_, listen) = subjects.permitted(Role::Watch, &id);
    let patience = Duration::from_secs_f64(task.wait.as_secs_f64());
    let link = NatsLink::connect(&task.endpoint, &credentials, listen, patience).map_err(usage)?;
    let key = SealKey::generate().map_err(usage)?;
    let hello = WatchHello { session: crate::agent::session(&key), ..hello(&series) };
    let machine = FleetWatch::new(hello, net::reactor::monotonic());
    WatchPost { machine, link, subjects, id, source, following: None }.run()
}

/// Returns the target of the options, with its listening address.
fn requested_target(task: &WatchTask) -> Result<(SutTarget, Vec<SocketAddr>), Failure> {
    let addresses: Vec<SocketAddr> = task.listen.into_iter().collect();
    if let Some(url) = &task.exporter {
        return Ok((SutTarget::Exporter(url.clone()), addresses));
    }
    let listener = || task.listen.and_then(host::listener_pid);
    match task.pid.or_else(listener) {
        Some(pid) => Ok((SutTarget::Process(pid), addresses)),
        None => Err(Failure::usage(format!(
            "no visible process on this machine listens on {}: name it with --pid (only root sees \
             those of other users)",
            task.listen.map_or_else(String::new, |address| address.to_string())
        ))),
    }
}

fn hello(series: &SutSeries) -> WatchHello {
    WatchHello {
        protocol: PROTOCOL,
        host: host::environment().host,
        name: series.name.clone(),
        cores: series.cores,
        memory_max: series.memory_max,
        descriptors_max: series.descriptors_max,
        accept_queue_max: series.accept_queue_max,
        ..WatchHello::default()
    }
}

/// Watched step: start of its measured phase by our clock, and the last reading.
struct Following {
    from: Nanos,
    next: Nanos,
    before: (Nanos, SutReading),
}

struct WatchPost {
    machine: FleetWatch,
    link: NatsLink,
    subjects: Subjects,
    id: String,
    source: SutSource,
    following: Option<Following>,
}

impl WatchPost {
    fn run(&mut self) -> Result<Code, Failure> {
        loop {
            let now = net::reactor::monotonic();
            let due = self.following.as_ref().map_or(TURN, |step| step.next - now);
            match self.link.inbox.recv_timeout(Duration::from_nanos(due.min(TURN).0)) {
                Ok(Incoming::Message { subject, bytes, at }) => self.message(&subject, &bytes, at),
                Ok(Incoming::Refused(why)) => print_message(&format!("the server refuses: {why}")),
                Ok(_) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Failure::usage("the network's thread ended; this is a bug"));
                }
            }
            self.machine.tick(net::reactor::monotonic());
            let trouble = self.read_when_due();
            if let Err(why) = &trouble {
                self.machine.trouble(why.clone());
            }
            while let Some(action) = self.machine.next_action() {
                if let Some(code) = self.act(action) {
                    return Ok(code);
                }
            }
            trouble.map_err(Failure::usage)?;
            if signals::received_signal() > 0 {
                return Ok(Code::Interrupted);
            }
        }
    }

    fn message(&mut self, subject: &str, bytes: &[u8], at: Nanos) {
        let handled = if subject == self.subjects.command() {
            message::read(bytes).map(|command| self.machine.commanded(&command, at))
        } else {
            message::read(bytes).map(|content| self.machine.receive(content, at))
        };
        if let Err(why) = handled {
            print_message(&why);
        }
    }

    fn act(&mut self, action: WatchAction) -> Option<Code> {
        match action {
            WatchAction::Say(content) => self.send(&content),
            WatchAction::Follow { from, .. } => match self.source.read() {
                Ok(reading) => {
                    let now = net::reactor::monotonic();
                    let next = edge_after(from, now);
                    self.following = Some(Following { from, next, before: (now, reading) });
                }
                Err(why) => self.machine.trouble(why),
            },
            WatchAction::Rest => self.following = None,
            WatchAction::Exit { done, why } => {
                print_message(&why);
                return Some(if done { Code::Done } else { Code::Missed });
            }
        }
        None
    }

    fn send(&self, content: &Stamped<FromWatch>) {
        self.link.sender().send(self.subjects.target(&self.id), message::write(content));
    }

    /// Reads a row at each whole second of the measured phase.
    fn read_when_due(&mut self) -> Result<(), String> {
        let Some(step) = &mut self.following else { return Ok(()) };
        if net::reactor::monotonic() < step.next {
            return Ok(());
        }
        let reading = self.source.read()?;
        let now = net::reactor::monotonic();
        let (then, before) = &step.before;
        let at_s = now.as_secs_f64() - step.from.as_secs_f64();
        let row = host::sut::row(before, &reading, (now - *then).as_secs_f64(), at_s);
        step.before = (now, reading);
        step.next = edge_after(step.from, now);
        self.machine.row(row);
        Ok(())
    }
}

/// Returns the first instant after `now` that is a whole number of seconds before or after `from`.
fn edge_after(from: Nanos, now: Nanos) -> Nanos {
    let second = Nanos::SECOND.0;
    let phase = from.0 % second;
    let whole = (now.0 + second - phase) / second;
    Nanos(whole * second + phase)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_are_whole_seconds_around_the_start_of_the_measurement() {
        let from = Nanos::from_millis(10_250);
        let edge = |now_ms| edge_after(from, Nanos::from_millis(now_ms)).0 / 1_000_000;
        assert_eq!(edge(8_000), 8_250);
        assert_eq!(edge(8_250), 9_250);
        assert_eq!(edge(10_249), 10_250);
        assert_eq!(edge(12_900), 13_250);
    }
}
