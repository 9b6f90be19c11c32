//! Connections, local and remote addresses, TLS.

use super::Problems;
use crate::{
    AddressFamily, ConnectionPlan, HttpVersion, Load, Migrate, Plan, TlsPlan, TlsVersions, rules,
};
use std::net::IpAddr;
use units::{Nanos, quoted};

pub(super) fn check(plan: &Plan, problems: &mut Problems) {
    problems.add_faults(plan, "connection");
    check_calls(plan, problems);
    check_version(plan, problems);
    check_unix(&plan.connection, problems);
    check_addresses(&plan.connection, problems);
    check_proxy(&plan.connection, problems);
    check_path(plan, problems);
    check_stack(plan, problems);
    check_idle(plan, problems);
    check_tls(&plan.tls, plan.request.version, problems);
    check_early(plan, problems);
    check_migrate(plan, problems);
    check_user_sessions(plan, problems);
}

fn check_user_sessions(plan: &Plan, problems: &mut Problems) {
    if !plan.tls.user_sessions {
        return;
    }
    problems.add_if(
        !plan.tls.resumption,
        "--user-sessions",
        "--user-sessions cannot be used with --no-resumption: nothing is resumed; drop one",
    );
    let nobody = |load: &&Load| matches!(load, Load::Open { session: None, .. });
    problems.add_if(
        plan.loads().iter().any(nobody),
        "--user-sessions",
        "--user-sessions needs users: calls due at a rate belong to no user; add --session N, or \
         drop it",
    );
}

fn check_calls(plan: &Plan, problems: &mut Problems) {
    let connection = &plan.connection;
    let ConnectionPlan { calls, pipeline, group, .. } = *connection;
    // the rest of a session's group is sent on its next connection
    let spreads = |option: &str| option == "--group" && plan.load.session().is_some();
    let ahead = if plan.request.version.has_streams() { "--streams" } else { "--pipeline" };
    for (option, depth) in [(ahead, pipeline), ("--group", group.unwrap_or(1))] {
        if let Some(calls) = calls
            && calls > 0
            && depth > calls
            && !spreads(option)
        {
            let text = format!(
                "{option} {depth} is above --calls {calls}, the number of calls of one \
                 connection; lower {option} or raise --calls"
            );
            problems.add(option, text);
        }
    }
    if let Some(group) = group
        && pipeline > 1
    {
        let text = format!(
            "--group {group} and --pipeline {pipeline} are two ways to send ahead; drop --pipeline \
             for groups that wait for their last response, or --group for a constant depth"
        );
        problems.add("--group", text);
    }
}

fn check_version(plan: &Plan, problems: &mut Problems) {
    if plan.request.version.has_streams() {
        check_streams(plan, problems);
    }
    if plan.request.version == HttpVersion::Http3 {
        check_http3(plan, problems);
    }
    let old = plan.request.version == HttpVersion::Http10;
    // RFC 9112 §9.3.2: pipelining is a feature of persistent HTTP/1.1 connections.
    problems.add_if(
        old && plan.connection.pipeline > 1,
        "--pipeline",
        "--pipeline cannot be used with --http 1.0, which has no pipelining; use --http 1.1",
    );
    problems.add_if(
        old && plan.connection.group.is_some_and(|group| group > 1),
        "--group",
        "--group cannot be used with --http 1.0, which has no pipelining; use --http 1.1",
    );
}

/// Rejects settings that HTTP/2 and HTTP/3 do not support.
fn check_streams(plan: &Plan, problems: &mut Problems) {
    let (asked, alpn) = match plan.request.version {
        HttpVersion::Http3 => ("3", "HTTP/3 is offered by its own name, h3: drop --alpn"),
        HttpVersion::Auto => ("auto", ""),
        _ => ("2", "HTTP/2 is offered by its own name, h2: drop --alpn"),
    };
    let connection = &plan.connection;
    // the names of a plan that leaves the choice to the server are those it may choose from
    let offers_others =
        plan.request.version != HttpVersion::Auto && plan.tls.alpn != TlsPlan::default().alpn;
    for (given, option, fix_text) in [
        (connection.group.is_some(), "--group", "its streams are independent: use --streams"),
        (connection.proxy.is_some(), "--proxy", "go to the server itself, or use --http 1.1"),
        (
            plan.targets.iter().any(|target| target.raw.is_some()),
            "a request in bytes",
            "give its method, headers and body instead, or use --http 1.1",
        ),
        (offers_others, "--alpn", alpn),
    ] {
        if given {
            problems
                .add("--http", format!("--http {asked} cannot be used with {option}: {fix_text}"));
        }
    }
    problems.add_faults(plan, "http2");
}

/// Rejects settings that QUIC does not support.
fn check_http3(plan: &Plan, problems: &mut Problems) {
    let plain = plan.targets.iter().find(|target| matches!(target.url.scheme(), "http" | "ws"));
    if let Some(target) = plain {
        let secure = if target.url.scheme() == "ws" { "wss" } else { "https" };
        let text = format!(
            "--http 3 cannot go to {}: HTTP/3 always uses TLS; write {secure}://, or use --http 1.1",
            target.url
        );
        problems.add("--http", text);
    }
    for (given, option, why) in [
        (
            plan.tls.versions == TlsVersions::Tls12,
            "--tls 1.2",
            "QUIC uses TLS 1.3 only; drop --tls, or use --http 2",
        ),
        (plan.connection.unix.is_some(), "--unix", "QUIC is over UDP; use --http 2"),
    ] {
        if given {
            problems.add("--http", format!("--http 3 cannot be used with {option}: {why}"));
        }
    }
}

fn check_unix(connection: &ConnectionPlan, problems: &mut Problems) {
    let Some(path) = &connection.unix else { return };
    problems.add_if(path.as_os_str().is_empty(), "--unix", "--unix is empty; give a socket's path");
    problems.add_if(
        path.as_os_str().len() > UNIX_PATH_MAX,
        "--unix",
        "--unix is longer than 107 bytes, more than the kernel accepts; change to a directory closer \
         to it first",
    );
    for (given, other) in [
        (connection.proxy.is_some(), "--proxy"),
        (!connection.bind.is_empty(), "--bind"),
        (!connection.resolve.is_empty(), "--resolve"),
        (connection.prefer != AddressFamily::Any, "-4 or -6"),
    ] {
        if given {
            let text = format!(
                "--unix and {other} contradict each other: a Unix socket is reached directly, \
                 without an address; drop one"
            );
            problems.add("--unix", text);
        }
    }
}

fn check_addresses(connection: &ConnectionPlan, problems: &mut Problems) {
    let family = |address: &IpAddr| match connection.prefer {
        AddressFamily::Any => true,
        AddressFamily::V4 => address.is_ipv4(),
        AddressFamily::V6 => address.is_ipv6(),
    };
    let only = if connection.prefer == AddressFamily::V4 { "-4" } else { "-6" };
    problems.add_if(
        connection.bind.len() > rules::BIND_MAX,
        "--bind",
        "--bind names more than 4096 addresses",
    );
    for address in &connection.bind {
        if address.is_multicast() || address.is_unspecified() {
            let text =
                format!("--bind {address} is not an address of one machine; name a local one");
            problems.add("--bind", text);
            break;
        }
        if !family(address) {
            let text = format!("--bind {address} contradicts {only}; drop one");
            problems.add("--bind", text);
            break;
        }
    }
    for rule in &connection.resolve {
        if rule.host.is_empty() || rule.port == 0 {
            let text = "--resolve takes HOST:PORT:ADDRESS, with a host and a port above 0";
            problems.add("--resolve", text);
        }
        if !family(&rule.address) {
            let text = format!("--resolve to {} contradicts {only}; drop one", rule.address);
            problems.add("--resolve", text);
        }
        let twice = connection
            .resolve
            .iter()
            .filter(|other| other.host.eq_ignore_ascii_case(&rule.host) && other.port == rule.port);
        if twice.count() > 1 {
            let text = format!("--resolve gives {}:{} two addresses", rule.host, rule.port);
            problems.add("--resolve", text);
            break;
        }
    }
}

fn check_path(plan: &Plan, problems: &mut Problems) {
    let connection = &plan.connection;
    let option = match (&connection.path, &connection.clients) {
        (None, None) => return,
        (Some(_), None) => "--path",
        (_, Some(_)) => "--clients",
    };
    let own = "each client already has its own path";
    for (given, other, why) in [
        (connection.path.is_some() && connection.clients.is_some(), "--path", own),
        (connection.unix.is_some(), "--unix", "a Unix socket has no packets"),
        (
            !connection.bind.is_empty(),
            "--bind",
            "clients on an emulated path have their own addresses",
        ),
        (connection.prefer == AddressFamily::V6, "-6", "paths carry only IPv4"),
    ] {
        if given {
            let text = format!("{option} and {other} contradict each other: {why}; drop one");
            problems.add(option, text);
        }
    }
    check_clients(plan, problems);
}

/// Rejects a kind of client without users, which would have no figures.
fn check_clients(plan: &Plan, problems: &mut Problems) {
    let Some(population) = &plan.connection.clients else { return };
    let clients = plan.client_count();
    let counts = population.counts(clients);
    let Some(row) = counts.iter().position(|count| *count == 0) else { return };
    let rarest = population.parts.iter().map(|part| part.share).fold(1.0, f64::min);
    // not above f64's whole numbers: a share is at least 1e-6 of all, or nothing is left of it
    let enough = (1.0 / rarest).ceil();
    let fix_text = match plan.load {
        Load::Closed { .. } => format!("give -c {enough} or more, or leave it out"),
        Load::Open { .. } => "give it a larger share, or leave it out".to_owned(),
    };
    let name = quoted(&population.parts[row].name);
    let text = format!("--clients: none of {clients} clients uses {name}; {fix_text}");
    problems.add("--clients", text);
}

/// Rejects settings that the program's own TCP does not support.
fn check_stack(plan: &Plan, problems: &mut Problems) {
    if !plan.driver.stack.is_own() {
        problems.add_if(
            plan.driver.sources.is_some(),
            "--sources",
            "--sources sets the addresses of our own TCP; add --stack own, or choose \
             among this host's addresses with --bind",
        );
        problems.add_if(
            plan.driver.tcp.is_some(),
            "--tcp",
            "--tcp configures our own TCP; add --stack own, or set the kernel's by sysctl",
        );
        return;
    }
    let (connection, version) = (&plan.connection, plan.request.version);
    check_xdp(plan, problems);
    let six = plan.driver.sources.is_some_and(|prefix| prefix.network.is_ipv6());
    problems.add_if(
        six && (connection.path.is_some() || connection.clients.is_some()),
        "--sources",
        "--path, --clients and --vary identify clients by IPv4 addresses; give --sources of IPv4",
    );
    for (given, other, why) in [
        (connection.unix.is_some(), "--unix", "a Unix socket has no packets"),
        (!connection.bind.is_empty(), "--bind", "its connections have their own addresses"),
        (!six && connection.prefer == AddressFamily::V6, "-6", "its addresses are IPv4"),
        (six && connection.prefer == AddressFamily::V4, "-4", "its --sources are of IPv6"),
        (version == HttpVersion::Http3, "--http 3", "HTTP/3 uses UDP"),
        (
            connection.send_buffer.is_some() || connection.recv_buffer.is_some(),
            "--send-buffer or --recv-buffer",
            "these set the kernel's buffers",
        ),
    ] {
        if given {
            let text = format!("--stack own and {other} contradict each other: {why}; drop one");
            problems.add("--stack", text);
        }
    }
}

/// Rejects settings that AF_XDP does not support.
fn check_xdp(plan: &Plan, problems: &mut Problems) {
    let Some(xdp) = plan.driver.stack.xdp() else { return };
    let device = &xdp.device;
    if plan.driver.sources.is_none() {
        let text = format!(
            "--stack own:xdp={device} needs --sources PREFIX: addresses that no host on the network uses, such \
             as a free part of {device}'s own network, or a prefix that the server has a route to over it"
        );
        problems.add("--sources", text);
    }
    if let (Some(sources), Some(gateway)) = (plan.driver.sources, xdp.gateway)
        && sources.network.is_ipv4() != gateway.is_ipv4()
    {
        let text = format!(
            "--stack own:xdp={device},gateway={gateway}: {gateway} cannot be the next hop for packets from {sources}; \
             give a gateway and --sources of the same family"
        );
        problems.add("--stack", text);
    }
    problems.add_if(
        plan.connection.path.is_some() || plan.connection.clients.is_some(),
        "--stack",
        "--path and --clients are emulated over TUN devices, as --vary is, and own:xdp goes over a real link; give --stack \
         own, or leave them out",
    );
}

fn check_idle(plan: &Plan, problems: &mut Problems) {
    problems.add_if(
        plan.connection.idle.is_some() && plan.request.version == HttpVersion::Http3,
        "--idle",
        "--idle holds TCP connections, which --http 3 does not have; drop one",
    );
}

/// Permits only requests in early data that are harmless when replayed (RFC 8470 section 4), over a
/// TLS version that supports it.
fn check_early(plan: &Plan, problems: &mut Problems) {
    if !plan.tls.early_data {
        return;
    }
    let plain = plan.targets.iter().find(|target| target.url.scheme() == "http");
    if let Some(target) = plain {
        let text = format!(
            "--early-data needs TLS 1.3, and {} is without TLS: write https://, or drop it",
            target.url
        );
        problems.add("--early-data", text);
    }
    let unsafe_one = plan
        .targets
        .iter()
        .map(|target| target.method.as_deref().unwrap_or(&plan.request.method))
        .find(|method| !EARLY_METHODS.contains(method));
    if let Some(method) = unsafe_one {
        let text = format!(
            "--early-data cannot be used with the method {}: an attacker who records such a request can replay it (RFC 8470 section 4); it is for GET, HEAD and OPTIONS; drop it",
            quoted(method)
        );
        problems.add("--early-data", text);
    }
    for (given, option, why) in [
        (!plan.tls.resumption, "--no-resumption", "only a resumed session has early data"),
        (plan.tls.versions == TlsVersions::Tls12, "--tls 1.2", "early data needs TLS 1.3"),
        (plan.script.is_some(), "--script", "which methods a script sends is not known before"),
        (
            plan.targets.iter().any(|target| target.raw.is_some()),
            "a request in bytes",
            "what it does is not known",
        ),
    ] {
        if given {
            let text = format!("--early-data cannot be used with {option}: {why}; drop one");
            problems.add("--early-data", text);
        }
    }
}

/// Safe methods (RFC 9110 section 9.2.1) in common use.
const EARLY_METHODS: [&str; 3] = ["GET", "HEAD", "OPTIONS"];

fn check_migrate(plan: &Plan, problems: &mut Problems) {
    let Some(when) = plan.connection.migrate else { return };
    problems.add_if(
        plan.request.version != HttpVersion::Http3,
        "--migrate",
        "--migrate needs QUIC: add --http 3, or drop it",
    );
    let bad = match when {
        Migrate::Every(every) => !(MIGRATE_MIN..=MIGRATE_MAX).contains(&every),
        Migrate::Calls(calls) => calls == 0,
    };
    problems.add_if(
        bad,
        "--migrate",
        "--migrate takes a time from 1ms to 1h between changes of the port, or calls: 5s, 100calls",
    );
}

const MIGRATE_MIN: Nanos = Nanos::from_millis(1);
const MIGRATE_MAX: Nanos = Nanos::from_secs(3_600);

fn check_proxy(connection: &ConnectionPlan, problems: &mut Problems) {
    let Some(proxy) = &connection.proxy else { return };
    if proxy.scheme() != "http" {
        let text = format!(
            "--proxy has the scheme {}; give http://host:port (https targets go through it by \
             CONNECT)",
            proxy.scheme()
        );
        problems.add("--proxy", text);
    }
    problems.add_if(
        proxy.host_str().is_none_or(str::is_empty) || proxy.port() == Some(0),
        "--proxy",
        "--proxy has no host or the port 0; give http://host:port",
    );
    problems.add_if(
        !matches!(proxy.path(), "" | "/") || proxy.query().is_some(),
        "--proxy",
        "--proxy has a path; give http://host:port alone",
    );
}

fn check_tls(tls: &TlsPlan, version: HttpVersion, problems: &mut Problems) {
    problems.add_if(
        tls.cert.is_some() && tls.key.is_none(),
        "--cert",
        "--cert needs its key; add --key FILE",
    );
    problems.add_if(
        tls.key.is_some() && tls.cert.is_none(),
        "--key",
        "--key needs its certificate; add --cert FILE",
    );
    problems.add_if(
        tls.insecure && tls.ca.is_some(),
        "--insecure",
        "--insecure and --ca contradict each other: one accepts any certificate, the other checks \
         it; drop one",
    );
    for protocol in &tls.alpn {
        let known = match protocol.as_str() {
            "http/1.1" | "http/1.0" => true,
            "h2" => version == HttpVersion::Auto,
            _ => false,
        };
        if !known {
            let more = if version == HttpVersion::Auto { "h2, " } else { "" };
            let text = format!(
                "--alpn {} offers a protocol that is not supported here; give {more}http/1.1 or \
                 http/1.0, or none",
                quoted(protocol)
            );
            problems.add("--alpn", text);
        }
    }
    let name = tls.server_name.as_deref();
    let wrong = |name: &str| name.is_empty() || name.contains(|c: char| !c.is_ascii_graphic());
    problems.add_if(
        name.is_some_and(wrong),
        "--server-name",
        "--server-name is not a host name (write an international one in its xn-- form)",
    );
    for (option, names) in [("--groups", &tls.groups), ("--ciphers", &tls.ciphers)] {
        let text = format!("{option} contains an empty name; separate names by single commas");
        problems.add_if(names.iter().any(String::is_empty), option, &text);
    }
}

/// Maximum length of a path: `sockaddr_un` has 108 bytes, the last one a zero.
const UNIX_PATH_MAX: usize = 107;
