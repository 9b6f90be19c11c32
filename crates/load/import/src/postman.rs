//! Postman collections of versions 2.0 and 2.1, with environments.

use crate::draft::*;
use crate::dynamic::dynamic;
use crate::scripts;
use crate::text::Text;
use crate::tree::{TreeNode, Value, parse_json};
use crate::{ImportError, ImportRequest};

pub(crate) fn read(text: &str, request: &ImportRequest<'_>) -> Result<PlanDraft, String> {
    let root = parse_json(text).map_err(|why| format!("it is not JSON: {why}"))?;
    // a response of Postman's API wraps the collection
    let root = root.get("collection").unwrap_or(&root);
    if root.get("item").is_none() {
        let why = match root.get("requests").is_some() {
            true => "it is a Postman collection of version 1; export it as version 2.1",
            false => "it is not a Postman collection: it has no item",
        };
        return Err(why.to_owned());
    }
    let mut reader = DraftReader { draft: PlanDraft::default(), request, deletes: 0 };
    reader.variables(root.list_at("variable"));
    if let Some(environment) = request.environment {
        let node = parse_json(environment.text.trim_start_matches('\u{feff}'));
        let node = node.map_err(|why| format!("--environment {}: {why}", environment.name))?;
        let values = node.get("values").or_else(|| node.at(&["environment", "values"]));
        let values = values.ok_or_else(|| {
            format!("--environment {}: it has no values; export it from Postman", environment.name)
        })?;
        reader.variables(values.list());
    }
    let name = root.at(&["info", "name"]).and_then(TreeNode::text).unwrap_or("collection");
    let outer = Inherited { auth: root.get("auth"), events: events(root, &[]) };
    let parts = reader.items(root.list_at("item"), &outer);
    if reader.deletes > 0 {
        let many = if reader.deletes == 1 { "request" } else { "requests" };
        reader.draft.notes.push(format!(
            "It has {} DELETE {many}. A collection is a list of calls, not a visit: read the steps \
             before you load a server; --only FOLDER and --skip-method DELETE select.",
            reader.deletes
        ));
    }
    reader.draft.journeys.push(DraftJourney {
        name: name.to_owned(),
        parts,
        ..DraftJourney::default()
    });
    Ok(reader.draft)
}

/// Collection as a script for the JavaScript engine, which runs the collection's own scripts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostmanScript {
    pub text: String,
    /// Files that the script opens, by name.
    pub files: Vec<(String, String)>,
    /// Parts of the collection that cannot be executed.
    pub left_out: Vec<LeftOut>,
}

/// Returns a script that makes the requests of a collection, with its environment.
///
/// # Errors
/// Fails if one of the texts is not a Postman file.
pub fn postman_script(
    collection: &str,
    environment: Option<&str>,
) -> Result<PostmanScript, ImportError> {
    let plain = |text: &str| text.trim_start_matches('\u{feff}').to_owned();
    let collection = plain(collection);
    let json =
        |text: &str| parse_json(text).map_err(|why| ImportError(format!("it is not JSON: {why}")));
    let root = json(&collection)?;
    let root = root.get("collection").unwrap_or(&root);
    if root.get("item").is_none() {
        return Err(ImportError("it is not a Postman collection: it has no item".to_owned()));
    }
    let mut names = Vec::new();
    gather_names(root.list_at("item"), &mut names);
    let mut files = vec![("collection.json".to_owned(), collection.clone())];
    let mut given = String::new();
    if let Some(environment) = environment {
        let environment = plain(environment);
        json(&environment)?;
        files.push(("environment.json".to_owned(), environment));
        given = ", open('environment.json')".to_owned();
    }
    let steps = names.iter().map(|name| {
        format!("  {{ tags: {{ name: {} }} }},\n", serde_json::Value::from(name.as_str()))
    });
    let text = format!(
        "// The requests of a Postman collection in their order, with its scripts.\n\
         import {{ collection }} from 'loadstone/postman';\n\n\
         // what calls are counted under\n\
         export const steps = [\n{}];\n\n\
         const visit = collection(open('collection.json'){given});\n\n\
         export default function () {{\n  visit();\n}}\n",
        steps.collect::<String>()
    );
    let mut left_out = LeftOutList::default();
    list_unsupported(root, root.get("auth"), &mut left_out);
    Ok(PostmanScript { text, files, left_out: left_out.0 })
}

/// Functions that are not available to scripts.
const NO_FUNCTIONS: [&str; 5] =
    ["pm.sendRequest", "pm.require", "require(", "pm.vault", "pm.execution.runRequest"];

/// Returns whether a line calls this function: `pm.require(` is not `require(`.
fn calls(line: &str, function: &str) -> bool {
    line.match_indices(function).any(|(at, _)| !line[..at].ends_with("pm."))
}

/// Lists the parts of an item and its subitems that the JavaScript engine does not support.
fn list_unsupported(item: &TreeNode, outer: Option<&TreeNode>, out: &mut LeftOutList) {
    let name = item.text_at("name");
    for event in item.list_at("event") {
        let Some(code) = event.at(&["script", "exec"]) else { continue };
        let lines: Vec<&TreeNode> = match code.list() {
            [] => vec![code],
            lines => lines.iter().collect(),
        };
        for line in lines {
            let text = line.text().unwrap_or_default();
            for known in NO_FUNCTIONS.iter().filter(|known| calls(text, known)) {
                let what = format!("script of {name}: {}", text.trim());
                out.add(
                    line.line,
                    what,
                    format!("{known} is not available", known = known.trim_end_matches('(')),
                );
            }
        }
    }
    let own = item.at(&["request", "auth"]).or_else(|| item.get("auth")).or(outer);
    if let (Some(request), Some(auth)) = (item.get("request"), own) {
        let kind = auth.text_at("type");
        if !matches!(kind, "" | "noauth" | "bearer" | "basic" | "apikey") {
            out.add(
                request.line,
                format!("login of {name}"),
                format!("the login {kind} is not available"),
            );
        }
    }
    if let Some(body) = item.at(&["request", "body"]) {
        let mode = body.text_at("mode");
        if !matches!(mode, "" | "raw" | "urlencoded" | "formdata" | "graphql") {
            out.add(
                body.line,
                format!("body of {name}"),
                format!("a body of mode {mode} is not available"),
            );
        }
        for part in body.list_at("formdata").iter().filter(|part| part.text_at("type") == "file") {
            out.add(
                part.line,
                format!("body of {name}: {}", part.text_at("key")),
                "uploads are not available",
            );
        }
    }
    for inner in item.list_at("item") {
        list_unsupported(inner, own, out);
    }
}

/// Collects the names of the requests, each once.
fn gather_names(items: &[TreeNode], names: &mut Vec<String>) {
    for item in items {
        gather_names(item.list_at("item"), names);
        let name = item.text_at("name").to_owned();
        if item.get("request").is_some() && !name.is_empty() && !names.contains(&name) {
            names.push(name);
        }
    }
}

/// Settings that requests inherit from their folders.
struct Inherited<'a> {
    auth: Option<&'a TreeNode>,
    events: Vec<&'a TreeNode>,
}

fn events<'a>(node: &'a TreeNode, outer: &[&'a TreeNode]) -> Vec<&'a TreeNode> {
    outer.iter().copied().chain(node.list_at("event")).collect()
}

struct DraftReader<'a> {
    draft: PlanDraft,
    request: &'a ImportRequest<'a>,
    deletes: usize,
}

/// Parses a text in which `{{name}}` is a variable; a dynamic one begins with a dollar sign.
pub(crate) fn text_of(source: &str, line: usize, left_out: &mut LeftOutList) -> Text {
    Text::braces(source, &mut |name| {
        if !name.starts_with('$') {
            return Text::named(name);
        }
        dynamic(name).unwrap_or_else(|| {
            left_out.add(
                line,
                format!("{{{{{name}}}}}"),
                "this dynamic variable is not known; the text x is sent",
            );
            Text::plain("x")
        })
    })
}

impl<'a> DraftReader<'a> {
    fn text(&mut self, source: &str, line: usize) -> Text {
        text_of(source, line, &mut self.draft.left_out)
    }

    fn variables(&mut self, list: &[TreeNode]) {
        for node in list {
            if node.get("enabled").is_some_and(TreeNode::is_false)
                || node.get("disabled").is_some_and(TreeNode::is_true)
            {
                continue;
            }
            let name = node.scalar_at("key").or_else(|| node.scalar_at("id")).unwrap_or_default();
            let value = node.scalar_at("value").unwrap_or_default();
            if name.is_empty() {
                continue;
            }
            let value = self.text(&value, node.line);
            self.draft.vars.retain(|(known, _)| *known != name);
            self.draft.vars.push((name, value));
        }
    }

    fn items(&mut self, items: &'a [TreeNode], outer: &Inherited<'a>) -> Vec<DraftPiece> {
        let mut pieces = Vec::new();
        for item in items {
            let name = item.text_at("name").to_owned();
            let inner = Inherited {
                auth: item.get("auth").or(outer.auth),
                events: events(item, &outer.events),
            };
            if item.get("item").is_some() {
                let parts = self.items(item.list_at("item"), &inner);
                pieces.push(DraftPiece::Block(DraftBlock {
                    name,
                    guard: DraftGuard::default(),
                    parts,
                }));
            } else if let Some(request) = item.get("request") {
                let step = self.step(name, item.line, request, &inner);
                pieces.push(DraftPiece::Step(Box::new(step)));
            } else {
                self.draft.left_out.add(item.line, name, "it is neither a request nor a folder");
            }
        }
        pieces
    }

    fn step(
        &mut self,
        name: String,
        line: usize,
        request: &'a TreeNode,
        inner: &Inherited<'a>,
    ) -> DraftStep {
        let method = request.text_at("method").trim().to_ascii_uppercase();
        let method = if method.is_empty() { "GET".to_owned() } else { method };
        let skipped = self.request.skip_methods.iter().any(|it| it.eq_ignore_ascii_case(&method));
        self.deletes += usize::from(method == "DELETE" && !skipped);
        let mut step = DraftStep { line, method, ..DraftStep::default() };
        // a request may be its URL
        step.url = match request.text() {
            Some(url) => crate::place::tidy(self.text(url, line)),
            None => self.url(request.get("url"), line),
        };
        let shown = step.url.beginning().chars().take(40).collect::<String>();
        step.name = if name.trim().is_empty() { format!("{} {shown}", step.method) } else { name };
        step.comments.push(format!("line {line}"));
        self.headers(request, &mut step);
        if let Some(body) =
            request.get("body").filter(|body| !body.get("disabled").is_some_and(TreeNode::is_true))
        {
            self.body(body, &mut step);
        }
        self.auth(request.get("auth").or(inner.auth), &mut step);
        for event in &inner.events {
            self.event(event, &mut step);
        }
        step
    }

    fn headers(&mut self, request: &TreeNode, step: &mut DraftStep) {
        match request.get("header").map(|node| &node.value) {
            Some(Value::List(headers)) => {
                for header in
                    headers.iter().filter(|it| !it.get("disabled").is_some_and(TreeNode::is_true))
                {
                    let value =
                        self.text(&header.scalar_at("value").unwrap_or_default(), header.line);
                    let key = header.text_at("key");
                    if !key.trim().is_empty() {
                        step.headers.push((key.to_owned(), value));
                    }
                }
            }
            // one text with a line for each
            Some(Value::Text(lines)) => {
                for (name, value) in lines.lines().filter_map(|line| line.split_once(':')) {
                    let value = self.text(value.trim(), step.line);
                    step.headers.push((name.to_owned(), value));
                }
            }
            _ => {}
        }
    }

    fn url(&mut self, node: Option<&TreeNode>, line: usize) -> Text {
        let Some(node) = node else { return Text::plain("/") };
        let mut raw = match node.text() {
            Some(text) => text.to_owned(),
            None if !node.text_at("raw").is_empty() => node.text_at("raw").to_owned(),
            None => raw_url(node),
        };
        if let Some(query) = node.get("query").filter(|query| !query.list().is_empty()) {
            raw = with_query(&raw, query.list());
        }
        let mut segments = Text::default();
        let (path, query) = raw.split_once('?').map_or((raw.as_str(), None), |(a, b)| (a, Some(b)));
        let variables = node.list_at("variable");
        for (index, segment) in path.split('/').enumerate() {
            if index > 0 {
                segments.push_str("/");
            }
            let value = segment.strip_prefix(':').and_then(|name| {
                let known =
                    variables.iter().find(|it| it.scalar_at("key").as_deref() == Some(name));
                known.map(|it| (name, it.scalar_at("value").unwrap_or_default()))
            });
            match value {
                Some((name, value)) if value.is_empty() => segments.append(Text::named(name)),
                Some((_, value)) => segments.append(self.text(&value, line)),
                None => segments.append(self.text(segment, line)),
            }
        }
        if let Some(query) = query {
            segments.push_str("?");
            segments.append(self.text(query, line));
        }
        crate::place::tidy(segments)
    }

    fn body(&mut self, body: &TreeNode, step: &mut DraftStep) {
        let line = body.line;
        match body.text_at("mode") {
            "raw" => {
                let raw = body.text_at("raw");
                if raw.is_empty() {
                    return;
                }
                step.body = Body::Text(self.text(raw, line));
                let language = body.at(&["options", "raw", "language"]).and_then(TreeNode::text);
                let media = match language {
                    Some("json") => Some("application/json"),
                    Some("xml") => Some("application/xml"),
                    Some("html") => Some("text/html"),
                    Some("javascript") => Some("application/javascript"),
                    Some("text") => Some("text/plain"),
                    _ if raw.trim_start().starts_with(['{', '[']) => Some("application/json"),
                    _ => None,
                };
                if let Some(media) = media.filter(|_| !step.has_header("content-type")) {
                    step.set_header("Content-Type", Text::plain(media));
                }
            }
            "urlencoded" => {
                let fields = self.fields(body.list_at("urlencoded"), |_| true);
                step.body = form(fields, step);
            }
            "formdata" => self.form_data(body.list_at("formdata"), step),
            "file" => {
                let file = body.at(&["file", "src"]).and_then(TreeNode::text).unwrap_or_default();
                step.body = file_body(file, line, self.request, &mut self.draft.left_out);
            }
            "graphql" => {
                let graphql = body.get("graphql");
                let query = graphql.map(|it| it.text_at("query")).unwrap_or_default();
                let variables = graphql.map(|it| it.text_at("variables")).unwrap_or_default();
                step.body = graphql_body(query, variables, |text| self.text(text, line));
                step.set_header("Content-Type", Text::plain("application/json"));
            }
            "" => {}
            other => self.draft.left_out.add(
                line,
                format!("body of mode {other}"),
                "it is not known; none is sent",
            ),
        }
    }

    fn fields(
        &mut self,
        list: &[TreeNode],
        fits: impl Fn(&TreeNode) -> bool,
    ) -> Vec<(String, Text)> {
        let mut fields = Vec::new();
        for field in
            list.iter().filter(|it| !it.get("disabled").is_some_and(TreeNode::is_true) && fits(it))
        {
            let value = self.text(&field.scalar_at("value").unwrap_or_default(), field.line);
            fields.push((field.scalar_at("key").unwrap_or_default(), value));
        }
        fields
    }

    fn form_data(&mut self, list: &[TreeNode], step: &mut DraftStep) {
        let fields = self.fields(list, |field| field.text_at("type") != "file");
        let mut uploads = Vec::new();
        let enabled = list.iter().filter(|it| !it.get("disabled").is_some_and(TreeNode::is_true));
        for field in enabled.filter(|field| field.text_at("type") == "file") {
            let source = field.get("src");
            let files = source.map(|it| {
                it.list().iter().chain([it]).filter_map(TreeNode::text).collect::<Vec<_>>()
            });
            for file in files.unwrap_or_default() {
                match self.request.read(file) {
                    Ok((path, _)) => uploads.push(FormUpload {
                        field: field.text_at("key").to_owned(),
                        file: path,
                        media_type: field
                            .get("contentType")
                            .and_then(TreeNode::text)
                            .map(str::to_owned),
                    }),
                    Err(why) => self.draft.left_out.add(field.line, format!("upload {file}"), why),
                }
            }
        }
        // the boundary is generated with the body
        step.headers.retain(|(name, _)| !name.eq_ignore_ascii_case("content-type"));
        step.body = multipart(fields, uploads, step.line, &mut self.draft.left_out);
    }

    fn auth(&mut self, auth: Option<&TreeNode>, step: &mut DraftStep) {
        let Some(auth) = auth else { return };
        let kind = auth.text_at("type").to_owned();
        let line = auth.line;
        let mut value = |name: &str| {
            let inner = auth.get(&kind)?;
            let found = match &inner.value {
                Value::List(list) => list
                    .iter()
                    .find(|it| it.text_at("key") == name)
                    .and_then(|it| it.scalar_at("value")),
                _ => inner.scalar_at(name),
            };
            found.map(|value| self.text(&value, line))
        };
        match kind.as_str() {
            "noauth" | "" => {}
            "bearer" => {
                let token = value("token").unwrap_or_default();
                set_bearer(step, token);
            }
            "basic" => {
                let mut user = value("username").unwrap_or_default();
                user.push_str(":");
                user.append(value("password").unwrap_or_default());
                step.user = Some(user);
            }
            "apikey" => {
                let name = value("key")
                    .and_then(|it| it.settled())
                    .unwrap_or_else(|| "X-API-Key".to_owned());
                let place = value("in").and_then(|it| it.settled()).unwrap_or_default();
                let key = value("value").unwrap_or_default();
                set_api_key(step, &name, key, place == "query");
            }
            "oauth2" => {
                let why = "add [token] to the plan: its url, client_id and client_secret_env";
                self.draft.left_out.add(line, "auth oauth2".to_owned(), why);
            }
            other => {
                let why = "this kind of login is not imported; its requests are sent without one";
                self.draft.left_out.add(line, format!("auth {other}"), why);
            }
        }
    }

    fn event(&mut self, event: &TreeNode, step: &mut DraftStep) {
        if event.get("disabled").is_some_and(TreeNode::is_true) {
            return;
        }
        let exec = event.at(&["script", "exec"]);
        let first =
            exec.map_or(event.line, |node| node.list().first().map_or(node.line, |it| it.line));
        let script = match exec.map(|node| &node.value) {
            Some(Value::Text(text)) => text.clone(),
            Some(Value::List(lines)) => {
                lines.iter().filter_map(TreeNode::text).collect::<Vec<_>>().join("\n")
            }
            _ => return,
        };
        if script.trim().is_empty() {
            return;
        }
        let before = event.text_at("listen") == "prerequest";
        let script = scripts::ClientScript { text: &script, line: first, before };
        scripts::apply(&script, step, &mut self.draft);
    }
}

/// Joins a URL in parts to one text.
fn raw_url(node: &TreeNode) -> String {
    let joined = |key: &str, separator: &str| match node.get(key) {
        Some(part) if part.text().is_some() => part.text().unwrap_or_default().to_owned(),
        Some(part) => {
            let words =
                part.list().iter().filter_map(|it| it.scalar().or_else(|| it.scalar_at("value")));
            words.collect::<Vec<_>>().join(separator)
        }
        None => String::new(),
    };
    let (host, path) = (joined("host", "."), joined("path", "/"));
    let port = node.scalar_at("port").filter(|port| !port.is_empty());
    let port = port.map(|port| format!(":{port}")).unwrap_or_default();
    let protocol = node.text_at("protocol");
    let start = if protocol.is_empty() || host.starts_with("{{") {
        String::new()
    } else {
        format!("{protocol}://")
    };
    format!("{start}{host}{port}/{}", path.trim_start_matches('/'))
}

/// Returns the URL with the enabled fields of its query.
fn with_query(raw: &str, query: &[TreeNode]) -> String {
    let path = raw.split_once('?').map_or(raw, |(path, _)| path);
    let enabled = query.iter().filter(|it| !it.get("disabled").is_some_and(TreeNode::is_true));
    let field = |it: &TreeNode| match (it.scalar_at("key"), it.scalar_at("value")) {
        (Some(key), Some(value)) => format!("{key}={value}"),
        (Some(key), None) => key,
        (None, value) => value.unwrap_or_default(),
    };
    let fields: Vec<String> = enabled.map(field).filter(|field| !field.is_empty()).collect();
    if fields.is_empty() { path.to_owned() } else { format!("{path}?{}", fields.join("&")) }
}

pub(crate) fn set_bearer(step: &mut DraftStep, token: Text) {
    if !token.is_empty() && !step.has_header("authorization") {
        let mut value = Text::plain("Bearer ");
        value.append(token);
        step.set_header("Authorization", value);
    }
}

pub(crate) fn set_api_key(step: &mut DraftStep, name: &str, value: Text, in_query: bool) {
    if !in_query {
        step.set_header(name, value);
        return;
    }
    let asked = step
        .url
        .0
        .iter()
        .any(|part| matches!(part, crate::text::DraftPart::Plain(text) if text.contains('?')));
    step.url.push_str(if asked { "&" } else { "?" });
    step.url.push_str(&format!("{name}="));
    step.url.append(value);
}

/// Returns a form; fields of the same name are joined to a text.
pub(crate) fn form(fields: Vec<(String, Text)>, step: &mut DraftStep) -> Body {
    let twice =
        (1..fields.len()).any(|at| fields[..at].iter().any(|(name, _)| *name == fields[at].0));
    let empty = fields.iter().any(|(name, _)| name.is_empty());
    if !twice && !empty {
        step.headers.retain(|(name, _)| !name.eq_ignore_ascii_case("content-type"));
        return Body::Form(fields);
    }
    let encode =
        |text: &str| url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    let mut text = Text::default();
    for (index, (name, value)) in fields.into_iter().enumerate() {
        text.push_str(if index > 0 { "&" } else { "" });
        text.push_str(&format!("{}=", encode(&name)));
        text.append(value.map_plain(encode));
    }
    step.set_header("Content-Type", Text::plain("application/x-www-form-urlencoded"));
    Body::Text(text)
}

/// Reads the fields and files of a form; a field's name is sent once.
pub(crate) fn multipart(
    fields: Vec<(String, Text)>,
    uploads: Vec<FormUpload>,
    line: usize,
    left_out: &mut LeftOutList,
) -> Body {
    let mut kept: Vec<(String, Text)> = Vec::new();
    for (name, value) in fields {
        match kept.iter().any(|(known, _)| *known == name) {
            true => left_out.add(
                line,
                format!("second field {name}"),
                "a multipart form sends each name once",
            ),
            false => kept.push((name, value)),
        }
    }
    Body::Multipart(kept, uploads)
}

/// Returns the content of a file as a body, if the file is available.
pub(crate) fn file_body(
    file: &str,
    line: usize,
    request: &ImportRequest<'_>,
    left_out: &mut LeftOutList,
) -> Body {
    match request.read(file) {
        Ok((path, _)) => Body::File(path),
        Err(why) => {
            left_out.add(line, format!("body from {file}"), why);
            Body::Text(Text::default())
        }
    }
}

/// Returns a GraphQL request as its JSON body.
pub(crate) fn graphql_body(
    query: &str,
    variables: &str,
    mut text: impl FnMut(&str) -> Text,
) -> Body {
    let mut body = Text::plain("{\"query\":\"");
    body.append(text(query).in_json());
    body.push_str("\"");
    if !variables.trim().is_empty() {
        body.push_str(",\"variables\":");
        body.append(text(variables.trim()));
    }
    body.push_str("}");
    Body::Text(body)
}
