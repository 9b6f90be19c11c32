//! The options of other tools, by topic, from those tools' own help texts.

/// An option of another tool: its spellings, the tools, and our equivalent.
pub(super) struct Foreign {
    pub(super) options: &'static [&'static str],
    pub(super) tools: &'static str,
    pub(super) ours: &'static str,
}

const fn of(options: &'static [&'static str], tools: &'static str, ours: &'static str) -> Foreign {
    Foreign { options, tools, ours }
}

/// Iterates over the tables.
pub(super) fn all() -> impl Iterator<Item = &'static Foreign> {
    [LOAD, REQUEST, CONNECTION, RESULT, ONE_HYPHEN].into_iter().flatten()
}

/// Options for load and duration.
const LOAD: &[Foreign] = &[
    of(
        &["-u", "--vus", "--users"],
        "k6 and Locust (users), and -u of curl (a login)",
        "-c N for users of a closed load, --user NAME:PASSWORD for a login",
    ),
    of(
        &["--stage"],
        "k6",
        "--stages '30s:0..100, 2m:100', or loadstone ramp URL for the whole curve",
    ),
    of(
        &["--ramp-up", "--rampup", "--ramp-up-time"],
        "JMeter and others",
        "--stages '30s:0..100, 2m:100' for users that arrive one by one",
    ),
    of(&["--iterations"], "k6", "-n COUNT"),
    of(&["--batch", "--batch-per-host"], "k6", "--group N, for requests that are sent together"),
    of(
        &["--config"],
        "k6 and others",
        "a plan file: loadstone run PLAN.toml (--print-plan prints one)",
    ),
    of(&["--amount", "--maxOverallRequests", "-O"], "autocannon", "-n COUNT"),
    of(
        &["--rps", "-R", "--overallRate"],
        "k6, h2load, wrk2 and autocannon",
        "--rate N/s, for all connections together",
    ),
    of(
        &["-r"],
        "bombardier (a rate), of h2load and Locust (arrival rate of clients), and of oha \
         (redirects)",
        "--rate N/s, or --follow=N for redirects",
    ),
    of(
        &["--spawn-rate", "--connectionRate", "--rate-period"],
        "Locust, autocannon and h2load",
        "--stages '30s:0..100, 2m:100' for users that arrive one by one, or --rate N/s or N/m",
    ),
    of(&["-z", "--run-time"], "oha, hey and Locust", "-d TIME"),
    of(
        &["-D"],
        "h2load (how long), and of oha and hey (a body from a file)",
        "-d TIME, or --body-file FILE",
    ),
    of(
        &["-w", "--workers", "--max-workers"],
        "vegeta, autocannon and oha",
        "-c N for users, --threads N for threads",
    ),
    of(
        &["-t"],
        "oha, hey, bombardier and autocannon (a time limit), of wrk and h2load (threads), and of \
         Locust (how long)",
        "--timeout TIME, --threads N or -d TIME",
    ),
    of(&["--burst-rate", "--burst-delay"], "oha", "--burst N with --rate N/s"),
    of(&["--warm-up-time", "-W"], "h2load and autocannon", "--warmup TIME"),
    of(
        &["--latency-correction", "--ignoreCoordinatedOmission", "-C"],
        "oha and autocannon",
        "nothing: response times always count from the instant a call was due",
    ),
    of(&["--bailout", "-B"], "autocannon", "--abort-if 'failures>50% for 5s'"),
    of(&["--threshold", "--thresholds"], "k6", "--slo 'p95<200ms, failures<1%'"),
    of(
        &["--num-conns", "--num-calls", "--hog"],
        "httperf",
        "loadstone httperf, which takes httperf's options",
    ),
];

/// Options of requests.
const REQUEST: &[Foreign] = &[
    of(&["-X", "--request"], "curl", "--method NAME"),
    of(
        &["-m"],
        "oha, hey, bombardier and autocannon, and of h2load (requests at once)",
        "--method NAME, or --pipeline N",
    ),
    of(&["--json-body"], "other tools", "--body TEXT and -H 'Content-Type: application/json'"),
    of(&["-I", "--head"], "curl", "--method HEAD"),
    of(
        &["-F"],
        "curl, oha and autocannon",
        "--form NAME=VALUE, or --form NAME=@FILE for an upload",
    ),
    of(&["--data", "--data-raw", "--data-urlencode"], "curl", "--body TEXT"),
    of(&["--data-binary"], "curl", "--body-file FILE, and -H 'Content-Type: …'"),
    of(
        &["-T", "--upload-file"],
        "curl (a file), of oha and hey (Content-Type), of autocannon (a title), and of Locust (tags)",
        "--body-file FILE, or -H 'Content-Type: …'",
    ),
    of(
        &["-i", "--input", "--input-file"],
        "autocannon (a body), of h2load (a list), and of k6 (iterations)",
        "--body-file FILE, --urls FILE or -n COUNT",
    ),
    of(
        &["-A", "--user-agent-string"],
        "curl (the agent), and of oha and hey (Accept)",
        "--user-agent TEXT, or -H 'Accept: …'",
    ),
    of(
        &["-a"],
        "oha and hey (a login), of bombardier (no kept connections), and of autocannon (how many)",
        "--user NAME:PASSWORD, --close or -n COUNT",
    ),
    of(
        &["-b", "--cookie"],
        "curl (a cookie), and of bombardier and autocannon (a body)",
        "-H 'Cookie: NAME=VALUE', --cookies to keep the server's, or --body TEXT",
    ),
    of(&["-e", "--referer"], "curl (the page before), and of k6 (a variable)", "-H 'Referer: URL'"),
    of(&["--env"], "k6", "an argument of a script: --script FILE.lua URL -- ARGUMENT"),
    of(&["--headers"], "autocannon", "-H 'NAME: VALUE'"),
    of(&["--host"], "oha and Locust", "-H 'Host: NAME', or the URL of the server"),
    of(
        &["-L", "--location", "--redirect", "--redirects", "--max-redirects", "--max-redirs"],
        "curl, oha, vegeta and k6",
        "--follow or --follow=N",
    ),
    of(
        &["--urls-from-file", "--targets", "--rand-regex-url", "--base-uri"],
        "oha, vegeta and h2load",
        "--urls FILE",
    ),
    of(&["--har"], "autocannon", "loadstone workload import FILE.har, which makes a plan of it"),
    of(
        &["--locustfile", "-f"],
        "Locust (a script), and of bombardier (a body)",
        "--script FILE.lua, or --body-file FILE",
    ),
    of(&["-s"], "wrk (a script) and Gatling (a simulation)", "--script FILE.lua"),
    of(&["--expectBody", "-E"], "autocannon", "--expect-body RULE"),
    of(
        &["--disable-compression"],
        "oha and hey",
        "nothing: compression is requested with --compressed only",
    ),
];

/// Options of connections.
const CONNECTION: &[Foreign] = &[
    of(&["-k", "--insecure-skip-tls-verify"], "curl, bombardier and k6", "--insecure"),
    of(&["-x"], "curl, oha and hey", "--proxy URL"),
    of(&["--unix-socket", "--socketPath"], "curl, oha and autocannon", "--unix PATH"),
    of(&["--cacert", "--root-certs"], "curl, oha and vegeta", "--ca FILE"),
    of(&["--connect-to"], "curl, oha and h2load", "--resolve HOST:PORT:ADDRESS"),
    of(&["--local-ips", "--interface"], "k6 and curl", "--bind LIST"),
    of(&["--max-time"], "curl", "--timeout TIME"),
    of(&["-N", "--connection-inactivity-timeout"], "h2load", "--progress-timeout TIME"),
    of(&["--http2", "--h2", "--h2c"], "curl, oha and h2load", "--http 2"),
    of(&["--http3", "--h3"], "curl, oha and h2load", "--http 3"),
    of(&["--http1.1", "--h1"], "curl and h2load", "--http 1.1"),
    of(&["--http1.0"], "curl", "--http 1.0"),
    of(&["--http-version"], "oha", "--http 1.0, --http 1.1, --http 2 or --http 3"),
    of(&["--dns"], "k6", "--resolve HOST:PORT:ADDRESS, --ipv4 or --ipv6"),
    of(&["-M", "--maxConnectionRequests"], "autocannon", "--calls N"),
    of(
        &["--max-concurrent-streams", "--pipelining", "-p"],
        "h2load, autocannon, oha and wrk",
        "--pipeline N",
    ),
    of(
        &["--disable-keepalive", "--disableKeepAlives", "--no-connection-reuse", "--keepalive"],
        "oha, bombardier and k6",
        "--close for a connection per call; connections are kept otherwise",
    ),
    of(&["--npn-list", "--alpn-list"], "h2load", "--alpn LIST"),
    of(&["--tls13-ciphers"], "h2load", "--ciphers LIST"),
    of(&["--servername"], "autocannon", "--server-name NAME"),
];

/// Options of results.
const RESULT: &[Foreign] = &[
    of(
        &["-o", "--out", "--output", "--summary-export", "--output-format"],
        "k6, oha, hey, bombardier and vegeta",
        "--json FILE, --csv FILE or --html FILE",
    ),
    of(&["--format"], "bombardier and vegeta", "--json FILE, or --urls FILE for lists"),
    of(&["-j"], "oha and autocannon", "--json -"),
    of(&["-l", "--latency", "--latencies"], "wrk, bombardier and autocannon", "--percentiles"),
    of(&["--summary-trend-stats"], "k6", "--percentiles=50,95,99"),
    of(&["--log-file"], "h2load", "--log FILE"),
    of(
        &["-v", "--verbose"],
        "curl and others",
        "loadstone once URL for one request and response, or --log FILE for each call",
    ),
    of(&["--http-debug"], "k6", "--log FILE for each call, or loadstone once URL for one"),
    of(
        &["--no-tui", "--no-progress", "--no-print", "--headless"],
        "oha, autocannon, bombardier and Locust",
        "--quiet; the full-screen view comes with --live only",
    ),
    of(
        &["--name", "--tag", "--title"],
        "vegeta, k6 and autocannon",
        "loadstone runs tag RUN NAME, after the run",
    ),
];

/// vegeta and hey write whole words after one hyphen. Here one hyphen starts a short option.
const ONE_HYPHEN: &[Foreign] = &[
    of(&["-rate"], "vegeta", "--rate N/s"),
    of(&["-duration"], "vegeta", "--duration TIME"),
    of(&["-timeout"], "vegeta", "--timeout TIME"),
    of(
        &["-connections", "-workers", "-max-workers"],
        "vegeta",
        "-c N; open loads take what they need",
    ),
    of(&["-max-connections"], "vegeta", "--connections-max N"),
    of(&["-header"], "vegeta", "--header 'NAME: VALUE'"),
    of(&["-body"], "vegeta", "--body-file FILE"),
    of(&["-targets", "-lazy", "-format"], "vegeta", "--urls FILE"),
    of(&["-insecure"], "vegeta", "--insecure"),
    of(&["-root-certs"], "vegeta", "--ca FILE"),
    of(&["-cert"], "vegeta", "--cert FILE"),
    of(&["-key"], "vegeta", "--key FILE"),
    of(&["-laddr"], "vegeta", "--bind LIST"),
    of(&["-unix-socket"], "vegeta", "--unix PATH"),
    of(&["-redirects"], "vegeta", "--follow=N"),
    of(&["-output"], "vegeta", "--json FILE, --csv FILE or --html FILE"),
    of(&["-name"], "vegeta", "loadstone runs tag RUN NAME, after the run"),
    of(&["-cpus"], "vegeta and hey", "--threads N"),
    of(&["-host"], "hey", "-H 'Host: NAME'"),
    of(&["-http2", "-h2c", "-h2"], "vegeta and hey", "--http 2"),
    of(
        &["-keepalive", "-disable-keepalive"],
        "vegeta and hey",
        "--close for a connection per call; connections are kept otherwise",
    ),
    of(
        &["-disable-compression"],
        "hey",
        "nothing: compression is requested with --compressed only",
    ),
    of(&["-disable-redirects"], "hey", "nothing: redirects are followed with --follow only"),
];
