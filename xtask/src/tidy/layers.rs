//! The layer rule: which crate may depend on which. The table is enforced; a crate that is not in
//! it is a finding.

use super::manifests::manifest;
use super::{Finding, Tree};

/// Highest layer without sockets, files, threads, environment variables or clocks.
pub(super) const PURE_LAYER_MAX: u8 = 3;
/// Sockets, files, threads, the clock.
pub(super) const SHELL_LAYER: u8 = 4;

struct Place {
    name: &'static str,
    layer: u8,
    may: May,
}

enum May {
    /// Only these of our crates; above layer 2, [`GROUND`] is implied.
    Only(&'static [&'static str]),
    /// All crates in layers up to this one.
    UpTo(u8),
}

/// Plain data that every higher crate may use.
const GROUND: &[&str] = &["units", "sample"];

const PLACES: &[Place] = &[
    only("units", 0, &[]),
    only("sample", 1, &["units"]),
    only("conduit", 1, &["units", "sample"]),
    only("protocol", 2, &["units", "sample", "conduit"]),
    only("http2", 2, &["sample"]),
    only("websocket", 2, &[]),
    only("stats", 2, &["units", "sample"]),
    only("workload", 2, &["units", "sample", "conduit", "protocol", "http2", "stats"]),
    only("dialogue", 2, &["units", "sample", "conduit", "protocol", "tcp", "websocket"]),
    only("torture", 2, &["units", "sample", "conduit", "dialogue", "websocket"]),
    only("faulty", 2, &["units", "sample", "conduit", "protocol", "websocket"]),
    only("wan", 2, &["units"]),
    only("tcp", 2, &["units", "sample"]),
    up_to("plan", 3, 2),
    only("quic", 3, &["conduit"]),
    only("tunnel", 3, &["conduit", "http2", "protocol", "websocket"]),
    only("import", 3, &["plan", "protocol", "stats", "workload"]),
    up_to("engine", 3, 3),
    only("record", 3, &["plan", "stats", "torture", "workload"]),
    // faulty: its reader decides whether a conforming server would wait for the rest of a request
    only("campaign", 3, &["conduit", "stats", "dialogue", "torture", "faulty"]),
    only("net", 4, &["conduit", "quic"]),
    only("grpc", 3, &["protocol"]),
    only("lua", 4, &["conduit", "protocol", "workload"]),
    only("k6", 4, &["protocol", "workload", "grpc"]),
    only("host", 4, &[]),
    only("netpath", 4, &["wan"]),
    only("fleet", 4, &["net", "stats", "workload"]),
    only("ownstack", 4, &["conduit", "dialogue", "tcp", "wan", "netpath", "net"]),
    only("eventloop", 4, &["conduit", "engine", "quic", "tunnel", "net", "ownstack"]),
    only("store", 4, &["plan", "stats", "record", "dialogue", "torture", "host"]),
    only(
        "site",
        4,
        &["conduit", "net", "faulty", "workload", "protocol", "quic", "grpc", "websocket"],
    ),
    only("norm", 4, &[]),
    only("recorder", 4, &[]),
    only("report", 5, &["stats", "dialogue", "torture", "campaign", "record"]),
    only("live", 5, &["record", "report", "stats", "store"]),
    only(
        "faces",
        5,
        &["plan", "stats", "record", "dialogue", "torture", "protocol", "workload", "grpc", "k6"],
    ),
    up_to("session", 5, 5),
    up_to("world", 5, 5),
    up_to("fleetrun", 5, 5),
    up_to("args", 6, 5),
    up_to("loadstone", 7, 6),
    // virtual time for tests: drives the pure layers, never the shells
    up_to("sim", 4, 3),
];

const fn only(name: &'static str, layer: u8, may: &'static [&'static str]) -> Place {
    Place { name, layer, may: May::Only(may) }
}

const fn up_to(name: &'static str, layer: u8, max: u8) -> Place {
    Place { name, layer, may: May::UpTo(max) }
}

/// Third-party crates restricted to some of our crates: the packages, where they are permitted, and
/// the reasons.
struct Gate {
    packages: &'static [&'static str],
    allowed: fn(&str) -> bool,
    why: &'static str,
}

const GATES: &[Gate] = &[
    Gate {
        packages: &[
            "async-nats",
            "hyper",
            "hyper-util",
            "io-uring",
            "libc",
            "memmap2",
            "mio",
            "nix",
            "polling",
            "quinn",
            "quinn-udp",
            "reqwest",
            "rtnetlink",
            "rusqlite",
            "rustix",
            "signal-hook",
            "socket2",
            "tempfile",
            "tokio",
            "tun-rs",
        ],
        allowed: |name| !is_pure(name),
        why: "sockets, files, threads, environment and clock stay out of layers 0-3",
    },
    Gate {
        packages: &["tokio", "async-std", "smol", "axum"],
        allowed: |name| ["fleet", "site", "norm", "live", "recorder"].contains(&name),
        why: "an async runtime lives in fleet, site, norm, live and recorder only",
    },
    Gate {
        packages: &["rusqlite", "libsqlite3-sys", "sqlx", "diesel"],
        allowed: |name| name == "store",
        why: "SQL lives in store only",
    },
    Gate {
        packages: &["http", "httparse", "hyper", "h2", "h3"],
        allowed: |name| !["net", "stats"].contains(&name),
        why: "net and stats know no HTTP",
    },
];

/// Permissions that still break the layer rule, as (crate, dependency). The list may only shrink.
const OWED: &[(&str, &str)] = &[];

/// Checks that the table obeys its own rule: no crate may use a higher layer.
pub(super) fn permissions(tree: &Tree) -> Vec<Finding> {
    // a test tree has no table
    if tree.text(TABLE).is_none() {
        return Vec::new();
    }
    broken_permissions(PLACES, OWED).into_iter().map(|text| Finding::new(TABLE, 0, text)).collect()
}

const TABLE: &str = "xtask/src/tidy/layers.rs";

fn broken_permissions(places: &[Place], owed: &[(&str, &str)]) -> Vec<String> {
    let layer =
        |name: &str| places.iter().find(|place| place.name == name).map(|place| place.layer);
    let mut found = Vec::new();
    let mut used = Vec::new();
    for place in places {
        let permitted = match place.may {
            May::Only(names) => names,
            May::UpTo(max) if max > place.layer => {
                found.push(format!("{} may use layers up to {max}, above its own", place.name));
                continue;
            }
            May::UpTo(_) => continue,
        };
        for &name in permitted {
            let above = layer(name).is_none_or(|layer| layer > place.layer);
            match owed.iter().find(|pair| **pair == (place.name, name)) {
                Some(pair) if above => used.push(*pair),
                _ if above => found.push(format!("{} may not be permitted {name}", place.name)),
                _ => {}
            }
        }
    }
    let stale = owed.iter().filter(|pair| !used.contains(pair));
    found.extend(stale.map(|(name, on)| format!("({name}, {on}) is no longer needed; remove it")));
    found
}

/// Returns the layer of a crate; `None` if it is not in the table.
pub(super) fn layer_of(name: &str) -> Option<u8> {
    PLACES.iter().find(|place| place.name == name).map(|place| place.layer)
}

/// Returns whether the crate must avoid sockets, files, threads, environment and clock.
pub(super) fn is_pure(name: &str) -> bool {
    name == "sim" || layer_of(name).is_some_and(|layer| layer <= PURE_LAYER_MAX)
}

/// Crates of this program depend only on lower ones, as in the table.
pub(super) fn ours(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    let crates: Vec<&str> = tree.crates().collect();
    for (name, folder) in tree.crate_folders() {
        let path = format!("{folder}/Cargo.toml");
        let Some(place) = PLACES.iter().find(|place| place.name == name) else {
            let text = "has no layer: give it one in xtask/src/tidy/layers.rs";
            found.push(Finding::new(&path, 0, text));
            continue;
        };
        for dependency in dependencies(tree, &path) {
            if !crates.contains(&dependency.as_str()) || allowed(place, &dependency) {
                continue;
            }
            let text = format!(
                "layer law: {name} (layer {}) may not depend on {dependency} (layer {})",
                place.layer,
                layer_of(&dependency).map_or("?".to_owned(), |layer| layer.to_string()),
            );
            found.push(Finding::new(&path, 0, text));
        }
        // not even tests may depend on the program, the top of the graph
        if dev_dependencies(tree, &path).iter().any(|dependency| dependency == "loadstone") {
            found.push(Finding::new(&path, 0, "layer law: nothing depends on loadstone"));
        }
    }
    found
}

fn allowed(place: &Place, dependency: &str) -> bool {
    if dependency == "sim" || dependency == "loadstone" {
        return false;
    }
    let Some(layer) = layer_of(dependency) else { return true };
    match place.may {
        May::Only(names) => {
            let spoken = place.layer > 2 && GROUND.contains(&dependency);
            spoken || names.contains(&dependency)
        }
        May::UpTo(max) => layer <= max,
    }
}

/// Checks that third-party crates are used only in the crates for their kind of work.
pub(super) fn theirs(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for (name, folder) in tree.crate_folders() {
        let path = format!("{folder}/Cargo.toml");
        for dependency in dependencies(tree, &path) {
            for gate in GATES {
                if gate.packages.contains(&dependency.as_str()) && !(gate.allowed)(name) {
                    let text = format!("{name} may not use {dependency}: {}", gate.why);
                    found.push(Finding::new(&path, 0, text));
                }
            }
        }
    }
    found
}

/// Returns the package names that a crate is built from: normal and build dependencies, for any
/// target.
fn dependencies(tree: &Tree, path: &str) -> Vec<String> {
    tables(&manifest(tree, path), &["dependencies", "build-dependencies"])
}

fn dev_dependencies(tree: &Tree, path: &str) -> Vec<String> {
    tables(&manifest(tree, path), &["dev-dependencies"])
}

fn tables(manifest: &toml::Table, kinds: &[&str]) -> Vec<String> {
    let targets = manifest.get("target").and_then(toml::Value::as_table);
    let per_target = targets.into_iter().flat_map(toml::Table::values);
    let places = per_target.filter_map(toml::Value::as_table).chain([manifest]);
    let mut names = Vec::new();
    for place in places {
        for kind in kinds {
            let table = place.get(*kind).and_then(toml::Value::as_table);
            for (key, value) in table.into_iter().flatten() {
                let renamed = value.get("package").and_then(toml::Value::as_str);
                names.push(renamed.unwrap_or(key).to_owned());
            }
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_upward_permission_is_reported_unless_it_is_listed() {
        let places = [only("low", 2, &["high"]), only("high", 5, &["low"]), up_to("all", 3, 4)];
        let found = broken_permissions(&places, &[]);
        assert_eq!(
            found,
            ["low may not be permitted high", "all may use layers up to 4, above its own"]
        );
        let found = broken_permissions(&places[..2], &[("low", "high")]);
        assert_eq!(found, [""; 0]);
        let found = broken_permissions(&places[1..2], &[("low", "high")]);
        assert_eq!(found[1..], ["(low, high) is no longer needed; remove it"]);
    }

    #[test]
    fn a_permission_for_a_crate_without_a_place_is_found() {
        let found = broken_permissions(&[only("low", 2, &["nobody"])], &[]);
        assert_eq!(found, ["low may not be permitted nobody"]);
    }
}
