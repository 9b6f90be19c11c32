//! The plan for Apache (Debian's apache2) with CGI and Basic authorisation, in a folder of its own.

use crate::servers::{Serving, give_away, open_folder, unprivileged};
use crate::support::{free_port, whole};
use crate::{check, failed};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const PLAN: &str = include_str!("apache.toml");
const MODULES: &str = "/usr/lib/apache2/modules";

struct Apache {
    // ended before its folder goes
    _serving: Serving,
    folder: TempDir,
    port: u16,
}

const PRINTENV: &str = "#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\n'\nenv\n";
const TEST_POST: &str =
    "#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\nstdin contained:\\n'\ncat\n";
const COUNT: &str = "#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\n'\necho $(wc -l) lines\n";

impl Apache {
    fn start() -> Apache {
        // a port may be taken between its choice and its use: then another is chosen
        (0..5).find_map(|_| Apache::try_start()).expect("apache2 starts; its log says why not")
    }

    fn try_start() -> Option<Apache> {
        let folder = open_folder();
        let port = free_port();
        write_tree(folder.path());
        std::fs::write(folder.path().join("apache.conf"), configuration(folder.path(), port))
            .unwrap();
        let mut command = unprivileged(Path::new("/usr/sbin/apache2"));
        command.args(["-D", "FOREGROUND", "-f"]).arg(folder.path().join("apache.conf"));
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut serving = Serving::start(command);
        let deadline = Instant::now() + Duration::from_secs(20);
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if serving.over() || Instant::now() > deadline {
                return None;
            }
            std::thread::yield_now();
        }
        Some(Apache { _serving: serving, folder, port })
    }
}

fn write_tree(root: &Path) {
    for folder in ["htdocs", "htdocs/secure", "htdocs/sub", "htdocs/sub/empty", "conf", "cgi"] {
        std::fs::create_dir(root.join(folder)).unwrap();
        give_away(&root.join(folder));
    }
    let keep = |name: &str, text: &str, mode: u32| {
        std::fs::write(root.join(name), text).unwrap();
        std::fs::set_permissions(root.join(name), PermissionsExt::from_mode(mode)).unwrap();
    };
    keep("htdocs/index.html", "<h1>Welcome to Apache</h1>\n", 0o644);
    keep("htdocs/secure/index.html", "<h1>You are in</h1>\n", 0o644);
    keep("htdocs/sub/README", "This directory has no index.html.\n", 0o644);
    keep("htdocs/sub/unreadable", "Nobody reads this.\n", 0o000);
    give_away(&root.join("htdocs/sub/unreadable"));
    keep("cgi/env", PRINTENV, 0o755);
    keep("cgi/test-post", TEST_POST, 0o755);
    keep("cgi/count", COUNT, 0o755);
    let logins =
        [("fred", "rocks"), ("wilma", "pebbles"), ("barney", "bowling"), ("betty", "mink")];
    let lines: String = logins.iter().map(|(user, word)| hashed(user, word)).collect();
    keep("conf/admin.pwd", &lines, 0o644);
    keep("conf/admin.grp", "Rubble: barney betty\n", 0o644);
}

/// A line of a password file (RFC 7617 logins, Apache's own MD5).
fn hashed(user: &str, password: &str) -> String {
    let made = Command::new("openssl").args(["passwd", "-apr1", password]).output().unwrap();
    assert!(made.status.success(), "openssl makes Apache's passwords");
    format!("{user}:{}", String::from_utf8(made.stdout).unwrap())
}

fn configuration(root: &Path, port: u16) -> String {
    let modules = [
        "mpm_event",
        "authn_core",
        "authn_file",
        "authz_core",
        "authz_user",
        "authz_groupfile",
        "auth_basic",
        "alias",
        "autoindex",
        "cgid",
        "dir",
        "mime",
    ];
    let load: String = modules
        .iter()
        .map(|name| format!("LoadModule {name}_module {MODULES}/mod_{name}.so\n"))
        .collect();
    let root = root.display();
    format!(
        r#"ServerRoot "{root}"
ServerName 127.0.0.1
Listen 127.0.0.1:{port}
PidFile "{root}/pid"
ErrorLog "{root}/error.log"
DefaultRuntimeDir "{root}"
{load}
Mutex posixsem
ScriptSock "{root}/cgid.sock"
TypesConfig /dev/null
AddType text/html .html
LogFormat "%a %u \"%r\" %>s" plain
CustomLog "{root}/access.log" plain
DocumentRoot "{root}/htdocs"
DirectoryIndex index.html
<Directory "{root}/htdocs">
    Options Indexes
    Require all granted
</Directory>
<Directory "{root}/htdocs/secure">
    AuthType Basic
    AuthName admin
    AuthUserFile "{root}/conf/admin.pwd"
    AuthGroupFile "{root}/conf/admin.grp"
    <RequireAny>
        Require user fred
        Require group Rubble
    </RequireAny>
</Directory>
ScriptAlias /cgi "{root}/cgi"
<Directory "{root}/cgi">
    Require all granted
</Directory>
"#
    )
}

#[test]
fn apache_passes_its_plan() {
    let apache = Apache::start();
    let base = format!("http://127.0.0.1:{}", apache.port);
    let root = apache.folder.path().to_str().unwrap();
    let plans = tempfile::tempdir().unwrap();
    let json = check(plans.path(), PLAN, &["--base", &base, "--root", root]);
    let json = json.expect(&[0, 1]).json();
    let log = || std::fs::read_to_string(apache.folder.path().join("error.log")).unwrap();
    assert_eq!(failed(&json), [""; 0], "{}", log());
    assert_eq!(whole(&json, "/counts/skipped"), 0);
    assert!(whole(&json, "/counts/passed") >= 26);
}

#[test]
fn a_plan_of_apache_tells_what_another_server_lacks() {
    let site = crate::support::Site::start(&[]);
    let plans = tempfile::tempdir().unwrap();
    let json = check(plans.path(), PLAN, &["--base", &site.url("")]).expect(&[1]).json();
    let said = failed(&json);
    assert!(said.iter().any(|line| line.starts_with("the welcome page: ")), "{said:?}");
    assert!(said.iter().any(|line| line.starts_with("printenv with a query: ")), "{said:?}");
}
