//! Activations over their whole range.

use jepa_kernels::{Act, Isa};

#[allow(dead_code, reason = "shared by several tests")]
mod plain;

fn worst(act: Act, isa: Isa, from: f32, to: f32) -> f64 {
    let inputs: Vec<f32> = (0..=200_000u32).map(|i| from + (to - from) * i as f32 / 200_000.0).collect();
    let mut values = inputs.clone();
    act.apply(isa, &mut values);
    let ulp = |(x, y): (f32, f32)| {
        let wanted = plain::act(act, f64::from(x));
        (f64::from(y) - wanted).abs() / (wanted.abs() * f64::from(f32::EPSILON)).max(1e-38)
    };
    inputs.into_iter().zip(values).map(ulp).fold(0.0, f64::max)
}

#[test]
fn every_value_is_within_a_few_ulp() {
    for isa in Isa::all() {
        // The upper half is what an activation lets through, the lower half the tail, down to where f32 ends.
        for (act, from, to, bar) in [
            (Act::GeluErf, 0.0, 20.0, 4.0),
            (Act::GeluErf, -12.0, 0.0, 16.0),
            (Act::GeluTanh, 0.0, 20.0, 4.0),
            (Act::GeluTanh, -6.0, 0.0, 80.0),
            (Act::Silu, 0.0, 80.0, 3.0),
            (Act::Silu, -80.0, 0.0, 80.0),
        ] {
            let worst = worst(act, isa, from, to);
            assert!(worst <= bar, "{act:?} {isa:?} {from}..{to}: {worst} ulp");
        }
    }
}

#[test]
fn ends_of_the_range_are_sound() {
    for isa in Isa::all() {
        for act in [Act::GeluErf, Act::GeluTanh, Act::Silu] {
            let mut values = [1e30, -1e30, 0.0, -0.0, f32::NAN, 3e38];
            act.apply(isa, &mut values);
            assert_eq!((values[0], values[2], values[3], values[5]), (1e30, 0.0, 0.0, 3e38), "{act:?} {isa:?}");
            assert!(values[1].abs() < 1e-6 && values[4].is_nan(), "{act:?} {isa:?}: {values:?}");
        }
        let mut values = [f32::INFINITY, f32::NEG_INFINITY, f32::MIN, -13.5, f32::MIN_POSITIVE];
        Act::GeluErf.apply(isa, &mut values);
        assert_eq!(values, [f32::INFINITY, 0.0, 0.0, 0.0, f32::MIN_POSITIVE / 2.0], "{isa:?}");
    }
}

/// No denormals, on which some processors are slow, in the tail.
#[test]
fn the_tail_of_gelu_ends_before_denormals() {
    for isa in Isa::all() {
        let mut values: Vec<f32> = (0..200_000).map(|i| -(i as f32) / 8000.0).collect();
        Act::GeluErf.apply(isa, &mut values);
        for value in &values {
            assert!(!value.is_subnormal(), "{isa:?}: {value:e}");
        }
    }
}
