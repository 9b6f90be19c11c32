//! `--native`: the equivalent native command, if there is one. Behavior that depends on responses
//! (parts, challenges, caches) has no equivalent.

use super::address::Address;
use super::config::{Config, Reps};
use super::journey::Journey;
use crate::words::{plan_script, shell_quoted};
use plan::{Auth, HttpVersion, Load, Order, Plan, TargetPlan, Think};
use units::Nanos;

/// Number of redirects that `run --follow` follows.
const FOLLOWED: u16 = 10;
/// A run without its own end.
const ENDLESS: Nanos = Nanos::from_secs(86_400);

/// Returns the native command; `plan`: the plan of the face.
pub(super) fn command(journey: &Journey, plan: &Plan) -> String {
    match journey.urls.as_slice() {
        [one] => options(&journey.config, one),
        _ => plan_script("siege.toml", &whole(journey, plan)),
    }
}

fn calls(config: &Config, urls: usize) -> Option<u64> {
    let pages = config.pages(urls)?;
    Some(pages.max(1) * u64::from(config.users.unsigned_abs()))
}

/// Returns options for a single URL.
fn options(config: &Config, address: &Address) -> String {
    let mut parts = vec!["loadstone run".to_owned(), shell_quoted(address.url.as_str())];
    let mut add = |name: &str, value: &str| match value {
        "" => parts.push(name.to_owned()),
        value => parts.push(format!("{name} {}", shell_quoted(value))),
    };
    add("-c", &config.users.unsigned_abs().to_string());
    match (calls(config, 1), config.run_seconds()) {
        (Some(calls), _) => add("-n", &calls.to_string()),
        (None, 1..) => add("-d", &format!("{}s", config.run_seconds())),
        (None, _) => add("-d", &units::show::duration(ENDLESS)),
    }
    if config.delay > 0.0 {
        add("--think", &format!("0s..{}s", config.delay));
    }
    if !config.http11 {
        add("--http", "1.0");
    }
    if !config.keep_alive {
        add("--calls", "1");
    }
    if config.cookies {
        add("--cookies", "");
    }
    if config.follow {
        add("--follow", "");
    }
    if let Some(body) = &address.body {
        add("--method", address.method);
        if !body.bytes.is_empty() {
            add("--body", &String::from_utf8_lossy(&body.bytes));
        }
        add("-H", &format!("Content-Type: {}", body.content_type));
    }
    config.headers.lines().for_each(|line| add("-H", line));
    if let Some(login) = config.logins.first() {
        add("--user", &format!("{}:{}", login.user, login.password));
    }
    if let Some(host) = &config.proxy_host {
        add("--proxy", &format!("http://{host}:{}", config.proxy_port));
    }
    if config.timeout > 0 {
        add("--progress-timeout", &format!("{}s", config.timeout));
    }
    if address.url.scheme() == "https" {
        add("--insecure", "");
    }
    parts.join(" ") + "\n"
}

/// Returns the plan for a list of URLs, whose methods and bodies options cannot express.
fn whole(journey: &Journey, plan: &Plan) -> Plan {
    let config = &journey.config;
    let target = |address: &Address| TargetPlan {
        method: Some(address.method.to_owned()),
        body: address.body.as_ref().map(|body| body.bytes.clone()),
        ..TargetPlan::new(address.url.clone())
    };
    let mut whole = Plan { targets: journey.urls.iter().map(target).collect(), ..plan.clone() };
    whole.order = if config.internet { Order::Random } else { Order::InOrder };
    let think = match config.delay {
        seconds if seconds > 0.0 => Think::Uniform(Nanos::ZERO, Nanos::from_secs_f64(seconds)),
        _ => Think::None,
    };
    let users = config.users.unsigned_abs();
    whole.load = Load::Closed { users, think, session: None };
    whole.stop.requests = calls(config, journey.urls.len());
    let endless = config.reps == Reps::Endless && config.seconds <= 0;
    whole.stop.duration = plan.stop.duration.or(endless.then_some(ENDLESS));
    whole.expect = plan::Expect::default();
    let request = &mut whole.request;
    request.version = if config.http11 { HttpVersion::Http11 } else { HttpVersion::Http10 };
    request.cookies = config.cookies;
    request.follow_max = if config.follow { FOLLOWED } else { 0 };
    request.user_agent.clone_from(&config.user_agent);
    let field = |line: &str| {
        let (name, value) = line.split_once(':')?;
        Some((name.trim().to_owned(), value.trim().to_owned()))
    };
    request.headers = config.headers.lines().filter_map(field).collect();
    if journey.urls.iter().any(|address| address.body.is_some()) {
        request.headers.push(("Content-Type".to_owned(), config.content_type.clone()));
    }
    request.auth = config
        .logins
        .first()
        .map(|login| Auth::Basic { user: login.user.clone(), password: login.password.clone() });
    whole
}
