//! Cost of denial: how many new connections a second keep every slot of a server busy, computed of
//! what was measured with one connection per state. Nothing has to be broken to learn it.

/// What the measure of a server's slots is called.
pub const SLOTS: &str = "slots";

/// New connections per second that keep `slots` connections busy where each lasts `deadline_s`
/// seconds: the quotient. `None` for a deadline that is none.
pub fn connections_per_second(slots: f64, deadline_s: f64) -> Option<f64> {
    let rate = slots / deadline_s;
    (deadline_s > 0.0 && rate.is_finite()).then_some(rate)
}
