//! `--native`: the equivalent native command.

use super::options::{Method, Options};
use super::setup::server_name;
use crate::words::{plan_script, shell_quoted};
use plan::{Plan, TlsVersions};

/// Returns the native command; `plan`: the plan of the face.
pub(super) fn command(options: &Options, plan: &Plan) -> String {
    let address = &options.address;
    // no option of ours keeps the name from the server
    if address.secure && !plan.tls.sni && address.host.parse::<std::net::IpAddr>().is_err() {
        return plan_script("ab.toml", plan);
    }
    let url = format!(
        "{}://{}{}{}",
        address.scheme(),
        address.host_field(),
        address.colon_port(),
        address.path
    );
    let mut parts = vec!["loadstone run".to_owned(), shell_quoted(&url)];
    let mut add = |name: &str, value: String| {
        let value = if value.is_empty() { value } else { format!(" {}", shell_quoted(&value)) };
        parts.push(format!("{name}{value}"));
    };
    add("-c", options.concurrency.to_string());
    add("-n", options.requests.to_string());
    if options.time_limit > 0 {
        add("-d", format!("{}s", options.time_limit));
    }
    add("--http", "1.0".into());
    if !options.keep_alive {
        add("--calls", "1".into());
    }
    match (&options.method, &options.body_file) {
        (Method::Get, _) => {}
        (method, _) => add("--method", method.name().to_owned()),
    }
    if let Some(file) = &options.body_file {
        add("--body-file", file.clone());
        add("-H", format!("Content-Type: {}", options.content_type));
    }
    let cookie = options.cookie.iter().map(|cookie| format!("Cookie: {cookie}"));
    let lines = options.headers.iter().chain(&options.logins).cloned();
    cookie.chain(lines).for_each(|line| add("-H", line));
    if let Some((host, port)) = &options.proxy {
        add("--proxy", format!("http://{host}:{port}"));
    }
    if let Some(local) = plan.connection.bind.first() {
        add("--bind", local.to_string());
    }
    if options.window > 0 {
        add("--send-buffer", options.window.to_string());
        add("--recv-buffer", options.window.to_string());
    }
    if options.timeout > 0 {
        add("--progress-timeout", format!("{}s", options.timeout));
    }
    if address.secure {
        tls(options, plan, &mut add);
    }
    parts.join(" ") + "\n"
}

fn tls(options: &Options, plan: &Plan, add: &mut dyn FnMut(&str, String)) {
    add("--insecure", String::new());
    add("--no-resumption", String::new());
    match plan.tls.versions {
        TlsVersions::Any => {}
        TlsVersions::Tls12 => add("--tls", "1.2".to_owned()),
        TlsVersions::Tls13 => add("--tls", "1.3".to_owned()),
    }
    if !plan.tls.ciphers.is_empty() {
        add("--ciphers", plan.tls.ciphers.join(","));
    }
    if let Some(name) = server_name(options).filter(|name| *name != options.address.host) {
        add("--server-name", name.to_owned());
    }
    if let Some((file, _)) = &options.identity {
        add("--cert", file.clone());
        add("--key", file.clone());
    }
}
