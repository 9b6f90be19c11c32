//! From a configuration to a plan with guided users.

use super::config::{Config, error, fatal};
use super::journey::Journey;
use crate::ab::ciphers;
use crate::{Ending, Files};
use plan::{AddressOrder, Expect, Load, Plan, TargetPlan, Think, Timeouts, TlsPlan, TlsVersions};
use units::Nanos;
use url::Url;

/// Rows are short, so that lines are printed promptly.
const ROW: Nanos = Nanos::from_millis(100);
const DAY: u64 = 86_400;

pub(super) fn plan(journey: &Journey, files: &dyn Files) -> Result<Plan, Ending> {
    let config = &journey.config;
    let mut plan = Plan::for_targets(targets(journey));
    plan.load =
        Load::Closed { users: config.users.unsigned_abs(), think: Think::None, session: None };
    plan.stop.duration = (config.run_seconds() > 0)
        .then(|| Nanos::from_secs(u64::from(config.run_seconds().unsigned_abs())));
    plan.stop.at_once = config.run_seconds() > 0;
    // the guide knows when its users are done
    plan.stop.requests = (config.run_seconds() <= 0).then_some(u64::MAX);
    plan.timeouts = timeouts(journey);
    // failures of a response are reported separately by its status
    plan.expect = Expect { status: vec![(100, 599)], ..Expect::default() };
    plan.measure.interval = ROW;
    plan.measure.tcp_info_share = 0.0;
    plan.connection.calls = (!config.keep_alive).then_some(1);
    plan.connection.addresses = AddressOrder::FirstThatAnswers;
    // siege repeats the request at once; its `failures` limit ends it
    plan.connection.reconnect_pause = Nanos::ZERO;
    plan.tls = tls(config, files)?;
    if let Some(host) = &config.proxy_host {
        plan.connection.proxy = Some(proxy(config, host)?);
    }
    Ok(plan)
}

/// Returns one target for each endpoint.
fn targets(journey: &Journey) -> Vec<TargetPlan> {
    let mut targets: Vec<TargetPlan> = Vec::new();
    let place = |url: &Url| {
        let port = url.port_or_known_default();
        (url.scheme().to_owned(), url.host_str().map(str::to_owned), port)
    };
    let mut known = std::collections::BTreeSet::new();
    for address in journey.all() {
        if known.insert(place(&address.url)) {
            targets.push(TargetPlan::new(address.url.clone()));
        }
    }
    targets
}

fn timeouts(journey: &Journey) -> Timeouts {
    let config = &journey.config;
    let seconds = |count: i32| match u64::try_from(count) {
        Ok(count @ 1..=DAY) => Nanos::from_secs(count),
        _ => Nanos::from_secs(DAY),
    };
    let still = seconds(config.timeout);
    // a handshake has its own limit there; here it is part of the connect
    let secure = journey.all().any(|address| address.url.scheme() == "https");
    let given = config.ssl_timeout.filter(|_| secure).map(seconds);
    let connect = given.unwrap_or(still);
    Timeouts {
        connect,
        first_byte: None,
        progress: Some(still),
        answer: None,
        call: Nanos::from_secs(DAY),
    }
}

fn proxy(config: &Config, host: &str) -> Result<Url, Ending> {
    let text = format!("http://{host}:{}/", config.proxy_port);
    let refused = || Ending::error(fatal(&format!("proxy-host {host}: no host of a proxy")), 1);
    let mut url = Url::parse(&text).map_err(|_| refused())?;
    // a tunnel is requested with the login at once; requests to the proxy itself wait for a
    // challenge
    if let Some(login) = super::config::Login::find(&config.proxy_logins, "any") {
        url.set_username(&login.user).map_err(|()| refused())?;
        url.set_password(Some(&login.password)).map_err(|()| refused())?;
    }
    Ok(url)
}

fn tls(config: &Config, files: &dyn Files) -> Result<TlsPlan, Ending> {
    let mut tls =
        TlsPlan { insecure: true, resumption: false, alpn: Vec::new(), ..TlsPlan::default() };
    if let Some(list) = &config.ssl_ciphers {
        tls.ciphers = ciphers::chosen(list, TlsVersions::Any).ok_or_else(|| {
            Ending::error(error(&format!("ssl-ciphers {list}: none of these is supported here")), 1)
        })?;
    }
    let read = |key: &str, path: &String| {
        files
            .read(path)
            .map_err(|why| Ending::error(error(&format!("{key}: {path}: {}", why.text)), 1))
    };
    if let Some(path) = &config.ssl_cert {
        let pem = read("ssl-cert", path)?;
        let key = config.ssl_key.as_ref().map(|path| read("ssl-key", path)).transpose()?;
        tls.key = Some(key.unwrap_or_else(|| pem.clone()));
        tls.cert = Some(pem);
    }
    Ok(tls)
}
