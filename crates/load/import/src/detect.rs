//! Recognizes formats by their content; the name of a file decides only where the content does not.

/// A format that this crate reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Postman,
    Jmeter,
    Artillery,
    HttpFile,
    Bruno,
    Insomnia,
    Vegeta,
    Siege,
    CommandLine,
}

impl Format {
    /// Returns the name for the user.
    pub fn name(self) -> &'static str {
        match self {
            Format::Postman => "Postman collection",
            Format::Jmeter => "JMeter test plan",
            Format::Artillery => "Artillery script",
            Format::HttpFile => ".http file",
            Format::Bruno => "Bruno collection",
            Format::Insomnia => "Insomnia export",
            Format::Vegeta => "vegeta targets",
            Format::Siege => "siege URLs",
            Format::CommandLine => "command line of a load tool",
        }
    }
}

/// Methods that may begin a request line.
pub(crate) const METHODS: [&str; 9] =
    ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "QUERY"];

/// Load tools whose command lines can be read.
pub(crate) const TOOLS: [&str; 8] =
    ["ab", "siege", "hey", "vegeta", "oha", "wrk", "wrk2", "bombardier"];

/// Detects the format of a file from the start of its content; `None` if this crate cannot read it.
pub fn detect(name: &str, start: &str) -> Option<Format> {
    let text = start.trim_start_matches(['\u{feff}', ' ', '\t', '\r', '\n']);
    let has = |word: &str| text.contains(word);
    let ending = name.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    let key = |key: &str| text.lines().any(|line| line.starts_with(key));
    match () {
        () if text.starts_with('<') => has("<jmeterTestPlan").then_some(Format::Jmeter),
        () if text.starts_with('{') => detect_json(text),
        () if ending == "bru" || is_bruno(text) => Some(Format::Bruno),
        () if key("scenarios:") && (key("config:") || has("flow:")) => Some(Format::Artillery),
        () if key("type: collection.insomnia.rest/") => Some(Format::Insomnia),
        () if key("__export_format:") || key("_type: export") => Some(Format::Insomnia),
        () if first_lines(text).next().is_some_and(is_tool_line) => Some(Format::CommandLine),
        () if ["http", "rest"].contains(&&*ending) || is_http_file(text) => Some(Format::HttpFile),
        () if first_lines(text).next().is_some_and(is_request_line) => Some(Format::Vegeta),
        () if first_lines(text).take(20).all(is_siege_line)
            && first_lines(text).next().is_some() =>
        {
            Some(Format::Siege)
        }
        () => None,
    }
}

fn detect_json(text: &str) -> Option<Format> {
    let keys = top_keys(text);
    let names = |name: &str| keys.iter().any(|key| key == name);
    let dense: String = text.chars().filter(|c| !c.is_whitespace()).take(4096).collect();
    match () {
        // recordings and API descriptions, whose values may contain any text
        () if ["log", "openapi", "swagger"].into_iter().any(names) => None,
        () if names("__export_format") || names("_type") && names("resources") => {
            Some(Format::Insomnia)
        }
        () if names("scenarios") && text.contains("\"flow\"") => Some(Format::Artillery),
        () if names("item") && dense.contains("\"item\":[") => Some(Format::Postman),
        () if text.contains("schema.getpostman.com") || text.contains("\"_postman_id\"") => {
            Some(Format::Postman)
        }
        () if is_vegeta_json(text) => Some(Format::Vegeta),
        () => None,
    }
}

/// Returns the keys of the outermost object of a JSON text, which may be cut off.
pub fn top_keys(text: &str) -> Vec<String> {
    let mut keys = Vec::new();
    let mut depth = 0_usize;
    let mut rest = text.char_indices();
    let mut last = None;
    while let Some((at, char)) = rest.next() {
        match char {
            '{' | '[' => depth += 1,
            '}' | ']' => depth = depth.saturating_sub(1),
            ':' if depth == 1 => keys.extend(last.take()),
            '"' => {
                let mut escaped = false;
                let end = rest.find(|(_, char)| {
                    let ends = *char == '"' && !escaped;
                    escaped = *char == '\\' && !escaped;
                    ends
                });
                let Some((end, _)) = end else { break };
                last = Some(text[at + 1..end].to_owned());
            }
            _ => {}
        }
    }
    keys
}

/// Returns whether the text has a JSON target on each line, as `vegeta attack -format=json` reads
/// them.
fn is_vegeta_json(text: &str) -> bool {
    let line = text.lines().next().unwrap_or_default();
    let node = crate::tree::parse_json(line);
    node.is_ok_and(|node| {
        let keys: Vec<&str> = node.map().iter().map(|(key, _)| key.as_str()).collect();
        let known = ["method", "url", "header", "body"];
        keys.contains(&"method")
            && keys.contains(&"url")
            && keys.iter().all(|key| known.contains(key))
    })
}

fn is_bruno(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim_end);
    let begins = lines.any(|line| line == "meta {");
    begins && text.lines().any(|line| line.trim_start().starts_with("url:"))
}

/// Returns the lines with content that are not comments.
pub(crate) fn first_lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// Returns whether a line is a command of a load tool, perhaps after a prompt or a pipe.
pub(crate) fn is_tool_line(line: &str) -> bool {
    let pipe = line.rsplit('|').next().unwrap_or_default();
    let piped = line.contains('|') && first_word_is_tool(pipe);
    piped || first_word_is_tool(line)
}

fn first_word_is_tool(line: &str) -> bool {
    let mut words =
        line.split_whitespace().skip_while(|word| ["$", "%", "time", "sudo"].contains(word));
    let first = words.next().unwrap_or_default().rsplit('/').next().unwrap_or_default();
    // a sentence may begin with a method's name
    TOOLS.contains(&first) && line.contains(['-', ':'])
}

/// Returns whether the line is like `GET http://...`.
pub(crate) fn is_request_line(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let method = words.next().unwrap_or_default();
    let url = words.next().unwrap_or_default();
    METHODS.contains(&method) && (url.contains("://") || url.starts_with("{{"))
}

fn is_http_file(text: &str) -> bool {
    let separated = text.lines().any(|line| line.starts_with("###"));
    let request = text.lines().any(|line| {
        is_request_line(line) || line.starts_with("http://") || line.starts_with("https://")
    });
    let versioned = text.lines().any(|line| is_request_line(line) && line.contains(" HTTP/"));
    let variables = text.lines().any(|line| line.starts_with('@') && line.contains('='));
    request && (separated || versioned || variables && text.contains("{{"))
}

fn is_siege_line(line: &str) -> bool {
    let variable = line.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    });
    line.starts_with("http://") || line.starts_with("https://") || variable
}

/// Returns why a file of another tool cannot be imported, with an alternative; `None` for other
/// files.
pub fn refusal(name: &str, start: &str) -> Option<&'static str> {
    let has = |word: &str| start.contains(word);
    let ending = name.rsplit('.').next().unwrap_or_default();
    match () {
        () if has("from locust") || has("import locust") => Some(
            "a Locust file, which is a program in Python; the guide's page \"Coming from Locust\" \
             shows the equivalent plan, or record the visit as a HAR file in a browser",
        ),
        () if has("io.gatling") || has("@gatling.io") => Some(
            "a Gatling simulation, which is a program; the guide's page \"Coming from Gatling\" \
             shows the equivalent plan",
        ),
        () if has("$kind: collection") || has("$kind: http-request") => {
            Some("a Postman collection of version 3 (YAML); export it as version 2.1 (JSON)")
        }
        () if ["yml", "yaml"].contains(&ending) && has("execution:") && has("scenario:") => Some(
            "a Taurus file, which is not supported; write a plan (.toml), or import the JMeter \
             plan or the requests that it names",
        ),
        () => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_recognized_by_their_content() {
        for (name, text, format) in [
            ("x", "<?xml version='1.0'?>\n<jmeterTestPlan version='1.2'>", Some(Format::Jmeter)),
            ("x", "<html>", None),
            (
                "x",
                "{\"info\": {\"schema\": \"https://schema.getpostman.com/json\"}}",
                Some(Format::Postman),
            ),
            ("x", "{\"_type\": \"export\", \"__export_format\": 4}", Some(Format::Insomnia)),
            ("x", "_type: export\n__export_format: 4\nresources:\n", Some(Format::Insomnia)),
            (
                "x",
                "{\"item\": [{\"name\": \"openapi\", \"x\": \"\\\"\"}, {\"cut",
                Some(Format::Postman),
            ),
            ("x", "{\"info\": {}, \"openapi\": \"3.0.0\", \"x\": \"schema.getpostman.com\"}", None),
            ("x", "{\"comment\": \"\", \"log\": {\"entries\": []}}", None),
            ("x", "type: collection.insomnia.rest/5.0\nname: x\n", Some(Format::Insomnia)),
            (
                "x",
                "config:\n  target: http://h\nscenarios:\n  - flow: []\n",
                Some(Format::Artillery),
            ),
            ("x", "{\"method\":\"GET\",\"url\":\"http://h\"}\n", Some(Format::Vegeta)),
            ("x", "{\"method\":\"GET\",\"url\":\"/\",\"status\":200}\n", None),
            ("x", "GET http://h/\nX-A: b\n\nPOST http://h/\n@body\n", Some(Format::Vegeta)),
            ("x", "### one\nGET http://h/\n", Some(Format::HttpFile)),
            ("x", "@host = http://h\nGET {{host}}/\n", Some(Format::HttpFile)),
            ("x.http", "GET http://h/\n", Some(Format::HttpFile)),
            ("x", "meta {\n  name: a\n}\nget {\n  url: http://h\n}\n", Some(Format::Bruno)),
            ("x", "# list\nhttp://h/\nhttp://h/b POST a=b\n", Some(Format::Siege)),
            ("x", "$ ab -n 10 http://h/", Some(Format::CommandLine)),
            ("x", "echo 'GET http://h' | vegeta attack -rate=5", Some(Format::CommandLine)),
            ("x", "curl http://h/", None),
            ("x", "1.2.3.4 - - [01/Jan/2026:00:00:00 +0000] \"GET / HTTP/1.1\" 200 1", None),
            ("x", "", None),
        ] {
            assert_eq!(detect(name, text), format, "{text}");
        }
        assert!(
            refusal("locustfile.py", "from locust import HttpUser").unwrap().contains("Locust")
        );
    }
}
