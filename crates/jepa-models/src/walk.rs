//! One walk through every part of a bundle, for those who look inside.

use burn::prelude::*;

use crate::bundle::{Head, Jepa, Predictor};
use crate::encoder::EncodeOptions;
use crate::error::ModelError;
use crate::features::{Encoded, Pool};
use crate::nn::{Pixels, TokenIds};
use crate::predictor::{MaskedPredictor, PredictInput, TrainedOn};
use crate::trace::Trace;
use crate::world::{AcWorld, WorldModel};

impl<B: Backend> Jepa<B> {
    /// Runs the encoder, then the predictor and the head where the bundle has them, and shows every tensor to `trace`.
    ///
    /// A masked predictor gets all tokens as context and as targets, as HF calls it without masks. A world model gets the input's frames with
    /// actions and states of zero.
    ///
    /// # Errors
    /// As [`crate::Encoder::encode`]; [`ModelError::Shape`] when the input's grid is not one that a world model takes.
    pub fn walk(&self, pixels: Pixels<B>, trace: &mut Trace<'_, B>) -> Result<(), ModelError> {
        let one_frame = pixels.dims()[2] == 1;
        let reads = self.head_reads();
        let options = EncodeOptions { layers: &reads.layers, ..EncodeOptions::default() };
        let encoded = self.encoder().encode_with(pixels.clone(), options, trace)?;
        if self.hparams().pred.is_some() {
            match self.load_predictor()? {
                Predictor::Masked(predictor) => walk_masked(&predictor, &encoded, one_frame, trace)?,
                Predictor::Ac(predictor) => {
                    let world = AcWorld { encoder: self.encoder().clone(), predictor };
                    let frames = world.observe(pixels)?;
                    let [batch, n, ..] = frames.dims();
                    let zeros = |width| Tensor::zeros([batch, n, width], &frames.device());
                    let (actions, states) = (zeros(world.action_dim()), zeros(world.state_dim()));
                    world.predictor.forward(frames.flatten(1, 2), actions, states, trace)?;
                }
                Predictor::Lewm(predictor) => {
                    let state = encoded.pooled(Pool::State)?.unsqueeze_dim::<3>(1); // [b, 1, dim]
                    let batch = state.dims()[0];
                    let actions = Tensor::zeros([batch, 1, predictor.config().lewm.action_dim], &state.device());
                    predictor.forward(state, actions, trace)?;
                }
            }
        }
        if self.hparams().head.is_some() {
            let logits = match self.load_head()? {
                Head::Linear(head) => head.forward(encoded.pooled_for(&reads)?),
                Head::Attentive(head) => head.forward(encoded.joined_layers(), trace),
            };
            trace.see(&logits.unsqueeze_dim(1), || "head.cls".into());
        }
        Ok(())
    }
}

fn walk_masked<B: Backend>(
    predictor: &MaskedPredictor<B>,
    encoded: &Encoded<B>,
    one_frame: bool,
    trace: &mut Trace<'_, B>,
) -> Result<(), ModelError> {
    let all = TokenIds::shared((0..encoded.grid.tokens()).collect())?;
    let modality = if one_frame { TrainedOn::Picture } else { TrainedOn::Clip };
    let rows = encoded.hier_concat(predictor.config().masked.n_hier_in).unwrap_or_else(|| encoded.tokens.clone());
    let input = PredictInput { context: &all, targets: &all, mask_index: 1, modality };
    predictor.forward(rows, input, trace).map(|_| ())
}
