//! One GGUF file as a model that runs.

use std::path::Path;
use std::sync::Arc;

use burn::prelude::*;
use burn::tensor::DType;
use burn_store::ModuleSnapshot;
use jepa_gguf::schema::{HeadKind, Hparams, PredictorKind};
use jepa_gguf::{Bundle, Gguf, GgufStore};

use crate::encoder::{EncodeOptions, Encoder, EncoderConfig};
use crate::error::ModelError;
use crate::features::{Encoded, HeadReads};
use crate::head::{AttentiveHead, AttentiveHeadConfig, LinearHead, LinearHeadConfig};
use crate::nn::{Block, Pixels, TokenIds, is_loaded_at_once};
use crate::predictor::{
    AcPredictor, AcPredictorConfig, LewmPredictor, LewmPredictorConfig, MaskedPredictor, MaskedPredictorConfig,
    PredictInput, Predicted, TrainedOn,
};
use crate::preprocess::Preprocess;
use crate::trace::Trace;

/// Probabilities of inputs that have several scores each: the mean of their softmaxes.
///
/// **Shapes** logits `[batch, scores, n_classes]` → `[batch, n_classes]`.
pub fn mean_probabilities<B: Backend>(logits: Tensor<B, 3>) -> Tensor<B, 2> {
    burn::tensor::activation::softmax(logits, 2).mean_dim(1).squeeze_dim(1)
}

/// A bundle on a device: the encoder and the preprocessing it was trained with. Predictor and head are loaded when they are asked for.
#[derive(Debug)]
pub struct Jepa<B: Backend> {
    bundle: Bundle,
    encoder: Encoder<B>,
    preprocess: Preprocess,
    dtype: DType,
}

/// The predictor of a bundle.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "there is one per model, and it is not moved about")]
pub enum Predictor<B: Backend> {
    /// Fills in masked tokens.
    Masked(MaskedPredictor<B>),
    /// V-JEPA 2-AC.
    Ac(AcPredictor<B>),
    /// LeWM.
    Lewm(LewmPredictor<B>),
}

/// The head of a bundle.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "there is one per model, and it is not moved about")]
pub enum Head<B: Backend> {
    /// Attentive pooler and classifier.
    Attentive(AttentiveHead<B>),
    /// One layer on the pooled vector.
    Linear(LinearHead<B>),
}

impl<B: Backend> Jepa<B> {
    /// Opens a GGUF file, checks it whole and loads the encoder onto `device`, one tensor at a time.
    ///
    /// # Errors
    /// [`ModelError::File`] when the file is not there or not a valid bundle.
    pub fn open(path: impl AsRef<Path>, device: &B::Device) -> Result<Self, ModelError> {
        Self::from_bundle(Bundle::open(path)?, device)
    }

    /// Loads the encoder of a bundle that has been opened already.
    ///
    /// # Errors
    /// [`ModelError::File`] when a tensor cannot be read.
    pub fn from_bundle(bundle: Bundle, device: &B::Device) -> Result<Self, ModelError> {
        Self::from_bundle_as(bundle, device, DType::F32)
    }

    /// Loads the encoder of a bundle with linear layers, here and in predictor and head, of another type than f32: `DType::F16` or `DType::BF16`.
    ///
    /// They are rounded to it on the way to the device, whatever the file has. Layers, and the products of attention, take and give numbers of that
    /// type; norms, softmax, activations and the residual stream are f32, and so are all results.
    ///
    /// # Errors
    /// [`ModelError::Dtype`] for a type that the device cannot compute in; [`ModelError::File`] when a tensor cannot be read.
    pub fn from_bundle_as(bundle: Bundle, device: &B::Device, dtype: DType) -> Result<Self, ModelError> {
        let known = matches!(dtype, DType::F32 | DType::F16 | DType::BF16);
        if !known || !B::supports_dtype(device, dtype) {
            return Err(ModelError::Dtype { found: dtype.name(), backend: B::name(device) });
        }
        let hparams = bundle.hparams();
        let mut encoder = EncoderConfig { family: hparams.family, hparams: hparams.enc.clone() }.init(device);
        encoder.load_from(&mut GgufStore::from_bundle(&bundle).prefix("enc.").dtype(dtype).only(is_loaded_at_once))?;
        leave_in_file(&mut encoder.blk, bundle.gguf(), "enc", dtype);
        Ok(Self { preprocess: Preprocess::new(hparams), encoder, bundle, dtype })
    }

    /// Loads the predictor.
    ///
    /// # Errors
    /// [`ModelError::Cannot`] when the bundle has none, [`ModelError::File`] when a tensor cannot be read.
    pub fn load_predictor(&self) -> Result<Predictor<B>, ModelError> {
        let h = self.hparams();
        let pred = h.pred.clone().ok_or_else(|| self.cannot("predictor"))?;
        let (device, qkv_fused, enc_dim) = (self.device(), h.enc.qkv_fused, h.enc.embed_dim);
        let store = || GgufStore::from_bundle(&self.bundle).prefix("pred.").dtype(self.dtype).skip_enum_variants(true);
        Ok(match pred.kind.clone() {
            PredictorKind::Masked(masked) => {
                let table_rows = self.bundle.gguf().tensor("pred.pos_embed").map_or(0, |table| table.info().shape()[0]);
                let config = MaskedPredictorConfig { hparams: pred, masked, enc_dim, table_rows, qkv_fused };
                let mut predictor = config.init(&device);
                predictor.load_from(&mut store().only(is_loaded_at_once))?;
                leave_in_file(&mut predictor.blk, self.bundle.gguf(), "pred", self.dtype);
                Predictor::Masked(predictor)
            }
            PredictorKind::Ac(ac) => {
                let mut predictor = AcPredictorConfig { hparams: pred, ac, enc_dim, qkv_fused }.init(&device);
                predictor.load_from(&mut store().only(is_loaded_at_once))?;
                leave_in_file(&mut predictor.blk, self.bundle.gguf(), "pred", self.dtype);
                Predictor::Ac(predictor)
            }
            PredictorKind::Lewm(lewm) => {
                let mut predictor = LewmPredictorConfig { hparams: pred, lewm }.init(&device);
                predictor.load_from(&mut store())?;
                Predictor::Lewm(predictor)
            }
        })
    }

    /// Loads the head.
    ///
    /// # Errors
    /// [`ModelError::Cannot`] when the bundle has none, [`ModelError::File`] when a tensor cannot be read.
    pub fn load_head(&self) -> Result<Head<B>, ModelError> {
        let h = self.hparams();
        let head = h.head.as_ref().ok_or_else(|| self.cannot("head"))?;
        let (device, n_classes) = (self.device(), head.n_classes);
        let store = || GgufStore::from_bundle(&self.bundle).prefix("head.").dtype(self.dtype);
        Ok(match head.kind {
            HeadKind::LinearCls => {
                let embed_dim = h.enc.embed_dim * head.layers.len().max(1);
                let mut head = LinearHeadConfig { embed_dim, n_classes }.init(&device);
                head.load_from(&mut store())?;
                Head::Linear(head)
            }
            HeadKind::AttentivePool { n_pool_layers, ffn_dim, xattn_ffn_dim } => {
                let enc = h.enc.clone();
                let mut head =
                    AttentiveHeadConfig { enc, n_pool_layers, ffn_dim, xattn_ffn_dim, n_classes }.init(&device);
                head.load_from(&mut store().only(is_loaded_at_once))?;
                leave_in_file(&mut head.blk, self.bundle.gguf(), "head", self.dtype);
                Head::Attentive(head)
            }
        })
    }

    /// What the head of the bundle reads; the output as the family pools it when there is none.
    pub(crate) fn head_reads(&self) -> HeadReads {
        self.hparams().head.as_ref().map_or_else(HeadReads::default, HeadReads::from)
    }

    /// The refusal of a task for want of `part`, which says what the model can do instead.
    pub fn cannot(&self, part: &'static str) -> ModelError {
        let h = self.hparams();
        let predictor = h.pred.as_ref().map(|pred| match pred.kind {
            PredictorKind::Masked(_) => "predict",
            PredictorKind::Ac(_) | PredictorKind::Lewm(_) => "rollout, plan",
        });
        let words = ["embed"].into_iter().chain(predictor).chain(h.head.as_ref().map(|_| "classify"));
        ModelError::Cannot { family: h.family, part, can: words.collect::<Vec<_>>().join(", ") }
    }

    fn device(&self) -> B::Device {
        self.encoder.patch_embed.weight.device()
    }

    /// What the file says about itself.
    pub fn hparams(&self) -> &Hparams {
        self.bundle.hparams()
    }

    /// The file.
    pub fn bundle(&self) -> &Bundle {
        &self.bundle
    }

    /// The encoder.
    pub fn encoder(&self) -> &Encoder<B> {
        &self.encoder
    }

    /// The encoder, to change it.
    pub fn encoder_mut(&mut self) -> &mut Encoder<B> {
        &mut self.encoder
    }

    /// The type of its linear layers.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// How pictures and clips become the encoder's input.
    pub fn preprocess(&self) -> &Preprocess {
        &self.preprocess
    }

    /// How pictures and clips become the encoder's input, to change it.
    pub fn preprocess_mut(&mut self) -> &mut Preprocess {
        &mut self.preprocess
    }

    /// Encodes a batch; see [`Encoder::encode`].
    ///
    /// # Errors
    /// As [`Encoder::encode`].
    pub fn encode(&self, pixels: Pixels<B>) -> Result<Encoded<B>, ModelError> {
        self.encoder.encode(pixels)
    }

    /// Encodes the context tokens alone and predicts the targets from them. What the context was encoded from follows from the pixels.
    ///
    /// **Shapes** `[batch, chans, frames, height, width]` → `[batch, targets, out]`.
    ///
    /// # Errors
    /// As [`Encoder::encode_with`] and [`MaskedPredictor::forward`]; [`ModelError::TokenIds`] for targets off the input's grid.
    pub fn predict_masked(
        &self,
        predictor: &MaskedPredictor<B>,
        pixels: Pixels<B>,
        context: &TokenIds,
        targets: &TokenIds,
        mask_index: usize,
        trace: &mut Trace<'_, B>,
    ) -> Result<Predicted<B>, ModelError> {
        let [batch, _, frames, _, _] = pixels.dims();
        let modality = if frames == 1 { TrainedOn::Picture } else { TrainedOn::Clip };
        let options = EncodeOptions { context: Some(context), layers: &[] };
        let encoded = self.encoder.encode_with(pixels, options, trace)?;
        targets.check(batch, encoded.grid.tokens())?;
        let rows = encoded.hier_concat(predictor.config().masked.n_hier_in).unwrap_or(encoded.tokens);
        predictor.forward(rows, PredictInput { context, targets, mask_index, modality }, trace)
    }

    /// Logits of a batch.
    ///
    /// **Shapes** `[batch, chans, frames, height, width]` → `[batch, n_classes]`.
    ///
    /// # Errors
    /// As [`Encoder::encode`].
    pub fn classify(&self, head: &Head<B>, pixels: Pixels<B>) -> Result<Tensor<B, 2>, ModelError> {
        Ok(self.classify_clips(head, pixels, 1, 1)?.squeeze_dim(1))
    }

    /// Logits of inputs that are given as several clips each: `segments` pieces of the time axis, seen in `views` crops.
    ///
    /// An attentive head attends across the segments of a view: their tokens are joined before it. A linear head scores every clip for itself. The
    /// scores of an input are then averaged as probabilities, [`mean_probabilities`].
    ///
    /// **Shapes** `[batch · views · segments, chans, frames, height, width]`, segments fastest → `[batch, scores, n_classes]`, one score per view
    /// (attentive) or per clip (linear).
    ///
    /// **Source** the video evaluations of V-JEPA (`attend_across_segments`) and V-JEPA 2 (`ClipAggregation`).
    ///
    /// # Errors
    /// As [`Encoder::encode`]; [`ModelError::Shape`] when the clips are no whole number of inputs.
    pub fn classify_clips(
        &self,
        head: &Head<B>,
        pixels: Pixels<B>,
        segments: usize,
        views: usize,
    ) -> Result<Tensor<B, 3>, ModelError> {
        let clips = pixels.dims()[0];
        if segments == 0 || views == 0 || !clips.is_multiple_of(segments * views) {
            let wanted = format!("[inputs · {views} views · {segments} segments, ..]");
            return Err(ModelError::Shape { name: "clips", found: pixels.dims().to_vec(), wanted });
        }
        let inputs = clips / (segments * views);
        let reads = self.head_reads();
        let options = EncodeOptions { layers: &reads.layers, ..Default::default() };
        let encoded = self.encoder.encode_with(pixels, options, &mut Trace::none())?;
        let logits = match head {
            Head::Linear(head) => head.forward(encoded.pooled_for(&reads)?),
            Head::Attentive(head) => {
                let tokens = encoded.joined_layers();
                let [clips, tokens_per_clip, dim] = tokens.dims();
                // Tokens are in the order of time, so joining segments is joining their rows.
                let joined = tokens.reshape([clips / segments, segments * tokens_per_clip, dim]);
                head.forward(joined, &mut Trace::none())
            }
        };
        let [scores, n_classes] = logits.dims();
        Ok(logits.reshape([inputs, scores / inputs, n_classes]))
    }
}

/// Leaves the matrices of `blocks`, the stack below `part` of the schema, in the file until they are asked for.
fn leave_in_file<B: Backend>(blocks: &mut [Block<B>], file: &Arc<Gguf>, part: &str, dtype: DType) {
    for (i, block) in blocks.iter_mut().enumerate() {
        block.leave_in_file(file, &format!("{part}.blk.{i}"), dtype);
    }
}
