//! Where a proof is looked for, and whether it is still there.

use super::{PROOF_MAX, Proof};
pub use crate::record::digest;
use std::net::SocketAddr;
use units::Nanos;

/// Where the file stands.
pub const FILE_PATH: &str = "/.well-known/loadstone-torture.txt";
/// How often a proof is looked at again while a run goes on.
pub const RECHECK: Nanos = Nanos::from_secs(60);

/// The name of the TXT record of a host.
pub fn txt_name(host: &str) -> String {
    format!("_loadstone-torture.{host}")
}

/// Who wants to test what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Fingerprint of the tester's key.
    pub tester: String,
    /// `host:port`, lower case.
    pub host: String,
    /// Where the name leads to: each of them has to show the file.
    pub addresses: Vec<SocketAddr>,
}

impl Claim {
    /// The host without its port; `None` where it is an address, which has no TXT records.
    fn name(&self) -> Option<&str> {
        let (name, _) = self.host.rsplit_once(':')?;
        let address = name.starts_with('[') || name.parse::<std::net::Ipv4Addr>().is_ok();
        (!address).then_some(name)
    }
}

/// The world as far as proofs go: clock, fetch and name service are handed in.
pub trait Sources {
    /// Seconds since 1970-01-01 UTC.
    fn unix_seconds(&mut self) -> i64;

    /// The body of a 200 for [`FILE_PATH`] at this address; no redirect is followed. At most
    /// [`PROOF_MAX`] + 1 bytes of it need be given.
    ///
    /// # Errors
    /// What came instead.
    fn file(&mut self, address: SocketAddr) -> Result<Vec<u8>, String>;

    /// The TXT records of a name, the strings of each put together.
    ///
    /// # Errors
    /// What came instead.
    fn txt(&mut self, name: &str) -> Result<Vec<Vec<u8>>, String>;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProofPlace {
    File,
    Txt,
}

impl ProofPlace {
    pub fn id(self) -> &'static str {
        match self {
            ProofPlace::File => "file",
            ProofPlace::Txt => "txt",
        }
    }
}

/// A proof that holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundProof {
    pub proof: Proof,
    pub place: ProofPlace,
    /// SHA-256 of its bytes, in hexadecimal digits.
    pub digest: String,
}

/// Looks for a proof that permits the claim: the file on every address, else the TXT record.
///
/// # Errors
/// What stands against it, of both places.
pub fn find(claim: &Claim, sources: &mut dyn Sources) -> Result<FoundProof, String> {
    let by_file = match look(claim, ProofPlace::File, sources) {
        Ok(found) => return Ok(found),
        Err(why) => why,
    };
    look(claim, ProofPlace::Txt, sources).map_err(|by_txt| format!("{by_file}; {by_txt}"))
}

/// Whether a proof is where it was found, as it was found, and still permits the claim.
///
/// # Errors
/// What is no longer so.
pub fn still_there(
    claim: &Claim,
    found: &FoundProof,
    sources: &mut dyn Sources,
) -> Result<(), String> {
    let now = look(claim, found.place, sources)?;
    if now.digest == found.digest { Ok(()) } else { Err("the proof was changed".to_owned()) }
}

fn look(claim: &Claim, place: ProofPlace, sources: &mut dyn Sources) -> Result<FoundProof, String> {
    match place {
        ProofPlace::File => look_at_files(claim, sources),
        ProofPlace::Txt => look_at_txt(claim, sources),
    }
}

fn look_at_files(claim: &Claim, sources: &mut dyn Sources) -> Result<FoundProof, String> {
    let mut same: Option<FoundProof> = None;
    for address in &claim.addresses {
        let said = |why: String| format!("the file at {address}: {why}");
        let bytes = sources.file(*address).map_err(said)?;
        let proof = Proof::parse(&bytes).map_err(|error| said(error.to_string()))?;
        proof.check(claim, sources.unix_seconds()).map_err(said)?;
        let found = FoundProof { proof, place: ProofPlace::File, digest: digest(&bytes) };
        match &same {
            Some(before) if before.digest != found.digest => {
                return Err(said("it differs from the one at another address".to_owned()));
            }
            _ => same = Some(found),
        }
    }
    same.ok_or_else(|| "there is no address to look at".to_owned())
}

fn look_at_txt(claim: &Claim, sources: &mut dyn Sources) -> Result<FoundProof, String> {
    let name = claim.name().ok_or("an address has no TXT record")?;
    let name = txt_name(name);
    let said = |why: String| format!("TXT at {name}: {why}");
    let records = sources.txt(&name).map_err(said)?;
    let mut trouble = "there is none".to_owned();
    for bytes in &records {
        // several testers may stand there; the one that names us counts
        let checked = Proof::parse_txt(&bytes[..bytes.len().min(PROOF_MAX + 1)])
            .map_err(|error| error.to_string())
            .and_then(|proof| proof.check(claim, sources.unix_seconds()).map(|()| proof));
        match checked {
            Ok(proof) => {
                return Ok(FoundProof { proof, place: ProofPlace::Txt, digest: digest(bytes) });
            }
            Err(why) => trouble = why,
        }
    }
    Err(said(trouble))
}

/// How a proof names a tester: a digest of the secret that the tester keeps.
pub fn fingerprint(secret: &[u8]) -> String {
    digest(&[b"loadstone-torture-key\n", secret].concat())
}
