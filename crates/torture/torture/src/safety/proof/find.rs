//! Finds proofs and checks whether they are still published.

use super::{PROOF_MAX, Proof};
pub use crate::record::digest;
use std::net::SocketAddr;
use units::Nanos;

/// Path of the proof file.
pub const FILE_PATH: &str = "/.well-known/loadstone-torture.txt";
/// Interval between checks of a proof during a run.
pub const RECHECK: Nanos = Nanos::from_secs(60);

/// Returns the name of the TXT record of a host.
pub fn txt_name(host: &str) -> String {
    format!("_loadstone-torture.{host}")
}

/// The tester and the target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Fingerprint of the tester's key.
    pub tester: String,
    /// `host:port` in lowercase.
    pub host: String,
    /// Addresses of the name: each must serve the file.
    pub addresses: Vec<SocketAddr>,
}

impl Claim {
    /// Returns the host without its port, or `None` for an address, which has no TXT records.
    fn name(&self) -> Option<&str> {
        let (name, _) = self.host.rsplit_once(':')?;
        let address = name.starts_with('[') || name.parse::<std::net::Ipv4Addr>().is_ok();
        (!address).then_some(name)
    }
}

/// Environment for proofs: clock, fetch and name service are passed in.
pub trait Sources {
    /// Returns the seconds since 1970-01-01 UTC.
    fn unix_seconds(&mut self) -> i64;

    /// Returns the body of a 200 for [`FILE_PATH`] at this address; redirects are not followed. At
    /// most [`PROOF_MAX`] + 1 bytes are needed.
    ///
    /// # Errors
    /// Fails with the failure.
    fn file(&mut self, address: SocketAddr) -> Result<Vec<u8>, String>;

    /// Returns the TXT records of a name, the strings of each concatenated.
    ///
    /// # Errors
    /// Fails with the failure.
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

/// A valid proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundProof {
    pub proof: Proof,
    pub place: ProofPlace,
    /// SHA-256 of its bytes, in hexadecimal digits.
    pub digest: String,
}

/// Finds a proof that permits the claim: the file on every address, or the TXT record.
///
/// # Errors
/// Fails with the problems of both places.
pub fn find(claim: &Claim, sources: &mut dyn Sources) -> Result<FoundProof, String> {
    let by_file = match look(claim, ProofPlace::File, sources) {
        Ok(found) => return Ok(found),
        Err(why) => why,
    };
    look(claim, ProofPlace::Txt, sources).map_err(|by_txt| format!("{by_file}; {by_txt}"))
}

/// Checks whether a proof is still published, unchanged, and permits the claim.
///
/// # Errors
/// Fails if the proof changed, with what changed.
pub fn verify_published(
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
        ProofPlace::Txt => find_txt_proof(claim, sources),
    }
}

fn look_at_files(claim: &Claim, sources: &mut dyn Sources) -> Result<FoundProof, String> {
    let mut same: Option<FoundProof> = None;
    for address in &claim.addresses {
        let describe = |why: String| format!("the file at {address}: {why}");
        let bytes = sources.file(*address).map_err(describe)?;
        let proof = Proof::parse(&bytes).map_err(|error| describe(error.to_string()))?;
        proof.check(claim, sources.unix_seconds()).map_err(describe)?;
        let found = FoundProof { proof, place: ProofPlace::File, digest: digest(&bytes) };
        match &same {
            Some(before) if before.digest != found.digest => {
                return Err(describe("it differs from the one at another address".to_owned()));
            }
            _ => same = Some(found),
        }
    }
    same.ok_or_else(|| "there is no address to query".to_owned())
}

fn find_txt_proof(claim: &Claim, sources: &mut dyn Sources) -> Result<FoundProof, String> {
    let name = claim.name().ok_or("an address has no TXT record")?;
    let name = txt_name(name);
    let describe = |why: String| format!("TXT at {name}: {why}");
    let records = sources.txt(&name).map_err(describe)?;
    let mut trouble = "there is none".to_owned();
    for bytes in &records {
        // there may be proofs for several testers; the one that names us counts
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
    Err(describe(trouble))
}

/// Returns the fingerprint of a tester: a digest of its secret.
pub fn fingerprint(secret: &[u8]) -> String {
    digest(&[b"loadstone-torture-key\n", secret].concat())
}
