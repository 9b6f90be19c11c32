//! HTTP samplers.

use super::DraftReader;
use super::elements::{Element, elements, property};
use super::scope::JmxScope;
use crate::draft::*;
use crate::place::tidy;
use crate::postman::{form, multipart};
use crate::text::Text;
use units::Nanos;

impl DraftReader<'_> {
    pub(super) fn sampler(&mut self, element: &Element<'_, '_>, scope: &JmxScope) -> DraftStep {
        let inner = match element.tree {
            Some(tree) => self.scope(&elements(tree), scope),
            None => scope.clone(),
        };
        self.pauses.push(inner.pause);
        let line = self.line(element.node);
        let value = |name: &str| {
            let own = element.text(name);
            if own.is_empty() { inner.defaults.get(name).cloned().unwrap_or_default() } else { own }
        };
        let method = element.text("HTTPSampler.method").to_ascii_uppercase();
        let mut step = DraftStep {
            name: if element.name().is_empty() {
                format!("request at line {line}")
            } else {
                element.name().to_owned()
            },
            line,
            comments: vec![format!("line {line}")],
            method: if method.is_empty() { "GET".to_owned() } else { method },
            headers: inner.headers.clone(),
            user: inner.user.clone(),
            expect: inner.expect.clone(),
            captures: inner.captures.clone(),
            ..DraftStep::default()
        };
        step.url = self.url(element, &value);
        self.settings(element, &value);
        self.body(element, &mut step);
        for (key, why) in [
            (
                "HTTPSampler.embedded_url_re",
                "images and scripts of pages are not fetched; crawl the site for a list",
            ),
            ("HTTPSampler.ipSource", "use --bind"),
            ("HTTPSampler.proxyHost", "use --proxy"),
        ] {
            if !value(key).is_empty() {
                self.leave_out(element, &format!("{key}: {why}"));
            }
        }
        if element.is_true("HTTPSampler.image_parser") {
            self.leave_out(element, "image_parser: images and scripts of pages are not fetched");
        }
        step
    }

    fn url(&mut self, element: &Element<'_, '_>, value: &dyn Fn(&str) -> String) -> Text {
        let path = value("HTTPSampler.path");
        let path_text = self.text(&path, element.node);
        let mut url = Text::default();
        if !path.starts_with("http://") && !path.starts_with("https://") {
            let domain = value("HTTPSampler.domain");
            if !domain.is_empty() {
                let port = value("HTTPSampler.port");
                let protocol = value("HTTPSampler.protocol");
                let scheme = match protocol.as_str() {
                    "" if port == "443" => "https",
                    "" => "http",
                    other => other,
                };
                // a domain is sometimes given with its scheme
                if !domain.contains("://") {
                    let scheme = self.text(&scheme.to_ascii_lowercase(), element.node);
                    url.append(scheme);
                    url.push_str("://");
                }
                let domain = self.text(domain.trim_end_matches('/'), element.node);
                url.append(domain);
                let usual = matches!((scheme, port.as_str()), ("http", "80") | ("https", "443"));
                if !port.is_empty() && !usual {
                    let port = self.text(&port, element.node);
                    url.push_str(":");
                    url.append(port);
                }
            }
            if !path_text.beginning().starts_with('/') {
                url.push_str("/");
            }
        }
        url.append(path_text);
        let method = element.text("HTTPSampler.method");
        let in_query = ["", "GET", "HEAD", "DELETE", "OPTIONS"].contains(&method.as_str());
        if in_query && !element.is_true("HTTPSampler.postBodyRaw") {
            self.query(element, &mut url);
        }
        tidy(url)
    }

    /// Reads the parameters of a request without a body. Values that are not encoded yet are
    /// encoded here.
    fn query(&mut self, element: &Element<'_, '_>, url: &mut Text) {
        let mut asked = element.text("HTTPSampler.path").contains('?');
        for (name, value, node) in element.variables("HTTPsampler.Arguments") {
            let encoded = property(node, "HTTPArgument.always_encode").and_then(|it| it.text())
                == Some("true");
            let value = self.text(&value, node).map_plain(|text| match encoded {
                true => url::form_urlencoded::byte_serialize(text.as_bytes()).collect(),
                false => text.to_owned(),
            });
            let name = self.text(&name, node);
            url.push_str(if asked { "&" } else { "?" });
            asked = true;
            let nameless = name.is_empty();
            url.append(name);
            url.push_str(if nameless { "" } else { "=" });
            url.append(value);
        }
    }

    /// Reads settings of samplers that apply to the whole plan here.
    fn settings(&mut self, element: &Element<'_, '_>, value: &dyn Fn(&str) -> String) {
        let follow = element.is_true("HTTPSampler.follow_redirects")
            || element.is_true("HTTPSampler.auto_redirects");
        if follow {
            self.draft.settings.follow = Some(5);
        }
        if element.text("HTTPSampler.use_keepalive") == "false" {
            self.draft.settings.close = true;
        }
        let mut time = |name: &str| {
            let text = self.settled(&value(name), element);
            let millis = text.parse::<f64>().ok().filter(|ms| *ms >= 1.0 && *ms < 8.64e7);
            millis.map(|ms| Nanos((ms * 1e6) as u64))
        };
        let (connect, response) =
            (time("HTTPSampler.connect_timeout"), time("HTTPSampler.response_timeout"));
        let settings = &mut self.draft.settings;
        settings.connect_timeout = connect.or(settings.connect_timeout);
        settings.timeout = response.or(settings.timeout);
    }

    fn body(&mut self, element: &Element<'_, '_>, step: &mut DraftStep) {
        let arguments = element.variables("HTTPsampler.Arguments");
        let graphql = element.gui() == "GraphQLHTTPSamplerGui";
        if element.is_true("HTTPSampler.postBodyRaw") || graphql {
            let mut body = Text::default();
            for (_, value, node) in &arguments {
                let value = self.text(value, *node);
                body.append(value);
            }
            if !body.is_empty() {
                let like_json = body.beginning().trim_start().starts_with(['{', '[']);
                step.body = Body::Text(body);
                if !step.has_header("content-type") {
                    // JMeter sends a raw body as a form unless a header overrides that
                    let media = if like_json {
                        "application/json"
                    } else {
                        "application/x-www-form-urlencoded"
                    };
                    step.set_header("Content-Type", Text::plain(media));
                }
            }
            return;
        }
        let files = self.uploads(element);
        let multipart_form = element.is_true("HTTPSampler.DO_MULTIPART_POST");
        let in_query = ["GET", "HEAD", "DELETE", "OPTIONS"].contains(&step.method.as_str());
        if in_query || arguments.is_empty() && files.is_empty() {
            return;
        }
        let mut fields = Vec::new();
        for (name, value, node) in &arguments {
            fields.push((name.clone(), self.text(value, *node)));
        }
        let nameless = fields.len() == 1 && fields[0].0.is_empty();
        step.body = match () {
            () if multipart_form || !files.is_empty() => {
                step.headers.retain(|(name, _)| !name.eq_ignore_ascii_case("content-type"));
                multipart(fields, files, step.line, &mut self.draft.left_out)
            }
            // old plans have a raw body as an argument without a name
            () if nameless => Body::Text(fields.remove(0).1),
            () => form(fields, step),
        };
    }

    fn uploads(&mut self, element: &Element<'_, '_>) -> Vec<FormUpload> {
        let Some(files) = element.property("HTTPsampler.Files") else { return Vec::new() };
        let Some(list) = property(files, "HTTPFileArgs.files") else { return Vec::new() };
        let mut all = Vec::new();
        for node in list.children().filter(roxmltree::Node::is_element) {
            let text = |name: &str| {
                property(node, name).and_then(|it| it.text()).unwrap_or_default().to_owned()
            };
            let (path, field) = (text("File.path"), text("File.paramname"));
            let media = text("File.mimetype");
            match self.request.read(&path) {
                Ok((path, _)) => all.push(FormUpload {
                    field: if field.is_empty() { "file".to_owned() } else { field },
                    file: path,
                    media_type: Some(media).filter(|it| !it.is_empty()),
                }),
                Err(why) => self.leave_out(element, &format!("upload of {path}: {why}")),
            }
        }
        all
    }
}
