//! Debian packages that the tests need: installed if permitted, otherwise listed.

use crate::shell::{self, Missing};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Program, or another file by its whole path, and the Debian package that brings it.
const NEEDS: &[(&str, &str)] = &[
    ("ab", "apache2-utils"),
    // without the package apache2, which brings a service
    ("apache2", "apache2-bin"),
    ("/usr/lib/apache2/modules/mod_perl.so", "libapache2-mod-perl2"),
    // a server in Go
    ("caddy", "caddy"),
    // the pages are read in a real browser
    ("chromium", "chromium"),
    ("curl", "curl"),
    // name servers for the survey's fingerprints; packages start none of them
    ("dnsmasq", "dnsmasq-base"),
    ("knotd", "knot"),
    ("named", "bind9"),
    ("nsd", "nsd"),
    ("pdns_server", "pdns-server"),
    ("/usr/share/doc/pdns-backend-bind/copyright", "pdns-backend-bind"),
    ("unbound", "unbound"),
    ("h2load", "nghttp2-client"),
    ("httperf", "httperf"),
    // a network namespace that loses packets
    ("ip", "iproute2"),
    ("lighttpd", "lighttpd"),
    ("make", "make"),
    // programs for replaying failures, and the server that connects the machines of a fleet
    ("nats-server", "nats-server"),
    ("nc", "netcat-openbsd"),
    ("nft", "nftables"),
    ("nghttpd", "nghttp2-server"),
    ("nginx", "nginx-light"),
    // the debug information of a release, split off
    ("objcopy", "binutils"),
    ("openssl", "openssl"),
    ("python3", "python3"),
    // the package for Fedora
    ("rpmbuild", "rpm"),
    // a terminal for the live view
    ("script", "bsdutils"),
    ("siege", "siege"),
    ("wrk", "wrk"),
    // modules that wrk's scripts load
    ("/usr/share/lua/5.1/cjson/util.lua", "lua-cjson"),
    ("/usr/share/lua/5.1/re.lua", "lua-lpeg"),
    ("/usr/share/lua/5.1/socket.lua", "lua-socket"),
];

/// Debian asks this program before it starts a freshly installed server; 101 means no.
const POLICY: &str = "/usr/sbin/policy-rc.d";

/// Waits for another apt-get, which fresh machines run by themselves, instead of failing.
const LOCK: [&str; 2] = ["-o", "DPkg::Lock::Timeout=600"];

/// Pause before each further attempt to refresh the lists: about the duration of a new machine's
/// own apt-get.
const UPDATE_PAUSES: [Duration; 3] =
    [Duration::from_secs(5), Duration::from_secs(15), Duration::from_secs(40)];

/// Installs missing packages.
///
/// # Errors
/// Fails with [`Missing`] when something is missing and we are not allowed to install it, or if
/// apt-get failed.
pub(crate) fn install() -> anyhow::Result<()> {
    install_these(NEEDS)
}

/// Installs the missing ones of these, programs with their packages.
///
/// # Errors
/// Fails like [`install`].
pub(crate) fn install_these(needs: &[(&str, &str)]) -> anyhow::Result<()> {
    let absent: Vec<(&str, &str)> =
        needs.iter().copied().filter(|(program, _)| !is_present(program)).collect();
    if absent.is_empty() {
        return Ok(());
    }
    let packages: Vec<&str> = absent.iter().map(|(_, package)| *package).collect();
    let Some(power) = Power::installation_rights() else {
        return Err(Missing(packages_needed(&absent)).into());
    };
    eprintln!("xtask: installing Debian's {} (a few minutes)", packages.join(", "));
    let _kept = KeptFromStarting::new(power)?;
    if let Err(error) = update(power) {
        // outdated lists show as an installation error
        eprintln!("xtask: {error:#}; continuing with the existing lists");
    }
    let mut install = power.command("apt-get");
    install.args(LOCK);
    install.args(["-qq", "install", "--yes", "--no-install-recommends"]).args(&packages);
    shell::run(&mut install)?;
    match absent.iter().find(|(program, _)| !is_present(program)) {
        Some(still) => Err(Missing(packages_needed(&[*still])).into()),
        None => Ok(()),
    }
}

/// Updates apt's lists. Its option for locks covers only dpkg's, so this waits for another apt-get
/// that holds the lists.
fn update(power: Power) -> anyhow::Result<()> {
    let once = || shell::run(power.command("apt-get").args(["-qq", "update"]));
    for pause in UPDATE_PAUSES {
        match once() {
            Ok(()) => return Ok(()),
            Err(error) => eprintln!("xtask: {error:#}; retrying in {} s", pause.as_secs()),
        }
        std::thread::sleep(pause);
    }
    once()
}

fn is_present(needed: &str) -> bool {
    if needed.starts_with('/') { Path::new(needed).exists() } else { shell::find(needed).is_some() }
}

/// Adds system folders to PATH: an ordinary user's PATH on Debian lacks the folder of nginx.
pub(crate) fn with_system_folders(command: &mut Command) {
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{path}:/usr/local/sbin:/usr/sbin:/sbin"));
}

/// Returns the missing packages, and the command to install them.
fn packages_needed(absent: &[(&str, &str)]) -> String {
    let programs: Vec<&str> = absent.iter().map(|(program, _)| *program).collect();
    let packages: Vec<&str> = absent.iter().map(|(_, package)| *package).collect();
    format!(
        "the tests need {}, which this machine lacks. As root on Debian or Ubuntu: \
         apt-get install --no-install-recommends {}",
        programs.join(", "),
        packages.join(" ")
    )
}

/// Permitted way of changing the system.
#[derive(Clone, Copy, Debug)]
enum Power {
    Root,
    Sudo,
}

impl Power {
    /// Returns how packages can be installed; `None` without apt-get, or if this process is not
    /// root and sudo requires a password.
    fn installation_rights() -> Option<Power> {
        shell::find("apt-get")?;
        if shell::output(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0") {
            return Some(Power::Root);
        }
        shell::find("sudo")?;
        shell::output(Command::new("sudo").args(["-n", "true"])).is_ok().then_some(Power::Sudo)
    }

    fn command(self, program: &str) -> Command {
        let mut command = match self {
            Power::Root => Command::new("env"),
            Power::Sudo => {
                let mut sudo = Command::new("sudo");
                sudo.args(["-n", "env"]);
                sudo
            }
        };
        command.args(["DEBIAN_FRONTEND=noninteractive", program]);
        command
    }
}

/// Keeps installed packages from starting their servers until it is dropped.
#[derive(Debug)]
struct KeptFromStarting {
    /// `None` if there was a policy already.
    power: Option<Power>,
}

impl KeptFromStarting {
    fn new(power: Power) -> anyhow::Result<KeptFromStarting> {
        if Path::new(POLICY).exists() {
            return Ok(KeptFromStarting { power: None });
        }
        let write = format!("printf '#!/bin/sh\\nexit 101\\n' >{POLICY} && chmod 755 {POLICY}");
        let made = KeptFromStarting { power: Some(power) };
        shell::run(power.command("sh").args(["-c", &write]))?;
        Ok(made)
    }
}

impl Drop for KeptFromStarting {
    fn drop(&mut self) {
        if let Some(power) = self.power
            && let Err(error) = shell::run(power.command("rm").args(["-f", POLICY]))
        {
            eprintln!("xtask: {POLICY} still exists and prevents servers from starting: {error:#}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_names_programs_and_packages() {
        let text = packages_needed(&[("ab", "apache2-utils"), ("nginx", "nginx-light")]);
        assert!(text.contains("need ab, nginx,"), "{text}");
        assert!(text.ends_with("install --no-install-recommends apache2-utils nginx-light"));
    }
}
