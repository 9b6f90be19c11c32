//! Steps on a WebSocket: `connect`, `send`, `expect` and `close`.

use super::super::sockets::{COUNT_MAX, MessageRule, SocketStep, parse_close_code};
use super::JourneyReader;
use crate::HttpVersion;
use crate::check::node::{Node, Table};
use crate::check::{Ask, Body, Expect, Text, Wanted};
use units::{Nanos, ParseError};

/// The key that determines the action of a step on a WebSocket.
#[derive(Debug)]
pub(super) enum SocketKey<'a> {
    Connect(Node<'a>),
    Send(SentNode<'a>),
    Expect,
    Close(Node<'a>),
}

/// A message to send: text or JSON, bytes as base64, or the content of a file.
#[derive(Debug)]
pub(super) enum SentNode<'a> {
    Text(Node<'a>),
    Base64(Node<'a>),
    File(Node<'a>),
}

impl<'a> SocketKey<'a> {
    /// Takes the key out of the table of a step without `url`; `None` if it is absent.
    pub(super) fn take(table: &mut Table<'a>) -> Result<Option<SocketKey<'a>>, ParseError> {
        let connect = table.take("connect").map(SocketKey::Connect);
        let text = table.take("send").map(SentNode::Text);
        let base64 = table.take("send-base64").map(SentNode::Base64);
        let file = table.take("send-file").map(SentNode::File);
        let close = table.take("close").map(SocketKey::Close);
        let sent = [text, base64, file].into_iter().flatten().map(SocketKey::Send);
        let mut found = sent.chain(connect).chain(close);
        let first = found.next();
        if found.next().is_some() {
            return Err(table.fault("give one of connect, send, send-base64, send-file and close"));
        }
        let awaits = first.is_none() && table.find("expect").is_some();
        Ok(first.or(awaits.then_some(SocketKey::Expect)))
    }
}

impl JourneyReader<'_> {
    /// Reads the step of a table that `key` was taken from; the caller reads guard, pause and
    /// names.
    pub(super) fn socket_step(
        &mut self,
        key: SocketKey<'_>,
        table: &mut Table<'_>,
    ) -> Result<(SocketStep, Ask), ParseError> {
        let (socket, ask) = match key {
            SocketKey::Connect(url) => {
                let ask = self.ask(&url, table)?;
                if ask.method != "GET" || ask.body != Body::None {
                    return Err(table.fault("the upgrade to WebSocket is a GET without a body"));
                }
                self.socket_url = Some(ask.url.clone());
                (SocketStep::Connect, ask)
            }
            SocketKey::Send(node) => {
                let body = self.message(&node)?;
                let answer =
                    table.take("expect").map(|node| self.message_rule(&node)).transpose()?;
                let (rule, expect) = answer.unzip();
                let ask = self.message_ask(table, body, expect)?;
                (SocketStep::Send { answer: rule }, ask)
            }
            SocketKey::Expect => {
                let Some(node) = table.take("expect") else {
                    return Err(table.fault("expect is missing"));
                };
                let (rule, expect) = self.message_rule(&node)?;
                (SocketStep::Expect(rule), self.message_ask(table, Body::None, Some(expect))?)
            }
            SocketKey::Close(node) => {
                let code = match node.switch() {
                    Some(true) => 1000,
                    Some(false) => return Err(node.fault("write close = 1000, or drop the step")),
                    None => self.reader.number(&node)?,
                };
                let code = parse_close_code(code).map_err(|why| node.fault(why))?;
                (SocketStep::Close { code }, self.message_ask(table, Body::None, None)?)
            }
        };
        let takes_captures = matches!(socket, SocketStep::Connect) || socket.rule().is_some();
        if !takes_captures && !ask.capture.is_empty() {
            return Err(table.fault("capture needs a message: add expect, or drop it"));
        }
        Ok((socket, ask))
    }

    fn message(&self, node: &SentNode<'_>) -> Result<Body, ParseError> {
        match node {
            SentNode::Text(node) if node.is_text() => self.reader.template(node).map(Body::Text),
            SentNode::Text(node) => self.reader.json_template(node).map(Body::Json),
            SentNode::Base64(node) => self.reader.base64(node).map(Body::Bytes),
            SentNode::File(node) => self.reader.file(node).map(Body::Bytes),
        }
    }

    /// `expect` of a message.
    fn message_rule(&self, node: &Node<'_>) -> Result<(MessageRule, Expect), ParseError> {
        let mut table = node.table()?;
        let matching = table.take("match").map(|node| self.reader.content(&node)).transpose()?;
        let count = table.take("count").map(|node| self.reader.number(&node)).transpose()?;
        let count = count.unwrap_or(1);
        if !(1..=COUNT_MAX).contains(&count) {
            return Err(table.fault(format!("count is {count}; give 1 to {COUNT_MAX}")));
        }
        let timeout = table.take("timeout").map(|node| self.reader.duration(&node)).transpose()?;
        if timeout == Some(Nanos::ZERO) {
            return Err(table.fault("a timeout of 0 leaves no time for a message"));
        }
        let expect = self.reader.expectations_in(&mut table)?;
        table.close()?;
        if !expect.statuses.is_empty()
            || !expect.headers.is_empty()
            || expect.outcome != Wanted::Response
        {
            return Err(
                node.fault("a message has no status, headers or outcome: give match or body")
            );
        }
        Ok((MessageRule { matching: matching.unwrap_or_default(), count, timeout }, expect))
    }

    /// Request fields of a step on an open WebSocket.
    fn message_ask(
        &self,
        table: &mut Table<'_>,
        body: Body,
        expect: Option<Expect>,
    ) -> Result<Ask, ParseError> {
        let Some(url) = self.socket_url.clone() else {
            return Err(table.fault("no step before it in this journey has connect = \"URL\""));
        };
        let capture = table.take("capture").map(|node| self.reader.captures(&node)).transpose()?;
        Ok(Ask {
            body,
            expect: expect.unwrap_or_default(),
            capture: capture.unwrap_or_default(),
            ..bare_ask(url)
        })
    }
}

/// A request of which only the URL is known.
pub(super) fn bare_ask(url: Text) -> Ask {
    Ask {
        method: "GET".to_owned(),
        url,
        query: Vec::new(),
        headers: Vec::new(),
        body: Body::None,
        user: None,
        jar: None,
        version: HttpVersion::Http11,
        close: false,
        timeout: Nanos::NEVER,
        expect: Expect::default(),
        capture: Vec::new(),
    }
}
