//! Cost of denial: the number of new connections per second that keep every slot of a server busy,
//! computed from measurements with one connection per state, without doing any harm.

/// Name of the measure of a server's slots.
pub const SLOTS: &str = "slots";

/// Returns the number of new connections per second that keep `slots` connections busy if each
/// lasts `deadline_s` seconds. `None` for an invalid deadline.
pub fn connections_per_second(slots: f64, deadline_s: f64) -> Option<f64> {
    let rate = slots / deadline_s;
    (deadline_s > 0.0 && rate.is_finite()).then_some(rate)
}
