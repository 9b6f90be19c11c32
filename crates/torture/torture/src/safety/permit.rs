//! Decides whether a run may start, which cases may run, and whether it may continue.

use super::proof::{self, Behind, CaseGroup, Claim, FoundProof, RECHECK, Sources};
use super::{Class, Proof, Ranges};
use crate::case::{Case, Need, PACKETS};
use dialogue::governor::Stop;
use std::net::IpAddr;
use units::Nanos;

/// A log that is written before anything is sent. On return the data is on disk.
pub trait RunLog {
    /// # Errors
    /// Fails if writing failed.
    fn write_start(&mut self) -> Result<(), String>;

    /// # Errors
    /// Fails if writing failed.
    fn proved(&mut self, found: &FoundProof) -> Result<(), String>;

    /// # Errors
    /// Fails if writing failed.
    fn refused(&mut self, why: &str) -> Result<(), String>;
}

/// Reason why a run may not start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PermitRefusal {
    /// The log could not be written.
    Unwritten(String),
    /// There is no permission.
    NotPermitted(String),
}

/// Logs the start, then finds the proof that public targets need: the order of events before the
/// first packet.
///
/// # Errors
/// Fails for a failed write, or with the reason why the run is not permitted.
pub fn permit(
    class: Class,
    claim: &Claim,
    ledger: &mut dyn RunLog,
    sources: &mut dyn Sources,
) -> Result<Option<FoundProof>, PermitRefusal> {
    ledger.write_start().map_err(PermitRefusal::Unwritten)?;
    match class {
        Class::Local | Class::Private => Ok(None),
        Class::Never => {
            let why = "this is a reserved address (metadata, multicast or unspecified)".to_owned();
            ledger.refused(&why).map_err(PermitRefusal::Unwritten)?;
            Err(PermitRefusal::NotPermitted(why))
        }
        Class::Public => match proof::find(claim, sources) {
            Ok(found) => {
                ledger.proved(&found).map_err(PermitRefusal::Unwritten)?;
                Ok(Some(found))
            }
            Err(why) => {
                ledger.refused(&why).map_err(PermitRefusal::Unwritten)?;
                Err(PermitRefusal::NotPermitted(why))
            }
        },
    }
}

/// Permissions for cases, in addition to the class of the target.
#[derive(Clone, Copy, Debug)]
pub struct Grounds<'a> {
    pub class: Class,
    /// Addresses of the target's name, and the addresses that the user owns.
    pub addresses: &'a [IpAddr],
    pub own: &'a [IpAddr],
    pub proof: Option<&'a Proof>,
    /// Machines of third parties, by their addresses.
    pub ranges: &'a Ranges,
}

/// Groups allowed for private addresses.
const FREE: [CaseGroup; 3] = [CaseGroup::Fuzz, CaseGroup::Syntax, CaseGroup::Limits];
/// Cases for servers on this machine only, because they run commands or have no time limit; and
/// those never allowed on public servers.
const LOCAL_ONLY: [&str; 3] = ["R-04", "R-06", "R-07"];
const NEVER_PUBLIC: [&str; 2] = ["R-02", "R-03"];
/// Methods that change data on a server.
const WRITING: [&str; 3] = ["PUT", "DELETE", "PATCH"];

impl Grounds<'_> {
    /// Returns whether PUT, DELETE and PATCH may be sent.
    pub fn permits_writes(&self) -> bool {
        match self.class {
            Class::Local => true,
            Class::Private | Class::Never => false,
            Class::Public => self.proof.is_some_and(|proof| proof.permits(CaseGroup::Write)),
        }
    }

    /// Checks whether a case may run.
    ///
    /// # Errors
    /// Fails with the reason and the fix.
    pub fn permits(&self, case: &Case) -> Result<(), String> {
        let group = CaseGroup::by_letter(case.group())
            .ok_or_else(|| format!("no permission covers group {}", case.group()))?;
        let mut methods = case.exchanges.iter().flat_map(|exchange| &exchange.methods);
        let writes = methods.any(|method| WRITING.contains(&method.as_str()));
        match self.class {
            Class::Local => Ok(()),
            Class::Never => {
                Err("this is a reserved address (metadata, multicast or unspecified)".to_owned())
            }
            _ if case.group() == PACKETS || case.all_needs().any(|need| need == Need::Device) => {
                Err("it uses a network device of this machine and reaches servers on this \
                    machine only"
                    .to_owned())
            }
            _ if LOCAL_ONLY.contains(&case.id.as_str()) => {
                Err("it is for servers on this machine only".to_owned())
            }
            Class::Public if NEVER_PUBLIC.contains(&case.id.as_str()) => {
                Err("it is not for public servers".to_owned())
            }
            _ if writes && !self.permits_writes() => {
                Err("it asks the server to change data, which is for local targets only, unless \
                    the proof allows it (groups: write)"
                    .to_owned())
            }
            Class::Private if FREE.contains(&group) => Ok(()),
            Class::Private if self.provider().is_some() => {
                let provider = self.provider().unwrap_or_default();
                Err(format!("its address belongs to {provider} according to the given ranges"))
            }
            Class::Private => match self.addresses.iter().find(|one| !self.own.contains(one)) {
                None => Ok(()),
                Some(other) => Err(format!(
                    "a private address may belong to another party; confirm with --own {other}"
                )),
            },
            Class::Public => self.proven(group),
        }
    }

    /// Returns the owner of the target's address, according to the ranges.
    pub fn provider(&self) -> Option<&str> {
        self.addresses.iter().find_map(|address| self.ranges.provider(*address))
    }

    /// Returns whether effective stress may be repeated: on public servers only if the user
    /// confirms.
    pub fn permits_repeats(&self, confirmed: bool) -> bool {
        self.class != Class::Public || confirmed
    }

    /// Returns whether a case may run only if no third-party machines are in front.
    pub fn needs_direct_server(&self, case: &Case) -> bool {
        let behind_none = self.proof.is_some_and(|proof| proof.behind == Behind::None);
        let free = CaseGroup::by_letter(case.group()).is_some_and(|group| FREE.contains(&group));
        self.class == Class::Public && behind_none && !free
    }

    fn proven(&self, group: CaseGroup) -> Result<(), String> {
        let proof = self.proof.ok_or("there is no permission for it")?;
        if !proof.permits(group) {
            return Err(format!("the proof does not name group {}", group.id()));
        }
        if FREE.contains(&group) {
            return Ok(());
        }
        let named = match &proof.behind {
            Behind::None => None,
            Behind::Provider { name, .. } => Some(name.as_str()),
        };
        match (self.provider(), named) {
            (Some(provider), None) => {
                return Err(format!(
                    "its address belongs to {provider} according to the given ranges, but the \
                    proof says \"behind: none\""
                ));
            }
            (Some(provider), Some(named)) if !provider.eq_ignore_ascii_case(named) => {
                return Err(format!(
                    "its address belongs to {provider} according to the given ranges, but the \
                    proof names {named}"
                ));
            }
            _ => {}
        }
        match proof.party_without_permission() {
            Some(provider) => Err(format!(
                "the machines in front belong to {provider}, whose permission the proof does not \
                name"
            )),
            None => Ok(()),
        }
    }
}

/// Rechecks a proof periodically during a run.
#[derive(Clone, Debug)]
pub struct ProofMonitor {
    claim: Claim,
    found: FoundProof,
    due: Nanos,
}

impl ProofMonitor {
    pub fn new(now: Nanos, claim: Claim, found: FoundProof) -> ProofMonitor {
        ProofMonitor { claim, found, due: now + RECHECK }
    }

    /// Returns why the run must stop: at any call because of the time, or every [`RECHECK`] because
    /// the proof was removed or changed.
    pub fn look(&mut self, now: Nanos, sources: &mut dyn Sources) -> Option<Stop> {
        let mut checked = self.found.proof.check(&self.claim, sources.unix_seconds());
        if checked.is_ok() && now >= self.due {
            self.due = now + RECHECK;
            checked = proof::verify_published(&self.claim, &self.found, sources);
        }
        let why = checked.err()?;
        Some(Stop::Permission(format!("the permission was withdrawn: {why}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue;
    use std::cell::RefCell;
    use std::net::SocketAddr;

    /// Records events in order, and may refuse to.
    struct Scene<'a> {
        happened: &'a RefCell<Vec<String>>,
        full: bool,
    }

    impl Scene<'_> {
        fn note(&self, what: &str) -> Result<(), String> {
            if self.full {
                return Err("disk full".into());
            }
            self.happened.borrow_mut().push(what.to_owned());
            Ok(())
        }
    }

    impl RunLog for Scene<'_> {
        fn write_start(&mut self) -> Result<(), String> {
            self.note("begun written")
        }
        fn proved(&mut self, _: &FoundProof) -> Result<(), String> {
            self.note("proof written")
        }
        fn refused(&mut self, _: &str) -> Result<(), String> {
            self.note("refusal written")
        }
    }

    struct Net<'a> {
        happened: &'a RefCell<Vec<String>>,
        text: Option<String>,
    }

    impl Sources for Net<'_> {
        fn unix_seconds(&mut self) -> i64 {
            1_796_086_800
        }
        fn file(&mut self, address: SocketAddr) -> Result<Vec<u8>, String> {
            self.happened.borrow_mut().push(format!("packet to {address}"));
            self.text.clone().map(String::into_bytes).ok_or_else(|| "404".into())
        }
        fn txt(&mut self, name: &str) -> Result<Vec<Vec<u8>>, String> {
            self.happened.borrow_mut().push(format!("question about {name}"));
            Ok(Vec::new())
        }
    }

    fn claim() -> Claim {
        Claim {
            tester: "0".repeat(64),
            host: "example.org:80".into(),
            addresses: vec!["203.0.113.1:80".parse().unwrap()],
        }
    }

    fn text(groups: &str, behind: &str) -> String {
        format!(
            "loadstone-torture/1\ntester: {}\nhost: example.org:80\ngroups: {groups}\n\
             max-connections: 9\nmax-new-connections-per-second: 2\nmax-bytes-per-second: 64KiB\n\
             window: any\nnot-after: 2026-12-09\ncontact: ops\nbehind: {behind}\n",
            "0".repeat(64)
        )
    }

    fn happened(class: Class, full: bool, text: Option<String>) -> (Vec<String>, bool) {
        let happened = RefCell::default();
        let mut ledger = Scene { happened: &happened, full };
        let mut net = Net { happened: &happened, text };
        let permitted = permit(class, &claim(), &mut ledger, &mut net).is_ok();
        (happened.into_inner(), permitted)
    }

    #[test]
    fn the_start_is_logged_before_anything_is_sent() {
        let file = Some(text("fuzz", "none"));
        let (steps, permitted) = happened(Class::Public, false, file.clone());
        assert_eq!(steps, ["begun written", "packet to 203.0.113.1:80", "proof written"]);
        assert!(permitted);
        let (steps, permitted) = happened(Class::Public, false, None);
        let question = "question about _loadstone-torture.example.org";
        let sent = "packet to 203.0.113.1:80";
        assert_eq!(steps, ["begun written", sent, question, "refusal written"]);
        assert!(!permitted);
        for class in [Class::Local, Class::Private, Class::Public, Class::Never] {
            assert_eq!(happened(class, true, file.clone()), (vec![], false), "{class:?}");
        }
        assert_eq!(happened(Class::Local, false, None), (vec!["begun written".into()], true));
        assert!(!happened(Class::Never, false, file).1);
    }

    fn permitted(grounds: &Grounds<'_>) -> String {
        let mut letters = String::new();
        for letter in ['F', 'S', 'L', 'W', 'C', 'T', 'R'] {
            let mut case = catalogue::cases().unwrap().remove(0);
            case.id = format!("{letter}-01");
            letters.extend(grounds.permits(&case).is_ok().then_some(letter));
        }
        letters
    }

    #[test]
    fn permitted_groups_depend_on_the_target_class() {
        let addresses: Vec<IpAddr> = vec!["10.0.0.5".parse().unwrap()];
        let none = Ranges::default();
        let given = Ranges::parse("10.0.0.0/24 Someone").unwrap();
        let with = |class, own: &[IpAddr], proof: Option<&Proof>, ranges: &Ranges| {
            permitted(&Grounds { class, addresses: &addresses, own, proof, ranges })
        };
        let of = |class, own: &[IpAddr], proof: Option<&Proof>| with(class, own, proof, &none);
        assert_eq!(of(Class::Local, &[], None), "FSLWCTR");
        assert_eq!(of(Class::Private, &[], None), "FSL");
        assert_eq!(of(Class::Private, &["10.0.0.6".parse().unwrap()], None), "FSL");
        assert_eq!(of(Class::Private, &addresses, None), "FSLWCTR");
        assert_eq!(of(Class::Public, &addresses, None), "");
        let proof = |groups, behind| Proof::parse(text(groups, behind).as_bytes()).unwrap();
        assert_eq!(of(Class::Public, &[], Some(&proof("fuzz slow", "none"))), "FW");
        let all = "fuzz syntax limits slow connections tls overload";
        assert_eq!(of(Class::Public, &[], Some(&proof(all, "none"))), "FSLWCTR");
        assert_eq!(of(Class::Public, &[], Some(&proof(all, "Someone"))), "FSL");
        assert_eq!(of(Class::Public, &[], Some(&proof(all, "Someone, permission 7"))), "FSLWCTR");
        assert_eq!(of(Class::Never, &addresses, Some(&proof(all, "none"))), "");
        // a provider's address according to the user's list
        assert_eq!(with(Class::Local, &[], None, &given), "FSLWCTR");
        assert_eq!(with(Class::Private, &addresses, None, &given), "FSL");
        for (behind, letters) in [
            ("none", "FSL"),
            ("Someone", "FSL"),
            ("Another, permission 7", "FSL"),
            ("someone, permission 7", "FSLWCTR"),
        ] {
            let proof = proof(all, behind);
            assert_eq!(with(Class::Public, &[], Some(&proof), &given), letters, "{behind}");
        }
    }

    #[test]
    fn effects_on_public_servers_are_repeated_on_request_only() {
        for (class, confirmed, repeats) in [
            (Class::Local, false, true),
            (Class::Private, false, true),
            (Class::Public, false, false),
            (Class::Public, true, true),
        ] {
            let ranges = &Ranges::default();
            let grounds = Grounds { class, addresses: &[], own: &[], proof: None, ranges };
            assert_eq!(grounds.permits_repeats(confirmed), repeats, "{class:?} {confirmed}");
        }
    }

    #[test]
    fn overload_needs_ownership_of_the_server() {
        let addresses: Vec<IpAddr> = vec!["10.0.0.5".parse().unwrap()];
        let proof = |groups| Proof::parse(text(groups, "none").as_bytes()).unwrap();
        let of = |class, own: &[IpAddr], proof: Option<&Proof>| {
            let ranges = &Ranges::default();
            let grounds = Grounds { class, addresses: &addresses, own, proof, ranges };
            let cases = catalogue::cases().unwrap();
            let own = cases.iter().filter(|case| case.group() == 'R');
            let free = own.filter(|case| grounds.permits(case).is_ok());
            free.map(|case| case.id.as_str()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(of(Class::Local, &[], None), "R-01 R-02 R-03 R-04 R-05 R-06 R-07");
        assert_eq!(of(Class::Private, &[], None), "");
        assert_eq!(of(Class::Private, &addresses, None), "R-01 R-02 R-03 R-05");
        assert_eq!(of(Class::Public, &[], Some(&proof("overload"))), "R-01 R-05");
        assert_eq!(of(Class::Public, &[], Some(&proof("fuzz slow connections"))), "");
    }

    #[test]
    fn writing_methods_need_more_permission() {
        let mut case = catalogue::cases().unwrap().into_iter().find(|case| case.group() == 'S');
        let case = case.as_mut().unwrap();
        case.exchanges[0].methods = vec!["PUT".into()];
        let of = |class, proof: Option<&Proof>| {
            Grounds { class, addresses: &[], own: &[], proof, ranges: &Ranges::default() }
                .permits(case)
                .is_ok()
        };
        let proof = |groups| Proof::parse(text(groups, "none").as_bytes()).unwrap();
        assert!(of(Class::Local, None));
        assert!(!of(Class::Private, None));
        assert!(!of(Class::Public, Some(&proof("fuzz syntax"))));
        assert!(of(Class::Public, Some(&proof("fuzz syntax write"))));
    }
}
