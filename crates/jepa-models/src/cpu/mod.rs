//! The CPU backend's fast path: transformer blocks, linear layers, norms and the cutting of patches on [`jepa_kernels`] instead of Burn operations.
//!
//! Graphs stay generic. They ask here first; what comes back is the result when the backend is Burn's flex and its tensors hold f32, and the input,
//! to go on with as Burn operations, on every other backend. A backend that tracks gradients is another one: under autodiff nothing here runs.

mod adaln;
mod block;
mod file_rows;
mod linear;
mod norm;
mod patches;
mod scratch;
mod self_attention;
mod values;

use std::sync::atomic::{AtomicU8, Ordering};

pub use jepa_kernels::{Isa, IsaError, Precision};

pub(crate) use adaln::adaln_block;
pub(crate) use block::block;
pub(crate) use linear::linear;
pub(crate) use norm::{layer_norm, normalise};
pub(crate) use patches::tubelets;

static PRECISION: AtomicU8 = AtomicU8::new(Precision::High as u8);

/// Sets how exactly this process multiplies f32 matrices on the CPU, as `torch.set_float32_matmul_precision` does. The default is [`Precision::High`].
pub fn set_float32_matmul_precision(precision: Precision) {
    PRECISION.store(precision as u8, Ordering::Relaxed);
}

/// Weights of a layer below which products are f32 unless bf16 is asked for: they take no time worth saving, and errors of small models do not
/// average out. A rollout of a tiny world model showed 2.8e-4 of its largest value with split products, 9e-6 with f32.
const SMALL_LAYER: usize = 1 << 16;

/// Tokens of an attention below which the same holds.
const SHORT_ATTENTION: usize = 128;

/// Precision of the products of a layer with so many weights.
fn precision_of_layer(weights: usize) -> Precision {
    unless_small(weights < SMALL_LAYER)
}

/// Precision of the products of an attention over so many tokens.
fn precision_of_attention(tokens: usize) -> Precision {
    unless_small(tokens < SHORT_ATTENTION)
}

fn unless_small(small: bool) -> Precision {
    match float32_matmul_precision() {
        Precision::High if small => Precision::Highest,
        precision => precision,
    }
}

/// How exactly this process multiplies f32 matrices on the CPU.
pub fn float32_matmul_precision() -> Precision {
    match PRECISION.load(Ordering::Relaxed) {
        p if p == Precision::Highest as u8 => Precision::Highest,
        p if p == Precision::Medium as u8 => Precision::Medium,
        _ => Precision::High,
    }
}
