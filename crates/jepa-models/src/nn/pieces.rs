//! Tensors that stay below what a device can be given at once.
//!
//! Adapters have a largest buffer, 128 MiB on the least capable; beyond it Burn's wgpu backend was seen to go on with wrong numbers. Hidden layers are
//! the widest tensors of a graph and every row of them is for itself, so they are computed a piece of the tokens at a time where they would not fit.

use std::sync::atomic::{AtomicU64, Ordering};

use burn::prelude::*;

static LARGEST: AtomicU64 = AtomicU64::new(u64::MAX);

/// Sets how many bytes the largest tensor of this process may have on its device. The default is no limit.
pub fn set_largest_tensor(bytes: u64) {
    LARGEST.store(bytes, Ordering::Relaxed);
}

/// Whether a tensor of f32 stays within the limit.
pub(crate) fn fits(shape: &[usize]) -> bool {
    shape.iter().fold(4u64, |bytes, &n| bytes.saturating_mul(n as u64)) <= LARGEST.load(Ordering::Relaxed)
}

/// `layers` over all tokens, which have `widest` values each in between.
///
/// **Shapes** `[batch, tokens, in]` → `[batch, tokens, out]`; every token is for itself.
pub(crate) fn by_tokens<B: Backend>(
    x: Tensor<B, 3>,
    widest: usize,
    mut layers: impl FnMut(Tensor<B, 3>) -> Tensor<B, 3>,
) -> Tensor<B, 3> {
    let [batch, tokens, _] = x.dims();
    if fits(&[batch, tokens, widest]) {
        return layers(x);
    }
    let pieces = (2..tokens).find(|pieces| fits(&[batch, tokens.div_ceil(*pieces), widest])).unwrap_or(tokens);
    let len = tokens.div_ceil(pieces);
    let parts = (0..tokens).step_by(len).map(|start| layers(x.clone().narrow(1, start, len.min(tokens - start))));
    Tensor::cat(parts.collect(), 1)
}
