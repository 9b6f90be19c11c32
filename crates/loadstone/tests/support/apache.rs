//! A private Apache: Debian's program and modules with separate configuration, port and log in a
//! temporary folder. The packaged service is neither read nor changed.

use super::free_port;
use std::fmt::Write as _;
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const PROGRAM: &str = "/usr/sbin/apache2";
const MODULES: &str = "/usr/lib/apache2/modules";
/// Time limit until it listens.
const START_MAX: Duration = Duration::from_secs(20);

pub(crate) struct Apache {
    child: Child,
    /// Folder of the configuration, pages and `error.log`.
    pub(crate) folder: TempDir,
    pub(crate) port: u16,
}

impl Apache {
    /// `modules`: by the names of their files (`mod_mime`: `mime`); prefork and authz_core are
    /// always included. `configure` fills the folder and returns further directives.
    #[track_caller]
    pub(crate) fn start(modules: &[&str], configure: impl Fn(&Path) -> String) -> Apache {
        // a port may be taken between choosing and using it: then another is chosen
        let mut errors = String::new();
        for _ in 0..5 {
            match Apache::try_start(modules, &configure) {
                Ok(apache) => return apache,
                Err(error) => errors.push_str(&error),
            }
        }
        panic!("Apache does not start: {errors}");
    }

    fn try_start(modules: &[&str], configure: &impl Fn(&Path) -> String) -> Result<Apache, String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        // when started as root, Apache serves as an unprivileged user that must be able to read its
        // pages
        open_to_all(folder.path())?;
        let port = free_port();
        let more = configure(folder.path());
        let file = folder.path().join("apache.conf");
        std::fs::write(&file, configuration(folder.path(), port, modules, &more))
            .map_err(|error| error.to_string())?;
        let log = std::fs::File::create(folder.path().join("output.log"));
        let log = log.map_err(|error| error.to_string())?;
        let mut command = Command::new(PROGRAM);
        command.arg("-f").arg(&file).arg("-DFOREGROUND").env_clear().env("PATH", "/usr/bin:/bin");
        // its children share its process group, so all can be killed together
        command.process_group(0).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let child = command.spawn().map_err(|error| {
            format!("{PROGRAM}: {error}; `cargo xtask test` installs it (Debian: apache2-bin)")
        })?;
        let mut apache = Apache { child, folder, port };
        let deadline = Instant::now() + START_MAX;
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            let ended = !matches!(apache.child.try_wait(), Ok(None));
            if ended || Instant::now() > deadline {
                return Err(apache.error_log());
            }
            std::thread::yield_now();
        }
        Ok(apache)
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// Returns the content of its error log.
    pub(crate) fn error_log(&self) -> String {
        let read = |name: &str| std::fs::read_to_string(self.folder.path().join(name));
        [read("output.log"), read("error.log")].map(Result::unwrap_or_default).concat()
    }
}

impl Drop for Apache {
    fn drop(&mut self) {
        let group = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process_group(group, rustix::process::Signal::KILL).ok();
        self.child.wait().ok();
    }
}

fn open_to_all(folder: &Path) -> Result<(), String> {
    use std::os::unix::fs::PermissionsExt;
    let all = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(folder, all).map_err(|error| error.to_string())
}

fn configuration(folder: &Path, port: u16, modules: &[&str], more: &str) -> String {
    let root = folder.display();
    let mut text = format!(
        "ServerRoot {root}\nServerName 127.0.0.1\nListen 127.0.0.1:{port}\n\
         DefaultRuntimeDir {root}\nPidFile {root}/pid\nErrorLog {root}/error.log\n\
         User www-data\nGroup www-data\n"
    );
    for module in ["mpm_prefork", "authz_core"].iter().chain(modules) {
        let path: PathBuf = Path::new(MODULES).join(format!("mod_{module}.so"));
        // a module's own name: mod_cgi is cgi_module
        writeln!(text, "LoadModule {module}_module {}", path.display()).ok();
    }
    text.push_str(more);
    text
}
