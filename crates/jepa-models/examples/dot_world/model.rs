//! The network that learns the dot's world: a LeWorldModel of a size that trains on a laptop.

use std::path::Path;

use burn::nn::Initializer;
use burn::prelude::*;
use burn_flex::Flex;
use jepa_gguf::schema::{
    Activation, EncoderHparams, Family, Hparams, LewmHparams, Modality, PredictorHparams, PredictorKind,
    PreprocessHparams, ProjectorHparams, Resample, ResizeMode,
};
use jepa_gguf::{BundleWriter, GgufError};
use jepa_models::predictor::LewmPredictorConfig;
use jepa_models::world::LewmWorld;
use jepa_models::{EncoderConfig, Jepa, ModelError, Pixels, Predictor, Preprocess};
use jepa_pixels::Rgb8;

use crate::world::SIDE;

/// Frames that a prediction looks at.
pub(crate) const WINDOW: usize = 3;

const WIDTH: usize = 32;
const HIDDEN: usize = 128;
const HEADS: usize = 4;
/// How the encoder's position table starts.
const POSITIONS: Initializer = Initializer::Normal { mean: 0.0, std: 0.5 };

/// Every number of the model, as its file has them.
pub(crate) fn hparams() -> Hparams {
    let proj = ProjectorHparams { hidden: HIDDEN, act: Activation::GeluErf };
    let enc = EncoderHparams {
        cls_token: true,
        proj: Some(proj),
        ..EncoderHparams::vit([WIDTH, 3, HEADS, HIDDEN], 16, SIDE)
    };
    let lewm = LewmHparams {
        action_dim: 2,
        n_frames: WINDOW,
        adaln_eps: 1e-6,
        action_hidden: 2 * WIDTH,
        action_act: Activation::Silu,
        proj,
    };
    let pred = PredictorHparams {
        embed_dim: WIDTH,
        n_layer: 2,
        n_head: HEADS,
        head_dim: WIDTH / HEADS,
        ffn_dim: HIDDEN,
        out_dim: WIDTH,
        ln_eps: 1e-5,
        act: Activation::GeluErf,
        qkv_bias: false,
        kind: PredictorKind::Lewm(lewm),
    };
    Hparams {
        name: Some("dot-world".into()),
        license: Some("MIT OR Apache-2.0".into()),
        source_url: None,
        family: Family::Lewm,
        modality: Modality::Image,
        enc,
        pred: Some(pred),
        head: None,
        pre: PreprocessHparams {
            // Of the channels over random play. With them the floor is about 0 and the dot stands out.
            mean: [0.92, 0.89, 0.86],
            std: [0.16, 0.18, 0.17],
            resize_short: SIDE,
            crop: SIDE,
            resample: Resample::Bilinear,
            resize_mode: ResizeMode::Squash,
            rescale: 1.0 / 255.0,
        },
    }
}

/// An untrained model, the same for the same seed.
pub(crate) fn fresh<B: Backend>(seed: u64, device: &B::Device) -> LewmWorld<B> {
    let Hparams { family, enc, pred: Some(pred), .. } = hparams() else { unreachable!("the model has a predictor") };
    let PredictorKind::Lewm(lewm) = pred.kind.clone() else { unreachable!("its predictor is LeWM's") };
    B::seed(device, seed);
    let mut encoder = EncoderConfig { family, hparams: enc }.init(device);
    // Positions as large as what they are added to: with the small ones that long trainings start from, the patches of a picture were told apart late.
    encoder.pos_embed = encoder.pos_embed.map(|table| POSITIONS.init(table.dims(), device));
    let predictor = LewmPredictorConfig { hparams: pred, lewm }.init(device);
    let world = LewmWorld { encoder, predictor };
    // Parameters are drawn when they are first asked for: here, in the order of the fields.
    world.num_params();
    world
}

/// Writes the model to a file that every command takes.
pub(crate) fn save(world: &LewmWorld<Flex>, path: &Path) -> Result<(), GgufError> {
    let mut writer = BundleWriter::from_hparams(&hparams());
    writer.put_module("enc.", &world.encoder).put_module("pred.", &world.predictor);
    writer.start(path)?.finish()
}

/// Opens the file of a world model.
pub(crate) fn open(path: &Path) -> Result<(LewmWorld<Flex>, Preprocess), ModelError> {
    let model = Jepa::<Flex>::open(path, &Default::default())?;
    match model.load_predictor()? {
        Predictor::Lewm(predictor) => {
            Ok((LewmWorld { encoder: model.encoder().clone(), predictor }, model.preprocess().clone()))
        }
        _ => Err(model.cannot("LeWM predictor")),
    }
}

/// Clips of equally many frames as the model sees them.
///
/// **Shapes** → `[clips, 3, frames, height, width]`.
pub(crate) fn pixels<B: Backend>(
    clips: &[Vec<Rgb8>],
    preprocess: &Preprocess,
    device: &B::Device,
) -> Result<Pixels<B>, ModelError> {
    let (height, width) = preprocess.output_size();
    let frames = clips.first().map_or(0, Vec::len);
    let values = clips.iter().map(|clip| preprocess.normalise(clip)).collect::<Result<Vec<_>, _>>()?.concat();
    let data = TensorData::new(values, [clips.len(), 3, frames, height, width]);
    Ok(Pixels::from_normalised_clips(Tensor::from_data(data, device)))
}
