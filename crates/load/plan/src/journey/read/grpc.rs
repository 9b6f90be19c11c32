//! Steps that are gRPC calls: `grpc` and `message`.

use super::super::model::JourneyStep;
use super::JourneyReader;
use crate::check::node::{Node, Table};
use crate::check::{Body, Fill, Text};
use crate::grpc::add_fields;
use crate::{GrpcStep, GrpcVariant, StepStream, Streaming, http_url};
use units::{ParseError, quoted};

impl JourneyReader<'_> {
    /// Reads the step of a table with `grpc`; the caller reads guard and names.
    pub(super) fn grpc_step(
        &mut self,
        table: &mut Table<'_>,
        (name, line): (String, usize),
    ) -> Result<JourneyStep, ParseError> {
        let Some(node) = table.take("grpc") else { return Err(table.fault("grpc is missing")) };
        let url = method_url(&self.reader.settled(&node)?).map_err(|why| node.fault(why))?;
        for (key, why) in [
            ("method", "a call of gRPC is a POST"),
            ("query", "the method's path has no query"),
            ("stream", "the messages of its response are a stream already"),
        ] {
            if let Some(node) = table.find(key) {
                return Err(node.fault(format!("{why}; drop it")));
            }
        }
        let think = self.think(table)?;
        let once = table.flag("once")?;
        let message = table.take("message").map(|node| self.grpc_message(&node)).transpose()?;
        let status = match table.take("grpc-status") {
            Some(node) => protocol::grpc::expected_codes(&self.reader.settled(&node)?)
                .map_err(|why| node.fault(why))?,
            None => Vec::new(),
        };
        let mut ask = self.read_ask(&node, table)?;
        if ask.body != Body::None {
            return Err(table.fault("the body of a call of gRPC is its message; give message"));
        }
        ask.method = "POST".to_owned();
        ask.url = Text::plain(url);
        ask.body = message.map_or(Body::None, Body::Json);
        add_fields(&mut ask.headers, GrpcVariant::Grpc);
        let stream = StepStream::Yes(Streaming::Grpc);
        let grpc = Some(GrpcStep { status });
        Ok(JourneyStep { think, once, stream, grpc, ..JourneyStep::new(name, line, ask) })
    }

    /// Returns a table or list, or a text that is JSON once its values are inserted.
    fn grpc_message(&self, node: &Node<'_>) -> Result<Text, ParseError> {
        match node.is_text() {
            true => self.reader.fill(node, node.text()?, Fill::Json),
            false => self.reader.json_template(node),
        }
    }
}

/// Returns the URL of `package.Service/Method`, or of a method on another server.
fn method_url(text: &str) -> Result<String, String> {
    let whole = http_url(text);
    let path = match &whole {
        Some(url) => url.splitn(4, '/').nth(3).unwrap_or_default(),
        None => text.trim_start_matches('/'),
    };
    let named = path.split_once('/').is_some_and(|(service, method)| {
        !service.is_empty() && !method.is_empty() && !method.contains(['/', '?', '#'])
    });
    if !named || (whole.is_none() && text.contains("://")) {
        return Err(format!(
            "{} names no method; write \"package.Service/Method\", or \
             \"grpc://host:port/package.Service/Method\"",
            quoted(text)
        ));
    }
    Ok(whole.clone().unwrap_or_else(|| format!("/{path}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_method_is_a_path_or_a_url() {
        assert_eq!(method_url("a.B/C").as_deref(), Ok("/a.B/C"));
        assert_eq!(method_url("/a.B/C").as_deref(), Ok("/a.B/C"));
        assert_eq!(method_url("grpcs://h:1/a.B/C").as_deref(), Ok("https://h:1/a.B/C"));
        for bad in ["", "a.B", "a.B.C", "http://h/a.B/C", "grpc://h:1/a.B", "a.B/C/D", "a.B/C?x"] {
            assert!(method_url(bad).is_err(), "{bad}");
        }
    }
}
