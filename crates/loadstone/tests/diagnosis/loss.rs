//! Real packet loss: a separate network namespace, whose kernel drops a share of the arriving
//! segments. Only root can create one.

use crate::support::{behind, finish, untested};
use crate::{findings_of, succeeds_in_some_attempt};
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};

/// An ordinary user's PATH on Debian lacks the folders of ip and nft.
const FOLDERS: &str = "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin";

/// Maximum length of segments without data, which only open, acknowledge or close a connection.
const BARE_MAX: u32 = 60;

/// Server, at an address that identifies its answers.
const SERVER: &str = "127.0.0.2";

/// Site in a namespace whose loopback loses packets.
struct Lossy {
    child: Child,
    url: String,
}

impl Lossy {
    /// Starts to drop packets.
    /// `which`: packets in the syntax of nft; three of a hundred are dropped on arrival.
    #[track_caller]
    fn start(which: &str) -> Lossy {
        let rules = format!(
            "add table inet loss; \
             add chain inet loss arriving {{ type filter hook input priority 0; }}; \
             add rule inet loss arriving {which} meta l4proto tcp meta length > {BARE_MAX} \
             numgen random mod 100 < 3 drop"
        );
        let script = format!("ip link set lo up && nft '{rules}' && exec \"$0\" \"$@\"");
        let mut command = behind(&["unshare", "--net", "sh", "-c", &script]);
        command.args(["site", "--listen", &format!("{SERVER}:0"), "--delay", "5ms"]);
        command.env("PATH", FOLDERS).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut url).unwrap();
        if url.is_empty() {
            let mut text = String::new();
            child.stderr.as_mut().unwrap().read_to_string(&mut text).unwrap();
            panic!("no site in a namespace that loses packets: {text}");
        }
        Lossy { child, url: url.trim_end().to_owned() }
    }

    /// Returns (id, evidence) of the findings of a run in the same namespace. On a busy machine,
    /// the limit of the client may be first.
    #[track_caller]
    fn findings(&self, load: &[&str]) -> Vec<(String, String)> {
        let namespace = format!("--net=/proc/{}/ns/net", self.child.id());
        let mut command = behind(&["nsenter", &namespace, "--"]);
        command.args(["run", "--json", "-", &self.url, "-d", "3s"]).args(load);
        let mut found = findings_of(&finish(command, b"").expect(&[0, 4]).json());
        found.retain(|(id, _)| id != "client-limited");
        found
    }

    /// Checks that retransmission is listed first, with these words in its evidence.
    fn named_first(&self, load: &[&str], signs: &[&str]) -> Result<(), String> {
        let found = self.findings(load);
        let right = found.first().is_some_and(|(id, evidence)| {
            id == "retransmission" && signs.iter().all(|sign| evidence.contains(sign))
        });
        if right { Ok(()) } else { Err(format!("{load:?}: {found:#?}")) }
    }
}

impl Drop for Lossy {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Returns whether namespaces and packet filters are available; if not, prints the missing part.
fn is_available() -> bool {
    let mut command = Command::new("unshare");
    command.args(["--net", "sh", "-c", "ip link set lo up && nft list ruleset && nsenter -V"]);
    let why = match command.env("PATH", FOLDERS).output() {
        Ok(output) if output.status.success() => return true,
        Ok(output) => String::from_utf8_lossy(&output.stderr).trim_end().to_owned(),
        Err(error) => format!("unshare: {error}"),
    };
    let reason = format!(
        "packet loss is not tested: it needs root, unshare and nsenter (Debian: util-linux), ip \
         (iproute2) and nft (nftables), and here it says: {why}"
    );
    untested(&reason)
}

#[test]
fn packets_lost_both_ways_are_reported_first() {
    if !is_available() {
        return;
    }
    let lossy = Lossy::start("");
    for load in [&["-c", "8"][..], &["--rate", "200/s"]] {
        // both signs: our kernel's own count, and the timer's delay
        succeeds_in_some_attempt(|| lossy.named_first(load, &["segments on", "timer of 200 ms"]));
    }
}

#[test]
fn lost_responses_alone_show_in_the_times() {
    if !is_available() {
        return;
    }
    let lossy = Lossy::start(&format!("ip saddr {SERVER}"));
    succeeds_in_some_attempt(|| lossy.named_first(&["-c", "4"], &["timer of 200 ms"]));
}
