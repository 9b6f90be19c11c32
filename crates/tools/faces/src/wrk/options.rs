//! The command lines of wrk and wrk2.

use super::getopt::{Found, Long, getopt};
use super::units::{scan_metric, scan_time};

/// Parsed command line, with wrk's defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Options {
    pub(super) connections: u64,
    pub(super) threads: u64,
    pub(super) duration_s: u64,
    pub(super) timeout_s: u64,
    pub(super) script: Option<String>,
    /// Header lines as given: `Name: value`.
    pub(super) headers: Vec<String>,
    pub(super) latency: bool,
    /// URL as given, and the arguments after it, for a script.
    pub(super) args: Vec<String>,
    pub(super) url: Address,
    /// Requests per second over all threads: wrk2.
    pub(super) rate: Option<u64>,
    /// True for wrk2's second histogram, with a single time for each group of requests sent
    /// together.
    pub(super) uncorrected: bool,
    pub(super) batch: bool,
}

/// URL split as in wrk, without normalization.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) scheme: String,
    /// Without the brackets of an IPv6 address.
    pub(super) host: String,
    pub(super) port: Option<String>,
    /// Everything from the path on; `/` if empty.
    pub(super) path: String,
}

/// Reason why no run is started: the texts, and exit code 1.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) out: String,
    pub(super) err: String,
}

const VERSION: &str = "wrk 4.1.0 [epoll] Copyright (C) 2012 Will Glozer\n";
const VERSION2: &str = "wrk 4.0.0 [epoll] Copyright (C) 2012 Will Glozer\n";

const USAGE: &str = "\
Usage: wrk <options> <url>                            
  Options:                                            
    -c, --connections <N>  Connections to keep open   
    -d, --duration    <T>  Duration of test           
    -t, --threads     <N>  Number of threads to use   
                                                      
    -s, --script      <S>  Load Lua script file       
    -H, --header      <H>  Add header to request      
        --latency          Print latency statistics   
        --timeout     <T>  Socket/request timeout     
    -v, --version          Print version details      
                                                      
  Numeric arguments may include a SI unit (1k, 1M, 1G)
  Time arguments may include a time unit (2s, 2m, 2h)
";

const USAGE2: &str = "\
Usage: wrk <options> <url>                            
  Options:                                            
    -c, --connections <N>  Connections to keep open   
    -d, --duration    <T>  Duration of test           
    -t, --threads     <N>  Number of threads to use   
                                                      
    -s, --script      <S>  Load Lua script file       
    -H, --header      <H>  Add header to request      
    -L  --latency          Print latency statistics   
    -U  --u_latency        Print uncorrected latency statistics
        --timeout     <T>  Socket/request timeout     
    -B, --batch_latency    Measure latency of whole   
                           batches of pipelined ops   
                           (as opposed to each op)    
    -v, --version          Print version details      
    -R, --rate        <T>  work rate (throughput)     
                           in requests/sec (total)    
                           [Required Parameter]       
                                                      
                                                      
  Numeric arguments may include a SI unit (1k, 1M, 1G)
  Time arguments may include a time unit (2s, 2m, 2h)
";

const fn long(name: &'static str, takes: bool, letter: char) -> Long {
    Long { name, takes, letter }
}

const SHORT: &str = "t:c:d:s:H:T:Lrv?";
const LONG: &[Long] = &[
    long("connections", true, 'c'),
    long("duration", true, 'd'),
    long("threads", true, 't'),
    long("script", true, 's'),
    long("header", true, 'H'),
    long("latency", false, 'L'),
    long("timeout", true, 'T'),
    long("help", false, 'h'),
    long("version", false, 'v'),
];

const SHORT2: &str = "t:c:d:s:H:T:R:LUBrv?";
const LONG2: &[Long] = &[
    long("connections", true, 'c'),
    long("duration", true, 'd'),
    long("threads", true, 't'),
    long("script", true, 's'),
    long("header", true, 'H'),
    long("latency", false, 'L'),
    long("u_latency", false, 'U'),
    long("batch_latency", false, 'B'),
    long("timeout", true, 'T'),
    long("help", false, 'h'),
    long("version", false, 'v'),
    long("rate", true, 'R'),
];

/// Parses a command line. `second`: started as wrk2; otherwise a rate selects wrk2.
///
/// # Errors
/// Fails with the text that the tool prints instead of a run.
pub(super) fn parse(
    program: &str,
    args: &[String],
    second: bool,
) -> Result<(Options, String), Refusal> {
    let with_rate = getopt(program, args, SHORT2, LONG2);
    let second = second || with_rate.options.iter().any(|(letter, _)| *letter == 'R');
    let found = if second { with_rate } else { getopt(program, args, SHORT, LONG) };
    let mut out = String::new();
    match read(found, second, &mut out) {
        Ok(options) => Ok((options, out)),
        Err(err) => {
            out.push_str(if second { USAGE2 } else { USAGE });
            Err(Refusal { out, err })
        }
    }
}

/// Parses the options. `Err`: text on standard error before the usage; often empty, as in the tool.
fn read(found: Found, second: bool, out: &mut String) -> Result<Options, String> {
    let mut options = Options {
        connections: 10,
        threads: 2,
        duration_s: 10,
        timeout_s: 2,
        script: None,
        headers: Vec::new(),
        latency: false,
        args: found.rest,
        url: Address {
            scheme: String::new(),
            host: String::new(),
            port: None,
            path: String::new(),
        },
        rate: None,
        uncorrected: false,
        batch: false,
    };
    for (letter, value) in found.options {
        set(&mut options, letter, value, second, out)?;
    }
    if let Some(text) = found.refused {
        return Err(text);
    }
    let Some(url) = options.args.first().filter(|_| options.threads > 0 && options.duration_s > 0)
    else {
        return Err(String::new());
    };
    options.url = address(url).ok_or_else(|| format!("invalid URL: {url}\n"))?;
    if options.connections == 0 || options.connections < options.threads {
        return Err("number of connections must be >= threads\n".to_owned());
    }
    if second && options.rate.is_none_or(|rate| rate == 0) {
        let text = "Throughput MUST be specified with the --rate or -R option\n";
        return Err(text.to_owned());
    }
    Ok(options)
}

fn set(
    options: &mut Options,
    letter: char,
    value: String,
    second: bool,
    out: &mut String,
) -> Result<(), String> {
    let count = |value: &str| scan_metric(value).ok_or_else(String::new);
    let time = |value: &str| scan_time(value).ok_or_else(String::new);
    match letter {
        't' => options.threads = count(&value)?,
        'c' => options.connections = count(&value)?,
        'd' => options.duration_s = time(&value)?,
        'T' => options.timeout_s = time(&value)?,
        'R' => options.rate = Some(count(&value)?),
        's' => options.script = Some(value),
        'H' => options.headers.push(value),
        'L' => options.latency = true,
        'U' => (options.latency, options.uncorrected) = (true, true),
        'B' => options.batch = true,
        'v' => out.push_str(if second { VERSION2 } else { VERSION }),
        _ => return Err(String::new()),
    }
    Ok(())
}

/// Splits a URL; `None` if wrk calls it invalid.
fn address(url: &str) -> Option<Address> {
    let (scheme, rest) = url.split_once("://")?;
    // wrk's parser is built strict: no byte above ASCII
    let legal = |byte: u8| byte.is_ascii_graphic();
    if scheme.is_empty()
        || !scheme.bytes().all(|byte| byte.is_ascii_alphabetic())
        || !rest.bytes().all(legal)
    {
        return None;
    }
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let place = authority.rsplit_once('@').map_or(authority, |(_, place)| place);
    let (host, port) = if let Some(inner) = place.strip_prefix('[') {
        let (host, after) = inner.split_once(']')?;
        (host, if after.is_empty() { None } else { Some(after.strip_prefix(':')?) })
    } else {
        match place.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (place, None),
        }
    };
    let number =
        |port: &str| port.bytes().all(|b| b.is_ascii_digit()) && port.parse::<u16>().is_ok();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:%".contains(&byte);
    if host.is_empty() || !host.bytes().all(plain) || port.is_some_and(|port| !number(port)) {
        return None;
    }
    Some(Address {
        scheme: scheme.to_owned(),
        host: host.to_owned(),
        port: port.map(str::to_owned),
        path: if path.starts_with('/') { path.to_owned() } else { "/".to_owned() },
    })
}

impl Options {
    /// Returns the number of opened connections: each thread has the same number, and the remainder
    /// is not opened.
    pub(super) fn connections_used(&self) -> u64 {
        self.connections / self.threads * self.threads
    }

    /// Returns the header lines that wrk accepts from `-H`: those with a colon and a space.
    pub(super) fn fields(&self) -> Vec<(String, String)> {
        let field = |text: &String| {
            let (name, value) = text.split_once(':')?;
            Some((name.to_owned(), value.strip_prefix(' ')?.to_owned()))
        };
        self.headers.iter().filter_map(field).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Result<(Options, String), Refusal> {
        let args: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        parse("wrk", &args, false)
    }

    fn refused(text: &str) -> String {
        line(text).unwrap_err().err
    }

    #[test]
    fn all_of_a_line_is_read() {
        let text = "-c2k http://u@h:81/p?q -t 3 --dur=2m --lat -T 5 -H A:b -s x.lua a -- -b";
        let (read, output) = line(text).unwrap();
        assert_eq!((read.connections, read.connections_used(), read.threads), (2000, 1998, 3));
        assert_eq!((read.duration_s, read.timeout_s, read.latency), (120, 5, true));
        assert_eq!(read.args, ["http://u@h:81/p?q", "a", "-b"]);
        assert_eq!((read.url.host.as_str(), read.url.path.as_str()), ("h", "/p?q"));
        assert_eq!((read.url.port.as_deref(), read.script.as_deref()), (Some("81"), Some("x.lua")));
        assert_eq!((read.rate, output.as_str()), (None, ""));
    }

    #[test]
    fn wrks_refusals_keep_their_words() {
        assert_eq!(refused(""), "");
        assert_eq!(refused("-h"), "wrk: invalid option -- 'h'\n");
        assert_eq!(refused("--help"), "");
        assert_eq!(refused("http://"), "invalid URL: http://\n");
        assert_eq!(refused("foo"), "invalid URL: foo\n");
        assert_eq!(refused("http://h -c 1"), "number of connections must be >= threads\n");
        assert_eq!(refused("-c"), "wrk: option requires an argument -- 'c'\n");
        assert_eq!(refused("http://h --bogus"), "wrk: unrecognized option '--bogus'\n");
        assert_eq!(
            refused("--latency=3 http://h"),
            "wrk: option '--latency' doesn't allow an argument\n"
        );
        assert_eq!(
            refused("--t 1 http://h"),
            "wrk: option '--t' is ambiguous; possibilities: '--threads' '--timeout'\n"
        );
        assert!(line("-v").unwrap_err().out.starts_with(VERSION));
        for text in [
            "http://h:x/",
            "http://h/\u{e9}",
            "http://h:99999/",
            "http:///",
            "h:1/",
            "http://h/ -U",
        ] {
            assert!(line(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_rate_makes_it_wrk2() {
        let (read, _) = line("-R 2k -L -U -B http://h/").unwrap();
        assert_eq!(
            (read.rate, read.latency, read.uncorrected, read.batch),
            (Some(2000), true, true, true)
        );
        let args = ["http://h/".to_owned()];
        let refusal = parse("wrk2", &args, true).unwrap_err();
        assert_eq!(refusal.err, "Throughput MUST be specified with the --rate or -R option\n");
        assert!(refusal.out.contains("--u_latency"));
    }
}
