//! The adaLN-zero block of LeWM on the kernels.

use burn::nn::Linear;
use burn::prelude::*;
use jepa_kernels::{Epilogue, Isa};

use super::linear::Layer;
use super::norm::Norm;
use super::scratch;
use super::self_attention::SelfAttention;
use super::values::{Values, is_flex};
use crate::nn::{AdaLnBlock, Visibility};

/// The block's output; gives `x` back when it is not for the kernels.
///
/// **Shapes** `x` and `condition`, behind its activation, `[batch, tokens, embed_dim]` → the same.
pub(crate) fn adaln_block<B: Backend>(
    block: &AdaLnBlock<B>,
    x: Tensor<B, 3>,
    condition: &Tensor<B, 3>,
    visibility: &Visibility,
) -> Result<Tensor<B, 3>, Tensor<B, 3>> {
    let [batch, tokens, dim] = x.dims();
    let parts = Isa::chosen().ok().and_then(|isa| Parts::of(isa, block, dim, visibility));
    let Some(parts) = parts else { return Err(x) };
    let Ok(condition) = Values::of(condition.clone()) else { return Err(x) };
    let mut x = Values::of(x)?;
    parts.forward([batch, tokens], x.as_mut_slice(), condition.as_slice());
    Ok(x.into_tensor())
}

/// What a condition gives a token: shift, scale and gate of the attention, then of the MLP.
const SLICES: usize = 6;

/// The numbers of a block.
struct Parts {
    isa: Isa,
    adaln: Layer,
    norm: Norm,
    ln1: Norm,
    attention: SelfAttention,
    attn_out: Layer,
    ln2: Norm,
    ffn_up: Layer,
    act: jepa_kernels::Act,
    ffn_down: Layer,
}

impl Parts {
    /// `None` when a part's numbers are not f32 in this process, or tokens see each other in a way that the kernels do not have.
    fn of<B: Backend>(isa: Isa, block: &AdaLnBlock<B>, dim: usize, visibility: &Visibility) -> Option<Self> {
        if !is_flex::<B>() {
            return None;
        }
        let layer = |layer: &Linear<B>| Layer::of(layer, None);
        Some(Self {
            isa,
            adaln: layer(&block.adaln)?,
            norm: Norm::without_weights(dim, block.adaln_eps()),
            ln1: Norm::of(&block.ln1, block.ln_eps())?,
            attention: SelfAttention::of::<B>(block.n_head(), vec![layer(&block.attn_qkv)?], None, visibility)?,
            attn_out: layer(&block.attn_out)?,
            ln2: Norm::of(&block.ln2, block.ln_eps())?,
            ffn_up: layer(&block.ffn_up)?,
            act: block.act().on_cpu(),
            ffn_down: layer(&block.ffn_down)?,
        })
    }

    /// **Shapes** `x` `[batch · tokens, dim]`, changed in place; `condition` the same.
    fn forward(&self, size: [usize; 2], x: &mut [f32], condition: &[f32]) {
        let rows = size[0] * size[1];
        if rows == 0 {
            return;
        }
        let (isa, plain) = (self.isa, Epilogue::default());
        let (dim, inner, hidden) = (x.len() / rows, self.attention.inner(), self.ffn_up.outputs());
        let lengths = [dim.max(inner), hidden.max(3 * inner).max(dim), SLICES * dim].map(|width| rows * width);
        scratch::with(lengths, |[narrow, wide, modulation]| {
            self.adaln.forward(isa, condition, plain, modulation);
            let modulation = Modulation { values: modulation, dim };

            let (normed, modulated) = (&mut narrow[..rows * dim], &mut wide[..rows * dim]);
            self.norm.forward(isa, x, modulated);
            modulation.shift_and_scale(0, 1, modulated);
            self.ln1.forward(isa, modulated, normed);
            let qkv = self.attention.project(isa, normed, &mut wide[..rows * 3 * inner]);
            let heads = &mut narrow[..rows * inner];
            self.attention.attend(isa, size, qkv, heads);
            let attended = &mut wide[..rows * dim];
            self.attn_out.forward(isa, heads, plain, attended);
            modulation.add_gated(2, attended, x);

            let (normed, modulated) = (&mut narrow[..rows * dim], &mut wide[..rows * dim]);
            self.norm.forward(isa, x, modulated);
            modulation.shift_and_scale(3, 4, modulated);
            self.ln2.forward(isa, modulated, normed);
            let up = &mut wide[..rows * hidden];
            self.ffn_up.forward(isa, normed, Epilogue { act: Some(self.act), ..plain }, up);
            let down = &mut narrow[..rows * dim];
            self.ffn_down.forward(isa, up, plain, down);
            modulation.add_gated(5, down, x);
        });
    }
}

/// What the condition says, `[rows, 6 · dim]`.
struct Modulation<'a> {
    values: &'a [f32],
    dim: usize,
}

impl Modulation<'_> {
    fn rows(&self, slice: usize) -> impl Iterator<Item = &[f32]> {
        self.values.chunks_exact(SLICES * self.dim).map(move |row| &row[slice * self.dim..][..self.dim])
    }

    /// `x · (1 + scale) + shift`.
    fn shift_and_scale(&self, shift: usize, scale: usize, x: &mut [f32]) {
        let rows = x.chunks_exact_mut(self.dim).zip(self.rows(shift).zip(self.rows(scale)));
        for (x, (shift, scale)) in rows {
            for ((x, shift), scale) in x.iter_mut().zip(shift).zip(scale) {
                *x = *x * (1.0 + scale) + shift;
            }
        }
    }

    /// `x += gate · h`.
    fn add_gated(&self, gate: usize, h: &[f32], x: &mut [f32]) {
        let rows = x.chunks_exact_mut(self.dim).zip(h.chunks_exact(self.dim)).zip(self.rows(gate));
        for ((x, h), gate) in rows {
            for ((x, h), gate) in x.iter_mut().zip(h).zip(gate) {
                *x += gate * h;
            }
        }
    }
}
