//! The examples of an OpenAPI 3 description, as requests.

mod made;
mod style;

use crate::recorded::{Recorded, RecordedError, Recording, is_connection_header};
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};
use std::cell::Cell;
use std::collections::BTreeMap;
use style::{ParameterPlace, Written};
use units::{Nanos, quoted};
use url::Url;

type Object = Map<String, Value>;

/// Reads a file that a description refers to, by its name relative to the description; the error
/// states why it cannot.
type FileReader<'a> = &'a dyn Fn(&str) -> Result<Vec<u8>, String>;

/// Maximum length of a chain of references.
const REFERENCES_MAX: usize = 32;
/// Maximum number of files of one description.
const FILES_MAX: usize = 1_000;
const METHODS: [&str; 8] = ["get", "head", "post", "put", "patch", "delete", "options", "trace"];
/// Remark on a request with values that are made from a schema, because there is no example.
const MADE: &str = "missing examples (values are made from the schemas)";
/// Header parameters that are ignored according to OpenAPI: other places describe them.
const IGNORED: [&str; 3] = ["accept", "content-type", "authorization"];

/// Makes one request for each operation. Required parameters and bodies without an example have
/// values that their schemas accept. `base` replaces the description's own server. References to
/// other files are followed.
///
/// # Errors
/// Fails if the text is not OpenAPI 3 in JSON or YAML, or there is neither a server nor a `base`.
pub fn read_openapi(
    text: &str,
    base: Option<&Url>,
    files: FileReader<'_>,
) -> Result<Recording, RecordedError> {
    let wrong = |why: String| RecordedError(format!("it is not OpenAPI 3: {why}"));
    let root = parsed(text).map_err(wrong)?;
    if let Some(version) = root.get("swagger") {
        let version = version.as_str().map_or_else(|| version.to_string(), str::to_owned);
        return Err(RecordedError(format!(
            "it is Swagger {version}, and OpenAPI 3 is needed; convert it, for example with swagger2openapi"
        )));
    }
    let version = root.get("openapi").and_then(Value::as_str);
    if !version.is_some_and(|version| version.starts_with("3.")) {
        let message = version.map_or_else(|| "it has no openapi: 3.x".to_owned(), str::to_owned);
        return Err(wrong(message));
    }
    let base = match base {
        Some(base) => base.clone(),
        None => server(&root)?,
    };
    let mut documents = BTreeMap::from([(String::new(), Ok(root))]);
    load(&mut documents, files);
    let description = Description { documents: &documents, base, made: Cell::new(0) };
    let mut recording = Recording::default();
    let root = description.root();
    let paths = root.get("paths").and_then(|paths| paths.value.as_object());
    for (path, item) in paths.into_iter().flatten() {
        let item = match description.resolved(root.at(item)) {
            Ok(item) if item.value.is_object() => item,
            Ok(_) => continue,
            Err(why) => {
                recording.leave_out(format!("{path}: {why}"));
                continue;
            }
        };
        for method in METHODS {
            let Some(operation) = item.get(method).filter(|it| it.value.is_object()) else {
                continue;
            };
            match description.request(path, method, item, operation) {
                Ok(request) => {
                    if description.made.take() > 0 {
                        recording.leave_out(MADE);
                    }
                    recording.push(request)?;
                }
                Err(why) => {
                    let method = method.to_ascii_uppercase();
                    recording.leave_out(format!("{method} {path}: {why}"));
                }
            }
        }
    }
    Ok(recording)
}

fn parsed(text: &str) -> Result<Value, String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    workload::yaml::parse(text)
}

/// Returns the first server, with the defaults of its variables.
fn server(root: &Value) -> Result<Url, RecordedError> {
    let lacks = |why: &str| RecordedError(format!("{why}; give the server's URL after the file"));
    let server = root.pointer("/servers/0").ok_or_else(|| lacks("it names no server"))?;
    let mut url = server.get("url").and_then(Value::as_str).unwrap_or_default().to_owned();
    let variables = server.get("variables").and_then(Value::as_object);
    for (name, variable) in variables.into_iter().flatten() {
        let value = variable.get("default").and_then(Value::as_str).unwrap_or_default();
        url = url.replace(&format!("{{{name}}}"), value);
    }
    let parsed = Url::parse(&url).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    parsed.ok_or_else(|| lacks(&format!("its server {} is not a URL", quoted(&url))))
}

/// Files of a description by name (the description itself has none), or the reason why they cannot
/// be read.
type Documents = BTreeMap<String, Result<Value, String>>;

/// Reads the referenced files, and the files that these refer to.
fn load(documents: &mut Documents, files: FileReader<'_>) {
    let mut unseen: Vec<String> = vec![String::new()];
    while let Some(name) = unseen.pop() {
        let mut wanted = Vec::new();
        if let Some(Ok(document)) = documents.get(&name) {
            references(document, &mut |reference| wanted.extend(file_of(&name, reference)));
        }
        for file in wanted {
            if documents.contains_key(&file) {
                continue;
            }
            let read = if documents.len() > FILES_MAX {
                Err(format!("the description has more than {FILES_MAX} files"))
            } else if file.contains("://") {
                Err("it is not fetched; save it as a file".to_owned())
            } else {
                let bytes = files(&file);
                let text =
                    bytes.and_then(|bytes| String::from_utf8(bytes).map_err(|it| it.to_string()));
                text.and_then(|text| parsed(&text))
            };
            documents.insert(file.clone(), read);
            unseen.push(file);
        }
    }
}

/// Calls `found` with each `$ref` in a document.
fn references(value: &Value, found: &mut dyn FnMut(&str)) {
    match value {
        Value::Object(fields) => {
            if let Some(reference) = fields.get("$ref").and_then(Value::as_str) {
                found(reference);
            }
            fields.values().for_each(|value| references(value, found));
        }
        Value::Array(values) => values.iter().for_each(|value| references(value, found)),
        _ => {}
    }
}

/// Returns the file of a reference in the file `from`; `None` for the same file.
fn file_of(from: &str, reference: &str) -> Option<String> {
    let file = reference.split('#').next().filter(|file| !file.is_empty())?;
    if file.contains("://") || file.starts_with('/') {
        return Some(file.to_owned());
    }
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in file.split('/') {
        match part {
            "." => {}
            ".." if parts.last().is_some_and(|last| !last.is_empty() && *last != "..") => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// A value, and the file that it is in.
#[derive(Clone, Copy)]
struct FileValue<'a> {
    file: &'a str,
    value: &'a Value,
}

impl<'a> FileValue<'a> {
    /// Returns another value of the same file.
    fn at(self, value: &'a Value) -> FileValue<'a> {
        FileValue { file: self.file, value }
    }

    fn get(self, name: &str) -> Option<FileValue<'a>> {
        self.value.get(name).map(|value| self.at(value))
    }

    fn word(self, name: &str) -> &'a str {
        self.value.get(name).and_then(Value::as_str).unwrap_or_default()
    }
}

struct Description<'a> {
    documents: &'a Documents,
    base: Url,
    /// Number of values of the current request that are made from schemas.
    made: Cell<usize>,
}

/// Combined result of the parameters.
#[derive(Default)]
struct Filled {
    path: BTreeMap<String, String>,
    query: Vec<String>,
    headers: Vec<(String, String)>,
    cookies: Vec<String>,
}

impl<'a> Description<'a> {
    fn root(&self) -> FileValue<'a> {
        const NOTHING: &Value = &Value::Null;
        let root = self.documents.get("").and_then(|root| root.as_ref().ok());
        FileValue { file: "", value: root.unwrap_or(NOTHING) }
    }

    /// Returns the value itself, or the target of its `$ref`.
    fn resolved(&self, node: FileValue<'a>) -> Result<FileValue<'a>, String> {
        let mut node = node;
        for _ in 0..REFERENCES_MAX {
            let Some(reference) = node.value.get("$ref") else { return Ok(node) };
            let reference = reference.as_str().unwrap_or_default();
            let nowhere = || format!("a $ref without a target, {}", quoted(reference));
            let (file, root) = match file_of(node.file, reference) {
                None => self.documents.get_key_value(node.file).ok_or_else(nowhere)?,
                Some(file) => self.documents.get_key_value(file.as_str()).ok_or_else(nowhere)?,
            };
            let root =
                root.as_ref().map_err(|why| format!("its $ref {}: {why}", quoted(reference)))?;
            let pointer = reference.split_once('#').map_or("", |(_, pointer)| pointer);
            let pointer = percent_decode_str(pointer).decode_utf8_lossy();
            let value = root.pointer(&pointer).ok_or_else(nowhere)?;
            node = FileValue { file, value };
        }
        Err("a circular $ref".to_owned())
    }

    fn request(
        &self,
        path: &str,
        method: &str,
        item: FileValue<'a>,
        operation: FileValue<'a>,
    ) -> Result<Recorded, String> {
        self.made.set(0);
        let filled = self.filled(item, operation)?;
        let mut url = self.base.clone();
        let mut whole = url.path().trim_end_matches('/').to_owned();
        whole.push_str(&with_values(path, &filled.path)?);
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

    /// Applies the parameters; an operation's parameters override those of its path.
    fn filled(&self, item: FileValue<'a>, operation: FileValue<'a>) -> Result<Filled, String> {
        let mut filled = Filled::default();
        let mut seen = Vec::new();
        let lists = [operation.get("parameters"), item.get("parameters")];
        let each = |list: FileValue<'a>| {
            list.value.as_array().into_iter().flatten().map(move |it| list.at(it))
        };
        for parameter in lists.into_iter().flatten().flat_map(each) {
            let parameter = self.resolved(parameter)?;
            let (name, place) = (parameter.word("name"), parameter.word("in"));
            if seen.contains(&(name, place)) {
                continue;
            }
            seen.push((name, place));
            let required =
                parameter.value.get("required").and_then(Value::as_bool).unwrap_or(false);
            let example = self.value_of(parameter)?.filter(|value| !value.is_null());
            let example = match example {
                Some(example) => example,
                None if required || place == "path" => self.made_parameter(parameter)?,
                None => continue,
            };
            fill(&mut filled, parameter, &example)
                .map_err(|why| format!("the parameter {name}: {why}"))?;
        }
        Ok(filled)
    }

    /// Returns a value that the schema of a parameter accepts.
    fn made_parameter(&self, parameter: FileValue<'a>) -> Result<Value, String> {
        if let Some(schema) = parameter.get("schema") {
            return self.made(schema, 0);
        }
        self.count_made(1)?;
        let content = parameter.get("content");
        let media = content
            .and_then(|content| Some(content.at(content.value.as_object()?.values().next()?)));
        match media.and_then(|media| media.get("schema")) {
            Some(schema) => Ok(Value::String(self.made(schema, 0)?.to_string())),
            None => Ok(Value::String("text".to_owned())),
        }
    }

    /// Returns a parameter's example; with `content` in place of a schema, as text of its media
    /// type.
    fn value_of(&self, parameter: FileValue<'a>) -> Result<Option<Value>, String> {
        let content = parameter.get("content").and_then(|content| {
            content.value.as_object()?.iter().next().map(|(kind, media)| (kind, content.at(media)))
        });
        let Some((kind, media)) = content else {
            return Ok(self.example(parameter)?.map(|example| example.value.clone()));
        };
        let example = self.example(media)?;
        Ok(example.map(|example| match example.value {
            value @ Value::String(_) if !kind.contains("json") => value.clone(),
            value => Value::String(value.to_string()),
        }))
    }

    /// Returns `example`, the first of `examples`, or the same of the schema, or its `default` or
    /// first `enum`.
    fn example(&self, holder: FileValue<'a>) -> Result<Option<FileValue<'a>>, String> {
        if let Some(example) = holder.get("example") {
            return Ok(Some(example));
        }
        match holder.get("examples").map(|examples| (examples, examples.value)) {
            Some((examples, Value::Object(named))) => {
                let Some(first) = named.values().next() else { return Ok(None) };
                return Ok(self.resolved(examples.at(first))?.get("value"));
            }
            // in a schema, from 3.1 on
            Some((examples, Value::Array(listed))) => {
                return Ok(listed.first().map(|first| examples.at(first)));
            }
            _ => {}
        }
        if let Some(schema) = holder.get("schema") {
            return self.example(self.resolved(schema)?);
        }
        let first = |list: FileValue<'a>| list.value.get(0).map(|value| list.at(value));
        Ok(holder.get("default").or_else(|| first(holder.get("enum")?)))
    }

    /// Returns the content type and content of an example body.
    fn body(&self, body: FileValue<'a>) -> Result<(String, Vec<u8>), String> {
        let body = self.resolved(body)?;
        let content = body.get("content");
        let kinds = content.and_then(|content| content.value.as_object());
        for (kind, media) in kinds.into_iter().flatten() {
            let media = body.at(media);
            let Some(example) = self.example(media)? else { continue };
            if let Some(body) = written(kind, example.value, media)? {
                return Ok((kind.clone(), body));
            }
        }
        for (kind, media) in kinds.into_iter().flatten() {
            let media = body.at(media);
            let Some(schema) = media.get("schema") else { continue };
            if let Some(body) = written(kind, &self.made(schema, 0)?, media)? {
                return Ok((kind.clone(), body));
            }
        }
        Err("no example of a body that can be written".to_owned())
    }
}

/// Returns a body of this media type; `None` if it cannot be written.
fn written(kind: &str, value: &Value, media: FileValue<'_>) -> Result<Option<Vec<u8>>, String> {
    let text = match value {
        Value::String(text) if !kind.contains("json") => text.clone(),
        Value::Object(fields) if kind.starts_with("application/x-www-form-urlencoded") => {
            form(fields, media)?
        }
        value if kind.contains("json") => value.to_string(),
        _ => return Ok(None),
    };
    Ok(Some(text.into_bytes()))
}

/// Inserts a parameter's value.
fn fill(filled: &mut Filled, parameter: FileValue<'_>, value: &Value) -> Result<(), String> {
    let name = parameter.word("name");
    let written = |place: ParameterPlace| Written::new(place, parameter.value.as_object());
    match parameter.word("in") {
        "path" => {
            let value = written(ParameterPlace::Path)?.write(name, value)?;
            filled.path.insert(name.to_owned(), value);
        }
        "query" => {
            let pairs = written(ParameterPlace::Query)?.write(name, value)?;
            filled.query.extend(Some(pairs).filter(|pairs| !pairs.is_empty()));
        }
        "header" => {
            let ignored = IGNORED.iter().any(|ignored| ignored.eq_ignore_ascii_case(name));
            if !ignored && !is_connection_header(name) {
                filled
                    .headers
                    .push((name.to_owned(), written(ParameterPlace::Header)?.write(name, value)?));
            }
        }
        "cookie" => {
            let pairs = written(ParameterPlace::Cookie)?.write(name, value)?;
            // each value of a list is a cookie
            filled.cookies.extend(pairs.split('&').map(str::to_owned));
        }
        _ => return Err("its `in` is not path, query, header or cookie".to_owned()),
    }
    Ok(())
}

/// Encodes the fields of a form, each with the encoding of its name.
fn form(fields: &Object, media: FileValue<'_>) -> Result<String, String> {
    let mut pairs = Vec::new();
    for (name, value) in fields.iter().filter(|(_, value)| !value.is_null()) {
        let encoding = media.value.get("encoding").and_then(|encoding| encoding.get(name));
        let written = Written::new(ParameterPlace::Form, encoding.and_then(Value::as_object))
            .and_then(|written| written.write(name, value));
        let written = written.map_err(|why| format!("the field {name} of its form: {why}"))?;
        pairs.extend(Some(written).filter(|pairs| !pairs.is_empty()));
    }
    Ok(pairs.join("&"))
}

/// Replaces each `{name}` in a path by its value. Names within values are not replaced.
fn with_values(path: &str, values: &BTreeMap<String, String>) -> Result<String, String> {
    let (mut whole, mut rest) = (String::new(), path);
    while let Some((before, after)) = rest.split_once('{') {
        whole.push_str(before);
        let filled =
            after.split_once('}').and_then(|(name, after)| Some((values.get(name)?, after)));
        let Some((value, after)) = filled else {
            return Err(format!("no parameter fills {{{after}"));
        };
        whole.push_str(value);
        rest = after;
    }
    whole.push_str(rest);
    Ok(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, base: Option<&Url>) -> Result<Recording, RecordedError> {
        read_openapi(text, base, &|file| Err(format!("{file} is not there")))
    }

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
        let recording = read(PETS, None).unwrap();
        let text: Vec<String> = recording
            .requests
            .iter()
            .map(|one| {
                let body = one.body.as_deref().map(String::from_utf8_lossy);
                format!("{} {} {:?} {body:?}", one.method, one.url, one.headers)
            })
            .collect();
        assert_eq!(
            text,
            [
                r#"POST http://h:8080/v1/login [("Content-Type", "application/x-www-form-urlencoded")] Some("pass=a%26b&user=me")"#,
                r#"GET http://h:8080/v1/pets/7?tags=a%20b&tags=c [("X-Trace", "on")] None"#,
                r#"PUT http://h:8080/v1/pets/7 [("X-Trace", "on"), ("Content-Type", "application/json")] Some("{\"name\":\"Rex\"}")"#,
                r#"DELETE http://h:8080/v1/pets/7?reason=text [("X-Trace", "on")] None"#,
            ]
        );
        let left: Vec<&str> = recording.left_out.keys().map(String::as_str).collect();
        assert_eq!(
            left,
            [
                "GET /lost/{where}: no parameter fills {where}",
                "missing examples (values are made from the schemas)",
            ]
        );
    }

    #[test]
    fn a_base_takes_the_place_of_the_server() {
        let base = Url::parse("http://127.0.0.1:1/").unwrap();
        let recording = read(PETS, Some(&base)).unwrap();
        assert_eq!(recording.requests[0].url.as_str(), "http://127.0.0.1:1/login");
    }

    #[test]
    fn an_invalid_description_is_reported() {
        for (text, why) in [
            ("{", "it is not OpenAPI 3"),
            ("info: {}", "it has no openapi: 3.x"),
            ("swagger: '2.0'", "it is Swagger 2.0, and OpenAPI 3 is needed"),
            ("\u{feff}swagger: 2.0", "it is Swagger 2.0, and OpenAPI 3 is needed"),
            ("openapi: 3.1.0", "it names no server; give the server's URL"),
            ("openapi: 3.1.0\nservers: [{url: /v1}]", "its server \"/v1\" is not a URL"),
        ] {
            let error = read(text, None).unwrap_err().0;
            assert!(error.contains(why), "{text}: {error}");
        }
        let looped = "openapi: 3.0.0\nservers: [{url: 'http://h/'}]\npaths: {/a: {get: \
            {requestBody: {$ref: '#/paths/~1a/get/requestBody'}}}}";
        let left = read(looped, None).unwrap().left_out;
        assert_eq!(left["GET /a: a circular $ref"], 1);
    }
    const STYLES: &str = "
openapi: 3.0.3
servers: [{url: 'http://h/'}]
paths:
  /p/{ids}{m}:
    get:
      parameters:
        - {name: ids, in: path, required: true, schema: {type: array}, example: [3, 4]}
        - {name: m, in: path, required: true, style: matrix, example: 5}
        - {name: q, in: query, example: [a, b]}
        - {name: r, in: query, style: pipeDelimited, example: [a, b]}
        - {name: f, in: query, style: deepObject, explode: true, example: {x: 1, y: 2}}
        - {name: j, in: query, content: {application/json: {example: {k: [1]}}}}
        - {name: Authorization, in: header, example: secret}
        - {name: X-List, in: header, example: [1, 2]}
        - {name: c, in: cookie, example: [1, 2]}
        - {name: empty, in: query, example: null}
  /b/{odd}:
    parameters: [{name: odd, in: path, example: '{ids}/é'}]
    post:
      requestBody:
        content:
          application/x-www-form-urlencoded:
            example: {b: [x, y z], o: {k: 1}, d: {k: 1}}
            encoding: {b: {explode: false}, d: {style: deepObject}}
  /nested:
    get: {parameters: [{name: n, in: query, example: [[1]]}]}
";

    #[test]
    fn parameters_and_forms_are_written_by_their_style() {
        let recording = read(STYLES, None).unwrap();
        let text: Vec<String> = recording
            .requests
            .iter()
            .map(|one| {
                let body = one.body.as_deref().map_or("".into(), String::from_utf8_lossy);
                format!("{} {:?} {body}", one.url, one.headers)
            })
            .collect();
        assert_eq!(
            text,
            [
                r#"http://h/b/%7Bids%7D%2F%C3%A9 [("Content-Type", "application/x-www-form-urlencoded")] b=x,y+z&d%5Bk%5D=1&k=1"#,
                r#"http://h/p/3,4;m=5?q=a&q=b&r=a%7Cb&f%5Bx%5D=1&f%5By%5D=2&j=%7B%22k%22%3A%5B1%5D%7D [("X-List", "1,2"), ("Cookie", "c=1; c=2")] "#,
            ]
        );
        let left: Vec<&String> = recording.left_out.keys().collect();
        assert_eq!(left.len(), 1);
        assert!(left[0].starts_with("GET /nested: the parameter n: its style cannot"), "{left:?}");
    }

    #[test]
    fn references_to_other_files_are_followed_or_named() {
        let text = "
openapi: 3.0.3
servers: [{url: 'http://h/'}]
paths:
  /a: {$ref: 'parts/a.yaml#/a%7B'}
  /b: {$ref: 'none.yaml'}
  /c: {$ref: 'https://h.example/c.yaml#/c'}
  /d: {get: {parameters: [{$ref: 'parts/p.json#/none'}]}}
";
        let files = |file: &str| match file {
            "parts/a.yaml" => {
                Ok(b"\xef\xbb\xbf'a{': {get: {parameters: [{$ref: './p.json#/p'}]}}".to_vec())
            }
            "parts/p.json" => Ok(b"{\"p\": {\"$ref\": \"../q.yaml\"}}".to_vec()),
            "q.yaml" => Ok(b"{name: q, in: query, example: 1}".to_vec()),
            other => Err(format!("{other} is not there")),
        };
        let recording = read_openapi(text, None, &files).unwrap();
        let urls: Vec<&str> = recording.requests.iter().map(|one| one.url.as_str()).collect();
        assert_eq!(urls, ["http://h/a?q=1"]);
        let left: Vec<&str> = recording.left_out.keys().map(String::as_str).collect();
        assert_eq!(
            left,
            [
                "/b: its $ref \"none.yaml\": none.yaml is not there",
                "/c: its $ref \"https://h.example/c.yaml#/c\": it is not fetched; save it as a file",
                "GET /d: a $ref without a target, \"parts/p.json#/none\"",
            ]
        );
    }
}
