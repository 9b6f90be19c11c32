//! The network device for cases that send raw TCP segments.

use crate::exit::Failure;
use args::TortureArgs;
use ownstack::RawLink;
use std::net::SocketAddr;
use torture::case::{Case, Need, PACKETS};
use torture::safety::Class;
use url::Url;

/// Returns the device if a case needs one, or the reason why it is unavailable. A run of many
/// groups then skips those cases with that reason.
///
/// # Errors
/// Fails if such cases are selected explicitly, and there is no device.
pub(super) fn link(
    args: &TortureArgs,
    url: &Url,
    (class, addresses): (Class, &[SocketAddr]),
    cases: &[Case],
) -> Result<Result<RawLink, String>, Failure> {
    if !Case::any_needs(cases, &[Need::Device]) {
        return Ok(Err(Need::Device.missing().to_owned()));
    }
    let wants = |case: &Case| case.needs.contains(&Need::Device);
    let made = make(args, url, class, addresses);
    let named = |name: &String| name.starts_with([PACKETS, PACKETS.to_ascii_lowercase()]);
    match &made {
        Err(why) if cases.iter().all(wants) || args.what.only.iter().any(named) => {
            Err(Failure::usage(format!("TCP segments cannot be sent: {why}")))
        }
        Err(why) if !args.outputs.quiet => {
            crate::print_message(&format!("group {PACKETS} (TCP segments) is skipped: {why}"));
            Ok(made)
        }
        Ok(raw) if !args.outputs.quiet => {
            let (first, last) = raw.sources();
            let name = raw.name();
            crate::print_message(&format!(
                "TCP segments are sent from {first} to {last} over the network device {name}, \
                which exists during this run"
            ));
            Ok(made)
        }
        _ => Ok(made),
    }
}

fn make(
    args: &TortureArgs,
    url: &Url,
    class: Class,
    addresses: &[SocketAddr],
) -> Result<RawLink, String> {
    if class != Class::Local {
        return Err("they reach only servers on this machine".to_owned());
    }
    if url.scheme() != "http" {
        return Err("they carry cleartext HTTP, but the URL is https; name an http port".into());
    }
    if !addresses.first().is_some_and(SocketAddr::is_ipv4) {
        return Err(
            "they are sent over IPv4, but the URL resolves to an IPv6 address; write 127.0.0.1"
                .into(),
        );
    }
    if args.what.path().is_some() {
        return Err("they would bypass the emulated path; omit --path".to_owned());
    }
    RawLink::open().map_err(|trouble| trouble.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use torture::catalogue;

    #[test]
    fn an_exchange_may_need_the_device() {
        let mut cases = catalogue::cases().unwrap();
        cases.retain(|case| case.id == "S-43");
        assert!(!Case::any_needs(&cases, &[Need::Device]));
        cases[0].exchanges[0].needs.push(Need::Device);
        assert!(Case::any_needs(&cases, &[Need::Device]));
    }
}
