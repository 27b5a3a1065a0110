//! Masked prediction in latent space: I-JEPA, V-JEPA, V-JEPA 2 and 2.1.
//!
//! Context rows are embedded, a mask token stands for every target, both get their positions, blocks run over all of them, and the target rows
//! are projected to the width of the encoder. The families differ in how a row knows its position (a table or rotary positions), and 2.1 adds a
//! vector for the kind of input and a projection of the context rows.

use burn::module::Param;
use burn::nn::{Initializer, LayerNorm, LayerNormConfig, Linear, LinearConfig};
use burn::prelude::*;
use jepa_gguf::schema::{MaskedHparams, PredictorHparams};

use super::block_config;
use crate::encoder::Projector;
use crate::error::ModelError;
use crate::nn::{Act, Block, Grid, Rope, RopeAngles, TokenIds, Visibility, layer_norm, linear};
use crate::trace::Trace;

/// What a [`MaskedPredictor`] is made of.
#[derive(Clone, Debug, PartialEq)]
pub struct MaskedPredictorConfig {
    /// Sizes of the stack.
    pub hparams: PredictorHparams,
    /// What only a masked predictor has.
    pub masked: MaskedHparams,
    /// Width of one encoder output.
    pub enc_dim: usize,
    /// Rows of the position table, where there is one.
    pub table_rows: usize,
    /// One `attn_qkv` per block, or three projections.
    pub qkv_fused: bool,
}

impl MaskedPredictorConfig {
    /// A predictor with Burn's default initialisation; tables and tokens are drawn with standard deviation 0.02.
    pub fn init<B: Backend>(&self, device: &B::Device) -> MaskedPredictor<B> {
        let (h, m) = (&self.hparams, &self.masked);
        let dim = h.embed_dim;
        let small = Initializer::Normal { mean: 0.0, std: 0.02 };
        let linear = |d_in, d_out| LinearConfig::new(d_in, d_out).init(device);
        let row = |yes: bool| yes.then(|| small.init([dim], device));
        let out = m.n_hier_in * h.out_dim;
        MaskedPredictor {
            embed: match m.embed_hidden {
                None => PredictorEmbed::Linear(linear(m.n_hier_in * self.enc_dim, dim)),
                Some(hidden) => PredictorEmbed::Mlp((
                    linear(m.n_hier_in * self.enc_dim, hidden),
                    Act::new(jepa_gguf::schema::Activation::GeluErf),
                    linear(hidden, dim),
                )),
            },
            mask_tokens: small.init([m.n_mask_tokens, dim], device),
            pos_embed: m.rope.is_none().then(|| small.init([self.table_rows, dim], device)),
            mod_embed_img: row(m.modality_embed),
            mod_embed_video: row(m.modality_embed),
            blk: (0..h.n_layer).map(|_| block_config(h, self.qkv_fused).init(device)).collect(),
            norm: LayerNormConfig::new(dim).with_epsilon(h.ln_eps).init(device),
            proj: linear(dim, out),
            proj_context: m.context_proj.then(|| linear(dim, out)),
            config: self.clone(),
        }
    }
}

/// Encoder width to predictor width: one layer, or two where several hierarchical outputs come in.
#[derive(Module, Debug)]
#[allow(clippy::large_enum_variant, reason = "there is one per predictor")]
pub enum PredictorEmbed<B: Backend> {
    /// `pred.embed`.
    Linear(Linear<B>),
    /// `pred.embed.0` and `pred.embed.2`.
    Mlp(Projector<B>),
}

/// A masked predictor.
#[derive(Module, Debug)]
pub struct MaskedPredictor<B: Backend> {
    /// Context rows to the predictor's width.
    pub embed: PredictorEmbed<B>,
    /// Mask tokens, `[n_mask_tokens, embed_dim]`.
    pub mask_tokens: Param<Tensor<B, 2>>,
    /// Position table (I-JEPA, V-JEPA).
    pub pos_embed: Option<Param<Tensor<B, 2>>>,
    /// Added to every row for pictures (V-JEPA 2.1).
    pub mod_embed_img: Option<Param<Tensor<B, 1>>>,
    /// Added to every row for clips (V-JEPA 2.1).
    pub mod_embed_video: Option<Param<Tensor<B, 1>>>,
    /// The blocks.
    pub blk: Vec<Block<B>>,
    /// Final norm.
    pub norm: LayerNorm<B>,
    /// Target rows to the encoder's width.
    pub proj: Linear<B>,
    /// Context rows to the encoder's width (V-JEPA 2.1).
    pub proj_context: Option<Linear<B>>,
    #[module(skip)]
    config: MaskedPredictorConfig,
}

/// What the context was encoded from; V-JEPA 2.1 tells its predictor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TrainedOn {
    /// A single picture.
    Picture,
    /// A clip.
    #[default]
    Clip,
}

/// What is predicted from what.
#[derive(Clone, Copy, Debug)]
pub struct PredictInput<'a> {
    /// Ids of the context rows, in their order.
    pub context: &'a TokenIds,
    /// Ids to predict; the output has their order. They may repeat context ids.
    pub targets: &'a TokenIds,
    /// Which mask token stands for the targets, taken modulo their number.
    pub mask_index: usize,
    /// What the context was encoded from.
    pub modality: TrainedOn,
}

/// A prediction.
#[derive(Debug)]
pub struct Predicted<B: Backend> {
    /// Target rows, `[batch, targets, n_hier_in · out_dim]`.
    pub targets: Tensor<B, 3>,
    /// Context rows through their own projection, `[batch, context, n_hier_in · out_dim]` (V-JEPA 2.1).
    pub context: Option<Tensor<B, 3>>,
}

impl<B: Backend> MaskedPredictor<B> {
    /// What the predictor is made of.
    pub fn config(&self) -> &MaskedPredictorConfig {
        &self.config
    }

    /// Predicts the targets.
    ///
    /// **Shapes** `context` `[batch, n, n_hier_in · enc_dim]`, encoder rows in the order of the context ids.
    ///
    /// **Source** HF `VJEPA2Predictor` and Meta's predictors, without their sorting of the rows: rows see each other unmasked, so order
    /// changes nothing.
    ///
    /// # Errors
    /// [`ModelError::Shape`] for a context of another width or length, [`ModelError::TokenIds`] for ids outside the position table.
    pub fn forward(
        &self,
        context: Tensor<B, 3>,
        input: PredictInput<'_>,
        trace: &mut Trace<'_, B>,
    ) -> Result<Predicted<B>, ModelError> {
        let [batch, n, width] = context.dims();
        let wanted = self.config.masked.n_hier_in * self.config.enc_dim;
        if width != wanted || n != input.context.kept() {
            let wanted = format!(
                "[batch, {}, {wanted}] (context ids, jepa.pred.n_hier_in · jepa.enc.embed_dim)",
                input.context.kept()
            );
            return Err(ModelError::Shape { name: "context", found: vec![batch, n, width], wanted });
        }
        // Rotary positions know no last token; a table has its rows.
        let positions = self.pos_embed.as_ref().map_or(usize::MAX, |table| table.dims()[0]);
        input.context.check(batch, positions)?;
        input.targets.check(batch, positions)?;

        let c = match &self.embed {
            PredictorEmbed::Linear(embed) => linear(embed, context),
            PredictorEmbed::Mlp((up, act, down)) => linear(down, act.forward(linear(up, context))),
        }; //                                                                   [b, n, dim]
        trace.see(&c, || "pred.embed".into());
        let m = self.mask_rows(batch, input); //                                [b, m, dim]
        let (c, m) = match &self.pos_embed {
            Some(table) => (c + input.context.look_up(table.val()), m + input.targets.look_up(table.val())),
            None => (c, m),
        };
        let mut x = Tensor::cat(vec![c, m], 1); //                              [b, n + m, dim]
        let modality = match input.modality {
            TrainedOn::Picture => &self.mod_embed_img,
            TrainedOn::Clip => &self.mod_embed_video,
        };
        if let Some(modality) = modality {
            x = x + modality.val().unsqueeze();
        }
        let rope = self.rope(input);
        for (i, block) in self.blk.iter().enumerate() {
            x = block.forward(x, rope.as_ref(), &Visibility::Full, trace, &format!("pred.blk.{i}"));
        }
        let x = layer_norm(&self.norm, self.config.hparams.ln_eps, x);
        trace.see(&x, || "pred.norm".into());
        let targets = linear(&self.proj, x.clone().narrow(1, n, input.targets.kept()));
        trace.see(&targets, || "pred.proj".into());
        let context = self.proj_context.as_ref().map(|proj| linear(proj, x.narrow(1, 0, n)));
        if let Some(context) = &context {
            trace.see(context, || "pred.proj_context".into());
        }
        Ok(Predicted { targets, context })
    }

    fn mask_rows(&self, batch: usize, input: PredictInput<'_>) -> Tensor<B, 3> {
        let tokens = self.mask_tokens.val();
        let [n_mask_tokens, dim] = tokens.dims();
        tokens.narrow(0, input.mask_index % n_mask_tokens, 1).unsqueeze::<3>().expand([
            batch,
            input.targets.kept(),
            dim,
        ])
    }

    /// Ids are decoded on the predictor's own square grid, whatever the shape of the input.
    fn rope(&self, input: PredictInput<'_>) -> Option<Rope<B>> {
        let angles = RopeAngles::new(self.config.masked.rope?, self.config.hparams.head_dim);
        let side = self.config.masked.grid_size;
        let grid = Grid { frames: 1, rows: side, cols: side };
        Rope::of_ids(angles, &input.context.followed_by(input.targets), grid, 0, &self.mask_tokens.device())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::Distribution;
    use burn_flex::Flex;
    use jepa_gguf::schema::{Activation, PredictorKind, RopeHparams, RopeLayout};

    fn rotary(interpolate: bool, ref_grid: usize, grid_size: usize) -> MaskedPredictorConfig {
        let masked = MaskedHparams {
            n_mask_tokens: 1,
            rope: Some(RopeHparams { theta: 1e4, layout: RopeLayout::Interleaved, interpolate, ref_grid }),
            grid_size,
            n_hier_in: 1,
            embed_hidden: None,
            modality_embed: false,
            context_proj: false,
        };
        let hparams = PredictorHparams {
            embed_dim: 48,
            n_layer: 2,
            n_head: 2,
            head_dim: 24,
            ffn_dim: 96,
            out_dim: 32,
            ln_eps: 1e-6,
            act: Activation::GeluErf,
            qkv_bias: true,
            kind: PredictorKind::Masked(masked.clone()),
        };
        MaskedPredictorConfig { hparams, masked, enc_dim: 32, table_rows: 0, qkv_fused: true }
    }

    /// Rows and columns of a 4 × 4 grid stretched to 7 are every second row and column of a larger grid; time is not stretched.
    #[test]
    fn interpolated_positions_lie_on_the_reference_grid() {
        let device = Default::default();
        let mut predictor = rotary(true, 7, 4).init::<Flex>(&device);
        let context = Tensor::random([1, 3, 32], Distribution::Normal(0.0, 1.0), &device);
        let places = [(0, 0, 1), (1, 2, 3), (0, 3, 3), (1, 1, 0), (0, 2, 1)];
        let ids = |stretch: usize, side: usize, places: &[(usize, usize, usize)]| {
            let id = |&(t, h, w): &(usize, usize, usize)| (t * side + h * stretch) * side + w * stretch;
            TokenIds::shared(places.iter().map(id).collect()).expect("distinct ids")
        };
        let predict = |predictor: &MaskedPredictor<Flex>, stretch, side| {
            let (seen, hidden) = places.split_at(3);
            let input = PredictInput {
                context: &ids(stretch, side, seen),
                targets: &ids(stretch, side, hidden),
                mask_index: 0,
                modality: TrainedOn::Clip,
            };
            let predicted = predictor.forward(context.clone(), input, &mut Trace::none()).expect("the shapes fit");
            predicted.targets.into_data().iter::<f32>().collect::<Vec<_>>()
        };
        let worst = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);

        let stretched = predict(&predictor, 1, 4);
        predictor.config = rotary(false, 7, 8);
        assert!(worst(&stretched, &predict(&predictor, 2, 8)) < 1e-6);
        predictor.config = rotary(false, 7, 4);
        assert!(worst(&stretched, &predict(&predictor, 1, 4)) > 1e-4);
        predictor.config = rotary(true, 4, 4);
        let unscaled = predict(&predictor, 1, 4);
        predictor.config = rotary(false, 4, 4);
        assert_eq!(unscaled, predict(&predictor, 1, 4));
    }
}
