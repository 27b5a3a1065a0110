//! Activations, a vector at a time.

use crate::isa::{Isa, compiled_for_each_isa};
use crate::vector::{SMALLEST, exp, mul_add, polynomial};

/// An activation function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// `x/2 · (1 + erf(x/√2))`: within 4 ulp above 0, and within 16 in the tail below, where most versions keep no digit.
    GeluErf,
    /// `x/2 · (1 + tanh(√(2/π) (x + 0.044715 x³)))`.
    GeluTanh,
    /// `x / (1 + e^-x)`.
    Silu,
}

impl Act {
    /// Applies it to every value.
    pub fn apply(self, isa: Isa, values: &mut [f32]) {
        act_slice(isa, values, self);
    }
}

compiled_for_each_isa!(fn act_slice(values: &mut [f32], act: Act) = act_slice_body);

#[inline(always)]
pub(crate) fn act_slice_body<const SET: u8>(values: &mut [f32], act: Act) {
    match act {
        Act::GeluErf => values.iter_mut().for_each(|v| *v = gelu_erf::<SET>(*v)),
        Act::GeluTanh => values.iter_mut().for_each(|v| *v = gelu_tanh::<SET>(*v)),
        Act::Silu => values.iter_mut().for_each(|v| *v = silu::<SET>(*v)),
    }
}

/// `x Φ(x)`. The tail `Φ(-t)` is `e^(-t²/2)` times the Mills ratio, so that it keeps its accuracy where `1 + erf` would lose it.
#[inline(always)]
fn gelu_erf<const SET: u8>(x: f32) -> f32 {
    // Beyond 20 the tail is 0 in f32. NaN stays NaN.
    let t = if x.abs() > 20.0 { 20.0 } else { x.abs() };
    // t² to twice the precision: the square of the upper bits is exact, the rest is small.
    let upper = f32::from_bits(t.to_bits() & 0xffff_f000);
    let rest = (upper - t) * (upper + t) * 0.5;
    let rest = polynomial::<SET, 4>(rest, [1.0 / 6.0, 0.5, 1.0, 1.0]);
    let power = -0.5 * upper * upper;
    // What would end as a denormal is 0: some processors take a hundred times as long for one.
    let bell = if power < SMALLEST { 0.0 } else { exp::<SET>(power) } * rest;
    // The Mills ratio of the normal distribution, as w times a polynomial in w = 4 / (4 + t): a minimax fit, 8e-9.
    let w = 4.0 / (4.0 + t);
    #[rustfmt::skip]
    let mills = w * polynomial::<SET, 10>(w, [
        0.016_579_747, -0.062_792_67, 0.051_653_475, 0.028_434_468, 0.012_712_834,
        0.086_656_444, 0.071_999_535, 0.095_515_706, 0.099_492_56, 0.099_747_9,
    ]);
    let tail = t * bell * mills;
    if x > 0.0 { x - tail } else { -tail }
}

#[inline(always)]
fn gelu_tanh<const SET: u8>(x: f32) -> f32 {
    // (1 + tanh u) / 2 is the logistic function of 2u.
    let u2 = x * mul_add::<SET>(x * x, 2.0 * 0.044_715 * 0.797_884_6, 2.0 * 0.797_884_6);
    x / (1.0 + exp::<SET>(-u2))
}

#[inline(always)]
fn silu<const SET: u8>(x: f32) -> f32 {
    x / (1.0 + exp::<SET>(-x))
}
