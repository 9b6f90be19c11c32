//! One request of a step.

use super::super::model::{Ask, Body, Capture, CaptureFrom, Upload, UploadContent};
use super::super::node::{Node, Table, pick};
use super::super::text::Text;
use super::Reader;
use crate::HttpVersion;
use units::{Nanos, ParseError, quoted};

/// The jar of steps that name none.
pub(super) const JAR: &str = "plan";
/// Bytes of one uploaded file at most.
const UPLOAD_MAX: u64 = 256 << 20;
const VERSIONS: [(&str, HttpVersion); 2] =
    [("1.0", HttpVersion::Http10), ("1.1", HttpVersion::Http11)];

/// `false` for no cookies, or the name of a jar.
pub(super) fn jar(node: &Node<'_>) -> Result<Option<String>, ParseError> {
    match node.switch() {
        Some(true) => Ok(Some(JAR.to_owned())),
        Some(false) => Ok(None),
        None => node.text().map(|name| Some(name.to_owned())),
    }
}

impl Reader<'_> {
    /// The request whose `url` was found; takes its keys out of the table. `close` unless the table
    /// says otherwise.
    pub(super) fn ask(
        &self,
        url: &Node<'_>,
        table: &mut Table<'_>,
        close: bool,
    ) -> Result<Ask, ParseError> {
        let url = self.template(url)?;
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
            return Err(table.fault("a timeout of nothing leaves no time for an answer"));
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
            version: version.unwrap_or(HttpVersion::Http11),
            close,
            timeout: timeout.unwrap_or(self.timeout),
            expect,
            capture: capture.unwrap_or_default(),
        })
    }

    fn method(&self, node: &Node<'_>) -> Result<String, ParseError> {
        let method = self.settled(node)?;
        // CONNECT makes a tunnel: there is no answer to look at
        if method.eq_ignore_ascii_case("CONNECT") {
            return Err(node.fault("CONNECT opens a tunnel and cannot be checked"));
        }
        Ok(method)
    }

    fn version(&self, node: &Node<'_>) -> Result<HttpVersion, ParseError> {
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

    /// A table of texts, in the order of the file.
    fn pairs(&self, node: &Node<'_>) -> Result<Vec<(String, Text)>, ParseError> {
        let rows = node.table()?.rest();
        rows.iter().map(|row| Ok((row.key.to_owned(), self.template(row)?))).collect()
    }

    /// Header fields without `false`.
    pub(super) fn headers(&self, node: &Node<'_>) -> Result<Vec<(String, Text)>, ParseError> {
        let changes = self.header_changes(node)?;
        Ok(changes.into_iter().filter_map(|(name, value)| Some((name, value?))).collect())
    }

    /// Header fields; `None` leaves a default of the plan out.
    fn header_changes(&self, node: &Node<'_>) -> Result<Vec<(String, Option<Text>)>, ParseError> {
        let rows = node.table()?.rest();
        let row = |row: &Node<'_>| match row.switch() {
            Some(false) => Ok((row.key.to_owned(), None)),
            _ => Ok((row.key.to_owned(), Some(self.template(row)?))),
        };
        rows.iter().map(row).collect()
    }

    /// The plan's fields with the step's in place of those of the same name.
    fn merged(&self, given: Vec<(String, Option<Text>)>) -> Vec<(String, Text)> {
        let replaced = |name: &str| given.iter().any(|(known, _)| known.eq_ignore_ascii_case(name));
        let kept = self.headers.iter().filter(|(name, _)| !replaced(name)).cloned();
        let mut all: Vec<(String, Text)> = kept.collect();
        all.extend(given.into_iter().filter_map(|(name, value)| Some((name, value?))));
        all
    }

    fn body(&self, table: &mut Table<'_>) -> Result<Body, ParseError> {
        let given = [table.take("body"), table.take("body-file")];
        let (form, upload) = (table.take("form"), table.take("upload"));
        let form_given = form.is_some() || upload.is_some();
        match (given, form_given) {
            ([None, None], false) => Ok(Body::None),
            ([Some(text), None], false) => self.template(&text).map(Body::Text),
            ([None, Some(path)], false) => self.file(&path).map(Body::Bytes),
            ([None, None], true) => {
                let fields = form.map(|node| self.pairs(&node)).transpose()?.unwrap_or_default();
                let Some(upload) = upload else { return Ok(Body::Form(fields)) };
                let files = upload.tables()?;
                let files = files.into_iter().map(|table| self.upload(table));
                Ok(Body::Multipart(fields, files.collect::<Result<_, _>>()?))
            }
            _ => Err(table.fault("give one of body, body-file and form (with or without upload)")),
        }
    }

    fn file(&self, node: &Node<'_>) -> Result<Vec<u8>, ParseError> {
        self.files.read(&self.settled(node)?).map_err(|why| node.fault(why))
    }

    fn upload(&self, mut table: Table<'_>) -> Result<Upload, ParseError> {
        let Some(field) = table.take("field") else {
            return Err(table.fault("it has no field; name the form's field"));
        };
        let field = self.settled(&field)?;
        let path = table.take("file");
        let text = table.take("text");
        let times = table.take("times").map(|node| self.number(&node)).transpose()?;
        let name = table.take("name").map(|node| self.settled(&node)).transpose()?;
        let media_type = table.take("type").map(|node| self.settled(&node)).transpose()?;
        let called = path.as_ref().map(|node| self.settled(node)).transpose()?;
        let content = match (path, text) {
            (Some(path), None) if times.is_none() => UploadContent::Bytes(self.file(&path)?),
            (None, Some(text)) => {
                let times: u32 = times.unwrap_or(1);
                if text.typed()?.len() as u64 * u64::from(times) > UPLOAD_MAX {
                    return Err(text.fault("so many times over it is longer than 256 MiB"));
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

    fn captures(&self, node: &Node<'_>) -> Result<Vec<(String, Capture)>, ParseError> {
        let rows = node.table()?.rest();
        rows.iter().map(|row| Ok((row.key.to_owned(), self.capture(row)?))).collect()
    }

    fn capture(&self, node: &Node<'_>) -> Result<Capture, ParseError> {
        if self.vars.contains_key(node.key) {
            let name = quoted(node.key);
            return Err(node.fault(format!("{name} is a variable of [vars]; capture another name")));
        }
        let mut table = node.table()?;
        let header = table.take("header");
        let json = table.take("json");
        let regex = table.take("regex").map(|node| self.pattern(&node)).transpose()?;
        let from = match (header, json) {
            (Some(header), None) => CaptureFrom::Header(self.settled(&header)?),
            (None, Some(pointer)) => CaptureFrom::Json(super::expect::pointer(&pointer)?),
            (None, None) if regex.is_some() => CaptureFrom::Body,
            _ => return Err(table.fault("give header, json or regex to say where it comes from")),
        };
        table.close()?;
        Ok(Capture { from, regex })
    }
}
