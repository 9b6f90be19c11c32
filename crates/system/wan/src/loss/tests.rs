use super::*;
use proptest::prelude::*;
use units::{Purpose, Seed};

/// Returns the number of lost packets of `count`, and the number of runs of lost packets.
fn count(model: &Loss, packets: u64, seed: u64) -> (f64, f64) {
    let mut stream = Seed(seed).stream(Purpose::Simulation, 0);
    let mut state = LossState::default();
    let (mut lost, mut bursts, mut before) = (0.0, 0.0, false);
    for _ in 0..packets {
        let this = state.loses(model, [stream.unit(), stream.unit()]);
        lost += f64::from(u8::from(this));
        bursts += f64::from(u8::from(this && !before));
        before = this;
    }
    (lost, bursts)
}

const PACKETS: u64 = 400_000;

/// The loss is within four standard deviations, for bursts of `length`: their losses are
/// correlated, so a burst counts as one draw.
fn near(model: &Loss, stationary: f64, length: f64) {
    assert!((model.stationary() - stationary).abs() < 1e-5, "{model:?}: {}", model.stationary());
    let (lost, _) = count(model, PACKETS, 7);
    let n = PACKETS as f64;
    let sigma = (stationary * (1.0 - stationary) * 2.0 * length / n).sqrt();
    let found = lost / n;
    assert!((found - stationary).abs() < 4.0 * sigma, "{model:?}: {found} against {stationary}");
}

#[test]
fn losses_match_the_models() {
    near(&Loss::Bernoulli(0.01), 0.01, 1.0);
    // p = 1 %, r = 25 %: 1 / 26 lost, in bursts of 4
    let vector = Loss::Gilbert { to_bad: 0.01, to_good: 0.25, bad: 1.0, good: 0.0 };
    near(&vector, 0.038_461_5, 4.0);
    let elliott = Loss::Gilbert { to_bad: 0.02, to_good: 0.2, bad: 0.7, good: 0.01 };
    near(&elliott, 0.072_727_3, 5.0);
    let states = Loss::FourState { p13: 0.02, p31: 0.3, p32: 0.1, p23: 0.4, p14: 0.01 };
    // weights 1, 0.01667, 0.06667, 0.01
    near(&states, 0.070_122, 4.0);
}

#[test]
fn a_burst_loss_setting_yields_the_published_chain() {
    let Loss::Gilbert { to_bad, to_good, .. } = Loss::in_bursts(0.05, 3.0) else {
        panic!("a chain of two states")
    };
    assert_eq!(format!("{to_bad:.6} {to_good:.4}"), "0.017544 0.3333");
    let (lost, bursts) = count(&Loss::in_bursts(0.05, 3.0), PACKETS, 3);
    assert!((lost / bursts - 3.0).abs() < 0.15, "mean burst {}", lost / bursts);
}

#[test]
fn a_list_loses_the_packets_with_its_numbers() {
    let model = Loss::List(vec![1, 4, 5]);
    let mut state = LossState::default();
    let lost: Vec<bool> = (0..7).map(|_| state.loses(&model, [0.0, 0.0])).collect();
    assert_eq!(lost, [true, false, false, true, true, false, false]);
}

/// A transition from 3 to 2 and none back: all packets except the first few are received.
#[test]
fn a_state_that_nothing_leaves_decides_the_loss() {
    let model = |p23, p31| Loss::FourState { p13: 0.1, p31, p32: 0.2, p23, p14: 0.05 };
    let (lost, _) = count(&model(0.0, 0.5), PACKETS, 5);
    assert!(lost < 1_000.0, "{lost}");
    assert!(model(0.0, 0.5).stationary() + model(0.0, 0.0).stationary() <= 0.0);
    // 2 is never reached, nor 3 and from there 2
    let alone = Loss::FourState { p13: 0.1, p31: 0.5, p32: 0.0, p23: 0.0, p14: 0.05 };
    near(&alone, 0.25 / 1.25, 2.0);
    let lone = Loss::FourState { p13: 0.0, p31: 0.5, p32: 0.2, p23: 0.0, p14: 0.05 };
    near(&lone, 0.05 / 1.05, 1.0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_chain_loses_its_stationary_share(
        p13 in 0.005..0.2f64, p31 in 0.1..0.6f64, p32 in 0.05..0.4f64,
        p23 in prop_oneof![Just(0.0), 0.2..1.0f64], p14 in 0.0..0.1f64,
    ) {
        let model = Loss::FourState { p13, p31, p32, p23, p14 };
        let (lost, _) = count(&model, 200_000, 11);
        let (found, sent) = (lost / 200_000.0, model.stationary());
        prop_assert!((found - sent).abs() < 0.02 + sent * 0.05, "{} against {}", found, sent);
    }
}
