//! Too few descriptors and local ports.

use super::running::{namespace, unprivileged};
use crate::support::{Scripted, Site, failures, finish, outcomes, whole};

#[test]
fn more_users_than_descriptors_are_refused_before_the_run() {
    let site = Site::start(&[]);
    let Some(mut command) = unprivileged(&["--nofile=80:80"]) else { return };
    command.args(["run", "-c", "100", "-d", "1s", &site.url("/hw")]);
    let ran = finish(command, b"").expect(&[2]);
    assert!(ran.stderr.contains("file descriptors") && ran.stderr.contains("80"), "{}", ran.stderr);
    assert!(ran.stderr.contains("ulimit") && ran.stderr.contains("Fix: "), "{}", ran.stderr);
    assert_eq!(site.served().requests, 0);
}

#[test]
fn a_few_users_need_few_descriptors() {
    let site = Site::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let modes = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(folder.path(), modes).unwrap();
    let log = folder.path().join("calls.log");
    let Some(mut command) = unprivileged(&["--nofile=20:20"]) else { return };
    command.args(["run", "--json", "-", "-c", "2", "--threads", "2", "-d", "1200ms", "--log"]);
    command.arg(&log).args(["--calls", "1", &site.url("/hw")]);
    let json = finish(command, b"").expect(&[0, 4]).json();
    let [due, succeeded, ..] = outcomes(&json);
    assert!(due > 0 && due == succeeded, "{:?}", failures(&json));
    let lines = std::fs::read_to_string(&log).unwrap().lines().count() as u64;
    assert_eq!(lines, due + 1);
}

#[test]
fn a_soft_limit_is_raised() {
    let site = Site::start(&[]);
    let Some(mut command) = unprivileged(&["--nofile=80:1000"]) else { return };
    command.args(["run", "--json", "-", "-c", "200", "-n", "400", &site.url("/hw")]);
    let json = finish(command, b"").expect(&[0, 4]).json();
    assert_eq!(outcomes(&json)[1], 400);
    assert!(whole(&json, "/connections/peak") > 80);
}

#[test]
fn a_growing_pool_stays_within_the_descriptor_limit() {
    let mute = Scripted::start(|mut stream, index| {
        use std::io::{Read, Write};
        let mut buffer = [0; 4096];
        while stream.read(&mut buffer).is_ok_and(|count| count > 0) {
            if index == 0 {
                stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").ok();
            }
        }
    });
    let Some(mut command) = unprivileged(&["--nofile=100:100"]) else { return };
    command.args(["run", "--json", "-", "--rate", "500/s", "-d", "200ms", "--timeout", "300ms"]);
    command.arg(mute.url("/"));
    // 1: the client stalled until the first calls had timed out, and the others found room
    let json = finish(command, b"").expect(&[1, 4]).json();
    let [due, succeeded, _, timed_out, dropped, abandoned] = outcomes(&json);
    assert_eq!((due, succeeded, abandoned), (100, 0, 0));
    assert_eq!(timed_out + dropped, 100);
    assert!(whole(&json, "/connections/peak") < 100);
    assert!(
        failures(&json).iter().all(|(class, _)| class != "fd-unavail"),
        "{:?}",
        failures(&json)
    );
}

/// A site and a client in a separate network with twenty local ports.
const TWENTY_PORTS: &str = r#"
    ip link set lo up && sysctl -qw net.ipv4.ip_local_port_range="40000 40019" || exit 99
    mkfifo "$PLACE/url"
    timeout 50 "$0" site --listen 127.0.0.1:2020 > "$PLACE/url" 2> /dev/null &
    read -r url < "$PLACE/url"
    "$0" "$@" "$url/hw"
    code=$?
    kill $!
    exit $code"#;

/// Like the previous case, while another program holds most of the ports.
const FEW_PORTS_LEFT: &str = r#"
    ip link set lo up && sysctl -qw net.ipv4.ip_local_port_range="40000 40019" || exit 99
    mkfifo "$PLACE/url"
    timeout 50 "$0" site --listen 127.0.0.1:2020 > "$PLACE/url" 2> /dev/null &
    site=$!
    read -r url < "$PLACE/url"
    timeout 50 "$0" run -c 15 -d 10m --think 10m "$url/hw" > /dev/null 2>&1 &
    hog=$!
    until [ "$(grep -c ' 01 ' /proc/net/tcp)" -ge 30 ]; do kill -0 $hog || exit 98; done
    "$0" "$@" "$url/hw"
    code=$?
    kill $hog $site
    exit $code"#;

#[test]
fn exhausted_local_ports_are_counted_and_blamed_on_the_client() {
    let folder = tempfile::tempdir().unwrap();
    let Some(mut command) = namespace(&["-n"], FEW_PORTS_LEFT) else { return };
    command.env("PLACE", folder.path());
    command.args(["run", "--json", "-", "-c", "10", "-d", "2s"]);
    let json = finish(command, b"").expect(&[4]).json();
    let [due, succeeded, failed, timed_out, dropped, abandoned] = outcomes(&json);
    assert_eq!(due, succeeded + failed + timed_out + dropped + abandoned);
    let rows = json["failures"].as_array().unwrap();
    let ports = rows.iter().find(|row| row["class"] == "addrunavail").unwrap();
    assert_eq!(ports["blame"], "driver");
    assert_eq!(whole(ports, "/count"), failed);
    let causes = json["verdict"]["causes"].as_array().unwrap();
    let cause = causes.iter().find(|cause| cause["id"] == "ports").unwrap();
    assert!(cause["advice"].as_str().unwrap().contains("--bind"), "{cause}");
}

#[test]
fn more_users_than_ports_are_refused_before_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let Some(mut command) = namespace(&["-n"], TWENTY_PORTS) else { return };
    command.env("PLACE", folder.path());
    command.args(["run", "-c", "100", "-d", "1s"]);
    let ran = finish(command, b"").expect(&[2]);
    assert!(ran.stderr.contains("100 local ports") && ran.stderr.contains("20"), "{}", ran.stderr);
    assert!(ran.stderr.contains("--bind"), "{}", ran.stderr);
}
