//! A path as text and as parameters: `3g`, `rtt=100ms, loss=1%`, `dsl, up-loss=2%, down-rate=8M`.
//!
//! The first item may be the name of a profile; each other item sets one parameter, in both
//! directions or, with `up-` or `down-` before the key, in one direction.

use crate::delay::{Delay, JitterLaw};
use crate::draw::Direction;
use crate::loss::Loss;
use crate::number::{bits, share, whole};
use crate::outage::Outage;
use crate::profiles::{profile, profiles};
use crate::trace::{Trace, TraceSource};
use std::sync::Arc;
use units::{Nanos, ParseError, parse_duration, parse_size, quoted};

/// The behavior of a path in each direction.
#[derive(Clone, Debug, PartialEq)]
pub struct PathSpec {
    /// The original text; [`PathSpec::parse`] accepts it.
    pub text: String,
    /// The traces of both directions, by their names in the text.
    pub traces: Vec<(String, Arc<Trace>)>,
    /// Client to server.
    pub up: LinkSpec,
    /// Server to client.
    pub down: LinkSpec,
}

/// The behavior of one direction, stage by stage.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkSpec {
    pub loss: Loss,
    pub outage: Option<Outage>,
    /// Fractions of packets, 0..=1.
    pub duplicate: f64,
    pub corrupt: f64,
    pub queue: QueueSpec,
    pub carrier: Carrier,
    pub delay: Delay,
    /// Packets arrive in the order in which they left, despite jitter; otherwise they overtake each
    /// other. Each then waits for the slowest one before it: the closer packets follow each other,
    /// the more the mean delay rises above that of the distribution, and the less it varies.
    pub keeps_order: bool,
    pub ahead: Option<Ahead>,
    /// Arrivals are rounded up to multiples of this; zero: no rounding.
    pub quantum: Nanos,
    /// The delay follows WebMark's formula instead of `delay`.
    pub webmark: Option<WebMarkLaw>,
}

/// Some packets overtake all others in flight: they have no delay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ahead {
    /// The probability, for every packet whose number is a multiple of `every`.
    pub share: f64,
    pub every: u32,
}

/// WebMark's delay of a packet: 2·(size / bandwidth + propagation), applied to packets of the
/// client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WebMarkLaw {
    pub bits_per_second: u64,
    pub propagation: Nanos,
}

/// The queue of the transmitter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueSpec {
    pub limit: QueueLimit,
    pub policy: QueuePolicy,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueLimit {
    None,
    Packets(u32),
    Bytes(u64),
}

/// The two parameters of CoDel, the controlled-delay queue (RFC 8289).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoDel {
    pub target: Nanos,
    pub interval: Nanos,
}

impl Default for CoDel {
    /// Returns 5 ms and 100 ms (RFC 8289 section 4.4).
    fn default() -> CoDel {
        CoDel { target: Nanos::from_millis(5), interval: Nanos::from_millis(100) }
    }
}

/// Choice of the dropped packet when the queue is too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueuePolicy {
    /// Drops the arriving packet.
    DropTail,
    /// Drops the packet that has waited longest.
    DropHead,
    /// Drops a packet that has waited too long, before the queue is full.
    CoDel(CoDel),
}

/// The rate of the transmitter.
#[derive(Clone, Debug, PartialEq)]
pub enum Carrier {
    Unlimited,
    /// Bits per second of packets with `overhead` bytes each; `burst` bytes may be sent at once
    /// after a pause.
    Bits {
        per_second: u64,
        overhead: u32,
        burst: u64,
    },
    Trace(Arc<Trace>),
}

impl Default for LinkSpec {
    /// Returns a link without effect.
    fn default() -> LinkSpec {
        LinkSpec {
            loss: Loss::None,
            outage: None,
            duplicate: 0.0,
            corrupt: 0.0,
            queue: QueueSpec { limit: QueueLimit::None, policy: QueuePolicy::DropTail },
            carrier: Carrier::Unlimited,
            delay: Delay::default(),
            keeps_order: true,
            ahead: None,
            quantum: Nanos::ZERO,
            webmark: None,
        }
    }
}

impl LinkSpec {
    /// Returns the mean capacity in bits per second; `None` means unlimited.
    pub fn bits_per_second(&self) -> Option<f64> {
        match &self.carrier {
            Carrier::Unlimited => None,
            Carrier::Bits { per_second, .. } => Some(*per_second as f64),
            Carrier::Trace(trace) => Some(trace.bits_per_second()),
        }
    }
}

impl PathSpec {
    pub fn link(&self, direction: Direction) -> &LinkSpec {
        match direction {
            Direction::Up => &self.up,
            Direction::Down => &self.down,
        }
    }

    /// Returns the configured round trip of an empty packet: both delays, without jitter, queues
    /// and transmission. In WebMark mode twice its propagation.
    pub fn rtt(&self) -> Nanos {
        let delay = |link: &LinkSpec| match &link.webmark {
            Some(law) => law.propagation * 2,
            None => link.delay.base,
        };
        delay(&self.up) + delay(&self.down)
    }

    /// Returns how much longer than on a direct link the connection setup may take because of the
    /// path: round trips, and, if packets can be lost, the times of SYN retransmissions (1, 3, 7
    /// and 15 s at the latest; RFC 6298 section 5.7), with all outages in between.
    pub fn setup_allowance(&self) -> Nanos {
        let mut patience = self.rtt() * 2 + (self.up.delay.jitter + self.down.delay.jitter) * 4;
        for link in [&self.up, &self.down] {
            let is_limited = !matches!(link.carrier, Carrier::Unlimited);
            if link.loss != Loss::None || link.corrupt > 0.0 || is_limited {
                patience = patience.max(REPEATS);
            }
        }
        let away = |link: &LinkSpec| link.outage.map_or(Nanos::ZERO, |outage| outage.away * 4);
        patience + away(&self.up).max(away(&self.down))
    }

    /// Parses the text of a path. `traces` returns trace files by name.
    ///
    /// # Errors
    /// Fails with the invalid item, and the fix.
    pub fn parse(text: &str, traces: &dyn TraceSource) -> Result<PathSpec, SpecFault> {
        let mut draft = Draft::default();
        draft
            .read(text, traces)
            .map_err(|why| SpecFault(format!("{} is not a path: {why}", quoted(text))))?;
        let mut named = std::mem::take(&mut draft.traces);
        let (up, down) = draft
            .finish()
            .map_err(|why| SpecFault(format!("{} is not a path: {why}", quoted(text))))?;
        // a trace that was later replaced is not used
        named.retain(|(_, trace)| {
            let carries = |link: &LinkSpec| {
                matches!(&link.carrier, Carrier::Trace(its) if Arc::ptr_eq(its, trace))
            };
            carries(&up) || carries(&down)
        });
        Ok(PathSpec { text: text.trim().to_owned(), traces: named, up, down })
    }
}

/// An error in the text of a path, for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecFault(pub String);

impl std::fmt::Display for SpecFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SpecFault {}

/// Five attempts of a SYN whose timer doubles from 1 s, and a second for the reply.
const REPEATS: Nanos = Nanos::from_secs(16);
/// Maximum length of the text of a path.
const TEXT_MAX: usize = 4_096;
/// Maximum delay of one direction.
const DELAY_MAX: Nanos = Nanos::from_secs(60);
/// Maximum length of a queue, in packets and in bytes.
const QUEUE_PACKETS_MAX: u64 = 1_000_000;
const QUEUE_BYTES_MAX: u64 = 1 << 30;
/// Maximum number of packets in a loss list.
const LIST_MAX: usize = 10_000;
/// The default queue before a limited rate: this long, and at least dummynet's 50 packets.
const QUEUE_SPAN: Nanos = Nanos::from_millis(250);
const QUEUE_PACKETS_MIN: u64 = 50;
/// Default queue before a trace: that of netem.
const QUEUE_PACKETS_TRACE: u32 = 1_000;
/// A full packet, for queues counted in packets.
const PACKET_BYTES: u64 = 1_500;

/// State of one direction while the items are parsed.
#[derive(Clone, Debug, Default, PartialEq)]
struct LinkDraft {
    link: LinkSpec,
    burst: Option<f64>,
    bits: Option<u64>,
    overhead: u32,
    bucket: u64,
    trace: Option<Arc<Trace>>,
    queue: Option<QueueLimit>,
}

#[derive(Clone, Debug, Default)]
struct Draft {
    up: LinkDraft,
    down: LinkDraft,
    webmark: bool,
    /// Key given for the down direction that WebMark mode does not use.
    idle: Option<&'static str>,
    traces: Vec<(String, Arc<Trace>)>,
}

impl Draft {
    fn read(&mut self, text: &str, traces: &dyn TraceSource) -> Result<(), String> {
        if text.len() > TEXT_MAX {
            return Err(format!("it is longer than {TEXT_MAX} bytes"));
        }
        if text.trim().is_empty() {
            return Err(
                "it is empty; name a profile (`loadstone netpath profiles` lists them) or give \
                 rtt=, loss=, rate="
                    .to_owned(),
            );
        }
        for (row, item) in text.split(',').enumerate() {
            let item = item.trim();
            match item.split_once('=') {
                Some((key, value)) => self.set(key.trim(), value.trim(), traces)?,
                None if item == "webmark" => self.webmark = true,
                None if row == 0 => {
                    let known = profile(item).ok_or_else(|| unknown_profile(item))?;
                    self.read(known.text, traces)?;
                }
                None => {
                    return Err(format!(
                        "{} has no value; a profile's name comes first, then key=value",
                        quoted(item)
                    ));
                }
            }
        }
        Ok(())
    }

    fn set(&mut self, key: &str, value: &str, traces: &dyn TraceSource) -> Result<(), String> {
        let wrong = |why: String| format!("{key}: {why}");
        if key == "rtt" {
            let rtt = parse_duration(value).map_err(|error| wrong(error.0))?;
            let up = Nanos(rtt.0 / 2);
            self.up.link.delay.base = up;
            self.down.link.delay.base = rtt - up;
            return Ok(());
        }
        let (ways, bare) = match key.split_once('-') {
            Some(("up", bare)) => (vec![&mut self.up], bare),
            Some(("down", bare)) => {
                let idle = ["order", "quantum"].into_iter().find(|key| *key == bare);
                self.idle = self.idle.or(idle);
                (vec![&mut self.down], bare)
            }
            _ => (vec![&mut self.up, &mut self.down], key),
        };
        // read once if it is for both directions: standard input can be read once only
        let trace = match bare {
            "trace" => Some(trace_by_name(&mut self.traces, value, traces).map_err(wrong)?),
            _ => None,
        };
        for way in ways {
            match &trace {
                Some(trace) => way.trace = Some(trace.clone()),
                None => way.set(bare, value).map_err(wrong)?,
            }
        }
        Ok(())
    }

    fn finish(self) -> Result<(LinkSpec, LinkSpec), String> {
        if self.webmark {
            return self.finish_webmark();
        }
        Ok((self.up.finish()?, self.down.finish()?))
    }

    /// Applies WebMark mode: the whole round trip applies to packets of the client; both directions
    /// have losses.
    fn finish_webmark(self) -> Result<(LinkSpec, LinkSpec), String> {
        let Some(bits_per_second) = self.up.bits.filter(|_| self.up.bits == self.down.bits) else {
            return Err("webmark needs one rate= for both directions: its packets are delayed by \
                        2·(size / rate + delay)"
                .to_owned());
        };
        let propagation = self.up.link.delay.base;
        let keeps = |draft: &LinkDraft| {
            let LinkSpec { loss, delay, keeps_order, quantum, .. } = draft.link.clone();
            let delay = Delay::constant(delay.base);
            let link = LinkSpec { loss, delay, keeps_order, quantum, ..LinkSpec::default() };
            let (bits, burst) = (draft.bits, draft.burst);
            *draft == LinkDraft { link, bits, burst, ..LinkDraft::default() }
        };
        if propagation != self.down.link.delay.base || !keeps(&self.up) || !keeps(&self.down) {
            return Err(
                "webmark takes rate=, delay= (or rtt=), loss=, burst=, order= and quantum= \
                        alone, the same rate and delay for both directions"
                    .to_owned(),
            );
        }
        let (order, quantum) = (self.up.link.keeps_order, self.up.link.quantum);
        // if given for both directions it applies to up: packets of the server are not delayed
        if let Some(key) = self.idle {
            return Err(format!(
                "down-{key}= has no effect with webmark, which delays only the client's packets: \
                 write {key}= or up-{key}="
            ));
        }
        let of = |draft: LinkDraft| LinkDraft { bits: None, ..draft }.finish();
        let (up, down) = (of(self.up)?, of(self.down)?);
        let law = WebMarkLaw { bits_per_second, propagation };
        let up = LinkSpec { webmark: Some(law), keeps_order: order, quantum, ..up };
        let down = LinkSpec { loss: down.loss, ..LinkSpec::default() };
        Ok((LinkSpec { delay: Delay::default(), ..up }, down))
    }
}

/// Returns the trace of that name, read on first use.
fn trace_by_name(
    loaded: &mut Vec<(String, Arc<Trace>)>,
    file: &str,
    traces: &dyn TraceSource,
) -> Result<Arc<Trace>, String> {
    if let Some((_, trace)) = loaded.iter().find(|(name, _)| name == file) {
        return Ok(trace.clone());
    }
    let trace = traces.trace(file)?;
    loaded.push((file.to_owned(), trace.clone()));
    Ok(trace)
}

fn unknown_profile(name: &str) -> String {
    let near: Vec<&str> = profiles()
        .iter()
        .map(|profile| profile.name)
        .filter(|known| known.contains(name) || name.contains(*known))
        .take(5)
        .collect();
    let hint = if near.is_empty() { String::new() } else { format!("; near: {}", near.join(", ")) };
    format!(
        "{} is not a profile{hint}; `loadstone netpath profiles` lists them, and rtt=, delay=, \
         loss=, rate= set it in figures",
        quoted(name)
    )
}

impl LinkDraft {
    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        let text = |error: ParseError| error.0;
        let link = &mut self.link;
        match key {
            "delay" => link.delay.base = parse_duration(value).map_err(text)?,
            "jitter" => link.delay.jitter = parse_duration(value).map_err(text)?,
            "dist" => link.delay.law = named(value, &JitterLaw::NAMED)?,
            "order" => {
                link.keeps_order = named(value, &[("keep", true), ("free", false)])?;
            }
            "reorder" => link.ahead = Some(parse_ahead(value)?),
            "quantum" => link.quantum = parse_duration(value).map_err(text)?,
            "loss" => link.loss = loss(value)?,
            "burst" => self.burst = Some(burst(value)?),
            "duplicate" => link.duplicate = share(value)?,
            "corrupt" => link.corrupt = share(value)?,
            "outage" => link.outage = outage(value)?,
            "rate" => self.bits = if value == "none" { None } else { Some(bits(value)?) },
            "overhead" => self.overhead = whole(value, PACKET_BYTES)? as u32,
            "bucket" => self.bucket = parse_size(value).map_err(text)?.min(QUEUE_BYTES_MAX),
            "queue" => self.queue = Some(queue(value)?),
            "drop" => {
                const POLICIES: [(&str, QueuePolicy); 2] =
                    [("tail", QueuePolicy::DropTail), ("head", QueuePolicy::DropHead)];
                link.queue.policy = match value.strip_prefix("codel") {
                    Some(rest) => QueuePolicy::CoDel(codel(rest)?),
                    None => named(value, &POLICIES)
                        .map_err(|why| format!("{why}, or codel, or codel:5ms:100ms"))?,
                };
            }
            _ => {
                return Err(
                    "there is no such item; known are rtt delay jitter dist order reorder quantum \
                     loss burst duplicate corrupt outage rate overhead bucket trace queue drop \
                     webmark, with up- or down- before them for one direction"
                        .to_owned(),
                );
            }
        }
        Ok(())
    }

    fn finish(self) -> Result<LinkSpec, String> {
        let mut link = self.link;
        if link.delay.base > DELAY_MAX || link.delay.jitter > DELAY_MAX {
            return Err("delay and jitter of a direction are at most 60s".to_owned());
        }
        if let Some(length) = self.burst {
            link.loss = in_bursts(&link.loss, length)?;
        }
        link.carrier = match (self.trace, self.bits) {
            (Some(_), Some(_)) => {
                return Err("rate= and trace= both set the rate; keep one".to_owned());
            }
            (Some(trace), None) => Carrier::Trace(trace),
            (None, Some(per_second)) => {
                Carrier::Bits { per_second, overhead: self.overhead, burst: self.bucket }
            }
            (None, None) => Carrier::Unlimited,
        };
        let limited = !matches!(link.carrier, Carrier::Unlimited);
        if !limited && (self.bucket > 0 || self.overhead > 0) {
            return Err("bucket= and overhead= belong to a rate; add rate=".to_owned());
        }
        if matches!(link.carrier, Carrier::Trace(_)) && link.outage.is_some_and(|it| !it.loses) {
            return Err("a trace defines its own gaps; an outage= with it can only lose packets \
                (outage=10s:1s:lose)"
                .to_owned());
        }
        link.queue.limit = match self.queue {
            Some(limit) => limit,
            None => default_queue(&link.carrier),
        };
        Ok(link)
    }
}

fn default_queue(carrier: &Carrier) -> QueueLimit {
    match carrier {
        Carrier::Unlimited => QueueLimit::None,
        Carrier::Trace(_) => QueueLimit::Packets(QUEUE_PACKETS_TRACE),
        Carrier::Bits { per_second, .. } => {
            let bytes = *per_second as f64 / 8.0 * QUEUE_SPAN.as_secs_f64();
            let packets = (bytes / PACKET_BYTES as f64).round() as u64;
            QueueLimit::Packets(packets.clamp(QUEUE_PACKETS_MIN, QUEUE_PACKETS_MAX) as u32)
        }
    }
}

fn named<T: Clone>(value: &str, names: &[(&str, T)]) -> Result<T, String> {
    let found = names.iter().find(|(name, _)| *name == value);
    found.map(|(_, meaning)| meaning.clone()).ok_or_else(|| {
        let known: Vec<&str> = names.iter().map(|(name, _)| *name).collect();
        format!("{} is not known; write {}", quoted(value), known.join(" or "))
    })
}

/// Parses `1%`, `ge:P:R[:LOSS-IN-BAD[:LOSS-IN-GOOD]]`, `states:P13:P31:P32:P23:P14`, `list:3:7`,
/// `none`.
fn loss(value: &str) -> Result<Loss, String> {
    if value == "none" {
        return Ok(Loss::None);
    }
    let Some((model, rest)) = value.split_once(':') else {
        let loss = share(value)?;
        return Ok(if loss > 0.0 { Loss::Bernoulli(loss) } else { Loss::None });
    };
    let shares = || rest.split(':').map(share).collect::<Result<Vec<f64>, String>>();
    match model {
        "ge" => {
            let shares = shares()?;
            let [to_bad, to_good] = *shares.get(..2).unwrap_or_default() else {
                return Err(LOSSES.to_owned());
            };
            if shares.len() > 4 {
                return Err(LOSSES.to_owned());
            }
            let at = |row: usize, default| shares.get(row).copied().unwrap_or(default);
            Ok(Loss::Gilbert { to_bad, to_good, bad: at(2, 1.0), good: at(3, 0.0) })
        }
        "states" => {
            let [p13, p31, p32, p23, p14] = *shares()? else {
                return Err(LOSSES.to_owned());
            };
            if p13 + p14 > 1.0 || p31 + p32 > 1.0 {
                return Err("the transitions from a state add up to more than 100 %".to_owned());
            }
            Ok(Loss::FourState { p13, p31, p32, p23, p14 })
        }
        "list" => {
            let numbers: Result<Vec<u64>, String> =
                rest.split(':').map(|number| whole(number, u64::MAX)).collect();
            let mut numbers = numbers?;
            numbers.sort_unstable();
            numbers.dedup();
            if numbers.first() == Some(&0) || numbers.len() > LIST_MAX {
                return Err(format!("packets are counted from 1, and {LIST_MAX} of them at most"));
            }
            Ok(Loss::List(numbers))
        }
        _ => Err(LOSSES.to_owned()),
    }
}

const LOSSES: &str = "a loss is a share (1%), ge:P:R[:BAD[:GOOD]], states:P13:P31:P32:P23:P14, or \
                      list:3:7";

fn burst(value: &str) -> Result<f64, String> {
    let length: Option<f64> = value.parse().ok();
    length.filter(|length| (1.0..=1e6).contains(length)).ok_or_else(|| {
        format!("{} is not a mean burst length; give packets, 1 or more", quoted(value))
    })
}

fn in_bursts(loss: &Loss, length: f64) -> Result<Loss, String> {
    match *loss {
        Loss::None => Ok(Loss::None),
        Loss::Bernoulli(share) if share < 1.0 => match Loss::in_bursts(share, length) {
            Loss::Gilbert { to_bad, .. } if to_bad > 1.0 => Err(format!(
                "this loss cannot occur in bursts of only {length} packets; give a longer burst"
            )),
            chain => Ok(chain),
        },
        _ => Err("burst= goes with a loss that is a share, such as loss=1%".to_owned()),
    }
}

/// Parses `25%` or `25%:5`: the fraction, and for every how many packets.
fn parse_ahead(value: &str) -> Result<Ahead, String> {
    let (of, every) = value.split_once(':').unwrap_or((value, "1"));
    Ok(Ahead { share: share(of)?, every: whole(every, 1_000_000)?.max(1) as u32 })
}

/// Parses `10s:500ms`, optionally followed by `:fixed` and `:lose`; or `none`.
fn outage(value: &str) -> Result<Option<Outage>, String> {
    if value == "none" {
        return Ok(None);
    }
    const FORM: &str = "an outage is THERE:AWAY[:fixed][:lose], such as 30s:2s";
    if !value.contains(':') {
        return Err(format!("{} is not an outage; {FORM}", quoted(value)));
    }
    let mut parts = value.split(':');
    let mut span = || {
        let part = parts.next().unwrap_or_default();
        let span = parse_duration(part).map_err(|error| error.0)?;
        let millisecond = Nanos::from_millis(1);
        if span < millisecond { Err("a span is at least 1ms".to_owned()) } else { Ok(span) }
    };
    let mut outage = Outage { there: span()?, away: span()?, random: true, loses: false };
    for part in parts {
        match part {
            "fixed" => outage.random = false,
            "lose" => outage.loses = true,
            _ => {
                return Err(format!("{} is not known; {FORM}", quoted(part)));
            }
        }
    }
    Ok(Some(outage))
}

/// Parses `100p`: packets; `64k`: bytes; `none`.
fn queue(value: &str) -> Result<QueueLimit, String> {
    if value == "none" {
        return Ok(QueueLimit::None);
    }
    if let Some(packets) = value.strip_suffix('p') {
        let most = whole(packets, QUEUE_PACKETS_MAX)?;
        return if most == 0 {
            Err("a queue of size 0 loses all packets".to_owned())
        } else {
            Ok(QueueLimit::Packets(most as u32))
        };
    }
    let has_unit = value.chars().last().is_some_and(char::is_alphabetic);
    let size = parse_size(value).ok().filter(|_| has_unit);
    match size {
        Some(bytes) if (PACKET_BYTES..=QUEUE_BYTES_MAX).contains(&bytes) => {
            Ok(QueueLimit::Bytes(bytes))
        }
        _ => Err(format!(
            "{} is not a queue; give packets (100p) or bytes (64k), at least one packet of 1500 \
             bytes",
            quoted(value)
        )),
    }
}

/// Parses the text after `codel`: empty, or `:TARGET:INTERVAL`.
fn codel(rest: &str) -> Result<CoDel, String> {
    if rest.is_empty() {
        return Ok(CoDel::default());
    }
    let spans = rest.strip_prefix(':').and_then(|rest| rest.split_once(':'));
    let Some((target, interval)) = spans else {
        return Err("write codel, or codel:TARGET:INTERVAL such as codel:5ms:100ms".to_owned());
    };
    let target = parse_duration(target).map_err(|error| error.0)?;
    let interval = parse_duration(interval).map_err(|error| error.0)?;
    if target.is_zero() || interval < target {
        return Err("CoDel's target is above 0 and at most its interval".to_owned());
    }
    Ok(CoDel { target, interval })
}

#[cfg(test)]
mod tests;
