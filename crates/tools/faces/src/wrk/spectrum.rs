//! wrk2's latency block: eight quantiles, then HdrHistogram's percentile spectrum in the form that
//! plotters read.

use super::spread::Spread;
use super::units::{column, time_us};

/// Rows for each halving of the distance to 100 %.
const TICKS: f64 = 5.0;

/// wrk2's histogram covers 1 µs to 24 hours at three digits: text of its footer.
const BUCKETS: (u32, u32) = (27, 2048);

/// Returns the whole block for one histogram; times in microseconds.
pub(super) fn block(latency: &Spread, title: &str) -> String {
    let mut out = format!("  Latency Distribution (HdrHistogram - {title})\n");
    for percent in [50.0, 75.0, 90.0, 99.0, 99.9, 99.99, 99.999, 100.0] {
        let value = column(&time_us(value_at(latency, percent) as f64), 10);
        out += &format!("{percent:>7.3}%{value}\n");
    }
    out += "\n  Detailed Percentile spectrum:\n";
    let names = ["Value", "Percentile", "TotalCount", "1/(1-Percentile)"];
    out += &format!("{:>12} {:>12} {:>12} {:>12}\n\n", names[0], names[1], names[2], names[3]);
    for (value, percent, count) in rows(latency) {
        let share = percent / 100.0;
        let inverted = 1.0 / (1.0 - share);
        let (value, share) = (format!("{:.3}", millis(value as f64)), format!("{share:.6}"));
        out += &format!("{value:>12} {share:>12} {count:>12} {inverted:>12.2}\n");
    }
    let (mean, stdev) = (millis(latency.mean()), millis(population_stdev(latency)));
    let (max, count) = (millis(latency.max() as f64), latency.count());
    let (buckets, parts) = BUCKETS;
    out += &format!("#[Mean    = {mean:>12.3}, StdDeviation   = {stdev:>12.3}]\n");
    out += &format!("#[Max     = {max:>12.3}, Total count    = {count:>12}]\n");
    out += &format!("#[Buckets = {buckets:>12}, SubBuckets     = {parts:>12}]\n");
    out
}

fn millis(micros: f64) -> f64 {
    micros / 1000.0
}

/// Returns the value at or below which that many percent lie, as HdrHistogram counts: rank round(p
/// · n).
fn value_at(latency: &Spread, percent: f64) -> u64 {
    let rank = (percent / 100.0 * latency.count() as f64 + 0.5).max(1.0) as u64;
    let mut reached = 0;
    for (value, count) in &latency.values {
        reached += count;
        if reached >= rank {
            return *value;
        }
    }
    latency.max()
}

/// Returns (value, percent, number at or below it): HdrHistogram's percentile iteration, whose
/// steps halve with the distance to 100 %.
fn rows(latency: &Spread) -> Vec<(u64, f64, u64)> {
    let total = latency.count();
    let mut rows = Vec::new();
    let mut target = 0.0;
    let mut reached = 0;
    for (value, count) in &latency.values {
        reached += count;
        while target <= 100.0 * reached as f64 / total as f64 {
            rows.push((*value, target, reached));
            if reached >= total {
                break;
            }
            let halvings = (100.0 / (100.0 - target)).log2().floor() + 1.0;
            target += 100.0 / (TICKS * halvings.exp2());
        }
    }
    if total > 0 {
        rows.push((latency.max(), 100.0, total));
    }
    rows
}

fn population_stdev(latency: &Spread) -> f64 {
    let count = latency.count();
    if count == 0 {
        return 0.0;
    }
    latency.stdev() * ((count - 1) as f64 / count as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_block_has_hdr_histograms_layout() {
        let latency = Spread::new((1..=100).map(|n| (n * 1000, 1)).collect());
        let block = block(&latency, "Recorded Latency");
        let lines: Vec<&str> = block.lines().collect();
        assert_eq!(lines[0], "  Latency Distribution (HdrHistogram - Recorded Latency)");
        assert_eq!(lines[1], " 50.000%   50.00ms");
        assert_eq!(lines[8], "100.000%  100.00ms");
        assert_eq!(lines[10], "  Detailed Percentile spectrum:");
        assert_eq!(lines[11], "       Value   Percentile   TotalCount 1/(1-Percentile)");
        assert_eq!(lines[13], "       1.000     0.000000            1         1.00");
        assert_eq!(lines[14], "      10.000     0.100000           10         1.11");
        assert_eq!(lines[18], "      50.000     0.500000           50         2.00");
        assert_eq!(lines[19], "      55.000     0.550000           55         2.22");
        let last = lines.len() - 4;
        assert_eq!(lines[last], "     100.000     1.000000          100          inf");
        assert_eq!(lines[last + 1], "#[Mean    =       50.500, StdDeviation   =       28.866]");
        assert_eq!(lines[last + 2], "#[Max     =      100.000, Total count    =          100]");
        assert_eq!(lines[last + 3], "#[Buckets =           27, SubBuckets     =         2048]");
    }

    #[test]
    fn no_value_and_one_value_also_have_a_block() {
        assert!(block(&Spread::default(), "x").contains("Total count    =            0]"));
        let one = rows(&Spread::new(vec![(7, 3)]));
        assert_eq!(one, [(7, 0.0, 3), (7, 100.0, 3)]);
    }
}
