//! The examples of an OpenAPI 3 description, as requests.

use crate::{Recorded, RecordedError, Recording};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use units::Nanos;
use url::Url;
use url::form_urlencoded::byte_serialize;

type Object = Map<String, Value>;

/// References that are followed one behind the other.
const REFERENCES_MAX: usize = 32;
const METHODS: [&str; 8] = ["get", "head", "post", "put", "patch", "delete", "options", "trace"];

/// One request for each operation whose parameters and body have examples. `base` takes the place of
/// the description's own server.
///
/// # Errors
/// No OpenAPI 3 in JSON or YAML; no server and no `base`.
pub fn read_openapi(text: &str, base: Option<&Url>) -> Result<Recording, RecordedError> {
    let wrong = |why: String| RecordedError(format!("it is not OpenAPI 3: {why}"));
    let root: Value = serde_yaml_ng::from_str(text).map_err(|error| wrong(error.to_string()))?;
    let version = root.get("openapi").and_then(Value::as_str);
    if !version.is_some_and(|version| version.starts_with("3.")) {
        let told = version.map_or_else(|| "it has no openapi: 3.x".to_owned(), str::to_owned);
        return Err(wrong(told));
    }
    let base = match base {
        Some(base) => base.clone(),
        None => server(&root)?,
    };
    let description = Description { root: &root, base };
    let mut recording = Recording::default();
    let paths = root.get("paths").and_then(Value::as_object);
    for (path, item) in paths.into_iter().flatten() {
        let Some(item) = description.resolved(item).and_then(Value::as_object) else { continue };
        for method in METHODS {
            let Some(operation) = item.get(method).and_then(Value::as_object) else { continue };
            match description.request(path, method, item, operation) {
                Ok(request) => recording.push(request)?,
                Err(why) => {
                    let method = method.to_ascii_uppercase();
                    recording.leave_out(format!("{method} {path}: {why}"));
                }
            }
        }
    }
    Ok(recording)
}

/// The first server, with the defaults of its variables.
fn server(root: &Value) -> Result<Url, RecordedError> {
    let lacks = |why: &str| RecordedError(format!("{why}; give the server's URL behind the file"));
    let server = root.pointer("/servers/0").ok_or_else(|| lacks("it names no server"))?;
    let mut url = server.get("url").and_then(Value::as_str).unwrap_or_default().to_owned();
    let variables = server.get("variables").and_then(Value::as_object);
    for (name, variable) in variables.into_iter().flatten() {
        let value = variable.get("default").and_then(Value::as_str).unwrap_or_default();
        url = url.replace(&format!("{{{name}}}"), value);
    }
    let parsed = Url::parse(&url).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    parsed.ok_or_else(|| lacks(&format!("its server {} is not a URL", units::quoted(&url))))
}

struct Description<'a> {
    root: &'a Value,
    base: Url,
}

/// What parameters add up to.
#[derive(Default)]
struct Filled {
    path: BTreeMap<String, String>,
    query: Vec<String>,
    headers: Vec<(String, String)>,
    cookies: Vec<String>,
}

impl<'a> Description<'a> {
    /// The value itself, or what its `$ref` leads to within the file.
    fn resolved(&self, value: &'a Value) -> Option<&'a Value> {
        let mut value = value;
        for _ in 0..REFERENCES_MAX {
            let Some(reference) = value.get("$ref") else { return Some(value) };
            value = self.root.pointer(reference.as_str()?.strip_prefix('#')?)?;
        }
        None
    }

    fn request(
        &self,
        path: &str,
        method: &str,
        item: &'a Object,
        operation: &'a Object,
    ) -> Result<Recorded, String> {
        let filled = self.filled(item, operation)?;
        let mut url = self.base.clone();
        let mut whole = url.path().trim_end_matches('/').to_owned();
        whole.push_str(path);
        for (name, value) in &filled.path {
            whole = whole.replace(&format!("{{{name}}}"), value);
        }
        if let Some(at) = whole.find('{') {
            return Err(format!("no parameter fills {}", &whole[at..]));
        }
        url.set_path(&whole);
        url.set_query(Some(filled.query.join("&")).filter(|query| !query.is_empty()).as_deref());
        let mut headers = filled.headers;
        if !filled.cookies.is_empty() {
            headers.push(("Cookie".to_owned(), filled.cookies.join("; ")));
        }
        let body = match operation.get("requestBody") {
            None => None,
            Some(body) => {
                let (kind, body) = self.body(body)?;
                headers.push(("Content-Type".to_owned(), kind));
                Some(body)
            }
        };
        Ok(Recorded { at: Nanos::ZERO, method: method.to_ascii_uppercase(), url, headers, body })
    }

    /// An operation's parameters go before those of its path.
    fn filled(&self, item: &'a Object, operation: &'a Object) -> Result<Filled, String> {
        let mut filled = Filled::default();
        let mut seen = Vec::new();
        let lists = [operation.get("parameters"), item.get("parameters")];
        for parameter in lists.into_iter().flatten().filter_map(Value::as_array).flatten() {
            let parameter = self.resolved(parameter).ok_or("a $ref that leads nowhere")?;
            let word = |key| parameter.get(key).and_then(Value::as_str).unwrap_or_default();
            let (name, place) = (word("name"), word("in"));
            if seen.contains(&(name, place)) {
                continue;
            }
            seen.push((name, place));
            let required = parameter.get("required").and_then(Value::as_bool).unwrap_or(false);
            let Some(example) = self.example(parameter) else {
                if required || place == "path" {
                    return Err(format!("no example for the parameter {name}"));
                }
                continue;
            };
            let value = plain(example);
            match place {
                "path" => drop(filled.path.insert(name.to_owned(), encoded(&value))),
                "query" => filled.query.push(format!("{}={}", encoded(name), encoded(&value))),
                "header" => filled.headers.push((name.to_owned(), value)),
                "cookie" => filled.cookies.push(format!("{name}={value}")),
                _ => return Err(format!("the parameter {name} is nowhere")),
            }
        }
        Ok(filled)
    }

    /// `example`, the first of `examples`, or the same of the schema, or its `default` or first
    /// `enum`.
    fn example(&self, holder: &'a Value) -> Option<&'a Value> {
        if let Some(example) = holder.get("example") {
            return Some(example);
        }
        match holder.get("examples") {
            Some(Value::Object(named)) => {
                let first = self.resolved(named.values().next()?)?;
                return first.get("value");
            }
            // of a schema, from 3.1 on
            Some(Value::Array(listed)) => return listed.first(),
            _ => {}
        }
        if let Some(schema) = holder.get("schema") {
            return self.example(self.resolved(schema)?);
        }
        let default = holder.get("default");
        default.or_else(|| holder.get("enum")?.get(0))
    }

    /// Content type and content.
    fn body(&self, body: &'a Value) -> Result<(String, Vec<u8>), String> {
        let body = self.resolved(body).ok_or("a $ref that leads nowhere")?;
        let content = body.get("content").and_then(Value::as_object);
        for (kind, media) in content.into_iter().flatten() {
            let Some(example) = self.example(media) else { continue };
            let body = match example {
                Value::String(text) if !kind.contains("json") => text.clone(),
                Value::Object(fields) if kind.starts_with("application/x-www-form-urlencoded") => {
                    let mut form = url::form_urlencoded::Serializer::new(String::new());
                    form.extend_pairs(fields.iter().map(|(name, value)| (name, plain(value))));
                    form.finish()
                }
                example if kind.contains("json") => example.to_string(),
                _ => continue,
            };
            return Ok((kind.clone(), body.into_bytes()));
        }
        Err("no example of a body that can be written".to_owned())
    }
}

/// A value as it stands in a URL; lists with commas (style `simple`, and `form` without `explode`).
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(plain).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}

fn encoded(text: &str) -> String {
    byte_serialize(text.as_bytes()).collect::<String>().replace('+', "%20")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PETS: &str = "
openapi: 3.0.3
servers: [{url: 'http://h:{port}/v1/', variables: {port: {default: '8080'}}}]
paths:
  /pets/{id}:
    parameters:
      - {name: id, in: path, required: true, schema: {type: integer, example: 7}}
      - {$ref: '#/components/parameters/trace'}
    get:
      parameters: [{name: tags, in: query, example: [a b, c]}, {name: page, in: query}]
    delete: {parameters: [{name: reason, in: query, required: true}]}
    put:
      requestBody: {content: {application/json: {schema: {$ref: '#/components/schemas/pet'}}}}
  /login:
    post:
      requestBody:
        content:
          application/x-www-form-urlencoded: {example: {pass: 'a&b', user: me}}
  /lost/{where}: {get: {}}
components:
  parameters:
    trace: {name: X-Trace, in: header, examples: {one: {value: on}}}
  schemas:
    pet: {type: object, example: {name: Rex}}
    loop: {$ref: '#/components/schemas/loop'}
";

    #[test]
    fn examples_become_requests() {
        let recording = read_openapi(PETS, None).unwrap();
        let told: Vec<String> = recording
            .requests
            .iter()
            .map(|one| {
                let body = one.body.as_deref().map(String::from_utf8_lossy);
                format!("{} {} {:?} {body:?}", one.method, one.url, one.headers)
            })
            .collect();
        assert_eq!(
            told,
            [
                r#"POST http://h:8080/v1/login [("Content-Type", "application/x-www-form-urlencoded")] Some("pass=a%26b&user=me")"#,
                r#"GET http://h:8080/v1/pets/7?tags=a%20b%2Cc [("X-Trace", "on")] None"#,
                r#"PUT http://h:8080/v1/pets/7 [("X-Trace", "on"), ("Content-Type", "application/json")] Some("{\"name\":\"Rex\"}")"#,
            ]
        );
        let left: Vec<&str> = recording.left_out.keys().map(String::as_str).collect();
        assert_eq!(
            left,
            [
                "DELETE /pets/{id}: no example for the parameter reason",
                "GET /lost/{where}: no parameter fills {where}",
            ]
        );
    }

    #[test]
    fn a_base_takes_the_place_of_the_server() {
        let base = Url::parse("http://127.0.0.1:1/").unwrap();
        let recording = read_openapi(PETS, Some(&base)).unwrap();
        assert_eq!(recording.requests[0].url.as_str(), "http://127.0.0.1:1/login");
    }

    #[test]
    fn what_is_no_description_says_so() {
        for (text, why) in [
            ("{", "it is not OpenAPI 3"),
            ("swagger: '2.0'", "it has no openapi: 3.x"),
            ("openapi: 3.1.0", "it names no server; give the server's URL"),
            ("openapi: 3.1.0\nservers: [{url: /v1}]", "its server \"/v1\" is not a URL"),
        ] {
            let error = read_openapi(text, None).unwrap_err().0;
            assert!(error.contains(why), "{text}: {error}");
        }
        let looped = "openapi: 3.0.0\nservers: [{url: 'http://h/'}]\npaths: {/a: {get: \
            {requestBody: {$ref: '#/paths/~1a/get/requestBody'}}}}";
        let left = read_openapi(looped, None).unwrap().left_out;
        assert_eq!(left["GET /a: a $ref that leads nowhere"], 1);
    }
}
