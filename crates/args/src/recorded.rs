//! Converts recorded requests of other tools into a plan.

use super::UsageError;
use import::recorded::{Curl, CurlLogin, CurlVersion, Recorded};
use plan::{Auth, FileSource, HttpVersion, Plan, TargetPlan, rules};

/// Returns the plan of `--curl`.
///
/// # Errors
/// Fails for a command that cannot be converted.
pub(super) fn plan_from_curl(text: &str, files: &dyn FileSource) -> Result<Plan, UsageError> {
    if import::recorded::is_grpcurl(text) {
        return super::grpc::plan_from_grpcurl(text, files)
            .map_err(|why| UsageError::new(format!("--curl: {why}")));
    }
    let curl = import::recorded::parse_curl(text, &|path| files.read(path))
        .map_err(|error| UsageError::new(format!("--curl: {error}")))?;
    let mut plan = Plan::for_targets(Vec::new());
    let requests: Vec<&Recorded> = curl.requests.iter().collect();
    set_targets(&mut plan, &requests);
    apply_request_options(&mut plan, &curl);
    set_login(&mut plan, &curl).map_err(|why| UsageError::new(format!("--curl: {why}")))?;
    Ok(plan)
}

/// Targets for these requests, a row each. Common headers are stored once in the plan.
pub fn set_targets(plan: &mut Plan, requests: &[&Recorded]) {
    let first = requests.first();
    let same = first.filter(|first| requests.iter().all(|one| one.headers == first.headers));
    if let Some(first) = same {
        plan.request.headers.clone_from(&first.headers);
    }
    let target = |one: &&Recorded| TargetPlan {
        // a body makes a POST, otherwise a GET
        method: (one.method != "GET" || one.body.is_some()).then(|| one.method.clone()),
        headers: if same.is_some() { Vec::new() } else { one.headers.clone() },
        body: one.body.clone(),
        ..TargetPlan::new(one.url.clone())
    };
    plan.targets = requests.iter().map(target).collect();
}

/// Applies the login of a command that signs each request.
///
/// # Errors
/// Fails for a request that cannot be signed.
pub fn set_login(plan: &mut Plan, curl: &Curl) -> Result<(), String> {
    let text = |error: units::ParseError| error.0;
    plan.request.auth = match &curl.login {
        None => None,
        Some(CurlLogin::Digest { user }) => Some(rules::parse_digest(user).map_err(text)?),
        Some(CurlLogin::AwsSigV4 { user, scope }) => {
            let scope = rules::parse_aws_sigv4(scope).map_err(text)?;
            let (key, secret) = user.split_once(':').unwrap_or((user, ""));
            Some(Auth::AwsSigV4 { key: key.to_owned(), secret: secret.to_owned(), scope })
        }
    };
    Ok(())
}

/// Applies the other request options of a command.
pub fn apply_request_options(plan: &mut Plan, curl: &Curl) {
    let request = &mut plan.request;
    match curl.version {
        None => {}
        Some(CurlVersion::Http10) => request.version = HttpVersion::Http10,
        Some(CurlVersion::Http11) => request.version = HttpVersion::Http11,
        Some(CurlVersion::Http2) => request.version = HttpVersion::Http2,
        Some(CurlVersion::Http3) => request.version = HttpVersion::Http3,
    }
    request.compressed |= curl.compressed;
    request.follow_max = request.follow_max.max(curl.follow.unwrap_or(0));
    plan.tls.insecure |= curl.insecure;
}
