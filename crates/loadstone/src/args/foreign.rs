//! Words of other tools' command lines. What somebody types from habit is answered by our option for the same
//! thing, not by the option of ours that happens to be spelt alike.

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// An option of another tool: its spellings, whose it is, and what to type here.
struct Foreign {
    options: &'static [&'static str],
    whose: &'static str,
    ours: &'static str,
}

const FOREIGN: &[Foreign] = &[
    of(&["--vus", "-u"], "k6", "-c N (users of a closed load)"),
    of(
        &["--stage", "--stages"],
        "k6",
        "--rate 100..2000/s, or loadstone ramp URL for the whole curve",
    ),
    of(&["--iterations", "-i"], "k6", "-n COUNT"),
    of(&["--rps"], "k6", "--rate N/s"),
    of(&["--env", "-e"], "k6", "--script FILE.lua -- ARGUMENT (a script finds it in its args)"),
    of(
        &["--summary-export", "--out", "-o"],
        "k6, oha and vegeta",
        "--json FILE, --csv FILE or --html FILE",
    ),
    of(
        &["--form", "-F"],
        "curl",
        "--body TEXT with -H 'Content-Type: application/x-www-form-urlencoded'",
    ),
    of(&["--data", "--data-raw"], "curl", "--body TEXT"),
    of(
        &["--data-binary", "-D", "-T"],
        "curl, hey, oha and vegeta",
        "--body-file FILE, and -H 'Content-Type: …'",
    ),
    of(&["-X", "--request", "-m"], "curl, oha and hey", "--method NAME"),
    of(&["--user-agent-string", "-A"], "curl", "--user-agent TEXT"),
    of(&["-a"], "oha and hey", "--user NAME:PASSWORD"),
    of(&["-b", "--cookie"], "curl", "-H 'Cookie: NAME=VALUE', or --cookies to keep the server's"),
    of(&["-k"], "curl", "--insecure"),
    of(
        &["-L", "--location", "--redirects", "--max-redirects"],
        "curl, oha and vegeta",
        "--follow or --follow=N",
    ),
    of(&["-x"], "curl, oha and hey", "--proxy URL"),
    of(&["--unix-socket"], "curl and oha", "--unix PATH"),
    of(&["--cacert", "--root-certs"], "curl, oha and vegeta", "--ca FILE"),
    of(&["--max-time"], "curl", "--timeout TIME"),
    of(&["-z"], "oha and hey", "-d TIME"),
    of(&["-t"], "oha, hey and wrk", "--timeout TIME (or --threads N)"),
    of(
        &["--workers", "-w", "--max-workers"],
        "vegeta and oha",
        "-c N for users, --threads N for threads",
    ),
    of(
        &["--http2", "--http3", "--http1.1", "--http1.0"],
        "curl, oha and vegeta",
        "--http 1.0 or --http 1.1, the versions that Loadstone speaks",
    ),
    of(
        &["--disable-keepalive", "--keepalive"],
        "oha, hey and vegeta",
        "--close for a connection per call; connections are kept otherwise",
    ),
    of(
        &["--disable-compression"],
        "oha and hey",
        "nothing: compression is asked for with --compressed only",
    ),
    of(
        &["--latency-correction"],
        "oha",
        "nothing: response times always count from the instant a call was due",
    ),
    of(&["--no-tui"], "oha", "nothing: the full-screen view comes with --live only"),
    of(&["--burst-rate", "--burst-delay"], "oha", "--burst N with --rate"),
    of(&["--rand-regex-url", "--urls-from-file", "--targets"], "oha and vegeta", "--urls FILE"),
    of(&["--lazy", "--format"], "vegeta", "--urls FILE"),
    of(&["--name", "--tag"], "vegeta and k6", "loadstone runs tag RUN NAME, after the run"),
    of(&["-p"], "oha and wrk", "--pipeline N (or -c N)"),
    of(&["-s"], "wrk", "--script FILE.lua"),
    of(&["--latency"], "wrk", "--percentiles"),
    of(&["-R"], "wrk2", "--rate N/s"),
    of(
        &["--num-conns", "--num-calls", "--hog"],
        "httperf",
        "loadstone httperf, which takes httperf's options",
    ),
];

const fn of(options: &'static [&'static str], whose: &'static str, ours: &'static str) -> Foreign {
    Foreign { options, whose, ours }
}

/// What to say of an option that another tool has and we have not; `None` where the error is another.
pub(crate) fn hint(error: &clap::Error) -> Option<String> {
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidArg) else { return None };
    let typed = typed.split('=').next().unwrap_or(typed);
    let foreign = FOREIGN.iter().find(|foreign| foreign.options.contains(&typed))?;
    Some(format!("{typed} is an option of {}; here it is {}", foreign.whose, foreign.ours))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Cli;
    use clap::{CommandFactory, Parser};

    #[test]
    fn a_foreign_option_is_answered_by_ours() {
        for (argv, wanted) in [
            (
                "run --vus 10 h",
                "--vus is an option of k6; here it is -c N (users of a closed load)",
            ),
            ("run h -X POST", "-X is an option of curl, oha and hey; here it is --method NAME"),
            ("run h -z 10s", "-z is an option of oha and hey; here it is -d TIME"),
            ("run h --data=a=b", "--data is an option of curl; here it is --body TEXT"),
            ("run h -mPOST", "-m is an option of curl, oha and hey; here it is --method NAME"),
        ] {
            let words = ["loadstone"].into_iter().chain(argv.split(' '));
            let error = Cli::try_parse_from(words).unwrap_err();
            assert_eq!(hint(&error).as_deref(), Some(wanted), "{argv}");
        }
        let words = ["loadstone", "run", "--conections", "3", "h"];
        assert_eq!(hint(&Cli::try_parse_from(words).unwrap_err()), None);
    }

    #[test]
    fn no_option_of_ours_is_called_foreign() {
        let cli = Cli::command();
        let run = cli.find_subcommand("run").expect("there is a command run");
        for argument in run.get_arguments() {
            let long = argument.get_long().map(|name| format!("--{name}"));
            let short = argument.get_short().map(|name| format!("-{name}"));
            for ours in long.into_iter().chain(short) {
                let taken = FOREIGN.iter().find(|foreign| foreign.options.contains(&ours.as_str()));
                assert!(taken.is_none(), "{ours} is an option of run");
            }
        }
        let mut all: Vec<&str> =
            FOREIGN.iter().flat_map(|foreign| foreign.options).copied().collect();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count, "an option stands twice");
    }
}
