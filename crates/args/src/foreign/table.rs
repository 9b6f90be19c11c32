//! The options of other tools, by topic, from those tools' own help texts.

/// An option of another tool: its spellings, the tools, and our equivalent.
pub(super) struct Foreign {
    pub(super) options: &'static [&'static str],
    pub(super) tools: &'static str,
    pub(super) ours: &'static str,
}

const fn row(options: &'static [&'static str], tools: &'static str, ours: &'static str) -> Foreign {
    Foreign { options, tools, ours }
}

/// Iterates over the tables.
pub(super) fn all() -> impl Iterator<Item = &'static Foreign> {
    [LOAD, REQUEST, CONNECTION, RESULT, ONE_HYPHEN].into_iter().flatten()
}

/// Options for load and duration.
const LOAD: &[Foreign] = &[
    row(
        &["-u", "--vus", "--users"],
        "k6 and Locust (users), and -u of curl (a login)",
        "-c N for users of a closed load, --user NAME:PASSWORD for a login",
    ),
    row(
        &["--stage"],
        "k6",
        "--stages '30s:0..100, 2m:100', or loadstone ramp URL for the whole curve",
    ),
    row(
        &["--ramp-up", "--rampup", "--ramp-up-time"],
        "JMeter and others",
        "--stages '30s:0..100, 2m:100' for users that arrive one by one",
    ),
    row(&["--iterations"], "k6", "-n COUNT"),
    row(&["--batch", "--batch-per-host"], "k6", "--group N, for requests that are sent together"),
    row(
        &["--config"],
        "k6 and others",
        "a plan file: loadstone run PLAN.toml (--print-plan prints one)",
    ),
    row(&["--amount", "--maxOverallRequests", "-O"], "autocannon", "-n COUNT"),
    row(
        &["--rps", "-R", "--overallRate"],
        "k6, h2load, wrk2 and autocannon",
        "--rate N/s, for all connections together",
    ),
    row(
        &["-r"],
        "bombardier (a rate), of h2load and Locust (arrival rate of clients), and of oha \
         (redirects)",
        "--rate N/s, or --follow=N for redirects",
    ),
    row(
        &["--spawn-rate", "--connectionRate", "--rate-period"],
        "Locust, autocannon and h2load",
        "--stages '30s:0..100, 2m:100' for users that arrive one by one, or --rate N/s or N/m",
    ),
    row(&["-z", "--run-time"], "oha, hey and Locust", "-d TIME"),
    row(
        &["-D"],
        "h2load (how long), and of oha and hey (a body from a file)",
        "-d TIME, or --body-file FILE",
    ),
    row(
        &["-w", "--workers", "--max-workers"],
        "vegeta, autocannon and oha",
        "-c N for users, --threads N for threads",
    ),
    row(
        &["-t"],
        "oha, hey, bombardier and autocannon (a time limit), of wrk and h2load (threads), and of \
         Locust (how long)",
        "--timeout TIME, --threads N or -d TIME",
    ),
    row(&["--burst-rate", "--burst-delay"], "oha", "--burst N with --rate N/s"),
    row(&["--warm-up-time", "-W"], "h2load and autocannon", "--warmup TIME"),
    row(
        &["--latency-correction", "--ignoreCoordinatedOmission", "-C"],
        "oha and autocannon",
        "nothing: response times always count from the instant a call was due",
    ),
    row(&["--bailout", "-B"], "autocannon", "--abort-if 'failures>50% for 5s'"),
    row(&["--threshold", "--thresholds"], "k6", "--slo 'p95<200ms, failures<1%'"),
    row(
        &["--num-conns", "--num-calls", "--hog"],
        "httperf",
        "loadstone httperf, which takes httperf's options",
    ),
];

/// Options of requests.
const REQUEST: &[Foreign] = &[
    row(&["-X", "--request"], "curl", "--method NAME"),
    row(
        &["-m"],
        "oha, hey, bombardier and autocannon, and of h2load (requests at once)",
        "--method NAME, or --pipeline N",
    ),
    row(&["--json-body"], "other tools", "--body TEXT and -H 'Content-Type: application/json'"),
    row(&["-I", "--head"], "curl", "--method HEAD"),
    row(
        &["-F"],
        "curl, oha and autocannon",
        "--form NAME=VALUE, or --form NAME=@FILE for an upload",
    ),
    row(&["--data", "--data-raw", "--data-urlencode"], "curl", "--body TEXT"),
    row(&["--data-binary"], "curl", "--body-file FILE, and -H 'Content-Type: …'"),
    row(
        &["-T", "--upload-file"],
        "curl (a file), of oha and hey (Content-Type), of autocannon (a title), and of Locust (tags)",
        "--body-file FILE, or -H 'Content-Type: …'",
    ),
    row(
        &["-i", "--input", "--input-file"],
        "autocannon (a body), of h2load (a list), and of k6 (iterations)",
        "--body-file FILE, --urls FILE or -n COUNT",
    ),
    row(
        &["-A", "--user-agent-string"],
        "curl (the agent), and of oha and hey (Accept)",
        "--user-agent TEXT, or -H 'Accept: …'",
    ),
    row(
        &["-a"],
        "oha and hey (a login), of bombardier (no kept connections), and of autocannon (how many)",
        "--user NAME:PASSWORD, --close or -n COUNT",
    ),
    row(
        &["-b", "--cookie"],
        "curl (a cookie), and of bombardier and autocannon (a body)",
        "-H 'Cookie: NAME=VALUE', --cookies to keep the server's, or --body TEXT",
    ),
    row(
        &["-e", "--referer"],
        "curl (the page before), and of k6 (a variable)",
        "-H 'Referer: URL'",
    ),
    row(&["--env"], "k6", "an argument of a script: --script FILE.lua URL -- ARGUMENT"),
    row(&["--headers"], "autocannon", "-H 'NAME: VALUE'"),
    row(&["--host"], "oha and Locust", "-H 'Host: NAME', or the URL of the server"),
    row(
        &["-L", "--location", "--redirect", "--redirects", "--max-redirects", "--max-redirs"],
        "curl, oha, vegeta and k6",
        "--follow or --follow=N",
    ),
    row(
        &["--urls-from-file", "--targets", "--rand-regex-url", "--base-uri"],
        "oha, vegeta and h2load",
        "--urls FILE",
    ),
    row(
        &["--har"],
        "autocannon",
        "loadstone workload import FILE.har, which converts it into a plan",
    ),
    row(
        &["--locustfile", "-f"],
        "Locust (a script), and of bombardier (a body)",
        "--script FILE.lua, or --body-file FILE",
    ),
    row(&["-s"], "wrk (a script) and Gatling (a simulation)", "--script FILE.lua"),
    row(&["--expectBody", "-E"], "autocannon", "--expect-body RULE"),
    row(
        &["--disable-compression"],
        "oha and hey",
        "nothing: compression is requested with --compressed only",
    ),
];

/// Options of connections.
const CONNECTION: &[Foreign] = &[
    row(&["-k", "--insecure-skip-tls-verify"], "curl, bombardier and k6", "--insecure"),
    row(&["-x"], "curl, oha and hey", "--proxy URL"),
    row(&["--unix-socket", "--socketPath"], "curl, oha and autocannon", "--unix PATH"),
    row(&["--cacert", "--root-certs"], "curl, oha and vegeta", "--ca FILE"),
    row(&["--connect-to"], "curl, oha and h2load", "--resolve HOST:PORT:ADDRESS"),
    row(&["--local-ips", "--interface"], "k6 and curl", "--bind LIST"),
    row(&["--max-time"], "curl", "--timeout TIME"),
    row(&["-N", "--connection-inactivity-timeout"], "h2load", "--progress-timeout TIME"),
    row(&["--http2", "--h2", "--h2c"], "curl, oha and h2load", "--http 2"),
    row(&["--http3", "--h3"], "curl, oha and h2load", "--http 3"),
    row(&["--http1.1", "--h1"], "curl and h2load", "--http 1.1"),
    row(&["--http1.0"], "curl", "--http 1.0"),
    row(&["--http-version"], "oha", "--http 1.0, --http 1.1, --http 2 or --http 3"),
    row(&["--dns"], "k6", "--resolve HOST:PORT:ADDRESS, --ipv4 or --ipv6"),
    row(&["-M", "--maxConnectionRequests"], "autocannon", "--calls N"),
    row(
        &["--max-concurrent-streams", "--pipelining", "-p"],
        "h2load, autocannon, oha and wrk",
        "--pipeline N",
    ),
    row(
        &["--disable-keepalive", "--disableKeepAlives", "--no-connection-reuse", "--keepalive"],
        "oha, bombardier and k6",
        "--close for a connection per call; connections are kept otherwise",
    ),
    row(&["--npn-list", "--alpn-list"], "h2load", "--alpn LIST"),
    row(&["--tls13-ciphers"], "h2load", "--ciphers LIST"),
    row(&["--servername"], "autocannon", "--server-name NAME"),
];

/// Options of results.
const RESULT: &[Foreign] = &[
    row(
        &["-o", "--out", "--output", "--summary-export", "--output-format"],
        "k6, oha, hey, bombardier and vegeta",
        "--json FILE, --csv FILE or --html FILE",
    ),
    row(&["--format"], "bombardier and vegeta", "--json FILE, or --urls FILE for lists"),
    row(&["-j"], "oha and autocannon", "--json -"),
    row(&["-l", "--latency", "--latencies"], "wrk, bombardier and autocannon", "--percentiles"),
    row(&["--summary-trend-stats"], "k6", "--percentiles=50,95,99"),
    row(&["--log-file"], "h2load", "--log FILE"),
    row(
        &["-v", "--verbose"],
        "curl and others",
        "loadstone once URL for one request and response, or --log FILE for each call",
    ),
    row(&["--http-debug"], "k6", "--log FILE for each call, or loadstone once URL for one"),
    row(
        &["--no-tui", "--no-progress", "--no-print", "--headless"],
        "oha, autocannon, bombardier and Locust",
        "--quiet; the full-screen view comes with --live only",
    ),
    row(
        &["--name", "--tag", "--title"],
        "vegeta, k6 and autocannon",
        "loadstone runs tag RUN NAME, after the run",
    ),
];

/// vegeta and hey write whole words after one hyphen. Here one hyphen starts a short option.
const ONE_HYPHEN: &[Foreign] = &[
    row(&["-rate"], "vegeta", "--rate N/s"),
    row(&["-duration"], "vegeta", "--duration TIME"),
    row(&["-timeout"], "vegeta", "--timeout TIME"),
    row(
        &["-connections", "-workers", "-max-workers"],
        "vegeta",
        "-c N; open loads take what they need",
    ),
    row(&["-max-connections"], "vegeta", "--connections-max N"),
    row(&["-header"], "vegeta", "--header 'NAME: VALUE'"),
    row(&["-body"], "vegeta", "--body-file FILE"),
    row(&["-targets", "-lazy", "-format"], "vegeta", "--urls FILE"),
    row(&["-insecure"], "vegeta", "--insecure"),
    row(&["-root-certs"], "vegeta", "--ca FILE"),
    row(&["-cert"], "vegeta", "--cert FILE"),
    row(&["-key"], "vegeta", "--key FILE"),
    row(&["-laddr"], "vegeta", "--bind LIST"),
    row(&["-unix-socket"], "vegeta", "--unix PATH"),
    row(&["-redirects"], "vegeta", "--follow=N"),
    row(&["-output"], "vegeta", "--json FILE, --csv FILE or --html FILE"),
    row(&["-name"], "vegeta", "loadstone runs tag RUN NAME, after the run"),
    row(&["-cpus"], "vegeta and hey", "--threads N"),
    row(&["-host"], "hey", "-H 'Host: NAME'"),
    row(&["-http2", "-h2c", "-h2"], "vegeta and hey", "--http 2"),
    row(
        &["-keepalive", "-disable-keepalive"],
        "vegeta and hey",
        "--close for a connection per call; connections are kept otherwise",
    ),
    row(
        &["-disable-compression"],
        "hey",
        "nothing: compression is requested with --compressed only",
    ),
    row(&["-disable-redirects"], "hey", "nothing: redirects are followed with --follow only"),
];
