//! One user of a script: a JavaScript runtime on a separate stack, so that a request or a pause
//! deep inside callbacks suspends only this user.

use crate::call::{Task, VuAnswer, VuFailure, VuRequest};
use crate::context::{Context, MEMORY_BYTES_MAX};
use crate::modules::{ModuleNames, ModuleTexts};
use crate::program::Program;
use corosensei::stack::{DefaultStack, Stack as _};
use corosensei::{Coroutine, CoroutineResult};
use rquickjs::{CatchResultExt, CaughtError, Ctx, Function, Object, Promise, Value};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;
use units::Nanos;

/// Address space of the stack of one user in bytes; untouched pages use no memory.
const STACK_BYTES: usize = 1 << 20;
/// Part of the stack that scripts may use; the rest is for native functions.
const SCRIPT_STACK_BYTES: usize = 512 << 10;

/// User with its runtime.
pub struct Vu {
    coroutine: Coroutine<VuAnswer, VuRequest, ()>,
    context: Rc<Context>,
    /// True between the beginning and the end of a task.
    under_way: bool,
}

impl std::fmt::Debug for Vu {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Vu").field("done", &self.coroutine.done()).finish_non_exhaustive()
    }
}

// SAFETY: the coroutine, its stack and the `Rc`s shared between them and `context` are only reachable
// through this struct, so they always move together; neither QuickJS nor the native functions keep
// thread-local state of a user (parsed URLs are the same on all threads) or references to another
// thread's.
unsafe impl Send for Vu {}

impl Vu {
    /// Starts a user: runs the script's init code.
    ///
    /// # Errors
    /// Fails if the init code fails, or there is no memory for the stack.
    pub fn new(
        program: &Arc<Program>,
        context: Context,
    ) -> Result<(Vu, Option<String>, Vec<String>), VuFailure> {
        let stack = DefaultStack::new(STACK_BYTES).map_err(|error| {
            VuFailure::Exception(format!("no memory for a user's stack: {error}"))
        })?;
        let bottom = stack.limit().get();
        let context = Rc::new(context);
        let (inside, program) = (context.clone(), program.clone());
        let coroutine = Coroutine::with_stack(stack, move |yielder, _| {
            inside.enter(yielder);
            live(&program, &inside);
        });
        let mut vu = Vu { coroutine, context, under_way: false };
        match vu.resume(VuAnswer::Go, Nanos::ZERO) {
            VuRequest::Ready { options, exports } => {
                vu.context.release_stack(bottom);
                Ok((vu, options, exports))
            }
            VuRequest::Finished(Err(failure)) => Err(failure),
            _ => Err(VuFailure::Exception("a request in the init context".to_owned())),
        }
    }

    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Returns whether a task is running.
    pub fn is_running(&self) -> bool {
        self.under_way
    }

    /// Passes an answer; returns the next event that the user waits for. `now`: on the clock of the
    /// run.
    pub fn resume(&mut self, answer: VuAnswer, now: Nanos) -> VuRequest {
        if self.coroutine.done() {
            return VuRequest::Finished(Err(VuFailure::Interrupted));
        }
        self.context.begin_slice(now);
        self.under_way |= matches!(answer, VuAnswer::Run(_));
        match self.coroutine.resume(answer) {
            CoroutineResult::Yield(request) => {
                self.under_way &= !matches!(request, VuRequest::Finished(_));
                request
            }
            CoroutineResult::Return(()) => VuRequest::Finished(Err(VuFailure::Interrupted)),
        }
    }
}

impl Drop for Vu {
    fn drop(&mut self) {
        // two answers: the first ends a task in progress, the second the user
        self.context.interrupt();
        for _ in 0..16 {
            if self.coroutine.done() {
                return;
            }
            self.context.begin_slice(self.context.now());
            self.coroutine.resume(VuAnswer::End);
        }
        if !self.coroutine.done() {
            // SAFETY: the frames on the stack are abandoned: their values leak, and nothing outside
            // refers to them.
            unsafe { self.coroutine.force_reset() };
        }
    }
}

/// Functions of the built-in modules that the host calls.
struct HostFunctions<'js> {
    all: Object<'js>,
    /// Called at the start and in each turn of a task.
    begin: Function<'js>,
    turn: Function<'js>,
}

impl<'js> HostFunctions<'js> {
    fn new(all: Object<'js>) -> rquickjs::Result<HostFunctions<'js>> {
        Ok(HostFunctions { begin: all.get("begin")?, turn: all.get("turn")?, all })
    }

    fn function(&self, name: &str) -> rquickjs::Result<Function<'js>> {
        self.all.get(name)
    }
}

/// Runs the main function of a user, on its own stack.
fn live(program: &Arc<Program>, context: &Rc<Context>) {
    let made = runtime(program, context);
    let (runtime, js) = match made {
        Ok(made) => made,
        Err(error) => {
            let text = format!("no JavaScript runtime: {error}");
            context.suspend(VuRequest::Finished(Err(VuFailure::Exception(text))));
            return;
        }
    };
    js.with(|ctx| {
        let (namespace, host) = match initialize(&ctx, program, context) {
            Ok(ready) => ready,
            Err(failure) => {
                context.suspend(VuRequest::Finished(Err(failure)));
                return;
            }
        };
        let exports = exports(&namespace);
        let options = exported_options(&ctx, &namespace);
        let mut answer = match options {
            Ok(options) => context.suspend(VuRequest::Ready { options, exports }),
            Err(failure) => context.suspend(VuRequest::Finished(Err(failure))),
        };
        context.end_init();
        let mut argument = None;
        while let VuAnswer::Run(task) = answer {
            let outcome = run(&ctx, &namespace, &host, context, &task, &mut argument);
            answer = context.suspend(VuRequest::Finished(outcome));
        }
    });
    drop(js);
    runtime.set_interrupt_handler(None);
}

fn runtime(
    program: &Arc<Program>,
    context: &Rc<Context>,
) -> rquickjs::Result<(rquickjs::Runtime, rquickjs::Context)> {
    let runtime = rquickjs::Runtime::new()?;
    runtime.set_memory_limit(MEMORY_BYTES_MAX);
    runtime.set_max_stack_size(SCRIPT_STACK_BYTES);
    let watched = context.clone();
    runtime.set_interrupt_handler(Some(Box::new(move || watched.must_stop(Instant::now()))));
    runtime.set_loader(ModuleNames, ModuleTexts(program.clone()));
    let js = rquickjs::Context::full(&runtime)?;
    Ok((runtime, js))
}

/// Installs the modules and runs the script's own code.
fn initialize<'js>(
    ctx: &Ctx<'js>,
    program: &Arc<Program>,
    context: &Rc<Context>,
) -> Result<(Object<'js>, HostFunctions<'js>), VuFailure> {
    let host = crate::native::install(ctx, program, context).and_then(HostFunctions::new);
    let host = host.map_err(|error| {
        let why = CaughtError::from_error(ctx, error);
        VuFailure::Exception(format!("the built-in modules cannot be loaded: {why}"))
    })?;
    program.text(&program.entry).map_err(VuFailure::Exception)?;
    if program.is_common_js() {
        let load = host.function("load");
        let loaded: rquickjs::Result<Object<'js>> =
            load.and_then(|load| load.call(("file", program.entry.as_str())));
        let exports = loaded.catch(ctx).map_err(|error| failure(&host, context, error))?;
        return Ok((exports, host));
    }
    let imported = crate::bytecode::import(ctx, &program.entry).catch(ctx);
    let promise = imported.map_err(|error| failure(&host, context, error))?;
    match settle(ctx, &host, context, &promise)?.into_object() {
        Some(namespace) => Ok((namespace, host)),
        None => Err(VuFailure::Exception(format!(
            "{}: the init code awaits a promise that is never settled",
            program.entry
        ))),
    }
}

fn exports(namespace: &Object<'_>) -> Vec<String> {
    let keys = namespace.keys::<String>().flatten();
    keys.filter(|key| namespace.get::<_, Value<'_>>(key.as_str()).is_ok_and(|it| it.is_function()))
        .collect()
}

fn exported_options<'js>(
    ctx: &Ctx<'js>,
    namespace: &Object<'js>,
) -> Result<Option<String>, VuFailure> {
    let Ok(value) = namespace.get::<_, Value<'js>>("options") else { return Ok(None) };
    if value.is_undefined() || value.is_null() {
        return Ok(None);
    }
    let json = ctx.json_stringify(value).catch(ctx);
    let json = json.map_err(|why| VuFailure::Exception(format!("options: {why}")))?;
    Ok(json.and_then(|text| text.to_string().ok()))
}

/// Calls the function of a task and drives its promises and timers to the end.
fn run<'js>(
    ctx: &Ctx<'js>,
    namespace: &Object<'js>,
    host: &HostFunctions<'js>,
    context: &Rc<Context>,
    task: &Task,
    kept: &mut Option<(Arc<str>, Value<'js>)>,
) -> Result<Option<String>, VuFailure> {
    context.begin_task();
    let mut attempt = || -> rquickjs::Result<Value<'js>> {
        host.begin.call::<_, ()>((task.iteration as f64, context.has_scenario_env()))?;
        let function: Function<'js> = namespace.get(task.function.as_str())?;
        let Some(json) = &task.argument else { return function.call(()) };
        // a user receives the same object in each iteration, as in k6
        let known = kept.as_ref().filter(|(text, _)| Arc::ptr_eq(text, json));
        let value = match known {
            Some((_, value)) => value.clone(),
            None => {
                let value: Value<'js> = host.function("parse")?.call((&**json,))?;
                *kept = Some((json.clone(), value.clone()));
                value
            }
        };
        function.call((value,))
    };
    let value = attempt().catch(ctx).map_err(|error| failure(host, context, error))?;
    let value = match value.clone().into_promise() {
        Some(promise) => settle(ctx, host, context, &promise)?,
        None => {
            idle(ctx, host, context)?;
            value
        }
    };
    if let Some(failure) = context.take_stop() {
        return Err(failure);
    }
    if !task.wants_result {
        return Ok(None);
    }
    let stringify = host.function("stringify");
    let json = stringify.and_then(|function| function.call::<_, Option<String>>((value,)));
    json.catch(ctx).map_err(|error| failure(host, context, error))
}

/// Runs jobs and timers until none are left.
fn idle<'js>(
    ctx: &Ctx<'js>,
    host: &HostFunctions<'js>,
    context: &Rc<Context>,
) -> Result<(), VuFailure> {
    loop {
        while ctx.execute_pending_job() {}
        if let Some(failure) = context.take_stop().or_else(|| context.overrun()) {
            return Err(failure);
        }
        let more: bool =
            host.turn.call(()).catch(ctx).map_err(|error| failure(host, context, error))?;
        if !more {
            return Ok(());
        }
    }
}

/// Waits until the promise is settled, and all jobs and timers are done.
fn settle<'js>(
    ctx: &Ctx<'js>,
    host: &HostFunctions<'js>,
    context: &Rc<Context>,
    promise: &Promise<'js>,
) -> Result<Value<'js>, VuFailure> {
    idle(ctx, host, context)?;
    match promise.result::<Value<'js>>() {
        Some(result) => result.catch(ctx).map_err(|error| failure(host, context, error)),
        None => Ok(Value::new_undefined(ctx.clone())),
    }
}

/// Returns the text of an exception, or the reason why the host stopped the script.
fn failure<'js>(
    host: &HostFunctions<'js>,
    context: &Context,
    error: CaughtError<'js>,
) -> VuFailure {
    let text = match error {
        CaughtError::Exception(exception) => {
            let stack = exception.stack().unwrap_or_default();
            let message = exception.message().unwrap_or_default();
            let name: Option<String> = exception.as_object().get("name").ok();
            let name = name.unwrap_or_else(|| "Error".to_owned());
            let head = if message.is_empty() { name } else { format!("{name}: {message}") };
            format!("{head}\n{}", stack.trim_end())
        }
        CaughtError::Value(value) => {
            let describe = host.function("describe");
            let text = describe.and_then(|describe| describe.call::<_, String>((value,)));
            text.unwrap_or_else(|_| "an exception".to_owned())
        }
        CaughtError::Error(error) => error.to_string(),
    };
    context.take_stop().unwrap_or_else(|| VuFailure::Exception(context.explain(text)))
}
