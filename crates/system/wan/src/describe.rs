//! Description of a link as text.

use crate::loss::Loss;
use crate::number::show_bits;
use crate::spec::{Carrier, LinkSpec, QueueLimit, QueuePolicy};
use units::show;

/// Describes a link: `1.6 Mbit/s, delay 150 ms, queue 50 packets, loss 1 %`; `nothing` for a link
/// without effect.
pub fn describe(link: &LinkSpec) -> String {
    let mut parts = Vec::new();
    match &link.carrier {
        Carrier::Unlimited => {}
        Carrier::Bits { per_second, overhead, burst } => {
            parts.push(show_bits(*per_second as f64));
            parts.extend(
                (*overhead > 0).then(|| format!("{overhead} bytes of overhead per packet")),
            );
            parts.extend((*burst > 0).then(|| format!("bursts of {}", show::bytes(*burst))));
        }
        Carrier::Trace(trace) => {
            parts.push(format!("a trace of mean rate {}", show_bits(trace.bits_per_second())));
        }
    }
    delay(link, &mut parts);
    match link.queue.limit {
        QueueLimit::None => {}
        QueueLimit::Packets(most) => parts.push(format!("queue {most} packets")),
        QueueLimit::Bytes(most) => parts.push(format!("queue {}", show::bytes(most))),
    }
    match link.queue.policy {
        QueuePolicy::DropTail => {}
        QueuePolicy::DropHead => parts.push("drop-head".to_owned()),
        QueuePolicy::CoDel(codel) => parts.push(format!(
            "CoDel {}, {}",
            show::duration(codel.target),
            show::duration(codel.interval)
        )),
    }
    parts.extend(loss(&link.loss));
    if let Some(outage) = &link.outage {
        parts.push(format!(
            "away {} after {}{}{}",
            show::duration(outage.away),
            show::duration(outage.there),
            if outage.random { " (means)" } else { "" },
            if outage.loses { ", packets meanwhile are lost" } else { "" },
        ));
    }
    for (name, share) in [("duplicated", link.duplicate), ("corrupted", link.corrupt)] {
        parts.extend((share > 0.0).then(|| format!("{} {name}", show::share(share))));
    }
    if parts.is_empty() { "nothing".to_owned() } else { parts.join(", ") }
}

fn delay(link: &LinkSpec, parts: &mut Vec<String>) {
    if let Some(law) = &link.webmark {
        parts.push(format!(
            "WebMark's delay 2·(size / {} + {})",
            show_bits(law.bits_per_second as f64),
            show::duration(law.propagation)
        ));
    }
    let (base, jitter) = (link.delay.base, link.delay.jitter);
    if !base.is_zero() || !jitter.is_zero() {
        let varies = if jitter.is_zero() {
            String::new()
        } else {
            let name = crate::delay::JitterLaw::NAMED.iter().find(|row| row.1 == link.delay.law);
            let name = name.map_or("", |row| row.0);
            let order = if link.keeps_order { "" } else { ", overtaking" };
            format!(" ± {} ({name}{order})", show::duration(jitter))
        };
        parts.push(format!("delay {}{varies}", show::duration(base)));
    }
    if let Some(ahead) = &link.ahead {
        parts.push(format!("{} of every {}. overtake", show::share(ahead.share), ahead.every));
    }
}

fn loss(loss: &Loss) -> Option<String> {
    Some(match loss {
        Loss::None => return None,
        Loss::Bernoulli(share) => format!("loss {}", show::share(*share)),
        // losses in the good state do not come in bursts of that length
        Loss::Gilbert { to_good, bad, good, .. }
            if *bad >= 1.0 && *good <= 0.0 && *to_good > 0.0 =>
        {
            format!("loss {} in bursts of {:.1}", show::share(loss.stationary()), 1.0 / to_good)
        }
        Loss::Gilbert { .. } | Loss::FourState { .. } => {
            format!("loss {} by a chain of states", show::share(loss.stationary()))
        }
        Loss::List(numbers) => format!("{} packets lost by number", numbers.len()),
    })
}
