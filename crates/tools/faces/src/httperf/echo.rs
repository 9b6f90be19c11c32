//! The first line of the output: the command line as understood.

use super::number::general;
use super::options::{Options, Period, Print, Sessions};

/// Returns the line, with its end.
pub(super) fn echo(program: &str, options: &Options) -> String {
    let mut line = EchoedCommand(program.to_owned());
    line.flag("verbose", options.verbose > 0);
    line.print("print-reply", options.print_reply);
    line.print("print-request", options.print_request);
    line.flag("hog", options.hog);
    line.flag("close-with-reset", options.close_with_reset);
    line.seconds("think-timeout", options.think_timeout);
    line.seconds("timeout", options.timeout);
    line.seconds("runtime", options.runtime);
    line.add("client", format!("{}/{}", options.client.0, options.client.1));
    if options.servers.is_none() {
        line.add("server", &options.server);
    }
    line.add_option("server_name", options.server_name.as_ref());
    line.add_option("servers", options.servers.as_ref());
    if options.port() > 0 {
        line.add("port", options.port());
    }
    line.add("uri", &options.uri);
    line.number("failure-status", options.failure_status);
    if options.http_version != (1, 1) {
        line.add("http-version", format!("{}.{}", options.http_version.0, options.http_version.1));
    }
    line.number("max-connections", options.max_connections);
    line.number("max-piped-calls", options.max_piped_calls);
    line.period(&options.period);
    line.add("send-buffer", options.send_buffer);
    line.flag("retry-on-failure", options.retry_on_failure);
    line.add("recv-buffer", options.recv_buffer);
    line.flag("session-cookies", options.session_cookies);
    line.ssl(options);
    if let Some(header) = &options.add_header {
        line.add("add-header", format!("'{header}'"));
    }
    line.add_option("method", options.method.as_ref());
    line.flag("use-timer-cache", options.timer_cache);
    line.workload(options);
    line.0 + "\n"
}

struct EchoedCommand(String);

impl EchoedCommand {
    fn add(&mut self, name: &str, value: impl std::fmt::Display) {
        self.0 += &format!(" --{name}={value}");
    }

    fn flag(&mut self, name: &str, on: bool) {
        if on {
            self.0 += &format!(" --{name}");
        }
    }

    fn add_option(&mut self, name: &str, value: Option<&String>) {
        if let Some(value) = value {
            self.add(name, value);
        }
    }

    fn number(&mut self, name: &str, number: u64) {
        if number > 0 {
            self.add(name, number);
        }
    }

    fn seconds(&mut self, name: &str, seconds: f64) {
        if seconds > 0.0 {
            self.add(name, general(seconds));
        }
    }

    fn print(&mut self, name: &str, print: Option<Print>) {
        match print {
            None => {}
            Some(Print { header: true, body: false }) => self.add(name, "header"),
            Some(Print { header: false, body: true }) => self.add(name, "body"),
            Some(_) => self.flag(name, true),
        }
    }

    fn period(&mut self, period: &Period) {
        match period {
            Period::Sequential => {}
            Period::Fixed { rate, .. } => self.add("rate", general(*rate)),
            Period::Uniform { low, high } => {
                self.add("period", format!("u{},{}", general(*low), general(*high)));
            }
            Period::Exponential { mean } => self.add("period", format!("e{}", general(*mean))),
            Period::Varying(pairs) => {
                let pair =
                    |(gap, span): &(f64, f64)| format!("{},{}", general(*gap), general(*span));
                let pairs: Vec<String> = pairs.iter().map(pair).collect();
                self.add("period", format!("v{}", pairs.join(",")));
            }
        }
    }

    fn ssl(&mut self, options: &Options) {
        let ssl = &options.ssl;
        self.flag("ssl", ssl.on);
        self.add_option("ssl-ciphers", ssl.ciphers.as_ref());
        self.flag("ssl-no-reuse", ssl.no_reuse);
        self.add_option("ssl-protocol", ssl.protocol.as_ref());
    }

    fn workload(&mut self, options: &Options) {
        match &options.sessions {
            Some(Sessions::Logged { sessions, think, file }) => {
                return self.add("wsesslog", format!("{sessions},{think:.3},{file}"));
            }
            Some(Sessions::Pages { sessions, pages, think }) => {
                return self.add("wsesspage", format!("{sessions},{pages},{think:.3}"));
            }
            Some(Sessions::Fixed { sessions, calls, think }) => {
                self.add("wsess", format!("{sessions},{calls},{think:.3}"));
            }
            None => {
                self.add("num-conns", options.conns);
                self.add("num-calls", options.calls);
            }
        }
        if options.burst != 1 {
            self.add("burst-length", options.burst);
        }
        if let Some(set) = &options.wset
            && set.files > 0
        {
            self.add("wset", format!("{},{:.3}", set.files, set.miss_rate));
        }
    }
}
