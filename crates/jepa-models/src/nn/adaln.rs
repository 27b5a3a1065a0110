use burn::nn::{LayerNorm, LayerNormConfig, Linear, LinearConfig};
use burn::prelude::*;
use burn::tensor::activation::silu;
use jepa_gguf::schema::Activation;

use super::{Act, Visibility, layer_norm, linear, multi_head, normalise};
use crate::trace::Trace;

/// What an [`AdaLnBlock`] is made of.
#[derive(Clone, Debug)]
pub struct AdaLnBlockConfig {
    /// Width of a token and of the condition.
    pub embed_dim: usize,
    /// Attention heads.
    pub n_head: usize,
    /// Width of a head; `n_head · head_dim` may differ from `embed_dim`.
    pub head_dim: usize,
    /// Hidden width of the MLP.
    pub ffn_dim: usize,
    /// Epsilon of the norms with weights.
    pub ln_eps: f64,
    /// Epsilon of the norms without weights.
    pub adaln_eps: f64,
    /// Activation of the MLP.
    pub act: Activation,
    /// Whether `attn_qkv` has a bias.
    pub qkv_bias: bool,
}

impl AdaLnBlockConfig {
    /// A block with Burn's default initialisation.
    pub fn init<B: Backend>(&self, device: &B::Device) -> AdaLnBlock<B> {
        let (dim, inner) = (self.embed_dim, self.n_head * self.head_dim);
        let norm = || LayerNormConfig::new(dim).with_epsilon(self.ln_eps).init(device);
        AdaLnBlock {
            adaln: LinearConfig::new(dim, 6 * dim).init(device),
            ln1: norm(),
            attn_qkv: LinearConfig::new(dim, 3 * inner).with_bias(self.qkv_bias).init(device),
            attn_out: LinearConfig::new(inner, dim).init(device),
            ln2: norm(),
            ffn_up: LinearConfig::new(dim, self.ffn_dim).init(device),
            ffn_down: LinearConfig::new(self.ffn_dim, dim).init(device),
            act: Act::new(self.act),
            n_head: self.n_head,
            ln_eps: self.ln_eps,
            adaln_eps: self.adaln_eps,
        }
    }
}

/// The adaLN-zero block of LeWM: a condition shifts, scales and gates attention and MLP.
///
/// With `n` the norm without weights and the six slices of `adaln(silu(c))`:
/// `x += gate_a ∘ attn_out(attention(ln1(n(x)∘(1 + scale_a) + shift_a)))`, then
/// `x += gate_m ∘ ffn_down(act(ffn_up(ln2(n(x)∘(1 + scale_m) + shift_m))))`.
///
/// **Source** DiT's adaLN-zero, as the LeWM training code has it: the norms with weights follow the modulation.
#[derive(Module, Debug)]
pub struct AdaLnBlock<B: Backend> {
    /// Condition to shift, scale and gate of the attention, then of the MLP.
    pub adaln: Linear<B>,
    /// Norm before the attention.
    pub ln1: LayerNorm<B>,
    /// Queries, keys and values.
    pub attn_qkv: Linear<B>,
    /// Projection of the joined heads.
    pub attn_out: Linear<B>,
    /// Norm before the MLP.
    pub ln2: LayerNorm<B>,
    /// First layer of the MLP.
    pub ffn_up: Linear<B>,
    /// Second layer of the MLP.
    pub ffn_down: Linear<B>,
    act: Act,
    n_head: usize,
    ln_eps: f64,
    adaln_eps: f64,
}

impl<B: Backend> AdaLnBlock<B> {
    /// One block.
    ///
    /// **Shapes** `x`, `condition` `[batch, tokens, embed_dim]` → `[batch, tokens, embed_dim]`.
    pub fn forward(
        &self,
        x: Tensor<B, 3>,
        condition: Tensor<B, 3>,
        visibility: &Visibility,
        trace: &mut Trace<'_, B>,
        at: &str,
    ) -> Tensor<B, 3> {
        let condition = silu(condition);
        #[cfg(feature = "cpu")]
        let x = if trace.is_watched() {
            x
        } else {
            match crate::cpu::adaln_block(self, x, &condition, visibility) {
                Ok(x) => return x,
                Err(x) => x,
            }
        };
        let modulation = linear(&self.adaln, condition); //                      [b, n, 6·dim]
        trace.see(&modulation, || format!("{at}.adaln"));
        let dim = x.dims()[2];
        let [shift_a, scale_a, gate_a, shift_m, scale_m, gate_m] =
            [0, 1, 2, 3, 4, 5].map(|slice| modulation.clone().narrow(2, slice * dim, dim));
        let modulated = |x, scale: Tensor<B, 3>, shift| normalise(x, self.adaln_eps) * (scale + 1.0) + shift;

        let h = layer_norm(&self.ln1, self.ln_eps, modulated(x.clone(), scale_a, shift_a));
        trace.see(&h, || format!("{at}.ln1"));
        let qkv = linear(&self.attn_qkv, h); //                                  [b, n, 3·heads·hd]
        trace.see(&qkv, || format!("{at}.attn_qkv"));
        let inner = qkv.dims()[2] / 3;
        let [q, k, v] = [0, 1, 2].map(|part| qkv.clone().narrow(2, part * inner, inner));
        let h = multi_head(q, k, v, self.n_head, None, visibility); //          [b, n, heads·hd]
        let h = linear(&self.attn_out, h); //                                    [b, n, dim]
        trace.see(&h, || format!("{at}.attn_out"));
        let x = x + gate_a * h;

        let h = layer_norm(&self.ln2, self.ln_eps, modulated(x.clone(), scale_m, shift_m));
        trace.see(&h, || format!("{at}.ln2"));
        let h = linear(&self.ffn_down, self.act.forward(linear(&self.ffn_up, h)));
        trace.see(&h, || format!("{at}.ffn_down"));
        let x = x + gate_m * h;
        trace.see(&x, || at.to_owned());
        x
    }

    #[cfg(feature = "cpu")]
    pub(crate) fn n_head(&self) -> usize {
        self.n_head
    }

    #[cfg(feature = "cpu")]
    pub(crate) fn ln_eps(&self) -> f64 {
        self.ln_eps
    }

    #[cfg(feature = "cpu")]
    pub(crate) fn adaln_eps(&self) -> f64 {
        self.adaln_eps
    }

    #[cfg(feature = "cpu")]
    pub(crate) fn act(&self) -> &Act {
        &self.act
    }
}
