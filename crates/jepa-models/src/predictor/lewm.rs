//! The predictor of LeWorldModel: the next state of the world from a short window of states and actions.

use burn::module::Param;
use burn::nn::{Initializer, LayerNorm, LayerNormConfig, LinearConfig};
use burn::prelude::*;
use jepa_gguf::schema::{LewmHparams, PredictorHparams};

use crate::encoder::Projector;
use crate::error::ModelError;
use crate::nn::{Act, AdaLnBlock, AdaLnBlockConfig, Visibility, layer_norm, linear};
use crate::trace::Trace;

/// What a [`LewmPredictor`] is made of.
#[derive(Clone, Debug, PartialEq)]
pub struct LewmPredictorConfig {
    /// Sizes of the stack.
    pub hparams: PredictorHparams,
    /// What only this predictor has.
    pub lewm: LewmHparams,
}

impl LewmPredictorConfig {
    /// A predictor with Burn's default initialisation; the position table is drawn with standard deviation 0.02.
    pub fn init<B: Backend>(&self, device: &B::Device) -> LewmPredictor<B> {
        let (h, l) = (&self.hparams, &self.lewm);
        let linear = |d_in, d_out| LinearConfig::new(d_in, d_out).init(device);
        let mlp = |d_in, hidden, d_out, act| (linear(d_in, hidden), Act::new(act), linear(hidden, d_out));
        let block = AdaLnBlockConfig {
            embed_dim: h.embed_dim,
            n_head: h.n_head,
            head_dim: h.head_dim,
            ffn_dim: h.ffn_dim,
            ln_eps: h.ln_eps,
            adaln_eps: l.adaln_eps,
            act: h.act,
            qkv_bias: h.qkv_bias,
        };
        LewmPredictor {
            action_embed: mlp(l.action_dim, l.action_hidden, h.embed_dim, l.action_act),
            pos_embed: Initializer::Normal { mean: 0.0, std: 0.02 }.init([l.n_frames, h.embed_dim], device),
            blk: (0..h.n_layer).map(|_| block.init(device)).collect(),
            norm: LayerNormConfig::new(h.embed_dim).with_epsilon(h.ln_eps).init(device),
            proj: mlp(h.embed_dim, l.proj.hidden, h.out_dim, l.proj.act),
            config: self.clone(),
        }
    }
}

/// The predictor of LeWM.
#[derive(Module, Debug)]
pub struct LewmPredictor<B: Backend> {
    /// Actions to conditions.
    pub action_embed: Projector<B>,
    /// Position of a frame in the window.
    pub pos_embed: Param<Tensor<B, 2>>,
    /// The blocks.
    pub blk: Vec<AdaLnBlock<B>>,
    /// Final norm.
    pub norm: LayerNorm<B>,
    /// Rows to the next state.
    pub proj: Projector<B>,
    #[module(skip)]
    config: LewmPredictorConfig,
}

impl<B: Backend> LewmPredictor<B> {
    /// What the predictor is made of.
    pub fn config(&self) -> &LewmPredictorConfig {
        &self.config
    }

    /// Predicts the state after each frame of a window; a frame sees itself and earlier ones.
    ///
    /// **Shapes** `states` `[batch, frames, embed_dim]`, `actions` `[batch, frames, action_dim]` → `[batch, frames, embed_dim]`; row `t` is
    /// the state after frame `t`.
    ///
    /// # Errors
    /// [`ModelError::Shape`] for tensors that do not fit, [`ModelError::TooManyFrames`] for a window longer than the position table.
    pub fn forward(
        &self,
        states: Tensor<B, 3>,
        actions: Tensor<B, 3>,
        trace: &mut Trace<'_, B>,
    ) -> Result<Tensor<B, 3>, ModelError> {
        let x = through(&self.proj, self.rows(states, actions, trace)?); //     [b, T, dim]
        trace.see(&x, || "pred.proj.2".into());
        Ok(x)
    }

    /// What the projector reads: the rows after the final norm.
    ///
    /// **Shapes** and errors as for [`Self::forward`].
    pub(crate) fn rows(
        &self,
        states: Tensor<B, 3>,
        actions: Tensor<B, 3>,
        trace: &mut Trace<'_, B>,
    ) -> Result<Tensor<B, 3>, ModelError> {
        let [batch, frames, dim] = states.dims();
        let (wanted_dim, action_dim) = (self.config.hparams.embed_dim, self.config.lewm.action_dim);
        if dim != wanted_dim || frames == 0 {
            let wanted = format!("[batch, frames, {wanted_dim}] (jepa.pred.embed_dim)");
            return Err(ModelError::Shape { name: "states", found: vec![batch, frames, dim], wanted });
        }
        if actions.dims() != [batch, frames, action_dim] {
            let wanted = format!("[{batch}, {frames}, {action_dim}] (batch, frames, jepa.pred.action_dim)");
            return Err(ModelError::Shape { name: "actions", found: actions.dims().to_vec(), wanted });
        }
        if frames > self.config.lewm.n_frames {
            return Err(ModelError::TooManyFrames { found: frames, most: self.config.lewm.n_frames });
        }

        let condition = through(&self.action_embed, actions); //                [b, T, dim]
        trace.see(&condition, || "pred.action_embed.2".into());
        let mut x = states + self.pos_embed.val().narrow(0, 0, frames).unsqueeze();
        let causal = Visibility::BlockCausal { prefix: 0, frames: vec![(0..frames).collect()] };
        for (i, block) in self.blk.iter().enumerate() {
            x = block.forward(x, condition.clone(), &causal, trace, &format!("pred.blk.{i}"));
        }
        let x = layer_norm(&self.norm, self.config.hparams.ln_eps, x);
        trace.see(&x, || "pred.norm".into());
        Ok(x)
    }
}

fn through<B: Backend>((up, act, down): &Projector<B>, x: Tensor<B, 3>) -> Tensor<B, 3> {
    linear(down, act.forward(linear(up, x)))
}
