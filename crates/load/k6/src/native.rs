//! Native functions on which the built-in modules are based.

use crate::buffer::view;
use crate::bytecode;
use crate::context::{self, Context};
use crate::http;
use crate::metrics::{MetricKind, row};
use crate::program::{LogLine, Program};
use crate::socket;
use rquickjs::prelude::{Func, Opt, This};
use rquickjs::{ArrayBuffer, Ctx, Exception, Function, Object, Result, Value};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Maximum number of bytes that one call of `randomBytes` makes.
const RANDOM_BYTES_MAX: f64 = 16.0 * 1024.0 * 1024.0;

/// Modules that are loaded when a user first needs them.
const LAZY: &[(&str, &str)] = &[
    ("html", include_str!("js/html.js")),
    ("console", include_str!("js/console.js")),
    ("gjson", include_str!("js/gjson.js")),
    ("http_more", include_str!("js/http_more.js")),
    ("files", include_str!("js/files.js")),
    ("data", include_str!("js/data.js")),
    ("crypto", include_str!("js/crypto.js")),
    ("webcrypto", include_str!("js/webcrypto.js")),
    ("x509", include_str!("js/x509.js")),
    ("execution", include_str!("js/execution.js")),
    ("sockets", include_str!("js/sockets.js")),
    ("grpc", include_str!("js/grpc.js")),
    ("postman", include_str!("js/postman.js")),
    ("streams", include_str!("js/streams.js")),
];

/// Installs the functions and the modules; returns the functions that the host calls.
pub(crate) fn install<'js>(
    ctx: &Ctx<'js>,
    program: &Arc<Program>,
    context: &Rc<Context>,
) -> Result<Object<'js>> {
    let native = Object::new(ctx.clone())?;
    state(&native, program, context)?;
    metrics(&native, context)?;
    bytes(&native, context)?;
    shared(&native, program)?;
    context::install(&native, context)?;
    http::install(&native, context)?;
    lazy(&native, program, context)?;
    let make = bytecode::function(ctx, program, "prelude", include_str!("js/prelude.js"))?;
    ctx.globals().set("__k6_parse_url", native.get::<_, Function<'js>>("parseUrl")?)?;
    let host: Object<'js> = make.call((native,))?;
    let more = [("http", include_str!("js/http.js")), ("require", include_str!("js/require.js"))];
    for (name, text) in more {
        let extend = bytecode::function(ctx, program, name, text)?;
        extend.call::<_, ()>((host.clone(),))?;
    }
    ctx.globals().set("__k6_module", host.get::<_, Function<'js>>("module")?)?;
    Ok(host)
}

/// Loads modules when they are first used, with the native functions that only they call.
fn lazy<'js>(native: &Object<'js>, program: &Arc<Program>, context: &Rc<Context>) -> Result<()> {
    let (p, c) = (program.clone(), context.clone());
    native.set(
        "builtIn",
        Func::from(
            move |ctx: Ctx<'js>,
                  native: This<Object<'js>>,
                  name: String|
                  -> Result<Function<'js>> {
                match name.as_str() {
                    "sockets" => socket::install(&native.0, &c)?,
                    "grpc" => crate::grpc::install(&native.0, &p, &c)?,
                    "webcrypto" => crate::webcrypto::install(&native.0)?,
                    _ => {}
                }
                let found = LAZY.iter().find(|(known, _)| *known == name);
                let (name, text) = found.expect("a name in a text of ours");
                bytecode::function(&ctx, &p, name, text)
            },
        ),
    )
}

/// Installs functions for the user, its clock and its console.
fn state<'js>(native: &Object<'js>, program: &Arc<Program>, context: &Rc<Context>) -> Result<()> {
    let own = || context.clone();
    let (c, p) = (own(), program.clone());
    native.set(
        "env",
        Func::from(move |ctx: Ctx<'js>| -> Result<Object<'js>> {
            let env = Object::new(ctx)?;
            for (name, value) in &p.env {
                env.set(name.as_str(), value.as_str())?;
            }
            Ok(env)
        }),
    )?;
    native.set("vu", Func::from(move || c.id as f64))?;
    let c = own();
    native.set(
        "scenarioEnv",
        Func::from(move || -> Vec<String> {
            let scenario = c.scenario.borrow();
            let all = scenario.iter().flat_map(|it| &it.env);
            all.flat_map(|(name, value)| [name.clone(), value.clone()]).collect()
        }),
    )?;
    let c = own();
    native.set("initializing", Func::from(move || c.initializing()))?;
    let c = own();
    native.set("now", Func::from(move || c.now().as_millis_f64()))?;
    let c = own();
    native.set(
        "sleep",
        Func::from(move |ctx: Ctx<'js>, seconds: f64| -> Result<()> {
            if c.sleep(seconds) {
                Ok(())
            } else {
                Err(Exception::throw_message(&ctx, "interrupted"))
            }
        }),
    )?;
    let p = program.clone();
    native.set(
        "log",
        Func::from(move |level: String, text: String| {
            let level = ["debug", "info", "warning", "error"].into_iter().find(|it| *it == level);
            p.log(level.unwrap_or("info"), "console", text);
        }),
    )?;
    let p = program.clone();
    native.set(
        "warn",
        Func::from(move |text: String, error: Opt<String>| {
            let mut line = LogLine::new("warning", text);
            line.fields.extend(error.0.map(|error| ("error", error)));
            p.log_line(line);
        }),
    )?;
    test(native, program, context)
}

/// Installs functions for files, the test as a whole, and facts about it.
fn test<'js>(native: &Object<'js>, program: &Arc<Program>, context: &Rc<Context>) -> Result<()> {
    let own = || context.clone();
    let (c, p) = (own(), program.clone());
    native.set(
        "open",
        Func::from(move |ctx: Ctx<'js>, path: String, binary: bool| -> Result<Value<'js>> {
            if !c.initializing() {
                let why = "the \"open()\" function is only available in the init stage";
                return Err(Exception::throw_message(&ctx, why));
            }
            let bytes =
                p.open(&p.entry, &path).map_err(|why| Exception::throw_message(&ctx, &why))?;
            if binary {
                return Ok(ArrayBuffer::new_copy(ctx, &bytes[..])?.into_value());
            }
            let text = String::from_utf8_lossy(&bytes);
            Ok(rquickjs::String::from_str(ctx, &text)?.into_value())
        }),
    )?;
    let c = own();
    native.set(
        "abort",
        Func::from(move |ctx: Ctx<'js>, message: String| -> Result<()> {
            c.abort(&message);
            Err(Exception::throw_message(&ctx, &format!("test aborted: {message}")))
        }),
    )?;
    let p = program.clone();
    native.set(
        "failTest",
        Func::from(move |message: String| {
            p.counts.marked_failed.store(true, Ordering::Relaxed);
            p.log("error", "", format!("test marked as failed: {message}"));
        }),
    )?;
    let p = program.clone();
    native.set("throws", Func::from(move || p.options().is_some_and(|it| it.throws)))?;
    let p = program.clone();
    native.set(
        "options",
        Func::from(move || p.options().map_or_else(|| "{}".to_owned(), |it| it.derived_json())),
    )?;
    native.set(
        "secret",
        Func::from(|ctx: Ctx<'js>, name: String| -> Result<String> {
            let why = format!("no secret source is configured; pass {name} with -e instead");
            Err(Exception::throw_message(&ctx, &why))
        }),
    )?;
    let c = own();
    native.set("fact", Func::from(move |ctx: Ctx<'js>, name: String| fact(&ctx, &c, &name)))?;
    native.set(
        "duration",
        Func::from(|ctx: Ctx<'js>, text: String| -> Result<f64> {
            let span = crate::duration::parse(&text);
            span.map(|it| it.as_millis_f64()).map_err(|why| Exception::throw_message(&ctx, &why))
        }),
    )
}

/// Returns a value of k6/execution.
fn fact<'js>(ctx: &Ctx<'js>, context: &Context, name: &str) -> Result<Value<'js>> {
    use rquickjs::IntoJs;
    let counts = &context.program.counts;
    let load = |count: &std::sync::atomic::AtomicU64| count.load(Ordering::Relaxed) as f64;
    let scenario = context.scenario.borrow().clone();
    let iteration = context.iteration.get();
    let number = match name {
        "iterationsInterrupted" => load(&counts.interrupted),
        "iterationsCompleted" => load(&counts.completed),
        "vusActive" => load(&counts.active),
        "vusInitialized" => load(&counts.users),
        "currentTestRunDuration" => context.now().as_millis_f64() - load(&counts.origin) / 1e6,
        "vu.iteration" => iteration.of_user as f64,
        "vu.iterationInScenario" => iteration.in_scenario as f64,
        "scenario.iteration" => iteration.of_scenario as f64,
        _ => {
            let Some(scenario) = scenario else { return Ok(Value::new_undefined(ctx.clone())) };
            let into = context.now() - (scenario.start + context.base.get());
            return match name {
                "scenario.name" => scenario.name.as_str().into_js(ctx),
                "scenario.executor" => scenario.executor.into_js(ctx),
                "scenario.startTime" => (unix_ms() - into.as_millis_f64()).into_js(ctx),
                _ => {
                    let length = scenario.length.as_secs_f64().max(1e-9);
                    (into.as_secs_f64() / length).min(1.0).into_js(ctx)
                }
            };
        }
    };
    number.into_js(ctx)
}

/// Returns the number of milliseconds since 1970.
fn unix_ms() -> f64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0.0, |since| since.as_secs_f64() * 1e3)
}

/// Provides the functions for metrics: values, checks, groups, tags.
fn metrics<'js>(native: &Object<'js>, context: &Rc<Context>) -> Result<()> {
    let own = || context.clone();
    let c = own();
    native.set(
        "metric",
        Func::from(move |ctx: Ctx<'js>, name: String, kind: String, time: bool| -> Result<u32> {
            let kind = MetricKind::from_name(&kind).unwrap_or(MetricKind::Counter);
            let declared = c.program.declare(&name, kind, time);
            declared.map(|row| row as u32).map_err(|why| Exception::throw_message(&ctx, &why))
        }),
    )?;
    let c = own();
    native.set(
        "add",
        Func::from(move |metric: u32, value: f64, tags: Option<Vec<String>>| {
            c.record(metric as usize, value, tags.as_deref().unwrap_or_default());
        }),
    )?;
    let c = own();
    native.set(
        "check",
        Func::from(move |name: String, pass: bool, tags: Option<Vec<String>>| {
            if c.note_check(&name, pass) {
                return;
            }
            let value = f64::from(u8::from(pass));
            let mut tags = tags.unwrap_or_default();
            let (passes, fails) = (u64::from(pass), u64::from(!pass));
            c.store().groups.check(&c.group.borrow(), &name, passes, fails);
            if c.wants_tags() && c.wants_system_tag("check") {
                tags.extend(["check".to_owned(), name]);
            }
            c.record(row::CHECKS, value, &tags);
        }),
    )?;
    let c = own();
    native.set(
        "group",
        Func::from(move |path: String| {
            c.store().groups.visit(&path);
            *c.group.borrow_mut() = path;
        }),
    )?;
    let c = own();
    native.set(
        "groupEnd",
        Func::from(move |millis: f64| c.record(row::GROUP_DURATION, millis, &[])),
    )?;
    let c = own();
    native.set("tag", Func::from(move |name: String| c.tags().get(&name).cloned()))?;
    let c = own();
    native.set("tagNames", Func::from(move || c.tags().keys().cloned().collect::<Vec<_>>()))?;
    let c = own();
    native.set(
        "setTag",
        Func::from(move |name: String, value: Option<String>| {
            let mut tags = c.tags.borrow_mut();
            match value {
                Some(value) => tags.insert(name, value),
                None => tags.remove(&name),
            };
        }),
    )
}

/// Installs functions for bytes, texts, digests and random numbers.
fn bytes<'js>(native: &Object<'js>, context: &Rc<Context>) -> Result<()> {
    native.set(
        "utf8",
        Func::from(|ctx: Ctx<'js>, text: rquickjs::Coerced<String>| {
            ArrayBuffer::new(ctx, text.0.into_bytes())
        }),
    )?;
    native.set(
        "text",
        Func::from(|data: ArrayBuffer<'js>| String::from_utf8_lossy(view(&data)).into_owned()),
    )?;
    native.set("hex", Func::from(|data: ArrayBuffer<'js>| units::hex(view(&data))))?;
    native.set(
        "b64encode",
        Func::from(|ctx: Ctx<'js>, data: ArrayBuffer<'js>, form: String| -> Result<String> {
            let made = crate::digest::base64_encode(view(&data), &form);
            made.map_err(|why| Exception::throw_message(&ctx, &why))
        }),
    )?;
    native.set(
        "b64decode",
        Func::from(|ctx: Ctx<'js>, text: String, form: String| -> Result<ArrayBuffer<'js>> {
            let bytes = crate::digest::base64_decode(&text, &form);
            let bytes = bytes.map_err(|why| Exception::throw_message(&ctx, &why))?;
            ArrayBuffer::new(ctx, bytes)
        }),
    )?;
    native.set(
        "hash",
        Func::from(
            |ctx: Ctx<'js>,
             name: String,
             data: ArrayBuffer<'js>,
             key: Option<ArrayBuffer<'js>>|
             -> Result<ArrayBuffer<'js>> {
                let made = crate::digest::digest(&name, view(&data), key.as_ref().map(view));
                let made =
                    made.ok_or_else(|| Exception::throw_message(&ctx, "Invalid algorithm"))?;
                ArrayBuffer::new(ctx, made)
            },
        ),
    )?;
    numbers(native, context)
}

/// Installs functions for random numbers and URLs.
fn numbers<'js>(native: &Object<'js>, context: &Rc<Context>) -> Result<()> {
    let c = context.clone();
    native.set(
        "randomBytes",
        Func::from(move |ctx: Ctx<'js>, count: f64| {
            let count = count.clamp(0.0, RANDOM_BYTES_MAX) as usize;
            let mut random = c.random();
            let bytes: Vec<u8> = (0..count).map(|_| (random.next_u64() >> 32) as u8).collect();
            ArrayBuffer::new(ctx, bytes)
        }),
    )?;
    let c = context.clone();
    native.set("random", Func::from(move || c.random().unit()))?;
    let c = context.clone();
    native.set("seed", Func::from(move |seed: f64| c.reseed(seed.to_bits())))?;
    native.set(
        "join",
        Func::from(|base: String, path: String| {
            let joined = url::Url::parse(&base).and_then(|base| base.join(&path));
            joined.map_or(path, String::from)
        }),
    )?;
    native.set(
        "parseUrl",
        Func::from(|text: String, base: Opt<Option<String>>| -> Option<Vec<String>> {
            let base = base.0.flatten().and_then(|base| url::Url::parse(&base).ok());
            let url = url::Url::options().base_url(base.as_ref()).parse(&text).ok()?;
            let port = url.port().map(|port| port.to_string()).unwrap_or_default();
            let query = url.query().map(|it| format!("?{it}")).unwrap_or_default();
            let hash = url.fragment().map(|it| format!("#{it}")).unwrap_or_default();
            let host = url.host_str().unwrap_or_default().to_owned();
            let (user, password) =
                (url.username().to_owned(), url.password().unwrap_or_default().to_owned());
            Some(vec![
                url.to_string(),
                format!("{}:", url.scheme()),
                host,
                port,
                url.path().to_owned(),
                query,
                hash,
                user,
                password,
            ])
        }),
    )?;
    Ok(())
}

/// Installs functions for arrays that all users share, and for modules that `require` loads.
fn shared<'js>(native: &Object<'js>, program: &Arc<Program>) -> Result<()> {
    let p = program.clone();
    native.set(
        "sharedLength",
        Func::from(move |name: String| {
            p.shared().get(&name).map_or(-1.0, |list| list.len() as f64)
        }),
    )?;
    let p = program.clone();
    native.set(
        "sharedPut",
        Func::from(move |name: String, list: Vec<String>| {
            p.shared().entry(name).or_insert_with(|| Arc::new(list)).len() as f64
        }),
    )?;
    let p = program.clone();
    native.set(
        "sharedAt",
        Func::from(move |name: String, index: f64| -> String {
            let item = p.shared().get(&name).and_then(|list| list.get(index as usize).cloned());
            item.unwrap_or_else(|| "null".to_owned())
        }),
    )?;
    let p = program.clone();
    native.set("entry", Func::from(move || p.entry.clone()))?;
    let p = program.clone();
    native.set(
        "moduleText",
        Func::from(move |ctx: Ctx<'js>, from: String, name: String| -> Result<Vec<String>> {
            let found = crate::modules::required(&p, &from, &name);
            found.map_err(|why| Exception::throw_message(&ctx, &why))
        }),
    )?;
    let p = program.clone();
    native.set(
        "evaluateFile",
        Func::from(move |ctx: Ctx<'js>, key: String| -> Result<Value<'js>> {
            let text = p.text(&key).map_err(|why| Exception::throw_message(&ctx, &why))?;
            // on one line with the first line of the file, so that line numbers stay correct
            let wrapped = format!("(function (module, exports, require) {{{text}\n}})");
            let mut options = rquickjs::context::EvalOptions::default();
            options.strict = false;
            options.filename = Some(key);
            ctx.eval_with_options(wrapped, options)
        }),
    )?;
    native.set(
        "evaluateModule",
        Func::from(|ctx: Ctx<'js>, key: String| -> Result<Object<'js>> {
            bytecode::import(&ctx, &key)?.finish()
        }),
    )
}
