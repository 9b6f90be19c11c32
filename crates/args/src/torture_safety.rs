//! The permission and bounds options of `torture`.

use super::options::{SHARED, SharedOptions, SharedRow, SharedRows};
use super::parse;
use clap::{Args, Subcommand};
use std::net::IpAddr;
use std::path::PathBuf;
use torture::safety::Asked;
use torture::safety::proof::CaseGroup;
use units::{Nanos, ParseError};
use url::Url;

/// Options of permission and limits.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Permission and bounds")]
pub struct TortureSafety {
    /// Private addresses that you own and may stress: slow clients, connections, overload
    #[arg(long, value_name = "ADDR,…", value_delimiter = ',')]
    pub own: Vec<IpAddr>,
    /// Address ranges of third parties in front of servers (CDNs): one line each, range and
    /// provider
    #[arg(long, value_name = "FILE")]
    pub front: Option<PathBuf>,
    /// Contact for the server's operator, sent as the From field
    #[arg(long, value_name = "MAIL", value_parser = words)]
    pub contact: Option<String>,
    /// Text appended to User-Agent
    #[arg(long, value_name = "TEXT", value_parser = words)]
    pub agent_suffix: Option<String>,
    #[command(flatten)]
    pub(super) fields: SharedOptions<TortureFields>,
    /// Maximum number of open connections
    #[arg(long, value_name = "N", value_parser = parse::count::<u64>)]
    pub connections_max: Option<u64>,
    /// Maximum number of new connections per second
    #[arg(long, value_name = "N/s", value_parser = per_second)]
    pub rate_max: Option<u64>,
    /// Maximum number of requests per second, health checks not counted
    #[arg(long, value_name = "N/s", value_parser = per_second)]
    pub requests_max: Option<u64>,
    /// Maximum number of bytes sent per second
    #[arg(long, value_name = "SIZE/s", value_parser = bytes_per_second)]
    pub bytes_max: Option<u64>,
    /// Maximum number of bytes sent on a connection before a response arrives
    #[arg(long, value_name = "SIZE", value_parser = units::parse_size)]
    pub message_max: Option<u64>,
    /// Maximum duration of a case
    #[arg(long, value_name = "SPAN", value_parser = units::parse_duration)]
    pub case_max: Option<Nanos>,
    /// Maximum duration of the whole run
    #[arg(long, value_name = "SPAN", value_parser = units::parse_duration)]
    pub duration: Option<Nanos>,
    /// On a public server, repeat stress that had an effect, to confirm it
    #[arg(long)]
    pub confirm: bool,
    /// Do not write the audit log; only for targets on this machine
    #[arg(long)]
    pub no_audit: bool,
}

/// Header fields given by the user.
#[derive(Debug)]
pub(crate) enum TortureFields {}

impl SharedRows for TortureFields {
    const ROWS: &'static [SharedRow] = &[SharedRow {
        name: "header",
        help: Some(
            "A field 'Name: value' for every request that has a Host, such as a login; may be \
            given several times. Credentials are shown as *** in results, but unchanged in the \
            folder of --out",
        ),
        narrower: Some(own_field),
        heading: Some("What is tested"),
        ..SHARED
    }];
}

/// Header fields that the cases set, or that identify us.
const FIELDS_OF_OURS: [&str; 7] =
    ["host", "connection", "user-agent", "from", "expect", "range", "upgrade"];
/// Maximum size of the user's fields in bytes, below the limits that the cases search for.
const FIELD_MAX: usize = 1_024;

fn own_field(text: &str) -> Result<(), ParseError> {
    let (name, value) = plan::rules::parse_header(text)?;
    if FIELDS_OF_OURS.iter().any(|ours| name.eq_ignore_ascii_case(ours)) {
        let way = "use --contact and --agent-suffix to identify yourself";
        return Err(ParseError(format!("{name} is set by the cases: omit it; {way}")));
    }
    match name.len() + value.len() {
        length if length > FIELD_MAX => {
            Err(ParseError(format!("it is longer than {FIELD_MAX} bytes")))
        }
        _ => Ok(()),
    }
}

impl TortureSafety {
    /// Returns the user's settings for every request.
    pub fn request(&self) -> plan::RequestPlan {
        self.fields.value(|plan| plan.request)
    }

    pub fn requested(&self) -> Asked {
        Asked {
            connections_max: self.connections_max,
            opens_max: self.rate_max,
            requests_max: self.requests_max,
            bytes_max: self.bytes_max,
            message_max: self.message_max,
            case_max: self.case_max,
            run_max: self.duration,
        }
    }
}

/// Options of `torture prove`.
#[derive(Args, Clone, Debug)]
pub struct ProveArgs {
    /// The server to test
    #[arg(value_name = "URL", value_parser = super::torture::target)]
    pub url: Url,
    /// Permitted groups: fuzz syntax limits slow connections tls http2 http3 grpc overload write
    #[arg(
        long,
        value_name = "NAME,…",
        value_delimiter = ',',
        default_value = "fuzz,syntax,limits,slow",
        value_parser = group
    )]
    pub groups: Vec<CaseGroup>,
    /// Number of days it is valid for, from today
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u8).range(0..=31))]
    pub days: u8,
    /// Contact of the person responsible for the server
    #[arg(long, value_name = "TEXT", default_value = "no contact given", value_parser = words)]
    pub contact: String,
    /// Third party in front of the server: "none", a provider, or "provider, permission reference"
    #[arg(long, value_name = "TEXT", default_value = "none", value_parser = words)]
    pub behind: String,
    /// Print a line for a zone file instead of the file
    #[arg(long)]
    pub txt: bool,
}

#[derive(Clone, Debug, Subcommand)]
pub enum AuditCommand {
    /// Check that no line was edited, removed or moved
    Verify {
        /// The audit log [default: that of this user]
        file: Option<PathBuf>,
    },
    /// Print the recorded actions, one line each
    Show {
        /// The audit log [default: that of this user]
        file: Option<PathBuf>,
        /// Print the lines as they are in the log
        #[arg(long)]
        json: bool,
    },
}

fn group(text: &str) -> Result<CaseGroup, String> {
    let found = CaseGroup::ALL.into_iter().find(|group| group.id() == text);
    found.ok_or_else(|| {
        let all: Vec<&str> = CaseGroup::ALL.iter().map(|group| group.id()).collect();
        format!("it is not a group; write one or more of {}", all.join(", "))
    })
}

/// Parses text that is valid in a field value and in a proof.
pub(super) fn words(text: &str) -> Result<String, String> {
    let good = !text.trim().is_empty()
        && text.trim() == text
        && text.len() <= 120
        && text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic())
        && !text.contains(';');
    if good {
        Ok(text.to_owned())
    } else {
        Err("write printable ASCII without ; of at most 120 bytes".to_owned())
    }
}

fn per_second(text: &str) -> Result<u64, String> {
    let number = text.strip_suffix("/s").unwrap_or(text);
    number.parse().map_err(|_| "write a whole number per second, such as 20/s".to_owned())
}

fn bytes_per_second(text: &str) -> Result<u64, String> {
    let size = text.strip_suffix("/s").unwrap_or(text);
    units::parse_size(size).map_err(|error| error.to_string())
}
