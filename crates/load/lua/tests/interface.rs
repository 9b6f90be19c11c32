//! The Lua interface as scripts use it, against a listener that only accepts connections.

use lua::{Director, Program, RecordedValues, RunSums, ScriptTrouble, Site};
use std::net::TcpListener;
use workload::Script;

struct Stage {
    _listener: TcpListener,
    site: Site,
}

fn stage() -> Stage {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    let port = listener.local_addr().expect("a bound socket has an address").port();
    let site = Site {
        scheme: "http".into(),
        host: "127.0.0.1".into(),
        port: Some(port.to_string()),
        path: "/start?x=1".into(),
        ..Site::default()
    };
    Stage { _listener: listener, site }
}

fn program(text: &str) -> Program {
    Program { name: "t.lua".into(), text: Ok(text.as_bytes().to_vec()) }
}

type LoadedScript = (Director, Vec<Box<dyn Script>>, Vec<String>);

fn make_states(text: &str, threads: u32, args: &[&str]) -> Result<LoadedScript, ScriptTrouble> {
    let stage = stage();
    let program = program(text);
    let mut lines = Vec::new();
    let mut complain = |text: &str| lines.push(text.to_owned());
    let mut director = Director::new(&program, &stage.site, &mut complain)?;
    let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
    let parts = director.make_states(&program, &stage.site, threads, &args, &mut complain)?;
    Ok((director, parts, lines))
}

fn asked(part: &mut Box<dyn Script>) -> String {
    let mut out = Vec::new();
    part.request(&mut out).expect("the script makes a request");
    String::from_utf8(out).expect("the test's requests are text")
}

fn first_line(part: &mut Box<dyn Script>) -> String {
    asked(part).lines().next().unwrap_or_default().to_owned()
}

fn trouble(text: &str) -> String {
    match make_states(text, 1, &["URL"]) {
        Err(trouble) => format!("{trouble:?}"),
        Ok((.., found)) => found.join("; "),
    }
}

#[test]
fn without_functions_the_request_is_the_same_each_time() {
    let (_, mut parts, found) =
        make_states("wrk.method = 'POST' wrk.body = 'abc'", 2, &["URL"]).unwrap();
    assert!(found.is_empty());
    let wants = parts[0].wants();
    assert_eq!((wants.pauses, wants.responses, wants.requests), (false, false, 1));
    for part in &mut parts {
        let text = asked(part);
        assert!(text.starts_with("POST /start?x=1 HTTP/1.1\r\n"), "{text}");
        assert!(text.contains("Content-Length: 3\r\n") && text.contains("Host: 127.0.0.1:"));
        assert!(text.ends_with("\r\n\r\nabc"), "{text}");
    }
}

#[test]
fn requests_use_the_thread_prepared_by_setup() {
    let text = "
        local next_id = 0
        function setup(thread)
          thread:set('id', next_id)
          thread:set('list', {a = {7, 'x', true}})
          next_id = next_id + 1
        end
        function init(args) first, second = args[0], args[1] end
        function request() n = (n or 0) + 1 return wrk.format(nil, '/' .. id .. '/' .. n .. list.a[2] .. second) end";
    let (_, mut parts, _) = make_states(text, 2, &["URL", "arg"]).unwrap();
    let lines = [0, 1, 1].map(|row| first_line(&mut parts[row]));
    assert_eq!(lines, ["GET /0/2xarg HTTP/1.1", "GET /1/1xarg HTTP/1.1", "GET /1/2xarg HTTP/1.1"]);
}

#[test]
fn responses_influence_later_requests() {
    let text = "
        request = function() return wrk.format('GET', path or '/login') end
        response = function(status, headers, body)
          if status == 200 then path = '/in/' .. headers['X-Token'] .. '/' .. body end
        end
        function delay() return 25 end";
    let (_, mut parts, _) = make_states(text, 1, &["URL"]).unwrap();
    let part = &mut parts[0];
    assert!(part.wants().responses && part.wants().pauses);
    assert_eq!(first_line(part), "GET /login HTTP/1.1");
    part.response(200, b"HTTP/1.1 200 OK\r\nX-Token:  t7\r\n\r\n", b"body").unwrap();
    assert_eq!(first_line(part), "GET /in/t7/body HTTP/1.1");
    assert_eq!(part.pause().unwrap(), units::Nanos::from_millis(25));
}

#[test]
fn a_thread_can_stop_itself_and_choose_its_address() {
    let text = "
        function setup(thread)
          local all = wrk.lookup('127.0.0.1', wrk.port)
          assert(wrk.connect(all[1]) and tostring(all[1]) == '127.0.0.1:' .. wrk.port)
          thread.addr = all[1]
          assert(tostring(thread.addr) == tostring(wrk.addrs[1]))
        end
        function response() wrk.thread:stop() assert(wrk.thread.addr) end";
    let (_, mut parts, _) = make_states(text, 1, &["URL"]).unwrap();
    assert!(!parts[0].stopped() && parts[0].peer().is_some());
    parts[0].response(204, b"HTTP/1.1 204 No Content\r\n\r\n", b"").unwrap();
    assert!(parts[0].stopped());
}

#[test]
fn several_requests_in_one_text_are_counted() {
    let text = "function init() local r = wrk.format() req = r .. r .. r end
        function request() return req end";
    let (_, parts, _) = make_states(text, 1, &["URL"]).unwrap();
    assert_eq!(parts[0].wants().requests, 3);
}

#[test]
fn done_gets_the_figures_and_reaches_into_the_threads() {
    let text = "
        local threads = {}
        function setup(thread) threads[#threads + 1] = thread end
        function init() count = 0 end
        function request() count = count + 1 return wrk.format() end
        function done(summary, latency, requests)
          assert(summary.duration == 5 and summary.requests == 6 and summary.bytes == 7)
          assert(summary.errors.timeout == 12 and summary.errors.connect == 8)
          assert(latency.min == 10 and latency.max == 30 and latency.mean == 17 and latency.stdev == 2)
          assert(latency:percentile(50) == 20 and #latency == 3 and latency[3] == 30)
          local value, count = latency(2)
          assert(value == 20 and count == 4 and #requests == 0 and latency.unknown == nil)
          assert(threads[1]:get('count') == 3 and threads[2]:get('count') == 0)
          assert(threads[1]:get('nothing') == nil)
        end";
    let (director, mut parts, _) = make_states(text, 2, &["URL"]).unwrap();
    // the first text of the first thread is parsed before the run
    let asked = [first_line(&mut parts[0]), first_line(&mut parts[0])];
    assert_eq!(asked[0], asked[1]);
    assert!(director.wants_done());
    let errors = lua::Errors { connect: 8, read: 9, write: 10, status: 11, timeout: 12 };
    let figures = RunSums { duration_us: 5, requests: 6, bytes: 7, errors };
    let latency =
        RecordedValues { values: vec![(10, 5), (20, 4), (30, 1)], mean: 17.0, stdev: 2.0 };
    director.done(&figures, latency, RecordedValues::default()).unwrap();
    let wrong = make_states("function done() error('no') end", 1, &["URL"]).unwrap().0;
    let error =
        wrong.done(&figures, RecordedValues::default(), RecordedValues::default()).unwrap_err();
    assert_eq!(error, ScriptTrouble::Script("t.lua:1: no".into()));
}

#[test]
fn errors_name_their_line() {
    let cases = [
        // an error in the text itself: reported for both states, and the run continues without the
        // script
        ("x = = 1", "t.lua:1: unexpected symbol near '='; t.lua:1: unexpected symbol near '='"),
        ("\nerror('boom')", "t.lua:2: boom; t.lua:2: boom"),
        ("function setup() error('in setup') end", "Script(\"t.lua:1: in setup\")"),
        (
            "function init() local x = nil\n x.y = 1 end",
            "Script(\"t.lua:2: attempt to index local 'x' (a nil value)\")",
        ),
        (
            "function setup(t)\n t:set('f', print) end",
            "Script(\"t.lua:2: cannot transfer 'function' to thread\")",
        ),
        (
            "function setup(t) local l = {} l.l = l\n\n t:set('f', l) end",
            "Script(\"t.lua:3: cannot transfer a table nested this deep\")",
        ),
        (
            "request = function() return 'garbage here' end",
            "Request(\"invalid HTTP method at 1:1\")",
        ),
        ("request = function() end", "Request(\"incomplete request at 1:1\")"),
        ("wrk.addrs = nil function wrk.resolve() wrk.addrs = {} end", ""),
    ];
    for (text, expected) in cases {
        let found = trouble(text);
        if expected.is_empty() {
            assert!(found.starts_with("Connect(\"127.0.0.1:"), "{found}");
        } else {
            assert_eq!(found, expected, "{text}");
        }
    }
}

#[test]
fn errors_during_the_run_are_reported() {
    let text = "function request() n = (n or 0) + 1 if n > 1 then error('late') end return wrk.format() end
        function response() local t = nil\nreturn t.x end
        function delay() error({}) end";
    let (_, mut parts, _) = make_states(text, 1, &["URL"]).unwrap();
    let part = &mut parts[0];
    assert_eq!(part.request(&mut Vec::new()).unwrap_err().0, "t.lua:1: late");
    let error = part.response(200, b"HTTP/1.1 200 OK\r\n\r\n", b"").unwrap_err();
    assert_eq!(error.0, "t.lua:3: attempt to index local 't' (a nil value)");
    assert!(part.pause().is_err());
}

#[test]
fn a_script_that_never_ends_its_start_is_ended() {
    assert_eq!(
        trouble("function init() while true do end end"),
        "Script(\"t.lua:1: the script does not finish loading\")"
    );
}

#[test]
fn unknown_names_and_missing_servers_are_reported() {
    let mut stage = stage();
    let mut quiet = |_: &str| {};
    stage.site.port = Some("nonsense".into());
    let error = Director::new(&program(""), &stage.site, &mut quiet).unwrap_err();
    let text = "127.0.0.1:nonsense Servname not supported for ai_socktype";
    assert_eq!(error, ScriptTrouble::Resolve(text.into()));
    // port 1: a service unused for decades, and a port that the kernel never assigns
    stage.site.port = Some("1".into());
    let error = Director::new(&program(""), &stage.site, &mut quiet).unwrap_err();
    assert_eq!(error, ScriptTrouble::Connect("127.0.0.1:1 Connection refused".into()));
}
