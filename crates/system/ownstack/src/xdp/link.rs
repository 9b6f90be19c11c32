//! The parts of an Ethernet link common to IPv4 and IPv6: addresses, frame headers, and the meaning
//! of received frames.

use super::arp::ArpSide;
use super::nd::NdSide;
use super::neighbors::Question;
use std::fmt;
use std::net::IpAddr;

/// Size of the header before each packet: two addresses and a type.
pub(crate) const ETHERNET_HEAD: usize = 14;

/// An Ethernet address.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Mac(pub [u8; 6]);

impl Mac {
    pub(crate) const ALL: Mac = Mac([0xff; 6]);
    pub(crate) const UNKNOWN: Mac = Mac([0; 6]);

    pub(crate) fn is_group(self) -> bool {
        self.0[0] & 1 != 0
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl fmt::Debug for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Returns the header of a frame.
pub(crate) fn head(to: Mac, from: Mac, kind: [u8; 2]) -> [u8; ETHERNET_HEAD] {
    let mut head = [0; ETHERNET_HEAD];
    head[..6].copy_from_slice(&to.0);
    head[6..12].copy_from_slice(&from.0);
    head[12..].copy_from_slice(&kind);
    head
}

/// The meaning of a received frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LinkFrame<'a> {
    Packet(&'a [u8]),
    /// A host announces its address. If it also requested one of ours, the reply is included.
    Neighbor(IpAddr, Mac, Option<Vec<u8>>),
    /// Another host uses one of our addresses.
    Taken(IpAddr, Mac),
    Nothing,
}

/// Our side of a link: ARP for IPv4 addresses, ND for IPv6.
#[derive(Debug)]
pub(crate) enum LinkSide {
    Arp(ArpSide),
    Nd(NdSide),
}

impl LinkSide {
    /// Creates our side; `count` addresses from the first on are ours.
    pub(crate) fn new(ours: Mac, first: IpAddr, count: u32) -> LinkSide {
        match first {
            IpAddr::V4(first) => LinkSide::Arp(ArpSide::new(ours, first, count)),
            IpAddr::V6(first) => LinkSide::Nd(NdSide::new(ours, first, count)),
        }
    }

    /// Parses a frame.
    pub(crate) fn parse<'a>(&self, frame: &'a [u8]) -> LinkFrame<'a> {
        match self {
            LinkSide::Arp(side) => side.parse(frame),
            LinkSide::Nd(side) => side.parse(frame),
        }
    }

    /// Returns a request for the address of a next hop; none for the other family.
    pub(crate) fn question(&self, question: Question) -> Option<Vec<u8>> {
        match self {
            LinkSide::Arp(side) => side.question(question),
            LinkSide::Nd(side) => side.question(question),
        }
    }

    /// Returns a probe that checks whether one of our addresses is in use.
    pub(crate) fn probe(&self, address: IpAddr) -> Option<Vec<u8>> {
        match (self, address) {
            (LinkSide::Arp(side), IpAddr::V4(address)) => Some(side.probe(address)),
            (LinkSide::Nd(side), IpAddr::V6(address)) => Some(side.probe(address)),
            _ => None,
        }
    }

    /// Returns an announcement of an address of ours.
    pub(crate) fn announcement(&self, address: IpAddr) -> Option<Vec<u8>> {
        match (self, address) {
            (LinkSide::Arp(side), IpAddr::V4(address)) => Some(side.announcement(address)),
            (LinkSide::Nd(side), IpAddr::V6(address)) => Some(side.announcement(address)),
            _ => None,
        }
    }

    /// Returns the header of a packet to this hop.
    pub(crate) fn head(&self, to: Mac) -> [u8; ETHERNET_HEAD] {
        match self {
            LinkSide::Arp(side) => side.head_of_packet(to),
            LinkSide::Nd(side) => side.head(to),
        }
    }
}
