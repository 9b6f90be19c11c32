//! Combinations with a script.

use super::Problems;
use crate::{AddressFamily, HttpVersion, Plan};

/// Maximum size of a script in bytes.
const TEXT_MAX: usize = 16 << 20;
/// Maximum number of its arguments.
const ARGS_MAX: usize = 1_000;

pub(super) fn check(plan: &Plan, problems: &mut Problems) {
    let Some(script) = &plan.script else { return };
    problems.add_if(script.text.len() > TEXT_MAX, "--script", "--script is longer than 16 MiB");
    problems.add_if(
        script.args.len() > ARGS_MAX,
        "--script",
        "--script is given more than 1000 arguments",
    );
    let (request, connection) = (&plan.request, &plan.connection);
    let raw = plan.targets.iter().any(|target| target.raw.is_some());
    let own = plan.targets.iter().any(|target| {
        target.method.is_some() || target.body.is_some() || !target.headers.is_empty()
    });
    let directed = connection.unix.is_some()
        || connection.proxy.is_some()
        || !connection.resolve.is_empty()
        || connection.prefer != AddressFamily::Any;
    for (wrong, option, why) in [
        (plan.targets.len() > 1, "--urls", "the script makes the requests"),
        (raw || own, "--urls", "a line of a list has its own method, headers, body or bytes"),
        (plan.load.session().is_some(), "--session", "a script makes single calls"),
        (connection.pipeline > 1, "--pipeline", "its text can hold several requests instead"),
        (connection.group.is_some_and(|group| group > 1), "--group", "its text can hold several"),
        (request.follow_max > 0, "--follow", "only the script knows its next request"),
        (request.cookies, "--cookies", "it can keep them itself, in response()"),
        (request.version == HttpVersion::Http10, "--http 1.0", "wrk.format() writes HTTP/1.1"),
        (request.version == HttpVersion::Http2, "--http 2", "it writes HTTP/1.1"),
        (request.version == HttpVersion::Auto, "--http auto", "it writes HTTP/1.1"),
        (request.version == HttpVersion::Http3, "--http 3", "it writes HTTP/1.1"),
        (directed, "--unix, --proxy, --resolve, -4 or -6", "a script looks the server up itself"),
    ] {
        if wrong {
            let text = format!("--script cannot be used with {option}: {why}; drop one");
            problems.add("--script", text);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::*;

    fn errors(change: impl Fn(&mut Plan)) -> Vec<String> {
        let mut plan = Plan::for_url("http://h/".parse().unwrap());
        let text = b"x = 1".to_vec();
        plan.script =
            Some(ScriptPlan { name: "x.lua".into(), text, args: Vec::new(), files: Vec::new() });
        change(&mut plan);
        let problems = validate(&plan).err().unwrap_or_default();
        problems.into_iter().map(|problem| problem.text).collect()
    }

    #[test]
    fn a_script_makes_single_calls_to_one_server() {
        assert!(errors(|_| {}).is_empty());
        assert!(errors(|plan| plan.request.body = Some(b"x".to_vec())).is_empty());
        let two = errors(|plan| plan.targets = vec![plan.targets[0].clone(); 2].into());
        let why = "--script cannot be used with --urls: the script makes the requests; drop one";
        assert_eq!(two, [why]);
        let session = errors(|plan| {
            let session = Some(SessionPlan::new(2, Think::None));
            plan.load = Load::Closed { users: 1, think: Think::None, session };
        });
        assert!(session[0].contains("--session"), "{session:?}");
        assert_eq!(errors(|plan| plan.request.version = HttpVersion::Http10).len(), 1);
        assert_eq!(errors(|plan| plan.connection.unix = Some("/s".into())).len(), 1);
        let args = errors(|plan| {
            plan.script.as_mut().unwrap().args = vec![String::new(); 1_001];
        });
        assert_eq!(args, ["--script is given more than 1000 arguments"]);
    }
}
