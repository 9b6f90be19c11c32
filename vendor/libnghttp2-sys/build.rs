//! Compiles libnghttp2 as one unit: see README.md.

use std::path::{Path, PathBuf};
use std::{env, fs};

/// Sources in the order in which they stand in the unit. What `nghttp2_helper.c` and
/// `nghttp2_http.c` both define for themselves gets another name in the latter.
const SOURCES: &[&str] = &[
    "mem",
    "buf",
    "rcbuf",
    "helper",
    "map",
    "pq",
    "queue",
    "ratelim",
    "time",
    "alpn",
    "callbacks",
    "debug",
    "extpri",
    "hd_huffman_data",
    "hd_huffman",
    "hd",
    "http",
    "frame",
    "option",
    "outbound_item",
    "priority_spec",
    "stream",
    "submit",
    "session",
    "version",
];
const TWICE: (&str, &str) = ("http", "VALID_AUTHORITY_CHARS");

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=nghttp2/lib");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    let include = out.join("include");
    write_version(&include.join("nghttp2"));
    let unit = out.join("nghttp2_unit.c");
    fs::write(&unit, unit_text()).expect("OUT_DIR can be written to");
    cc::Build::new()
        .include("nghttp2/lib/includes")
        .include("nghttp2/lib")
        .include(&include)
        .file(&unit)
        .warnings(false)
        .define("NGHTTP2_STATICLIB", None)
        .define("HAVE_ARPA_INET_H", None)
        .define("HAVE_NETINET_IN", None)
        .define("HAVE_TIME_H", None)
        .define("NDEBUG", None)
        // else nothing that is visible outside is inlined, and in this library that is nearly all
        .flag_if_supported("-fno-semantic-interposition")
        .compile("nghttp2");
}

/// What `nghttp2ver.h.in` is made into: the version behind the `+` of the package's.
fn write_version(folder: &Path) {
    let package = env::var("CARGO_PKG_VERSION").expect("cargo sets it");
    let (_, version) = package.split_once('+').expect("the library's version");
    let number = version
        .split('.')
        .map(|part| part.parse::<u32>().expect("a number"))
        .fold(0, |sum, part| sum << 8 | part);
    let header = fs::read_to_string("nghttp2/lib/includes/nghttp2/nghttp2ver.h.in")
        .expect("it is in the package")
        .replace("@PACKAGE_VERSION@", version)
        .replace("@PACKAGE_VERSION_NUM@", &format!("0x{number:06x}"));
    fs::create_dir_all(folder).expect("OUT_DIR can be written to");
    fs::write(folder.join("nghttp2ver.h"), header).expect("OUT_DIR can be written to");
}

fn unit_text() -> String {
    let (twice, name) = TWICE;
    let mut text = String::new();
    for source in SOURCES {
        let include = format!("#include \"nghttp2_{source}.c\"\n");
        if *source == twice {
            text += &format!("#define {name} {name}_AGAIN\n{include}#undef {name}\n");
        } else {
            text += &include;
        }
    }
    text + "#include \"sfparse.c\"\n"
}
