//! The real world of a check: sockets, names, files.

use crate::args::{CheckArgs, Disk};
use crate::exit::Failure;
use conduit::{Io, Peer, TlsFactory};
use engine::check::{CheckWorld, Outgoing};
use engine::exchange::{Exchange, Heard, Pause, Request, Trouble};
use plan::FileSource;
use plan::check::CheckPlan;
use reactor::Reactor;
use sample::FailureClass;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::PathBuf;
use units::Nanos;
use url::Url;

/// How long a signal may go unnoticed.
const SIGNAL_CHECK: Nanos = Nanos::from_millis(50);
/// Bytes of a file that are looked at.
const FILE_MAX: u64 = 256 << 20;
/// Names of a folder that are looked at.
const ENTRIES_MAX: usize = 100_000;

pub(super) struct Site {
    reactor: Reactor,
    connect: Nanos,
    /// Addresses by host and port, or why there are none.
    known: BTreeMap<(String, u16), Result<Vec<Peer>, String>>,
    settings: tls::Settings,
    tls: Option<tls::Factory>,
    root: Option<PathBuf>,
}

impl Site {
    /// # Errors
    /// A root that is no folder, certificates that cannot be used, no descriptor left.
    pub(super) fn new(plan: &CheckPlan, args: &CheckArgs) -> Result<Site, Failure> {
        if let Some(root) = args.root.as_ref().filter(|root| !root.is_dir()) {
            let root = root.display();
            return Err(Failure::usage(format!("--root {root} is no folder that can be read")));
        }
        let ca = args.ca.as_deref().map(|path| Disk.read(path)).transpose();
        let ca = ca.map_err(|why| Failure::usage(format!("--ca: {why}")))?;
        let settings = tls::Settings { insecure: args.insecure, ca, ..tls::Settings::default() };
        let reactor = Reactor::new(Nanos::ZERO)
            .map_err(|error| Failure::usage(format!("cannot wait for sockets: {error}")))?;
        let mut site = Site {
            reactor,
            connect: plan.connect,
            known: BTreeMap::new(),
            settings,
            tls: None,
            root: args.root.clone(),
        };
        if plan.base.scheme() == "https" || args.ca.is_some() {
            site.ready_tls().map_err(Failure::usage)?;
        }
        Ok(site)
    }

    /// Reading the system's certificates takes a while: only where TLS is spoken.
    fn ready_tls(&mut self) -> Result<(), String> {
        if self.tls.is_none() {
            let client = tls::Client::new(&self.settings).map_err(|error| error.to_string())?;
            self.tls = Some(client.factory());
        }
        Ok(())
    }

    fn peers(&mut self, url: &Url) -> Result<Vec<Peer>, String> {
        let host = url.host_str().unwrap_or_default().to_owned();
        let port = url.port_or_known_default().unwrap_or(80);
        let look_up = || match host::resolve(&host, port, host::Family::Any) {
            Ok((found, _)) => Ok(found.into_iter().map(Peer::Tcp).collect()),
            Err(error) => Err(error.to_string()),
        };
        self.known.entry((host.clone(), port)).or_insert_with(look_up).clone()
    }

    /// A request with its addresses.
    fn addressed(&mut self, outgoing: Outgoing) -> Result<Request, Heard> {
        let failed = |class, text| {
            let result = Err(Trouble { class, text });
            Heard { result, connected: false, took: Nanos::ZERO }
        };
        let Outgoing { url, bytes, asked, timeout } = outgoing;
        let secure = url.scheme() == "https";
        if secure {
            self.ready_tls().map_err(|why| failed(FailureClass::Tls, why))?;
        }
        let peers = self.peers(&url).map_err(|why| failed(FailureClass::Unreachable, why))?;
        let tls_name = secure.then(|| url.host_str().unwrap_or_default().to_owned());
        Ok(Request { peers, tls_name, bytes, asked, timeout })
    }

    fn talk(&mut self, requests: Vec<Request>) -> Vec<Heard> {
        let factory = self.tls.as_mut().map(|factory| factory as &mut dyn TlsFactory);
        let mut machine = Exchange::new(requests, self.connect, factory);
        let (io, mut ready) = (&mut self.reactor, Vec::new());
        while let Pause::Until(at) = machine.turn(io) {
            let nap = io.now() + SIGNAL_CHECK;
            io.wait(at.min(nap), &mut ready);
            for event in &ready {
                machine.handle(io, *event);
            }
            if crate::signals::caught() > 0 {
                machine.abandon(io);
                break;
            }
        }
        machine.finish()
    }

    fn place(&self, path: &str) -> PathBuf {
        self.root.clone().unwrap_or_default().join(path)
    }
}

impl CheckWorld for Site {
    fn now(&mut self) -> Nanos {
        self.reactor.now()
    }

    fn exchange(&mut self, requests: Vec<Outgoing>) -> Vec<Heard> {
        let addressed: Vec<Result<Request, Heard>> =
            requests.into_iter().map(|outgoing| self.addressed(outgoing)).collect();
        let ready = addressed.iter().flatten().cloned().collect();
        let mut heard = self.talk(ready).into_iter();
        let place = |addressed: Result<Request, Heard>| match addressed {
            Ok(_) => heard.next(),
            Err(known) => Some(known),
        };
        addressed.into_iter().filter_map(place).collect()
    }

    fn has_files(&self) -> bool {
        self.root.is_some()
    }

    fn read_file(&mut self, path: &str) -> Result<Vec<u8>, String> {
        let fault = |error: std::io::Error| format!("{path}: {error}");
        let place = self.place(path);
        // a pipe or a device could keep us waiting for ever
        if !std::fs::metadata(&place).map_err(fault)?.is_file() {
            return Err(format!("{path} is no ordinary file"));
        }
        let mut bytes = Vec::new();
        let file = std::fs::File::open(&place).map_err(fault)?;
        file.take(FILE_MAX + 1).read_to_end(&mut bytes).map_err(fault)?;
        if bytes.len() as u64 > FILE_MAX {
            return Err(format!("{path} is longer than 256 MiB"));
        }
        Ok(bytes)
    }

    fn list_folder(&mut self, path: &str) -> Result<Vec<String>, String> {
        let fault = |error: std::io::Error| format!("{path}: {error}");
        let mut names = Vec::new();
        for entry in std::fs::read_dir(self.place(path)).map_err(fault)? {
            if names.len() == ENTRIES_MAX {
                return Err(format!("{path} has more than {ENTRIES_MAX} entries"));
            }
            names.push(entry.map_err(fault)?.file_name().to_string_lossy().into_owned());
        }
        names.sort();
        Ok(names)
    }

    fn pause(&mut self, span: Nanos) {
        let mut ready = Vec::new();
        let until = self.reactor.now() + span;
        while self.reactor.now() < until && crate::signals::caught() == 0 {
            self.reactor.wait(until, &mut ready);
        }
    }

    fn interrupted(&self) -> bool {
        crate::signals::caught() > 0
    }
}
