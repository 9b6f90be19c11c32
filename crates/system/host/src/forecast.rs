//! Forecast of ports and descriptors: arithmetic before a run, so that a plan that cannot fit is
//! reported before it fails.
//!
//! A connection uses one local port for its lifetime and, if this end closes first, during
//! TIME_WAIT after it. A port is used per local address *and* per peer, so each local address and
//! each target adds a whole range. Ports = open at once + opened per second × the lesser of
//! TIME_WAIT and the run's length; a reset leaves no TIME_WAIT (RFC 9293 §3.6.1). Ports are assumed
//! to spread evenly over targets.

use units::Nanos;

/// Resources that a plan will need.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Demand {
    /// Most connections open at once.
    pub connections: u64,
    /// Connections opened per second, in addition to those that stay open; 0 if they are kept.
    pub opens_per_s: f64,
    /// Length of the run; `None` if no end is planned.
    pub duration: Option<Nanos>,
    /// True if connections end by RST.
    pub reset_on_close: bool,
    /// Local addresses that connections are bound to; 1 without `--bind`.
    pub local_addresses: u64,
    /// Number of distinct addresses with port that connections go to; 0 for Unix sockets only,
    /// which need no ports.
    pub targets: u64,
    /// Time for which a closed connection holds its port; see [`crate::limits::time_wait`].
    pub time_wait: Nanos,
    /// Descriptors for everything else: files, epoll, pipes, and those already open.
    pub other_descriptors: u64,
}

/// Resources that are available.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Supply {
    /// Ephemeral ports of one local address.
    pub ports: u32,
    /// Maximum number of descriptors of this process: its hard limit.
    pub descriptors: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    pub needed: u64,
    pub available: u64,
}

impl Budget {
    pub fn fits(self) -> bool {
        self.needed <= self.available
    }
}

/// Forecast. `fits` if neither budget is exceeded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forecast {
    pub ports: Budget,
    pub descriptors: Budget,
    /// Resources that are short, each with the fix, one sentence each.
    pub shortages: Vec<Shortage>,
}

impl Forecast {
    pub fn fits(&self) -> bool {
        self.shortages.is_empty()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    Ports,
    Descriptors,
}

impl Resource {
    /// Returns the id of the verdict's cause.
    pub fn id(self) -> &'static str {
        match self {
            Resource::Ports => "ports",
            Resource::Descriptors => "descriptors",
        }
    }
}

/// A resource that will not last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shortage {
    pub resource: Resource,
    pub budget: Budget,
    /// Resource that will be short, and by how much.
    pub text: String,
    /// Fix of the shortage.
    pub advice: String,
}

/// Checks whether the demand fits the supply.
pub fn forecast(demand: &Demand, supply: Supply) -> Forecast {
    let ports = ports(demand, supply);
    let descriptors = Budget {
        needed: demand.connections.saturating_add(demand.other_descriptors),
        available: supply.descriptors,
    };
    let mut shortages = Vec::new();
    if !ports.fits() {
        shortages.push(port_shortage(demand, supply, ports));
    }
    if !descriptors.fits() {
        shortages.push(descriptor_shortage(demand, descriptors));
    }
    Forecast { ports, descriptors, shortages }
}

fn ports(demand: &Demand, supply: Supply) -> Budget {
    if demand.targets == 0 {
        return Budget { needed: 0, available: 0 };
    }
    let available = u64::from(supply.ports)
        .saturating_mul(demand.local_addresses.max(1))
        .saturating_mul(demand.targets);
    Budget { needed: demand.connections.saturating_add(lingering(demand)), available }
}

/// Returns the maximum number of ports in TIME_WAIT.
fn lingering(demand: &Demand) -> u64 {
    if demand.reset_on_close {
        return 0;
    }
    // a conversion from float to integer saturates; NaN and negative values become 0
    (demand.opens_per_s * accumulation_time(demand).as_secs_f64()).ceil() as u64
}

/// Returns the time during which ports accumulate: until the first are released, or the run ends.
fn accumulation_time(demand: &Demand) -> Nanos {
    demand.duration.map_or(demand.time_wait, |duration| duration.min(demand.time_wait))
}

fn port_shortage(demand: &Demand, supply: Supply, budget: Budget) -> Shortage {
    let lingering = lingering(demand);
    let mut text =
        format!("{} local ports will be needed and there are {}", budget.needed, budget.available);
    if lingering > 0 {
        text.push_str(&format!(
            ": each of {} connections opened per second keeps its port for {} after it is closed",
            rate(demand.opens_per_s),
            units::show::duration(accumulation_time(demand)),
        ));
    }
    let mut ways = Vec::new();
    if lingering > 0 {
        ways.push("keep connections open for more calls (--calls)".to_owned());
        if demand.connections <= budget.available {
            ways.push("close them by --reset".to_owned());
        }
    }
    let per_address = u64::from(supply.ports).saturating_mul(demand.targets).max(1);
    ways.push(format!("bind to {} local addresses (--bind)", budget.needed.div_ceil(per_address)));
    if supply.ports < WIDE_RANGE {
        ways.push("widen the range (sysctl -w net.ipv4.ip_local_port_range=\"1024 65535\")".into());
    }
    if let Some(most) = connection_rate_max(demand, budget.available) {
        ways.push(format!("open at most {} connections per second", rate(most)));
    } else if demand.connections > budget.available {
        ways.push(format!("use at most {} connections", budget.available));
    }
    Shortage { resource: Resource::Ports, budget, text, advice: one_of(&ways) }
}

/// Returns the connection rate that the ports sustain, if there is a limit.
fn connection_rate_max(demand: &Demand, available: u64) -> Option<f64> {
    let left = available.checked_sub(demand.connections).filter(|left| *left > 0)?;
    let held = accumulation_time(demand).as_secs_f64();
    (held > 0.0).then(|| (left as f64 / held).floor()).filter(|most| *most >= 1.0)
}

fn descriptor_shortage(demand: &Demand, budget: Budget) -> Shortage {
    let text = format!(
        "{} file descriptors will be needed and this process may have {}",
        budget.needed, budget.available
    );
    let mut ways = vec![format!(
        "raise the hard limit (as root: ulimit -Hn {}; LimitNOFILE= in a systemd unit)",
        budget.needed
    )];
    let most = budget.available.saturating_sub(demand.other_descriptors);
    if most > 0 {
        ways.push(format!("use at most {most} connections (-c, --connections-max)"));
    }
    Shortage { resource: Resource::Descriptors, budget, text, advice: one_of(&ways) }
}

fn one_of(ways: &[String]) -> String {
    ways.join(", or ")
}

fn rate(per_s: f64) -> String {
    if per_s >= 10.0 { format!("{per_s:.0}") } else { format!("{per_s:.1}") }
}

/// Ports from 1,024 up: a range of this size cannot be widened to any effect.
const WIDE_RANGE: u32 = 60_000;

#[cfg(test)]
mod tests {
    use super::*;

    const SUPPLY: Supply = Supply { ports: 28_232, descriptors: 20_000 };

    const KEPT: Demand = Demand {
        connections: 100,
        opens_per_s: 0.0,
        duration: Some(Nanos::from_secs(600)),
        reset_on_close: false,
        local_addresses: 1,
        targets: 1,
        time_wait: Nanos::from_secs(60),
        other_descriptors: 50,
    };

    #[test]
    fn the_forecast_compares_needed_and_free_ports() {
        let opening = Demand { opens_per_s: 1_000.0, ..KEPT };
        for (what, demand, needed, available) in [
            ("kept connections", KEPT, 100, 28_232),
            ("a minute's worth waits", opening, 60_100, 28_232),
            (
                "a short run",
                Demand { duration: Some(Nanos::from_secs(10)), ..opening },
                10_100,
                28_232,
            ),
            ("no end", Demand { duration: None, ..opening }, 60_100, 28_232),
            (
                "reused after a second",
                Demand { time_wait: Nanos::SECOND, ..opening },
                1_100,
                28_232,
            ),
            ("reset", Demand { reset_on_close: true, ..opening }, 100, 28_232),
            ("three addresses", Demand { local_addresses: 3, ..opening }, 60_100, 84_696),
            ("two targets", Demand { targets: 2, ..opening }, 60_100, 56_464),
            ("both", Demand { targets: 2, local_addresses: 3, ..opening }, 60_100, 169_392),
            ("none named is one", Demand { local_addresses: 0, ..opening }, 60_100, 28_232),
            ("Unix sockets", Demand { targets: 0, ..opening }, 0, 0),
            ("a fraction counts whole", Demand { opens_per_s: 0.01, ..KEPT }, 101, 28_232),
            ("no number", Demand { opens_per_s: f64::NAN, ..KEPT }, 100, 28_232),
            ("absurd", Demand { opens_per_s: 1e300, ..KEPT }, u64::MAX, 28_232),
        ] {
            let forecast = forecast(&demand, SUPPLY);
            assert_eq!(forecast.ports, Budget { needed, available }, "{what}");
            assert_eq!(forecast.fits(), needed <= available, "{what}");
        }
    }

    #[test]
    fn a_port_shortage_names_the_fix() {
        let demand = Demand { opens_per_s: 1_000.0, ..KEPT };
        let found = forecast(&demand, SUPPLY).shortages;
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].resource.id(), "ports");
        assert_eq!(
            found[0].text,
            "60100 local ports will be needed and there are 28232: each of 1000 connections opened \
             per second keeps its port for 1 m 00 s after it is closed"
        );
        assert_eq!(
            found[0].advice,
            "keep connections open for more calls (--calls), or close them by --reset, or bind to \
             3 local addresses (--bind), or widen the range (sysctl -w \
             net.ipv4.ip_local_port_range=\"1024 65535\"), or open at most 468 connections per second"
        );
        // each of the ways that it names is one
        for way in [
            Demand { reset_on_close: true, ..demand },
            Demand { local_addresses: 3, ..demand },
            Demand { opens_per_s: 468.0, ..demand },
        ] {
            assert!(forecast(&way, SUPPLY).fits(), "{way:?}");
        }
        assert!(!forecast(&Demand { local_addresses: 2, ..demand }, SUPPLY).fits());
        assert!(!forecast(&Demand { opens_per_s: 470.0, ..demand }, SUPPLY).fits());
    }

    #[test]
    fn more_open_connections_than_ports() {
        let demand = Demand { connections: 70_000, ..KEPT };
        let supply = Supply { ports: 64_512, descriptors: 1_000_000 };
        let found = forecast(&demand, supply).shortages;
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].text, "70000 local ports will be needed and there are 64512");
        assert_eq!(
            found[0].advice,
            "bind to 2 local addresses (--bind), or use at most 64512 connections"
        );
    }

    #[test]
    fn too_few_descriptors_are_a_shortage() {
        for (connections, fits) in [(19_950, true), (19_951, false)] {
            let demand = Demand { connections, ..KEPT };
            assert_eq!(forecast(&demand, SUPPLY).fits(), fits, "{connections}");
        }
        let found = forecast(&Demand { connections: 25_000, ..KEPT }, SUPPLY).shortages;
        assert_eq!(found[0].resource.id(), "descriptors");
        assert_eq!(
            found[0].text,
            "25050 file descriptors will be needed and this process may have 20000"
        );
        assert!(found[0].advice.contains("ulimit -Hn 25050"), "{}", found[0].advice);
        assert!(found[0].advice.contains("at most 19950 connections"), "{}", found[0].advice);
    }

    #[test]
    fn both_may_be_short() {
        let demand = Demand { connections: 40_000, ..KEPT };
        let found = forecast(&demand, SUPPLY).shortages;
        let ids: Vec<_> = found.iter().map(|shortage| shortage.resource.id()).collect();
        assert_eq!(ids, ["ports", "descriptors"]);
    }
}
