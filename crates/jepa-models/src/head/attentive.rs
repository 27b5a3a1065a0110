use burn::module::Param;
use burn::nn::{Initializer, LayerNorm, LayerNormConfig, Linear, LinearConfig};
use burn::prelude::*;
use jepa_gguf::schema::EncoderHparams;

use crate::nn::{Act, Block, BlockConfig, Visibility, layer_norm, linear, multi_head};
use crate::trace::Trace;

/// What an [`AttentiveHead`] is made of. Heads, epsilon and activation are the encoder's.
#[derive(Clone, Debug, PartialEq)]
pub struct AttentiveHeadConfig {
    /// The encoder it sits on.
    pub enc: EncoderHparams,
    /// Self-attention blocks before the pooling.
    pub n_pool_layers: usize,
    /// Hidden width of the MLPs of those blocks.
    pub ffn_dim: usize,
    /// Hidden width of the MLP behind the cross-attention.
    pub xattn_ffn_dim: usize,
    /// Number of classes.
    pub n_classes: usize,
}

impl AttentiveHeadConfig {
    /// A head with Burn's default initialisation; the query is drawn with standard deviation 0.02.
    pub fn init<B: Backend>(&self, device: &B::Device) -> AttentiveHead<B> {
        let dim = self.enc.embed_dim;
        let block = BlockConfig { ffn_dim: self.ffn_dim, layer_scale: false, ..BlockConfig::from(&self.enc) };
        let norm = || LayerNormConfig::new(dim).with_epsilon(self.enc.ln_eps).init(device);
        let linear = |d_in, d_out| LinearConfig::new(d_in, d_out).init(device);
        AttentiveHead {
            blk: (0..self.n_pool_layers).map(|_| block.init(device)).collect(),
            query: Initializer::Normal { mean: 0.0, std: 0.02 }.init([1, dim], device),
            xattn: CrossAttention {
                ln_kv: norm(),
                q: linear(dim, dim),
                k: linear(dim, dim),
                v: linear(dim, dim),
                ln2: norm(),
                ffn_up: linear(dim, self.xattn_ffn_dim),
                ffn_down: linear(self.xattn_ffn_dim, dim),
                act: Act::new(self.enc.act),
                n_head: self.enc.n_head,
                ln_eps: self.enc.ln_eps,
            },
            cls: linear(dim, self.n_classes),
        }
    }
}

/// The attentive classifier of V-JEPA 2: self-attention over all tokens, one learned query that pools them, one layer to classes.
///
/// **Source** HF `VJEPA2AttentivePooler` and `VJEPA2ForVideoClassification`.
#[derive(Module, Debug)]
pub struct AttentiveHead<B: Backend> {
    /// Self-attention blocks, without positions.
    pub blk: Vec<Block<B>>,
    /// The query, `[1, embed_dim]`.
    pub query: Param<Tensor<B, 2>>,
    /// The pooling.
    pub xattn: CrossAttention<B>,
    /// Pooled vector to logits.
    pub cls: Linear<B>,
}

/// Cross-attention of a query to tokens, with an MLP behind it. There is no output projection, and the query is not normalised.
#[derive(Module, Debug)]
pub struct CrossAttention<B: Backend> {
    /// Norm of the tokens.
    pub ln_kv: LayerNorm<B>,
    /// Queries.
    pub q: Linear<B>,
    /// Keys.
    pub k: Linear<B>,
    /// Values.
    pub v: Linear<B>,
    /// Norm before the MLP.
    pub ln2: LayerNorm<B>,
    /// First layer of the MLP.
    pub ffn_up: Linear<B>,
    /// Second layer of the MLP.
    pub ffn_down: Linear<B>,
    act: Act,
    n_head: usize,
    ln_eps: f64,
}

impl<B: Backend> AttentiveHead<B> {
    /// **Shapes** tokens `[batch, tokens, embed_dim]` → pooled `[batch, embed_dim]`.
    pub fn pool(&self, tokens: Tensor<B, 3>, trace: &mut Trace<'_, B>) -> Tensor<B, 2> {
        let mut x = tokens;
        for (i, block) in self.blk.iter().enumerate() {
            x = block.forward(x, None, &Visibility::Full, trace, &format!("head.blk.{i}"));
        }
        let [batch, _, dim] = x.dims();
        let query = self.query.val().unsqueeze::<3>().expand([batch, 1, dim]);
        let y = self.xattn.forward(query, x); //                                [b, 1, dim]
        trace.see(&y, || "head.xattn".into());
        y.squeeze_dim(1)
    }

    /// **Shapes** tokens `[batch, tokens, embed_dim]` → logits `[batch, n_classes]`.
    pub fn forward(&self, tokens: Tensor<B, 3>, trace: &mut Trace<'_, B>) -> Tensor<B, 2> {
        linear(&self.cls, self.pool(tokens, trace))
    }
}

impl<B: Backend> CrossAttention<B> {
    /// **Shapes** `query` `[batch, queries, dim]`, `tokens` `[batch, tokens, dim]` → `[batch, queries, dim]`.
    pub fn forward(&self, query: Tensor<B, 3>, tokens: Tensor<B, 3>) -> Tensor<B, 3> {
        let kv = layer_norm(&self.ln_kv, self.ln_eps, tokens);
        let (q, k, v) = (linear(&self.q, query.clone()), linear(&self.k, kv.clone()), linear(&self.v, kv));
        let y = query + multi_head(q, k, v, self.n_head, None, &Visibility::Full);
        let h = linear(&self.ffn_up, layer_norm(&self.ln2, self.ln_eps, y.clone()));
        y + linear(&self.ffn_down, self.act.forward(h))
    }
}
