//! One request of a step.

use super::super::json::JsonPlace;
use super::super::model::{
    Ask, Body, Capture, CaptureFrom, CaptureMetric, Scope, Take, Upload, UploadContent,
};
use super::super::node::{Node, Table, pick};
use super::super::text::{Fill, Marks, Text};
use super::Reader;
use crate::HttpVersion;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use units::{Nanos, ParseError, quoted};
use workload::Selector;

/// Jar of steps that name none.
pub(super) const JAR: &str = "plan";
/// Maximum size of one uploaded file in bytes.
const UPLOAD_MAX: u64 = 256 << 20;
const TAKES: [(&str, Take); 3] =
    [("first", Take::First), ("last", Take::Last), ("random", Take::Random)];
const SCOPES: [(&str, Scope); 2] = [("iteration", Scope::Iteration), ("user", Scope::User)];
const VERSIONS: [(&str, HttpVersion); 5] = [
    ("1.0", HttpVersion::Http10),
    ("1.1", HttpVersion::Http11),
    ("2", HttpVersion::Http2),
    ("3", HttpVersion::Http3),
    ("auto", HttpVersion::Auto),
];

/// Reads `false` for no cookies, or the name of a jar.
pub(super) fn jar(node: &Node<'_>) -> Result<Option<String>, ParseError> {
    match node.switch() {
        Some(true) => Ok(Some(JAR.to_owned())),
        Some(false) => Ok(None),
        None => node.text().map(|name| Some(name.to_owned())),
    }
}

impl Reader<'_> {
    /// Reads the request whose `url` was found, and takes its keys out of the table. `close`
    /// applies unless the table overrides it.
    pub(crate) fn read_ask(
        &self,
        url: &Node<'_>,
        table: &mut Table<'_>,
        close: bool,
    ) -> Result<Ask, ParseError> {
        let fill = match self.marks {
            Marks::Dollar => Fill::AsIs,
            Marks::Braces => Fill::UrlPart,
        };
        let url = self.fill(url, &url.text_or_number()?, fill)?;
        let method = table.take("method");
        let query = table.take("query").map(|node| self.pairs(&node)).transpose()?;
        let given = table.take("headers").map(|node| self.header_changes(&node)).transpose()?;
        let body = self.body(table)?;
        let user = match table.take("user") {
            Some(node) => Some(self.user(&node)?),
            None => None,
        };
        let jar = match table.take("jar") {
            Some(node) => jar(&node)?,
            None => self.jar.clone(),
        };
        let version = table.take("http").map(|node| self.version(&node)).transpose()?;
        let close = table.take("close").map(|node| node.flag()).transpose()?.unwrap_or(close);
        let timeout = table.take("timeout").map(|node| self.duration(&node)).transpose()?;
        if timeout == Some(Nanos::ZERO) {
            return Err(table.fault("a timeout of 0 leaves no time for a response"));
        }
        let method = match method {
            Some(node) => self.method(&node)?,
            None if body == Body::None => "GET".to_owned(),
            None => "POST".to_owned(),
        };
        let expect = self.expect(table)?;
        let capture = table.take("capture").map(|node| self.captures(&node)).transpose()?;
        Ok(Ask {
            method,
            url,
            query: query.unwrap_or_default(),
            headers: self.merged(given.unwrap_or_default()),
            body,
            user,
            jar,
            version: version.unwrap_or(self.http),
            close,
            timeout: timeout.unwrap_or(self.timeout),
            expect,
            capture: capture.unwrap_or_default(),
            talk: Vec::new(),
        })
    }

    fn method(&self, node: &Node<'_>) -> Result<String, ParseError> {
        let method = self.settled(node)?;
        // CONNECT creates a tunnel: there is no response to check
        if method.eq_ignore_ascii_case("CONNECT") {
            return Err(node.fault("CONNECT opens a tunnel and cannot be checked"));
        }
        Ok(method)
    }

    pub(super) fn version(&self, node: &Node<'_>) -> Result<HttpVersion, ParseError> {
        pick(&self.settled(node)?, &VERSIONS).map_err(|why| node.fault(why))
    }

    fn user(&self, node: &Node<'_>) -> Result<Text, ParseError> {
        let text = self.template(node)?;
        match text.settled() {
            Some(login) if !login.contains(':') => {
                Err(node.fault("write it as name:password; the password may be empty"))
            }
            _ => Ok(text),
        }
    }

    /// Reads a table of texts, in the order of the file.
    fn pairs(&self, node: &Node<'_>) -> Result<Vec<(String, Text)>, ParseError> {
        let rows = node.table()?.rest();
        rows.iter().map(|row| Ok((row.key.to_owned(), self.template(row)?))).collect()
    }

    /// Reads header fields, without those set to `false`.
    pub(super) fn headers(&self, node: &Node<'_>) -> Result<Vec<(String, Text)>, ParseError> {
        let changes = self.header_changes(node)?;
        Ok(changes.into_iter().filter_map(|(name, value)| Some((name, value?))).collect())
    }

    /// Reads header fields; `None` removes a default of the plan.
    fn header_changes(&self, node: &Node<'_>) -> Result<Vec<(String, Option<Text>)>, ParseError> {
        let rows = node.table()?.rest();
        let row = |row: &Node<'_>| match row.switch() {
            Some(false) => Ok((row.key.to_owned(), None)),
            _ => Ok((row.key.to_owned(), Some(self.template(row)?))),
        };
        rows.iter().map(row).collect()
    }

    /// Returns the plan's fields, replaced by the step's fields of the same name.
    fn merged(&self, given: Vec<(String, Option<Text>)>) -> Vec<(String, Text)> {
        let replaced = |name: &str| given.iter().any(|(known, _)| known.eq_ignore_ascii_case(name));
        let kept = self.headers.iter().filter(|(name, _)| !replaced(name)).cloned();
        let mut all: Vec<(String, Text)> = kept.collect();
        all.extend(given.into_iter().filter_map(|(name, value)| Some((name, value?))));
        all
    }

    fn body(&self, table: &mut Table<'_>) -> Result<Body, ParseError> {
        let given = [
            table.take("body"),
            table.take("body-file"),
            table.take("body-base64"),
            table.take("json"),
        ];
        let (form, upload) = (table.take("form"), table.take("upload"));
        let form_given = form.is_some() || upload.is_some();
        match (given, form_given) {
            ([None, None, None, None], false) => Ok(Body::None),
            ([Some(text), None, None, None], false) => self.template(&text).map(Body::Text),
            ([None, Some(path), None, None], false) => self.file(&path).map(Body::Bytes),
            ([None, None, Some(code), None], false) => self.base64(&code).map(Body::Bytes),
            ([None, None, None, Some(value)], false) => self.json_template(&value).map(Body::Json),
            ([None, None, None, None], true) => {
                let fields = form.map(|node| self.pairs(&node)).transpose()?.unwrap_or_default();
                let Some(upload) = upload else { return Ok(Body::Form(fields)) };
                let files = upload.tables()?;
                let files = files.into_iter().map(|table| self.upload(table));
                Ok(Body::Multipart(fields, files.collect::<Result<_, _>>()?))
            }
            _ => {
                Err(table
                    .fault("give one of body, body-file, json and form (with or without upload)"))
            }
        }
    }

    /// Reads a JSON value with captured values inserted into its strings.
    pub(crate) fn json_template(&self, node: &Node<'_>) -> Result<Text, ParseError> {
        self.fill(node, &node.json()?.to_string(), Fill::Json)
    }

    pub(crate) fn base64(&self, node: &Node<'_>) -> Result<Vec<u8>, ParseError> {
        BASE64.decode(node.text()?.trim()).map_err(|_| node.fault("it is not base64"))
    }

    pub(crate) fn file(&self, node: &Node<'_>) -> Result<Vec<u8>, ParseError> {
        self.files.read(&self.settled(node)?).map_err(|why| node.fault(why))
    }

    fn upload(&self, mut table: Table<'_>) -> Result<Upload, ParseError> {
        let Some(field) = table.take("field") else {
            return Err(table.fault("it has no field; name the form's field"));
        };
        let field = self.settled(&field)?;
        let path = table.take("file");
        let code = table.take("base64");
        let text = table.take("text");
        let times = table.take("times").map(|node| self.number(&node)).transpose()?;
        let name = table.take("name").map(|node| self.settled(&node)).transpose()?;
        let media_type = table.take("type").map(|node| self.settled(&node)).transpose()?;
        let called = path.as_ref().map(|node| self.settled(node)).transpose()?;
        let content = match (path, code, text) {
            (Some(path), None, None) if times.is_none() => UploadContent::Bytes(self.file(&path)?),
            (None, Some(code), None) if times.is_none() => {
                UploadContent::Bytes(self.base64(&code)?)
            }
            (None, None, Some(text)) => {
                let times: u32 = times.unwrap_or(1);
                if text.text_or_number()?.len() as u64 * u64::from(times) > UPLOAD_MAX {
                    return Err(text.fault("repeated this often it is longer than 256 MiB"));
                }
                UploadContent::Text(self.template(&text)?, times)
            }
            _ => return Err(table.fault("give file, or text (and times)")),
        };
        table.close()?;
        let own = called.as_deref().and_then(|path| path.rsplit('/').next()).map(str::to_owned);
        Ok(Upload {
            field,
            name: name.or(own).unwrap_or_else(|| "file.txt".to_owned()),
            media_type: media_type.unwrap_or_else(|| "text/plain".to_owned()),
            content,
        })
    }

    pub(crate) fn captures(&self, node: &Node<'_>) -> Result<Vec<(String, Capture)>, ParseError> {
        let rows = node.table()?.rest();
        rows.iter().map(|row| Ok((row.key.to_owned(), self.capture(row)?))).collect()
    }

    fn capture(&self, node: &Node<'_>) -> Result<Capture, ParseError> {
        if self.vars.contains_key(node.key) {
            let name = quoted(node.key);
            return Err(node.fault(format!("{name} is a variable of [vars]; capture another name")));
        }
        let mut table = node.table()?;
        let places = [
            table.take("status"),
            table.take("header"),
            table.take("cookie"),
            table.take("json"),
            table.take("css"),
        ];
        let attribute = table.take("attribute").map(|node| self.settled(&node)).transpose()?;
        let regex = table.take("regex").map(|node| self.pattern(&node)).transpose()?;
        let given = places.iter().flatten().count();
        let [status, header, cookie, json, css] = places;
        let from = match (status, header, cookie, json, css) {
            _ if given > 1 || (given == 0 && regex.is_none()) => {
                return Err(
                    table.fault("give its source: status, header, cookie, json, css or regex")
                );
            }
            (Some(status), ..) if status.flag()? => CaptureFrom::Status,
            (Some(status), ..) => return Err(status.fault("write status = true, or drop it")),
            (_, Some(header), ..) => CaptureFrom::Header(self.settled(&header)?),
            (_, _, Some(cookie), ..) => CaptureFrom::Cookie(self.settled(&cookie)?),
            (_, _, _, Some(json), _) => {
                let place = JsonPlace::parse(json.text()?);
                CaptureFrom::Json(place.map_err(|why| json.fault(why))?)
            }
            (.., Some(css)) => {
                let selector = Selector::parse(css.text()?).map_err(|why| css.fault(why))?;
                CaptureFrom::Html { css: selector, attribute: attribute.clone() }
            }
            _ => CaptureFrom::Body,
        };
        if attribute.is_some() && !matches!(from, CaptureFrom::Html { .. }) {
            return Err(table.fault("attribute needs an element: give css too, or drop it"));
        }
        let take = match table.take("take") {
            Some(node) => pick(node.text()?, &TAKES).map_err(|why| node.fault(why))?,
            None => Take::First,
        };
        let (scope, optional) = self.keeping(&mut table)?;
        let metric = self.metric(node.key, &mut table)?;
        table.close()?;
        Ok(Capture { from, regex, take, scope, optional, metric })
    }

    /// Parses `metric` of a capture, a key of journeys: a name, or `true` for the name of the
    /// capture. The journey finds its row.
    fn metric(
        &self,
        capture: &str,
        table: &mut Table<'_>,
    ) -> Result<Option<CaptureMetric>, ParseError> {
        if self.marks == Marks::Dollar {
            return Ok(None);
        }
        let Some(node) = table.take("metric") else { return Ok(None) };
        let name = match node.switch() {
            Some(true) => capture.to_owned(),
            Some(false) => return Ok(None),
            None => self.settled(&node)?,
        };
        if !is_metric_name(&name) {
            return Err(node.fault(METRIC_NAME_RULE));
        }
        Ok(Some(CaptureMetric { name, row: 0 }))
    }

    /// Reads keys of journeys: the lifetime of a value, and the effect if it is missing.
    fn keeping(&self, table: &mut Table<'_>) -> Result<(Scope, bool), ParseError> {
        if self.marks == Marks::Dollar {
            return Ok((Scope::User, false));
        }
        let scope = match table.take("scope") {
            Some(node) => pick(node.text()?, &SCOPES).map_err(|why| node.fault(why))?,
            None => Scope::default(),
        };
        let optional = table.take("optional").map(|node| node.flag()).transpose()?;
        Ok((scope, optional.unwrap_or(false)))
    }
}

pub(crate) const METRIC_NAME_RULE: &str =
    "a metric has a name without <, >, =, comma, colon or end of line";

/// Returns whether objectives can refer to a metric with this name.
pub(crate) fn is_metric_name(name: &str) -> bool {
    !name.trim().is_empty() && !name.contains(['\n', '<', '>', '=', ',', ':'])
}
