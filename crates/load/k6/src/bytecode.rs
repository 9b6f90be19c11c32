//! Modules as bytecode: each is compiled once per program, and users load the result. Bytecode has
//! no source text, which the engine would otherwise keep for every function of every user.
//!
//! The engine resolves imports when it compiles. A module is therefore compiled in a runtime where
//! every import is an empty module. A user imports the bytecode by the key of the module; the
//! engine then resolves the imports by the names in it.

use crate::program::Program;
use rquickjs::loader::{ImportAttributes, Loader, Resolver};
use rquickjs::module::{Declared, WriteOptions};
use rquickjs::{Context, Ctx, Error, Function, Module, Promise, Runtime};

/// Stack size of a compilation, which runs on the stack of a user.
const STACK_BYTES: usize = 256 << 10;
/// Prefix of names that are module keys and need no resolution.
const BY_KEY: &str = "loadstone:";

/// Returns the key in a name that [`import`] has created.
pub(crate) fn key_of(name: &str) -> Option<&str> {
    name.strip_prefix(BY_KEY)
}

/// Imports a module by its key, with its imports; the promise resolves to its namespace.
///
/// # Errors
/// Fails if memory is exhausted. Errors of the module reject the promise.
pub(crate) fn import<'js>(ctx: &Ctx<'js>, key: &str) -> Result<Promise<'js>, Error> {
    Module::import(ctx, format!("{BY_KEY}{key}"))
}

/// Declares a module of the program by its key.
///
/// # Errors
/// Fails with an exception of `ctx` if the text is not a module.
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
    runtime.set_loader(EmptyModules, EmptyModules);
    let context = Context::full(&runtime).ok()?;
    context.with(|ctx| {
        let module = Module::declare(ctx, key, text.as_bytes()).ok()?;
        module.write(WriteOptions { strip_source: true, ..WriteOptions::default() }).ok()
    })
}

/// Loader that creates an empty module for any name.
struct EmptyModules;

impl Resolver for EmptyModules {
    fn resolve<'js>(
        &mut self,
        _: &Ctx<'js>,
        _: &str,
        name: &str,
        _: Option<ImportAttributes<'js>>,
    ) -> Result<String, Error> {
        Ok(format!("{BY_KEY}{name}"))
    }
}

impl Loader for EmptyModules {
    fn load<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        name: &str,
        _: Option<ImportAttributes<'js>>,
    ) -> Result<Module<'js, Declared>, Error> {
        Module::declare(ctx.clone(), name, "")
    }
}

/// Returns the function that a built-in text defines.
///
/// # Errors
/// Fails like [`declare`].
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
