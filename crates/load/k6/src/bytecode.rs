//! Modules as bytecode: each is compiled once per program, and users load the result. Bytecode has no
//! source text, which the engine otherwise keeps for every function of every user. The engine resolves
//! imports when it compiles, so a module with imports cannot be compiled alone: each user compiles it.

use crate::program::Program;
use rquickjs::module::{Declared, WriteOptions};
use rquickjs::{Context, Ctx, Error, Function, Module, Runtime};

/// Stack of a compilation, which runs on the stack of a user.
const STACK_BYTES: usize = 256 << 10;

/// Declares a module of the program by its key.
///
/// # Errors
/// Its text is not a module: an exception of `ctx`.
pub(crate) fn declare<'js>(
    ctx: &Ctx<'js>,
    program: &Program,
    key: &str,
    text: &str,
) -> Result<Module<'js, Declared>, Error> {
    match program.code(key, || compile(key, text)) {
        // SAFETY: these bytes were written by the same build of the same library, in `compile`.
        Some(code) => unsafe { Module::load(ctx.clone(), &code) },
        // an error is raised where the script sees it
        None => Module::declare(ctx.clone(), key, text.as_bytes()),
    }
}

/// Compiles a module in a separate runtime; `None` if it cannot be compiled.
fn compile(key: &str, text: &str) -> Option<Vec<u8>> {
    let runtime = Runtime::new().ok()?;
    runtime.set_max_stack_size(STACK_BYTES);
    let context = Context::full(&runtime).ok()?;
    context.with(|ctx| {
        let module = Module::declare(ctx, key, text.as_bytes()).ok()?;
        module.write(WriteOptions { strip_source: true, ..WriteOptions::default() }).ok()
    })
}

/// Returns the function that a built-in text defines.
///
/// # Errors
/// As [`declare`].
pub(crate) fn function<'js>(
    ctx: &Ctx<'js>,
    program: &Program,
    name: &str,
    text: &str,
) -> Result<Function<'js>, Error> {
    let text = format!("export default {text}");
    let (module, promise) = declare(ctx, program, &format!("builtin:{name}"), &text)?.eval()?;
    promise.finish::<()>()?;
    module.namespace()?.get("default")
}
