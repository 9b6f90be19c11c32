//! The real world of a check: sockets, names, files.

use crate::exit::Failure;
use args::{CheckArgs, trust};
use conduit::Io;
use engine::check::CheckWorld;
use engine::exchange::{Caller, ExchangeOutcome, Outgoing};
use plan::check::CheckPlan;
use std::io::Read;
use std::path::PathBuf;
use units::Nanos;

/// Maximum size of a file that is read, in bytes.
const FILE_MAX: u64 = 256 << 20;
/// Maximum number of names that are read from a folder.
const ENTRIES_MAX: usize = 100_000;

pub(super) struct CheckedSite {
    caller: crate::caller::Caller,
    root: Option<PathBuf>,
}

impl CheckedSite {
    /// # Errors
    /// Fails for a root that is not a folder, unusable certificates, or without a descriptor left.
    pub(super) fn new(plan: &CheckPlan, args: &CheckArgs) -> Result<CheckedSite, Failure> {
        if let Some(root) = args.root.as_ref().filter(|root| !root.is_dir()) {
            let root = root.display();
            return Err(Failure::usage(format!(
                "--root {root}: not a folder, or it cannot be read"
            )));
        }
        let typed = args.tls.planned().map_err(|error| Failure::usage(error.to_string()))?;
        let settings = trust(&typed);
        let has_ca = settings.ca.is_some();
        let caller = crate::caller::Caller::new(plan.connect, settings).map_err(Failure::usage)?;
        let mut site = CheckedSite { caller, root: args.root.clone() };
        if plan.base.scheme() == "https" || has_ca {
            site.caller.ready_tls().map_err(Failure::usage)?;
        }
        Ok(site)
    }

    fn place(&self, path: &str) -> PathBuf {
        self.root.clone().unwrap_or_default().join(path)
    }
}

impl Caller for CheckedSite {
    fn exchange(&mut self, requests: Vec<Outgoing>) -> Vec<ExchangeOutcome> {
        self.caller.exchange(requests)
    }

    fn interrupted(&self) -> bool {
        self.caller.interrupted()
    }
}

impl CheckWorld for CheckedSite {
    fn now(&mut self) -> Nanos {
        self.caller.reactor.now()
    }

    fn has_files(&self) -> bool {
        self.root.is_some()
    }

    fn read_file(&mut self, path: &str) -> Result<Vec<u8>, String> {
        let fault = |error: std::io::Error| format!("{path}: {error}");
        let place = self.place(path);
        // a pipe or a device could block forever
        if !std::fs::metadata(&place).map_err(fault)?.is_file() {
            return Err(format!("{path} is not an ordinary file"));
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
        let until = self.caller.reactor.now() + span;
        while self.caller.reactor.now() < until && crate::signals::received_signal() == 0 {
            self.caller.reactor.wait(until, &mut ready);
        }
    }
}
