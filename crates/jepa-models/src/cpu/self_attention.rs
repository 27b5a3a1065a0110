//! Self-attention: normalised tokens to joined heads, with turned queries and keys and with tokens that see only some others.

use burn::prelude::*;
use jepa_kernels::{Epilogue, Heads, Isa, Mask, Tokens, Turns, attention};

use super::linear::Layer;
use super::precision_of_attention;
use super::values::Values;
use crate::nn::{Rope, Visibility};

/// The numbers of a self-attention.
pub(super) struct SelfAttention {
    n_head: usize,
    /// One layer that makes queries, keys and values, or one for each.
    qkv: Vec<Layer>,
    turns: Option<(Values, Values, usize)>,
    /// Leading tokens and, per token behind them, the number of keys it sees.
    leading: Option<(usize, Vec<usize>)>,
}

impl SelfAttention {
    /// `None` when the turns are not f32 in this process, or tokens see each other in a way that the kernels do not have.
    pub(super) fn of<B: Backend>(
        n_head: usize,
        qkv: Vec<Layer>,
        rope: Option<&Rope<B>>,
        visibility: &Visibility,
    ) -> Option<Self> {
        let leading = match visibility {
            Visibility::Full => None,
            Visibility::BlockCausal { prefix, frames } => match frames.as_slice() {
                [shared] if shared.is_sorted() => Some((*prefix, leading_keys(shared))),
                _ => return None,
            },
        };
        let turns = match rope {
            None => None,
            Some(rope) => {
                let [cos, sin] = rope.parts();
                let lanes = cos.dims()[3];
                Some((Values::of(cos).ok()?, Values::of(sin).ok()?, lanes))
            }
        };
        Some(Self { n_head, qkv, turns, leading })
    }

    /// Width of the joined heads.
    pub(super) fn inner(&self) -> usize {
        self.qkv.iter().map(Layer::outputs).sum::<usize>() / 3
    }

    /// Queries, keys and values: side by side in a row when one layer makes them, one after the other when three do.
    ///
    /// **Shapes** `x` `[rows, dim]`, `qkv` `[rows, 3 · inner]`.
    pub(super) fn project<'a>(&self, isa: Isa, x: &[f32], qkv: &'a mut [f32]) -> [Tokens<'a>; 3] {
        let inner = self.inner();
        match &self.qkv[..] {
            [layer] => {
                layer.forward(isa, x, Epilogue::default(), qkv);
                [0, 1, 2].map(|part| Tokens { values: &*qkv, stride: 3 * inner, first: part * inner })
            }
            layers => {
                let third = qkv.len() / 3;
                for (layer, out) in layers.iter().zip(qkv.chunks_exact_mut(third)) {
                    layer.forward(isa, x, Epilogue::default(), out);
                }
                [0, 1, 2].map(|part| Tokens { values: &qkv[part * third..][..third], stride: inner, first: 0 })
            }
        }
    }

    /// **Shapes** `out` `[batch · tokens, inner]`.
    pub(super) fn attend(&self, isa: Isa, [batch, tokens]: [usize; 2], qkv: [Tokens<'_>; 3], out: &mut [f32]) {
        let size = Heads { batch, tokens, heads: self.n_head, head_dim: self.inner() / self.n_head };
        let turns = self.turns.as_ref().map(|(cos, sin, lanes)| Turns {
            cos: cos.as_slice(),
            sin: sin.as_slice(),
            lanes: *lanes,
        });
        let mask = match &self.leading {
            None => Mask::Full,
            Some((prefix, seen)) => Mask::Leading { prefix: *prefix, seen },
        };
        attention(isa, precision_of_attention(size.tokens), size, qkv, turns, mask, out);
    }
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
