//! WebSockets as streams of HTTP/2 (RFC 8441).

use super::{
    Act, Breach, CANCEL, Defect, Defects, END_HEADERS, END_STREAM, Frames, HEADERS, Http2Request,
    OpenStream, PROTOCOL_ERROR, UNREAD_MAX, put_fields, request,
};
use crate::socket::{SOCKET, SocketConnection};
use protocol::hpack::Field;
use websocket::deflate;

/// SETTINGS_ENABLE_CONNECT_PROTOCOL (RFC 8441 section 3): extended CONNECT is accepted.
pub(super) const ENABLED: [u8; 6] = [0, 8, 0, 0, 0, 1];

/// Reaction to an extended CONNECT (RFC 8441 section 5).
enum Connected {
    /// It is malformed.
    Malformed,
    /// A status without content, and its fields.
    Refused(u16, Vec<(&'static str, String)>),
    Opened(Vec<(&'static str, String)>, Box<SocketConnection>),
}

/// Returns the reaction to a request over HTTP/2; `None` if it is not an extended CONNECT.
fn connect(fields: &[Field], defects: &Defects) -> Option<Connected> {
    let has = |defect| defects.contains(&defect);
    let value = |name: &str| {
        let found = fields.iter().find(|(known, _)| known == name.as_bytes());
        found.map(|(_, value)| String::from_utf8_lossy(value).into_owned())
    };
    let protocol = value(":protocol")?;
    let path = value(":path").unwrap_or_else(|| SOCKET.to_owned());
    if !is_extended_connect(fields) && !has(Defect::TakesBadConnect) {
        return Some(Connected::Malformed);
    }
    if protocol != "websocket" && !has(Defect::TunnelsAnyProtocol) {
        return Some(Connected::Refused(501, Vec::new()));
    }
    if path.split('?').next() != Some(SOCKET) {
        return Some(Connected::Refused(404, Vec::new()));
    }
    let count = |name: &str| fields.iter().filter(|(found, _)| found == name.as_bytes()).count();
    let version = value("sec-websocket-version").is_some_and(|version| version == "13");
    if (!version || count("sec-websocket-version") != 1) && !has(Defect::UpgradesAnyVersion) {
        let known = vec![("sec-websocket-version", "13".to_owned())];
        return Some(Connected::Refused(400, known));
    }
    let foreign = value("origin").is_some_and(|origin| {
        let host = value(":authority").unwrap_or_default();
        origin.split_once("://").is_none_or(|(_, rest)| rest != host)
    });
    if foreign && !has(Defect::UpgradesAnyOrigin) {
        return Some(Connected::Refused(403, Vec::new()));
    }
    let offers = value("sec-websocket-extensions");
    let agreed = offers.as_deref().and_then(|offers| deflate::choose([offers]));
    let mut answer = Vec::new();
    if let Some((chosen, _)) = &agreed {
        answer.push(("sec-websocket-extensions", chosen.value()));
    }
    if has(Defect::ChoosesAnyProtocol) {
        answer.push(("sec-websocket-protocol", "chosen".to_owned()));
    }
    if has(Defect::SendsUpgradeFields) {
        answer.push(("upgrade", "websocket".to_owned()));
        answer.push(("connection", "Upgrade".to_owned()));
    }
    let socket = Box::new(SocketConnection::new(defects, agreed.is_some()));
    Some(Connected::Opened(answer, socket))
}

/// Returns whether an extended CONNECT is well formed (RFC 8441 section 4): one :protocol before
/// the regular fields, and everything that another request needs.
fn is_extended_connect(fields: &[Field]) -> bool {
    let is_protocol = |(name, _): &&Field| name == b":protocol";
    let regular = fields.iter().position(|(name, _)| !name.starts_with(b":"));
    let pseudo = &fields[..regular.unwrap_or(fields.len())];
    let before = pseudo.iter().filter(is_protocol).count();
    let whole: Vec<Field> = fields.iter().filter(|field| !is_protocol(field)).cloned().collect();
    let named = fields.iter().find(is_protocol).is_some_and(|(_, value)| !value.is_empty());
    before == 1
        && named
        && fields.iter().filter(is_protocol).count() == 1
        && request::parse_request(&whole).is_some_and(|asked| asked.method == b"CONNECT")
}

impl Frames {
    /// Answers an extended CONNECT; returns false for other requests.
    pub(super) fn connect(
        &mut self,
        id: u32,
        ends: bool,
        fields: &[Field],
    ) -> Result<bool, Breach> {
        let (status, answer, socket) = match connect(fields, &self.defects) {
            None => return Ok(false),
            _ if self.has(Defect::AnnouncesNoTunnels) => {
                return Err(Breach::Stream(id, PROTOCOL_ERROR));
            }
            Some(Connected::Malformed) => return Err(Breach::Stream(id, PROTOCOL_ERROR)),
            Some(Connected::Refused(status, answer)) => (status, answer, None),
            Some(Connected::Opened(answer, socket)) => (200, answer, Some(socket)),
        };
        let mut block = Vec::new();
        protocol::hpack::literal(b":status", status.to_string().as_bytes(), &mut block);
        put_fields(&answer, &mut block);
        if socket.is_none() {
            self.ignore_content(id, ends);
            self.put(HEADERS, END_HEADERS | END_STREAM, id, &block);
            return Ok(true);
        }
        self.put(HEADERS, END_HEADERS, id, &block);
        let asked = Http2Request { method: b"CONNECT".to_vec(), path: Vec::new(), length: None };
        let stream = OpenStream {
            asked,
            got: 0,
            ended: false,
            window: self.initial,
            rest: Some(Vec::new()),
            call: None,
            socket,
            trailers: None,
            stays: true,
        };
        self.streams.insert(id, stream);
        if ends {
            self.take_socket_content(id, &[], true)?;
        }
        Ok(true)
    }

    /// Ignores data that the client still sends on a closed stream.
    fn ignore_content(&mut self, id: u32, ended: bool) {
        if !ended && self.unread.len() < UNREAD_MAX {
            self.unread.insert(id);
        }
    }

    /// Passes content to the WebSocket of a stream; returns false if it has none.
    pub(super) fn take_socket_content(
        &mut self,
        id: u32,
        content: &[u8],
        ends: bool,
    ) -> Result<bool, Breach> {
        let Some(stream) = self.streams.get_mut(&id) else { return Ok(false) };
        let Some(socket) = &mut stream.socket else { return Ok(false) };
        let mut acts = socket.receive(content);
        if socket.is_inside_frame() && self.defects.contains(&Defect::NeedsWholeFrames) {
            acts.extend(socket.refuse_part());
        }
        self.dead |= socket.dead;
        let failed = socket.is_over() && !ends && socket.has_failed();
        let rest = stream.rest.get_or_insert_default();
        for act in acts {
            if let Act::Send(bytes) = act {
                rest.extend(bytes);
            }
        }
        let is_over = socket.is_over();
        if failed && self.defects.contains(&Defect::FailsTogether) {
            return Err(Breach::Connection(PROTOCOL_ERROR));
        }
        if is_over || ends && !self.defects.contains(&Defect::IgnoresStreamEnd) {
            stream.stays = false;
            self.ignore_content(id, ends);
        }
        self.send();
        Ok(true)
    }

    /// Handles the reset of a stream.
    pub(super) fn reset_socket(&mut self, id: u32) -> Result<(), Breach> {
        let socket = self.streams.get(&id).and_then(|stream| stream.socket.as_ref());
        let inside = socket.is_some_and(|socket| socket.is_inside_frame());
        match inside && self.has(Defect::ClosesOnReset) {
            true => Err(Breach::Connection(CANCEL)),
            false => Ok(()),
        }
    }

    /// Returns whether a WebSocket that waits for its window stops this stream, with that defect.
    pub(super) fn is_blocked(&self, id: u32) -> bool {
        let waits = |(other, stream): (&u32, &OpenStream)| {
            let full =
                stream.window <= 0 && stream.rest.as_ref().is_some_and(|one| !one.is_empty());
            *other != id && stream.socket.is_some() && full
        };
        self.has(Defect::BlocksOnWindow) && self.streams.iter().any(waits)
    }
}
