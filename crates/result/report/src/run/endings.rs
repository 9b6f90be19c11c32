//! Ends of a run's calls along its window: responses by status number, and failures without a
//! response by class, as parts of one whole.

use super::charts::Along;
use crate::section::chart::{AxisUnit, Chart, Line, Tone};
use sample::FailureClass;
use stats::Endings;
use std::cmp::Reverse;

/// Maximum number of distinguished statuses and classes; the rest of each is one part.
const STATUSES_MAX: usize = 5;
const CLASSES_MAX: usize = 3;

/// All styles of parts: as many as the maximum number of parts.
const TONES: [Tone; STATUSES_MAX + CLASSES_MAX] = [
    Tone::Blue,
    Tone::Green,
    Tone::Sky,
    Tone::Orange,
    Tone::Red,
    Tone::Purple,
    Tone::Ink,
    Tone::Soft,
];

/// A part: its name, its preferred style, and its count in a point of the chart.
struct StackedPart<'a> {
    name: String,
    wanted: &'static [Tone],
    count: Box<dyn Fn(&Endings) -> u64 + 'a>,
}

/// Draws the chart; `None` if no call ended, or the outcomes were not recorded.
pub(crate) fn chart(along: &Along) -> Option<Chart> {
    let mut whole = Endings::default();
    along.buckets.iter().for_each(|bucket| whole.merge(&bucket.endings));
    if whole.is_empty() {
        return None;
    }
    let (statuses, more_statuses) =
        most_frequent(&whole.statuses, whole.other_statuses, STATUSES_MAX);
    let (classes, more_classes) = most_frequent(&without_response(&whole), 0, CLASSES_MAX);
    let mut parts: Vec<StackedPart<'_>> =
        statuses.iter().map(|status| of_status(*status)).collect();
    if more_statuses {
        parts.push(StackedPart {
            name: "other statuses".to_owned(),
            wanted: &[Tone::Soft],
            count: Box::new(|endings| {
                endings.other_statuses + outside(&endings.statuses, &statuses)
            }),
        });
    }
    parts.extend(classes.iter().map(|class| of_class(*class)));
    if more_classes {
        parts.push(StackedPart {
            name: "other failures".to_owned(),
            wanted: &[Tone::Ink],
            count: Box::new(|endings| outside(&without_response(endings), &classes)),
        });
    }
    let mut chart = along.chart(
        "endings",
        "Responses by status, and failures without a response",
        AxisUnit::Rate,
    );
    chart.stack = along.buckets.first().map(|bucket| bucket.span_s);
    for (part, tone) in parts.iter().zip(tones(&parts)) {
        let values = along.values(|bucket| bucket.per_s((part.count)(&bucket.endings)));
        chart.lines.push(Line::new(&part.name, tone, values));
    }
    Some(chart)
}

/// Returns the most frequent keys in order, and whether there are others.
fn most_frequent<K: Copy + Ord>(counts: &[(K, u64)], beyond: u64, most: usize) -> (Vec<K>, bool) {
    let rest = counts.len() > most || beyond > 0;
    let mut by_count = counts.to_vec();
    by_count.sort_by_key(|(key, count)| (Reverse(*count), *key));
    by_count.truncate(if rest { most - 1 } else { most });
    let mut keys: Vec<K> = by_count.into_iter().map(|(key, _)| key).collect();
    keys.sort_unstable();
    (keys, rest)
}

/// Returns the sum over all other keys.
fn outside<K: Copy + Ord>(counts: &[(K, u64)], keys: &[K]) -> u64 {
    let others = counts.iter().filter(|(key, _)| !keys.contains(key));
    others.map(|(_, count)| count).sum()
}

/// Returns the calls that ended without a complete response: the others are counted by status.
fn without_response(endings: &Endings) -> Vec<(FailureClass, u64)> {
    let failures = endings.failures.iter().copied();
    failures.filter(|(class, _)| !class.has_complete_response()).collect()
}

fn of_status(status: u16) -> StackedPart<'static> {
    let wanted: &[Tone] = match status / 100 {
        2 => &[Tone::Blue, Tone::Green, Tone::Sky],
        3 => &[Tone::Sky, Tone::Green],
        4 => &[Tone::Orange],
        5 => &[Tone::Red],
        _ => &[Tone::Soft],
    };
    let count = move |endings: &Endings| endings.with_status(status);
    StackedPart { name: status.to_string(), wanted, count: Box::new(count) }
}

fn of_class(class: FailureClass) -> StackedPart<'static> {
    let count = move |endings: &Endings| endings.of_class(class);
    let wanted = &[Tone::Purple, Tone::Ink];
    StackedPart { name: class.id().to_owned(), wanted, count: Box::new(count) }
}

/// Returns distinct colors for the parts: the preferred color if it is free, otherwise a remaining
/// color.
fn tones(parts: &[StackedPart<'_>]) -> Vec<Tone> {
    let mut free = TONES.to_vec();
    let mut take = |wanted: &[Tone]| {
        let tone = *wanted.iter().find(|tone| free.contains(tone))?;
        free.retain(|other| *other != tone);
        Some(tone)
    };
    let suited: Vec<Option<Tone>> = parts.iter().map(|part| take(part.wanted)).collect();
    suited.into_iter().map(|tone| tone.or_else(|| take(&TONES)).unwrap_or(Tone::Soft)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_parts_look_alike() {
        let statuses = [200, 201, 301, 502, 503].map(of_status);
        let classes = [FailureClass::Reset, FailureClass::Refused, FailureClass::Tls].map(of_class);
        let parts: Vec<StackedPart<'_>> = statuses.into_iter().chain(classes).collect();
        let tones = tones(&parts);
        assert_eq!(tones[0], Tone::Blue);
        assert_eq!((tones[2], tones[3], tones[5]), (Tone::Sky, Tone::Red, Tone::Purple));
        for (n, tone) in tones.iter().enumerate() {
            assert!(!tones[..n].contains(tone), "{tones:?}");
        }
    }

    #[test]
    fn the_rarest_are_put_together() {
        let all = [(200, 90), (301, 1), (404, 5), (500, 7), (502, 3), (503, 2)];
        assert_eq!(most_frequent(&all, 0, 5), (vec![200, 404, 500, 502], true));
        assert_eq!(most_frequent(&all[..5], 0, 5), (vec![200, 301, 404, 500, 502], false));
        assert_eq!(most_frequent(&all[..1], 3, 5), (vec![200], true), "other statuses of the rows");
    }
}
