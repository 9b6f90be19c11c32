//! Verifies a path on this machine: two probes across it, compared with the settings.

use crate::path::{FarEnd, NetPath, PathRequest};
use crate::trouble::PathTrouble;
use crate::{clock, namespace::Namespace};
use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::time::Duration;
use units::{Nanos, show};
use wan::{NoTraces, PathSpec, Population};

/// One check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckLine {
    /// The measured and the expected value.
    pub text: String,
    pub good: bool,
}

/// Checks delay, loss, order and rate, for about ten seconds.
///
/// # Errors
/// Fails if no path can be created here.
pub fn check() -> Result<Vec<CheckLine>, PathTrouble> {
    let mut lines = Vec::new();
    for (text, rtt) in [("rtt=0ms", Nanos::ZERO), ("rtt=50ms", Nanos::from_millis(50))] {
        lines.push(round_trips(text, rtt)?);
    }
    lines.extend(losses()?);
    lines.push(rate()?);
    Ok(lines)
}

const ROUND_TRIPS: u32 = 200;
const ROUND_TRIP_GAP: Nanos = Nanos::from_millis(5);
/// Maximum deviation of the median round trip.
const ROUND_TRIP_ERROR: Nanos = Nanos::from_micros(300);

const PACKETS: u32 = 20_000;
const PACKET_GAP: Nanos = Nanos::from_micros(200);
const LOSS: f64 = 0.02;

const RATE: f64 = 20e6;
/// IP bytes of a probe that measures the rate: payload plus UDP and IP headers.
const RATE_BYTES: u32 = 1_000;
const RATE_SPAN: Nanos = Nanos::from_secs(2);
const RATE_ERROR: f64 = 0.02;
/// Offered load relative to the rate.
const RATE_EXCESS: f64 = 1.2;

/// Silence after which all packets have arrived.
const SILENCE: Duration = Duration::from_millis(500);

/// Two sockets with a path between them.
struct Probe {
    path: NetPath,
    near: UdpSocket,
    far: UdpSocket,
}

/// The address of the far end in its own namespace.
const FAR: Ipv4Addr = Ipv4Addr::new(198, 19, 0, 1);

impl Probe {
    fn open(text: &str) -> Result<Probe, PathTrouble> {
        let spec = PathSpec::parse(text, &NoTraces)
            .map_err(|fault| PathTrouble::Other("the check".to_owned(), io::Error::other(fault)))?;
        let ask = PathRequest {
            population: Population::new(spec),
            clients: 1,
            seed: 1,
            far: FarEnd::New,
            own_loopback: false,
        };
        let path = NetPath::open(&ask)?;
        let far = bound(path.server_namespace())?;
        let near = bound(path.client_namespace())?;
        let trouble = PathTrouble::other("cannot use a socket");
        let to = far.local_addr().and_then(|far| near.connect((FAR, far.port())));
        to.map_err(trouble)?;
        for socket in [&near, &far] {
            let limit = socket.set_read_timeout(Some(SILENCE));
            limit.map_err(PathTrouble::other("cannot use a socket"))?;
        }
        Ok(Probe { path, near, far })
    }
}

fn bound(namespace: &Namespace) -> Result<UdpSocket, PathTrouble> {
    namespace.within(|| {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))
            .map_err(PathTrouble::other("cannot open a socket"))?;
        // a probe that waits in the socket buffer must not count as lost
        rustix::net::sockopt::set_socket_recv_buffer_size(&socket, 4 << 20).ok();
        Ok(socket)
    })
}

/// Waits until a time: asleep, then spinning for the last part.
fn wait_until(at: Nanos) {
    const SPUN: Nanos = Nanos::from_micros(200);
    let left = at - clock::now();
    if left > SPUN {
        std::thread::sleep(Duration::from_nanos((left - SPUN).0));
    }
    while clock::now() < at {
        std::hint::spin_loop();
    }
}

fn round_trips(text: &str, asked: Nanos) -> Result<CheckLine, PathTrouble> {
    let probe = Probe::open(text)?;
    let mut spans: Vec<Nanos> = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut packet = [0; 16];
            while let Ok((length, from)) = probe.far.recv_from(&mut packet) {
                probe.far.send_to(&packet[..length], from).ok();
            }
        });
        let reader = scope.spawn(|| {
            let (mut packet, mut spans) = ([0; 16], Vec::new());
            while let Ok(8) = probe.near.recv(&mut packet) {
                let sent = u64::from_ne_bytes(packet[..8].try_into().unwrap_or_default());
                spans.push(clock::now() - Nanos(sent));
            }
            spans
        });
        let start = clock::now();
        for number in 0..ROUND_TRIPS {
            wait_until(start + ROUND_TRIP_GAP * u64::from(number));
            probe.near.send(&clock::now().0.to_ne_bytes()).ok();
        }
        spans = reader.join().unwrap_or_default();
    });
    spans.sort_unstable();
    let median = spans.get(spans.len() / 2).copied().unwrap_or(Nanos::NEVER);
    let facts = probe.path.facts()?;
    let came = spans.len() as u32;
    Ok(CheckLine {
        text: format!(
            "round trip {} for {} configured (median of {came} of {ROUND_TRIPS}; at most {} off); \
             delivered late by {} (p50), {} (p99)",
            show::duration(median),
            show::duration(asked),
            show::duration(ROUND_TRIP_ERROR),
            show::duration(facts.late_p50),
            show::duration(facts.late_p99)
        ),
        good: came == ROUND_TRIPS && median >= asked && median - asked <= ROUND_TRIP_ERROR,
    })
}

/// Numbers of the received packets, in order of arrival.
fn stream(probe: &Probe, packets: u32, gap: Nanos, bytes: usize) -> Vec<(u32, Nanos)> {
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let (mut packet, mut came) = ([0; 2_048], Vec::new());
            while let Ok(length) = probe.far.recv(&mut packet) {
                let number = packet[..length.min(4)].try_into().unwrap_or_default();
                came.push((u32::from_ne_bytes(number), clock::now()));
            }
            came
        });
        let start = clock::now();
        let mut packet = vec![0; bytes];
        for number in 0..packets {
            wait_until(start + gap * u64::from(number));
            packet[..4].copy_from_slice(&number.to_ne_bytes());
            probe.near.send(&packet).ok();
        }
        reader.join().unwrap_or_default()
    })
}

fn losses() -> Result<[CheckLine; 2], PathTrouble> {
    let probe = Probe::open("rtt=10ms, loss=2%")?;
    let came = stream(&probe, PACKETS, PACKET_GAP, 32);
    let facts = probe.path.facts()?;
    let sent = f64::from(PACKETS);
    let lost = sent - came.len() as f64;
    let four_sigma = 4.0 * (sent * LOSS * (1.0 - LOSS)).sqrt();
    let in_order = came.windows(2).all(|pair| pair[0].0 < pair[1].0);
    Ok([
        CheckLine {
            text: format!(
                "lost {lost} of {PACKETS} packets for {} configured (within {four_sigma:.0} of \
                 {:.0}), {} of them by the model",
                show::share(LOSS),
                sent * LOSS,
                facts.kinds[0].up.lost_to_model
            ),
            good: (lost - sent * LOSS).abs() <= four_sigma && facts.overflowed == 0,
        },
        CheckLine {
            text: format!(
                "at {} packets per second each arrived once and {}; the emulation was busy for {}",
                1_000_000_000 / PACKET_GAP.0,
                if in_order { "in order" } else { "NOT in order" },
                show::share(facts.busy)
            ),
            good: in_order,
        },
    ])
}

fn rate() -> Result<CheckLine, PathTrouble> {
    let probe = Probe::open("rate=20M, queue=30p")?;
    let gap = f64::from(RATE_BYTES) * 8.0 / (RATE * RATE_EXCESS);
    let packets = (RATE_SPAN.as_secs_f64() / gap) as u32;
    let came = stream(&probe, packets, Nanos::from_secs_f64(gap), RATE_BYTES as usize - 28);
    let span = match (came.first(), came.last()) {
        (Some(first), Some(last)) => (last.1 - first.1).as_secs_f64(),
        _ => 0.0,
    };
    let carried =
        (came.len().saturating_sub(1) as f64) * f64::from(RATE_BYTES) * 8.0 / span.max(1e-9);
    let off = (carried / RATE - 1.0).abs();
    Ok(CheckLine {
        text: format!(
            "carried {:.2} Mbit/s for {} configured, {} offered (at most {} off)",
            carried / 1e6,
            RATE / 1e6,
            RATE * RATE_EXCESS / 1e6,
            show::share(RATE_ERROR)
        ),
        good: off <= RATE_ERROR,
    })
}
