//! The plan for Apache (Debian's apache2) with CGI and Basic authorization, in its own folder.

use crate::support::apache::Apache;
use crate::support::whole;
use crate::{check, failed};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

const PLAN: &str = include_str!("apache.toml");
const MODULES: &[&str] = &[
    "alias",
    "auth_basic",
    "authn_core",
    "authn_file",
    "authz_groupfile",
    "authz_user",
    "autoindex",
    "cgi",
    "dir",
    "mime",
];

const PRINTENV: &str = "#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\n'\nenv\n";
const TEST_POST: &str =
    "#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\nstdin contained:\\n'\ncat\n";
const COUNT: &str = "#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\n'\necho $(wc -l) lines\n";

fn write_tree(root: &Path) {
    for folder in ["htdocs", "htdocs/secure", "htdocs/sub", "htdocs/sub/empty", "conf", "cgi"] {
        std::fs::create_dir(root.join(folder)).unwrap();
    }
    let keep = |name: &str, text: &str, mode: u32| {
        std::fs::write(root.join(name), text).unwrap();
        std::fs::set_permissions(root.join(name), PermissionsExt::from_mode(mode)).unwrap();
    };
    keep("htdocs/index.html", "<h1>Welcome to Apache</h1>\n", 0o644);
    keep("htdocs/secure/index.html", "<h1>You are in</h1>\n", 0o644);
    keep("htdocs/sub/README", "This directory has no index.html.\n", 0o644);
    keep("htdocs/sub/unreadable", "Nobody reads this.\n", 0o000);
    keep("cgi/env", PRINTENV, 0o755);
    keep("cgi/test-post", TEST_POST, 0o755);
    keep("cgi/count", COUNT, 0o755);
    let logins =
        [("fred", "rocks"), ("wilma", "pebbles"), ("barney", "bowling"), ("betty", "mink")];
    let lines: String = logins.iter().map(|(user, word)| hashed(user, word)).collect();
    keep("conf/admin.pwd", &lines, 0o644);
    keep("conf/admin.grp", "Rubble: barney betty\n", 0o644);
}

/// Renders a line of a password file (RFC 7617 logins, Apache's own MD5).
fn hashed(user: &str, password: &str) -> String {
    let made = Command::new("openssl").args(["passwd", "-apr1", password]).output().unwrap();
    assert!(made.status.success(), "openssl makes Apache's passwords");
    format!("{user}:{}", String::from_utf8(made.stdout).unwrap())
}

/// Fills the folder; returns the directives that serve it.
fn configure(root: &Path) -> String {
    write_tree(root);
    let root = root.display();
    format!(
        r#"TypesConfig /dev/null
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
    let apache = Apache::start(MODULES, configure);
    let root = apache.folder.path().to_str().unwrap();
    let plans = tempfile::tempdir().unwrap();
    let options = ["--base", &apache.url(""), "--root", root];
    let json = check(plans.path(), PLAN, &options).expect(&[0, 1]).json();
    assert_eq!(failed(&json), [""; 0], "{}", apache.error_log());
    assert_eq!(whole(&json, "/counts/skipped"), 0);
    assert!(whole(&json, "/counts/passed") >= 26);
}

#[test]
fn apaches_plan_detects_another_servers_gaps() {
    let site = crate::support::Site::start(&[]);
    let plans = tempfile::tempdir().unwrap();
    let json = check(plans.path(), PLAN, &["--base", &site.url("")]).expect(&[1]).json();
    let error_log = failed(&json);
    assert!(error_log.iter().any(|line| line.starts_with("the welcome page: ")), "{error_log:?}");
    assert!(
        error_log.iter().any(|line| line.starts_with("printenv with a query: ")),
        "{error_log:?}"
    );
}
