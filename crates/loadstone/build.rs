//! Linker options of the program.
//!
//! Lua's C interface is exported: C modules that a script loads (`require "cjson"`) link against it,
//! as in wrk. A static binary cannot load C modules.
//!
//! Relative relocations are packed where this machine's glibc can apply them: the loader reads 60 kB
//! of them at each start instead of 5 MB. The builds of `cargo xtask dist` also run with older glibc,
//! and keep the plain form.

use std::process::Command;

/// First minor version of glibc 2 that applies packed relocations.
const PACKED_SINCE: u32 = 36;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let set = |name: &str| std::env::var_os(name).is_some();
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|it| it == value);
    let features = std::env::var("CARGO_CFG_TARGET_FEATURE").unwrap_or_default();
    let is_static = features.split(',').any(|feature| feature == "crt-static");
    let is_linux = is("CARGO_CFG_TARGET_OS", "linux");
    if set("CARGO_FEATURE_LUA") && is_linux && !is_static {
        for symbols in ["lua_*", "luaL_*"] {
            println!("cargo:rustc-link-arg-bins=-Wl,--export-dynamic-symbol={symbols}");
        }
    }
    // the level of the profile `dist`
    let is_shipped = is("OPT_LEVEL", "s");
    let is_native = std::env::var_os("HOST") == std::env::var_os("TARGET");
    let is_glibc = is_linux && is("CARGO_CFG_TARGET_ENV", "gnu");
    if is_glibc && is_native && !is_static && !is_shipped && glibc() >= Some(PACKED_SINCE) {
        println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// Returns the minor version of this machine's glibc 2; `None` if unknown.
fn glibc() -> Option<u32> {
    let output = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.trim().strip_prefix("glibc 2.")?.split('.').next()?.parse().ok()
}
