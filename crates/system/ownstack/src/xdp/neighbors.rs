//! Next hops of destinations and their Ethernet addresses. Without I/O and without a clock.

use super::link::Mac;
use std::collections::HashMap;
use std::net::IpAddr;
use units::Nanos;

/// Maximum number of next hops and of destinations.
const REMEMBERED_MAX: usize = 1 << 15;
/// Interval at which a hop without a reply is queried again.
pub(crate) const ASK_AGAIN: Nanos = Nanos::from_secs(1);
/// Time for which the address of a hop is valid before it is verified. A kernel waits for 15 to 45
/// s. It also receives the announcements of hosts that move; we do not intercept them.
const FRESH: Nanos = Nanos::from_secs(5);
/// Time for which a destination counts as unreachable.
const NO_WAY: Nanos = Nanos::from_secs(1);

/// Request for a hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Question {
    pub(crate) hop: IpAddr,
    /// Last known address, to which the request is sent; `None` for a broadcast.
    pub(crate) at: Option<Mac>,
}

/// Route of packets to an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Onward {
    /// The hop is known; this request is due as well.
    To(Mac, Option<Question>),
    /// The address of the next hop must be requested first.
    Ask(Question),
    /// A request was sent.
    Wait,
    /// The next hop is unknown.
    Unknown,
    /// Unreachable.
    Nowhere,
}

#[derive(Clone, Copy, Debug)]
enum HopState {
    By(IpAddr),
    NoneSince(Nanos),
}

#[derive(Clone, Copy, Debug)]
struct Hop {
    mac: Option<Mac>,
    /// Instant at which the address was received.
    heard: Nanos,
    /// Instant of the last request for the address, and number of requests since the last reply.
    asked: Nanos,
    questions: u32,
}

/// The next hops of our packets.
#[derive(Debug, Default)]
pub(crate) struct Neighbors {
    hops: HashMap<IpAddr, Hop>,
    /// Next hops by destination.
    ways: HashMap<IpAddr, HopState>,
    /// The earliest time of the next search for unreachable hops.
    tidy_at: Nanos,
    /// Last destination, the address of its hop, and how long it is valid without a lookup: nearly
    /// all packets go to a few destinations.
    last: Option<(IpAddr, Mac, Nanos)>,
}

impl Neighbors {
    /// Records that packets to `destination` go through `hop`, or that it is unreachable as of
    /// `now`.
    pub(crate) fn record_route(&mut self, now: Nanos, destination: IpAddr, hop: Option<IpAddr>) {
        if self.has_room(now) {
            self.ways.insert(destination, hop.map_or(HopState::NoneSince(now), HopState::By));
        }
    }

    /// Returns whether there is room for another destination, possibly replacing an unreachable
    /// one.
    fn has_room(&mut self, now: Nanos) -> bool {
        if self.ways.len() >= REMEMBERED_MAX && now >= self.tidy_at {
            self.tidy_at = now + NO_WAY;
            self.ways.retain(|_, way| !way.is_over(now));
        }
        self.ways.len() < REMEMBERED_MAX
    }

    /// Returns how to send packets to `destination`. A request is returned once per [`ASK_AGAIN`].
    pub(crate) fn route_to(&mut self, now: Nanos, destination: IpAddr) -> Onward {
        if let Some((address, mac, until)) = self.last
            && address == destination
            && now < until
        {
            return Onward::To(mac, None);
        }
        let hop = match self.ways.get(&destination).copied() {
            Some(HopState::By(hop)) => hop,
            Some(way) if !way.is_over(now) => return Onward::Nowhere,
            None if !self.has_room(now) => return Onward::Nowhere,
            Some(_) | None => return Onward::Unknown,
        };
        let fresh = Hop { mac: None, heard: now, asked: Nanos::ZERO, questions: 0 };
        let state = self.hops.entry(hop).or_insert(fresh);
        let valid_until = state.valid_until();
        if let Some(mac) = state.mac
            && now < valid_until
        {
            self.last = Some((destination, mac, valid_until));
            return Onward::To(mac, None);
        }
        if state.mac.is_none() && state.questions > 0 && now < valid_until {
            return Onward::Wait;
        }
        // a host that moved does not receive packets for its old address
        let at = state.mac.filter(|_| state.questions == 0);
        (state.asked, state.questions) = (now, state.questions.saturating_add(1));
        let question = Question { hop, at };
        state.mac.map_or(Onward::Ask(question), |mac| Onward::To(mac, Some(question)))
    }

    /// Handles the announcement of a host's address; returns whether it is a next hop of ours.
    pub(crate) fn update(&mut self, now: Nanos, neighbor: IpAddr, mac: Mac) -> bool {
        let Some(hop) = self.hops.get_mut(&neighbor) else { return false };
        *hop = Hop { mac: Some(mac), heard: now, asked: now, questions: 0 };
        self.last = None;
        true
    }
}

impl Hop {
    /// Returns the time until which no request is due.
    fn valid_until(&self) -> Nanos {
        if self.questions > 0 { self.asked + ASK_AGAIN } else { self.heard + FRESH }
    }
}

impl HopState {
    /// Returns whether enough time has passed for an unreachable destination to be tried again.
    fn is_over(&self, now: Nanos) -> bool {
        matches!(self, HopState::NoneSince(then) if now - *then >= NO_WAY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    const THERE: Mac = Mac([2, 0, 0, 0, 0, 9]);
    const ELSEWHERE: Mac = Mac([2, 0, 0, 0, 0, 8]);
    const GATEWAY: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
    const SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(203, 0, 113, 7));

    /// Returns the actions for packets to the server at these times, ms.
    fn requests(we: &mut Neighbors, instants: &[u64]) -> String {
        let mut text = String::new();
        for instant in instants {
            let way = match we.route_to(Nanos::from_millis(*instant), SERVER) {
                Onward::To(mac, None) => format!("to {mac}"),
                Onward::To(mac, Some(Question { hop, at: Some(at) })) => {
                    format!("to {mac}, and {at} is asked for {hop}")
                }
                Onward::To(mac, Some(Question { hop, at: None })) => {
                    format!("to {mac}, and all are asked for {hop}")
                }
                Onward::Ask(Question { hop, at: None }) => format!("all are asked for {hop}"),
                other => format!("{other:?}"),
            };
            text += &format!("{instant}: {way}\n");
        }
        text
    }

    #[test]
    fn a_hop_is_requested_once_a_second_until_it_replies() {
        let mut we = Neighbors::default();
        assert_eq!(requests(&mut we, &[0]), "0: Unknown\n");
        we.record_route(Nanos::ZERO, SERVER, Some(GATEWAY));
        assert_eq!(
            requests(&mut we, &[0, 10, 999, 1_000, 1_500]),
            "0: all are asked for 192.0.2.1\n10: Wait\n999: Wait\n\
             1000: all are asked for 192.0.2.1\n1500: Wait\n"
        );
        assert!(we.update(Nanos::from_millis(1_600), GATEWAY, THERE));
        assert_eq!(requests(&mut we, &[1_600]), "1600: to 02:00:00:00:00:09\n");
    }

    #[test]
    fn old_entries_are_verified_and_moves_followed() {
        let mut we = Neighbors::default();
        we.record_route(Nanos::ZERO, SERVER, Some(GATEWAY));
        we.route_to(Nanos::ZERO, SERVER);
        we.update(Nanos::ZERO, GATEWAY, THERE);
        assert_eq!(
            requests(&mut we, &[0, 4_999, 5_000, 5_001, 6_000, 6_999, 7_000]),
            "0: to 02:00:00:00:00:09\n\
             4999: to 02:00:00:00:00:09\n\
             5000: to 02:00:00:00:00:09, and 02:00:00:00:00:09 is asked for 192.0.2.1\n\
             5001: to 02:00:00:00:00:09\n\
             6000: to 02:00:00:00:00:09, and all are asked for 192.0.2.1\n\
             6999: to 02:00:00:00:00:09\n\
             7000: to 02:00:00:00:00:09, and all are asked for 192.0.2.1\n"
        );
        assert!(we.update(Nanos::from_millis(7_001), GATEWAY, ELSEWHERE));
        assert_eq!(
            requests(&mut we, &[7_002, 12_000, 12_001]),
            "7002: to 02:00:00:00:00:08\n\
             12000: to 02:00:00:00:00:08\n\
             12001: to 02:00:00:00:00:08, and 02:00:00:00:00:08 is asked for 192.0.2.1\n"
        );
    }

    #[test]
    fn a_destination_without_a_way_is_remembered_for_a_second() {
        let mut we = Neighbors::default();
        we.record_route(Nanos::from_millis(100), SERVER, None);
        assert_eq!(
            requests(&mut we, &[100, 1_099, 1_100]),
            "100: Nowhere\n1099: Nowhere\n1100: Unknown\n"
        );
    }

    #[test]
    fn unknown_hosts_cannot_fill_the_table() {
        let mut we = Neighbors::default();
        let address = |number: u32| IpAddr::V4(Ipv4Addr::from_bits(number));
        for number in 0..100_000 {
            assert!(!we.update(Nanos::ZERO, address(number + 0x0b00_0000), THERE));
            we.record_route(Nanos::ZERO, address(number), (number % 2 == 0).then_some(GATEWAY));
        }
        assert_eq!((we.hops.len(), we.ways.len()), (0, REMEMBERED_MAX));
        let (later, new) = (Nanos::from_secs(2), address(200_000));
        assert_eq!(we.route_to(Nanos::from_millis(900), new), Onward::Nowhere);
        // unreachable entries make room
        assert_eq!(we.route_to(later, new), Onward::Unknown);
        we.record_route(later, new, Some(GATEWAY));
        assert_eq!(we.ways.len(), REMEMBERED_MAX / 2 + 1);
    }
}
