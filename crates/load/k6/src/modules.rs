//! Modules by name: k6's own, those of jslib, and files.

use crate::program::{Program, normalize};
use rquickjs::loader::{ImportAttributes, Loader, Resolver};
use rquickjs::module::Declared;
use rquickjs::{Ctx, Error, Function, Module, Value};
use std::sync::Arc;

/// Modules with objects of the prelude, and the names that they export.
const NATIVE: &[(&str, &[&str])] = &[
    ("k6", &["check", "group", "sleep", "fail", "randomSeed"]),
    (
        "k6/http",
        &[
            "get",
            "head",
            "post",
            "put",
            "patch",
            "del",
            "options",
            "request",
            "asyncRequest",
            "batch",
            "url",
            "file",
            "cookieJar",
            "CookieJar",
            "setResponseCallback",
            "expectedStatuses",
            "TLS_1_0",
            "TLS_1_1",
            "TLS_1_2",
            "TLS_1_3",
        ],
    ),
    ("k6/metrics", &["Counter", "Gauge", "Rate", "Trend"]),
    ("k6/data", &["SharedArray"]),
    ("k6/execution", &["instance", "scenario", "vu", "test"]),
    ("k6/encoding", &["b64encode", "b64decode"]),
    (
        "k6/crypto",
        &[
            "createHash",
            "createHMAC",
            "hmac",
            "randomBytes",
            "hexEncode",
            "md4",
            "md5",
            "sha1",
            "sha256",
            "sha384",
            "sha512",
            "sha512_224",
            "sha512_256",
            "ripemd160",
        ],
    ),
    ("k6/crypto/x509", &["parse", "getSubject", "getIssuer", "getAltNames"]),
    ("k6/html", &["parseHTML", "Selection", "Element"]),
    (
        "k6/net/grpc",
        &[
            "Client",
            "Stream",
            "StatusOK",
            "StatusCanceled",
            "StatusUnknown",
            "StatusInvalidArgument",
            "StatusDeadlineExceeded",
            "StatusNotFound",
            "StatusAlreadyExists",
            "StatusPermissionDenied",
            "StatusResourceExhausted",
            "StatusFailedPrecondition",
            "StatusAborted",
            "StatusOutOfRange",
            "StatusUnimplemented",
            "StatusInternal",
            "StatusUnavailable",
            "StatusDataLoss",
            "StatusUnauthenticated",
            "HealthCheckUnknown",
            "HealthCheckServing",
            "HealthCheckNotServing",
            "HealthCheckServiceUnkown",
        ],
    ),
    ("k6/timers", &["setTimeout", "setInterval", "clearTimeout", "clearInterval"]),
    ("k6/secrets", &[]),
    ("k6/ws", &["connect", "Socket"]),
    ("k6/websockets", &["WebSocket"]),
    // internal: used by imports of Postman collections with scripts
    ("loadstone/postman", &["collection"]),
    ("k6/experimental/fs", &["open", "SeekMode"]),
    ("k6/experimental/csv", &["parse", "Parser"]),
    (
        "k6/experimental/streams",
        &[
            "ReadableStream",
            "ReadableStreamDefaultReader",
            "ReadableStreamDefaultController",
            "WritableStream",
            "WritableStreamDefaultWriter",
            "CountQueuingStrategy",
            "ByteLengthQueuingStrategy",
        ],
    ),
];

/// Built-in libraries of jslib.k6.io: the part of the address that names them, and their text.
const LIBRARIES: &[(&str, &str)] = &[
    ("k6-utils", include_str!("js/k6_utils.js")),
    ("k6-summary", include_str!("js/k6_summary.js")),
    ("url", include_str!("js/url.js")),
    ("papaparse", include_str!("js/papaparse.js")),
    ("totp", include_str!("js/totp.js")),
    ("k6chaijs", include_str!("js/chai.js")),
    ("httpx", include_str!("js/httpx.js")),
    ("aws", include_str!("js/aws.js")),
    ("k6-testing", include_str!("js/testing.js")),
    ("formdata", include_str!("js/formdata.js")),
    ("http-instrumentation-tempo", include_str!("js/tracing.js")),
    ("http-instrumentation-pyroscope", include_str!("js/tracing.js")),
];

/// Former names of modules.
const RENAMED: &[(&str, &str)] = &[
    ("k6/experimental/websockets", "k6/websockets"),
    ("k6/experimental/timers", "k6/timers"),
    ("k6/experimental/grpc", "k6/net/grpc"),
];

/// Target of a name in an import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModuleRef {
    /// Module of k6.
    Native(&'static str),
    /// Module of jslib, by its row.
    Library(&'static str),
    File(String),
    /// Reason why the module cannot be imported.
    Refused(String),
}

/// Resolves a name as written in the file `from`.
pub fn resolve(from: &str, name: &str) -> ModuleRef {
    let renamed = RENAMED.iter().find(|(former, _)| *former == name);
    let name = renamed.map_or(name, |(_, current)| *current);
    if let Some((known, _)) = NATIVE.iter().find(|(known, _)| *known == name) {
        return ModuleRef::Native(known);
    }
    if let Some(address) = name.strip_prefix("https://jslib.k6.io/") {
        let library = address.split('/').next().unwrap_or_default();
        return match LIBRARIES.iter().find(|(known, _)| *known == library) {
            Some((known, _)) => ModuleRef::Library(known),
            None => ModuleRef::Refused(format!(
                "jslib's \"{library}\" is not built in; download the file and import it from disk"
            )),
        };
    }
    let refused = |why: &str| ModuleRef::Refused(why.to_owned());
    match name {
        _ if name.starts_with("k6/x/") => refused("extensions of k6 are not available"),
        _ if name.starts_with("k6/browser") => refused("the browser module is not available"),
        _ if name == "k6" || name.starts_with("k6/") => {
            refused("this module of k6 is not available")
        }
        _ if name.starts_with("https://") || name.starts_with("http://") => {
            refused("remote modules are not loaded; download the file and import it from disk")
        }
        _ if name.starts_with(['.', '/']) || name.starts_with("file://") => {
            ModuleRef::File(normalize(from, name.strip_prefix("file://").unwrap_or(name)))
        }
        _ if name.ends_with(".js") || name.ends_with(".ts") => {
            ModuleRef::File(normalize(from, name))
        }
        _ => refused("packages of Node.js are not available; bundle them into a file"),
    }
}

impl ModuleRef {
    /// Returns the key by which the engine identifies the module.
    pub(crate) fn key(&self) -> Option<String> {
        match self {
            ModuleRef::Native(name) => Some((*name).to_owned()),
            ModuleRef::Library(name) => Some(format!("jslib:{name}")),
            ModuleRef::File(path) => Some(path.clone()),
            ModuleRef::Refused(_) => None,
        }
    }
}

/// Returns the text of a module by its key.
///
/// # Errors
/// Fails if there is no such file.
pub fn text(program: &Program, key: &str) -> Result<Arc<str>, String> {
    if let Some((name, exports)) = NATIVE.iter().find(|(known, _)| *known == key) {
        return Ok(native_text(name, exports).into());
    }
    if let Some(library) = key.strip_prefix("jslib:") {
        let found = LIBRARIES.iter().find(|(known, _)| *known == library);
        return found
            .map(|(_, text)| (*text).into())
            .ok_or_else(|| format!("no library {library}"));
    }
    program.text(key)
}

/// Returns a module that exports the objects of the prelude.
fn native_text(name: &str, exports: &[&str]) -> String {
    let mut text =
        format!("const it = globalThis.__k6_module('{name}');\nexport default it.default;\n");
    for export in exports {
        text.push_str(&format!("export const {export} = it.{export};\n"));
    }
    text
}

/// Maximum number of names that a CommonJS file exports to modules.
const EXPORTS_MAX: usize = 10_000;

/// Returns a module with the exports of a CommonJS file. The file runs now: its names must be known
/// before the module is linked.
fn common_js_text(ctx: &Ctx<'_>, key: &str) -> Result<String, Error> {
    let load: Function<'_> = ctx.globals().get("__k6_load_file")?;
    let exports: Value<'_> = load.call((key,))?;
    let names = exports.as_object().map(|it| it.keys::<String>().flatten().take(EXPORTS_MAX));
    let key = serde_json::Value::from(key);
    let mut text = format!(
        "const it = globalThis.__k6_load_file({key});\n\
         export default it && it.__esModule && 'default' in it ? it.default : it;\n"
    );
    let is_name = |name: &String| {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$';
        !name.starts_with(|first: char| first.is_ascii_digit())
            && name.bytes().all(allowed)
            && !matches!(name.as_str(), "" | "default")
    };
    for (number, name) in names.into_iter().flatten().filter(is_name).enumerate() {
        text.push_str(&format!(
            "const e{number} = it.{name};\nexport {{ e{number} as {name} }};\n"
        ));
    }
    Ok(text)
}

pub(crate) struct ModuleNames;

impl Resolver for ModuleNames {
    fn resolve<'js>(
        &mut self,
        _: &Ctx<'js>,
        base: &str,
        name: &str,
        _: Option<ImportAttributes<'js>>,
    ) -> Result<String, Error> {
        if let Some(key) = crate::bytecode::key_of(name) {
            return Ok(key.to_owned());
        }
        match resolve(base, name) {
            ModuleRef::Refused(why) => Err(Error::new_resolving_message(base, name, why)),
            found => found.key().ok_or_else(|| Error::new_resolving(base, name)),
        }
    }
}

pub(crate) struct ModuleTexts(pub(crate) Arc<Program>);

impl Loader for ModuleTexts {
    fn load<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        name: &str,
        _: Option<ImportAttributes<'js>>,
    ) -> Result<Module<'js, Declared>, Error> {
        let mut text = text(&self.0, name).map_err(|why| Error::new_loading_message(name, why))?;
        if !self.0.is_module(name, &text) {
            text = common_js_text(ctx, name)?.into();
        }
        crate::bytecode::declare(ctx, &self.0, name, &text)
    }
}

/// Resolves `require`: returns `native`, `module` or `file`, and the key.
pub(crate) fn required(program: &Program, from: &str, name: &str) -> Result<Vec<String>, String> {
    let found = match resolve(from, name) {
        ModuleRef::Refused(why) => return Err(format!("cannot import \"{name}\": {why}")),
        ModuleRef::Native(name) => ["native".to_owned(), name.to_owned()],
        ModuleRef::Library(name) => ["module".to_owned(), format!("jslib:{name}")],
        ModuleRef::File(path) => {
            let text = program.text(&path)?;
            let kind = if program.is_module(&path, &text) { "module" } else { "file" };
            [kind.to_owned(), path]
        }
    };
    Ok(found.to_vec())
}
