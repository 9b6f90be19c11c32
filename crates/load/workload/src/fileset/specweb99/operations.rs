//! The operation mix.

use crate::fileset::law::by_weight;
use units::Stream;

/// Kind of request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// A file.
    Static,
    /// A file in a page that is generated for it.
    Dynamic,
    /// A file in a generated page, with the advertisement that the cookie determines.
    CustomAd,
    /// A page created by a separate process.
    Cgi,
    /// A record that the server stores; the response is a page.
    Post,
}

/// Shares of the requests in percent. From the benchmark's white paper, cited from memory: a
/// default, not a requirement.
pub const SHARES: [(Operation, f64); 5] = [
    (Operation::Static, 70.0),
    (Operation::Dynamic, 12.45),
    (Operation::CustomAd, 12.6),
    (Operation::Cgi, 0.15),
    (Operation::Post, 4.8),
];

impl Operation {
    pub fn draw(stream: &mut Stream) -> Operation {
        SHARES[by_weight(&SHARES.map(|(_, share)| share), stream)].0
    }

    /// Returns the row in [`SHARES`].
    pub fn row(self) -> u32 {
        SHARES.iter().position(|(operation, _)| *operation == self).unwrap_or(0) as u32
    }

    pub fn name(self) -> &'static str {
        match self {
            Operation::Static => "static GET",
            Operation::Dynamic => "dynamic GET",
            Operation::CustomAd => "custom ad GET",
            Operation::Cgi => "CGI GET",
            Operation::Post => "POST",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::{Purpose, Seed};

    #[test]
    fn the_mix_is_the_published_one() {
        assert!((SHARES.iter().map(|(_, share)| share).sum::<f64>() - 100.0).abs() < 1e-9);
        let mut stream = Seed(1).stream(Purpose::Operations, 0);
        let mut counts = [0_u32; SHARES.len()];
        for _ in 0..1_000_000 {
            counts[Operation::draw(&mut stream).row() as usize] += 1;
        }
        for ((operation, share), count) in SHARES.iter().zip(counts) {
            let found = f64::from(count) / 1e4;
            assert!((found - share).abs() < 0.12, "{}: {found} of {share} %", operation.name());
        }
    }
}
