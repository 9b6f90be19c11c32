//! Journeys by a script, one call after another: events in, actions out.

use lua::{JourneySpec, LuaActor, Outline, outline};
use units::Nanos;
use workload::{
    ActedCall, Actor, ActorAction, ActorTurn, CallResponse, IterationStart, SocketAction,
};

fn spec(text: &str, steps: &[&str]) -> JourneySpec {
    JourneySpec {
        name: "t.lua".into(),
        text: text.as_bytes().to_vec(),
        args: vec!["one".into()],
        steps: steps.iter().map(|step| (*step).to_owned()).collect(),
        base: "http://a.example:81/shop/".parse().expect("a URL"),
        servers: vec!["https://b.example".parse().expect("a URL")],
        given: vec![("key".into(), "k1".into())],
        seed: 7,
        aside: true,
    }
}

fn actor(text: &str, steps: &[&str]) -> LuaActor {
    match LuaActor::new(&spec(text, steps)) {
        Ok(actor) => actor,
        Err(trouble) => panic!("{trouble}"),
    }
}

fn begin(actor: &mut LuaActor, user: u64, iteration: u64) -> ActorTurn {
    let values = [("people.name".to_owned(), "ann".to_owned())];
    actor.begin(&IterationStart { user, iteration, values: &values })
}

fn response(actor: &mut LuaActor, user: u64, status: u16, head: &str, body: &str) -> ActorTurn {
    let head = format!("HTTP/1.1 {status} X\r\n{head}\r\n");
    let (head, body) = (head.as_bytes(), body.as_bytes());
    let took = Nanos::from_millis(250);
    actor.resume(user, Ok(&CallResponse { status, head, body, took, error: None }))
}

fn call(act: ActorTurn) -> ActedCall {
    match act.action {
        ActorAction::Call(call) => *call,
        other => panic!("no call: {other:?}"),
    }
}

/// Returns the action as one line.
fn line(act: ActorTurn) -> String {
    let mut line = match act.action {
        ActorAction::Call(call) => {
            let body = call.body.map(|body| String::from_utf8_lossy(&body).into_owned());
            let fields: Vec<String> =
                call.headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
            let parts = [
                format!("{} {} for step {}", call.method, call.url, call.step),
                fields.join("; "),
                body.unwrap_or_default(),
                if call.wait.is_zero() { String::new() } else { format!("after {}", call.wait.0) },
            ];
            parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" | ")
        }
        ActorAction::Over { wait } => format!("over, {} later", wait.0),
        ActorAction::Abort(why) => panic!("{why}"),
        ActorAction::Broke(why) => format!("broke: {why}"),
    };
    if let Some(failure) = act.failure {
        line = format!("failed ({failure}) {line}");
    }
    for check in act.checks {
        line = format!("check {} {line}", check.as_deref().unwrap_or("met"));
    }
    line
}

const VISIT: &str = "
function init(args) greeting = args[1] end

function journey(user)
  if not user.token then
    local login = user:post('/login', { name = 'log in', form = { b = 2, a = 'x y' } })
    user.token = login.body:match('token=(%w+)')
    if not user.token then return user:fail('no token in ' .. login.body) end
  end
  user:sleep(0.5)
  local me = user:get('me', {
    name = 'who am I', query = { q = greeting }, headers = { Authorization = 'Bearer ' .. user.token },
  })
  user:check(me:json().name == user:value('people.name'), 'another name: ' .. me.body)
  if me.headers['x-a'] ~= '1, 2' or me.time ~= 0.25 then user:fail('fields') end
  user:put('https://b.example/x', { name = 'who am I', json = { n = user.number, key = user:value('key') } })
  user:sleep(2)
end";

#[test]
fn a_user_keeps_values_and_waits_for_responses() {
    let steps = ["log in", "who am I"];
    let mut actor = actor(VISIT, &steps);
    assert_eq!(
        line(begin(&mut actor, 4, 0)),
        "POST http://a.example:81/login for step 0 | Content-Type: \
         application/x-www-form-urlencoded | a=x+y&b=2"
    );
    // another user runs in between
    assert!(line(begin(&mut actor, 5, 1)).starts_with("POST"));
    assert_eq!(
        line(response(&mut actor, 4, 200, "", "token=t4")),
        "GET http://a.example:81/shop/me?q=one for step 1 | Authorization: Bearer t4 | after \
         500000000"
    );
    assert_eq!(line(response(&mut actor, 5, 200, "", "?")), "failed (no token in ?) over, 0 later");
    assert_eq!(
        line(response(&mut actor, 4, 200, "X-A: 1\r\nx-a: 2\r\n", "{\"name\": \"bob\"}")),
        "check another name: {\"name\": \"bob\"} PUT https://b.example/x for step 1 | Content-Type: \
         application/json | {\"key\":\"k1\",\"n\":4}"
    );
    assert_eq!(line(response(&mut actor, 4, 204, "", "")), "over, 2000000000 later");
    // the next iteration still has the token
    assert!(line(begin(&mut actor, 4, 2)).starts_with("GET http://a.example:81/shop/me"));
    assert_eq!(
        line(response(&mut actor, 4, 200, "X-A: 1\r\nx-a: 2\r\n", "{\"name\": \"ann\"}")),
        "check met PUT https://b.example/x for step 1 | Content-Type: application/json | \
         {\"key\":\"k1\",\"n\":4}"
    );
}

/// IDs of this size are common; as doubles they would become other IDs.
#[test]
fn integers_beyond_doubles_keep_their_digits() {
    let text = "
function journey(user)
  local got = user:get('/'):json()
  local same = user:post('/use/' .. got.id, { query = { q = got.id }, json = { all = { got.id, got.low, got.n } } })
  user:check(same:json().id == got.id, 'another')
  user:check(same:json().more > got.id and got.id <= same:json().more, 'order')
  user:check(got.id + 1 == 438544484291054296, 'sum')
  user:get(tostring(got.u))
end";
    let mut actor = actor(text, &["request"]);
    begin(&mut actor, 0, 0);
    let body = r#"{"id": 438544484291054295, "low": -9223372036854775808, "u": 18446744073709551615, "n": 9007199254740992}"#;
    assert_eq!(
        line(response(&mut actor, 0, 200, "", body)),
        "POST http://a.example:81/use/438544484291054295?q=438544484291054295 for step 0 | Content-Type: \
         application/json | {\"all\":[438544484291054295,-9223372036854775808,9007199254740992]}"
    );
    let body = r#"{"id": 438544484291054295, "more": 438544484291054296}"#;
    assert_eq!(
        line(response(&mut actor, 0, 200, "", body)),
        "check met check met check met GET http://a.example:81/shop/18446744073709551615 for step 0"
    );
}

const FOLLOW: &str = "t.lua:2: follow is true, or how many redirects are followed at most";

#[test]
fn errors_name_their_line_and_end_the_iteration() {
    let describe = |body: &str, steps: &[&str]| {
        let mut actor = actor(&format!("function journey(user)\n{body}\nend"), steps);
        let act = begin(&mut actor, 0, 0);
        assert!(line(begin(&mut actor, 1, 1)).starts_with("broke"), "the state goes on");
        line(act)
    };
    let two = ["a", "b"];
    for (body, outcome) in [
        ("local x = nil + 1", "t.lua:2: attempt to perform arithmetic on a nil value"),
        ("user:get('/')", "t.lua:2: give name, which is one of the steps: a, b"),
        ("\nuser:get('/', { name = 'c' })", "t.lua:3: \"c\" is not in steps, which are: a, b"),
        ("user:get('/', { nam = 'a' })", "t.lua:2: there is no option nam"),
        ("user:get(nil, { name = 'a' })", "t.lua:2: a URL is a text, not nil"),
        (
            "user:get('http://c.example/', { name = 'a' })",
            "t.lua:2: http://c.example is not a server of this run: name it in servers = { \
             \"http://c.example\" }",
        ),
        ("user:get('ftp://a.example/', { name = 'a' })", "is not http:// or https://"),
        ("user:post('/', { name = 'a', body = 'x', form = {} })", "one thing: give one of them"),
        ("user:post('/', { name = 'a', json = print })", "there is no function in JSON"),
        (
            "local t = {}\nt.t = t\nuser:post('/', { name = 'a', json = t })",
            "t.lua:4: json: tables",
        ),
        ("user:get('/', { name = 'a', expect = 'ok' })", "expect is a status, or a list of them"),
        ("user:get('/', { name = 'a', follow = 1.5 })", FOLLOW),
        ("user:get('/', { name = 'a', follow = math.huge })", FOLLOW),
        ("user:get('/', { name = 'a', follow = 0/0 })", FOLLOW),
        ("user:get('/', { name = 'a', follow = -1 })", FOLLOW),
        ("user:get('/', { name = 'a', follow = '1' })", FOLLOW),
        ("user:sleep(-1)", "t.lua:2: sleep takes a number of seconds"),
        ("user:value('no')", "t.lua:2: there is no value no"),
        ("error({})", "t.lua:2: table: "),
        ("assert(nil, 'so')", "t.lua:2: so"),
        ("coroutine.yield(7)", "waits by its user's calls alone"),
        (
            "coroutine.wrap(function() user:get('/', { name = 'a' }) end)()",
            "by journey(user) itself",
        ),
    ] {
        let found = describe(body, &two);
        assert!(found.starts_with("broke: ") && found.contains(outcome), "{body}: {found}");
    }
}

#[test]
fn a_request_that_cannot_be_made_is_an_error_at_its_line() {
    let text = "function journey(user)\n  local ok, why = pcall(user.get, user, '/', {})\n  \
                error(why, 0)\nend";
    let mut actor = actor(text, &["a"]);
    call(begin(&mut actor, 0, 0));
    let act = actor.resume(0, Err("a field has a line break in it"));
    assert_eq!(line(act), "broke: t.lua:3: a field has a line break in it");
    let mut plain = self::actor("function journey(user)\n  user:get('/')\nend", &["a"]);
    call(begin(&mut plain, 0, 0));
    assert_eq!(line(plain.resume(0, Err("no such method"))), "broke: t.lua:2: no such method");
    // a coroutine that is resumed without having asked has ended
    assert_eq!(line(response(&mut plain, 0, 200, "", "")), "over, 0 later");
    assert_eq!(line(response(&mut plain, 99, 200, "", "")), "over, 0 later");
}

#[test]
fn requested_redirects_are_followed_within_the_servers() {
    let text = "function journey(user)\n  local r = user:post('/a', { body = 'x', follow = 2, expect = 200 })\n  \
                user:get('/end?' .. r.status)\nend";
    let mut actor = actor(text, &["s"]);
    let first = call(begin(&mut actor, 0, 0));
    assert_eq!(first.statuses, [301, 302, 303, 307, 308, 200]);
    let next = line(response(&mut actor, 0, 303, "Location: https://b.example/b\r\n", ""));
    assert_eq!(next, "GET https://b.example/b for step 0");
    assert_eq!(
        line(response(&mut actor, 0, 307, "Location: c\r\n", "")),
        "GET https://b.example/c for step 0"
    );
    assert_eq!(
        line(response(&mut actor, 0, 302, "Location: d\r\n", "")),
        "failed (there are more redirects than follow allows) GET http://a.example:81/end?302 for \
         step 0"
    );
    begin(&mut actor, 0, 1);
    assert_eq!(
        line(response(&mut actor, 0, 308, "Location: http://evil.example/\r\n", "")),
        "failed (a redirect: http://evil.example is not a server of this run: name it in servers = \
         { \"http://evil.example\" }) GET http://a.example:81/end?308 for step 0"
    );
    // 308 keeps method and body
    begin(&mut actor, 0, 2);
    assert_eq!(
        line(response(&mut actor, 0, 308, "Location: /b\r\n", "")),
        "POST http://a.example:81/b for step 0 | x"
    );
    assert_eq!(
        line(response(&mut actor, 0, 500, "", "")),
        "failed (the status is 500) GET http://a.example:81/end?500 for step 0"
    );
}

/// RFC 9110 section 15.4: fields that describe the content are dropped with it.
#[test]
fn a_redirect_to_get_leaves_the_fields_of_the_content() {
    let text = "function journey(user)\n  user:post('/a', { body = 'x', follow = true, headers = {\n    \
                Accept = 'b/c', ['Content-Type'] = 'd/e', ['Content-Length'] = 1,\n    \
                ['content-encoding'] = 'gzip', ['Content-Language'] = 'en',\n    \
                ['Content-Location'] = '/f', Digest = 'g', ['Last-Modified'] = 'h',\n    \
                ['Transfer-Encoding'] = 'chunked', ['X-Content'] = 'i' } })\nend";
    let mut actor = actor(text, &["s"]);
    for status in [301, 302, 303] {
        let fields = call(begin(&mut actor, 0, 0)).headers;
        assert_eq!(fields.len(), 10);
        assert_eq!(
            line(response(&mut actor, 0, status, "Location: /b\r\n", "")),
            "GET http://a.example:81/b for step 0 | Accept: b/c; X-Content: i"
        );
        let kept = call(begin(&mut actor, 1, 0)).headers;
        let next = call(response(&mut actor, 1, 307, "Location: /b\r\n", ""));
        assert_eq!((next.method.as_str(), next.headers), ("POST", kept));
    }
}

#[test]
fn random_numbers_are_the_users_own_and_follow_from_the_seed() {
    let text = "function journey(user)\n  user:get('/' .. math.random(1000000))\n  \
                user:get('/' .. math.random(5, 6) .. '/' .. math.random())\nend";
    let drawn = |seed: u64, order: &[u64]| {
        let mut actor =
            LuaActor::new(&JourneySpec { seed, ..spec(text, &["s"]) }).expect("a script");
        let mut all: Vec<(u64, String)> = order
            .iter()
            .map(|user| (*user, call(begin(&mut actor, *user, 0)).url.path().to_owned()))
            .collect();
        for user in order.iter().rev() {
            let path = call(response(&mut actor, *user, 200, "", "")).url.path().to_owned();
            assert!(path.starts_with("/5/0.") || path.starts_with("/6/0."), "{path}");
            all.push((*user, path));
        }
        all.sort();
        all
    };
    assert_eq!(drawn(1, &[0, 1, 2]), drawn(1, &[2, 0, 1]));
    let (one, other) = (drawn(1, &[0, 1]), drawn(2, &[0, 1]));
    assert_ne!(one, other);
    assert_ne!(one[0].1, one[2].1, "two users draw different numbers");
}

#[test]
fn draws_are_even() {
    let text = "function journey(user)\n  local counts, sum = {}, 0\n  for at = 1, 60000 do\n    \
                local drawn = math.random(6)\n    counts[drawn] = (counts[drawn] or 0) + 1\n    sum = \
                sum + math.random()\n  end\n  error(table.concat(counts, ' ') .. ' ' .. sum / 60000, 0)\nend";
    let found = line(begin(&mut actor(text, &["s"]), 0, 0));
    let figures: Vec<f64> = found.split(' ').filter_map(|word| word.parse().ok()).collect();
    let [counts @ .., mean] = figures.as_slice() else { panic!("{found}") };
    // six standard deviations of a binomial count, and of a mean of uniform numbers
    assert_eq!(counts.len(), 6, "{found}");
    let wide = 6.0 * (60_000.0_f64 * 5.0 / 36.0).sqrt();
    assert!(counts.iter().all(|count| (count - 10_000.0).abs() < wide), "{found}");
    assert!((mean - 0.5).abs() < 6.0 * (1.0 / 12.0 / 60_000.0_f64).sqrt(), "{found}");
}

#[test]
fn a_call_without_a_response_has_a_reason() {
    let text = "function journey(user)\n  local r = user:get('/')\n  user:get('/' .. r.status .. \
                r.error .. #r.body)\nend";
    let mut actor = actor(text, &["s"]);
    begin(&mut actor, 0, 0);
    let back = CallResponse {
        status: 0,
        head: b"",
        body: b"",
        took: Nanos::ZERO,
        error: Some("connrefused"),
    };
    assert_eq!(call(actor.resume(0, Ok(&back))).url.path(), "/0connrefused0");
    actor.end_early(0);
    assert_eq!(line(response(&mut actor, 0, 200, "", "")), "over, 0 later");
    actor.forget(0);
    assert_eq!(line(response(&mut actor, 0, 200, "", "")), "over, 0 later");
}

#[test]
fn a_script_that_cannot_begin_is_refused() {
    let refused = |text: &str| match LuaActor::new(&spec(text, &["s"])) {
        Ok(_) => panic!("{text} is taken"),
        Err(trouble) => trouble.to_string(),
    };
    assert_eq!(refused("x = 1"), "t.lua: it has no function journey(user)");
    assert!(
        refused("function journey(").starts_with("t.lua:1: "),
        "{}",
        refused("function journey(")
    );
    assert_eq!(refused("function journey() end\nfunction init() error('no') end"), "t.lua:2: no");
}

#[test]
fn an_outline_describes_a_script() {
    let of = |text: &str| outline("t.lua", text.as_bytes());
    assert_eq!(of("function request() return wrk.format() end"), Ok(None));
    assert_eq!(of("-- no journey\nwrk.method = 'POST'\nprint('seen')"), Ok(None));
    // wrk's interface reports errors in other scripts
    assert_eq!(of("-- no journey\nfunction ("), Ok(None));
    let one = Outline { steps: vec!["request".into()], servers: Vec::new() };
    assert_eq!(of("function journey(user) end"), Ok(Some(one)));
    let two = "steps = { 'a', 'b' }\nservers = { 'http://b' }\nfunction journey(user) end";
    let wanted = Outline { steps: vec!["a".into(), "b".into()], servers: vec!["http://b".into()] };
    assert_eq!(of(two), Ok(Some(wanted)));
    let describe = |text: &str| of(text).expect_err("it is wrong").to_string();
    assert_eq!(
        describe("steps = { {} }\nfunction journey() end"),
        "t.lua: steps is a list of strings"
    );
    assert!(describe("function journey(user)\nnil\nend").starts_with("t.lua:2: "));
    assert!(describe("function journey() end\nerror('x')").starts_with("t.lua:2: x"));
}

/// Each arrival of an open load is a new user: the data kept for users that left must not grow.
#[test]
fn departed_users_free_their_state() {
    let text = "function journey(user)\n  user.bag = ('x'):rep(100000) .. user.number\n  \
                user:get('/' .. math.floor(collectgarbage('count')))\nend";
    let mut actor = actor(text, &["s"]);
    let mut kilobytes = 0;
    for number in 0..2_000 {
        let path = call(begin(&mut actor, number, number)).url.path().to_owned();
        kilobytes = path[1..].parse::<u64>().expect("a number");
        response(&mut actor, number, 200, "", "");
        actor.forget(number);
    }
    // if kept, they would take 200 MB
    assert!(kilobytes < 20_000, "{kilobytes} KiB");
}

#[test]
fn a_script_opens_a_websocket_and_talks() {
    let text = "function journey(user)
        user:connect('/chat', { name = 'open', query = { t = 'x y' }, headers = { A = 'b' } })
        local answer = user:send(nil, { name = 'ask', json = { n = 1 },
            expect = { json = { ['/re'] = 1 }, contains = 'ok', timeout = 0.5 } })
        user:check(answer.body == 'it is ok', 'the answer')
        user:expect({ name = 'hear', count = 3 })
        user:close(1008, { name = 'leave' })
    end";
    let mut actor = actor(text, &["open", "ask", "hear", "leave"]);
    let open = call(begin(&mut actor, 1, 0));
    assert_eq!(open.url.as_str(), "ws://a.example:81/chat?t=x+y");
    assert_eq!(open.headers, [("A".to_owned(), "b".to_owned())]);
    assert!(open.socket.expect("a socket").opens());
    let ask = call(response(&mut actor, 1, 101, "", ""));
    assert_eq!((ask.step, ask.body.as_deref()), (1, Some(&b"{\"n\":1}"[..])));
    let ask = ask.socket.expect("a socket");
    assert_eq!(ask.timeout, Some(Nanos::from_millis(500)));
    let SocketAction::Send { text: true, answer: Some(awaited) } = &ask.action else {
        panic!("{ask:?}");
    };
    let takes = |payload: &str| awaited.takes(payload.as_bytes());
    assert!(takes("{\"re\":1,\"is\":\"ok\"}") && takes("{\"re\":1.0,\"is\":\"ok\"}"));
    assert!(!takes("{\"re\":2,\"is\":\"ok\"}") && !takes("{\"re\":1}") && !takes("ok"));
    let hear = response(&mut actor, 1, 101, "", "it is ok");
    assert_eq!(hear.checks, [None]);
    let hear = call(hear).socket.expect("a socket");
    assert!(matches!(&hear.action, SocketAction::Expect(awaited) if awaited.count == 3));
    let leave = call(response(&mut actor, 1, 101, "", "")).socket.expect("a socket");
    assert!(matches!(leave.action, SocketAction::Close { code: 1008 }));
}

#[test]
fn wrong_arguments_of_websockets_are_reported() {
    for (line, why) in [
        ("user:connect(1)", "a URL is a text"),
        ("user:connect('ws://b.example/')", "is not a server of this run"),
        ("user:send({})", "a message is a text"),
        ("user:send('a', { expect = { count = 0 } })", "count is a number"),
        ("user:send('a', { body = 'b' })", "there is no option body"),
        ("user:expect({ match = 'x' })", "there is no option match"),
        ("user:close(1005)", "a close code is"),
        ("user:close(1012)", "a close code is"),
    ] {
        let mut actor = actor(&format!("function journey(user) {line} end"), &["a"]);
        match begin(&mut actor, 1, 0).action {
            ActorAction::Broke(found) => assert!(found.contains(why), "{line}: {found}"),
            other => panic!("{line}: {other:?}"),
        }
    }
}
