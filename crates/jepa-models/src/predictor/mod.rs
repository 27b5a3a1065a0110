//! The predictors: masked prediction in latent space, and world models under actions.

mod ac;
mod lewm;
mod masked;

pub use ac::{AcPredictor, AcPredictorConfig};
pub use lewm::{LewmPredictor, LewmPredictorConfig};
pub use masked::{MaskedPredictor, MaskedPredictorConfig, PredictInput, Predicted, PredictorEmbed, TrainedOn};

use jepa_gguf::schema::PredictorHparams;

use crate::nn::BlockConfig;

/// The blocks of a predictor.
fn block_config(h: &PredictorHparams, qkv_fused: bool) -> BlockConfig {
    BlockConfig {
        embed_dim: h.embed_dim,
        n_head: h.n_head,
        head_dim: h.head_dim,
        ffn_dim: h.ffn_dim,
        ln_eps: h.ln_eps,
        act: h.act,
        qkv_fused,
        qkv_bias: h.qkv_bias,
        layer_scale: false,
    }
}
