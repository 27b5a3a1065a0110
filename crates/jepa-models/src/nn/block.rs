use std::sync::Arc;

use burn::module::Param;
use burn::nn::{Initializer, LayerNorm, LayerNormConfig, Linear, LinearConfig};
use burn::prelude::*;
use burn::tensor::DType;
use jepa_gguf::Gguf;
use jepa_gguf::schema::{Activation, EncoderHparams};

#[cfg(feature = "cpu")]
use super::StoredMatrix;
use super::stored::{StoredMatrices, leave_in_file};
use super::{Act, Rope, Visibility, as_type, is_reduced, linear_in_burn, multi_head, pieces};
use crate::trace::Trace;

/// What a [`Block`] is made of.
#[derive(Clone, Debug)]
pub struct BlockConfig {
    /// Width of a token.
    pub embed_dim: usize,
    /// Attention heads.
    pub n_head: usize,
    /// Width of a head.
    pub head_dim: usize,
    /// Hidden width of the MLP.
    pub ffn_dim: usize,
    /// Epsilon of both norms.
    pub ln_eps: f64,
    /// Activation of the MLP.
    pub act: Activation,
    /// One `attn_qkv`, or `attn_q`, `attn_k` and `attn_v`.
    pub qkv_fused: bool,
    /// Whether queries, keys and values have a bias.
    pub qkv_bias: bool,
    /// Layer scale behind attention and MLP.
    pub layer_scale: bool,
}

impl From<&EncoderHparams> for BlockConfig {
    fn from(h: &EncoderHparams) -> Self {
        Self {
            embed_dim: h.embed_dim,
            n_head: h.n_head,
            head_dim: h.embed_dim / h.n_head,
            ffn_dim: h.ffn_dim,
            ln_eps: h.ln_eps,
            act: h.act,
            qkv_fused: h.qkv_fused,
            qkv_bias: true,
            layer_scale: h.layer_scale,
        }
    }
}

impl BlockConfig {
    /// A block with Burn's default initialisation; layer scale starts at 1.
    pub fn init<B: Backend>(&self, device: &B::Device) -> Block<B> {
        let inner = self.n_head * self.head_dim;
        let linear = |d_in, d_out| LinearConfig::new(d_in, d_out).init(device);
        let projection = |width| LinearConfig::new(self.embed_dim, width).with_bias(self.qkv_bias).init(device);
        let norm = || LayerNormConfig::new(self.embed_dim).with_epsilon(self.ln_eps).init(device);
        let fused = |yes: bool, width| (self.qkv_fused == yes).then(|| projection(width));
        let scale = || self.layer_scale.then(|| Initializer::Ones.init([self.embed_dim], device));
        Block {
            ln1: norm(),
            attn_qkv: fused(true, 3 * inner),
            attn_q: fused(false, inner),
            attn_k: fused(false, inner),
            attn_v: fused(false, inner),
            attn_out: linear(inner, self.embed_dim),
            ls1: scale(),
            ln2: norm(),
            ffn_up: linear(self.embed_dim, self.ffn_dim),
            ffn_down: linear(self.ffn_dim, self.embed_dim),
            ls2: scale(),
            act: Act::new(self.act),
            n_head: self.n_head,
            ln_eps: self.ln_eps,
            stored: StoredMatrices::default(),
        }
    }
}

/// The pre-norm transformer block that every family is built from.
///
/// `x += ls1 ∘ attn_out(attention(ln1(x)))`, then `x += ls2 ∘ ffn_down(act(ffn_up(ln2(x))))`.
///
/// The stream, the norms and the layer scales are f32; between them attention and MLP run in the type of the matrices.
#[derive(Module, Debug)]
pub struct Block<B: Backend> {
    /// Norm before the attention.
    pub ln1: LayerNorm<B>,
    /// Queries, keys and values in one projection.
    pub attn_qkv: Option<Linear<B>>,
    /// Queries, when the three are separate.
    pub attn_q: Option<Linear<B>>,
    /// Keys, when the three are separate.
    pub attn_k: Option<Linear<B>>,
    /// Values, when the three are separate.
    pub attn_v: Option<Linear<B>>,
    /// Projection of the joined heads.
    pub attn_out: Linear<B>,
    /// Layer scale of the attention.
    pub ls1: Option<Param<Tensor<B, 1>>>,
    /// Norm before the MLP.
    pub ln2: LayerNorm<B>,
    /// First layer of the MLP.
    pub ffn_up: Linear<B>,
    /// Second layer of the MLP.
    pub ffn_down: Linear<B>,
    /// Layer scale of the MLP.
    pub ls2: Option<Param<Tensor<B, 1>>>,
    act: Act,
    n_head: usize,
    ln_eps: f64,
    /// Where the matrices lie that have not been asked for.
    #[module(skip)]
    stored: StoredMatrices,
}

impl<B: Backend> Block<B> {
    /// Makes the matrices of the block called `at` read `file` as `dtype` when they are asked for.
    pub(crate) fn leave_in_file(&mut self, file: &Arc<Gguf>, at: &str, dtype: DType) {
        let stored = StoredMatrices::of(file, at);
        for (layer, name) in [
            (self.attn_qkv.as_mut(), "attn_qkv"),
            (self.attn_q.as_mut(), "attn_q"),
            (self.attn_k.as_mut(), "attn_k"),
            (self.attn_v.as_mut(), "attn_v"),
            (Some(&mut self.attn_out), "attn_out"),
            (Some(&mut self.ffn_up), "ffn_up"),
            (Some(&mut self.ffn_down), "ffn_down"),
        ] {
            if let (Some(layer), Some(matrix)) = (layer, stored.get(name)) {
                leave_in_file(layer, matrix, dtype);
            }
        }
        // The kernels multiply in f32.
        self.stored = if is_reduced(dtype) { StoredMatrices::default() } else { stored };
    }

    /// One block.
    ///
    /// **Shapes** `[batch, tokens, embed_dim]` → the same. `rope` turns queries and keys; `trace` sees every part under its name below `at`.
    pub fn forward(
        &self,
        x: Tensor<B, 3>,
        rope: Option<&Rope<B>>,
        visibility: &Visibility,
        trace: &mut Trace<'_, B>,
        at: &str,
    ) -> Tensor<B, 3> {
        #[cfg(feature = "cpu")]
        let x = if trace.is_watched() {
            x
        } else {
            match crate::cpu::block(self, x, rope, visibility) {
                Ok(x) => return x,
                Err(x) => x,
            }
        };
        let (stream, matrices) = (x.dtype(), self.attn_out.weight.val().dtype());
        let h = self.ln1.forward(x.clone());
        trace.see(&h, || format!("{at}.ln1"));
        let h = self.attention(as_type(h, matrices), rope, visibility, trace, at);
        let x = x + scaled(as_type(h, stream), &self.ls1);

        let h = self.ln2.forward(x.clone());
        trace.see(&h, || format!("{at}.ln2"));
        // Who watches wants the hidden layer whole.
        let ffn_dim = if trace.is_watched() { 0 } else { self.ffn_up.weight.dims()[1] };
        let h = pieces::by_tokens(as_type(h, matrices), ffn_dim, |h| {
            let h = linear_in_burn(&self.ffn_up, h); //                         [b, n, ffn_dim]
            trace.see(&h, || format!("{at}.ffn_up"));
            let h = self.act.forward(h);
            trace.see(&h, || format!("{at}.ffn_act"));
            linear_in_burn(&self.ffn_down, h) //                                [b, n, dim]
        });
        trace.see(&h, || format!("{at}.ffn_down"));
        let x = x + scaled(as_type(h, stream), &self.ls2);
        trace.see(&x, || at.to_owned());
        x
    }

    /// The matrix of a field as the file has it, for one that has not been asked for.
    #[cfg(feature = "cpu")]
    pub(crate) fn stored(&self, name: &str) -> Option<&Arc<StoredMatrix>> {
        self.stored.get(name)
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
    pub(crate) fn act(&self) -> &Act {
        &self.act
    }

    fn attention(
        &self,
        x: Tensor<B, 3>,
        rope: Option<&Rope<B>>,
        visibility: &Visibility,
        trace: &mut Trace<'_, B>,
        at: &str,
    ) -> Tensor<B, 3> {
        let [q, k, v] = self.qkv(x, trace, at); //                              3 × [b, n, heads·hd]
        let h = multi_head(q, k, v, self.n_head, rope, visibility); //          [b, n, heads·hd]
        trace.see(&h, || format!("{at}.attn"));
        let h = linear_in_burn(&self.attn_out, h); //                           [b, n, dim]
        trace.see(&h, || format!("{at}.attn_out"));
        h
    }

    fn qkv(&self, x: Tensor<B, 3>, trace: &mut Trace<'_, B>, at: &str) -> [Tensor<B, 3>; 3] {
        match (&self.attn_qkv, &self.attn_q, &self.attn_k, &self.attn_v) {
            (Some(qkv), ..)
                if !trace.is_watched() && !pieces::fits(&[x.dims()[0], x.dims()[1], qkv.weight.dims()[1]]) =>
            {
                thirds(qkv, &x)
            }
            (Some(qkv), ..) => {
                let qkv = linear_in_burn(qkv, x); //                            [b, n, 3·heads·hd]
                trace.see(&qkv, || format!("{at}.attn_qkv"));
                let inner = qkv.dims()[2] / 3;
                [0, 1, 2].map(|part| qkv.clone().narrow(2, part * inner, inner))
            }
            (None, Some(q), Some(k), Some(v)) => {
                let parts = [q, k, v].map(|layer| linear_in_burn(layer, x.clone()));
                for (part, name) in parts.iter().zip(["attn_q", "attn_k", "attn_v"]) {
                    trace.see(part, || format!("{at}.{name}"));
                }
                parts
            }
            _ => unreachable!("BlockConfig::init makes either attn_qkv or all three of attn_q, attn_k and attn_v"),
        }
    }
}

/// Queries, keys and values of a fused projection, one after the other.
///
/// **Shapes** `[batch, tokens, dim]` → 3 × `[batch, tokens, heads · head_dim]`.
fn thirds<B: Backend>(qkv: &Linear<B>, x: &Tensor<B, 3>) -> [Tensor<B, 3>; 3] {
    let inner = qkv.weight.dims()[1] / 3;
    [0, 1, 2].map(|part| {
        let weight = qkv.weight.val().narrow(1, part * inner, inner);
        let y = x.clone().matmul(weight.unsqueeze());
        match &qkv.bias {
            Some(bias) => y + bias.val().narrow(0, part * inner, inner).unsqueeze(),
            None => y,
        }
    })
}

fn scaled<B: Backend>(x: Tensor<B, 3>, scale: &Option<Param<Tensor<B, 1>>>) -> Tensor<B, 3> {
    match scale {
        Some(scale) => x * scale.val().unsqueeze(),
        None => x,
    }
}
