//! The action-conditioned predictor of V-JEPA 2: the next frame's tokens from frames, actions and poses.

use burn::nn::{LayerNorm, LayerNormConfig, Linear, LinearConfig};
use burn::prelude::*;
use jepa_gguf::schema::{AcHparams, PredictorHparams};

use super::block_config;
use crate::error::ModelError;
use crate::nn::{Block, Grid, Rope, RopeAngles, TokenPosition, Visibility, layer_norm, linear};
use crate::trace::Trace;

/// Rows before the patches of a frame: its action and its state.
const CONDITION_ROWS: usize = 2;

/// What an [`AcPredictor`] is made of.
#[derive(Clone, Debug, PartialEq)]
pub struct AcPredictorConfig {
    /// Sizes of the stack.
    pub hparams: PredictorHparams,
    /// What only this predictor has.
    pub ac: AcHparams,
    /// Width of an encoder token.
    pub enc_dim: usize,
    /// One `attn_qkv` per block, or three projections.
    pub qkv_fused: bool,
}

impl AcPredictorConfig {
    /// A predictor with Burn's default initialisation.
    pub fn init<B: Backend>(&self, device: &B::Device) -> AcPredictor<B> {
        let (h, dim) = (&self.hparams, self.hparams.embed_dim);
        let linear = |d_in, d_out| LinearConfig::new(d_in, d_out).init(device);
        AcPredictor {
            embed: linear(self.enc_dim, dim),
            action_embed: linear(self.ac.action_dim, dim),
            state_embed: linear(self.ac.state_dim, dim),
            blk: (0..h.n_layer).map(|_| block_config(h, self.qkv_fused).init(device)).collect(),
            norm: LayerNormConfig::new(dim).with_epsilon(h.ln_eps).init(device),
            proj: linear(dim, h.out_dim),
            config: self.clone(),
        }
    }
}

/// The action-conditioned predictor.
#[derive(Module, Debug)]
pub struct AcPredictor<B: Backend> {
    /// Encoder tokens to the predictor's width.
    pub embed: Linear<B>,
    /// Actions to a row.
    pub action_embed: Linear<B>,
    /// States to a row.
    pub state_embed: Linear<B>,
    /// The blocks.
    pub blk: Vec<Block<B>>,
    /// Final norm.
    pub norm: LayerNorm<B>,
    /// Patch rows to the encoder's width.
    pub proj: Linear<B>,
    #[module(skip)]
    config: AcPredictorConfig,
}

impl<B: Backend> AcPredictor<B> {
    /// What the predictor is made of.
    pub fn config(&self) -> &AcPredictorConfig {
        &self.config
    }

    /// Tokens of one frame.
    pub fn tokens_per_frame(&self) -> usize {
        self.config.ac.grid_size * self.config.ac.grid_size
    }

    /// Predicts the frame after each given frame; a frame sees itself and earlier ones.
    ///
    /// **Shapes** `latents` `[batch, frames · grid², enc_dim]`, `actions` `[batch, frames, action_dim]`, `states`
    /// `[batch, frames, state_dim]` → `[batch, frames · grid², enc_dim]`; row block `t` is the prediction of frame `t + 1`. The output is not
    /// normalised.
    ///
    /// **Source** Meta's `VisionTransformerPredictorAC`. The two condition rows of a frame turn with its time only, which is what position
    /// `(t, 0, 0)` gives.
    ///
    /// # Errors
    /// [`ModelError::Shape`] for tensors that do not fit each other or the model, [`ModelError::TooManyFrames`] beyond the mask's slots.
    pub fn forward(
        &self,
        latents: Tensor<B, 3>,
        actions: Tensor<B, 3>,
        states: Tensor<B, 3>,
        trace: &mut Trace<'_, B>,
    ) -> Result<Tensor<B, 3>, ModelError> {
        let (hw, ac) = (self.tokens_per_frame(), &self.config.ac);
        let [batch, n, width] = latents.dims();
        let frames = n / hw;
        let expect = |name, x: &Tensor<B, 3>, wanted: [usize; 3], keys: &str| match x.dims() == wanted {
            true => Ok(()),
            false => Err(ModelError::Shape { name, found: x.dims().to_vec(), wanted: format!("{wanted:?} ({keys})") }),
        };
        if n == 0 || n % hw != 0 || width != self.config.enc_dim {
            let wanted =
                format!("[batch, frames · {hw}, {}] (jepa.pred.grid_size², jepa.enc.embed_dim)", self.config.enc_dim);
            return Err(ModelError::Shape { name: "latents", found: vec![batch, n, width], wanted });
        }
        expect("actions", &actions, [batch, frames, ac.action_dim], "batch, frames, jepa.pred.action_dim")?;
        expect("states", &states, [batch, frames, ac.state_dim], "batch, frames, jepa.pred.state_dim")?;
        if frames > ac.n_frames {
            return Err(ModelError::TooManyFrames { found: frames, most: ac.n_frames });
        }

        let dim = self.config.hparams.embed_dim;
        let rows = hw + CONDITION_ROWS;
        let a = linear(&self.action_embed, actions).reshape([batch, frames, 1, dim]);
        let s = linear(&self.state_embed, states).reshape([batch, frames, 1, dim]);
        let x = linear(&self.embed, latents).reshape([batch, frames, hw, dim]);
        let mut x = Tensor::cat(vec![a, s, x], 2).reshape([batch, frames * rows, dim]); // [b, T·(2 + hw), dim]
        trace.see(&x, || "pred.embed".into());

        let rope = self.rope(frames);
        let visibility = match ac.frame_causal {
            true => {
                Visibility::BlockCausal { prefix: 0, frames: vec![(0..frames * rows).map(|row| row / rows).collect()] }
            }
            false => Visibility::Full,
        };
        for (i, block) in self.blk.iter().enumerate() {
            x = block.forward(x, rope.as_ref(), &visibility, trace, &format!("pred.blk.{i}"));
        }
        let x = x.reshape([batch, frames, rows, dim]).narrow(2, CONDITION_ROWS, hw).reshape([batch, n, dim]);
        let x = layer_norm(&self.norm, self.config.hparams.ln_eps, x);
        trace.see(&x, || "pred.norm".into());
        let x = linear(&self.proj, x); //                                        [b, T·hw, enc_dim]
        trace.see(&x, || "pred.proj".into());
        Ok(x)
    }

    fn rope(&self, frames: usize) -> Option<Rope<B>> {
        let angles = RopeAngles::new(self.config.ac.rope, self.config.hparams.head_dim);
        let side = self.config.ac.grid_size;
        let grid = Grid { frames, rows: side, cols: side };
        let positions = (0..frames).flat_map(|t| {
            let condition = TokenPosition { t: t as f64, h: 0.0, w: 0.0 };
            let patches = (t * side * side..(t + 1) * side * side).map(move |id| angles.position(id, grid));
            std::iter::repeat_n(condition, CONDITION_ROWS).chain(patches).map(Some)
        });
        Rope::new(angles, &[positions.collect()], &self.embed.weight.device())
    }
}
