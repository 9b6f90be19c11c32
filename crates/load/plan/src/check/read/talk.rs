//! A WebSocket: the request that opens it, and the moves on it.

use super::super::model::{Ask, Body, Content, TalkMove, Wanted};
use super::super::node::{Node, Table};
use super::Reader;
use crate::HttpVersion;
use units::ParseError;

/// Maximum number of messages that one move or step waits for.
const MESSAGES_MAX: u32 = 1_000_000;
/// Maximum number of moves on one WebSocket.
const MOVES_MAX: usize = 10_000;
/// Status of a completed upgrade (RFC 9110 section 15.2.2).
const SWITCHING: u16 = 101;
/// Close code of an ordinary end.
const NORMAL: u16 = 1000;

/// A message to send: text or JSON, bytes as base64, or the content of a file.
#[derive(Debug)]
pub(crate) enum SentNode<'a> {
    Text(Node<'a>),
    Base64(Node<'a>),
    File(Node<'a>),
}

impl<'a> SentNode<'a> {
    /// Takes all keys with a message out of a table; at most one may be given.
    pub(crate) fn take(table: &mut Table<'a>) -> Vec<SentNode<'a>> {
        let text = table.take("send").map(SentNode::Text);
        let base64 = table.take("send-base64").map(SentNode::Base64);
        let file = table.take("send-file").map(SentNode::File);
        [text, base64, file].into_iter().flatten().collect()
    }
}

impl Reader<'_> {
    /// Reads the request that opens a WebSocket at `url`, and the moves on it.
    pub(super) fn talk(&self, url: &Node<'_>, table: &mut Table<'_>) -> Result<Ask, ParseError> {
        let talk = match table.take("talk") {
            Some(node) => self.moves(&node)?,
            None => vec![TalkMove::Close(NORMAL)],
        };
        let mut ask = self.read_ask(url, table, false)?;
        if ask.method != "GET" || ask.body != Body::None || ask.close {
            let why =
                "connect sends a GET without a body; to close the WebSocket, put close into talk";
            return Err(table.fault(why));
        }
        match ask.version {
            HttpVersion::Http2 | HttpVersion::Http3 => {}
            HttpVersion::Http11 | HttpVersion::Auto => ask.version = HttpVersion::Http11,
            HttpVersion::Http10 => {
                return Err(table.fault(
                    "HTTP/1.0 has no WebSockets; add http = \"1.1\", \"2\" or \"3\" to the step, or \
                     drop --http",
                ));
            }
        }
        if ask.expect.statuses.is_empty() && ask.expect.outcome == Wanted::Response {
            ask.expect.statuses.push((SWITCHING, SWITCHING));
        }
        Ok(Ask { talk, ..ask })
    }

    fn moves(&self, node: &Node<'_>) -> Result<Vec<TalkMove>, ParseError> {
        let mut moves = Vec::new();
        for mut table in node.tables()? {
            if matches!(moves.last(), Some(TalkMove::Close(_) | TalkMove::Closed(_))) {
                return Err(table.fault("the WebSocket is closed before this move"));
            }
            if moves.len() >= MOVES_MAX {
                return Err(table.fault(format!("talk has more than {MOVES_MAX} moves")));
            }
            let before = moves.len();
            let sent = SentNode::take(&mut table);
            for node in &sent {
                moves.push(TalkMove::Send(self.message(node)?));
            }
            if let Some(node) = table.take("expect") {
                let mut awaited = node.table()?;
                let (matching, count) = self.awaited(&mut awaited)?;
                awaited.close()?;
                moves.push(TalkMove::Expect { matching, count });
            }
            let close = table.take("close").map(|node| self.close_code(&node)).transpose()?;
            moves.extend(close.map(TalkMove::Close));
            let closed = table.take("closed").map(|node| self.number(&node)).transpose()?;
            moves.extend(closed.map(TalkMove::Closed));
            let count = moves.len() - before;
            let answered = sent.len() == 1 && matches!(moves.last(), Some(TalkMove::Expect { .. }));
            if count != 1 && !(count == 2 && answered) {
                return Err(table.fault(
                    "a move is one of send (with or without expect), send-base64, send-file, expect, \
                     close and closed",
                ));
            }
            table.close()?;
        }
        if !matches!(moves.last(), Some(TalkMove::Close(_) | TalkMove::Closed(_))) {
            moves.push(TalkMove::Close(NORMAL));
        }
        Ok(moves)
    }

    /// Reads the content of a message.
    pub(crate) fn message(&self, node: &SentNode<'_>) -> Result<Body, ParseError> {
        match node {
            SentNode::Text(node) if node.is_text() => self.template(node).map(Body::Text),
            SentNode::Text(node) => self.json_template(node).map(Body::Json),
            SentNode::Base64(node) => self.base64(node).map(Body::Bytes),
            SentNode::File(node) => self.file(node).map(Body::Bytes),
        }
    }

    /// Reads `match` and `count` of expected messages.
    pub(crate) fn awaited(&self, table: &mut Table<'_>) -> Result<(Content, u32), ParseError> {
        let matching = table.take("match").map(|node| self.content(&node)).transpose()?;
        let count = table.take("count").map(|node| self.number(&node)).transpose()?.unwrap_or(1);
        if !(1..=MESSAGES_MAX).contains(&count) {
            return Err(table.fault(format!("count is {count}; give 1 to {MESSAGES_MAX}")));
        }
        Ok((matching.unwrap_or_default(), count))
    }

    /// Reads a close code that the client sends; `true` means 1000.
    pub(crate) fn close_code(&self, node: &Node<'_>) -> Result<u16, ParseError> {
        let code = match node.switch() {
            Some(true) => NORMAL,
            Some(false) => return Err(node.fault("write close = 1000, or drop it")),
            None => self.number(node)?,
        };
        parse_close_code(code).map_err(|why| node.fault(why))
    }
}

/// Checks that a client may send the code (RFC 6455 section 7.4).
fn parse_close_code(code: u16) -> Result<u16, ParseError> {
    match code {
        1000 | 1001 | 1003 | 1007..=1011 | 3000..=4999 => Ok(code),
        _ => Err(ParseError(format!(
            "{code} is not a code that a client may send: write 1000, or one from 3000 to 4999 \
             (RFC 6455 section 7.4)"
        ))),
    }
}
