//! Switches that each break one behavior, to show that a test plan detects it.

/// Behavior that is broken on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Break {
    /// The welcome page greets differently.
    Welcome,
    IndexParent,
    IndexSizes,
    IndexDates,
    IndexIcons,
    IndexEmpty,
    Slash,
    Mime,
    Ranges,
    NotModified,
    Escape,
    OddFiles,
    Unreadable,
    AuthWilma,
    AuthAnybody,
    AuthPassword,
    AuthGroup,
    AuthRealm,
    /// A CGI script gets its query decoded.
    CgiQuery,
    /// SERVER_SOFTWARE is missing in the environment of CGI scripts.
    CgiEnv,
    /// A CGI script finds its standard input empty.
    CgiStdin,
    /// The form that greets by name swaps the names.
    FormGreeting,
    /// The line counter counts one line too many.
    LineCount,
    /// The welcome page lacks its menu.
    Menu,
    HwText,
    HwType,
    SleepText,
    /// `/sleep` answers at once.
    SleepShort,
    SleepParallel,
    MaxClients,
    SpoolLeft,
    /// New connections are not logged.
    LogConnections,
    /// No line names the temporary file.
    LogTmpFile,
}

/// Every switch with its name and its effect, in the order for help.
pub const BREAKS: &[(Break, &str, &str)] = &[
    (Break::Welcome, "welcome", "the welcome page lacks the word Welcome"),
    (Break::IndexParent, "index-parent", "a directory's index has no link to its parent"),
    (Break::IndexSizes, "index-sizes", "a directory's index shows no sizes"),
    (Break::IndexDates, "index-dates", "a directory's index shows no dates"),
    (Break::IndexIcons, "index-icons", "a directory's index has one icon for everything"),
    (
        Break::IndexEmpty,
        "index-empty",
        "the index of an empty directory does not report that it is empty",
    ),
    (Break::Slash, "slash", "a directory's URL without its final slash is not redirected"),
    (Break::Mime, "mime", "every file is application/octet-stream"),
    (Break::Ranges, "range", "ranges are ignored"),
    (Break::NotModified, "not-modified", "a file that the client has cached is sent again"),
    (Break::Escape, "escape", "links that lead out of a directory's root are followed"),
    (Break::OddFiles, "odd-500", "sockets, pipes and devices give 500"),
    (Break::Unreadable, "unreadable-404", "unreadable files give 404"),
    (Break::AuthWilma, "auth-wilma", "wilma enters with her password"),
    (Break::AuthAnybody, "auth-anybody", "anybody enters, with or without a password"),
    (Break::AuthPassword, "auth-password", "any password does"),
    (Break::AuthGroup, "auth-group", "users allowed by a group are rejected"),
    (Break::AuthRealm, "auth-realm", "the challenge names another realm"),
    (Break::CgiQuery, "cgi-query", "QUERY_STRING arrives decoded"),
    (Break::CgiEnv, "cgi-env", "SERVER_SOFTWARE is missing from a script's environment"),
    (Break::CgiStdin, "cgi-stdin", "a script finds its standard input empty"),
    (Break::FormGreeting, "form-greeting", "the form greets with the names swapped"),
    (Break::LineCount, "line-count", "the line counter counts one line too many"),
    (Break::Menu, "menu", "the welcome page has no menu"),
    (Break::HwText, "hw-text", "/hw returns another text"),
    (Break::HwType, "hw-type", "/hw is sent as text/html"),
    (Break::SleepText, "sleep-text", "/sleep does not report how long it slept"),
    (Break::SleepShort, "sleep-short", "/sleep answers at once"),
    (Break::SleepParallel, "sleep-parallel", "/sleep serves all requests at once"),
    (Break::MaxClients, "max-clients", "connections beyond MaxClients are served"),
    (Break::SpoolLeft, "spool-left", "temporary files stay behind"),
    (Break::LogConnections, "log-connections", "the log does not report new connections"),
    (Break::LogTmpFile, "log-tmpfile", "the log does not name temporary files"),
];

/// The switches that are on.
#[derive(Clone, Debug, Default)]
pub struct Breaks(Vec<Break>);

impl Breaks {
    /// Parses names of [`BREAKS`], separated by commas.
    ///
    /// # Errors
    /// Fails with the first invalid name.
    pub fn parse(text: &str) -> Result<Breaks, String> {
        let find = |name: &str| {
            let known = BREAKS.iter().find(|(_, known, _)| *known == name);
            known.map(|(which, ..)| *which).ok_or_else(|| name.to_owned())
        };
        text.split(',').map(|name| find(name.trim())).collect::<Result<_, _>>().map(Breaks)
    }

    pub fn has(&self, which: Break) -> bool {
        self.0.contains(&which)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_turns_on_its_own_switch_and_no_other() {
        for (which, name, _) in BREAKS {
            let breaks = Breaks::parse(name).unwrap();
            for (other, ..) in BREAKS {
                assert_eq!(breaks.has(*other), other == which, "{name} and {other:?}");
            }
        }
    }

    #[test]
    fn an_unknown_name_is_reported() {
        assert_eq!(Breaks::parse("welcome, nonsense").unwrap_err(), "nonsense");
        let both = Breaks::parse("welcome, hw-type").unwrap();
        assert!(both.has(Break::Welcome) && both.has(Break::HwType));
    }
}
