//! ab's output for people, and for twenty years of parsers.

use super::banner;
use super::options::Options;
use super::results::Results;
use super::setup::head;
use super::times::{TimesRow, round_ms};

/// Renders everything before the first request.
pub(super) fn opening(options: &Options) -> String {
    let progress = options.progress && options.requests > 150;
    let mut out = if options.html { banner::html() } else { banner::text() };
    if !options.html {
        put!(out, "Benchmarking {} ", options.address.host);
        if let Some((host, port)) = &options.proxy {
            put!(out, "[through {host}:{port}] ");
        }
        out.push_str(if progress { "(be patient)\n" } else { "(be patient)..." });
    }
    if options.verbosity >= 2 {
        let method = options.method.name();
        put!(out, "INFO: {method} header == \n---\n{}\n---\n", head(options));
    }
    out
}

pub(super) fn results(options: &Options, results: &Results<'_>) -> String {
    let mut out = server_lines(options, results);
    out.push_str(&request_lines(options, results));
    if results.done() > 0 {
        out.push_str("\nConnection Times (ms)\n");
        out.push_str(&if options.confidence { with_median(results) } else { plain(results) });
        if options.percentiles && results.done() > 1 {
            out.push_str(&percentiles(results));
        }
    }
    out
}

fn server_lines(options: &Options, results: &Results<'_>) -> String {
    let address = &options.address;
    let mut out = format!(
        "\n\nServer Software:        {}\nServer Hostname:        {}\nServer Port:            {}\n",
        results.tally.server, address.host, address.port
    );
    if let Some(tls) = results.secure.as_ref().filter(|_| address.secure) {
        putln!(
            out,
            "SSL/TLS Protocol:       {},{},{},{}",
            tls.version,
            tls.cipher,
            tls.key_bits,
            tls.cipher_bits
        );
        if !tls.exchange.is_empty() {
            putln!(out, "Server Temp Key:        {}", tls.exchange);
        }
    }
    if let Some(name) = &results.server_name {
        putln!(out, "TLS Server Name:        {name}");
    }
    let length = match options.any_length {
        true => "Variable".to_owned(),
        false => format!("{} bytes", results.tally.length.unwrap_or(0)),
    };
    put!(out, "\nDocument Path:          {}\nDocument Length:        {length}\n\n", address.path);
    out
}

fn request_lines(options: &Options, results: &Results<'_>) -> String {
    let tally = results.tally;
    let mut out = format!(
        "Concurrency Level:      {}\nTime taken for tests:   {:.3} seconds\n\
         Complete requests:      {}\nFailed requests:        {}\n",
        options.concurrency,
        results.seconds,
        results.done(),
        tally.failures()
    );
    if tally.failures() > 0 {
        putln!(
            out,
            "   (Connect: {}, Receive: {}, Length: {}, Exceptions: 0)",
            tally.connect_failures,
            tally.receive_failures,
            tally.length_failures
        );
    }
    if tally.not_2xx > 0 {
        putln!(out, "Non-2xx responses:      {}", tally.not_2xx);
    }
    if options.keep_alive {
        putln!(out, "Keep-Alive requests:    {}", tally.kept_alive);
    }
    putln!(out, "Total transferred:      {} bytes", tally.read);
    if options.body.is_some() {
        putln!(out, "Total body sent:        {}", tally.sent);
    }
    putln!(out, "HTML transferred:       {} bytes", tally.body_read);
    if results.seconds > 0.0 && results.done() > 0 {
        let each = results.seconds * 1_000.0 / results.done() as f64;
        put!(
            out,
            "Requests per second:    {:.2} [#/sec] (mean)\n\
             Time per request:       {:.3} [ms] (mean)\n\
             Time per request:       {each:.3} [ms] (mean, across all concurrent requests)\n\
             Transfer rate:          {:.2} [Kbytes/sec] received\n",
            results.rate(),
            each * f64::from(options.concurrency),
            results.transfer(tally.read),
        );
        if options.body.is_some() {
            put!(
                out,
                "                        {:.2} kb/s sent\n                        {:.2} kb/s total\n",
                results.transfer(tally.sent),
                results.transfer(tally.read + tally.sent),
            );
        }
    }
    out
}

fn named<'a>(results: &'a Results<'_>) -> [(&'static str, &'static str, &'a TimesRow); 4] {
    [
        ("Connect:   ", "the initial connection time", &results.connect),
        ("Processing:", "the processing time", &results.processing),
        ("Waiting:   ", "the waiting time", &results.waiting),
        ("Total:     ", "the total time", &results.total),
    ]
}

fn with_median(results: &Results<'_>) -> String {
    let mut out = "              min  mean[+/-sd] median   max\n".to_owned();
    for (label, _, row) in named(results) {
        putln!(
            out,
            "{label} {:>5} {:>4} {:>5.1} {:>6} {:>7}",
            round_ms(row.min),
            round_ms(row.mean),
            row.deviation / 1_000.0,
            round_ms(row.median),
            round_ms(row.max)
        );
    }
    for (_, what, row) in named(results) {
        let apart = (round_ms(row.mean) - round_ms(row.median)).abs() as f64;
        let deviation = row.deviation / 1_000.0;
        if apart > 2.0 * deviation {
            put!(
                out,
                "ERROR: The median and mean for {what} are more than twice the standard\n       \
                 deviation apart. These results are NOT reliable.\n"
            );
        } else if apart > deviation {
            put!(
                out,
                "WARNING: The median and mean for {what} are not within a normal deviation\n        \
                 These results are probably not that reliable.\n"
            );
        }
    }
    out
}

fn plain(results: &Results<'_>) -> String {
    let mut out = "              min   avg   max\n".to_owned();
    for (label, _, row) in named(results) {
        let [min, mean, max] = [row.min, row.mean, row.max].map(round_ms);
        putln!(out, "{label} {min:>5} {mean:>5}{max:>5}");
    }
    out
}

fn percentiles(results: &Results<'_>) -> String {
    let sorted = &results.sorted;
    let at = |row: usize| round_ms(sorted[row.min(sorted.len() - 1)].total);
    let mut out = "\nPercentage of the requests served within a certain time (ms)\n".to_owned();
    for percent in [50, 66, 75, 80, 90, 95, 98, 99] {
        putln!(out, "  {percent}%  {:>5}", at(sorted.len() * percent / 100));
    }
    putln!(out, " 100%  {:>5} (longest request)", at(sorted.len() - 1));
    out
}
