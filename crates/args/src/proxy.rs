//! Proxies of the environment, by curl's rules: `http_proxy` in lower case only, `https_proxy` and
//! `all_proxy` in both cases, and `no_proxy` with hosts, suffixes and networks.

use super::{Outputs, UsageError};
use plan::{HttpVersion, Plan};
use session::console::text_variable;
use std::net::IpAddr;
use url::{Host, Url};

/// Looks a variable of the environment up.
type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Proxy from the environment, with the variable that names it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct FoundProxy {
    variable: &'static str,
    value: String,
}

/// Sends the plan's calls through the proxy of the environment, unless an option or a plan file
/// names a proxy. Returns a note for the user.
///
/// # Errors
/// Fails for a variable that is not a proxy; hosts of one plan that need different routes; a plan
/// that cannot use a proxy.
pub fn use_environment(plan: &mut Plan, outputs: &Outputs) -> Result<Option<String>, UsageError> {
    if !outputs.proxy_open {
        return Ok(None);
    }
    let lookup = |name: &str| text_variable(name).filter(|value| !value.is_empty());
    apply(plan, outputs.version_open, &lookup)
}

/// Puts the proxy of the environment into the plan.
/// `version_open`: no option sets the HTTP version; it follows from the plan.
fn apply(
    plan: &mut Plan,
    version_open: bool,
    lookup: Lookup<'_>,
) -> Result<Option<String>, UsageError> {
    // a Unix socket is reached directly
    if plan.connection.proxy.is_some() || plan.connection.unix.is_some() {
        return Ok(None);
    }
    let further = plan.journeys.iter().flat_map(|journeys| journeys.further_servers());
    let targets = plan.targets.iter().map(|target| &target.url);
    let servers: Vec<&Url> = targets.chain(further).chain(&plan.token.url).collect();
    let Some(first) = servers.first() else { return Ok(None) };
    let route = |url: &Url| proxy_of(url, lookup).filter(|_| !is_this_machine(url));
    let way = route(first);
    if let Some((other, differs)) =
        servers.iter().map(|url| (*url, route(url))).find(|(_, other)| *other != way)
    {
        return Err(different_routes((first, way.as_ref()), (other, differs.as_ref())));
    }
    let Some(FoundProxy { variable, value }) = way else {
        let unused = servers.iter().find_map(|url| Some((url, proxy_of(url, lookup)?)));
        return Ok(unused.map(|(url, FoundProxy { variable, value })| {
            format!(
                "{variable} of the environment is not used for {}, which is this machine; \
                 --proxy {} uses it",
                url.host_str().unwrap_or_default(),
                without_password(&value)
            )
        }));
    };
    let proxy = plan::parse_proxy(&value)
        .map_err(|why| UsageError::new(format!("{variable} of the environment: {}", why.0)))?;
    plan.connection.proxy = Some(proxy);
    if version_open && plan.request.version == HttpVersion::Auto {
        // a proxy is asked over HTTP/1.1
        plan.request.version = HttpVersion::Http11;
    }
    if let Err(problems) = plan::validate(plan) {
        let why = UsageError::from(problems);
        return Err(UsageError::new(format!(
            "{variable} of the environment names a proxy that this run cannot use; --proxy none ignores it: {why}"
        )));
    }
    Ok(Some(format!(
        "the calls go through the proxy {}, which {variable} names; --proxy none ignores it",
        without_password(&value)
    )))
}

/// Returns the error for servers that need different routes.
fn different_routes(
    one: (&Url, Option<&FoundProxy>),
    other: (&Url, Option<&FoundProxy>),
) -> UsageError {
    let route = |(url, way): (&Url, Option<&FoundProxy>)| {
        let host = url.host_str().unwrap_or_default();
        match way {
            Some(found) => {
                format!("{host} through {} ({})", without_password(&found.value), found.variable)
            }
            None if is_this_machine(url) => format!("{host}, which is this machine, directly"),
            None => format!("{host} directly"),
        }
    };
    UsageError::new(format!(
        "the proxy variables of the environment lead to {} and to {}, but a run uses one route: \
         give --proxy URL, or --proxy none for no proxy",
        route(one),
        route(other)
    ))
}

/// Formats a proxy without its password.
fn without_password(value: &str) -> String {
    match value.rsplit_once('@') {
        Some((_, host)) => format!("***@{host}"),
        None => value.to_owned(),
    }
}

fn proxy_of(url: &Url, lookup: Lookup<'_>) -> Option<FoundProxy> {
    let excluded = lookup("no_proxy").or_else(|| lookup("NO_PROXY"));
    if excluded.is_some_and(|list| excludes(&list, url)) {
        return None;
    }
    // HTTP_PROXY may be set by a request's Proxy field where a server runs this as CGI
    let variables: &[&str] = match plan::is_secure(url) {
        true => &["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"],
        false => &["http_proxy", "all_proxy", "ALL_PROXY"],
    };
    variables.iter().find_map(|variable| Some(FoundProxy { variable, value: lookup(variable)? }))
}

/// Returns whether the host is a loopback address or localhost; through a proxy, it would name the
/// proxy's own machine.
fn is_this_machine(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// Returns whether `no_proxy` includes the host. Entries are `*`, a host, a suffix with or without
/// its dot, an address, or a network such as `10.0.0.0/8`, each with an optional port.
fn excludes(list: &str, url: &Url) -> bool {
    let mut entries = list.split([',', ' ', '\t']).map(str::trim).filter(|entry| !entry.is_empty());
    entries.any(|entry| entry == "*" || matches(entry, url))
}

fn matches(entry: &str, url: &Url) -> bool {
    let (entry, port) = with_port(entry);
    if port.is_some() && port != url.port_or_known_default() {
        return false;
    }
    let address: Option<IpAddr> = match url.host() {
        Some(Host::Domain(name)) => {
            let suffix = entry.trim_start_matches("*.").trim_start_matches('.');
            let suffix = suffix.trim_end_matches('.').to_ascii_lowercase();
            let name = name.trim_end_matches('.');
            return !suffix.is_empty()
                && name
                    .strip_suffix(suffix.as_str())
                    .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
        }
        Some(Host::Ipv4(address)) => Some(address.into()),
        Some(Host::Ipv6(address)) => Some(address.into()),
        None => None,
    };
    let Some(address) = address else { return false };
    let entry = entry.trim_matches(['[', ']']);
    let (network, bits) = match entry.split_once('/') {
        Some((network, bits)) => (network, bits.parse::<u32>().ok()),
        None => (entry, Some(128)),
    };
    let (Ok(network), Some(bits)) = (network.parse::<IpAddr>(), bits) else { return false };
    let (a, b, width) = match (address, network) {
        (IpAddr::V4(a), IpAddr::V4(b)) => (u128::from(a.to_bits()), u128::from(b.to_bits()), 32),
        (IpAddr::V6(a), IpAddr::V6(b)) => (a.to_bits(), b.to_bits(), 128),
        _ => return false,
    };
    let differing = (a ^ b).checked_shr(width - bits.min(width)).unwrap_or(0);
    differing == 0
}

/// Splits an entry into host and port; the port of an IPv6 address follows the brackets.
fn with_port(entry: &str) -> (&str, Option<u16>) {
    let colons = entry.matches(':').count();
    if colons != 1 && !entry.contains("]:") {
        return (entry, None);
    }
    match entry.rsplit_once(':') {
        Some((host, port)) => match port.parse() {
            Ok(port) => (host, Some(port)),
            Err(_) => (entry, None),
        },
        None => (entry, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        text.parse().unwrap()
    }

    #[test]
    fn no_proxy_has_hosts_suffixes_networks_and_ports() {
        for (list, text, excluded) in [
            ("example.org", "http://example.org/", true),
            ("example.org", "http://www.example.org/", true),
            (".example.org", "http://example.org/", true),
            ("*.example.org", "https://a.b.example.org/", true),
            ("example.org", "http://myexample.org/", false),
            ("EXAMPLE.org.", "http://example.org/", true),
            ("a, example.org:8080", "http://example.org:8080/", true),
            ("example.org:8080", "http://example.org/", false),
            ("*", "http://anything/", true),
            ("10.1.0.0/16", "http://10.1.2.3/", true),
            ("10.1.0.0/16", "http://10.2.2.3/", false),
            ("10.1.2.3", "http://10.1.2.3:81/", true),
            ("0.0.0.0/0", "http://10.1.2.3/", true),
            ("2001:db8::/32", "http://[2001:db8:1::1]/", true),
            ("[2001:db8::1]:80", "http://[2001:db8::1]/", true),
            ("::/0", "http://10.1.2.3/", false),
            ("10.0.0.0/x", "http://10.1.2.3/", false),
            (" ,, ", "http://h/", false),
        ] {
            assert_eq!(excludes(list, &url(text)), excluded, "{list} {text}");
        }
    }

    fn applied(
        variables: &[(&str, &str)],
        urls: &[&str],
    ) -> Result<(Plan, Option<String>), String> {
        let targets = urls.iter().map(|text| plan::TargetPlan::new(url(text))).collect();
        let mut plan = Plan::for_targets(targets);
        let lookup = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        crate::apply::negotiate_version(&mut plan);
        let note = apply(&mut plan, true, &lookup).map_err(|error| error.to_string())?;
        Ok((plan, note))
    }

    fn proxy(variables: &[(&str, &str)], text: &str) -> Option<String> {
        applied(variables, &[text]).unwrap().0.connection.proxy.map(|proxy| proxy.to_string())
    }

    #[test]
    fn the_variables_are_those_of_curl() {
        let all = [("http_proxy", "p:1"), ("HTTPS_PROXY", "http://q:2"), ("all_proxy", "r:3")];
        assert_eq!(proxy(&all, "http://h/").as_deref(), Some("http://p:1/"));
        assert_eq!(proxy(&all, "https://h/").as_deref(), Some("http://q:2/"));
        let version = |variables: &[(&str, &str)]| {
            applied(variables, &["https://h/"]).unwrap().0.request.version
        };
        assert_eq!((version(&all), version(&[])), (HttpVersion::Http11, HttpVersion::Auto));
        assert_eq!(proxy(&all[2..], "https://h/").as_deref(), Some("http://r:3/"));
        assert_eq!(proxy(&[("HTTP_PROXY", "p:1")], "http://h/"), None);
        assert_eq!(proxy(&[("http_proxy", "p:1"), ("NO_PROXY", "h")], "http://h/"), None);
        let (_, note) = applied(&[("http_proxy", "me:pw@p:1")], &["http://h/"]).unwrap();
        let note = note.unwrap();
        assert!(note.contains("***@p:1, which http_proxy names") && !note.contains("pw"), "{note}");
    }

    #[test]
    fn this_machine_is_reached_without_a_proxy() {
        for text in ["http://localhost:81/", "http://127.0.0.1/", "http://[::1]/"] {
            let (plan, note) = applied(&[("http_proxy", "p:1")], &[text]).unwrap();
            assert_eq!(plan.connection.proxy, None);
            assert!(note.unwrap().contains("--proxy p:1 uses it"));
        }
    }

    #[test]
    fn requests_unfit_for_the_proxy_are_refused() {
        let error =
            |variables: &[(&str, &str)], urls: &[&str]| applied(variables, urls).unwrap_err();
        let ways = error(&[("http_proxy", "p:1"), ("no_proxy", "b")], &["http://a/", "http://b/"]);
        assert!(ways.contains("lead to a through p:1 (http_proxy) and to b directly"), "{ways}");
        // this machine is reached directly, wherever it is in the list
        for urls in [["http://127.0.0.1/", "http://b/"], ["http://b/", "http://127.0.0.1/"]] {
            let ways = error(&[("http_proxy", "me:pw@p:1")], &urls);
            assert!(ways.contains("127.0.0.1, which is this machine, directly"), "{ways}");
            assert!(ways.contains("b through ***@p:1") && !ways.contains("pw"), "{ways}");
        }
        let all_local = applied(&[("http_proxy", "p:1")], &["http://[::1]/", "http://localhost/"]);
        assert!(all_local.unwrap().0.connection.proxy.is_none());
        let scheme = error(&[("http_proxy", "socks5://p:1")], &["http://h/"]);
        assert!(scheme.starts_with("http_proxy of the environment: "), "{scheme}");
    }
}
