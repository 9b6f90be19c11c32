//! The settings of siege's configuration file and command line.

/// A login: `USER:PASSWORD[:REALM]`; the realm `any` fits all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Login {
    pub(super) user: String,
    pub(super) password: String,
    pub(super) realm: String,
}

impl Login {
    pub(super) fn parse(text: &str) -> Login {
        let mut parts = text.splitn(3, ':').map(|part| part.trim().to_owned());
        let mut next = || parts.next().unwrap_or_default();
        let (user, password, realm) = (next(), next(), next());
        let realm = if realm.is_empty() || realm.eq_ignore_ascii_case("all") {
            "any".to_owned()
        } else {
            realm
        };
        Login { user, password, realm }
    }

    /// Returns the credentials for this realm, or generic ones.
    pub(super) fn find<'a>(logins: &'a [Login], realm: &str) -> Option<&'a Login> {
        let named = |name: &str| logins.iter().find(|login| login.realm.eq_ignore_ascii_case(name));
        named(realm).or_else(|| named("any"))
    }
}

/// Number of times that each user repeats its URLs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reps {
    /// Until the time is over, or forever.
    Endless,
    Pages(u32),
    /// Each URL of the list, once.
    Once,
}

#[derive(Clone, Debug)]
pub(super) struct Config {
    pub(super) verbose: bool,
    pub(super) color: bool,
    pub(super) quiet: bool,
    pub(super) debug: bool,
    pub(super) json: bool,
    pub(super) csv: bool,
    pub(super) timestamp: bool,
    pub(super) full_url: bool,
    pub(super) display_id: bool,
    pub(super) show_logfile: bool,
    pub(super) logging: bool,
    pub(super) logfile: String,
    pub(super) mark: Option<String>,
    /// `-g`; `-p`; HEAD rather than GET for `-g`: by default it is shown as HEAD and sent as GET.
    pub(super) get: bool,
    pub(super) print: bool,
    pub(super) get_by_head: Option<bool>,
    pub(super) parser: bool,
    pub(super) no_follow: Vec<String>,
    pub(super) limit: i32,
    pub(super) http11: bool,
    pub(super) chunked: bool,
    pub(super) cache: bool,
    pub(super) keep_alive: bool,
    pub(super) users: i32,
    /// Seconds; 0: no limit of time.
    pub(super) seconds: i32,
    pub(super) reps: Reps,
    pub(super) file: String,
    pub(super) url: Option<String>,
    /// Delay in seconds.
    pub(super) delay: f64,
    pub(super) timeout: i32,
    pub(super) expire_session: bool,
    pub(super) cookies: bool,
    /// Number of failed transactions that end the run; 0 or less for no limit.
    pub(super) failures: i32,
    pub(super) internet: bool,
    pub(super) benchmark: bool,
    pub(super) user_agent: String,
    pub(super) content_type: String,
    pub(super) accept_encoding: String,
    pub(super) url_escaping: bool,
    /// Header lines, each with its CR and LF.
    pub(super) headers: String,
    pub(super) logins: Vec<Login>,
    pub(super) login_urls: Vec<String>,
    pub(super) auth_urls: Vec<String>,
    pub(super) proxy_logins: Vec<Login>,
    pub(super) unique: bool,
    pub(super) ssl_cert: Option<String>,
    pub(super) ssl_key: Option<String>,
    /// Timeout of a connection with its handshake in seconds, if given.
    pub(super) ssl_timeout: Option<i32>,
    pub(super) ssl_ciphers: Option<String>,
    pub(super) proxy_host: Option<String>,
    pub(super) proxy_port: i32,
    pub(super) follow: bool,
    pub(super) zero_data_ok: bool,
    pub(super) attempts: i32,
    /// Configuration file.
    pub(super) rc: String,
    /// Prints and behaves as 4.1.7 rather than 4.0.7, where the two differ.
    pub(super) newer: bool,
    pub(super) strict: bool,
}

/// Debian's paths for siege's URLs and its log.
pub(super) const URLS_FILE: &str = "/etc/siege/urls.txt";
pub(super) const LOG_FILE: &str = "/var/log/log/siege.log";
pub(super) const VERSION: &str = "4.0.7";

/// Maximum number of seconds between pages: a year.
const DELAY_MAX: f64 = 31_536_000.0;

impl Default for Config {
    /// Returns the defaults before any file is read.
    fn default() -> Config {
        Config {
            verbose: false,
            color: true,
            quiet: false,
            debug: false,
            json: false,
            csv: false,
            timestamp: false,
            full_url: false,
            display_id: false,
            show_logfile: false,
            logging: false,
            logfile: LOG_FILE.into(),
            mark: None,
            get: false,
            print: false,
            get_by_head: None,
            parser: false,
            no_follow: Vec::new(),
            limit: 255,
            http11: false,
            chunked: false,
            cache: false,
            keep_alive: false,
            users: 0,
            seconds: 0,
            reps: Reps::Endless,
            file: URLS_FILE.into(),
            url: None,
            delay: 0.0,
            timeout: 30,
            expire_session: false,
            cookies: true,
            failures: 1_024,
            internet: false,
            benchmark: false,
            user_agent: format!("Mozilla/5.0 (pc-x86_64-linux-gnu) Siege/{VERSION}"),
            content_type: "application/x-www-form-urlencoded".into(),
            accept_encoding: "*".into(),
            url_escaping: true,
            headers: String::new(),
            logins: Vec::new(),
            login_urls: Vec::new(),
            auth_urls: Vec::new(),
            proxy_logins: Vec::new(),
            unique: true,
            ssl_cert: None,
            ssl_key: None,
            ssl_timeout: None,
            ssl_ciphers: None,
            proxy_host: None,
            proxy_port: 3_128,
            follow: true,
            zero_data_ok: true,
            attempts: 5,
            rc: String::new(),
            newer: false,
            strict: false,
        }
    }
}

impl Config {
    /// Returns the maximum number of pages that one user visits; `None` means unlimited.
    pub(super) fn pages(&self, urls: usize) -> Option<u64> {
        match self.reps {
            _ if self.run_seconds() > 0 => None,
            Reps::Endless => None,
            Reps::Pages(count) => Some(u64::from(count)),
            Reps::Once => Some(urls as u64),
        }
    }

    /// Returns the length of a time-based test; 0 if there are no repetitions, so that no request
    /// is sent.
    pub(super) fn run_seconds(&self) -> i32 {
        if self.reps == Reps::Pages(0) { 0 } else { self.seconds }
    }

    /// Contradictions between the file and the options are resolved as the tool does. The text is
    /// for standard error.
    pub(super) fn settle(&mut self) -> String {
        let mut output = String::new();
        self.delay = if self.benchmark { 0.0 } else { self.delay.min(DELAY_MAX) };
        if self.seconds > 0 && matches!(self.reps, Reps::Pages(1..)) {
            output = error("CONFIG conflict: selected time and repetition based testing");
            putln!(output, "defaulting to time-based testing: {} seconds", self.seconds);
            self.reps = Reps::Endless;
        }
        self.users = self.users.max(1);
        if self.get {
            (self.users, self.reps) = (1, Reps::Pages(1));
            (self.logging, self.benchmark) = (false, true);
        }
        self.quiet |= self.json;
        if self.quiet {
            (self.verbose, self.debug) = (false, false);
        }
        output
    }
}

/// Returns a line in siege's own format: `[error] …`, always in color.
pub(super) fn error(text: &str) -> String {
    format!("[\x1b[1;33merror\x1b[0m] {text}\n")
}

pub(super) fn alert(text: &str) -> String {
    format!("[\x1b[1;32malert\x1b[0m] {text}\n")
}

pub(super) fn fatal(text: &str) -> String {
    format!("[\x1b[1;31mfatal\x1b[0m] {text}\n")
}
