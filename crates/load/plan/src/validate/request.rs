//! Targets, requests, and expectations on responses.

use super::Problems;
use crate::rules::{check_regex, header_fault, method_fault};
use crate::urls::{LINES_MAX, WEIGHT_MAX};
use crate::{Auth, BodyRule, Expect, Plan, RequestPlan, TargetPlan, Verify};
use units::quoted;

pub(super) fn check(plan: &Plan, problems: &mut Problems) {
    check_targets(plan, problems);
    check_request(&plan.request, problems);
    problems.add_faults(plan, "request");
    check_doubles(plan, problems);
    check_auth(&plan.request, problems);
    check_proofs(plan, problems);
    check_bodies(plan, problems);
    check_expect(plan, problems);
    problems.add_if(
        plan.request.follow_max > 0 && plan.targets.iter().any(|target| target.raw.is_some()),
        "raw",
        "raw cannot be used with --follow: raw bytes cannot be sent to another URL; \
         drop one",
    );
}

fn check_targets(plan: &Plan, problems: &mut Problems) {
    problems.add_if(
        plan.targets.is_empty(),
        "--urls",
        "no URL is given; name one, or a --urls FILE",
    );
    if plan.targets.len() > LINES_MAX {
        problems.add("--urls", format!("the URL list has more than {LINES_MAX} URLs"));
    }
    // one wrong target is enough to report: a list may have a million
    let wrong = plan.targets.iter().enumerate().find_map(|(index, target)| {
        let (option, why) = target_fault(target)?;
        Some((option, format!("URL {} of the plan, {}, {why}", index + 1, quoted_url(target))))
    });
    if let Some((option, text)) = wrong {
        problems.add(option, text);
    }
}

fn target_fault(target: &TargetPlan) -> Option<(&'static str, String)> {
    let url = &target.url;
    if !matches!(url.scheme(), "http" | "https" | "ws" | "wss") {
        let why =
            format!("has the scheme {}; only http, https, ws and wss are supported", url.scheme());
        return Some(("URL", why));
    }
    if url.host_str().is_none_or(str::is_empty) {
        return Some(("URL", "has no host".to_owned()));
    }
    // raw requests come from a tool, which reports the system's refusal itself
    if url.port() == Some(0) && target.raw.is_none() {
        return Some(("URL", "has the port 0, which cannot be connected to".to_owned()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Some(("--user", "contains a login; give --user NAME:PASSWORD instead".to_owned()));
    }
    if !(target.weight > 0.0 && target.weight <= WEIGHT_MAX) {
        let why = format!("has the weight {}; it must be above 0", target.weight);
        return Some(("--urls", why));
    }
    if target.raw.as_ref().is_some_and(Vec::is_empty) {
        return Some(("raw", "has an empty raw request; leave it out".to_owned()));
    }
    if target.raw.is_some() && !target.headers.is_empty() {
        let why =
            "has headers and a raw request, which is sent unchanged; put them into the request";
        return Some(("headers", why.to_owned()));
    }
    if let Some(why) = target.method.as_deref().and_then(method_fault) {
        return Some(("--method", format!("has a method that cannot be sent: {why}")));
    }
    if target.headers.len() > HEADERS_MAX {
        return Some(("headers", "has more than 1000 headers; servers take about 100".to_owned()));
    }
    let fault = |(name, value): &(String, String)| Some((name.clone(), header_fault(name, value)?));
    let (name, why) = target.headers.iter().find_map(fault)?;
    Some(("headers", format!("has the header {}, which cannot be sent: {why}", quoted(&name))))
}

fn quoted_url(target: &TargetPlan) -> String {
    let mut url = target.url.clone();
    if url.password().is_some() && url.set_password(Some("***")).is_err() {
        return quoted(url.scheme());
    }
    quoted(url.as_str())
}

fn check_request(request: &RequestPlan, problems: &mut Problems) {
    if let Some(why) = method_fault(&request.method) {
        let text = format!("--method {} cannot be sent: {why}", quoted(&request.method));
        problems.add("--method", text);
    }
    problems.add_if(
        request.headers.len() > HEADERS_MAX,
        "-H",
        "-H is given more than 1000 times; servers take about 100 headers",
    );
    for (name, value) in &request.headers {
        if let Some(why) = header_fault(name, value) {
            problems.add("-H", format!("-H {} cannot be sent: {why}", quoted(name)));
        }
    }
    if let Some(why) = header_fault("User-Agent", &request.user_agent) {
        problems.add("--user-agent", format!("--user-agent cannot be sent: {why}"));
    }
    problems.add_if(
        !request.follow_auth.is_empty() && request.follow_max == 0,
        "--follow-auth",
        "--follow-auth needs --follow: without it no redirect is followed",
    );
    if request.priority.is_some() && has_header(&request.headers, "Priority") {
        let text = "-H 'Priority: …' and --priority both write that header; drop one".to_owned();
        problems.add("-H", text);
    }
}

/// Checks for headers that two places of the plan would write. A given Accept-Encoding replaces
/// that of `--compressed`, as in curl: Firefox copies both.
fn check_doubles(plan: &Plan, problems: &mut Problems) {
    let request = &plan.request;
    for (on, option, name) in [
        (request.auth.is_some(), "--user, --bearer or --digest", "Authorization"),
        (plan.uses_tokens(), "--token-url", "Authorization"),
        (request.cookies, "--cookies", "Cookie"),
    ] {
        if on && has_header(&request.headers, name) {
            let text = format!("-H '{name}: …' and {option} both write that header; drop one");
            problems.add("-H", text);
        }
        let own = plan.targets.iter().position(|target| has_header(&target.headers, name));
        if let Some(row) = own.filter(|_| on) {
            let text = format!(
                "the header {name} of URL {} of the plan and {option} both write it; drop one",
                row + 1
            );
            problems.add("headers", text);
        }
    }
}

fn has_header(headers: &[(String, String)], name: &str) -> bool {
    headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name))
}

/// Checks that requests can carry a proof, which is an additional field: of Digest, of a signature,
/// or a token.
fn check_proofs(plan: &Plan, problems: &mut Problems) {
    let option = match &plan.request.auth {
        Some(Auth::Digest { .. }) => "--digest",
        Some(Auth::AwsSigV4 { .. }) => "--aws-sigv4",
        _ if plan.uses_tokens() => "--token-url",
        _ => return,
    };
    let mut refuse = |wrong: bool, why: &str| {
        problems.add_if(wrong, option, &format!("{option} {why}"));
    };
    refuse(
        plan.targets.iter().any(|target| target.raw.is_some()),
        "cannot be used with requests that the plan gives as bytes, which are sent as they are; give them as \
         url, method and body",
    );
}

fn check_auth(request: &RequestPlan, problems: &mut Problems) {
    match &request.auth {
        None => {}
        Some(Auth::Basic { user, password }) => {
            // RFC 7617 §2: the first colon ends the user name; no control characters.
            problems.add_if(
                user.contains(':'),
                "--user",
                "--user has a colon in the name, which Basic authentication cannot carry",
            );
            problems.add_if(
                user.chars().chain(password.chars()).any(char::is_control),
                "--user",
                "--user has a control character, which Basic authentication cannot carry",
            );
        }
        Some(Auth::Digest { user, password }) => problems.add_if(
            user.chars().chain(password.chars()).any(char::is_control),
            "--digest",
            "--digest has a control character, which a field cannot carry",
        ),
        Some(Auth::AwsSigV4 { key, .. }) => problems.add_if(
            key.is_empty() || !key.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'/'),
            "--aws-sigv4",
            "--aws-sigv4 needs --user KEY:SECRET, with a key of visible characters without /",
        ),
        Some(Auth::Bearer(token)) => problems.add_if(
            token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()),
            "--bearer",
            "--bearer takes a token of visible ASCII characters without spaces (RFC 6750 §2.1)",
        ),
    }
}

/// Checks the size of bodies: requests are rendered before the run, twice each, and must fit into
/// memory.
fn check_bodies(plan: &Plan, problems: &mut Problems) {
    let default = plan.request.body.as_ref().map_or(0, Vec::len) as u64;
    let own = |target: &TargetPlan| target.body.as_ref().map_or(default, |body| body.len() as u64);
    let total = plan.targets.iter().map(own).fold(0u64, u64::saturating_add);
    if total > BODIES_MAX {
        let text = format!(
            "the bodies of all {} requests come to {}, more than {}; use a smaller --body or fewer \
             URLs",
            plan.targets.len(),
            units::show::bytes(total),
            units::show::bytes(BODIES_MAX),
        );
        problems.add("--body", text);
    }
    // RFC 9110 §9.3.8: a client must not send content in a TRACE request.
    let trace = |target: &TargetPlan| {
        target.method.as_deref().unwrap_or(&plan.request.method) == "TRACE"
            && (target.body.is_some() || plan.request.body.is_some())
    };
    problems.add_if(
        plan.targets.iter().any(trace),
        "--body",
        "--body cannot be used with --method TRACE, which has none (RFC 9110 §9.3.8); drop one",
    );
}

fn check_expect(plan: &Plan, problems: &mut Problems) {
    let Expect { status, length, body, verify } = &plan.expect;
    let wrong = |&(from, to): &(u16, u16)| from > to || from < 100 || to > 599;
    problems.add_if(
        status.iter().any(wrong),
        "--expect-status",
        "--expect-status takes statuses from 100 to 599, such as 200,204,300-399",
    );
    if let Some(BodyRule::Regex(expression)) = body
        && let Err(error) = check_regex(expression)
    {
        problems.add("--expect-body", format!("--expect-body: {error}"));
    }
    let head =
        |target: &TargetPlan| target.method.as_deref().unwrap_or(&plan.request.method) == "HEAD";
    let empty = BodyRule::Exact(Vec::new());
    let asks_for_body =
        body.as_ref().is_some_and(|rule| *rule != empty) || length.is_some_and(|count| count > 0);
    problems.add_if(
        asks_for_body && plan.targets.iter().any(head),
        "--expect-body",
        "--expect-body and --expect-length cannot be used with --method HEAD, whose responses have no \
         body; use GET, or drop the expectation",
    );
    if let (Some(length), Some(BodyRule::Exact(exact))) = (length, body)
        && *length != exact.len() as u64
    {
        let text = format!(
            "--expect-length {length} contradicts --expect-body exact:…, which has {} bytes; drop \
             one",
            exact.len()
        );
        problems.add("--expect-length", text);
    }
    if let Some(verify) = verify {
        check_verify(plan, verify, problems);
    }
}

fn check_verify(plan: &Plan, verify: &Verify, problems: &mut Problems) {
    let head =
        |target: &TargetPlan| target.method.as_deref().unwrap_or(&plan.request.method) == "HEAD";
    problems.add_if(
        plan.targets.iter().all(head),
        "--verify",
        "--verify cannot be used with --method HEAD, whose responses have no body; use GET, or drop it",
    );
    problems.add_if(
        plan.script.is_some(),
        "--verify",
        "--verify cannot be used with --script, whose requests are not known beforehand; drop one",
    );
    let knowledge = verify.knowledge();
    let unknown = plan.targets.iter().find_map(|target| knowledge.expected_body(target).err());
    if let Some(why) = unknown {
        problems.add("--verify", format!("--verify: {why}; add it, or leave that target out"));
    }
}

const HEADERS_MAX: usize = 1_000;
const BODIES_MAX: u64 = 1 << 30;
