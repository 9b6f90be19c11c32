//! Encoding of segments with arbitrary fields, and their readable form.

use super::PacketKind;
use std::fmt::Write;
use tcp::{Flow, Head, flag};

/// Header and content of an outgoing segment, which may be invalid.
#[derive(Clone, Debug, Default)]
pub(super) struct RawSegment {
    pub seq: u32,
    pub ack: u32,
    pub flags: u8,
    pub window: u16,
    pub urgent: u16,
    pub reserved: u8,
    /// Declared header size in words, if different from the real one.
    pub offset: Option<u8>,
    /// Options, a multiple of four bytes.
    pub options: Vec<u8>,
    pub payload: Vec<u8>,
    pub wrong_sum: bool,
    /// Retransmitted if unacknowledged, as a well-behaved client does.
    pub keep: bool,
}

/// Value that corrupts a checksum.
const TURN: u16 = 0x5555;

impl RawSegment {
    /// Returns its size in sequence space: content, SYN and FIN.
    pub(super) fn span(&self) -> u32 {
        let ends = u32::from(self.flags & flag::SYN != 0) + u32::from(self.flags & flag::FIN != 0);
        self.payload.len() as u32 + ends
    }

    /// Returns the IP packet.
    pub(super) fn packet(&self, flow: &Flow) -> Option<Vec<u8>> {
        let mut out = Vec::with_capacity(20 + self.options.len() + self.payload.len());
        out.extend_from_slice(&flow.from.port.to_be_bytes());
        out.extend_from_slice(&flow.to.port.to_be_bytes());
        out.extend_from_slice(&self.seq.to_be_bytes());
        out.extend_from_slice(&self.ack.to_be_bytes());
        let words = self.offset.unwrap_or((5 + self.options.len() / 4) as u8);
        out.extend_from_slice(&[words << 4 | self.reserved << 1, self.flags]);
        out.extend_from_slice(&self.window.to_be_bytes());
        out.extend_from_slice(&[0, 0]);
        out.extend_from_slice(&self.urgent.to_be_bytes());
        out.extend_from_slice(&self.options);
        out.extend_from_slice(&self.payload);
        let turn = if self.wrong_sum { TURN } else { 0 };
        tcp::raw_packet(flow.from.address, flow.to.address, out, turn)
    }

    /// Formats `PA 1:17(16) ack 1 win 100`: numbers are relative to the initial ones.
    pub(super) fn line(&self, iss: u32, irs: u32) -> String {
        let base = if self.flags & flag::SYN != 0 { self.seq } else { iss };
        let shown = SegmentLine {
            flags: self.flags,
            seq: self.seq.wrapping_sub(base),
            length: self.payload.len(),
            ack: self.ack.wrapping_sub(irs),
            window: self.window,
        };
        let mut line = shown.line();
        let more = [
            (self.urgent != 0).then(|| format!(" urg {}", self.urgent)),
            (self.reserved != 0).then(|| format!(" reserved {}", self.reserved)),
            self.offset.map(|words| format!(" offset {words}")),
            (!self.options.is_empty()).then(|| format!(" options {}", units::hex(&self.options))),
            self.wrong_sum.then(|| " wrong checksum".to_owned()),
        ];
        line.extend(more.into_iter().flatten());
        line
    }
}

struct SegmentLine {
    flags: u8,
    seq: u32,
    length: usize,
    ack: u32,
    window: u16,
}

impl SegmentLine {
    fn line(&self) -> String {
        let all = [
            (flag::FIN, 'F'),
            (flag::SYN, 'S'),
            (flag::RST, 'R'),
            (flag::PSH, 'P'),
            (flag::ACK, 'A'),
            (flag::URG, 'U'),
            (flag::ECE, 'E'),
            (flag::CWR, 'C'),
        ];
        let mut line: String = all
            .iter()
            .filter(|(bit, _)| self.flags & bit != 0)
            .map(|(_, letter)| *letter)
            .collect();
        if line.is_empty() {
            line.push('-');
        }
        let end = self.seq.wrapping_add(self.length as u32);
        write!(line, " {}:{end}({})", self.seq, self.length).expect(
            "writing to a String cannot \
            fail",
        );
        if self.flags & flag::ACK != 0 {
            write!(line, " ack {}", self.ack).expect("writing to a String cannot fail");
        }
        write!(line, " win {}", self.window).expect("writing to a String cannot fail");
        line
    }
}

/// Formats a received segment as a line.
pub(super) fn arrived_line(head: &Head, length: usize, iss: u32, irs: u32) -> String {
    let base = if head.has(flag::SYN) { head.seq } else { irs };
    let shown = SegmentLine {
        flags: head.flags,
        seq: head.seq.wrapping_sub(base),
        length,
        ack: head.ack.wrapping_sub(iss),
        window: head.window,
    };
    shown.line()
}

/// Returns whether a received segment is of this kind; one with content and FIN is both.
pub(super) fn is_kind(kind: PacketKind, head: &Head, length: usize) -> bool {
    let syn = head.has(flag::SYN);
    let fin = head.has(flag::FIN);
    let rst = head.has(flag::RST);
    match kind {
        PacketKind::Rst => rst,
        PacketKind::SynAck => syn && !rst,
        PacketKind::Fin => fin && !rst,
        PacketKind::Data => length > 0 && !rst,
        PacketKind::Ack => length == 0 && !syn && !fin && !rst,
        PacketKind::Nothing => false,
    }
}

/// Returns the timestamp option with two NOPs (RFC 7323 section 3.2).
pub(super) fn stamps(value: u32, echo: u32) -> Vec<u8> {
    [&[1, 1, 8, 10][..], &value.to_be_bytes(), &echo.to_be_bytes()].concat()
}

/// Returns the MSS option (RFC 9293 section 3.7.1).
pub(super) fn mss(bytes: u16) -> Vec<u8> {
    [&[2, 4][..], &bytes.to_be_bytes()].concat()
}
