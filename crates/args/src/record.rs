//! The options of `record`.

use super::{UsageError, parse};
use clap::Args;
use std::net::SocketAddr;
use std::path::PathBuf;
use url::Url;

/// Record the requests of a browser or a client, and make a plan from them
///
/// In front of one server (--upstream) it is a reverse proxy, over http:// and https://. Without
/// --upstream it is the HTTP proxy of a browser and also records https:// sites, if the browser
/// trusts the recorder's own certificate authority, whose certificate is at
/// http://ADDRESS/.loadstone/ca.pem. Ctrl-C ends the recording, which has the cookies and logins
/// that were sent.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  loadstone record --upstream http://localhost:8080
                                                 then use http://127.0.0.1:8888/
  loadstone record --ca recorder.pem             the HTTP proxy of a browser
  loadstone record --upstream http://localhost:8080 --replay-check
  loadstone workload import visit.har --second again.har -o visit.toml
                                                 two recordings: what changes")]
pub struct RecordArgs {
    /// Address to listen on; port 0 takes a free one
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:8888")]
    pub listen: SocketAddr,
    /// The server that requests are passed on to
    #[arg(long, value_name = "URL", value_parser = server)]
    pub upstream: Option<Url>,
    /// Write the recording to this file
    #[arg(long, value_name = "FILE", default_value = "recording.har")]
    pub har: PathBuf,
    /// Write the plan to this file; - is standard output
    #[arg(short = 'o', long, value_name = "FILE|-", value_parser = parse::sink, default_value = "recording.toml")]
    pub output: super::Sink,
    /// Keep the certificate authority in this file, and its key in FILE.key, for later recordings
    /// [default: a new one that is not saved]
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// Accept any certificate of a server
    #[arg(long)]
    pub insecure: bool,
    /// End after this number of requests
    #[arg(short = 'n', long, value_parser = parse::count::<usize>, value_name = "N")]
    pub requests: Option<usize>,
    /// Run the plan once with one user at the end, and show the steps that fail
    #[arg(long)]
    pub replay_check: bool,
    /// Listen on an address that other machines reach: they can use the recorder as their proxy
    #[arg(long)]
    pub public: bool,
    /// Print nothing but errors
    #[arg(short = 'q', long)]
    pub quiet: bool,
}

fn server(text: &str) -> Result<Url, String> {
    parse::bare_url(text, "leave it to the client")
}

impl RecordArgs {
    /// # Errors
    /// Fails for an address that other machines reach, without --public; no request to wait for.
    pub fn check(&self) -> Result<(), UsageError> {
        if !self.listen.ip().is_loopback() && !self.public {
            return Err(UsageError::new(format!(
                "--listen {}: other machines could use the recorder as their proxy and read what it \
                 records; listen on 127.0.0.1, or add --public",
                self.listen
            )));
        }
        if self.requests == Some(0) {
            return Err(UsageError::new("-n 0 records nothing; give 1 or more"));
        }
        Ok(())
    }
}
