//! Insomnia exports: version 4 (JSON, or YAML of the same structure) and version 5 (YAML).

use crate::draft::*;
use crate::place::tidy;
use crate::postman::{form, graphql_body, multipart, set_api_key, set_bearer};
use crate::scripts::{self, ClientScript};
use crate::text::Text;
use crate::tree::{TreeNode, Value, parse_json, parse_yaml};

/// Maximum nesting depth of folders.
const DEPTH_MAX: usize = 50;

pub(crate) fn read(text: &str) -> Result<PlanDraft, String> {
    let root = match text.trim_start().starts_with('{') {
        true => parse_json(text).map_err(|why| format!("it is not JSON: {why}"))?,
        false => parse_yaml(text).map_err(|why| format!("it is not YAML: {why}"))?,
    };
    let mut reader = DraftReader { draft: PlanDraft::default() };
    let (name, parts) = match (root.get("resources"), root.get("collection")) {
        (Some(resources), _) => reader.version_4(resources.list()),
        (None, Some(collection)) => {
            if let Some(environments) = root.get("environments") {
                reader.environment(environments.get("data"));
                environments
                    .list_at("subEnvironments")
                    .iter()
                    .take(1)
                    .for_each(|one| reader.environment(one.get("data")));
            }
            let parts = reader.version_5(collection.list(), 0);
            (root.text_at("name").to_owned(), parts)
        }
        (None, None) => {
            return Err("it is not an Insomnia export of version 4 or 5: it has no resources and no collection".to_owned());
        }
    };
    reader.draft.journeys.push(DraftJourney { name, parts, ..DraftJourney::default() });
    Ok(reader.draft)
}

struct DraftReader {
    draft: PlanDraft,
}

impl DraftReader {
    /// Parses a text: `{{ _.name }}` and `{{name}}` are variables; `{% tag %}` is computed.
    fn text(&mut self, source: &str, line: usize) -> Text {
        let mut plain = String::new();
        let mut rest = source;
        while let Some((before, after)) = rest.split_once("{%") {
            let Some((tag, tail)) = after.split_once("%}") else { break };
            plain.push_str(before);
            plain.push_str(&self.tag(tag.trim(), line));
            rest = tail;
        }
        plain.push_str(rest);
        Text::braces(&plain, &mut |name| {
            let bare = name.strip_prefix("_.").unwrap_or(name);
            let bare = bare.split('|').next().unwrap_or(bare).trim();
            match bare.starts_with('$') {
                true => crate::dynamic::dynamic(bare).unwrap_or_else(|| Text::plain("x")),
                false => Text::named(bare),
            }
        })
    }

    fn tag(&mut self, tag: &str, line: usize) -> String {
        match () {
            () if tag.starts_with("uuid") => "{{$guid}}".to_owned(),
            () if tag.starts_with("now") || tag.starts_with("timestamp") => {
                "{{$timestamp}}".to_owned()
            }
            () => {
                self.draft.left_out.add(
                    line,
                    format!("{{% {tag} %}}"),
                    "this tag is not computed; the text x is sent",
                );
                "x".to_owned()
            }
        }
    }

    fn version_4(&mut self, resources: &[TreeNode]) -> (String, Vec<DraftPiece>) {
        for node in resources.iter().filter(|node| node.text_at("_type") == "environment") {
            self.environment(node.get("data"));
        }
        let workspace = resources.iter().find(|node| node.text_at("_type") == "workspace");
        let name = workspace.map_or("requests", |node| node.text_at("name")).to_owned();
        let root = workspace.map_or("", |node| node.text_at("_id")).to_owned();
        let ids: std::collections::BTreeSet<&str> =
            resources.iter().map(|node| node.text_at("_id")).collect();
        let parts = self.below(resources, &root, 0);
        // a resource whose parent is not in the file belongs to the top
        let orphans: Vec<&TreeNode> =
            resources.iter().filter(|node| !ids.contains(node.text_at("parentId"))).collect();
        let mut all = parts;
        for node in orphans {
            all.extend(self.resource(resources, node, 0));
        }
        for node in resources {
            let kind = node.text_at("_type");
            let why = match kind {
                "request" | "request_group" | "workspace" | "environment" | "cookie_jar"
                | "api_spec" => continue,
                "websocket_request" | "grpc_request" | "socketio_request" => {
                    "it is not a request over HTTP"
                }
                "unit_test" | "unit_test_suite" => "tests are not executed",
                _ => "this kind of resource is not imported",
            };
            let what = format!("{kind} {}", node.text_at("name"));
            self.draft.left_out.add(node.line, what, why);
        }
        (name, all)
    }

    fn below(&mut self, resources: &[TreeNode], parent: &str, depth: usize) -> Vec<DraftPiece> {
        if parent.is_empty() || depth > DEPTH_MAX {
            return Vec::new();
        }
        let mut children: Vec<&TreeNode> =
            resources.iter().filter(|node| node.text_at("parentId") == parent).collect();
        let key =
            |node: &TreeNode| node.get("metaSortKey").and_then(TreeNode::number).unwrap_or(0.0);
        children.sort_by(|a, b| key(a).total_cmp(&key(b)));
        children.into_iter().filter_map(|node| self.resource(resources, node, depth)).collect()
    }

    fn resource(
        &mut self,
        resources: &[TreeNode],
        node: &TreeNode,
        depth: usize,
    ) -> Option<DraftPiece> {
        match node.text_at("_type") {
            "request" => Some(DraftPiece::Step(Box::new(self.step(node)))),
            "request_group" => {
                self.environment(node.get("environment"));
                let parts = self.below(resources, node.text_at("_id"), depth + 1);
                let name = node.text_at("name").to_owned();
                Some(DraftPiece::Block(DraftBlock { name, guard: DraftGuard::default(), parts }))
            }
            _ => None,
        }
    }

    fn version_5(&mut self, items: &[TreeNode], depth: usize) -> Vec<DraftPiece> {
        let mut parts = Vec::new();
        for item in items.iter().filter(|_| depth <= DEPTH_MAX) {
            match item.get("children") {
                Some(children) => {
                    self.environment(item.get("environment"));
                    let inner = self.version_5(children.list(), depth + 1);
                    let name = item.text_at("name").to_owned();
                    parts.push(DraftPiece::Block(DraftBlock {
                        name,
                        guard: DraftGuard::default(),
                        parts: inner,
                    }));
                }
                None if item.get("method").is_some() => {
                    parts.push(DraftPiece::Step(Box::new(self.step(item))))
                }
                None => {
                    let what = item.text_at("name").to_owned();
                    self.draft.left_out.add(item.line, what, "it is not a request over HTTP");
                }
            }
        }
        parts
    }

    /// Reads the values of an environment; nested objects have keys joined by dots.
    fn environment(&mut self, data: Option<&TreeNode>) {
        fn flat(node: &TreeNode, name: &str, out: &mut Vec<(String, String, usize)>, depth: usize) {
            if let Some(value) = node.scalar() {
                out.push((name.to_owned(), value, node.line));
            }
            for (key, inner) in node.map().iter().filter(|_| depth < 8) {
                let name = if name.is_empty() { key.clone() } else { format!("{name}.{key}") };
                flat(inner, &name, out, depth + 1);
            }
        }
        let mut values = Vec::new();
        if let Some(data) = data {
            flat(data, "", &mut values, 0);
        }
        for (name, value, line) in values {
            let value = self.text(&value, line);
            self.draft.vars.retain(|(known, _)| *known != name);
            self.draft.vars.push((name, value));
        }
    }

    fn step(&mut self, node: &TreeNode) -> DraftStep {
        let line = node.line;
        let method = node.text_at("method").to_ascii_uppercase();
        let mut step = DraftStep {
            name: node.text_at("name").to_owned(),
            line,
            comments: vec![format!("line {line}")],
            method: if method.is_empty() { "GET".to_owned() } else { method },
            ..DraftStep::default()
        };
        let mut url = self.text(node.text_at("url"), line);
        let mut asked = node.text_at("url").contains('?');
        for parameter in enabled(node.list_at("parameters")) {
            url.push_str(if asked { "&" } else { "?" });
            asked = true;
            url.push_str(&format!("{}=", parameter.text_at("name")));
            let value =
                self.text(&parameter.scalar_at("value").unwrap_or_default(), parameter.line);
            url.append(value);
        }
        step.url = tidy(url);
        for header in enabled(node.list_at("headers")) {
            let value = self.text(&header.scalar_at("value").unwrap_or_default(), header.line);
            if !header.text_at("name").trim().is_empty() {
                step.headers.push((header.text_at("name").to_owned(), value));
            }
        }
        if let Some(body) = node.get("body") {
            self.body(body, &mut step);
        }
        if let Some(auth) = node.get("authentication") {
            self.auth(auth, &mut step);
        }
        let scripts = node.get("scripts");
        for (key, inner, before) in [
            ("preRequestScript", "preRequest", true),
            ("afterResponseScript", "afterResponse", false),
        ] {
            let script = node.get(key).or_else(|| scripts.and_then(|it| it.get(inner)));
            if let Some((script, text)) = script.and_then(|it| Some((it, it.text()?))) {
                let text = text.replace("insomnia.", "pm.");
                let script = ClientScript { text: &text, line: script.line, before };
                scripts::apply(&script, &mut step, &mut self.draft);
            }
        }
        step
    }

    fn body(&mut self, body: &TreeNode, step: &mut DraftStep) {
        let media = body.text_at("mimeType").to_owned();
        match media.as_str() {
            "" if body.text_at("text").is_empty() => {}
            "application/x-www-form-urlencoded" => {
                let fields = self.fields(body);
                step.body = form(fields, step);
            }
            "multipart/form-data" => {
                for parameter in
                    enabled(body.list_at("params")).filter(|it| it.text_at("type") == "file")
                {
                    let what = format!("upload {}", parameter.text_at("fileName"));
                    self.draft.left_out.add(parameter.line, what, "add it as upload in the plan");
                }
                let fields = self.fields(body);
                step.headers.retain(|(name, _)| !name.eq_ignore_ascii_case("content-type"));
                step.body = multipart(fields, Vec::new(), step.line, &mut self.draft.left_out);
            }
            "application/graphql" => {
                let inner = parse_json(body.text_at("text")).ok();
                let query =
                    inner.as_ref().map(|it| it.text_at("query").to_owned()).unwrap_or_default();
                let variables = inner
                    .as_ref()
                    .and_then(|it| it.get("variables"))
                    .map(TreeNode::json)
                    .unwrap_or_default();
                step.body = graphql_body(&query, &variables, |text| self.text(text, body.line));
                step.set_header("Content-Type", Text::plain("application/json"));
            }
            media => {
                step.body = Body::Text(self.text(body.text_at("text"), body.line));
                if !step.has_header("content-type") && !media.is_empty() {
                    step.set_header("Content-Type", Text::plain(media));
                }
            }
        }
    }

    fn fields(&mut self, body: &TreeNode) -> Vec<(String, Text)> {
        let mut fields = Vec::new();
        for parameter in enabled(body.list_at("params")).filter(|it| it.text_at("type") != "file") {
            let value =
                self.text(&parameter.scalar_at("value").unwrap_or_default(), parameter.line);
            fields.push((parameter.text_at("name").to_owned(), value));
        }
        fields
    }

    fn auth(&mut self, auth: &TreeNode, step: &mut DraftStep) {
        if auth.get("disabled").is_some_and(TreeNode::is_true) || matches!(auth.value, Value::Null)
        {
            return;
        }
        let mut value =
            |name: &str| self.text(&auth.scalar_at(name).unwrap_or_default(), auth.line);
        match auth.text_at("type") {
            "" | "none" => {}
            "bearer" => {
                let token = value("token");
                set_bearer(step, token);
            }
            "basic" => {
                let mut user = value("username");
                user.push_str(":");
                user.append(value("password"));
                step.user = Some(user);
            }
            "apikey" => {
                let key = value("value");
                set_api_key(step, auth.text_at("key"), key, auth.text_at("addTo") == "queryParams");
            }
            other => {
                let why = "this kind of login is not imported; its requests are sent without one";
                self.draft.left_out.add(auth.line, format!("authentication {other}"), why);
            }
        }
    }
}

fn enabled(list: &[TreeNode]) -> impl Iterator<Item = &TreeNode> {
    list.iter().filter(|node| !node.get("disabled").is_some_and(TreeNode::is_true))
}
