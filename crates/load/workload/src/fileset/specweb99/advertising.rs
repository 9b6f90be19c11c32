//! Choice of advertisements for visitors: SPECweb99's rotation, over tables that follow from a
//! seed, so that a client can compute the expected response.
//!
//! The rotation (traits combined by AND, weights added, a minimum weight) is the benchmark's, from
//! its run rules; the masks and the tables were chosen for this program.

use crate::fileset::specweb99_files::ADS;
use units::{Purpose, Seed, Stream};

/// Number of known visitors, numbered from 0.
pub const USERS: u32 = 10_000;

/// Bit positions of a person's traits: sex, age, region, and two kinds of interests.
const TRAITS: [(u32, u32); 5] = [(28, 2), (24, 4), (20, 4), (10, 10), (0, 10)];
/// Weights of a trait, and the minimum sum at which an advertisement is shown, inclusive.
const WEIGHTS: (u64, u64) = (1, 10);
const LEAST: (u64, u64) = (8, 20);
/// One in this number of advertisements has expired.
const EXPIRED_OF: u64 = 10;

/// The visitor that a request's cookie identifies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Visitor {
    pub user: u32,
    /// The advertisement shown last.
    pub last_ad: u32,
}

impl Visitor {
    /// Parses the value of a Cookie field; the last cookie counts.
    pub fn parse(cookie: &str) -> Option<Visitor> {
        let mut pairs = cookie.split(';').filter_map(|pair| pair.trim().strip_prefix("my_cookie="));
        let (user, last_ad) =
            pairs.next_back()?.strip_prefix("user_id=")?.split_once("&last_ad=")?;
        Some(Visitor { user: user.parse().ok()?, last_ad: last_ad.parse().ok()? })
    }
}

/// The value of a Cookie field.
impl std::fmt::Display for Visitor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "my_cookie=user_id={}&last_ad={}", self.user, self.last_ad)
    }
}

/// Choice for a visitor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShownAd {
    pub ad: u32,
    pub weight: u32,
    pub expired: bool,
}

impl ShownAd {
    /// Parses the value of a Set-Cookie field.
    pub fn parse(cookie: &str) -> Option<ShownAd> {
        let rest = cookie.trim().strip_prefix("found_cookie=Ad_id=")?;
        let (ad, rest) = rest.split(';').next()?.split_once("&Ad_weight=")?;
        let (weight, expired) = rest.split_once("&Expired=")?;
        let expired = match expired.trim() {
            "0" => false,
            "1" => true,
            _ => return None,
        };
        Some(ShownAd { ad: ad.parse().ok()?, weight: weight.parse().ok()?, expired })
    }
}

/// The value of a Set-Cookie field.
impl std::fmt::Display for ShownAd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ShownAd { ad, weight, expired } = self;
        write!(f, "found_cookie=Ad_id={ad}&Ad_weight={weight}&Expired={}", u8::from(*expired))
    }
}

#[derive(Clone, Copy, Debug)]
struct Ad {
    traits: u32,
    weights: [u32; TRAITS.len()],
    least: u32,
    expired: bool,
}

/// The two tables: of the visitors and of the advertisements.
#[derive(Clone, Debug)]
pub struct Advertising {
    seed: Seed,
    ads: Vec<Ad>,
}

impl Advertising {
    pub fn new(seed: Seed) -> Advertising {
        let ad = |row| Ad::draw(&mut seed.stream(Purpose::Advertising, row));
        Advertising { seed, ads: (0..u64::from(ADS)).map(ad).collect() }
    }

    /// Returns the first advertisement after the last shown one with sufficient weight for this
    /// visitor; if the table has none, the last shown one.
    pub fn choose(&self, visitor: Visitor) -> ShownAd {
        let person = self.person(visitor.user);
        let last = visitor.last_ad % ADS;
        let behind = (1..=ADS).map(|step| (last + step) % ADS);
        let enough = |ad: &u32| {
            let row = &self.ads[*ad as usize];
            row.weight(person) >= row.least
        };
        let ad = behind.into_iter().find(enough).unwrap_or(last);
        let row = &self.ads[ad as usize];
        ShownAd { ad, weight: row.weight(person), expired: row.expired }
    }

    /// Returns the traits of a visitor: one bit of each kind.
    fn person(&self, user: u32) -> u32 {
        let index = u64::from(ADS) + u64::from(user);
        let mut stream = self.seed.stream(Purpose::Advertising, index);
        let bit = |(from, bits): (u32, u32)| 1 << (from + stream.below(u64::from(bits)) as u32);
        TRAITS.map(bit).into_iter().fold(0, |all, bit: u32| all | bit)
    }
}

impl Ad {
    fn draw(stream: &mut Stream) -> Ad {
        let mut between = |(low, high): (u64, u64)| (low + stream.below(high - low + 1)) as u32;
        Ad {
            weights: TRAITS.map(|_| between(WEIGHTS)),
            least: between(LEAST),
            expired: stream.below(EXPIRED_OF) == 0,
            // each trait with a probability of one half
            traits: stream.next_u64() as u32,
        }
    }

    /// Returns the weight of the advertisement for a person with these traits.
    fn weight(&self, person: u32) -> u32 {
        let common = self.traits & person;
        let matches = |(from, bits): (u32, u32)| common >> from & ((1 << bits) - 1) != 0;
        let weights = TRAITS.iter().zip(self.weights).filter(|(kind, _)| matches(**kind));
        weights.map(|(_, weight)| weight).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookies_are_read_as_they_are_written() {
        let visitor = Visitor { user: 17, last_ad: 359 };
        assert_eq!(visitor.to_string(), "my_cookie=user_id=17&last_ad=359");
        assert_eq!(Visitor::parse(&format!("a=b; {visitor}; c")), Some(visitor));
        for wrong in ["", "my_cookie=", "my_cookie=user_id=x&last_ad=1", "user_id=1&last_ad=1"] {
            assert_eq!(Visitor::parse(wrong), None, "{wrong}");
        }
        let shown = ShownAd { ad: 3, weight: 21, expired: true };
        assert_eq!(shown.to_string(), "found_cookie=Ad_id=3&Ad_weight=21&Expired=1");
        assert_eq!(ShownAd::parse(&format!("{shown}; Path=/")), Some(shown));
        for wrong in ["found_cookie=Ad_id=3", "found_cookie=Ad_id=3&Ad_weight=1&Expired=2"] {
            assert_eq!(ShownAd::parse(wrong), None, "{wrong}");
        }
    }

    /// A returning visitor is shown another advertisement, the rotation wraps around, and each has
    /// sufficient weight for its visitor.
    #[test]
    fn the_rotation_continues_after_the_last_one() {
        let tables = Advertising::new(Seed(1));
        for user in 0..50 {
            let person = tables.person(user);
            let (mut last_ad, mut steps, mut rounds) = (0, 0, 0);
            while rounds < 2 {
                let shown = tables.choose(Visitor { user, last_ad });
                let row = &tables.ads[shown.ad as usize];
                assert!(shown.weight >= row.least && shown.weight == row.weight(person));
                let passed = (shown.ad + ADS - last_ad - 1) % ADS;
                for skipped in (1..=passed).map(|step| (last_ad + step) % ADS) {
                    let row = &tables.ads[skipped as usize];
                    assert!(row.weight(person) < row.least, "{skipped} would have been enough");
                }
                rounds += u32::from(shown.ad <= last_ad);
                (last_ad, steps) = (shown.ad, steps + 1);
            }
            assert!((100..600).contains(&steps), "user {user}: {steps} of 720 in two rounds");
        }
        // a number outside the table is mapped into it
        let beyond = tables.choose(Visitor { user: u32::MAX, last_ad: u32::MAX });
        assert!(beyond.ad < ADS);
    }
}
