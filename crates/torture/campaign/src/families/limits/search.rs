//! Finds a boundary: multiplies until something is refused, then bisects, then checks both sides
//! again, and beyond.

/// Maximum number of requests of a search.
const REQUESTS_MAX: u32 = 200;

/// Result of a search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LimitFound {
    /// The largest accepted amount, and the smallest refused one.
    pub(super) low: Option<u64>,
    pub(super) high: Option<u64>,
    /// Inconsistent amount: accepted beyond the boundary, or judged differently the second time.
    pub(super) stray: Option<u64>,
    /// True if the search was stopped early.
    pub(super) cut: bool,
}

/// Finds the boundary between `least` and `most`. `ask` returns whether an amount is accepted;
/// `None` stops the search. With a factor of 2 it needs about 17 calls for a boundary near 8 KiB.
pub(super) fn search(
    least: u64,
    most: u64,
    factor: u64,
    ask: &mut dyn FnMut(u64) -> Option<bool>,
) -> LimitFound {
    let mut found = LimitFound::default();
    let done = climb(least, most, factor, ask, &mut found)
        .and_then(|()| halve(ask, &mut found))
        .and_then(|()| confirm(most, ask, &mut found));
    found.cut = done.is_none();
    found
}

fn climb(
    least: u64,
    most: u64,
    factor: u64,
    ask: &mut dyn FnMut(u64) -> Option<bool>,
    found: &mut LimitFound,
) -> Option<()> {
    let mut amount = least.min(most);
    loop {
        match ask(amount)? {
            true => found.low = Some(amount),
            false => {
                found.high = Some(amount);
                return Some(());
            }
        }
        if amount == most {
            return Some(());
        }
        amount = amount.saturating_mul(factor.max(2)).min(most);
    }
}

fn halve(ask: &mut dyn FnMut(u64) -> Option<bool>, found: &mut LimitFound) -> Option<()> {
    let (Some(mut low), Some(mut high)) = (found.low, found.high) else { return Some(()) };
    let mut asked = 0;
    while high - low > 1 && asked < REQUESTS_MAX {
        let middle = low + (high - low) / 2;
        match ask(middle)? {
            true => low = middle,
            false => high = middle,
        }
        (found.low, found.high) = (Some(low), Some(high));
        asked += 1;
    }
    Some(())
}

fn confirm(
    most: u64,
    ask: &mut dyn FnMut(u64) -> Option<bool>,
    found: &mut LimitFound,
) -> Option<()> {
    let Some(high) = found.high else { return Some(()) };
    if let Some(low) = found.low
        && !ask(low)?
    {
        found.stray = Some(low);
    }
    let mut beyond = vec![high, high.saturating_mul(2).min(most), most];
    beyond.dedup();
    for amount in beyond {
        if ask(amount)? {
            found.stray = Some(amount);
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the boundary and the number of calls.
    fn describe(least: u64, most: u64, factor: u64, taken: impl Fn(u64) -> Option<bool>) -> String {
        let mut asked = 0;
        let found = search(least, most, factor, &mut |amount| {
            asked += 1;
            taken(amount)
        });
        let LimitFound { low, high, stray, cut } = found;
        let show = |one: Option<u64>| one.map_or("-".to_owned(), |one| one.to_string());
        let cut = if cut { " cut" } else { "" };
        format!("{} {} stray {} in {asked}{cut}", show(low), show(high), show(stray))
    }

    #[test]
    fn boundaries_are_found() {
        let mib = 1 << 20;
        let up_to = |most: u64| move |amount: u64| Some(amount <= most);
        assert_eq!(describe(1_024, mib, 2, up_to(8_192)), "8192 8193 stray - in 22");
        assert_eq!(describe(1_024, mib, 2, up_to(65_536)), "65536 65537 stray - in 28");
        assert_eq!(describe(10, 20_000, 2, up_to(100)), "100 101 stray - in 15");
        assert_eq!(describe(10, 10, 2, up_to(100)), "10 - stray - in 1");
        assert_eq!(describe(1_024, mib, 2, up_to(mib)), "1048576 - stray - in 11");
        assert_eq!(describe(1_024, mib, 2, up_to(0)), "- 1024 stray - in 4");
        assert_eq!(describe(1_024, 1 << 62, 16, up_to(mib)), "1048576 1048577 stray - in 30");
        // accepted again beyond the boundary; and stopped at a hang
        let odd = |amount: u64| Some(amount <= 8_192 || amount == mib);
        assert_eq!(describe(1_024, mib, 2, odd), "8192 8193 stray 1048576 in 22");
        let hangs = |amount: u64| (amount < 5_000).then_some(true);
        assert_eq!(describe(1_024, mib, 2, hangs), "4096 - stray - in 4 cut");
    }

    proptest::proptest! {
        #[test]
        fn every_boundary_is_found(boundary in 1_u64..2_000_000, factor in 2_u64..20) {
            let found = search(1, 2_000_000, factor, &mut |amount| Some(amount <= boundary));
            let high = (boundary < 2_000_000).then_some(boundary + 1);
            proptest::prop_assert_eq!(found, LimitFound { low: Some(boundary), high, stray: None, cut: false });
        }
    }
}
