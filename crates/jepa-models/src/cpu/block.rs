//! A transformer block on the kernels: norm, projections with their epilogues, and attention that never holds its scores.

use burn::module::Param;
use burn::nn::Linear;
use burn::prelude::*;
use jepa_kernels::{Epilogue, Isa};

use super::linear::Layer;
use super::norm::Norm;
use super::scratch;
use super::self_attention::SelfAttention;
use super::values::{Values, is_flex};
use crate::nn::{Block, Rope, Visibility};

/// The block's output, `[batch, tokens, embed_dim]`; gives `x` back when it is not for the kernels.
pub(crate) fn block<B: Backend>(
    block: &Block<B>,
    x: Tensor<B, 3>,
    rope: Option<&Rope<B>>,
    visibility: &Visibility,
) -> Result<Tensor<B, 3>, Tensor<B, 3>> {
    let parts = Isa::chosen().ok().and_then(|isa| Parts::of(isa, block, rope, visibility));
    let Some(parts) = parts else { return Err(x) };
    let [batch, tokens, _] = x.dims();
    let mut x = Values::of(x)?;
    parts.forward([batch, tokens], x.as_mut_slice());
    Ok(x.into_tensor())
}

/// The numbers of a block.
struct Parts {
    isa: Isa,
    ln1: Norm,
    attention: SelfAttention,
    attn_out: Layer,
    ls1: Option<Values>,
    ln2: Norm,
    ffn_up: Layer,
    act: jepa_kernels::Act,
    ffn_down: Layer,
    ls2: Option<Values>,
}

impl Parts {
    /// `None` when a part's numbers are not f32 in this process, or tokens see each other in a way that the kernels do not have.
    fn of<B: Backend>(isa: Isa, block: &Block<B>, rope: Option<&Rope<B>>, visibility: &Visibility) -> Option<Self> {
        if !is_flex::<B>() {
            return None;
        }
        let layer = |layer: &Linear<B>, name: &str| Layer::of(layer, block.stored(name));
        let qkv = match (&block.attn_qkv, &block.attn_q, &block.attn_k, &block.attn_v) {
            (Some(qkv), ..) => vec![layer(qkv, "attn_qkv")?],
            (None, Some(q), Some(k), Some(v)) => vec![layer(q, "attn_q")?, layer(k, "attn_k")?, layer(v, "attn_v")?],
            _ => return None,
        };
        let scale = |scale: &Option<Param<Tensor<B, 1>>>| match scale {
            Some(scale) => Values::of(scale.val()).ok().map(Some),
            None => Some(None),
        };
        Some(Self {
            isa,
            ln1: Norm::of(&block.ln1, block.ln_eps())?,
            attention: SelfAttention::of(block.n_head(), qkv, rope, visibility)?,
            attn_out: layer(&block.attn_out, "attn_out")?,
            ls1: scale(&block.ls1)?,
            ln2: Norm::of(&block.ln2, block.ln_eps())?,
            ffn_up: layer(&block.ffn_up, "ffn_up")?,
            act: block.act().on_cpu(),
            ffn_down: layer(&block.ffn_down, "ffn_down")?,
            ls2: scale(&block.ls2)?,
        })
    }

    /// **Shapes** `x` `[batch · tokens, dim]`, changed in place.
    fn forward(&self, size: [usize; 2], x: &mut [f32]) {
        let rows = size[0] * size[1];
        if rows == 0 {
            return;
        }
        let (dim, inner, hidden) = (x.len() / rows, self.attention.inner(), self.ffn_up.outputs());
        scratch::with([rows * dim.max(inner), rows * hidden.max(3 * inner)], |[narrow, wide]| {
            let normed = &mut narrow[..rows * dim];
            self.ln1.forward(self.isa, x, normed);
            let qkv = self.attention.project(self.isa, normed, &mut wide[..rows * 3 * inner]);
            let heads = &mut narrow[..rows * inner];
            self.attention.attend(self.isa, size, qkv, heads);
            self.attn_out.forward(self.isa, heads, residual(&self.ls1), x);

            let normed = &mut narrow[..rows * dim];
            self.ln2.forward(self.isa, x, normed);
            let up = &mut wide[..rows * hidden];
            self.ffn_up.forward(self.isa, normed, Epilogue { act: Some(self.act), ..Epilogue::default() }, up);
            self.ffn_down.forward(self.isa, up, residual(&self.ls2), x);
        });
    }
}

fn residual(scale: &Option<Values>) -> Epilogue<'_> {
    Epilogue { scale: scale.as_ref().map(Values::as_slice), add: true, ..Epilogue::default() }
}
