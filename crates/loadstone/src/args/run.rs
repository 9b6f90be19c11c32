//! The options of `run`, by the part of the plan that they speak of. `-h` shows the common ones,
//! `--help` all.

use super::Sink;
use super::parse::{self, List};
use clap::{Args, ValueEnum};
use plan::representative::{Representative, parse_representative};
use plan::stages::Stages;
use plan::{AbortRule, Auth, BodyRule, HttpVersion, Priority, ResolveRule, Think, rules};
use std::net::IpAddr;
use std::path::PathBuf;
use units::{Nanos, RateSpan};

/// Load a server and measure it
///
/// In a closed load (-c), users call, wait for the response, think and call again. In an open load
/// (--rate), calls are due at their own instants, however slow the server is. Options override the
/// settings of a PLAN.toml.
#[derive(Args, Clone, Debug, Default)]
#[command(
    override_usage = "loadstone run [OPTIONS] URL|PLAN.toml\n       loadstone run [OPTIONS] --urls FILE [BASE-URL]\n       loadstone run [OPTIONS] --script FILE URL [-- ARGUMENT...]",
    after_help = "\
Quantities: times 500ms 10s 1m30s, rates 2000/s 120/m, sizes 64k 1M. The long
help (--help) has all options."
)]
pub(crate) struct RunArgs {
    /// http(s)://host/path, host[:port][/path], or a plan file ending in .toml
    #[arg(value_name = "URL|PLAN.toml")]
    pub(super) target: Option<String>,
    /// With --script: arguments passed to the script
    #[arg(last = true, value_name = "ARGUMENT")]
    pub(super) script_args: Vec<String>,
    #[command(flatten)]
    pub(super) common: CommonArgs,
}

/// All that `run` shares with the commands that are made of runs.
#[derive(Args, Clone, Debug, Default)]
pub(super) struct CommonArgs {
    #[command(flatten)]
    pub(super) load: LoadArgs,
    #[command(flatten)]
    pub(super) end: EndArgs,
    #[command(flatten)]
    pub(super) request: RequestArgs,
    #[command(flatten)]
    pub(super) expect: ExpectArgs,
    #[command(flatten)]
    pub(super) limits: LimitArgs,
    #[command(flatten)]
    pub(super) connection: ConnectionArgs,
    #[command(flatten)]
    pub(super) tls: TlsArgs,
    #[command(flatten)]
    pub(super) measure: MeasureArgs,
    #[command(flatten)]
    pub(super) driver: DriverArgs,
    #[command(flatten)]
    pub(super) output: OutputArgs,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum GapsName {
    Constant,
    Poisson,
    Uniform,
}

#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Load")]
pub(super) struct LoadArgs {
    /// Closed load: number of users [default: 10]
    #[arg(short = 'c', long, value_parser = parse::count::<u32>, value_name = "N")]
    pub(super) connections: Option<u32>,
    /// Open load: calls (or sessions) per second; a range is a ramp: 100..2000/s
    #[arg(long, value_name = "RATE", value_parser = units::parse_rate_span)]
    pub(super) rate: Option<RateSpan>,
    /// Users over time: '30s:0..100, 2m:100, 10s:0'; with /s, calls per second over time
    #[arg(long, value_name = "STAGES", value_parser = plan::stages::parse_stages)]
    pub(super) stages: Option<Stages>,
    /// Think time after each response: 500ms, 1s..3s or exp:2s
    #[arg(long, value_name = "TIME", value_parser = rules::parse_think)]
    pub(super) think: Option<Think>,
    /// With --rate: sessions of N calls arrive instead of single calls
    #[arg(long, value_parser = parse::count::<u32>, value_name = "N")]
    pub(super) session: Option<u32>,
    /// With --rate: distribution of the gaps between arrivals [default: constant]
    #[arg(long, value_name = "LAW", hide_short_help = true)]
    pub(super) arrivals: Option<GapsName>,
    /// With --rate: N arrivals at a time
    #[arg(long, value_parser = parse::count::<u32>, value_name = "N", hide_short_help = true)]
    pub(super) burst: Option<u32>,
    /// With --rate: maximum number of open connections [default: what descriptors and ports allow]
    #[arg(long, value_parser = parse::count::<u32>, value_name = "N", hide_short_help = true)]
    pub(super) connections_max: Option<u32>,
    /// With --rate: maximum number of calls waiting for a connection; further calls are dropped
    /// [default: the arrivals of one timeout]
    #[arg(long, value_parser = parse::count::<u64>, value_name = "N", hide_short_help = true)]
    pub(super) queue_max: Option<u64>,
    /// Seed for everything random [default: 1]
    #[arg(long, value_parser = parse::count::<u64>, value_name = "N", hide_short_help = true)]
    pub(super) seed: Option<u64>,
}

#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "End of the run")]
pub(super) struct EndArgs {
    /// Duration of the measured part [default: 10s]
    #[arg(short = 'd', long, value_name = "TIME", value_parser = units::parse_duration)]
    pub(super) duration: Option<Nanos>,
    /// Number of calls (or sessions); with -d, whichever is reached first
    #[arg(short = 'n', long, value_parser = parse::count::<u64>, value_name = "COUNT")]
    pub(super) requests: Option<u64>,
    /// Stop after receiving this many bytes
    #[arg(long, value_name = "SIZE", value_parser = units::parse_size, hide_short_help = true)]
    pub(super) bytes_max: Option<u64>,
    /// Load before the measured part, reported separately
    #[arg(long, value_name = "TIME", value_parser = units::parse_duration)]
    pub(super) warmup: Option<Nanos>,
    /// Stop early when a rule is met: 'failures>50% for 5s'
    #[arg(long, value_name = "RULE", value_parser = rules::parse_abort_rule, hide_short_help = true)]
    pub(super) abort_if: Option<AbortRule>,
    /// Repeat the whole run N times and report confidence intervals across runs
    #[arg(long, value_parser = parse::count::<u32>, value_name = "N")]
    pub(super) repeat: Option<u32>,
}

#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Request")]
pub(super) struct RequestArgs {
    /// URLs from a file, or - for standard input: lines of [METHOD] URL [weight=N] [body=TEXT]
    #[arg(long, value_name = "FILE|-")]
    pub(super) urls: Option<String>,
    /// Files below the URL, by users or clients after a model: surge-like:users=200,connections=2,
    /// specweb99-like:connections=100, webstone-like:clients=50 or webbench-like:clients=50; or the URL
    /// itself, by new connections at a rate of sockets / timeout: s-client-like:sockets=100,timeout=500ms
    #[arg(long, value_name = "MODEL", value_parser = parse_representative, conflicts_with_all = ["urls", "script", "curl", "body", "body_file"], hide_short_help = true)]
    pub(super) workload: Option<Representative>,
    /// Choose URLs from the list at random, by weight
    #[arg(long, conflicts_with = "once")]
    pub(super) random: bool,
    /// Request each URL of the list exactly once
    #[arg(long)]
    pub(super) once: bool,
    /// Take the request from a curl command line, as browsers copy it
    #[arg(long, value_name = "COMMAND", conflicts_with_all = ["urls", "script"])]
    pub(super) curl: Option<String>,
    /// Requests from a Lua script: wrk's, or one of users on a journey; - is standard input
    #[arg(long, value_name = "FILE|-", hide_short_help = true)]
    pub(super) script: Option<String>,
    /// Method [default: GET, POST with a body]
    #[arg(long, value_name = "NAME", value_parser = rules::parse_method)]
    pub(super) method: Option<String>,
    /// A header 'Name: value'; may be given several times
    #[arg(short = 'H', long = "header", value_name = "HEADER", value_parser = rules::parse_header)]
    pub(super) headers: Vec<(String, String)>,
    /// Request body, as text
    #[arg(long, value_name = "TEXT", conflicts_with = "body_file")]
    pub(super) body: Option<String>,
    /// Request body from a file; - is standard input
    #[arg(long, value_name = "FILE|-")]
    pub(super) body_file: Option<String>,
    /// Basic authorisation
    #[arg(long, value_name = "NAME:PASSWORD", value_parser = rules::parse_user, conflicts_with = "bearer")]
    pub(super) user: Option<Auth>,
    /// Digest authorisation, as soon as the server asks for it
    #[arg(long, value_name = "NAME:PASSWORD", value_parser = rules::parse_digest, conflicts_with_all = ["user", "bearer", "aws_sigv4"], hide_short_help = true)]
    pub(super) digest: Option<Auth>,
    /// Sign each request with the key and secret of --user: aws:amz:REGION:SERVICE; without region and
    /// service those in the host's name
    #[arg(long, value_name = "SCOPE", value_parser = rules::parse_aws_sigv4, requires = "user", hide_short_help = true)]
    pub(super) aws_sigv4: Option<login::sigv4::SignatureScope>,
    /// Bearer authorisation
    #[arg(long, value_name = "TOKEN", hide_short_help = true)]
    pub(super) bearer: Option<String>,
    /// The User-Agent header
    #[arg(long, value_name = "TEXT", hide_short_help = true)]
    pub(super) user_agent: Option<String>,
    /// Priority of requests (RFC 9218): u=0 (first) to u=7 (last), i (incremental), or 'u=1, i'
    ///
    /// Each request that has no field priority of its own gets `priority: u=1, i`, in every version
    /// of HTTP. With --http 2 the connection also begins with SETTINGS_NO_RFC7540_PRIORITIES, and
    /// where the server sends that setting too, a PRIORITY_UPDATE frame goes before each request
    /// with a field priority.
    #[arg(long, value_name = "PRIORITY", hide_short_help = true)]
    pub(super) priority: Option<Priority>,
    /// HTTP version: 1.0, 1.1, 2 (ALPN over TLS, prior knowledge over cleartext), 3 (QUIC) or auto
    /// (the server's choice of 1.1 or 2) [default: 1.1]
    #[arg(long, value_name = "VERSION", value_parser = parse::versions, hide_short_help = true)]
    pub(super) http: Option<List<HttpVersion>>,
    /// Request compressed responses and decompress them
    #[arg(long, hide_short_help = true)]
    pub(super) compressed: bool,
    /// Follow up to N redirects per call [default: none; without =N: 10]
    #[arg(long, value_parser = parse::count::<u16>, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "10", hide_short_help = true)]
    pub(super) follow: Option<u16>,
    /// Keep cookies per user and send them back
    #[arg(long, hide_short_help = true)]
    pub(super) cookies: bool,
}

#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Expectations (what does not match is a failed call)")]
pub(super) struct ExpectArgs {
    /// Status codes that count as success: 200,204,300-399 [default: below 400]
    #[arg(long, value_name = "LIST", value_parser = parse::statuses)]
    pub(super) expect_status: Option<List<(u16, u16)>>,
    /// Expected length of the body, after decompression
    #[arg(long, value_name = "SIZE", value_parser = units::parse_size, hide_short_help = true)]
    pub(super) expect_length: Option<u64>,
    /// Text that the body must contain; or exact:TEXT, regex:RE, sha256:HEX
    #[arg(long, value_name = "RULE", value_parser = rules::parse_body_rule, hide_short_help = true)]
    pub(super) expect_body: Option<BodyRule>,
    /// Verify length and hash of every body: against the first response of its URL, against
    /// set:NAME (what site --files serves), or against a FILE written by xxh128sum
    #[arg(long, value_name = "first|set:NAME[@SEED]|FILE", num_args = 0..=1, require_equals = true, default_missing_value = "first", hide_short_help = true)]
    pub(super) verify: Option<String>,
}

#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Time limits")]
pub(super) struct LimitArgs {
    /// From the instant a call is due to its outcome [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = units::parse_duration)]
    pub(super) timeout: Option<Nanos>,
    /// To open a connection [default: 5s]
    #[arg(long, value_name = "TIME", value_parser = units::parse_duration, hide_short_help = true)]
    pub(super) connect_timeout: Option<Nanos>,
    /// From the request to the first byte of the response [default: none]
    #[arg(long, value_name = "TIME", value_parser = units::parse_duration, hide_short_help = true)]
    pub(super) first_byte_timeout: Option<Nanos>,
    /// Without any progress on a connection that has a call in flight [default: none]
    #[arg(long, value_name = "TIME", value_parser = units::parse_duration, hide_short_help = true)]
    pub(super) progress_timeout: Option<Nanos>,
}

#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Connections")]
pub(super) struct ConnectionArgs {
    /// Calls per connection before it is closed [default: as many as the server allows]
    #[arg(long, value_parser = parse::count::<u32>, value_name = "N")]
    pub(super) calls: Option<u32>,
    /// A new connection for every call; same as --calls 1
    #[arg(long, conflicts_with = "calls")]
    pub(super) close: bool,
    /// Requests in flight on a connection [default: 1]
    #[arg(long, value_parser = parse::count::<u32>, value_name = "N")]
    pub(super) pipeline: Option<u32>,
    /// HTTP/2 and 3: streams in flight on a connection [default: 1 per user, 100 with --rate]
    #[arg(long, value_parser = parse::count::<u32>, value_name = "N", conflicts_with = "pipeline")]
    pub(super) streams: Option<u32>,
    /// HTTP/2 and 3: flow-control window of a stream, in bytes [default: 1G - 1]
    #[arg(long, value_name = "SIZE", value_parser = parse::small_size, hide_short_help = true)]
    pub(super) stream_window: Option<u32>,
    /// HTTP/2 and 3: flow-control window of a connection, in bytes [default: 1G - 1]
    #[arg(long, value_name = "SIZE", value_parser = parse::small_size, hide_short_help = true)]
    pub(super) connection_window: Option<u32>,
    /// HTTP/2: size of the table the server may use to compress fields, in bytes [default: 4K]
    #[arg(long, value_name = "SIZE", value_parser = parse::small_size, hide_short_help = true)]
    pub(super) header_table: Option<u32>,
    /// HTTP/2: size of the table the client uses to compress fields, in bytes [default: 4K]
    #[arg(long, value_name = "SIZE", value_parser = parse::small_size, hide_short_help = true)]
    pub(super) encoder_table: Option<u32>,
    /// HTTP/2: largest frame the server may send, in bytes [default: 16K]
    #[arg(long, value_name = "SIZE", value_parser = parse::small_size, hide_short_help = true)]
    pub(super) frame_max: Option<u32>,
    /// Send N requests together, and the next N when all responses are complete
    #[arg(long, value_parser = parse::count::<u32>, value_name = "N", hide_short_help = true)]
    pub(super) group: Option<u32>,
    /// Connect to a Unix socket; the URL gives the Host and the path
    #[arg(long, value_name = "PATH", hide_short_help = true)]
    pub(super) unix: Option<PathBuf>,
    /// Use ADDRESS for HOST:PORT; may be given several times
    #[arg(long, value_name = "HOST:PORT:ADDRESS", value_parser = rules::parse_resolve, hide_short_help = true)]
    pub(super) resolve: Vec<ResolveRule>,
    /// Local addresses to connect from, in turn: 127.0.0.2-127.0.0.9,127.0.1.1
    #[arg(long, value_name = "LIST", value_parser = parse::addresses, hide_short_help = true)]
    pub(super) bind: Option<List<IpAddr>>,
    /// Reach a server of this host through an emulated path: 3g, 'rtt=80ms, loss=1%' (needs root)
    #[arg(long, value_name = "PATH", value_parser = super::netpath::typed_path)]
    pub(super) path: Option<wan::PathSpec>,
    /// Each user behind an emulated path of its own: 'dsl:60%, 3g:30%, satellite:10%' (needs root)
    #[arg(long, value_name = "SHARES", value_parser = super::netpath::typed_clients)]
    pub(super) clients: Option<wan::Population>,
    /// Hold this many further connections open while the load runs, and count who ends them
    #[arg(long, value_name = "N", value_parser = parse::count::<u32>, hide_short_help = true)]
    pub(super) idle: Option<u32>,
    /// HTTP/3: change each connection's local port so often: 5s, or 100calls
    #[arg(long, value_name = "TIME|Ncalls", value_parser = rules::parse_migrate, hide_short_help = true)]
    pub(super) migrate: Option<plan::Migrate>,
    /// Use a proxy: http://[name:password@]host:port
    #[arg(long, value_name = "URL", value_parser = plan::parse_proxy, hide_short_help = true)]
    pub(super) proxy: Option<url::Url>,
    /// Use IPv4 only
    #[arg(short = '4', long, conflicts_with = "ipv6", hide_short_help = true)]
    pub(super) ipv4: bool,
    /// Use IPv6 only
    #[arg(short = '6', long, hide_short_help = true)]
    pub(super) ipv6: bool,
    /// Size of the socket's send buffer [default: the kernel's]
    #[arg(long, value_name = "SIZE", value_parser = parse::small_size, hide_short_help = true)]
    pub(super) send_buffer: Option<u32>,
    /// Size of the socket's receive buffer [default: the kernel's]
    #[arg(long, value_name = "SIZE", value_parser = parse::small_size, hide_short_help = true)]
    pub(super) recv_buffer: Option<u32>,
    /// Keep Nagle's algorithm on (do not set TCP_NODELAY)
    #[arg(long, hide_short_help = true)]
    pub(super) no_nodelay: bool,
    /// Close connections with RST, so that no port stays in TIME_WAIT
    #[arg(long, hide_short_help = true)]
    pub(super) reset: bool,
    /// Shortest pause of a user after a connection could not be opened [default: 10ms]
    #[arg(long, value_name = "TIME", value_parser = units::parse_duration, hide_short_help = true)]
    pub(super) reconnect_pause: Option<Nanos>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum StackName {
    Kernel,
    Own,
    #[value(name = "own:batches")]
    OwnBatches,
    Auto,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum TlsName {
    #[value(name = "1.2")]
    Tls12,
    #[value(name = "1.3")]
    Tls13,
}

#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "TLS")]
pub(super) struct TlsArgs {
    /// Accept any certificate
    #[arg(long)]
    pub(super) insecure: bool,
    /// Trust the certificates of this PEM file instead of the system's
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(super) ca: Option<String>,
    /// Client certificate, PEM
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(super) cert: Option<String>,
    /// Key of the client certificate, PEM
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(super) key: Option<String>,
    /// Use only this TLS version
    #[arg(long, value_name = "VERSION", hide_short_help = true)]
    pub(super) tls: Option<TlsName>,
    /// Make a full handshake for every connection
    #[arg(long, hide_short_help = true)]
    pub(super) no_resumption: bool,
    /// Send requests with the first flight of a resumed handshake (0-RTT); GET, HEAD and OPTIONS only
    #[arg(long, hide_short_help = true)]
    pub(super) early_data: bool,
    /// Each user resumes its own TLS sessions alone, and makes a full handshake at first
    #[arg(long, conflicts_with = "no_resumption", hide_short_help = true)]
    pub(super) user_sessions: bool,
    /// ALPN protocols to offer, or none [default: http/1.1]
    #[arg(long, value_name = "LIST", value_parser = parse::names, hide_short_help = true)]
    pub(super) alpn: Option<List<String>>,
    /// Name for SNI and certificate verification, instead of the URL's host
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    pub(super) server_name: Option<String>,
    /// Key-exchange groups, in order of preference
    #[arg(long, value_name = "LIST", value_parser = parse::names, hide_short_help = true)]
    pub(super) groups: Option<List<String>>,
    /// Cipher suites, in order of preference
    #[arg(long, value_name = "LIST", value_parser = parse::names, hide_short_help = true)]
    pub(super) ciphers: Option<List<String>>,
}

#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Measuring")]
pub(super) struct MeasureArgs {
    /// Objectives: 'p99<50ms, failures<0.1%'; exit code 1 if one is missed
    #[arg(long, value_name = "RULES", value_parser = parse::objectives)]
    pub(super) slo: Vec<List<stats::Objective>>,
    /// Show the full table of quantiles, or only =50,90,99.9
    #[arg(long, value_name = "LIST", value_parser = parse::percentiles, num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub(super) percentiles: Option<List<f64>>,
    /// Lowest bit rate of a conforming connection [default: 320k]
    #[arg(long, value_name = "BITRATE", value_parser = rules::parse_bits, hide_short_help = true)]
    pub(super) conforming: Option<f64>,
    /// Count header sections as well as bodies in the bit rate of a connection
    #[arg(long, hide_short_help = true)]
    pub(super) conforming_heads: bool,
    /// Responses are streams of events: time to the first event, and between events (sse:
    /// Server-Sent Events; lines: a line for each, as in JSON lines)
    #[arg(long, value_name = "sse|lines", value_parser = plan::parse_streaming, hide_short_help = true)]
    pub(super) stream: Option<plan::Streaming>,
    /// One row and one name for URLs that differ in an id: '/user/{id}'; may be given several times
    #[arg(long, value_name = "PATTERN", value_parser = plan::fold::parse_fold, hide_short_help = true)]
    pub(super) fold: Vec<plan::fold::Fold>,
    /// Interval of the time series [default: 1s]
    #[arg(long, value_name = "TIME", value_parser = units::parse_duration, hide_short_help = true)]
    pub(super) interval: Option<Nanos>,
    /// Largest share of the p99 that may be the client's own delay [default: 25%]
    #[arg(long, value_name = "SHARE", value_parser = stats::parse_share, hide_short_help = true)]
    pub(super) doubt_max: Option<f64>,
}

#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "This machine")]
pub(super) struct DriverArgs {
    /// Number of worker threads [default: one per free core]
    #[arg(long, value_parser = parse::count::<u32>, value_name = "N")]
    pub(super) threads: Option<u32>,
    /// CPUs for the workers: 0,2-3 [default: one is left to a server on this machine]
    #[arg(long, value_name = "LIST", value_parser = parse::cores)]
    pub(super) cpus: Option<List<u32>>,
    /// Scheduling priority, -20 (first) to 19 (last)
    #[arg(long, value_name = "N", allow_negative_numbers = true, hide_short_help = true)]
    pub(super) nice: Option<i32>,
    /// TCP of the connections: the kernel's, or own, in this process over a TUN device (needs root)
    /// [default: auto, the kernel's]
    #[arg(
        long,
        value_name = "kernel|own|own:batches|auto",
        hide_short_help = true,
        hide_possible_values = true
    )]
    pub(super) stack: Option<StackName>,
    /// Addresses that connections of --stack own come from [default: a part of 198.18.0.0/16]
    #[arg(long, value_name = "PREFIX", value_parser = rules::parse_sources, hide_short_help = true)]
    pub(super) sources: Option<plan::SourcePrefix>,
}

#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Output")]
pub(super) struct OutputArgs {
    /// Write the full result as JSON; with -, to standard output and nothing else
    #[arg(long, value_name = "FILE|-", value_parser = parse::sink)]
    pub(super) json: Option<Sink>,
    /// Write the report as an HTML page
    #[arg(long, value_name = "FILE")]
    pub(super) html: Option<PathBuf>,
    /// Write the time series as CSV
    #[arg(long, value_name = "FILE")]
    pub(super) csv: Option<PathBuf>,
    /// Write the histograms as an HdrHistogram log
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(super) hdr: Option<PathBuf>,
    /// Write one line per call
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(super) log: Option<PathBuf>,
    /// Print the verdict and the headline only
    #[arg(short = 'q', long)]
    pub(super) quiet: bool,
    /// Print the full text report: phases, connections, bytes, the client's own cost and more
    #[arg(long, conflicts_with = "quiet")]
    pub(super) full: bool,
    /// Show a full-screen live view; q stops the run
    #[arg(long, conflicts_with = "quiet")]
    pub(super) live: bool,
    /// Serve live metrics for Prometheus at http://ADDRESS:PORT/metrics [default address:
    /// 127.0.0.1]
    #[arg(long, value_name = "[ADDRESS:]PORT", value_parser = units::parse_listen, hide_short_help = true)]
    pub(super) metrics: Option<std::net::SocketAddr>,
    /// Push metrics to an OTLP collector every second: http://127.0.0.1:4318, or https://
    #[arg(long, value_name = "URL", value_parser = metrics::parse_collector, hide_short_help = true)]
    pub(super) otlp: Option<metrics::Collector>,
    /// Watch the server's CPU, memory, descriptors and listen queue: a process number on this
    /// machine, or the URL of a node exporter
    #[arg(long, value_name = "PID|URL", value_parser = crate::sut::parse, hide_short_help = true)]
    pub(super) sut: Option<crate::sut::Who>,
    /// Print the resulting plan and exit without running it
    #[arg(long)]
    pub(super) print_plan: bool,
    #[command(flatten)]
    pub(super) store: super::StoreArgs,
}
