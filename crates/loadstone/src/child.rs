//! The built-in site as a separate process. Its CPU time is separate from the client's, and it can
//! run on another core.

use anyhow::{Context, Result, bail};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// Running site; dropping it ends the process.
pub(crate) struct SiteProcess {
    child: Child,
    pub(crate) url: String,
}

impl SiteProcess {
    /// Starts this program's `site` on a free loopback port, on the first core of several.
    ///
    /// # Errors
    /// Fails if the program cannot be started again, or the site prints no URL.
    pub(crate) fn start(options: &[&str]) -> Result<SiteProcess> {
        let program = host::invocation::program().context("cannot find this program's own file")?;
        let mut command = Command::new(program);
        command.args(["site", "--listen", "127.0.0.1:0"]).args(options);
        let cores = host::cpu::affinity();
        if let [first, _, ..] = cores.as_slice() {
            command.args(["--cpus", &first.to_string()]);
        }
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
        let mut child = child.context("cannot start the built-in site")?;
        let mut line = String::new();
        if let Some(out) = child.stdout.as_mut() {
            BufReader::new(out)
                .read_line(&mut line)
                .context("the built-in site printed nothing")?;
        }
        let site = SiteProcess { child, url: line.trim().to_owned() };
        if !site.url.starts_with("http://") {
            bail!("the built-in site did not start: it printed {:?}", site.url);
        }
        Ok(site)
    }
}

impl Drop for SiteProcess {
    fn drop(&mut self) {
        // it may have ended already
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
