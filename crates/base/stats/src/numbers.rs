//! Numbers that users take from responses, counted in classes of four decimal digits.

use std::collections::BTreeMap;

/// Millionths of one, the resolution of a number.
const UNIT: f64 = 1e6;
/// Digits that a class keeps.
const DIGITS: u32 = 4;
/// Distance between the classes of one decade and of the next; above the kept digits.
const DECADE: i64 = 10_000;

/// Numbers of one metric. Merging is associative and commutative.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NumberTally {
    /// Numbers by class, the lowest first.
    pub classes: BTreeMap<i64, u64>,
    /// Sum of the positive numbers, and of the others without their sign, in millionths.
    pub above: u128,
    pub below: u128,
    /// Lowest and highest number, in millionths.
    pub ends: Option<(i64, i64)>,
    /// Values that are not numbers between ±9,000,000,000,000.
    pub unreadable: u64,
}

/// Reads a number as millionths; `None` for text that is not a number in range.
pub fn parse_number(text: &str) -> Option<i64> {
    let text = text.trim();
    if let Ok(whole) = text.parse::<i64>() {
        return whole.checked_mul(UNIT as i64);
    }
    let scaled = (text.parse::<f64>().ok()? * UNIT).round();
    (scaled.abs() < i64::MAX as f64).then_some(scaled as i64)
}

fn number(millionths: i64) -> f64 {
    millionths as f64 / UNIT
}

/// Returns the class of a number: its decade beyond the kept digits, and these digits.
fn class_of(number: i64) -> i64 {
    let size = number.unsigned_abs();
    let spare = size.checked_ilog10().unwrap_or(0).saturating_sub(DIGITS - 1);
    let kept = (size / 10_u64.pow(spare)) as i64;
    (i64::from(spare) * DECADE + kept) * number.signum()
}

/// Returns the number of a class that is nearest to zero.
fn start_of(class: i64) -> i64 {
    let size = class.unsigned_abs();
    let spare = (size / DECADE as u64).min(15) as u32;
    let start = (size % DECADE as u64).saturating_mul(10_u64.pow(spare));
    i64::try_from(start).unwrap_or(i64::MAX) * class.signum()
}

/// Formats a number without a unit: whole ones with thousands separators, others with four digits.
pub fn show_number(value: f64) -> String {
    let whole = value.fract() == 0.0 && value.abs() < 1e15;
    let sign = if value < 0.0 { "-" } else { "" };
    if whole {
        return format!("{sign}{}", units::show::count(value.abs() as u64));
    }
    let digits = 3 - value.abs().log10().floor().clamp(-6.0, 3.0) as i32;
    let text = format!("{value:.*}", digits.max(0) as usize);
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

impl NumberTally {
    /// Counts a number in millionths, or a value that is not a number.
    pub fn record(&mut self, value: Option<i64>) {
        let Some(value) = value else {
            self.unreadable += 1;
            return;
        };
        *self.classes.entry(class_of(value)).or_default() += 1;
        let sum = if value > 0 { &mut self.above } else { &mut self.below };
        *sum += u128::from(value.unsigned_abs());
        self.widen(value, value);
    }

    fn widen(&mut self, low: i64, high: i64) {
        let (least, most) = self.ends.unwrap_or((low, high));
        self.ends = Some((least.min(low), most.max(high)));
    }

    /// Adds another tally's counts.
    pub fn merge(&mut self, other: &NumberTally) {
        for (class, count) in &other.classes {
            *self.classes.entry(*class).or_default() += count;
        }
        self.above += other.above;
        self.below += other.below;
        self.unreadable += other.unreadable;
        if let Some((low, high)) = other.ends {
            self.widen(low, high);
        }
    }

    /// Numbers counted, without unreadable values.
    pub fn count(&self) -> u64 {
        self.classes.values().sum()
    }

    /// Returns the number at or below which a share `q` (0..=1) lies, to four digits; `None`
    /// without numbers.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        let (low, high) = self.ends?;
        let count = self.count();
        let exact = q * count as f64 * (1.0 - 2.0 * f64::EPSILON);
        let rank = (exact.ceil() as u64).max(1);
        if rank >= count {
            return Some(number(high));
        }
        let mut seen = 0;
        let found = self.classes.iter().find(|(_, more)| {
            seen += **more;
            seen >= rank
        });
        found.map(|(class, _)| number(start_of(*class).clamp(low, high)))
    }

    /// Returns how many numbers are at or below `bound`, to the resolution of the classes.
    pub fn count_at_or_below(&self, bound: f64) -> u64 {
        let within = |class: &&i64| number(start_of(**class)) <= bound;
        self.classes.keys().take_while(within).map(|class| self.classes[class]).sum()
    }

    /// Returns the number of each class, the lowest first: each counts itself as at or below it.
    pub fn values(&self) -> Vec<f64> {
        self.classes.keys().map(|class| number(start_of(*class))).collect()
    }

    /// Returns the mean of the numbers themselves; `None` without numbers.
    pub fn mean(&self) -> Option<f64> {
        let count = self.count();
        (count > 0).then(|| (self.above as f64 - self.below as f64) / UNIT / count as f64)
    }

    /// Returns the lowest and the highest number; `None` without numbers.
    pub fn ends(&self) -> Option<(f64, f64)> {
        self.ends.map(|(low, high)| (number(low), number(high)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(texts: &[&str]) -> NumberTally {
        let mut tally = NumberTally::default();
        texts.iter().for_each(|text| tally.record(parse_number(text)));
        tally
    }

    #[test]
    fn quantiles_of_numbers_keep_their_digits() {
        let all = tally(&["1", "2", "3.5", "42", "123456", "-7", "0", "0.000001"]);
        assert_eq!(all.ends(), Some((-7.0, 123_456.0)));
        let quantiles = [0.125, 0.25, 0.75, 0.875, 1.0].map(|q| all.quantile(q).unwrap());
        assert_eq!(quantiles.map(|it| it.to_string()), ["-7", "0", "3.5", "42", "123456"]);
        assert!((all.mean().unwrap() - 123_497.500_001 / 8.0).abs() < 1e-9);
        assert_eq!((all.count(), all.count_at_or_below(2.0)), (8, 5));
        assert_eq!(tally(&[]).quantile(0.5), None);
    }

    #[test]
    fn a_class_starts_within_a_thousandth_of_its_numbers() {
        for number in [1, 999, 1_000, 9_999, 10_000, 10_009, 99_999, 1_234_567, i64::MAX] {
            for number in [number, -number] {
                let start = start_of(class_of(number));
                let off = (number as f64 - start as f64).abs() / number.unsigned_abs() as f64;
                assert!(off <= 0.001 && start.signum() == number.signum(), "{number}: {start}");
            }
        }
        assert!(class_of(-5) < class_of(0) && class_of(9_999) < class_of(10_000));
    }

    #[test]
    fn invalid_numbers_are_counted_separately() {
        let all = tally(&["x", "", "nan", "inf", "1e300", "9223372036854775807", "7"]);
        assert_eq!((all.count(), all.unreadable), (1, 6));
    }

    #[test]
    fn numbers_merge_in_any_order() {
        let (a, b) = (tally(&["1", "x", "20000.5"]), tally(&["-3", "1"]));
        let (mut ab, mut ba) = (a.clone(), b.clone());
        ab.merge(&b);
        ba.merge(&a);
        assert_eq!(ab, ba);
        assert_eq!(ab.ends(), Some((-3.0, 20_000.5)));
    }
}
