use super::{Interpreter, InterpreterLimits, InterpreterSettings};
use crate::cgi::Complain;
use crate::exchange::{Ask, Content, Entity, Reply};
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::http::{Method, Version};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Longer than any script of these tests takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

type Log = Arc<Mutex<Vec<String>>>;

fn ask(method: Method, query: Option<&str>, body: &str) -> Ask {
    let mut headers = HeaderMap::new();
    headers.append(HeaderName::from_static("x-a"), HeaderValue::from_static("1"));
    headers.append(HeaderName::from_static("x-a"), HeaderValue::from_static("2"));
    let body = if body.is_empty() { Entity::None } else { Entity::Memory(body.to_owned().into()) };
    Ask {
        method,
        version: Version::HTTP_11,
        path: "/lua/more".to_owned(),
        node_path: "/lua".to_owned(),
        rest: "/more".to_owned(),
        query: query.map(str::to_owned),
        headers,
        body,
        peer: "192.0.2.7:2525".parse().expect("an address"),
        local: "192.0.2.1:2020".parse().expect("an address"),
        user: Some("fred".to_owned()),
    }
}

fn load(path: &Path, limits: InterpreterLimits, log: &Log) -> Result<Interpreter, String> {
    let log = Arc::clone(log);
    let complain: Complain = Arc::new(move |line: &str| {
        log.lock().unwrap_or_else(PoisonError::into_inner).push(line.to_owned());
    });
    Interpreter::new(InterpreterSettings { script: path.to_owned(), limits, complain })
}

fn started(script: &str, limits: InterpreterLimits) -> (Result<Interpreter, String>, Log) {
    let folder = tempfile::tempdir().expect("a folder in the tmp directory");
    let path = folder.path().join("x.lua");
    std::fs::write(&path, script).expect("the script is written");
    let log = Log::default();
    let interpreter = load(&path, limits, &log);
    let dir = folder.path().display().to_string();
    (interpreter.map_err(|error| error.replace(&dir, "DIR")), log)
}

fn one_thread() -> InterpreterLimits {
    InterpreterLimits { threads: 1, time: PATIENCE, ..InterpreterLimits::default() }
}

fn shown(reply: Reply) -> String {
    let mut text = reply.status.as_u16().to_string();
    for (name, value) in &reply.headers {
        text.push_str(&format!(" | {name}: {}", String::from_utf8_lossy(value.as_bytes())));
    }
    match reply.content {
        Content::Empty => {}
        Content::Bytes(bytes) => text.push_str(&format!(" | {}", String::from_utf8_lossy(&bytes))),
        other => panic!("a script has no such content: {other:?}"),
    }
    text
}

/// Returns the response of a script to a plain GET, and the log.
async fn answered(script: &str) -> (String, String) {
    let (interpreter, log) = started(script, one_thread());
    let interpreter = interpreter.expect("the script is right");
    let reply = interpreter.answer(ask(Method::GET, None, "")).await;
    let log = log.lock().unwrap_or_else(PoisonError::into_inner).join("\n");
    (shown(reply), log)
}

#[tokio::test]
async fn a_script_sees_the_request_and_makes_the_response() {
    let script = r#"
        function answer(r)
            local seen = { r.method, r.path, r.path_info, tostring(r.query), r.headers["x-a"], r.body, r.peer, r.user }
            print("seen", 1, nil, {})
            return 201, { ["X-B"] = 7, ["content-type"] = "text/plain", Date = "x", ["Content-Length"] = 3 },
                table.concat(seen, "|")
        end"#;
    let (interpreter, log) = started(script, one_thread());
    let interpreter = interpreter.unwrap();
    let reply = interpreter.answer(ask(Method::POST, Some("a=%20"), "body")).await;
    let expected = "201 | content-type: text/plain | x-b: 7 | POST|/lua/more|/more|a=%20|1, 2|body|192.0.2.7|fred";
    assert_eq!(shown(reply), expected);
    let reply = interpreter.answer(ask(Method::GET, None, "")).await;
    assert!(shown(reply).contains("|/more|nil|"));
    assert_eq!(log.lock().unwrap()[0], "interpreter: seen 1 ? ?");
}

#[tokio::test]
async fn it_is_kept_between_requests() {
    let (interpreter, _) = started(
        "local count = 0\nfunction answer() count = count + 1 return 200, nil, count end",
        one_thread(),
    );
    let interpreter = interpreter.unwrap();
    for expected in ["200 | 1", "200 | 2", "200 | 3"] {
        assert_eq!(shown(interpreter.answer(ask(Method::GET, None, "")).await), expected);
    }
}

#[test]
fn load_errors_name_their_line() {
    let error = |script: &str| started(script, one_thread()).0.map(|_| ()).unwrap_err();
    let found = error("x = 1\nfunction answer( return 1 end");
    assert!(found.starts_with("DIR/x.lua:2: "), "{found}");
    assert_eq!(error("x = 1"), "DIR/x.lua defines no function answer(request)");
    assert_eq!(error("answer = 1"), "DIR/x.lua defines no function answer(request)");
    let found = error("\nerror('no')");
    assert!(found.contains("DIR/x.lua:2: no"), "{found}");
    let found = error("\u{1b}LJ\u{2}");
    assert!(found.contains("DIR/x.lua"), "{found}");
    let missing = load(Path::new("/no/such.lua"), one_thread(), &Log::default());
    let found = missing.map(|_| ()).unwrap_err();
    assert!(found.starts_with("cannot read /no/such.lua: No such file"), "{found}");
    let short = InterpreterLimits { time: Duration::from_millis(50), ..one_thread() };
    let found = started("while true do end", short).0.map(|_| ()).unwrap_err();
    assert!(found.contains("took longer than its time limit"), "{found}");
}

#[tokio::test]
async fn a_script_reaches_nothing_outside() {
    let script = r#"
        function answer()
            local found = {}
            for _, name in ipairs({ "io", "os", "package", "require", "module", "ffi", "jit", "debug", "load",
                "loadstring", "loadfile", "dofile", "collectgarbage", "newproxy", "xpcall" }) do
                if _G[name] ~= nil then found[#found + 1] = name end
            end
            if string.dump then found[#found + 1] = "string.dump" end
            return 200, nil, "reaches: " .. table.concat(found, " ")
        end"#;
    assert_eq!(answered(script).await.0, "200 | reaches: ");
}

#[tokio::test]
async fn an_invalid_response_is_a_logged_server_error() {
    for (body, found) in [
        ("error('oh no')", "x.lua:1: oh no"),
        ("error({})", "interpreter"),
        ("return nil + 1", "attempt to perform arithmetic on a nil value"),
        ("", "no status from 200 to 599"),
        ("return 'x'", "no status from 200 to 599"),
        ("return 100", "no status from 200 to 599"),
        ("return 200.5", "no status from 200 to 599"),
        ("return 0/0", "no status from 200 to 599"),
        ("return 200, 'x'", "no table of fields"),
        ("return 200, { ['a b'] = 1 }", "returned \"a b\", which is not a field"),
        ("return 200, { a = 'x\\r\\ny: z' }", "returned \"a\", which is not a field"),
        ("return 200, { a = {} }, {}", "no string as its third value"),
        (
            "local t = {} for i = 1, 200 do t['x' .. i] = i end return 200, t",
            "more than 100 fields",
        ),
        ("local function f() return f() + 1 end return f()", "stack overflow"),
        ("return 200, nil, ('x'):rep(1e9)", "more memory than its limit"),
        (
            "local t = {} while true do t[#t + 1] = ('x'):rep(1000) .. #t end",
            "more memory than its limit",
        ),
    ] {
        let (reply, log) = answered(&format!("function answer(request) {body} end")).await;
        assert!(reply.starts_with("500 | "), "{body}: {reply}");
        assert!(log.contains(found), "{body}: {log}");
    }
}

#[tokio::test]
async fn an_endless_script_is_ended_and_the_next_request_served() {
    let limits = InterpreterLimits { time: Duration::from_millis(200), ..one_thread() };
    let script = r#"
        function answer(request)
            local forever = function() while true do end end
            if request.query == "plain" then forever() end
            if request.query == "caught" then while true do pcall(forever) end end
            if request.query == "coroutine" then while true do coroutine.wrap(forever)() end end
            if request.query == "resume" then
                while true do coroutine.resume(coroutine.create(forever)) end
            end
            return 200, nil, "well"
        end"#;
    let (interpreter, log) = started(script, limits);
    let interpreter = interpreter.unwrap();
    for query in ["plain", "caught", "coroutine", "resume"] {
        let reply = shown(interpreter.answer(ask(Method::GET, Some(query), "")).await);
        assert_eq!(
            reply, "500 | content-type: text/plain; charset=utf-8 | The script took too long.\n",
            "{query}"
        );
        let reply = shown(interpreter.answer(ask(Method::GET, None, "")).await);
        assert_eq!(reply, "200 | well", "{query}");
    }
    let log = log.lock().unwrap().join("\n");
    assert_eq!(log.matches("took longer than its time limit").count(), 4, "{log}");
}

#[tokio::test]
async fn a_long_body_is_refused() {
    let limits = InterpreterLimits { body: 3, ..one_thread() };
    let (interpreter, _) = started("function answer(r) return 200, nil, r.body end", limits);
    let interpreter = interpreter.unwrap();
    assert_eq!(shown(interpreter.answer(ask(Method::POST, None, "abc")).await), "200 | abc");
    assert!(shown(interpreter.answer(ask(Method::POST, None, "abcd")).await).starts_with("413 | "));
}

#[tokio::test]
async fn a_full_queue_refuses_and_a_disconnect_frees_the_thread() {
    let script = "function answer(r) while not r.query do end return 200, nil, 'well' end";
    let (interpreter, _) = started(script, InterpreterLimits { queue: 1, ..one_thread() });
    let interpreter = Arc::new(interpreter.unwrap());
    let mut responses = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let interpreter = Arc::clone(&interpreter);
        responses.spawn(async move { interpreter.answer(ask(Method::GET, None, "")).await });
    }
    // at most one runs and one waits
    for _ in 0..6 {
        let reply = responses.join_next().await.expect("eight were asked").unwrap();
        assert!(reply.status == 503 && reply.headers.contains_key("retry-after"), "{reply:?}");
    }
    drop(responses);
    let start = std::time::Instant::now();
    loop {
        let reply = shown(interpreter.answer(ask(Method::GET, Some("end"), "")).await);
        if reply == "200 | well" {
            break;
        }
        assert!(reply.starts_with("503 ") && start.elapsed() < PATIENCE, "{reply}");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn the_trees_form_requests_a_name_and_greets() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tree/scripts/form.lua");
    let interpreter = load(&path, one_thread(), &Log::default()).unwrap();
    for (sent, greeting) in [
        ("", "What is your name?"),
        ("given=Fred&family=Flintstone&Submit=Send", "Hello Fred Flintstone"),
        ("family=Flintstone", "Hello Flintstone"),
        (
            "given=%3Cb%3E+J%C3%BCrgen&family=%26%22%00%0A%zz%4",
            "Hello &lt;b&gt; Jürgen &amp;&quot;%zz%4",
        ),
        ("given=%251&family=%d", "Hello %1 %d"),
    ] {
        for ask in [ask(Method::POST, None, sent), ask(Method::GET, Some(sent), "")] {
            let page = shown(interpreter.answer(ask).await);
            assert!(page.starts_with("200 | content-type: text/html; charset=utf-8 | "), "{page}");
            assert!(page.contains(&format!("<h1>{greeting}</h1>")), "{sent}: {page}");
        }
    }
}
