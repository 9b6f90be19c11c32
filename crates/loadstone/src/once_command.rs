//! `loadstone once`: one call, shown from the request to the end of the response.

use crate::exit::{Code, Failure};
use crate::files;
use args::{OnceArgs, trust};
use engine::exchange::{Caller, ExchangeOutcome, Message, Outgoing, Reply};
use plan::{HttpVersion, Masker, Plan};
use session::{Env, Session};
use std::sync::Arc;
use units::show::{self, safe};
use workload::Template;

/// Maximum number of bytes shown of a body.
const BODY_MAX: usize = 64 << 10;

/// Makes the call and prints it.
pub(crate) fn once(args: &OnceArgs) -> Result<Code, Failure> {
    let (mut plan, outputs) = args.plan()?;
    crate::use_proxy(&mut plan, &outputs)?;
    let mut ways = Vec::new();
    if plan.request.version == HttpVersion::Auto || plan.connection.proxy.is_some() {
        let env = Arc::new(Env::without_calibration());
        let mut session = Session::open(&plan, "", &env).map_err(Failure::from_run)?;
        session.negotiate()?;
        plan = (**session.plan()).clone();
        ways = session.endpoints().to_vec();
    }
    let target = &plan.targets[0];
    let (method, body) = (&plan.request.method, plan.request.body.as_deref());
    let absolute = plan.connection.proxy.is_some() && !plan::is_secure(&target.url);
    let template =
        engine::build_template(&plan, &target.url, method, &target.headers, body, 0, absolute)
            .map_err(|error| Failure::usage(error.to_string()))?;
    let caller = crate::caller::Caller::new(plan.timeouts.connect, trust(&plan));
    let mut caller = caller.map_err(Failure::usage)?;
    if !ways.is_empty() {
        let elsewhere = |url: &url::Url| Err(format!("{url} is another server"));
        caller = caller.by_plan(&ways, Box::new(elsewhere));
    }
    let message = Message::new(template.clone(), None);
    let (url, timeout) = (target.url.clone(), plan.timeouts.call);
    let outgoing = Outgoing { url, message, timeout, negotiates: false };
    let heard = caller.exchange(vec![outgoing]).pop();
    let Some(heard) = heard else { return Ok(Code::Interrupted) };
    let text = format_exchange(&plan, &template, &heard);
    files::write_stdout(&text).map_err(|error| Failure::not_written(&error))?;
    Ok(code(&plan, &heard))
}

/// Returns the exit code; a status that the plan expects is a success.
fn code(plan: &Plan, heard: &ExchangeOutcome) -> Code {
    let ranges = &plan.expect.status;
    let expected = |status: u16| match ranges.is_empty() {
        true => status < 400,
        false => ranges.iter().any(|(low, high)| (*low..=*high).contains(&status)),
    };
    match &heard.result {
        Ok(reply) if expected(reply.facts.status) => Code::Done,
        Err(_) if !heard.connected => Code::NoConnection,
        _ => Code::Missed,
    }
}

/// Formats the request after `>`, the head of the response after `<`, the body, and the duration,
/// without the secrets of the request.
fn format_exchange(plan: &Plan, template: &Template, heard: &ExchangeOutcome) -> String {
    let mut secrets = Masker::new(plan);
    secrets.add_request(&template.last);
    let request = String::from_utf8_lossy(&template.last);
    let (head, body) = request.split_once("\r\n\r\n").unwrap_or((&request, ""));
    let version = plan.request.version.name();
    let mut lines = head.lines();
    let first = lines.next().unwrap_or_default();
    let first = first.rsplit_once(' ').map_or(first, |(start, _)| start);
    let mut text = format!("> {} {version}\n", safe(&secrets.text(first)));
    lines.for_each(|line| text += &format!("> {}\n", safe(&secrets.field(line))));
    text += ">\n";
    if !body.is_empty() {
        text += &content(body.as_bytes(), &secrets);
    }
    match &heard.result {
        Ok(reply) => text += &answer(reply, &secrets),
        Err(trouble) => {
            text += &format!("no response: {}\n", safe(&trouble.text));
            text += &trouble.fix_text.map_or(String::new(), |fix| format!("{fix}\n"));
        }
    }
    if heard.connected {
        text += &format!("took {}\n", show::duration(heard.took));
    }
    text
}

fn answer(reply: &Reply, secrets: &Masker) -> String {
    let head = String::from_utf8_lossy(&reply.head);
    let mut text = String::new();
    for line in head.lines().filter(|line| !line.is_empty()) {
        text += &format!("< {}\n", safe(&secrets.field(line)));
    }
    text + "<\n" + &content(&reply.body, secrets)
}

/// Returns a body that is text, or else its length.
fn content(body: &[u8], secrets: &Masker) -> String {
    if body.is_empty() {
        return String::new();
    }
    let Ok(text) = std::str::from_utf8(body) else {
        return format!("({}, not UTF-8 text)\n", show::bytes(body.len() as u64));
    };
    let text = secrets.text(text);
    let mut end = text.len().min(BODY_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let mut shown: String = text[..end].lines().map(|line| format!("{}\n", safe(line))).collect();
    if end < text.len() {
        shown += &format!("({} more)\n", show::bytes((text.len() - end) as u64));
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_shown_as_text_or_by_its_length() {
        let content = |body: &[u8]| content(body, &Masker::default());
        assert_eq!(content(b""), "");
        assert_eq!(content(b"one\r\ntwo"), "one\ntwo\n");
        assert_eq!(content(&[0xff, 0xfe, 0, 1]), "(4 B, not UTF-8 text)\n");
        let long = "é".repeat(BODY_MAX);
        assert!(content(long.as_bytes()).ends_with("(64.0 KiB more)\n"));
        assert!(!content(b"no \x1b[31m escapes").contains('\x1b'));
    }

    /// Returns the request of a plan, and the text that is shown if its connection is refused.
    fn refused(plan: &Plan) -> (Template, String) {
        let url = &plan.targets[0].url;
        let template = engine::build_template(plan, url, "GET", &[], None, 0, false).unwrap();
        let failed = engine::exchange::ExchangeError::new(
            sample::FailureClass::Refused,
            "connection refused".to_owned(),
        );
        let text = format_exchange(plan, &template, &ExchangeOutcome::nothing(failed));
        (template, text)
    }

    #[test]
    fn the_login_is_masked_also_where_the_server_repeats_it() {
        let mut plan = Plan::for_url(url::Url::parse("http://h:8080/a?token=quer1").unwrap());
        plan.request.auth = Some(plan::Auth::Bearer("s3cr3t-token".to_owned()));
        let (template, text) = refused(&plan);
        assert!(text.starts_with("> GET /a?token=*** HTTP/1.1\n"), "{text}");
        assert!(text.to_lowercase().contains("\n> authorization: ***\n"), "{text}");
        let mut secrets = Masker::new(&plan);
        secrets.add_request(&template.last);
        let page = content(b"you sent Bearer s3cr3t-token to ?token=quer1", &secrets);
        assert_eq!(page, "you sent *** to ?token=***\n");
    }

    #[test]
    fn the_request_is_shown_in_the_version_that_was_sent() {
        let mut plan = Plan::for_url(url::Url::parse("http://h:8080/a?b=1").unwrap());
        plan.request.version = HttpVersion::Http2;
        let (_, text) = refused(&plan);
        assert!(text.starts_with("> GET /a?b=1 HTTP/2\n> "), "{text}");
        assert!(text.contains("no response: connection refused\n"), "{text}");
        assert!(!text.contains("took "), "{text}");
    }
}
