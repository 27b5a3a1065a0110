//! A transformer block on the kernels: norm, projections with their epilogues, and attention that never holds its scores.

use burn::module::Param;
use burn::nn::Linear;
use burn::prelude::*;
use jepa_kernels::{Epilogue, Heads, Isa, Mask, Tokens, Turns, attention};

use super::linear::{Layer, Norm};
use super::values::{Values, is_flex};
use super::{precision_of_attention, scratch};
use crate::nn::{Block, Rope, Visibility};

/// The block's output, `[batch, tokens, embed_dim]`; gives `x` back when it is not for the kernels.
pub(crate) fn block<B: Backend>(
    block: &Block<B>,
    x: Tensor<B, 3>,
    rope: Option<&Rope<B>>,
    visibility: &Visibility,
    at: &str,
) -> Result<Tensor<B, 3>, Tensor<B, 3>> {
    let parts = Isa::chosen().ok().and_then(|isa| Parts::of(isa, block, rope, visibility, at));
    let Some(parts) = parts else { return Err(x) };
    let [batch, tokens, _] = x.dims();
    let mut x = Values::of(x)?;
    parts.forward(batch, tokens, x.as_mut_slice());
    Ok(x.into_tensor())
}

/// The numbers of a block.
struct Parts {
    isa: Isa,
    n_head: usize,
    ln1: Norm,
    /// One layer that makes queries, keys and values, or one for each.
    qkv: Vec<Layer>,
    attn_out: Layer,
    ls1: Option<Values>,
    ln2: Norm,
    ffn_up: Layer,
    act: jepa_kernels::Act,
    ffn_down: Layer,
    ls2: Option<Values>,
    turns: Option<(Values, Values, usize)>,
    /// Leading tokens and, per token behind them, the number of keys it sees.
    leading: Option<(usize, Vec<usize>)>,
}

impl Parts {
    /// `None` when a part's numbers are not f32 in this process, or tokens see each other in a way that the kernels do not have.
    fn of<B: Backend>(
        isa: Isa,
        block: &Block<B>,
        rope: Option<&Rope<B>>,
        visibility: &Visibility,
        at: &str,
    ) -> Option<Self> {
        if !is_flex::<B>() {
            return None;
        }
        let layer = |layer: &Linear<B>, name: &str| Layer::of(layer, block.file(), &format!("{at}.{name}.weight"));
        let leading = match visibility {
            Visibility::Full => None,
            Visibility::BlockCausal { prefix, frames } => match frames.as_slice() {
                [shared] if shared.is_sorted() => Some((*prefix, leading_keys(shared))),
                _ => return None,
            },
        };
        let qkv = match (&block.attn_qkv, &block.attn_q, &block.attn_k, &block.attn_v) {
            (Some(qkv), ..) => vec![layer(qkv, "attn_qkv")?],
            (None, Some(q), Some(k), Some(v)) => vec![layer(q, "attn_q")?, layer(k, "attn_k")?, layer(v, "attn_v")?],
            _ => return None,
        };
        let turns = match rope {
            None => None,
            Some(rope) => {
                let [cos, sin] = rope.parts();
                let lanes = cos.dims()[3];
                Some((Values::of(cos).ok()?, Values::of(sin).ok()?, lanes))
            }
        };
        let scale = |scale: &Option<Param<Tensor<B, 1>>>| match scale {
            Some(scale) => Values::of(scale.val()).ok().map(Some),
            None => Some(None),
        };
        Some(Self {
            isa,
            n_head: block.n_head(),
            ln1: Norm::of(&block.ln1, block.ln_eps())?,
            qkv,
            attn_out: layer(&block.attn_out, "attn_out")?,
            ls1: scale(&block.ls1)?,
            ln2: Norm::of(&block.ln2, block.ln_eps())?,
            ffn_up: layer(&block.ffn_up, "ffn_up")?,
            act: block.act().on_cpu(),
            ffn_down: layer(&block.ffn_down, "ffn_down")?,
            ls2: scale(&block.ls2)?,
            turns,
            leading,
        })
    }

    /// **Shapes** `x` `[batch · tokens, dim]`, changed in place.
    fn forward(&self, batch: usize, tokens: usize, x: &mut [f32]) {
        let rows = batch * tokens;
        if rows == 0 {
            return;
        }
        let dim = x.len() / rows;
        let inner = self.qkv.iter().map(Layer::outputs).sum::<usize>() / 3;
        let hidden = self.ffn_up.outputs();
        scratch::with(rows * dim.max(inner), rows * hidden.max(3 * inner), |narrow, wide| {
            let normed = &mut narrow[..rows * dim];
            self.ln1.forward(self.isa, x, normed);
            let qkv = &mut wide[..rows * 3 * inner];
            let parts = self.project(normed, qkv, inner);
            let heads = &mut narrow[..rows * inner];
            self.attend(Heads { batch, tokens, heads: self.n_head, head_dim: inner / self.n_head }, parts, heads);
            self.attn_out.forward(self.isa, heads, residual(&self.ls1), x);

            let normed = &mut narrow[..rows * dim];
            self.ln2.forward(self.isa, x, normed);
            let up = &mut wide[..rows * hidden];
            self.ffn_up.forward(self.isa, normed, Epilogue { act: Some(self.act), ..Epilogue::default() }, up);
            self.ffn_down.forward(self.isa, up, residual(&self.ls2), x);
        });
    }

    /// Queries, keys and values: side by side in a row when one layer makes them, one after the other when three do.
    fn project<'a>(&self, x: &[f32], qkv: &'a mut [f32], inner: usize) -> [Tokens<'a>; 3] {
        match &self.qkv[..] {
            [layer] => {
                layer.forward(self.isa, x, Epilogue::default(), qkv);
                [0, 1, 2].map(|part| Tokens { values: &*qkv, stride: 3 * inner, first: part * inner })
            }
            layers => {
                let third = qkv.len() / 3;
                for (layer, out) in layers.iter().zip(qkv.chunks_exact_mut(third)) {
                    layer.forward(self.isa, x, Epilogue::default(), out);
                }
                [0, 1, 2].map(|part| Tokens { values: &qkv[part * third..][..third], stride: inner, first: 0 })
            }
        }
    }

    fn attend(&self, size: Heads, qkv: [Tokens<'_>; 3], out: &mut [f32]) {
        let turns = self.turns.as_ref().map(|(cos, sin, lanes)| Turns {
            cos: cos.as_slice(),
            sin: sin.as_slice(),
            lanes: *lanes,
        });
        let mask = match &self.leading {
            None => Mask::Full,
            Some((prefix, seen)) => Mask::Leading { prefix: *prefix, seen },
        };
        attention(self.isa, precision_of_attention(size.tokens), size, qkv, turns, mask, out);
    }
}

fn residual(scale: &Option<Values>) -> Epilogue<'_> {
    Epilogue { scale: scale.as_ref().map(Values::as_slice), add: true, ..Epilogue::default() }
}

/// Keys that each token sees: those of its own and of earlier frames, where `frames` are in order.
fn leading_keys(frames: &[usize]) -> Vec<usize> {
    let mut end = 0;
    frames
        .chunk_by(|a, b| a == b)
        .flat_map(|frame| {
            end += frame.len();
            std::iter::repeat_n(end, frame.len())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_sees_its_own_frame_and_the_ones_before() {
        assert_eq!(leading_keys(&[0, 0, 1, 3, 3, 3]), [2, 2, 3, 6, 6, 6]);
    }
}
