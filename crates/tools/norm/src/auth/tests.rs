use super::*;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;
use std::sync::Mutex;
use tempfile::TempDir;

struct Site {
    tree: TempDir,
    guard: Guard,
    complaints: Arc<Mutex<Vec<String>>>,
}

const RULE: &str = "AuthType = 'Basic'\nAuthName = 'admin'\n\
                    AuthUserFile = 'conf/admin.pwd'\nAuthGroupFile = 'conf/admin.grp'\n\
                    AuthAllowUsers = 'fred'\nAuthAllowGroups = ['Rubble']\n";

impl Site {
    /// Returns the chapter's files.
    fn new() -> Site {
        let tree = tempfile::tempdir().unwrap();
        for folder in ["htdocs/secure/deep", "htdocs/open", "conf"] {
            std::fs::create_dir_all(tree.path().join(folder)).unwrap();
        }
        let complaints = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&complaints);
        let complain: Complain =
            Arc::new(move |found| heard.lock().unwrap().push(found.to_owned()));
        let guard = Guard::new(&tree.path().join("htdocs"), tree.path(), complain);
        let site = Site { tree, guard, complaints };
        let passwords = "fred:rocks\nwilma:pebbles\nbarney:bowling\nbetty:mink\n";
        site.write("conf/admin.pwd", passwords);
        site.write("conf/admin.grp", "# neighbors\nRubble: barney betty\n");
        site.write("htdocs/secure/.site.toml", RULE);
        site
    }

    fn write(&self, path: &str, text: &str) {
        std::fs::write(self.tree.path().join(path), text).unwrap();
    }

    /// Returns the admitted user (`-` if none is required), or the status.
    fn admit(&self, path: &str, headers: &HeaderMap, breaks: &str) -> String {
        let breaks = Breaks::parse(breaks).unwrap_or_default();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        match runtime.block_on(self.guard.admit(path, headers, &breaks)) {
            Ok(user) => user.unwrap_or_else(|| "-".to_owned()),
            Err(reply) => reply.status.as_u16().to_string(),
        }
    }

    fn login(&self, user: &str, password: &str, breaks: &str) -> String {
        self.admit("/secure/page.html", &basic(user, password), breaks)
    }

    /// Returns the error messages for this configuration.
    fn complaint(&self, rule: &str) -> String {
        self.write("htdocs/secure/.site.toml", rule);
        assert_eq!(self.login("fred", "rocks", ""), "500", "{rule}");
        let found = self.complaints.lock().unwrap().pop().unwrap();
        found
            .split_once(".site.toml: ")
            .unwrap()
            .1
            .replace(&self.tree.path().display().to_string(), "")
    }
}

fn field(value: &[u8]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    if let Ok(value) = HeaderValue::from_bytes(value) {
        headers.insert(header::AUTHORIZATION, value);
    }
    headers
}

fn basic(user: &str, password: &str) -> HeaderMap {
    field(format!("Basic {}", STANDARD.encode(format!("{user}:{password}"))).as_bytes())
}

/// Tests each user with the right password, a wrong one, and none.
fn matrix(site: &Site, breaks: &str) -> String {
    let users = [("fred", "rocks"), ("wilma", "pebbles"), ("barney", "bowling"), ("betty", "mink")];
    let row = |(user, password): (&str, &str)| {
        let right = site.login(user, password, breaks);
        let wrong = site.login(user, "sand", breaks);
        let none = site.login(user, "", breaks);
        format!("{user}: {right} {wrong} {none}\n")
    };
    users.into_iter().map(row).collect()
}

#[test]
fn permitted_users_enter_with_the_right_password() {
    let expected = "fred: fred 401 401\n\
                    wilma: 401 401 401\n\
                    barney: barney 401 401\n\
                    betty: betty 401 401\n";
    assert_eq!(matrix(&Site::new(), ""), expected);
}

#[test]
fn each_break_changes_only_its_own_results() {
    let site = Site::new();
    let broken = |name: &str| matrix(&site, name);
    assert_eq!(
        broken("auth-wilma"),
        "fred: fred 401 401\nwilma: wilma 401 401\nbarney: barney 401 401\nbetty: betty 401 401\n"
    );
    assert_eq!(
        broken("auth-group"),
        "fred: fred 401 401\nwilma: 401 401 401\nbarney: 401 401 401\nbetty: 401 401 401\n"
    );
    assert_eq!(
        broken("auth-password"),
        "fred: fred fred fred\nwilma: 401 401 401\nbarney: barney barney barney\n\
         betty: betty betty betty\n"
    );
    assert_eq!(broken("auth-anybody"), "fred: - - -\nwilma: - - -\nbarney: - - -\nbetty: - - -\n");
    assert_eq!(broken("auth-realm"), broken(""));
}

#[test]
fn the_challenge_names_the_realm() {
    let site = Site::new();
    let challenge = |breaks: &str| {
        let breaks = Breaks::parse(breaks).unwrap_or_default();
        let gates = site.guard.gates("/secure/").unwrap();
        let reply = gates.admit(&HeaderMap::new(), &breaks).unwrap_err();
        assert_eq!(reply.status, StatusCode::UNAUTHORIZED);
        reply.headers[header::WWW_AUTHENTICATE].as_bytes().to_vec()
    };
    assert_eq!(challenge(""), br#"Basic realm="admin", charset="UTF-8""#);
    assert_ne!(challenge("auth-realm"), challenge(""));
    site.write("htdocs/secure/.site.toml", &RULE.replace("'admin'", r#""a \"b\" \\ é""#));
    let expected = r#"Basic realm="a \"b\" \\ é", charset="UTF-8""#;
    assert_eq!(challenge(""), expected.as_bytes());
}

#[test]
fn the_nearest_file_upwards_decides() {
    let site = Site::new();
    let fred = basic("fred", "rocks");
    for path in ["/", "/open/a", "/nothing/at/all", "/secure.html", "/open/secure"] {
        assert_eq!(site.admit(path, &HeaderMap::new(), ""), "-", "{path}");
    }
    for path in ["/secure", "/secure/", "/secure/a", "/secure/deep/a", "/secure/none/at/all"] {
        assert_eq!(site.admit(path, &HeaderMap::new(), ""), "401", "{path}");
        assert_eq!(site.admit(path, &fred, ""), "fred", "{path}");
    }
    let only_wilma = RULE.replace("'fred'", "['wilma']").replace("['Rubble']", "''");
    site.write("htdocs/secure/deep/.site.toml", &only_wilma);
    assert_eq!(site.admit("/secure/deep/a", &fred, ""), "401");
    assert_eq!(site.admit("/secure/deep/a", &basic("wilma", "pebbles"), ""), "wilma");
    assert_eq!(site.admit("/secure/a", &fred, ""), "fred");
    // no file has such a path
    for path in ["/secure/../open/", "/open/.site.toml", "/a\0"] {
        assert_eq!(site.admit(path, &fred, ""), "404", "{path}");
    }
}

#[test]
fn a_change_applies_from_the_next_request() {
    let site = Site::new();
    assert_eq!(site.login("fred", "rocks", ""), "fred");
    site.write("conf/admin.pwd", "fred:stones\n");
    assert_eq!(site.login("fred", "rocks", ""), "401");
    assert_eq!(site.login("fred", "stones", ""), "fred");
    site.write("conf/admin.grp", "Rubble: nobody\n");
    assert_eq!(site.login("barney", "bowling", ""), "401");
    std::fs::remove_file(site.tree.path().join("htdocs/secure/.site.toml")).unwrap();
    assert_eq!(site.login("nobody", "at all", ""), "-");
}

#[test]
fn fields_are_parsed_by_the_rfc() {
    let site = Site::new();
    let enter = |headers: &HeaderMap| site.admit("/secure/", headers, "");
    let token = STANDARD.encode("fred:rocks");
    for good in ["Basic ", "basic ", "BASIC   "] {
        assert_eq!(enter(&field(format!("{good}{token}").as_bytes())), "fred", "{good}");
    }
    let bad = ["", "Basic", "Basic ", "Bearer ", "Basic %", "Basic ZnJlZA==", "Basic /////w=="];
    for bad in bad {
        assert_eq!(enter(&field(bad.as_bytes())), "401", "{bad}");
    }
    assert_eq!(enter(&field(token.as_bytes())), "401");
    assert_eq!(enter(&field(b"Basic \xff")), "401");
    let mut twice = basic("fred", "rocks");
    twice.append(header::AUTHORIZATION, twice[header::AUTHORIZATION].clone());
    assert_eq!(enter(&twice), "401");
    // a password may hold colons and letters of any kind
    site.write("conf/admin.pwd", "fred:a:b é \n");
    assert_eq!(enter(&basic("fred", "a:b é ")), "fred");
    assert_eq!(enter(&basic("fred", "a:b é")), "401");
    // an empty name is not admitted
    assert_eq!(enter(&basic("", "")), "401");
    assert_eq!(enter(&basic("unknown", "")), "401");
}

#[test]
fn a_wrong_configuration_closes_the_directory_and_is_reported() {
    let site = Site::new();
    let closed = "; the directory is closed";
    let table = [
        ("", "line 1: missing field `AuthType`"),
        ("AuthType", "line 1: "),
        ("AuthType = 'Basic'\n", "line 1: missing field `AuthName`"),
        (
            &RULE.replace("AuthName", "AuthNmae"),
            "line 2: unknown field `AuthNmae`, expected one of",
        ),
        (
            &RULE.replace("'Basic'", "'Digest'"),
            "AuthType = \"Digest\" is not known; write AuthType",
        ),
        (&RULE.replace("'admin'", r#""a\nb""#), "AuthName holds a control character"),
        (&RULE.replace("'fred'", "1"), "line 5: write names as \"barney betty\" or ["),
        (&RULE.replace("'fred'", "''").replace("'Rubble'", ""), "no user has access; write"),
        (
            &RULE.replace("AuthGroupFile = 'conf/admin.grp'\n", ""),
            "AuthAllowGroups needs an AuthGroupFile",
        ),
        (
            &RULE.replace("Rubble", "Ruble"),
            "AuthAllowGroups names \"Ruble\", which /conf/admin.grp does not have",
        ),
        (&RULE.replace("admin.pwd", "none.pwd"), "/conf/none.pwd: No such file or directory"),
        (&RULE.replace("conf/admin.pwd", "conf"), "/conf: it is not a file"),
        (&RULE.replace("conf/admin.pwd", "/dev/zero"), "/dev/zero: it is not a file"),
        (&format!("{RULE}#{}", "x".repeat(70_000)), "it is longer than the limit of 65536 bytes"),
    ];
    for (rule, expected) in table {
        let found = site.complaint(rule);
        assert!(found.starts_with(expected) && found.ends_with(closed), "{rule}\n{found}");
    }
    // a dangling link denies access
    let file = site.tree.path().join("htdocs/secure/.site.toml");
    std::fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink("nowhere", &file).unwrap();
    assert_eq!(site.login("fred", "rocks", ""), "500");
}

#[test]
fn wrong_password_and_group_files_are_reported_with_the_line() {
    let site = Site::new();
    let table = [
        ("conf/admin.pwd", "fred\n", "line 1 is not user:password"),
        ("conf/admin.pwd", "# a\n\n:rocks\n", "line 3 is not user:password"),
        (
            "conf/admin.pwd",
            "a:b\nfred:$apr1$x$y\n",
            "line 2 has a hashed password, which this site",
        ),
        (
            "conf/admin.pwd",
            "fred:{SHA}0DPiKuNIrrVmD8IUCuw1hQxNqZc=\n",
            "line 1 has a hashed password",
        ),
        ("conf/admin.pwd", "fred:a\nfred:b\n", "line 2 repeats user \"fred\""),
        ("conf/admin.grp", "Rubble\n", "line 1 is not group: user user"),
    ];
    for (file, text, expected) in table {
        let before = std::fs::read_to_string(site.tree.path().join(file)).unwrap();
        site.write(file, text);
        let found = site.complaint(RULE);
        assert!(found.starts_with(&format!("/{file}: {expected}")), "{found}");
        site.write(file, &before);
    }
    assert_eq!(site.login("fred", "rocks", ""), "fred");
    // a password that only looks expensive to verify
    site.write("conf/admin.pwd", "fred:$tone\n");
    assert_eq!(site.login("fred", "$tone", ""), "fred");
}

#[test]
fn passwords_are_not_printed() {
    let found = Credentials::new(&basic("fred", "rocks")).unwrap();
    let site = Site::new();
    let gates = site.guard.gates("/secure/").unwrap();
    let shown = format!("{found:?} {gates:?}");
    assert!(shown.contains("fred") && !shown.contains("rocks") && !shown.contains("bowling"));
}

proptest! {
    #[test]
    fn random_fields_never_authenticate(value in prop::collection::vec(any::<u8>(), 0..60)) {
        let found = Credentials::new(&field(&value));
        prop_assert!(found.is_none_or(|found| found.user != "fred"));
    }

    #[test]
    fn credentials_round_trip(user in "[^:\\pC]{0,12}", password in "\\PC{0,12}") {
        let found = Credentials::new(&basic(&user, &password));
        prop_assert_eq!(found, Some(Credentials { user, password }));
    }

    #[test]
    fn no_rule_panics(text in "(Auth(Type|Name|UserFile|AllowUsers) ?= ?'?[a-zA-Z/]{0,8}'?\n){0,5}|\\PC{0,40}") {
        prop_assert!(Rule::read(&text, Path::new("/nonexistent")).is_err());
    }
}
