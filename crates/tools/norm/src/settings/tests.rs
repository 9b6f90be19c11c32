use super::*;

fn scene() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for name in ["htdocs", "tmp"] {
        std::fs::create_dir(folder.path().join(name)).expect("a new folder");
    }
    std::fs::write(folder.path().join("x.lua"), "").expect("a new file");
    folder
}

/// Returns the error for a text, without the folder's name.
fn complaint(text: &str) -> String {
    let folder = scene();
    let file = folder.path().join("site.toml");
    std::fs::write(&file, text).expect("a new file");
    let message = match NormSettings::read(&file) {
        Ok(settings) => format!("{settings:?}"),
        Err(error) => error.to_string(),
    };
    message.replace(&format!("{}/", folder.path().display()), "")
}

const HW: &str = "[[Node]]\nPath = \"/hw\"\nBuiltIn = \"hw\"\n";

#[test]
fn a_whole_configuration_is_read() {
    let folder = scene();
    let text = r#"
        ServerRoot = "."
        Host = "localhost"
        Port = 8080
        MaxClients = 3
        Timeout = 2.5
        LogLevel = "Debug"
        LogFile = "errors"
        TmpDir = "tmp"
        Timing = true
        SpoolOver = "4k"
        MaxBody = "1M"
        Threads = 2

        [[Node]]
        Path = "/"
        Directory = "htdocs"
        Fancy = true

        [[Node]]
        Path = "/cgi/env"
        CgiBin = "cgi-bin/printenv"

        [[Node]]
        Path = "/lua"
        Interpreter = "x.lua"

        [[Node]]
        Path = "/sleep"
        BuiltIn = "sleep"
    "#;
    let settings = NormSettings::parse(text, folder.path()).unwrap();
    assert_eq!((settings.host.as_str(), settings.port), ("localhost", 8080));
    assert_eq!((settings.max_clients, settings.threads), (3, 2));
    assert_eq!(settings.timeout, Duration::from_millis(2_500));
    assert_eq!(settings.log_level, Level::Debug);
    assert_eq!(settings.log_file, LogFile::File(folder.path().join("errors")));
    assert_eq!(settings.tmp_dir, folder.path().join("tmp"));
    assert_eq!((settings.spool_over, settings.body_max), (4 << 10, 1 << 20));
    assert!(settings.timing);
    let paths: Vec<&str> = settings.nodes.iter().map(|node| node.path.as_str()).collect();
    assert_eq!(paths, ["/", "/cgi/env", "/lua", "/sleep"]);
    let NodeKind::Directory(directory) = &settings.nodes[0].kind else { panic!() };
    assert!(directory.fancy && !directory.odd_files && directory.icons == "/icons");
    assert_eq!(settings.nodes[3].kind, NodeKind::BuiltIn(BuiltIn::Sleep));
}

#[test]
fn omitted_keys_have_defaults() {
    let settings = NormSettings::parse(HW, Path::new(".")).unwrap();
    assert_eq!((settings.host.as_str(), settings.port), ("127.0.0.1", 2020));
    assert_eq!((settings.max_clients, settings.threads), (1_000, 1));
    assert_eq!(settings.timeout, Duration::from_secs(10));
    assert_eq!((settings.log_level, settings.log_file), (Level::Info, LogFile::Stderr));
}

#[test]
fn errors_name_their_line_and_the_fix() {
    let table = [
        ("Port = 2020\nPrt = 1\n", "unknown field `Prt`"),
        ("\n\nPort = 70000\n", "site.toml: line 3: "),
        ("Port = \n", "site.toml: line 1: "),
        ("MaxClients = 0\n", "line 1: MaxClients must be 1 to 100000, not 0"),
        ("Port = 1\nTimeout = 0.0\n", "line 2: Timeout must be 0.01 to 3600, not 0"),
        ("Timeout = nan\n", "line 1: Timeout must be"),
        ("LogLevel = \"Loud\"\n", "line 1: LogLevel must be one of Debug, Info, Warn, Error"),
        ("TmpDir = \"gone\"\n", "line 1: there is no folder gone: make it or name another"),
        ("SpoolOver = \"1G\"\n", "line 1: it is too large: at most"),
        ("MaxBody = \"x\"\n", "line 1: \"x\" is not a size"),
        ("Threads = 65\n", "line 1: Threads must be 1 to 64, not 65"),
        ("", "there is no [[Node]]"),
        ("[[Node]]\nPath = \"/\"\n", "line 1: a node has exactly one of Directory, CgiBin"),
        (
            "[[Node]]\nPath = \"/a/\"\nBuiltIn = \"hw\"\n",
            "line 2: \"/a/\" is not the path of a node",
        ),
        ("[[Node]]\nPath = \"/../a\"\nBuiltIn = \"hw\"\n", "line 2: \"/../a\" is not the path"),
        ("[[Node]]\nPath = \"/a\"\nBuiltIn = \"x\"\n", "line 3: \"x\" is not a built-in handler"),
        ("[[Node]]\nPath = \"/a\"\nDirectory = \"x\"\n", "line 3: there is no folder x"),
        ("[[Node]]\nPath = \"/a\"\nInterpreter = \"y\"\n", "line 3: there is no script y"),
        ("[[Node]]\nPath = \"/a\"\nBuiltIn = \"hw\"\nFancy = true\n", "Fancy is for a node with"),
        ("[[Node]]\nBuiltIn = \"hw\"\n", "missing field `Path`"),
    ];
    for (text, found) in table {
        let complaint = complaint(text);
        assert!(complaint.contains(found), "{text:?} gave {complaint}");
    }
    let twice = complaint(&format!("{HW}{HW}"));
    assert!(twice.contains("line 5: a second node for \"/hw\": remove one"), "{twice}");
    let missing = NormSettings::read(Path::new("/nowhere/site.toml")).unwrap_err().to_string();
    assert!(
        missing.starts_with("/nowhere/site.toml: cannot read the configuration: "),
        "{missing}"
    );
}
