//! Steps on a WebSocket: `connect`, `send`, `expect` and `close`.

use super::super::sockets::{MessageRule, SocketStep};
use super::JourneyReader;
use crate::HttpVersion;
use crate::check::node::{Node, Table};
use crate::check::read::SentNode;
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

impl<'a> SocketKey<'a> {
    /// Takes the key out of the table of a step without `url`; `None` if it is absent.
    pub(super) fn take(table: &mut Table<'a>) -> Result<Option<SocketKey<'a>>, ParseError> {
        let connect = table.take("connect").map(SocketKey::Connect);
        let sent = SentNode::take(table).into_iter().map(SocketKey::Send);
        let close = table.take("close").map(SocketKey::Close);
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
                let ask = self.read_ask(&url, table)?;
                if ask.method != "GET" || ask.body != Body::None {
                    return Err(table.fault("the upgrade to WebSocket is a GET without a body"));
                }
                self.socket_url = Some(ask.url.clone());
                (SocketStep::Connect, ask)
            }
            SocketKey::Send(node) => {
                let body = self.reader.message(&node)?;
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
                let code = self.reader.close_code(&node)?;
                (SocketStep::Close { code }, self.message_ask(table, Body::None, None)?)
            }
        };
        let takes_captures = matches!(socket, SocketStep::Connect) || socket.rule().is_some();
        if !takes_captures && !ask.capture.is_empty() {
            return Err(table.fault("capture needs a message: add expect, or drop it"));
        }
        Ok((socket, ask))
    }

    /// Reads `expect` of a message.
    fn message_rule(&self, node: &Node<'_>) -> Result<(MessageRule, Expect), ParseError> {
        let mut table = node.table()?;
        let (matching, count) = self.reader.awaited(&mut table)?;
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
        Ok((MessageRule { matching, count, timeout }, expect))
    }

    /// Reads the request fields of a step on an open WebSocket.
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

/// Returns a request of which only the URL is known.
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
        talk: Vec::new(),
    }
}
