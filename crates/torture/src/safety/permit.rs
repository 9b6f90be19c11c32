//! Whether a run may begin, which of its cases may be had, and whether it may go on.

use super::proof::{self, Behind, CaseGroup, Claim, FoundProof, RECHECK, Sources};
use super::{Class, Proof, Ranges};
use crate::case::{Case, Need, PACKETS};
use dialogue::governor::Stop;
use std::net::IpAddr;
use units::Nanos;

/// Where it is written down before anything is sent. What was written is on disk on return.
pub trait Ledger {
    /// # Errors
    /// It could not be written.
    fn begun(&mut self) -> Result<(), String>;

    /// # Errors
    /// It could not be written.
    fn proved(&mut self, found: &FoundProof) -> Result<(), String>;

    /// # Errors
    /// It could not be written.
    fn refused(&mut self, why: &str) -> Result<(), String>;
}

/// Why a run may not begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PermitRefusal {
    /// It could not be written down.
    Unwritten(String),
    /// Nothing permits it.
    NotPermitted(String),
}

/// Writes the beginning down, then looks for the proof that public targets need: the order of what
/// happens before the first packet.
///
/// # Errors
/// What could not be written, or why nothing permits the run.
pub fn permit(
    class: Class,
    claim: &Claim,
    ledger: &mut dyn Ledger,
    sources: &mut dyn Sources,
) -> Result<Option<FoundProof>, PermitRefusal> {
    ledger.begun().map_err(PermitRefusal::Unwritten)?;
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

/// What permits cases, beside the class of the target.
#[derive(Clone, Copy, Debug)]
pub struct Grounds<'a> {
    pub class: Class,
    /// Where the target's name leads to, and the addresses that the user calls his own.
    pub addresses: &'a [IpAddr],
    pub own: &'a [IpAddr],
    pub proof: Option<&'a Proof>,
    /// Machines of others, by their addresses.
    pub ranges: &'a Ranges,
}

/// Groups that private addresses are free for.
const FREE: [CaseGroup; 3] = [CaseGroup::Fuzz, CaseGroup::Syntax, CaseGroup::Limits];
/// Cases that are for servers on this machine: they run commands, or go on for as long as is wished;
/// and those that are not for public servers, whatever their owners say.
const LOCAL_ONLY: [&str; 3] = ["R-04", "R-06", "R-07"];
const NEVER_PUBLIC: [&str; 2] = ["R-02", "R-03"];
/// Methods that change what a server keeps.
const WRITING: [&str; 3] = ["PUT", "DELETE", "PATCH"];

impl Grounds<'_> {
    /// PUT, DELETE and PATCH may be sent.
    pub fn permits_writes(&self) -> bool {
        match self.class {
            Class::Local => true,
            Class::Private | Class::Never => false,
            Class::Public => self.proof.is_some_and(|proof| proof.permits(CaseGroup::Write)),
        }
    }

    /// Whether a case may be had.
    ///
    /// # Errors
    /// Why not, and the way out.
    pub fn permits(&self, case: &Case) -> Result<(), String> {
        let group = CaseGroup::of_letter(case.group())
            .ok_or_else(|| format!("no permission covers the group {}", case.group()))?;
        let mut methods = case.exchanges.iter().flat_map(|exchange| &exchange.methods);
        let writes = methods.any(|method| WRITING.contains(&method.as_str()));
        match self.class {
            Class::Local => Ok(()),
            Class::Never => {
                Err("this is a reserved address (metadata, multicast or unspecified)".to_owned())
            }
            _ if case.group() == PACKETS || case.needs.contains(&Need::Device) => {
                Err("it goes over a network device of ours, to servers on this machine".to_owned())
            }
            _ if LOCAL_ONLY.contains(&case.id.as_str()) => {
                Err("it is for servers on this machine".to_owned())
            }
            Class::Public if NEVER_PUBLIC.contains(&case.id.as_str()) => {
                Err("it is not for public servers".to_owned())
            }
            _ if writes && !self.permits_writes() => {
                Err("it asks the server to change what it keeps, which is for local targets, or \
                     where the proof says so (groups: write)"
                    .to_owned())
            }
            Class::Private if FREE.contains(&group) => Ok(()),
            Class::Private if self.provider().is_some() => {
                let provider = self.provider().unwrap_or_default();
                Err(format!("its address is {provider}'s by the ranges that were given"))
            }
            Class::Private => match self.addresses.iter().find(|one| !self.own.contains(one)) {
                None => Ok(()),
                Some(other) => Err(format!(
                    "a private address is not always one's own: say so with --own {other}"
                )),
            },
            Class::Public => self.proven(group),
        }
    }

    /// Whose machine the target's address is, as far as ranges tell.
    pub fn provider(&self) -> Option<&str> {
        self.addresses.iter().find_map(|address| self.ranges.provider(*address))
    }

    /// Whether pressure that had an effect may be tried once more: on public servers, only where the
    /// user says so.
    pub fn permits_repeats(&self, confirmed: bool) -> bool {
        self.class != Class::Public || confirmed
    }

    /// Whether a case may be had only where nobody else's machines stand in front.
    pub fn needs_bare_server(&self, case: &Case) -> bool {
        let behind_none = self.proof.is_some_and(|proof| proof.behind == Behind::None);
        let free = CaseGroup::of_letter(case.group()).is_some_and(|group| FREE.contains(&group));
        self.class == Class::Public && behind_none && !free
    }

    fn proven(&self, group: CaseGroup) -> Result<(), String> {
        let proof = self.proof.ok_or("nothing permits it")?;
        if !proof.permits(group) {
            return Err(format!("the proof does not name the group {}", group.id()));
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
                    "its address is {provider}'s by the ranges that were given, and the proof says \
                     \"behind: none\""
                ));
            }
            (Some(provider), Some(named)) if !provider.eq_ignore_ascii_case(named) => {
                return Err(format!(
                    "its address is {provider}'s by the ranges that were given, and the proof names \
                     {named}"
                ));
            }
            _ => {}
        }
        match proof.lacks_permission_of() {
            Some(provider) => Err(format!(
                "the machines in front are {provider}'s, whose permission the proof does not name"
            )),
            None => Ok(()),
        }
    }
}

/// Looks at a proof again and again while a run goes on.
#[derive(Clone, Debug)]
pub struct Vigil {
    claim: Claim,
    found: FoundProof,
    due: Nanos,
}

impl Vigil {
    pub fn new(now: Nanos, claim: Claim, found: FoundProof) -> Vigil {
        Vigil { claim, found, due: now + RECHECK }
    }

    /// Whether the run has to stop: because the clock says so, at any call; because the proof is
    /// gone or changed, every [`RECHECK`].
    pub fn look(&mut self, now: Nanos, sources: &mut dyn Sources) -> Option<Stop> {
        let mut checked = self.found.proof.check(&self.claim, sources.unix_seconds());
        if checked.is_ok() && now >= self.due {
            self.due = now + RECHECK;
            checked = proof::still_there(&self.claim, &self.found, sources);
        }
        let why = checked.err()?;
        Some(Stop::Permission(format!("the permission is gone: {why}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue;
    use std::cell::RefCell;
    use std::net::SocketAddr;

    /// Writes down what happens, in order, and may refuse to.
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

    impl Ledger for Scene<'_> {
        fn begun(&mut self) -> Result<(), String> {
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
    fn nothing_is_sent_before_the_beginning_is_written_down() {
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
    fn what_may_be_had_where() {
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
        // a provider's address, as the user's list has it
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
    fn what_affected_a_public_server_is_repeated_on_demand_only() {
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
    fn overload_is_for_those_who_own_the_server() {
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
    fn what_writes_needs_more() {
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
