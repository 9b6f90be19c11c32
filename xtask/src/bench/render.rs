//! `bench/RESULTS.md` from a raw file.

use super::budgets::{Judged, RENO, ROUNDS_MIN};
use super::figures::{Estimate, estimate};
use super::raw::Raw;
use std::fmt::Write as _;

/// Title of a table, and the tool with which the others are compared.
struct Title {
    table: &'static str,
    title: &'static str,
    against: &'static str,
}

const TITLES: &[Title] = &[
    titled("keepalive", "Keep-alive, 64 connections, client and null server on one core", "bare"),
    titled("many", "Keep-alive, 5,000 connections, client and null server on one core", "bare"),
    titled("one", "Keep-alive, one connection, client and null server on one core", "bare"),
    titled("nginx", "Keep-alive, 64 connections, nginx on another core", "bare"),
    titled("close", "A connection per call, 64 at a time, nginx on another core", "bare"),
    titled("bulk", "1 MB a call, 8 connections, nginx on another core", "loadstone"),
    titled("tls", "TLS 1.3 keep-alive, 64 connections, nginx on another core", "wrk"),
    titled("depth16", "Pipelined, depth 16, client and null server on one core", "bare"),
    titled("syscalls-null", "System calls per call, null server, one core", "bare"),
    titled("syscalls-nginx", "System calls per call, nginx on another core", "bare"),
    titled("memory", "Memory, each response after one second", ""),
    titled("pace", "Punctuality as the server sees it", ""),
    titled("site", "A small static file, the server on one core, wrk on the other", "norm"),
    titled(
        "http2-1",
        "HTTP/2 without TLS, 10 connections with 1 stream each, client and nghttpd on one core",
        "h2load",
    ),
    titled("http2-10", "The same with 10 streams each", "h2load"),
    titled("http2-100", "The same with 100 streams each", "h2load"),
    titled(
        "http2-tls-1",
        "HTTP/2 over TLS 1.3, 10 connections with 1 stream each, nginx on another core",
        "h2load",
    ),
    titled("http2-tls-10", "The same with 10 streams each", "h2load"),
    titled("http2-tls-100", "The same with 100 streams each", "h2load"),
    titled("http2-memory", "Memory of an HTTP/2 connection with one call under way", "h2load"),
    titled(
        "http3-1",
        "HTTP/3, 10 connections with 1 stream each, our site (quinn, h3) on another core",
        "h2load",
    ),
    titled("http3-10", "The same with 10 streams each", "h2load"),
    titled("http3-100", "The same with 100 streams each", "h2load"),
    titled(
        "http3-connect",
        "A QUIC connection for each call: 20 at a time, h2load's 600 a second",
        "h2load",
    ),
];

const fn titled(table: &'static str, title: &'static str, against: &'static str) -> Title {
    Title { table, title, against }
}

/// A metric's heading and its decimals, in the order of the columns.
const METRICS: &[(&str, &str, usize)] = &[
    ("cpu_us", "client CPU µs/call", 3),
    ("user_us", "user", 3),
    ("sys_us", "system", 3),
    ("per_call", "system calls/call", 3),
    ("calls_per_s", "completed calls/s", 0),
    ("rss_kib", "peak memory KiB", 0),
    ("kib_per_connection", "KiB/connection beyond 64", 2),
    ("late_p50_us", "late p50 µs", 0),
    ("late_p99_us", "late p99 µs", 0),
    ("late_max_us", "late max µs", 0),
    ("sent_per_s", "sent/s", 1),
    ("client_busy", "client busy", 2),
    ("server_busy", "server busy", 2),
    ("foreign", "foreign cores", 2),
];

/// Renders the facts of the run and its budgets. `commit`: name of its file of tables in the folder
/// of the history.
pub(super) fn results(raw: &Raw, judged: &[Judged], commit: Option<&str>) -> String {
    let mut text = String::from(
        "# Results\n\nWritten by `cargo xtask bench` from one run of one commit; docs/measuring.md \
         describes how. Every\ntool runs once a round, and every round starts with another tool. A figure is \
         the median over the\nrounds with the 95 % interval of the median from order statistics (the range \
         below six rounds); a\nratio is taken within each round.\n\n",
    );
    for (key, value) in &raw.facts {
        push(&mut text, format_args!("- {key}: {value}\n"));
    }
    if let Some(commit) = commit {
        push(
            &mut text,
            format_args!(
                "\nThe figures of each tool: [{commit}.md](history/{commit}.md), its raw rounds:\n\
                 [{commit}.tsv](history/{commit}.tsv).\n"
            ),
        );
    }
    budgets(&mut text, judged);
    text
}

/// Renders a table for each set-up, with a row for each tool.
pub(super) fn tables(raw: &Raw) -> String {
    let mut text = String::new();
    for table in &raw.tables {
        table_of(&mut text, raw, table);
    }
    text
}

fn budgets(text: &mut String, judged: &[Judged]) {
    push(
        text,
        format_args!(
            "\n## Budgets\n\nA budget holds when the median of at least {ROUNDS_MIN} rounds (3 for memory \
             and system calls) is at or below\nit.\n\n\
             | budget | at most | median | interval | rounds | |\n|---|--:|--:|--:|--:|---|\n"
        ),
    );
    for budget in judged {
        let (median, interval, count) = match budget.found {
            Some(found) => (format!("{:.3}", found.median), interval(&found, 3), found.count),
            None => ("–".to_owned(), "–".to_owned(), 0),
        };
        push(
            text,
            format_args!(
                "| {} | {} {} | {median} | {interval} | {count} | {} |\n",
                budget.what,
                budget.max,
                budget.unit,
                budget.word()
            ),
        );
    }
}

fn table_of(text: &mut String, raw: &Raw, table: &str) {
    let (plain, suffix) = match table.strip_suffix(RENO) {
        Some(plain) => (plain, ", TCP by Reno"),
        None => (table, ""),
    };
    let title = TITLES.iter().find(|title| title.table == plain);
    push(text, format_args!("\n## {}{suffix}\n\n", title.map_or(plain, |title| title.title)));
    let shown: Vec<_> = METRICS
        .iter()
        .filter(|(metric, ..)| {
            raw.tools(table).iter().any(|tool| !raw.values(table, tool, metric).is_empty())
        })
        .collect();
    let against = title.map_or("", |title| title.against);
    let compared = shown.first().map(|(metric, ..)| *metric).filter(|_| !against.is_empty());
    let mut head = String::from("| tool |");
    let mut rule = String::from("|---|");
    for (_, name, _) in &shown {
        push(&mut head, format_args!(" {name} |"));
        rule.push_str("--:|");
    }
    if compared.is_some() {
        push(&mut head, format_args!(" × {against} | interval |"));
        rule.push_str("--:|--:|");
    }
    push(text, format_args!("{head}\n{rule}\n"));
    for tool in raw.tools(table) {
        push(text, format_args!("| {tool} |"));
        for (metric, _, decimals) in &shown {
            match estimate(&raw.values(table, tool, metric)) {
                Some(found) => push(text, format_args!(" {:.*} |", decimals, found.median)),
                None => text.push_str(" – |"),
            }
        }
        if let Some(metric) = compared {
            let ratios = raw.paired(table, metric, (tool, against), |own, other| own / other);
            match estimate(&ratios) {
                Some(found) => {
                    push(text, format_args!(" {:.3} | {} |", found.median, interval(&found, 3)));
                }
                None => text.push_str(" – | – |"),
            }
        }
        text.push('\n');
    }
}

fn interval(found: &Estimate, decimals: usize) -> String {
    let about = if found.coverage < 0.95 { " (range)" } else { "" };
    format!("{:.*}–{:.*}{about}", decimals, found.low, decimals, found.high)
}

fn push(text: &mut String, what: std::fmt::Arguments<'_>) {
    // writing to a String cannot fail
    text.write_fmt(what).ok();
}

#[cfg(test)]
mod tests {
    use super::super::budgets::judge;
    use super::*;

    #[test]
    fn a_raw_file_becomes_tables() {
        let mut text = String::from("# kernel\t6.18\n");
        for round in 1..=9 {
            text += &format!("keepalive\t{round}\tbare\tcpu_us\t4.5\n");
            text += &format!("keepalive\t{round}\tloadstone\tcpu_us\t4.77\n");
            text += &format!("keepalive\t{round}\tloadstone\tuser_us\t0.25\n");
        }
        let raw = Raw::parse(&text).unwrap();
        let tables = tables(&raw);
        assert!(tables.contains("| bare | 4.500 | – | 1.000 | 1.000–1.000 |\n"), "{tables}");
        assert!(tables.contains("| loadstone | 4.770 | 0.250 | 1.060 |"), "{tables}");
        let document = results(&raw, &judge(&raw), Some("abc"));
        assert!(document.contains("- kernel: 6.18\n"), "{document}");
        assert!(document.contains("[abc.tsv](history/abc.tsv)"), "{document}");
        assert_eq!(document.matches("\n## ").count(), 1, "the budgets are the only table");
        assert!(
            document.contains("| keepalive: loadstone, user_us | 0.3 µs | 0.250 |"),
            "{document}"
        );
        assert!(
            document
                .contains("| tls: loadstone / wrk, cpu_us | 0.88 × | – | – | 0 | not measured |")
        );
    }

    #[test]
    fn a_table_of_reno_has_the_title_of_the_other() {
        let raw = Raw::parse("close-reno\t1\tbare\tcpu_us\t50\nclose-reno\t1\town\tcpu_us\t30\n");
        let raw = raw.unwrap();
        let document = tables(&raw);
        let title = "## A connection per call, 64 at a time, nginx on another core, TCP by Reno\n";
        assert!(document.contains(title), "{document}");
        assert!(document.contains("| own | 30.000 | 0.600 |"), "{document}");
        let document = results(&raw, &judge(&raw), None);
        assert!(
            document.contains("| close-reno: own / bare, cpu_us | 0.6 × | 0.600 |"),
            "{document}"
        );
    }

    #[test]
    fn a_broken_line_is_reported() {
        let error = Raw::parse("keepalive\t1\tbare\tcpu_us\t4.5\nnonsense\n").unwrap_err();
        assert!(error.to_string().contains("line 2"), "{error}");
        assert!(Raw::parse("a\t1\tb\tc\tNaN\n").is_err());
    }
}
