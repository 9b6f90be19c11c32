//! Exports Lua's C interface from the program: C modules that a script loads (`require "cjson"`)
//! link against it, as in wrk. A static binary cannot load C modules.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let set = |name: &str| std::env::var_os(name).is_some();
    let features = std::env::var("CARGO_CFG_TARGET_FEATURE").unwrap_or_default();
    let is_static = features.split(',').any(|feature| feature == "crt-static");
    let is_linux = std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux");
    if set("CARGO_FEATURE_LUA") && is_linux && !is_static {
        for symbols in ["lua_*", "luaL_*"] {
            println!("cargo:rustc-link-arg-bins=-Wl,--export-dynamic-symbol={symbols}");
        }
    }
}
